//! Executes statements on one connection and reports their results.
//!
//! Above: scripts, the line editor, commands. Below: the SQL crate. Results go to standard output,
//! errors to standard error.

use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::str::Utf8Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use quickbeam_sql::catalog::CatalogSnapshot;
use quickbeam_sql::types::TextSettings;
use quickbeam_sql::{Connection, SqlError, SqlState};

use super::copy::{Files, Input, SharedInput, skip_rows, skip_unread_rows};
use super::say;
use super::session::{ResultRows, Session};
use super::settings::OutputSettings;
use super::show::{self, Failure, Format};
use super::variables::Variables;
use crate::output::{Output, chain};
use crate::sql::input::foreign::{Foreign, Translator};
use crate::sql::input::lines::Lines;
use crate::sql::input::words::{Done, copies_input, tag};

/// What the caller does after a statement or a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Continues with the next statement.
    On,
    /// Stops, because a statement failed.
    Failed,
    /// Stops, because the user asked to quit.
    Quit,
}

/// What happens to the rows of a result.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    Written,
    Discarded,
}

/// The location of a statement, shown before its errors.
#[derive(Clone, Debug)]
pub struct StatementPlace {
    /// File name; `None` for statements of the command line and the line editor.
    pub name: Option<String>,
    pub line: u64,
}

/// Whether a COPY read the rows that follow it in the input.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CopyInput {
    Read,
    Unread,
}

impl fmt::Display for StatementPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name}:{}: ", self.line),
            None => Ok(()),
        }
    }
}

/// A connection with its output settings.
pub struct Shell {
    session: Session,
    /// The directory of the environment.
    name: String,
    pub settings: OutputSettings,
    /// The variables of `\set`.
    pub variables: Variables,
    pub is_timing: bool,
    pub is_quiet: bool,
    pub keeps_going: bool,
    /// Statements of foreign dumps are translated or skipped.
    pub is_lenient: bool,
    /// Translates the statements of a foreign dump.
    translator: Translator,
    /// Number of skipped statements.
    skipped: u64,
    pub is_interactive: bool,
    has_failed: bool,
    /// Number of failed statements and commands.
    failures: u64,
    /// Nesting depth of included files.
    pub depth: usize,
    /// True while a statement executes.
    is_running: Arc<AtomicBool>,
    /// True after Ctrl-C, until the next statement of the user.
    is_interrupted: Arc<AtomicBool>,
    /// The statement that `\g` without a statement repeats.
    pub last_statement: String,
    /// The source of statements and of COPY rows.
    input: SharedInput,
}

impl Shell {
    /// Opens a connection and installs the Ctrl-C handler, which cancels the current statement.
    pub fn new(
        session: Session,
        name: &str,
        format: Format,
        is_interactive: bool,
    ) -> anyhow::Result<Shell> {
        let input = SharedInput::default();
        session.set_copy_access(Files { input: input.clone(), is_interactive });
        let is_running = Arc::new(AtomicBool::new(false));
        let is_interrupted = Arc::new(AtomicBool::new(false));
        let (cancel, running) = (session.cancel_handle(), is_running.clone());
        let interrupted = is_interrupted.clone();
        ctrlc::set_handler(move || {
            interrupted.store(true, Ordering::SeqCst);
            if running.load(Ordering::SeqCst) {
                cancel.cancel();
            } else if !is_interactive {
                // The script is waiting for input. Committed transactions are safe.
                std::process::exit(130);
            }
        })
        .context("cannot listen to Ctrl-C")?;
        Ok(Shell {
            session,
            name: name.to_owned(),
            settings: OutputSettings::new(format),
            is_timing: false,
            is_quiet: false,
            keeps_going: false,
            is_lenient: false,
            translator: Translator::default(),
            variables: Variables::default(),
            skipped: 0,
            is_interactive,
            has_failed: false,
            failures: 0,
            depth: 0,
            is_running,
            is_interrupted,
            last_statement: String::new(),
            input,
        })
    }

    /// Replaces the source of statements and returns the previous one.
    pub fn set_input(&mut self, input: Option<Lines>) -> Option<Lines> {
        std::mem::replace(&mut self.lock_input().lines, input)
    }

    fn lock_input(&self) -> MutexGuard<'_, Input> {
        self.input.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of lines that the last statement consumed as COPY rows.
    pub fn take_rows(&self) -> u64 {
        std::mem::take(&mut self.lock_input().rows)
    }

