//! A client: runs random transactions and compares each answer with the model at once.
//!
//! Above: [`crate::run`]. Below: the engine, [`crate::model`]. The checks:
//! 1. Under snapshot and serializable isolation, all answers of a transaction match one commit.
//!    Under read committed isolation, the answers of each call match one commit. That commit lies
//!    between the newest commits before and after the transaction began (the call was made).
//! 2. A serializable transaction that changed something matches the commit just before its own.
//! 3. Under snapshot and serializable isolation, no commit between a transaction's snapshot and its
//!    own commit changed the same records.
//! 4. After a failed flush that the engine has seen, no commit is acknowledged.
//! 5. Acknowledged commits are recorded for the check after the next opening.

mod checks;
mod operations;
mod scans;
mod update;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quickbeam::{Durability, Environment, Error, Isolation, Transaction, TransactionOptions};

use crate::model::{Answer, Model, Question, Value, View};
use crate::plan::Plan;
use crate::vfs::faults::Phase;
use crate::vfs::{SimVfs, on_commit, stored_in_vain};
use checks::{Checks, Read, accept, short, short_question};
use quickbeam_testing::Random;

/// The state that all clients share.
#[derive(Default)]
pub struct Oracle {
    /// The content of the databases.
    pub model: Model,
    /// The newest commit that must survive a power loss.
    pub power: u64,
    /// The newest commit that must survive the death of the process.
    pub process: u64,
    /// Number of acknowledged commits.
    pub acknowledged: u64,
    /// The environment has reported that it accepts no more writes.
    pub refuses: bool,
}

/// Shared by the threads of a simulation, of which one runs at a time.
pub type SharedOracle = Arc<Mutex<Oracle>>;

/// Locks the oracle. The guard must not be held over a call of the engine.
pub fn open(oracle: &SharedOracle) -> MutexGuard<'_, Oracle> {
    oracle.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Times that a transaction of the preparation is tried. A simulation allows snapshots of 50
/// microseconds only, so several attempts in a row may fail.
const ATTEMPTS: usize = 1000;

/// Why a transaction stops.
pub enum Stop {
    /// Begin again.
    Retry,
    /// The device is full.
    Full,
    /// The environment accepts no more calls.
    Over,
}

/// A step of a transaction.
pub type Step<T> = std::result::Result<T, Stop>;

/// A client thread.
pub struct Client {
    /// The simulation.
    pub vfs: SimVfs,
    /// The environment.
    pub environment: Environment,
    /// The shared state.
    pub oracle: SharedOracle,
    /// The client's random generator.
    pub random: Random,
    /// The plan.
    pub plan: Arc<Plan>,
}

/// Derives a value of `length` bytes from a number.
pub fn value(number: u64, length: usize) -> Value {
    let mut bytes = vec![number as u8; length];
    for (at, byte) in number.to_le_bytes().into_iter().enumerate().take(length) {
        bytes[at] = byte;
    }
    bytes.into()
}

impl Client {
    fn newest(&self) -> u64 {
        self.vfs.core().newest
    }

    fn violation(&self, what: String) {
        self.vfs.core().violation(what);
    }

    fn key(&mut self) -> Vec<u8> {
        let number = self.random.below(self.plan.keys);
        let mut key = format!("key {number:04}").into_bytes();
        if self.plan.grouped {
            // The bucket prefix is one letter, preceded by its length.
            key.splice(0..0, [0, 1, b'a' + (number % 7) as u8]);
        }
        if self.plan.prefixes > 0 {
            // The prefix does not go with the number: records come between others of their leaf.
            key.splice(0..0, [b'p', b'r', b'e', (number * 7919 % self.plan.prefixes) as u8]);
        } else if number % 17 == 3 {
            key.resize(200 + number % 700, b'.');
        }
        key
    }

    fn name(&mut self) -> String {
        let share = if self.plan.churn { 85 } else { 35 };
        if self.plan.catalog > 0 && self.random.chance(share) {
            let names = if self.plan.churn { 2 } else { 4 };
            format!("made {}", self.random.below(names))
        } else {
            self.random.pick(&["first", "second"]).to_owned()
        }
    }

    fn draw_value(&mut self) -> Value {
        let lengths = self.plan.lengths.clone();
        let longest = self.random.pick(&lengths);
        let number = self.random.next();
        value(number, self.random.below(longest + 1))
    }

    /// Runs the client's transactions of a round.
    pub fn work(&mut self) {
        for _ in 0..self.plan.transactions {
            let checkpoints = if self.plan.churn || self.plan.compacts { 15 } else { 4 };
            let stop = if self.random.chance(checkpoints) {
                self.checkpoint()
            } else {
                self.transaction()
            };
            match stop {
                Ok(()) | Err(Stop::Retry) => {}
                Err(Stop::Full) => self.vfs.core().scheduler.now += 1_000_000,
                Err(Stop::Over) => return,
            }
            if self.vfs.core().is_cut_off() {
                return;
            }
        }
    }

