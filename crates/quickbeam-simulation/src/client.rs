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

mod scans;
mod update;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quickbeam::{
    Database, Durability, Environment, Error, Isolation, Result, Savepoint, Transaction,
    TransactionOptions,
};

use crate::faults::Phase;
use crate::model::{Answer, Model, Own, Question, Value, View};
use crate::plan::Plan;
use crate::random::Random;
use crate::vfs::{SimVfs, on_commit, stored_in_vain};

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

struct Read {
    name: String,
    own: Option<Option<Own>>,
    question: Question,
    answer: Answer,
}

/// The facts that a running transaction must be consistent with.
struct Checks {
    isolation: Isolation,
    read_only: bool,
    /// Commits that may be its snapshot.
    candidates: Vec<u64>,
    reads: Vec<Read>,
    view: View,
    /// The tree that it wrote to is unknown.
    unsure: bool,
}

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
        if number % 17 == 3 {
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
            let checkpoints = if self.plan.churn { 15 } else { 4 };
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
        match self.environment.checkpoint() {
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
            self.run(|client, transaction, checks| {
                if client.ask_name(transaction, checks, name)?.is_none() {
                    client.create(transaction, checks, name)?;
                }
                Ok(true)
            })?;
        }
        for _ in 0..records.div_ceil(20) {
            self.run(|client, transaction, checks| {
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

    fn open_database(
        &self,
        transaction: &Transaction,
        checks: &mut Checks,
        name: &str,
    ) -> Step<Option<Database>> {
        let before = self.newest();
        match transaction.open_database(name) {
            Ok(database) => {
                self.check(checks, name, Question::Name, Answer::Database, before);
                Ok(Some(database))
            }
            Err(Error::NoSuchDatabase { .. }) => {
                self.check(checks, name, Question::Name, Answer::NoDatabase, before);
                Ok(None)
            }
            Err(error) => Err(self.judge(&error)),
        }
    }

    fn ask_name(
        &self,
        transaction: &Transaction,
        checks: &mut Checks,
        name: &str,
    ) -> Step<Option<Database>> {
        self.open_database(transaction, checks, name)
    }

    /// Makes a read call and checks the answer.
    fn ask(
        &self,
        checks: &mut Checks,
        name: &str,
        question: Question,
        call: impl FnOnce() -> Result<Answer>,
    ) -> Step<Answer> {
        let before = self.newest();
        let answer = match call() {
            Ok(answer) => answer,
            Err(Error::NoSuchDatabase { .. }) => Answer::NoDatabase,
            Err(error) => return Err(self.judge(&error)),
        };
        self.check(checks, name, question, answer.clone(), before);
        Ok(answer)
    }

    /// Records a write of the transaction.
    fn note(&self, checks: &mut Checks, name: &str, key: &[u8], value: Option<Value>, before: u64) {
        self.vfs.say(|| {
            format!(
                "{name:?} {} := {:?}",
                String::from_utf8_lossy(&key[..key.len().min(12)]),
                value.as_ref().map(|v| v.len())
            )
        });
        let oracle = open(&self.oracle);
        let per_call = checks.isolation == Isolation::ReadCommitted;
        let commits = if per_call {
            oracle.model.commits(before, self.newest())
        } else {
            checks.candidates.clone()
        };
        let mut trees: Vec<Option<usize>> =
            commits.iter().map(|at| oracle.model.tree(name, *at)).collect();
        trees.dedup();
        let own = checks.view.entry(name.to_owned()).or_insert_with(|| {
            Some(Own { tree: trees.first().copied().flatten(), ..Own::default() })
        });
        let Some(own) = own else {
            checks.unsure = true;
            return;
        };
        // Under read committed isolation the name may have moved to another tree: the commit will
        // be refused.
        checks.unsure |= !own.renamed && trees[..] != [own.tree];
        own.writes.insert(key.to_vec(), value);
    }

    fn put(
        &self,
        transaction: &Transaction,
        checks: &mut Checks,
        name: &str,
        key: &[u8],
        value: &Value,
    ) -> Step<()> {
        let Some(database) = self.open_database(transaction, checks, name)? else { return Ok(()) };
        let before = self.newest();
        match database.put(transaction, key, value) {
            Ok(()) => {
                self.note(checks, name, key, Some(value.clone()), before);
                Ok(())
            }
            Err(Error::ReadOnly) if checks.read_only => Ok(()),
            Err(error) => Err(self.judge(&error)),
        }
    }

    fn create(&self, transaction: &Transaction, checks: &mut Checks, name: &str) -> Step<()> {
        let before = self.newest();
        match transaction.create_database_as(name, self.plan.method_of(name)) {
            Ok(_) => {
                self.check(checks, name, Question::Name, Answer::NoDatabase, before);
                let own = Own { renamed: true, ..Own::default() };
                checks.view.insert(name.to_owned(), Some(own));
                Ok(())
            }
            Err(Error::DatabaseExists { .. }) => {
                self.check(checks, name, Question::Name, Answer::Database, before);
                Ok(())
            }
            Err(Error::ReadOnly) if checks.read_only => Ok(()),
            Err(error) => Err(self.judge(&error)),
        }
    }

    fn operation(
        &mut self,
        transaction: &Transaction,
        checks: &mut Checks,
        savepoints: &mut Vec<(Savepoint, View)>,
    ) -> Step<()> {
        if self.plan.catalog > 0 && self.random.chance(self.plan.catalog) {
            return self.change_names(transaction, checks);
        }
        let name = self.name();
        match self.random.below(100) {
            0..30 => {
                let (key, value) = (self.key(), self.draw_value());
                if self.plan.modifies && self.random.chance(40) {
                    return self.update(transaction, checks, &name, &key, &value);
                }
                self.put(transaction, checks, &name, &key, &value)
            }
            30..50 => {
                let key = self.key();
                let Some(database) = self.open_database(transaction, checks, &name)? else {
                    return Ok(());
                };
                let question = Question::Get(key.clone());
                self.ask(checks, &name, question, || {
                    let value = database.get(transaction, &key)?;
                    Ok(value
                        .map_or(Answer::Nothing, |value| Answer::Record(key.clone(), value.into())))
                })?;
                Ok(())
            }
            50..62 => self.delete(transaction, checks, &name),
            62..64 => self.clear_range(transaction, checks, &name),
            64..70 => self.put_if_absent(transaction, checks, &name),
            70..88 => self.scan(transaction, checks, &name),
            88..94 => {
                let savepoint = transaction.savepoint().map_err(|error| self.judge(&error))?;
                savepoints.push((savepoint, checks.view.clone()));
                Ok(())
            }
            _ => {
                if savepoints.is_empty() {
                    return Ok(());
                }
                let at = self.random.below(savepoints.len());
                savepoints.truncate(at + 1);
                let (savepoint, view) = savepoints[at].clone();
                // After a failed rollback the transaction's state is undefined.
                transaction.rollback_to(savepoint).map_err(|error| match self.judge(&error) {
                    Stop::Over => Stop::Over,
                    _ => Stop::Retry,
                })?;
                checks.view = view;
                self.vfs.core().probe("rollbacks to savepoints");
                Ok(())
            }
        }
    }

    fn delete(&mut self, transaction: &Transaction, checks: &mut Checks, name: &str) -> Step<()> {
        let key = self.key();
        let Some(database) = self.open_database(transaction, checks, name)? else { return Ok(()) };
        let before = self.newest();
        match database.delete(transaction, &key) {
            Ok(was_there) => {
                let answer = if was_there { Answer::Database } else { Answer::Nothing };
                self.check(checks, name, Question::Exists(key.clone()), answer, before);
                if was_there {
                    self.note(checks, name, &key, None, before);
                }
                Ok(())
            }
            Err(Error::ReadOnly) if checks.read_only => Ok(()),
            Err(error) => Err(self.judge(&error)),
        }
    }

    fn put_if_absent(
        &mut self,
        transaction: &Transaction,
        checks: &mut Checks,
        name: &str,
    ) -> Step<()> {
        let (key, value) = (self.key(), self.draw_value());
        let Some(database) = self.open_database(transaction, checks, name)? else { return Ok(()) };
        let before = self.newest();
        match database.put_if_absent(transaction, &key, &value) {
            Ok(was_absent) => {
                let answer = if was_absent { Answer::Nothing } else { Answer::Database };
                self.check(checks, name, Question::Exists(key.clone()), answer, before);
                if was_absent {
                    self.note(checks, name, &key, Some(value), before);
                }
                Ok(())
            }
            Err(Error::ReadOnly) if checks.read_only => Ok(()),
            Err(error) => Err(self.judge(&error)),
        }
    }

    /// Creates, drops, empties or renames a database, or lists them.
    fn change_names(&mut self, transaction: &Transaction, checks: &mut Checks) -> Step<()> {
        let names = if self.plan.churn { 2 } else { 4 };
        let name = format!("made {}", self.random.below(names));
        let other = format!("made {}", self.random.below(names));
        let before = self.newest();
        let kind = self.random.below(5);
        if kind == 0 {
            return self.create(transaction, checks, &name);
        }
        if kind == 2 && self.plan.method_of(&name) != self.plan.method_of(&other) {
            // A name always refers to databases of one access method: a cursor could not continue
            // in the other.
            return Ok(());
        }
        if kind == 4 {
            let names = transaction.databases().map_err(|error| self.judge(&error))?;
            for name in ["first", "second", "made 0", "made 1", "made 2", "made 3"] {
                let there = names.iter().any(|other| other == name);
                let answer = if there { Answer::Database } else { Answer::NoDatabase };
                self.check(checks, name, Question::Name, answer, before);
            }
            return Ok(());
        }
        if kind == 2 && name == other {
            return Ok(());
        }
        let done = match kind {
            1 => transaction.drop_database(&name),
            2 => transaction.rename_database(&name, &other),
            _ => transaction.empty_database(&name),
        };
        match done {
            Ok(()) => {}
            Err(Error::NoSuchDatabase { .. }) => {
                self.check(checks, &name, Question::Name, Answer::NoDatabase, before);
                return Ok(());
            }
            Err(Error::DatabaseExists { .. }) => {
                self.check(checks, &other, Question::Name, Answer::Database, before);
                return Ok(());
            }
            Err(Error::ReadOnly) if checks.read_only => return Ok(()),
            Err(error) => return Err(self.judge(&error)),
        }
        self.check(checks, &name, Question::Name, Answer::Database, before);
        let moved = self.moved(checks, &name, before);
        match kind {
            1 => drop(checks.view.insert(name, None)),
            2 => {
                self.check(checks, &other, Question::Name, Answer::NoDatabase, before);
                checks.view.insert(name, None);
                checks.view.insert(other, Some(moved));
            }
            _ => {
                let own = Own { renamed: true, ..Own::default() };
                checks.view.insert(name, Some(own));
            }
        }
        Ok(())
    }

    /// Returns the transaction's changes to the database of that name, which continue under another
    /// name.
    fn moved(&self, checks: &mut Checks, name: &str, before: u64) -> Own {
        let oracle = open(&self.oracle);
        // The transaction's writes to the tree under another name are included.
        if let Some(Some(own)) = oracle.model.own_of(&checks.view, name, self.newest()) {
            return Own { renamed: true, ..own };
        }
        let per_call = checks.isolation == Isolation::ReadCommitted;
        let commits = if per_call {
            oracle.model.commits(before, self.newest())
        } else {
            checks.candidates.clone()
        };
        let mut trees: Vec<Option<usize>> =
            commits.iter().map(|at| oracle.model.tree(name, *at)).collect();
        trees.dedup();
        checks.unsure |= trees.len() != 1;
        Own { tree: trees.first().copied().flatten(), renamed: true, ..Own::default() }
    }
}

/// Checks a transaction at its position in commit order, and applies its changes to the model.
fn accept(model: &mut Model, checks: &Checks, timestamp: u64) -> std::result::Result<(), String> {
    let newest = model.newest();
    for read in &checks.reads {
        let own = read.own.as_ref();
        let now = model.answer(&read.name, own, &read.question, newest);
        if now != read.answer {
            return Err(format!(
                "commit {timestamp} is not serializable: {:?} {} was {}, and is {} before it",
                read.name,
                short_question(&read.question),
                short(&read.answer),
                short(&now)
            ));
        }
    }
    let snapshot = checks.candidates.last().copied().unwrap_or(0);
    if checks.isolation != Isolation::ReadCommitted {
        for (name, own) in &checks.view {
            if own.as_ref().is_none_or(|own| own.renamed) && model.last_name_change(name) > snapshot
            {
                return Err(format!("commit {timestamp} lost an update of the name {name:?}"));
            }
            let Some(Own { tree: Some(tree), writes, .. }) = own else { continue };
            for key in writes.keys() {
                if model.last_change(*tree, key) > snapshot {
                    let key = String::from_utf8_lossy(&key[..key.len().min(12)]);
                    return Err(format!("commit {timestamp} lost an update of {name:?} {key}"));
                }
            }
        }
    }
    model.apply(&checks.view, timestamp)
}

fn short(answer: &Answer) -> String {
    match answer {
        Answer::Record(key, value) => {
            let key = String::from_utf8_lossy(&key[..key.len().min(12)]);
            let first: Vec<u8> = value.iter().copied().take(3).collect();
            format!("{key} of {} bytes {first:?}", value.len())
        }
        Answer::Records(records) => format!("{} records", records.len()),
        other => format!("{other:?}"),
    }
}

fn short_question(question: &Question) -> String {
    let (what, key) = match question {
        Question::Name => return "name".into(),
        Question::All => return "all".into(),
        Question::Before(None) => return "last".into(),
        Question::Get(key) => ("get", key),
        Question::Old(key) => ("old", key),
        Question::Exists(key) => ("exists", key),
        Question::AtOrAfter(key) => ("from", key),
        Question::After(key) => ("after", key),
        Question::AtOrBefore(key) => ("to", key),
        Question::Before(Some(key)) => ("before", key),
    };
    format!("{what} {}", String::from_utf8_lossy(&key[..key.len().min(12)]))
}
