//! Statements from files, pipes and the command line.

use std::ffi::OsStr;
use std::io::Cursor;
use std::path::Path;

use anyhow::{Context, bail};

use super::lines::{Lines, lines, read_line, standard_lines};
use super::splitter::{End, Splitter};
use crate::sql::command;
use crate::sql::command::Buffer;
use crate::sql::shell::{Flow, Shell, StatementPlace};

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Maximum nesting depth of included files.
const DEPTH: usize = 20;

/// Executes statements of the command line. COPY reads its rows from standard input.
pub fn text(shell: &mut Shell, text: &OsStr) -> anyhow::Result<Flow> {
    let before = shell.set_input(Some(standard_lines()));
    let flow = run(shell, &lines(Cursor::new(text.as_encoded_bytes().to_owned())), None);
    shell.set_input(before);
    flow
}

/// Executes the statements of a file.
pub fn file(shell: &mut Shell, path: &Path) -> anyhow::Result<Flow> {
    let name = path.display().to_string();
    if shell.depth >= DEPTH {
        bail!("more than {DEPTH} files within each other: {name}");
    }
    let file = std::fs::File::open(path).with_context(|| format!("cannot open {name}"))?;
    shell.depth += 1;
    let flow = within(shell, lines(file), &name);
    shell.depth -= 1;
    flow
}

/// Executes the statements of standard input.
pub fn standard(shell: &mut Shell) -> anyhow::Result<Flow> {
    within(shell, standard_lines(), "standard input")
}

fn within(shell: &mut Shell, lines: Lines, name: &str) -> anyhow::Result<Flow> {
    let before = shell.set_input(Some(lines.clone()));
    let flow = run(shell, &lines, Some(name));
    shell.set_input(before);
    flow
}

fn run(shell: &mut Shell, lines: &Lines, name: Option<&str>) -> anyhow::Result<Flow> {
    let (mut pending, mut line) = (Pending::default(), Vec::new());
    let mut place = StatementPlace { name: name.map(str::to_owned), line: 0 };
    let shown = name.unwrap_or("the command line");
    while read_line(lines, &mut line).with_context(|| format!("cannot read {shown}"))? {
        place.line += 1;
        // Some editors write a byte order mark at the start of a file.
        let text = line.strip_prefix(BYTE_ORDER_MARK).filter(|_| place.line == 1).unwrap_or(&line);
        match pending.feed(shell, text, &mut place)? {
            Flow::On => {}
            other => return Ok(other),
        }
    }
    pending.finish(shell, &place)
}

/// The text of an incomplete statement. The UTF-8 check waits for the statement's end, because a
/// statement is executed whole or not at all.
#[derive(Default)]
pub struct Pending {
    text: Vec<u8>,
    /// Length of the scanned prefix of `text`.
    scanned: usize,
    splitter: Splitter,
    /// Line number at which the statement begins.
    begun: u64,
}

impl Pending {
    /// Adds one or more lines and executes the statements that end in them.
    pub fn feed(
        &mut self,
        shell: &mut Shell,
        text: &[u8],
        place: &mut StatementPlace,
    ) -> anyhow::Result<Flow> {
        if self.splitter.is_blank() {
            self.text.clear();
            self.scanned = 0;
            self.begun = place.line;
            if let Some(flow) = command::habit(shell, text, place) {
                return flow;
            }
        }
        self.text.extend_from_slice(text);
        let mut start = 0;
        while let Some(end) = self.splitter.scan(&self.text[self.scanned..]) {
            let flow = match end {
                End::Semicolon(length) => {
                    let end = self.scanned + length;
                    let at = StatementPlace { line: self.begun, ..place.clone() };
                    let flow = statement(shell, &self.text[start..end - 1], &at)?;
                    (start, self.scanned) = (end, end);
                    flow
                }
                End::Command(length) => {
                    self.scanned += length;
                    self.command(shell, start, place)?
                }
            };
            place.line += shell.take_rows();
            if flow != Flow::On {
                return Ok(flow);
            }
            if self.splitter.is_blank() {
                self.begun = place.line;
            }
        }
        self.text.drain(..start);
        self.scanned = self.text.len();
        if self.splitter.is_blank() {
            self.begun = place.line + 1;
        }
        Ok(Flow::On)
    }

    /// Executes the command at `scanned` and removes its line. The incomplete statement before it
    /// begins at `start`.
    fn command(
        &mut self,
        shell: &mut Shell,
        start: usize,
        place: &StatementPlace,
    ) -> anyhow::Result<Flow> {
        let from = self.scanned;
        let rest = &self.text[from..];
        let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        let line = self.text.drain(from..from + length).collect::<Vec<u8>>();
        let line = match std::str::from_utf8(line.trim_ascii()) {
            Ok(line) => line,
            Err(error) => return shell.refuse(&line, error, place),
        };
        let query = match std::str::from_utf8(&self.text[start..from]) {
            Ok(query) => query,
            Err(error) => return shell.refuse(&self.text[start..from], error, place),
        };
        let (flow, buffer) = command::run(shell, line, query, place)?;
        let replaced = match buffer {
            Buffer::Keep => return Ok(flow),
            Buffer::Clear => String::new(),
            Buffer::Replace(text) => text,
        };
        self.text.splice(start..from, replaced.into_bytes());
        self.scanned = start;
        self.splitter = Splitter::default();
        Ok(flow)
    }

    /// Returns true if no statement has begun.
    pub fn is_blank(&self) -> bool {
        self.splitter.is_blank()
    }

    /// Returns the prompt's mark for the incomplete statement.
    pub fn mark(&self) -> char {
        self.splitter.mark()
    }

    /// Executes the last statement, whose semicolon is optional, at the end of the input.
    pub fn finish(self, shell: &mut Shell, place: &StatementPlace) -> anyhow::Result<Flow> {
        if self.splitter.is_blank() {
            return Ok(Flow::On);
        }
        statement(shell, &self.text, &StatementPlace { line: self.begun, ..place.clone() })
    }
}

fn statement(shell: &mut Shell, text: &[u8], place: &StatementPlace) -> anyhow::Result<Flow> {
    match std::str::from_utf8(text) {
        Ok(text) => {
            text.clone_into(&mut shell.last_statement);
            shell.statement(text, place)
        }
        Err(error) => shell.refuse(text, error, place),
    }
}