    pub fn in_transaction(&self) -> bool {
        self.session.in_transaction()
    }

    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Describes the connection for `\conninfo`.
    pub fn description(&self) -> String {
        let connection = match &self.session {
            Session::Direct(connection) => connection,
            Session::Remote(client) => {
                let number = client.borrow().session_id();
                return format!(
                    "You are connected to the process that has {} open, by the socket there.\n\
                     Session {number}.",
                    self.name
                );
            }
        };
        let environment = connection.database().environment();
        let statistics = environment.statistics();
        let access = if environment.is_read_only() { ", read-only" } else { "" };
        let isolation = connection.setting("transaction_isolation");
        let isolation = isolation.ok().flatten().unwrap_or_default();
        format!(
            "You are connected to {}{access}.\nPage size {} bytes, cache {} bytes, isolation {isolation}, \
             session {}.",
            self.name,
            statistics.page_size,
            statistics.cache_size,
            connection.session_id()
        )
    }

    /// Returns whether the environment is open in another process.
    pub fn is_remote(&self) -> bool {
        matches!(self.session, Session::Remote(_))
    }

    /// Returns the connection in this process.
    fn direct(&self) -> Result<&Connection, SqlError> {
        match &self.session {
            Session::Direct(connection) => Ok(connection),
            Session::Remote(_) => Err(SqlError::unsupported(
                "this command while another process has the environment open",
            )),
        }
    }

    /// Returns the catalog as the connection sees it.
    pub fn catalog(&self) -> Result<Arc<CatalogSnapshot>, SqlError> {
        self.direct()?.catalog_snapshot()
    }

    /// Returns the names of the key/value databases.
    pub fn databases(&self) -> anyhow::Result<Vec<String>> {
        let mut names = self.direct()?.database().environment().databases()?;
        names.retain(|name| !name.starts_with(quickbeam_sql::catalog::TREE_PREFIX));
        Ok(names)
    }

    /// Executes a statement and writes its result, command tag and time. Replaces variables in it.
    /// With `--lenient`, a statement of a foreign dump is translated or skipped.
    pub fn statement(&mut self, text: &str, place: &StatementPlace) -> anyhow::Result<Flow> {
        let text = &*self.variables.replace_in(text).into_owned();
        if !self.is_lenient {
            return self.run(text, place);
        }
        match self.translator.translate(text) {
            Foreign::Execute(text) => self.run(&text, place),
            Foreign::Attempt(text) => {
                let (done, took, _) = self.perform(&text, Answer::Discarded)?;
                match done {
                    Ok(done) => self.report_done(&text, &done, took)?,
                    Err(error) => self.skip(&text, Some(error.message()), place),
                }
                Ok(Flow::On)
            }
            Foreign::Skip => {
                self.skip(text, None, place);
                Ok(Flow::On)
            }
        }
    }

    /// Reports and counts a statement or command that `--lenient` skips.
    pub fn skip(&mut self, text: &str, reason: Option<&str>, place: &StatementPlace) {
        self.skipped += 1;
        let is_shown = |line: &&str| !line.is_empty() && !line.starts_with("--");
        let line = text.lines().find(is_shown).unwrap_or_default();
        let shown: String = line.chars().take(80).collect();
        let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
        say(&format!("quickbeam: {place}skipped: {shown}{reason}"));
    }

    /// Reports the number of statements that were skipped or failed.
    pub fn report_skipped(&self) {
        if self.is_lenient {
            say(&format!("quickbeam: {} skipped, {} failed", self.skipped, self.failures));
        }
    }

    fn run(&mut self, text: &str, place: &StatementPlace) -> anyhow::Result<Flow> {
        match self.perform(text, Answer::Written)? {
            (Ok(done), took, _) => self.report_done(text, &done, took).map(|()| Flow::On),
            (Err(error), _, has_read) => {
                let input = if has_read { CopyInput::Read } else { CopyInput::Unread };
                self.give_up(text, &error, place, input)
            }
        }
    }

