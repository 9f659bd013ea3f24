//! The audit log: who connected, was refused, and executed which statements.
//!
//! Above: the sessions. Below: the lines of the log. A line is written before the client hears that
//! its request is done; it says that the statement was executed, not that its transaction has
//! committed.
//!
//! - AUDIT-1: no line has a password, a verifier or the value of a parameter, as in the log.
//! - AUDIT-2: a statement that changed definitions, roles or rights is logged from level `ddl` on,
//!   also if a function that it called did it. (by test `nested_definitions_are_logged`)

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use quickbeam_sql::without_passwords;
use serde_json::{Value, json};

use super::log::{LoggedSession, event_line};
use crate::protocol::tag::keywords;

/// Which statements the audit log has. Each level has those of the levels before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum AuditLevel {
    /// None, and no connections.
    #[default]
    None,
    /// Changes of definitions, roles and rights; sessions and refused connections; statements that
    /// were refused for want of a right.
    Definitions,
    /// Changes of rows, too.
    Changes,
    /// Every statement.
    All,
}

impl FromStr for AuditLevel {
    type Err = String;

    fn from_str(text: &str) -> Result<AuditLevel, String> {
        Ok(match text {
            "none" => AuditLevel::None,
            "ddl" => AuditLevel::Definitions,
            "write" => AuditLevel::Changes,
            "all" => AuditLevel::All,
            other => return Err(format!("\"{other}\" is none of none, ddl, write and all")),
        })
    }
}

/// What a statement does, as its line names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementClass {
    Definition,
    Role,
    Write,
    Read,
    Other,
}

impl StatementClass {
    fn name(self) -> &'static str {
        match self {
            StatementClass::Definition => "ddl",
            StatementClass::Role => "role",
            StatementClass::Write => "write",
            StatementClass::Read => "read",
            StatementClass::Other => "other",
        }
    }

    /// Returns the first level that has it.
    fn level(self) -> AuditLevel {
        match self {
            StatementClass::Definition | StatementClass::Role => AuditLevel::Definitions,
            StatementClass::Write => AuditLevel::Changes,
            StatementClass::Read | StatementClass::Other => AuditLevel::All,
        }
    }

    /// Returns the class of a statement by its text. A query that is known to change something
    /// (`reads_only` is false) writes.
    pub fn of(text: &str, reads_only: Option<bool>) -> StatementClass {
        let mut words = keywords(text);
        let changes = || {
            let verbs = ["INSERT", "UPDATE", "DELETE", "MERGE"];
            let mut all = text.split(|c: char| !c.is_ascii_alphabetic());
            all.any(|word| verbs.iter().any(|verb| word.eq_ignore_ascii_case(verb)))
        };
        let of_rows = |changes| if changes { StatementClass::Write } else { StatementClass::Read };
        match words.next().unwrap_or_default().as_str() {
            "CREATE" | "ALTER" | "DROP" => match words.next().unwrap_or_default().as_str() {
                "ROLE" | "USER" | "GROUP" | "OWNED" | "DEFAULT" => StatementClass::Role,
                _ => StatementClass::Definition,
            },
            "GRANT" | "REVOKE" | "REASSIGN" => StatementClass::Role,
            "SET" | "RESET" => {
                let is_role = |word: String| matches!(word.as_str(), "ROLE" | "AUTHORIZATION");
                match words.take(2).any(is_role) {
                    true => StatementClass::Role,
                    false => StatementClass::Other,
                }
            }
            "COMMENT" | "REFRESH" | "REINDEX" => StatementClass::Definition,
            "INSERT" | "UPDATE" | "DELETE" | "MERGE" | "TRUNCATE" | "DO" | "CALL" => {
                StatementClass::Write
            }
            "COPY" if copies_a_query(text) => of_rows(changes()),
            "COPY" => of_rows(!copies_out(text)),
            "SELECT" | "VALUES" | "TABLE" | "WITH" => {
                of_rows(reads_only.map_or_else(changes, |reads_only| !reads_only))
            }
            "EXPLAIN" => {
                let analyzes = words.take(4).any(|word| word == "ANALYZE");
                of_rows(analyzes && changes())
            }
            "EXECUTE" | "DECLARE" | "FETCH" | "MOVE" => StatementClass::Read,
            _ => StatementClass::Other,
        }
    }
}

/// Whether COPY names a query, not a table.
fn copies_a_query(text: &str) -> bool {
    let at = text.to_ascii_uppercase().find("COPY");
    let rest = at.and_then(|at| text.get(at + "COPY".len()..));
    rest.is_some_and(|rest| rest.trim_start().starts_with('('))
}

/// Whether COPY writes the rows of a table: of FROM and TO, outside of names in quotation marks, TO
/// comes first.
fn copies_out(text: &str) -> bool {
    let outside = text.split('"').step_by(2);
    let mut words = outside.flat_map(|part| part.split(|c: char| !c.is_alphanumeric() && c != '_'));
    let is_direction = |word: &&str| ["FROM", "TO"].iter().any(|it| it.eq_ignore_ascii_case(word));
    words.find(is_direction).is_some_and(|word| word.eq_ignore_ascii_case("TO"))
}