    fn checkpoint(&mut self) -> Step<()> {
        let newest = open(&self.oracle).model.newest();
        let compacts = self.plan.compacts && self.random.chance(50);
        let done = match compacts {
            true => self.environment.compact().map(|_| ()),
            false => self.environment.checkpoint(),
        };
        match done {
            Ok(()) => {
                let oracle = &mut *open(&self.oracle);
                oracle.power = oracle.power.max(newest);
                oracle.process = oracle.process.max(newest);
                Ok(())
            }
            Err(error) => Err(self.judge(&error)),
        }
    }

    /// Decides how the client reacts to an error, and reports errors that have no cause.
    fn judge(&self, error: &Error) -> Stop {
        if error.is_retryable() {
            return Stop::Retry;
        }
        let mut core = self.vfs.core();
        match error {
            _ if core.is_cut_off() => Stop::Over,
            Error::DiskFull { .. } => {
                if core.disk.limit == u64::MAX && core.refused_now == 0 {
                    core.violation(format!("there was room: {error}"));
                }
                Stop::Full
            }
            Error::Failed { .. } => {
                // A full device is no reason: only the call fails, and the environment continues.
                if core.met_now == 0 {
                    core.violation(format!("nothing had failed: {error}"));
                }
                drop(core);
                open(&self.oracle).refuses = true;
                Stop::Over
            }
            Error::Io { .. } => {
                if core.met_now == 0 {
                    core.violation(format!("no call had failed: {error}"));
                }
                Stop::Retry
            }
            // Data that a failed flush did not write may have disappeared from the page cache.
            Error::Corruption { .. } if core.flush_failed => Stop::Over,
            Error::NoSuchDatabase { .. } | Error::DatabaseExists { .. } => Stop::Retry,
            _ => {
                core.violation(format!("unexpected error: {error}"));
                Stop::Over
            }
        }
    }

    /// Runs a transaction and checks it.
    pub fn transaction(&mut self) -> Step<()> {
        let operations = 1 + self.random.below(self.plan.operations);
        let patient = self.random.chance(30);
        self.run(|client, transaction, checks| {
            let mut savepoints = Vec::new();
            for _ in 0..operations {
                match client.operation(transaction, checks, &mut savepoints) {
                    Err(Stop::Full) if patient => {}
                    step => step?,
                }
                if checks.unsure {
                    return Ok(false);
                }
            }
            Ok(client.random.chance(88))
        })
    }

    /// Inserts the first records, 20 in each transaction.
    pub fn prepare(&mut self, records: usize) -> Step<()> {
        for name in ["first", "second"] {
            self.run_until_done(|client, transaction, checks| {
                if client.ask_name(transaction, checks, name)?.is_none() {
                    client.create(transaction, checks, name)?;
                }
                Ok(true)
            })?;
        }
        for _ in 0..records.div_ceil(20) {
            self.run_until_done(|client, transaction, checks| {
                for _ in 0..20 {
                    let name = client.random.pick(&["first", "second"]);
                    let (key, value) = (client.key(), client.draw_value());
                    client.put(transaction, checks, name, &key, &value)?;
                }
                Ok(true)
            })?;
        }
        Ok(())
    }

    /// Like [`run`](Self::run), and begins again if the transaction has to be retried: its snapshot
    /// may expire.
    fn run_until_done(
        &mut self,
        mut body: impl FnMut(&mut Client, &Transaction, &mut Checks) -> Step<bool>,
    ) -> Step<()> {
        let mut result = Err(Stop::Retry);
        for _ in 0..ATTEMPTS {
            result = self.run(&mut body);
            if !matches!(result, Err(Stop::Retry)) {
                break;
            }
        }
        result
    }

    /// Begins a transaction, runs `body` in it, and commits it if `body` returns true.
    fn run(
        &mut self,
        body: impl FnOnce(&mut Client, &Transaction, &mut Checks) -> Step<bool>,
    ) -> Step<()> {
        let levels = self.plan.isolations.clone();
        let isolation = self.random.pick(&levels);
        let read_only = self.random.chance(8);
        let levels = [Durability::Sync, Durability::WriteNoSync, Durability::NoSync];
        let own = self.random.chance(self.plan.mixed).then(|| self.random.pick(&levels));
        let durability = own.unwrap_or(self.plan.options.durability);
        let options =
            TransactionOptions::new().isolation(isolation).durability(own).read_only(read_only);
        let before = self.newest();
        let begun = self.environment.begin_with(options);
        let transaction = begun.map_err(|error| self.judge(&error))?;
        let candidates = open(&self.oracle).model.commits(before, self.newest());
        let mut checks = Checks {
            isolation,
            read_only,
            candidates,
            reads: Vec::new(),
            view: View::new(),
            unsure: false,
        };
        let commits = match body(self, &transaction, &mut checks) {
            Ok(commits) => commits,
            Err(stop) => {
                self.abort(transaction);
                return Err(stop);
            }
        };
        if commits {
            self.commit(transaction, checks, durability)
        } else {
            self.abort(transaction);
            Ok(())
        }
    }

