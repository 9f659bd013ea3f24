//! The model: the expected content of the databases at every commit, which the engine's answers are
//! compared with.
//!
//! Above: [`crate::client`]. Below: nothing. Trees have numbers, and a name refers to a tree. Names
//! and records keep all their versions, by the engine's commit timestamps. A transaction's own
//! changes are a [`View`] over a snapshot.

use std::collections::BTreeMap;
use std::sync::Arc;

/// A value.
pub type Value = Arc<[u8]>;
/// The records of a database.
pub type Records = BTreeMap<Vec<u8>, Value>;
/// All databases by name.
pub type State = BTreeMap<String, Records>;

type Versions<T> = Vec<(u64, Option<T>)>;

fn at<T: Clone>(versions: &Versions<T>, snapshot: u64) -> Option<T> {
    let newest = versions.iter().rev().find(|(timestamp, _)| *timestamp <= snapshot);
    newest.and_then(|(_, value)| value.clone())
}

/// All versions since the environment was opened.
#[derive(Default)]
pub struct Model {
    names: BTreeMap<String, Versions<usize>>,
    trees: Vec<BTreeMap<Vec<u8>, Versions<Value>>>,
    /// The commits, in order.
    commits: Vec<u64>,
}

/// A transaction's changes to one database.
#[derive(Clone, Default, Debug)]
pub struct Own {
    /// The tree that it writes to; `None` for a new tree.
    pub tree: Option<usize>,
    /// It changed the name itself.
    pub renamed: bool,
    /// Its records, `None` for deleted ones.
    pub writes: BTreeMap<Vec<u8>, Option<Value>>,
}

/// A transaction's changes: databases by name, `None` for names that it removed.
pub type View = BTreeMap<String, Option<Own>>;

/// A question to a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// Whether a database of that name exists.
    Name,
    /// The record of that key.
    Get(Vec<u8>),
    /// The record of that key, read by an update that may have waited for another transaction.
    Old(Vec<u8>),
    /// Whether a record of that key exists, read by such a write.
    Exists(Vec<u8>),
    /// The first record at or after the key.
    AtOrAfter(Vec<u8>),
    /// The first record after the key.
    After(Vec<u8>),
    /// The last record at or before the key.
    AtOrBefore(Vec<u8>),
    /// The last record before the key; `None` for the last record of all.
    Before(Option<Vec<u8>>),
    /// All records.
    All,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// There is no database of that name.
    NoDatabase,
    /// The database or the record exists.
    Database,
    /// There is no such record.
    Nothing,
    /// The record.
    Record(Vec<u8>, Value),
    /// Exactly these records.
    Records(Records),
}

impl Model {
    /// Creates a model that begins with that state.
    pub fn new(state: &State) -> Model {
        let mut model = Model::default();
        for (name, records) in state {
            model.names.insert(name.clone(), vec![(0, Some(model.trees.len()))]);
            let versions =
                |(key, value): (&Vec<u8>, &Value)| (key.clone(), vec![(0, Some(value.clone()))]);
            model.trees.push(records.iter().map(versions).collect());
        }
        model
    }

    /// Returns the newest commit.
    pub fn newest(&self) -> u64 {
        self.commits.last().copied().unwrap_or(0)
    }

    /// Returns the commits from `from` to `to`, both included. Commit 0 is the initial state.
    pub fn commits(&self, from: u64, to: u64) -> Vec<u64> {
        let commits = std::iter::once(&0).chain(&self.commits);
        commits.copied().filter(|at| (from..=to).contains(at)).collect()
    }

    /// Returns the timestamp of the last change to a name.
    pub fn last_name_change(&self, name: &str) -> u64 {
        let last = self.names.get(name).and_then(|versions| versions.last());
        last.map_or(0, |(timestamp, _)| *timestamp)
    }

    /// Returns the tree of that name.
    pub fn tree(&self, name: &str, snapshot: u64) -> Option<usize> {
        self.names.get(name).and_then(|versions| at(versions, snapshot))
    }

    /// Returns the timestamp of the last change to a record.
    pub fn last_change(&self, tree: usize, key: &[u8]) -> u64 {
        let versions = self.trees.get(tree).and_then(|records| records.get(key));
        versions.and_then(|versions| versions.last()).map_or(0, |(timestamp, _)| *timestamp)
    }

    /// Returns the expected answer for a transaction with that snapshot and its own changes.
    pub fn answer(
        &self,
        name: &str,
        own: Option<&Option<Own>>,
        question: &Question,
        snapshot: u64,
    ) -> Answer {
        self.answer_by(name, own, question, snapshot, snapshot)
    }