    /// Executes a statement and writes its result. Returns its outcome, its duration, and true if
    /// it opened the rows of a COPY. Fails if the output cannot be written.
    fn perform(
        &mut self,
        text: &str,
        answer: Answer,
    ) -> anyhow::Result<(Result<Done, SqlError>, Duration, bool)> {
        let started = Instant::now();
        self.is_running.store(true, Ordering::SeqCst);
        let done = self.execute(text, answer);
        self.is_running.store(false, Ordering::SeqCst);
        let took = started.elapsed();
        skip_rows(&self.input)?;
        let has_read = std::mem::take(&mut self.lock_input().has_read);
        match done {
            Ok(done) => Ok((Ok(done), took, has_read)),
            Err(Failure::Statement(error)) => Ok((Err(error), took, has_read)),
            Err(Failure::Output(error)) => Err(error.into()),
        }
    }

    /// Writes the command tag and the time of a statement.
    fn report_done(&self, text: &str, done: &Done, took: Duration) -> anyhow::Result<()> {
        let is_for_people = self.settings.format == Format::Table;
        let mut output = Output::new();
        if is_for_people
            && !self.is_quiet
            && let Some(tag) = tag(text, done)
        {
            writeln!(output, "{tag}")?;
        }
        if self.is_timing && is_for_people {
            writeln!(output, "Time: {:.3} ms", took.as_secs_f64() * 1e3)?;
        }
        output.finish()?;
        if self.is_timing && !is_for_people {
            say(&format!("Time: {:.3} ms", took.as_secs_f64() * 1e3));
        }
        Ok(())
    }

    /// Executes a statement every `seconds`, `count` times or until Ctrl-C or an error.
    pub fn watch(
        &mut self,
        text: &str,
        seconds: f64,
        count: u64,
        place: &StatementPlace,
    ) -> anyhow::Result<Flow> {
        self.is_interrupted.store(false, Ordering::SeqCst);
        for number in 0..count {
            let until = Instant::now() + Duration::from_secs_f64(seconds);
            while number > 0 && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(20));
                if self.is_interrupted.load(Ordering::SeqCst) {
                    return Ok(Flow::On);
                }
            }
            let failures = self.failures;
            let flow = self.statement(text, place)?;
            if flow != Flow::On || self.failures > failures {
                return Ok(flow);
            }
        }
        Ok(Flow::On)
    }

    fn execute(&mut self, text: &str, answer: Answer) -> Result<Done, Failure> {
        match &self.session {
            Session::Direct(connection) => {
                let mut statement = connection.prepare(text)?;
                if statement.columns().is_empty() {
                    return Ok(Done::Changed(statement.execute(&[])?));
                }
                self.write(statement.query(&[])?.into(), connection.text_settings(), answer)
            }
            Session::Remote(client) => {
                let client = &mut *client.borrow_mut();
                let texts = client.text_settings();
                let mut rows = client.query(text, &[])?;
                if rows.columns().is_empty() {
                    while rows.next()?.is_some() {}
                    let count = rows.count();
                    drop(rows);
                    client.take_notices().iter().for_each(|notice| say(notice));
                    return Ok(Done::Changed(count));
                }
                self.write(ResultRows::Remote(rows), texts, answer)
            }
        }
    }

    /// Writes the rows of a result, with the settings of the session that texts depend on.
    fn write(
        &self,
        rows: ResultRows<'_>,
        texts: TextSettings,
        answer: Answer,
    ) -> Result<Done, Failure> {
        let mut rows = rows;
        if answer == Answer::Discarded {
            let mut count = 0;
            while rows.next()?.is_some() {
                count += 1;
            }
            return Ok(Done::Answered(count));
        }
        let mut output = self.settings.output(self.is_interactive).map_err(io::Error::other)?;
        let shown =
            show::rows(&mut output, rows, &OutputSettings { texts, ..self.settings.clone() });
        let is_paged = output.is_paged();
        let finished = output.finish();
        match shown {
            // The user quit the pager.
            Err(Failure::Output(error)) if is_paged && error.kind() == ErrorKind::BrokenPipe => {
                Ok(Done::Answered(0))
            }
            Err(failure) => Err(failure),
            Ok(count) => finished.map(|()| Done::Answered(count)).map_err(Failure::Output),
        }
    }

    /// Reports a statement that is not UTF-8. No part of the statement was executed.
    pub fn refuse(
        &mut self,
        text: &[u8],
        error: Utf8Error,
        place: &StatementPlace,
    ) -> anyhow::Result<Flow> {
        let at = error.valid_up_to();
        let wrong = &text[at..text.len().min(at + error.error_len().unwrap_or(text.len()))];
        let wrong: String = wrong.iter().map(|byte| format!(" 0x{byte:02x}")).collect();
        let message = format!("invalid byte sequence for encoding \"UTF8\":{wrong}");
        let error = SqlError::new(SqlState::CharacterNotInRepertoire, message)
            .with_hint("statements are in UTF-8; nothing of this one was executed")
            .at(at);
        // The text is unchanged up to the invalid byte, so the position stays correct.
        self.give_up(&String::from_utf8_lossy(text), &error, place, CopyInput::Unread)
    }

    /// Reports a failed statement. If it was a COPY that failed before reading its rows, skips
    /// those rows so that they are not executed as statements.
    fn give_up(
        &mut self,
        text: &str,
        error: &SqlError,
        place: &StatementPlace,
        input: CopyInput,
    ) -> anyhow::Result<Flow> {
        let flow = self.report(text, error, place);
        let in_script = place.name.is_some();
        if flow == Flow::On && in_script && input == CopyInput::Unread && copies_input(text) {
            skip_unread_rows(&self.input)?;
        }
        Ok(flow)
    }

    /// Writes an SQL error to standard error and returns how to continue.
    fn report(&mut self, text: &str, error: &SqlError, place: &StatementPlace) -> Flow {
        let program = if self.is_interactive { "" } else { "quickbeam: " };
        say(&format!("{program}{place}ERROR {}: {}", error.code(), error.message()));
        if let Some(marked) = error.position().and_then(|position| marked(text, position)) {
            say(&marked);
        }
        for (what, more) in
            [("DETAIL", error.detail()), ("HINT", error.hint()), ("CONTEXT", error.context())]
        {
            if let Some(more) = more {
                say(&format!("{what}: {more}"));
            }
        }
        let first_word = text.split_whitespace().next().unwrap_or_default();
        if !self.is_lenient && first_word.eq_ignore_ascii_case("PRAGMA") {
            say("HINT: The option --lenient reads dumps of sqlite3.");
        }
        self.failed()
    }

    /// Writes an error of a shell command to standard error and returns how to continue.
    pub fn report_other(&mut self, error: &anyhow::Error, place: &StatementPlace) -> Flow {
        let program = if self.is_interactive { "" } else { "quickbeam: " };
        say(&format!("{program}{place}{}", chain(error)));
        self.failed()
    }

    fn failed(&mut self) -> Flow {
        self.has_failed = true;
        self.failures += 1;
        self.after_failure()
    }

    /// Returns `On` in interactive mode or with `--keep-going`, `Failed` otherwise.
    pub fn after_failure(&self) -> Flow {
        if self.is_interactive && self.depth == 0 || self.keeps_going {
            Flow::On
        } else {
            Flow::Failed
        }
    }

    /// Rolls back the open transaction, if any, and reports it.
    pub fn end_transaction(&mut self) -> anyhow::Result<()> {
        if !self.session.in_transaction() {
            return Ok(());
        }
        self.session.rollback()?;
        if self.is_interactive || !self.has_failed {
            say("quickbeam: the transaction was not committed: it is rolled back");
            self.has_failed = true;
        }
        Ok(())
    }
}

