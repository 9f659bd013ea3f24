//! Engines that are open side by side, each with a filled database, to be measured in turns.

use std::time::Duration;

use anyhow::{Context, Result};

use super::plan::{Configuration, SqlOptions};
use super::{SqlConnection, SqlInstance};
use crate::kv::Scratch;
use crate::progress::Progress;
use crate::report::Report;

/// An engine that is open.
pub struct Subject<'i> {
    /// The engine and its durability class.
    pub configuration: Configuration,
    /// Its database.
    pub instance: &'i dyn SqlInstance,
    /// The connection that is measured. A query uses one thread.
    pub connection: Box<dyn SqlConnection + 'i>,
}

impl Subject<'_> {
    /// The settings in force, for the report.
    pub fn settings(&self) -> String {
        let settings = self.instance.settings();
        match self.instance.dialect().one_thread {
            Some(setting) => format!("{settings}; {setting}"),
            None => settings,
        }
    }
}

/// Databases to be filled.
pub struct Databases<'a> {
    /// The name of the benchmark.
    pub benchmark: &'static str,
    /// What all SQL benchmarks have.
    pub options: &'a SqlOptions,
    /// Fills a new database of the engine with that name.
    pub fill: &'a dyn Fn(&mut dyn SqlConnection, &str) -> Result<()>,
    /// The progress display.
    pub progress: &'a Progress,
}

impl Databases<'_> {
    /// Opens and fills a database in every configuration, and calls `work` with those that are
    /// there. A failure to fill one goes into the report.
    pub fn with_subjects(
        &self,
        configurations: &[Configuration],
        report: &mut Report,
        work: impl FnOnce(&mut [Subject<'_>], &mut Report) -> Result<()>,
    ) -> Result<()> {
        let mut open = Vec::new();
        for configuration in configurations {
            let what = format!("{}: build", self.benchmark);
            self.progress.message(&configuration.label(&what, 0));
            match self.build(configuration) {
                Ok((scratch, instance)) => open.push((*configuration, instance, scratch)),
                Err(error) => report.failures.push(configuration.failure("build", &error)),
            }
        }
        let mut subjects = Vec::new();
        for (configuration, instance, _) in &open {
            let instance = &**instance;
            let mut connection = instance.connect()?;
            if let Some(setting) = instance.dialect().one_thread {
                connection.run(setting)?;
            }
            subjects.push(Subject { configuration: *configuration, instance, connection });
        }
        work(&mut subjects, report)?;
        drop(subjects);
        for (configuration, instance, scratch) in open {
            instance.close().with_context(|| configuration.engine.name())?;
            drop(scratch);
        }
        Ok(())
    }

    /// A database with the tables and their indexes.
    fn build(&self, configuration: &Configuration) -> Result<(Scratch, Box<dyn SqlInstance>)> {
        let name = configuration.engine.name();
        let scratch = Scratch::new(&self.options.places, configuration.mode, name)?;
        let setup = configuration.setup(self.options, scratch.path(), 1);
        let instance = configuration.engine.open(&setup)?;
        let mut connection = instance.connect()?;
        (self.fill)(&mut *connection, name)?;
        drop(connection);
        instance.settle()?;
        Ok((scratch, instance))
    }
}

/// Measures every subject `repetitions` times, in turns. `prepared` has what the measurement of a
/// subject needs, or why it failed; a subject that fails is not measured any more.
pub fn take_turns<T>(
    subjects: &mut [Subject<'_>],
    prepared: Vec<Result<T>>,
    (what, repetitions): (&str, u32),
    progress: &Progress,
    mut measure: impl FnMut(&mut Subject<'_>, &T) -> Result<Duration>,
) -> Vec<Result<Vec<Duration>>> {
    let mut turns: Vec<Result<(T, Vec<Duration>)>> = Vec::new();
    turns.extend(prepared.into_iter().map(|prepared| prepared.map(|it| (it, Vec::new()))));
    for _ in 0..repetitions {
        for (subject, turn) in subjects.iter_mut().zip(&mut turns) {
            let Ok((prepared, times)) = turn else { continue };
            progress.message(&subject.configuration.label(what, times.len() as u32));
            match measure(subject, prepared) {
                Ok(time) => times.push(time),
                Err(error) => *turn = Err(error),
            }
        }
    }
    turns.into_iter().map(|turn| turn.map(|(_, times)| times)).collect()
}