    /// Like [`answer`](Self::answer), with the name resolved at commit `named` and the record read
    /// at `snapshot`. Under read committed isolation a write may wait in between.
    pub fn answer_by(
        &self,
        name: &str,
        own: Option<&Option<Own>>,
        question: &Question,
        named: u64,
        snapshot: u64,
    ) -> Answer {
        let none = BTreeMap::new();
        let (tree, writes) = match own {
            Some(None) => return Answer::NoDatabase,
            Some(Some(own)) if own.renamed => (own.tree, &own.writes),
            other => {
                let Some(tree) = self.tree(name, named) else { return Answer::NoDatabase };
                match other {
                    Some(Some(own)) if own.tree == Some(tree) => (Some(tree), &own.writes),
                    _ => (Some(tree), &none),
                }
            }
        };
        let empty = BTreeMap::new();
        let records = tree.and_then(|tree| self.trees.get(tree)).unwrap_or(&empty);
        let value = |key: &Vec<u8>| match writes.get(key) {
            Some(own) => own.clone(),
            None => records.get(key).and_then(|versions| at(versions, snapshot)),
        };
        let record = |key: &Vec<u8>| Some(Answer::Record(key.clone(), value(key)?));
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let forward = |from: std::ops::Bound<Vec<u8>>| {
            let mut base = records.range((from.clone(), Unbounded)).map(|(key, _)| key).peekable();
            let mut own = writes.range((from, Unbounded)).map(|(key, _)| key).peekable();
            loop {
                let key = match (base.peek(), own.peek()) {
                    (Some(a), Some(b)) if a <= b => base.next(),
                    (_, Some(_)) => own.next(),
                    (_, None) => base.next(),
                }?;
                if let Some(found) = record(key) {
                    return Some(found);
                }
            }
        };
        let backward = |to: std::ops::Bound<Vec<u8>>| {
            let mut base =
                records.range((Unbounded, to.clone())).map(|(key, _)| key).rev().peekable();
            let mut own = writes.range((Unbounded, to)).map(|(key, _)| key).rev().peekable();
            loop {
                let key = match (base.peek(), own.peek()) {
                    (Some(a), Some(b)) if a >= b => base.next(),
                    (_, Some(_)) => own.next(),
                    (_, None) => base.next(),
                }?;
                if let Some(found) = record(key) {
                    return Some(found);
                }
            }
        };
        let found = match question {
            Question::Name => Some(Answer::Database),
            Question::Get(key) | Question::Old(key) => record(key),
            Question::Exists(key) => record(key).map(|_| Answer::Database),
            Question::AtOrAfter(key) => forward(Included(key.clone())),
            Question::After(key) => forward(Excluded(key.clone())),
            Question::AtOrBefore(key) => backward(Included(key.clone())),
            Question::Before(Some(key)) => backward(Excluded(key.clone())),
            Question::Before(None) => backward(Unbounded),
            Question::All => {
                let keys = records.keys().chain(writes.keys());
                let all = keys.filter_map(|key| Some((key.clone(), value(key)?))).collect();
                Some(Answer::Records(all))
            }
        };
        found.unwrap_or(Answer::Nothing)
    }

    /// Returns a transaction's changes to the tree that has that name at commit `named`, including
    /// changes made under other names.
    pub fn own_of(&self, view: &View, name: &str, named: u64) -> Option<Option<Own>> {
        let own = view.get(name).cloned();
        if matches!(&own, Some(None)) || matches!(&own, Some(Some(own)) if own.renamed) {
            return own;
        }
        let tree = self.tree(name, named);
        let under_others = view.iter().filter(|(other, _)| *other != name);
        let mut merged = own.flatten().filter(|own| own.tree == tree);
        for known in under_others.filter_map(|(_, own)| own.as_ref()) {
            if tree.is_some() && known.tree == tree {
                let merged = merged.get_or_insert_with(|| Own { tree, ..Own::default() });
                for (key, value) in &known.writes {
                    merged.writes.entry(key.clone()).or_insert_with(|| value.clone());
                }
            }
        }
        merged.map(Some)
    }

    /// Applies a transaction's changes as commit `timestamp`. The error describes an impossible
    /// commit.
    pub fn apply(&mut self, view: &View, timestamp: u64) -> Result<(), String> {
        let newest = self.newest();
        if timestamp <= newest {
            return Err(format!("commit {timestamp} comes after commit {newest}"));
        }
        self.commits.push(timestamp);
        for (name, own) in view {
            let Some(own) = own else {
                self.names.entry(name.clone()).or_default().push((timestamp, None));
                continue;
            };
            let tree = match own.tree {
                Some(tree) => tree,
                None => {
                    self.trees.push(BTreeMap::new());
                    self.trees.len() - 1
                }
            };
            if own.renamed {
                self.names.entry(name.clone()).or_default().push((timestamp, Some(tree)));
            } else if !own.writes.is_empty() && self.tree(name, timestamp) != Some(tree) {
                return Err(format!(
                    "commit {timestamp} wrote to a database that was no longer {name:?}"
                ));
            }
            for (key, value) in &own.writes {
                let versions = self.trees[tree].entry(key.clone()).or_default();
                versions.push((timestamp, value.clone()));
            }
        }
        Ok(())
    }

    /// Returns the whole state at a commit.
    pub fn state(&self, snapshot: u64) -> State {
        let mut state = State::new();
        for (name, versions) in &self.names {
            let Some(tree) = at(versions, snapshot) else { continue };
            let records = self.trees[tree].iter();
            let seen = records.filter_map(|(key, v)| Some((key.clone(), at(v, snapshot)?)));
            state.insert(name.clone(), seen.collect());
        }
        state
    }
}

/// Describes how two states differ.
pub fn difference(have: &State, want: &State) -> String {
    let mut words = Vec::new();
    for name in have.keys().chain(want.keys()) {
        match (have.get(name), want.get(name)) {
            (Some(_), None) => words.push(format!("database {name:?} is there")),
            (None, Some(_)) => words.push(format!("database {name:?} is missing")),
            (Some(have), Some(want)) => {
                for key in have.keys().chain(want.keys()) {
                    let (a, b) = (have.get(key), want.get(key));
                    if a != b {
                        let show =
                            |value: Option<&Value>| value.map(|v| (v.len(), v.first().copied()));
                        words.push(format!(
                            "{name:?} {}: has {:?}, not {:?}",
                            String::from_utf8_lossy(&key[..key.len().min(12)]),
                            show(a),
                            show(b)
                        ));
                    }
                }
            }
            (None, None) => {}
        }
    }
    words.sort();
    words.dedup();
    let count = words.len();
    words.truncate(4);
    format!("{count} differences: {}", words.join("; "))
}
