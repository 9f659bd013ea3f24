//! Benchmarks that are a list of queries: the engines answer each query in turns, and their answers
//! are compared.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::answers::{self, Answer};
use super::plan::{Configuration, SqlOptions};
use super::retry::settled;
use super::subjects::{Databases, Subject, take_turns};
use super::{Dialect, Prepared, SqlConnection, SqlRow};
use crate::progress::Progress;
use crate::report::{Measurement, Report};

/// A list of queries over one database.
pub struct QueryList<'a> {
    /// The name of the benchmark.
    pub benchmark: &'static str,
    /// What all SQL benchmarks have.
    pub options: &'a SqlOptions,
    /// How often each query is measured.
    pub repetitions: u32,
    /// Rows of the largest table.
    pub records: u64,
    /// Whether a query may have no rows.
    pub may_be_empty: bool,
    /// The text of a query in the words of an engine.
    pub text: &'a dyn Fn(u8, &Dialect) -> Result<String>,
    /// Fills a new database of the engine with that name.
    pub fill: &'a dyn Fn(&mut dyn SqlConnection, &str) -> Result<()>,
    /// The progress display.
    pub progress: &'a Progress,
}

impl QueryList<'_> {
    /// Runs queries on every engine, and adds the results to the report.
    pub fn run(
        &self,
        configurations: &[Configuration],
        queries: &[u8],
        report: &mut Report,
    ) -> Result<()> {
        let databases = Databases {
            benchmark: self.benchmark,
            options: self.options,
            fill: self.fill,
            progress: self.progress,
        };
        databases.with_subjects(configurations, report, |subjects, report| {
            queries.iter().try_for_each(|query| self.query(*query, subjects, report))
        })
    }

    /// One query: the engines take turns, as often as there are repetitions. An engine
    /// whose first answer differs from most others fails.
    fn query(&self, query: u8, subjects: &mut [Subject<'_>], report: &mut Report) -> Result<()> {
        let what = format!("query {query}");
        let mut prepared = Vec::new();
        for subject in &mut *subjects {
            self.progress.message(&subject.configuration.label(&what, 0));
            prepared.push(self.prepare(query, subject));
        }
        compare_all(&mut prepared);
        let turns = (&what[..], self.repetitions);
        let taken =
            take_turns(subjects, prepared, turns, self.progress, |subject, (statement, answer)| {
                measure(subject, *statement, answer.len())
            });
        for (subject, taken) in subjects.iter().zip(taken) {
            let result = |times: &[Duration]| self.result(query, subject, times);
            let shown = (self.progress, &mut *report);
            subject.configuration.conclude(&what, taken, result, shown)?;
        }
        Ok(())
    }

    fn result(&self, query: u8, subject: &Subject<'_>, times: &[Duration]) -> Result<Measurement> {
        let name = query.to_string();
        let mut result = subject.configuration.timed(self.benchmark, &name, times)?;
        result.records = self.records;
        result.settings = subject.settings();
        Ok(result)
    }

    /// Prepares a query and runs it once for its answer.
    fn prepare(&self, query: u8, subject: &mut Subject<'_>) -> Result<(Prepared, Answer)> {
        let dialect = subject.instance.dialect();
        let text = (self.text)(query, &dialect)?;
        let connection = &mut subject.connection;
        let statement = connection.prepare(&text).with_context(|| text.clone())?;
        let shown = match dialect.as_texts {
            Some((before, after)) => connection.prepare(&format!("{before}{text}{after}"))?,
            None => statement,
        };
        let (mut answer, width) = (Vec::new(), columns(&text));
        let visit = &mut |row: &dyn SqlRow| answer.push(answers::read(row, width));
        settled(connection.query(shown, &[], visit))?;
        ensure!(
            !answer.is_empty() || self.may_be_empty,
            "the answer is empty, which the data do not allow"
        );
        Ok((statement, answer))
    }
}

/// Marks the engines whose answer differs from that of most others; of two, both.
fn compare_all(prepared: &mut [Result<(Prepared, Answer)>]) {
    let mut marks = Vec::new();
    for (number, first) in prepared.iter().enumerate() {
        let Ok((_, answer)) = first else { continue };
        let others = prepared.iter().enumerate().filter(|(other, _)| *other != number);
        let (mut equal, mut differences) = (0, Vec::new());
        for (_, other) in others.filter_map(|(_, other)| other.as_ref().ok()) {
            match answers::compare(answer, other) {
                Ok(()) => equal += 1,
                Err(error) => differences.push(error),
            }
        }
        if differences.len() > equal
            && let Some(error) = differences.pop()
        {
            marks.push((number, error.context("the answer is not that of the other engines")));
        }
    }
    for (number, error) in marks {
        if let Some(marked) = prepared.get_mut(number) {
            *marked = Err(error);
        }
    }
}

fn measure(subject: &mut Subject<'_>, statement: Prepared, expected: usize) -> Result<Duration> {
    let mut rows = 0;
    let begin = Instant::now();
    settled(subject.connection.query(statement, &[], &mut |_| rows += 1))?;
    let time = begin.elapsed();
    ensure!(rows == expected, "{rows} rows instead of {expected}");
    Ok(time)
}

/// The number of outputs of a query: the commas of the select list of its last query outside of
/// parentheses, and one.
pub fn columns(query: &str) -> usize {
    let (mut depth, mut commas, mut count) = (0, 0, 0);
    let mut word = String::new();
    for letter in query.chars().chain([' ']) {
        if letter.is_alphanumeric() || letter == '_' {
            word.push(letter);
            continue;
        }
        match (&word[..], depth) {
            ("select", 0) => commas = 1,
            ("from", 0) => count = commas,
            _ => {}
        }
        word.clear();
        match letter {
            '(' | '{' => depth += 1,
            ')' | '}' => depth -= 1,
            ',' if depth == 0 => commas += 1,
            _ => {}
        }
    }
    count
}
