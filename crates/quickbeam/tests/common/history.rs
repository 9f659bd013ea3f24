//! Histories of transactions, and what may be wrong with one: cycles among who read, overwrote and
//! preceded whom.
//!
//! After Adya, "Weak Consistency" (1999) and Kingsbury and Alvaro, "Elle" (2020). Every write has a
//! version number of its own, and a transaction that read a key before it wrote it tells the
//! version that its own follows. Absence is a version too: 0 before the first write, and the number
//! of the deletion after one.

use std::collections::{BTreeMap, HashMap};

use quickbeam::Isolation;

/// What one transaction did.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// What makes this transaction findable in a message.
    pub name: String,
    pub committed: bool,
    /// Places in the order of events: before it began, and after its end was reported.
    pub begun: u64,
    pub ended: u64,
    /// Keys and versions read from others, in order.
    pub reads: Vec<(usize, u64)>,
    /// The last version written of each key, and the version before it if the transaction read
    /// that.
    pub writes: BTreeMap<usize, (u64, Option<u64>)>,
    /// Every version it made, also those that it replaced or rolled back itself.
    pub made: Vec<u64>,
    /// Its calls, for messages.
    pub did: Vec<String>,
}

/// Why one transaction comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// It had ended before the other began.
    Time,
    /// The other read what it wrote.
    Read,
    /// The other replaced what it wrote.
    Replaced,
    /// The other replaced what it read.
    Anti,
}

type Edge = (usize, Vec<Why>);

/// Checks a history; the error tells what is wrong and shows the transactions in question.
pub fn check(history: &[Record], isolation: Isolation) -> Result<(), String> {
    let mut makers = HashMap::new();
    for (at, record) in history.iter().enumerate() {
        makers.extend(record.made.iter().map(|&version| (version, at)));
    }
    let show = |what: String, members: &[usize]| {
        let lines = members.iter().map(|&at| format!("\n  {:?}", history[at]));
        Err(what + &lines.collect::<String>())
    };
    for (at, record) in history.iter().enumerate() {
        let mut before = HashMap::new();
        for &(key, version) in &record.reads {
            if isolation != Isolation::ReadCommitted
                && *before.entry(key).or_insert(version) != version
            {
                return show(format!("non-repeatable read of key {key}"), &[at]);
            }
            let Some(&maker) = makers.get(&version).filter(|_| version != 0) else { continue };
            let made = &history[maker];
            // A transaction that fails reads nothing wrong either, up to there.
            if !made.committed {
                return show(format!("key {key}: dirty read of {version} (G1a)"), &[maker, at]);
            }
            if made.writes.get(&key).is_none_or(|&(last, _)| last != version) {
                return show(
                    format!("key {key}: intermediate read of {version} (G1b)"),
                    &[maker, at],
                );
            }
        }
    }
    let mut followers: HashMap<(usize, u64), usize> = HashMap::new();
    if isolation != Isolation::ReadCommitted {
        for (at, record) in history.iter().enumerate().filter(|(_, record)| record.committed) {
            for (&key, &(_, after)) in &record.writes {
                let Some(after) = after else { continue };
                if let Some(other) = followers.insert((key, after), at) {
                    return show(
                        format!("key {key}: lost update of version {after}"),
                        &[other, at],
                    );
                }
            }
        }
    }
    let (depends, anti) = edges(history, &makers, &followers);
    let graph = match isolation {
        Isolation::Serializable => depends
            .into_iter()
            .zip(anti)
            .map(|(mut to, more)| {
                to.extend(more);
                to
            })
            .collect(),
        Isolation::Snapshot => followed_by_one(&depends, &anti),
        Isolation::ReadCommitted => depends,
    };
    match cycle(&graph) {
        None => Ok(()),
        Some((members, reasons)) => show(format!("cycle by {reasons:?}"), &members),
    }
}

/// For each transaction the ones it must come before: by time, reading and replacing, and by having
/// been replaced.
fn edges(
    history: &[Record],
    makers: &HashMap<u64, usize>,
    followers: &HashMap<(usize, u64), usize>,
) -> (Vec<Vec<Edge>>, Vec<Vec<Edge>>) {
    let mut depends = vec![Vec::new(); history.len()];
    let mut anti = vec![Vec::new(); history.len()];
    for (at, record) in history.iter().enumerate().filter(|(_, record)| record.committed) {
        for (other, _) in
            history.iter().enumerate().filter(|(_, o)| o.committed && record.ended < o.begun)
        {
            depends[at].push((other, vec![Why::Time]));
        }
        for &(key, version) in &record.reads {
            if let Some(&maker) = makers.get(&version).filter(|&&maker| maker != at) {
                depends[maker].push((at, vec![Why::Read]));
            }
            if let Some(&follower) = followers.get(&(key, version)).filter(|&&other| other != at) {
                anti[at].push((follower, vec![Why::Anti]));
            }
        }
        for &(_, after) in record.writes.values() {
            let maker = after.and_then(|after| makers.get(&after));
            if let Some(&maker) = maker.filter(|&&maker| maker != at) {
                depends[maker].push((at, vec![Why::Replaced]));
            }
        }
    }
    (depends, anti)
}

/// Snapshot isolation forbids exactly the cycles in which no two replacements of what was read
/// stand side by side: those of dependencies each followed by at most one such replacement.
fn followed_by_one(depends: &[Vec<Edge>], anti: &[Vec<Edge>]) -> Vec<Vec<Edge>> {
    let mut graph = depends.to_vec();
    for (at, to) in depends.iter().enumerate() {
        for (middle, why) in to {
            for (end, more) in &anti[*middle] {
                graph[at].push((*end, [why.as_slice(), more].concat()));
            }
        }
    }
    graph
}

/// A cycle, as its members and the reasons between them.
fn cycle(graph: &[Vec<Edge>]) -> Option<(Vec<usize>, Vec<Why>)> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let mut marks = vec![Mark::New; graph.len()];
    for start in 0..graph.len() {
        // The way from `start`: each transaction with the number of its next edge.
        let mut way = vec![(start, 0)];
        while let Some((at, next)) = way.last_mut() {
            if marks[*at] == Mark::Done {
                way.pop();
                continue;
            }
            marks[*at] = Mark::Open;
            let Some(&(to, _)) = graph[*at].get(*next) else {
                marks[*at] = Mark::Done;
                way.pop();
                continue;
            };
            *next += 1;
            if marks[to] == Mark::Open {
                let from = way.iter().position(|(member, _)| *member == to).unwrap_or(0);
                let ring = &way[from..];
                let reasons = ring.iter().flat_map(|&(at, next)| graph[at][next - 1].1.clone());
                return Some((ring.iter().map(|&(at, _)| at).collect(), reasons.collect()));
            }
            way.push((to, 0));
        }
    }
    None
}