/// Returns the line of the statement that contains `position`, with a caret below the position.
fn marked(text: &str, position: usize) -> Option<String> {
    let before = text.get(..position)?;
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    // Leading blank lines do not belong to the statement.
    let number = before.trim_start().matches('\n').count() + 1;
    let line = text[start..].lines().next().unwrap_or_default();
    let head = format!("LINE {number}: ");
    let blanks = head.len() + text[start..position].chars().count();
    // Long lines are cut around the position.
    if line.len() > 400 {
        let from: usize =
            text[start..position].char_indices().rev().nth(60).map_or(0, |(at, _)| at);
        let cut: String = line[from..].chars().take(120).collect();
        let blanks = head.len() + 3 + line[from..position - start].chars().count();
        return Some(format!("{head}...{cut}...\n{}^", " ".repeat(blanks)));
    }
    Some(format!("{head}{line}\n{}^", " ".repeat(blanks)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_an_error_is_marked() {
        let text = "\nSELECT größe,\n  nothing FROM t";
        let at = text.find("nothing").unwrap();
        assert_eq!(marked(text, at).unwrap(), "LINE 2:   nothing FROM t\n          ^");
        let long = format!("SELECT {} FROM t", "a, ".repeat(1_000));
        let found = marked(&long, 2_000).unwrap();
        assert!(found.lines().all(|line| line.len() < 200), "{found}");
        assert_eq!(marked("ä", 1), None);
    }
}
