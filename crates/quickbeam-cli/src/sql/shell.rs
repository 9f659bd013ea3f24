//! One connection and what is said about what happens on it.
//!
//! Above: scripts, the line editor, commands. Below: the SQL crate. Answers go to standard output, errors to standard error.

use std::fmt;
use std::io::Write;
use std::str::Utf8Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::Context;
use quickbeam_sql::catalog::CatalogSnapshot;
use quickbeam_sql::{Connection, Database, SqlError, SqlState};

use super::copy::{Files, Input, SharedInput, skip_rows, skip_unread_rows};
use super::say;
use super::script::Lines;
use super::show::{self, Failure, Format};
use super::words::{copies_input, tag};
use crate::output::Output;

/// How it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// With what comes next.
    On,
    /// Not at all: a statement failed.
    Failed,
    /// Not at all: `\q`.
    Quit,
}

/// Where a statement stands; shown before its errors.
#[derive(Clone, Debug)]
pub struct Place {
    /// The file; none: the statement needs no place to be found.
    pub name: Option<String>,
    pub line: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name}:{}: ", self.line),
            None => Ok(()),
        }
    }
}

/// A connection, and how what it does is shown.
pub struct Shell {
    connection: Connection,
    pub format: Format,
    pub is_timing: bool,
    pub is_quiet: bool,
    pub keeps_going: bool,
    pub is_interactive: bool,
    has_failed: bool,
    /// Files within files.
    pub depth: usize,
    /// A statement is being executed.
    is_running: Arc<AtomicBool>,
    /// Where statements come from, and rows of COPY.
    input: SharedInput,
}

/// What a statement did.
pub enum Done {
    /// Its answer was written.
    Answered(u64),
    Changed(u64),
}

impl Shell {
    /// A shell on a new connection. From now on Ctrl-C cancels its statement.
    pub fn new(database: &Database, format: Format, is_interactive: bool) -> anyhow::Result<Shell> {
        let mut connection = database.connect();
        let input = SharedInput::default();
        connection.set_copy_access(Files { input: input.clone(), is_interactive });
        let is_running = Arc::new(AtomicBool::new(false));
        let (cancel, running) = (connection.cancel_handle(), is_running.clone());
        ctrlc::set_handler(move || {
            if running.load(Ordering::SeqCst) {
                cancel.cancel();
            } else if !is_interactive {
                // A script that waits for its input. What was committed is safe.
                std::process::exit(130);
            }
        })
        .context("cannot listen to Ctrl-C")?;
        Ok(Shell {
            connection,
            format,
            is_timing: false,
            is_quiet: false,
            keeps_going: false,
            is_interactive,
            has_failed: false,
            depth: 0,
            is_running,
            input,
        })
    }

    /// Where statements come from, from now on; where they came from.
    pub fn set_input(&mut self, input: Option<Lines>) -> Option<Lines> {
        std::mem::replace(&mut self.lock_input().lines, input)
    }

    fn lock_input(&self) -> MutexGuard<'_, Input> {
        self.input.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lines behind the statement that it read as rows.
    pub fn take_rows(&self) -> u64 {
        std::mem::take(&mut self.lock_input().rows)
    }

    pub fn in_transaction(&self) -> bool {
        self.connection.in_transaction()
    }

    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// What there is, as the connection sees it.
    pub fn catalog(&self) -> Result<Arc<CatalogSnapshot>, SqlError> {
        self.connection.catalog_snapshot()
    }

    /// Names of the key/value databases.
    pub fn databases(&self) -> anyhow::Result<Vec<String>> {
        let mut names = self.connection.database().environment().databases()?;
        names.retain(|name| !name.starts_with(quickbeam_sql::catalog::TREE_PREFIX));
        Ok(names)
    }

