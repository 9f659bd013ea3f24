//! What can be seen of a running server: sessions, counters, a log, an HTTP endpoint.
//!
//! Above: the server and its sessions. Below: the environment's statistics. A statement costs its
//! session two looks at the clock and a lock that no other thread holds for long.

pub mod audit;
pub mod http;
pub mod log;
pub mod metrics;
pub mod statements;
pub mod status;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use quickbeam_sql::{SessionActivity, SqlDatabase, StatementStatistics, without_passwords};

/// A server as its figures are read.
pub trait Watched {
    /// Returns the database.
    fn database(&self) -> &SqlDatabase;
    /// Returns the counters.
    fn counters(&self) -> &Counters;
    /// Returns what the sessions do.
    fn activities(&self) -> Vec<SessionActivity>;
    /// Returns what was counted of statements.
    fn statements(&self) -> Vec<StatementStatistics>;
    /// Returns whether the server stops.
    fn is_stopping(&self) -> bool;
    /// Returns how many lines of the audit log could not be written.
    fn audit_failures(&self) -> u64;
}

/// Returns the moment, in microseconds since 1970-01-01 UTC.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// What a session does, as other threads see it.
#[derive(Debug)]
pub struct Activity(Mutex<SessionActivity>);

impl Activity {
    /// A session that begins.
    pub fn new(number: i32, user: &str, address: Option<String>) -> Activity {
        let moment = now();
        Activity(Mutex::new(SessionActivity {
            number,
            user: user.to_owned(),
            address,
            began: moment,
            changed: moment,
            state: "idle",
            ..SessionActivity::default()
        }))
    }

    /// The session begins a statement. Returns when.
    pub fn begin(&self, statement: &Arc<str>) -> i64 {
        let moment = now();
        let mut content = self.0.lock();
        content.statement = statement.clone();
        content.statement_began = Some(moment);
        content.transaction_began.get_or_insert(moment);
        (content.state, content.changed) = ("active", moment);
        moment
    }

    /// The session waits for its client.
    pub fn rest(&self, state: &'static str) {
        let mut content = self.0.lock();
        if state == "idle" {
            content.transaction_began = None;
        }
        if content.state != state {
            (content.state, content.changed) = (state, now());
        }
    }

    /// The setting `application_name` has changed.
    pub fn set_application_name(&self, name: &str) {
        name.clone_into(&mut self.0.lock().application_name);
    }

    /// Returns what the session does now. The statement is shown without passwords.
    pub fn get(&self) -> SessionActivity {
        let mut activity = self.0.lock().clone();
        let shown = match without_passwords(&activity.statement) {
            Cow::Owned(shown) => Some(shown),
            Cow::Borrowed(_) => None,
        };
        if let Some(shown) = shown {
            activity.statement = shown.into();
        }
        activity
    }
}

/// The upper bounds of the histogram of durations, in microseconds.
pub const BOUNDS: [u64; 19] = [
    20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000,
    1_000_000, 2_000_000, 5_000_000, 10_000_000, 60_000_000,
];

/// Counters since the start of the server.
#[derive(Debug, Default)]
pub struct Counters {
    /// Sessions that began.
    pub sessions: AtomicU64,
    /// Clients that were refused after they had been read.
    pub refused: AtomicU64,
    /// Statements executed, with those that failed.
    pub statements: AtomicU64,
    /// Statements that took longer than the limit of the log.
    pub slow: AtomicU64,
    /// Statements by duration; the last are those beyond the bounds.
    pub durations: [AtomicU64; BOUNDS.len() + 1],
    /// Microseconds of all statements.
    pub microseconds: AtomicU64,
    /// Statements that failed, by SQLSTATE.
    pub failures: Mutex<BTreeMap<String, u64>>,
}

impl Counters {
    /// Counts a statement.
    pub fn count(&self, duration: Duration) {
        let microseconds = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS.iter().position(|bound| microseconds <= *bound);
        self.statements.fetch_add(1, Ordering::Relaxed);
        self.microseconds.fetch_add(microseconds, Ordering::Relaxed);
        if let Some(bucket) = self.durations.get(bucket.unwrap_or(BOUNDS.len())) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts an error that a client was sent.
    pub fn count_failure(&self, code: &str) {
        let mut failures = self.failures.lock();
        match failures.get_mut(code) {
            Some(count) => *count += 1,
            // The codes are those of this server, so there are few.
            None => drop(failures.insert(code.to_owned(), 1)),
        }
    }
}