/// Returns the name of the prepared statement that EXECUTE names.
pub fn executed_name(text: &str) -> Option<String> {
    let mut words = text.trim_start().splitn(2, char::is_whitespace);
    let (verb, rest) = (words.next()?, words.next()?.trim_start());
    if !verb.eq_ignore_ascii_case("EXECUTE") {
        return None;
    }
    match rest.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"').map(|(name, _)| name.to_owned()),
        None => {
            let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            Some(rest.get(..end)?.to_lowercase())
        }
    }
}

/// A statement, as its line has it.
#[derive(Clone, Copy, Debug)]
pub struct AuditedStatement<'s> {
    pub class: StatementClass,
    /// The role that executed it, if SET ROLE named one.
    pub role: Option<&'s str>,
    pub address: Option<&'s str>,
    pub text: &'s str,
    /// What EXECUTE executed.
    pub prepared: Option<&'s str>,
    /// The rows returned or changed, or the SQLSTATE of the error.
    pub outcome: Result<u64, &'s str>,
}

/// A file that events are appended to.
#[derive(Debug)]
pub struct AuditLog {
    level: AuditLevel,
    path: PathBuf,
    file: Mutex<File>,
    failures: AtomicU64,
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

impl AuditLog {
    /// Opens the file, or creates one that only this user reads.
    pub fn open(level: AuditLevel, path: &Path) -> io::Result<AuditLog> {
        let file = Mutex::new(open(path)?);
        Ok(AuditLog { level, path: path.to_owned(), file, failures: AtomicU64::new(0) })
    }

    /// Opens the file by its name again: another program has renamed it. After an error the log
    /// goes on in the old file.
    pub fn reopen(&self) -> io::Result<()> {
        let new = open(&self.path)?;
        *self.file.lock() = new;
        Ok(())
    }

    /// Returns how many lines could not be written.
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Logs the begin or the end of a session.
    pub fn connection(&self, event: &str, session: LoggedSession<'_>, address: Option<&str>) {
        self.write(event, session, json!({ "address": address }));
    }

    /// Logs a connection that was refused, with the SQLSTATE and the message that it got.
    pub fn refused(&self, user: &str, address: Option<&str>, (code, message): (&str, &str)) {
        let session = LoggedSession { number: 0, user };
        let more = json!({ "address": address, "sqlstate": code, "message": message });
        self.write("connection refused", session, more);
    }

    /// Whether a statement is logged.
    pub fn has(&self, class: StatementClass, outcome: Result<u64, &str>) -> bool {
        class.level() <= self.level || outcome == Err("42501")
    }

    /// Logs a statement, if it is one of those of the level.
    pub fn statement(&self, session: LoggedSession<'_>, statement: &AuditedStatement<'_>) {
        if !self.has(statement.class, statement.outcome) {
            return;
        }
        let more = json!({
            "role": statement.role,
            "address": statement.address,
            "class": statement.class.name(),
            "statement": without_passwords(statement.text),
            "prepared": statement.prepared.map(without_passwords),
            "rows": statement.outcome.ok(),
            "sqlstate": statement.outcome.err(),
        });
        self.write("statement", session, more);
    }

    fn write(&self, event: &str, session: LoggedSession<'_>, more: Value) {
        let line = event_line(event, session, more);
        if self.file.lock().write_all(line.as_bytes()).is_err() {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_have_their_class() {
        for (text, class) in [
            ("CREATE TABLE t (a INT)", StatementClass::Definition),
            ("create user u password 'x'", StatementClass::Role),
            ("ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO u", StatementClass::Role),
            ("DROP OWNED BY u", StatementClass::Role),
            ("SET LOCAL ROLE u", StatementClass::Role),
            ("RESET SESSION AUTHORIZATION", StatementClass::Role),
            ("SET work_mem = '1MB'", StatementClass::Other),
            ("/* x */ TRUNCATE t", StatementClass::Write),
            ("COPY t FROM STDIN", StatementClass::Write),
            ("COPY t (a) TO STDOUT", StatementClass::Read),
            ("COPY s.t (a, \"to\") FROM STDIN", StatementClass::Write),
            ("COPY (SELECT a FROM t) TO STDOUT", StatementClass::Read),
            ("COPY(DELETE FROM t RETURNING a) TO STDOUT", StatementClass::Write),
            ("WITH d AS (DELETE FROM t) SELECT 1", StatementClass::Write),
            ("SELECT a FROM t", StatementClass::Read),
            ("EXPLAIN DELETE FROM t", StatementClass::Read),
            ("EXPLAIN (ANALYZE) DELETE FROM t", StatementClass::Write),
            ("BEGIN", StatementClass::Other),
        ] {
            assert_eq!(StatementClass::of(text, None), class, "{text}");
        }
        assert_eq!(StatementClass::of("SELECT f()", Some(false)), StatementClass::Write);
    }

    #[test]
    fn execute_names_a_statement() {
        assert_eq!(executed_name("EXECUTE Plan(1)").as_deref(), Some("plan"));
        assert_eq!(executed_name("execute \"A b\"").as_deref(), Some("A b"));
        assert_eq!(executed_name("SELECT 1"), None);
    }
}