    /// Executes a statement and shows what came of it.
    pub fn statement(&mut self, text: &str, place: &Place) -> anyhow::Result<Flow> {
        let started = Instant::now();
        self.is_running.store(true, Ordering::SeqCst);
        let mut output = Output::new();
        let done = self.execute(text, &mut output);
        self.is_running.store(false, Ordering::SeqCst);
        let took = started.elapsed();
        skip_rows(&self.input)?;
        let has_read = std::mem::take(&mut self.lock_input().has_read);
        let done = match done {
            Ok(done) => done,
            Err(Failure::Output(error)) => return Err(error.into()),
            Err(Failure::Statement(error)) => {
                output.finish()?;
                return self.give_up(text, &error, place, has_read);
            }
        };
        let is_for_people = self.format == Format::Table;
        if is_for_people
            && !self.is_quiet
            && let Some(tag) = tag(text, &done)
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
        Ok(Flow::On)
    }

    fn execute(&mut self, text: &str, output: &mut Output) -> Result<Done, Failure> {
        let mut statement = self.connection.prepare(text)?;
        if statement.columns().is_empty() {
            return Ok(Done::Changed(statement.execute(&mut self.connection, &[])?));
        }
        let rows = statement.query(&mut self.connection, &[])?;
        Ok(Done::Answered(show::rows(output, rows, self.format)?))
    }

    /// Says that a statement is not UTF-8, and how it goes on. Nothing of the statement was executed.
    pub fn refuse(&mut self, text: &[u8], error: Utf8Error, place: &Place) -> anyhow::Result<Flow> {
        let at = error.valid_up_to();
        let wrong = &text[at..text.len().min(at + error.error_len().unwrap_or(text.len()))];
        let wrong: String = wrong.iter().map(|byte| format!(" 0x{byte:02x}")).collect();
        let message = format!("invalid byte sequence for encoding \"UTF8\":{wrong}");
        let error = SqlError::new(SqlState::CharacterNotInRepertoire, message)
            .with_hint("statements are in UTF-8; nothing of this one was executed")
            .at(at);
        // Up to the place the text is as it was, so the mark stands where it should.
        self.give_up(&String::from_utf8_lossy(text), &error, place, false)
    }

    /// Reports a statement that failed. Rows that stand behind it in a script are no statements, though it never came to read them.
    fn give_up(
        &mut self,
        text: &str,
        error: &SqlError,
        place: &Place,
        has_read: bool,
    ) -> anyhow::Result<Flow> {
        let flow = self.report(text, error, place);
        let in_script = place.name.is_some();
        if flow == Flow::On && in_script && !has_read && copies_input(text) {
            skip_unread_rows(&self.input)?;
        }
        Ok(flow)
    }

    /// Says what went wrong, and how it goes on.
    fn report(&mut self, text: &str, error: &SqlError, place: &Place) -> Flow {
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
        self.failed()
    }

    /// Says that something else than a statement failed, and how it goes on.
    pub fn report_other(&mut self, error: &anyhow::Error, place: &Place) -> Flow {
        let program = if self.is_interactive { "" } else { "quickbeam: " };
        say(&format!("{program}{place}{error:#}"));
        self.failed()
    }

    fn failed(&mut self) -> Flow {
        self.has_failed = true;
        self.after_failure()
    }

    /// How it goes on after a failure.
    pub fn after_failure(&self) -> Flow {
        if self.is_interactive && self.depth == 0 || self.keeps_going {
            Flow::On
        } else {
            Flow::Failed
        }
    }

    /// At the end: what was not committed goes, but not silently.
    pub fn end_transaction(&mut self) -> anyhow::Result<()> {
        if !self.connection.in_transaction() {
            return Ok(());
        }
        self.connection.rollback()?;
        if self.is_interactive || !self.has_failed {
            say("quickbeam: the transaction was not committed: it is rolled back");
            self.has_failed = true;
        }
        Ok(())
    }
}

/// The line of the statement that an error is about, and a mark below the place.
fn marked(text: &str, position: usize) -> Option<String> {
    let before = text.get(..position)?;
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    // A statement may follow another one, and its line may begin with blank lines.
    let number = before.trim_start().matches('\n').count() + 1;
    let line = text[start..].lines().next().unwrap_or_default();
    let head = format!("LINE {number}: ");
    let blanks = head.len() + text[start..position].chars().count();
    // Long lines are cut, around the place.
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
