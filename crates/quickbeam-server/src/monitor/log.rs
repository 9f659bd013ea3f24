//! The log: a JSON object on a line for each event.
//!
//! - LOG-1: no line has a password, a verifier or the value of a parameter (by type: events carry
//!   the statement's text and counts)

use std::fmt;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use quickbeam_sql::types::{TextSettings, format_value};
use quickbeam_sql::{ValueRef, without_passwords};
use serde_json::{Map, Value, json};

use super::now;

/// Where a server writes its log.
#[derive(Clone)]
pub struct LogOutput(Arc<Mutex<dyn Write + Send>>);

impl fmt::Debug for LogOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LogOutput")
    }
}

impl LogOutput {
    /// Writes to that.
    pub fn new(output: impl Write + Send + 'static) -> LogOutput {
        LogOutput(Arc::new(Mutex::new(output)))
    }
}

/// What is logged, and where.
#[derive(Clone, Debug, Default)]
pub struct LogSettings {
    /// Where; `None`: nowhere.
    pub output: Option<LogOutput>,
    /// Statements that take at least so long.
    pub slow: Option<Duration>,
    /// Begin and end of sessions.
    pub connections: bool,
}

/// A session that events are about.
#[derive(Clone, Copy)]
pub struct LoggedSession<'s> {
    pub number: i32,
    pub user: &'s str,
}

impl LogSettings {
    /// Returns whether a statement that took so long is logged.
    pub fn is_slow(&self, duration: Duration) -> bool {
        self.output.is_some() && self.slow.is_some_and(|slow| duration >= slow)
    }

    /// Logs the begin or the end of a session.
    pub fn connection(&self, event: &str, session: LoggedSession<'_>, address: Option<&str>) {
        if self.connections {
            self.write(event, session, json!({ "address": address }));
        }
    }

    /// Logs a slow statement with its plan, as far as there is one.
    pub fn slow_statement(
        &self,
        session: LoggedSession<'_>,
        duration: Duration,
        statement: &str,
        is_done: bool,
        plan: Option<Vec<String>>,
    ) {
        let milliseconds = duration.as_micros() as f64 / 1e3;
        let fields = json!({
            "duration_ms": milliseconds,
            "failed": !is_done,
            "statement": without_passwords(statement),
            "plan": plan,
        });
        self.write("slow statement", session, fields);
    }

    fn write(&self, event: &str, session: LoggedSession<'_>, more: Value) {
        let Some(LogOutput(output)) = &self.output else { return };
        let line = event_line(event, session, more);
        // A log that cannot be written must not stop the session, and cannot be reported there.
        let _ = output.lock().write_all(line.as_bytes());
    }
}

/// Returns the line of an event. Fields that are null are left out.
pub fn event_line(event: &str, session: LoggedSession<'_>, more: Value) -> String {
    let mut moment = String::new();
    format_value(&mut moment, ValueRef::TimestampTz(now()), &TextSettings::DEFAULT);
    let mut fields = Map::new();
    fields.insert("time".to_owned(), moment.into());
    fields.insert("event".to_owned(), event.into());
    fields.insert("session".to_owned(), session.number.into());
    fields.insert("user".to_owned(), session.user.into());
    if let Value::Object(more) = more {
        fields.extend(more.into_iter().filter(|(_, value)| !value.is_null()));
    }
    let mut line = Value::Object(fields).to_string();
    line.push('\n');
    line
}
