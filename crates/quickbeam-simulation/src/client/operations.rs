//! The operations of a transaction: reads and writes of records, and changes of names.

use quickbeam::query_layer::{DatabaseExt, WriteLock};
use quickbeam::{Database, Error, Isolation, Result, Savepoint, Transaction};

use super::checks::Checks;
use super::{Client, Step, Stop, open};
use crate::model::{Answer, Own, Question, Value, View};

/// More bytes than any value has.
const LONGEST_VALUE: usize = 128 << 10;

impl Client {
    pub(super) fn open_database(
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

    pub(super) fn ask_name(
        &self,
        transaction: &Transaction,
        checks: &mut Checks,
        name: &str,
    ) -> Step<Option<Database>> {
        self.open_database(transaction, checks, name)
    }

    /// Makes a read call and checks the answer.
    pub(super) fn ask(
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
    pub(super) fn note(
        &self,
        checks: &mut Checks,
        name: &str,
        key: &[u8],
        value: Option<Value>,
        before: u64,
    ) {
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

    pub(super) fn put(
        &self,
        transaction: &Transaction,
        checks: &mut Checks,
        name: &str,
        key: &[u8],
        value: &Value,
    ) -> Step<()> {
        let Some(database) = self.open_database(transaction, checks, name)? else { return Ok(()) };
        let before = self.newest();
        let put = if value.len() % 4 == 3 {
            self.vfs.core().probe("values put from a source");
            database.put_from(transaction, key, value.len() as u64, &value[..])
        } else {
            database.put(transaction, key, value)
        };
        match put {
            Ok(()) => {
                self.note(checks, name, key, Some(value.clone()), before);
                Ok(())
            }
            Err(Error::ReadOnly) if checks.read_only => Ok(()),
            Err(error) => Err(self.judge(&error)),
        }
    }

    pub(super) fn create(
        &self,
        transaction: &Transaction,
        checks: &mut Checks,
        name: &str,
    ) -> Step<()> {
        let before = self.newest();
        match transaction.create_database_with(name, self.plan.method_of(name)) {
            Ok(_) => {
                self.check(checks, name, Question::Name, Answer::NoDatabase, before);
                let own = Own { renamed: true, ..Own::default() };
                let old = checks.view.insert(name.to_owned(), Some(own));
                // Another transaction moved the tree that this one wrote to. It still sees these
                // changes under the tree's new name, and its commit will be refused.
                checks.unsure |= matches!(old, Some(Some(own)) if own.tree.is_some());
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

    pub(super) fn operation(
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
                    let value = match key.last() {
                        Some(last) if last % 2 == 1 => {
                            let mut value = vec![0; LONGEST_VALUE];
                            let read = database.get_part(transaction, &key, 0, &mut value)?;
                            read.map(|length| {
                                value.truncate(length);
                                value
                            })
                        }
                        _ => database.get(transaction, &key)?,
                    };
                    Ok(value
                        .map_or(Answer::Nothing, |value| Answer::Record(key.clone(), value.into())))
                })?;
                Ok(())
            }
            50..62 => self.delete(transaction, checks, &name),
            62..64 => self.clear_range(transaction, checks, &name),
            64..70 => self.put_if_absent(transaction, checks, &name),
            70..88 => self.scan(transaction, checks, &name),
            88 => self.lock_writes(transaction, checks, &name),
            89..94 => {
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

    fn lock_writes(
        &mut self,
        transaction: &Transaction,
        checks: &mut Checks,
        name: &str,
    ) -> Step<()> {
        let mode = self.random.pick(&[WriteLock::Shared, WriteLock::Exclusive]);
        let Some(database) = self.open_database(transaction, checks, name)? else { return Ok(()) };
        match database.lock_writes(transaction, mode) {
            Ok(()) => {
                self.vfs.core().probe("databases locked against writes");
                Ok(())
            }
            Err(Error::ReadOnly) if checks.read_only => Ok(()),
            Err(error) => Err(self.judge(&error)),
        }
    }

    pub(super) fn delete(
        &mut self,
        transaction: &Transaction,
        checks: &mut Checks,
        name: &str,
    ) -> Step<()> {
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

    pub(super) fn put_if_absent(
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
    pub(super) fn change_names(
        &mut self,
        transaction: &Transaction,
        checks: &mut Checks,
    ) -> Step<()> {
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
            _ => transaction.clear_database(&name),
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
    pub(super) fn moved(&self, checks: &mut Checks, name: &str, before: u64) -> Own {
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