    fn abort(&self, transaction: Transaction) {
        self.vfs.core().probe("aborts");
        self.vfs.say(|| "abort".into());
        if let Err(error) = transaction.abort() {
            self.judge(&error);
        }
    }

    fn commit(&self, transaction: Transaction, checks: Checks, durability: Durability) -> Step<()> {
        let refused_before = self.vfs.core().flush_known();
        let committed = Rc::new(Cell::new(None));
        let (seen, oracle, vfs) = (committed.clone(), self.oracle.clone(), self.vfs.clone());
        on_commit(Some(Box::new(move |timestamp| {
            seen.set(Some(timestamp));
            if let Err(what) = accept(&mut open(&oracle).model, &checks, timestamp) {
                vfs.core().violation(what);
            }
        })));
        self.vfs.enter(Phase::Commit);
        stored_in_vain();
        let done = transaction.commit();
        self.vfs.leave(Phase::Commit);
        on_commit(None);
        self.vfs.say(|| format!("commit {:?}: {done:?}", committed.get()));
        if let Err(error) = done {
            if committed.get().is_some() {
                self.vfs.core().probe("commits of open fate");
            }
            return Err(self.judge(&error));
        }
        if stored_in_vain() {
            // The simulated process died before it could acknowledge the commit.
            return Err(Stop::Over);
        }
        let Some(timestamp) = committed.get() else { return Ok(()) };
        let oracle = &mut *open(&self.oracle);
        oracle.acknowledged += 1;
        let mut core = self.vfs.core();
        core.probe("commits");
        if refused_before {
            core.violation(format!("commit {timestamp} was acknowledged after a failed flush"));
        }
        if durability == Durability::Sync {
            oracle.power = oracle.power.max(timestamp);
        }
        if matches!(durability, Durability::Sync | Durability::WriteNoSync) {
            oracle.process = oracle.process.max(timestamp);
        }
        Ok(())
    }

    /// Compares an answer with the model. `before` is the newest commit before the call.
    fn check(
        &self,
        checks: &mut Checks,
        name: &str,
        question: Question,
        answer: Answer,
        before: u64,
    ) {
        let after = self.newest();
        self.vfs.say(|| {
            format!(
                "{name:?} {}: {} at {before}..{after}",
                short_question(&question),
                short(&answer)
            )
        });
        let oracle = open(&self.oracle);
        let model = &oracle.model;
        let own = |named: u64| model.own_of(&checks.view, name, named);
        let fits = |at: &u64| model.answer(name, own(*at).as_ref(), &question, *at) == answer;
        let per_call = checks.isolation == Isolation::ReadCommitted && !checks.read_only;
        let commits =
            if per_call { oracle.model.commits(before, after) } else { checks.candidates.clone() };
        let mut fitting: Vec<u64> = commits.iter().copied().filter(fits).collect();
        let changes = matches!(question, Question::Exists(_) | Question::Old(_));
        if per_call && fitting.is_empty() && changes {
            let waited = |at: &u64| {
                let by = |named: &u64| {
                    model.answer_by(name, own(*named).as_ref(), &question, *named, *at)
                };
                commits.iter().any(|named| by(named) == answer)
            };
            fitting = commits.iter().copied().filter(waited).collect();
            // The name moved to another tree while the call waited. Its answer does not matter: the
            // commit will be refused.
            let trees = |at: &u64| model.tree(name, *at) != model.tree(name, before);
            if fitting.is_empty() && commits.iter().any(trees) {
                return;
            }
        }
        if fitting.is_empty() {
            let last = commits.last().copied().unwrap_or(0);
            let want = short(&model.answer(name, own(last).as_ref(), &question, last));
            let what = format!(
                "{:?} {name:?} {}: {}, and at commits {commits:?} it is {want}",
                checks.isolation,
                short_question(&question),
                short(&answer)
            );
            drop(oracle);
            self.violation(what);
            return;
        }
        if !per_call {
            checks.candidates = fitting;
        }
        if checks.isolation == Isolation::Serializable && !checks.read_only {
            let own = checks.view.get(name).cloned();
            checks.reads.push(Read { name: name.to_owned(), own, question, answer });
        }
    }
}
