//! Random histories of transactions, on both access methods, checked for what their isolation level
//! forbids.
//!
//! Histories are made in two ways. One thread runs the steps of several transactions in a random
//! order, so a seed repeats the history. Or several threads run the same transactions, in any
//! interleaving. `QUICKBEAM_SEED` repeats a failure. `QUICKBEAM_HISTORIES` multiplies the number of
//! histories.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use crate::common::Random;
use crate::common::actor::{Actor, Stage};
use crate::common::history::{Record, check};
use quickbeam::{AccessMethod, Environment, Isolation, Options};

fn stage(random: &mut Random, isolation: Isolation, lock_timeout: Duration) -> Stage {
    let options = Options::new().page_size(4096).cache_size(64 * 4096);
    let environment = Environment::open_in_memory(options).unwrap();
    let methods = [AccessMethod::BTree, AccessMethod::Hash, AccessMethod::HashPrefix];
    let database = environment.create_database_with("history", methods[random.below(2)]).unwrap();
    Stage {
        database,
        environment,
        isolation,
        keys: 1 + random.below(12),
        padding: [0, 60, 700, 900, 3000][random.below(5)],
        deletions: random.chance(60),
        lock_timeout,
        clock: AtomicU64::new(0),
        versions: AtomicU64::new(1),
    }
}

/// Reads every key at the end, and has the history checked.
fn judge(stage: &Stage, mut history: Vec<Record>, seed: u64) -> usize {
    let mut last = Actor::begin(stage, "last".into(), true);
    for key in 0..stage.keys {
        last.get(key).unwrap();
    }
    history.push(last.end(true));
    let report = stage.environment.verify().unwrap();
    assert_eq!(report.complaints, Vec::<String>::new(), "seed {seed}, {:?}", stage.isolation);
    if let Err(complaint) = check(&history, stage.isolation) {
        panic!("seed {seed}, {:?}: {complaint}", stage.isolation);
    }
    history.iter().filter(|record| record.committed).count()
}

/// Several transactions at once, run step by step by one thread. No step waits: a transaction that
/// would have to wait fails at once.
fn interleaved(seed: u64, isolation: Isolation) -> usize {
    let mut random = Random::new(seed);
    let stage = stage(&mut random, isolation, Duration::ZERO);
    let sessions = 2 + random.below(3);
    let eagerness = 5 + random.below(25);
    let mut actors: Vec<Option<Actor<'_>>> = (0..sessions).map(|_| None).collect();
    let mut history = Vec::new();
    for count in 0..120 {
        let at = random.below(sessions);
        let name = format!("T{count}");
        let mut actor =
            actors[at].take().unwrap_or_else(|| Actor::begin(&stage, name, random.chance(15)));
        let result = actor.step(&mut random);
        if !actor.goes_on(result, &mut random) {
            history.push(actor.end(false));
        } else if random.chance(eagerness) {
            history.push(actor.end(random.chance(90)));
        } else {
            actors[at] = Some(actor);
        }
    }
    for actor in actors.into_iter().flatten() {
        history.push(actor.end(random.chance(80)));
    }
    judge(&stage, history, seed)
}

/// The same on threads of their own, with real waiting.
fn parallel(seed: u64, isolation: Isolation) -> usize {
    let mut random = Random::new(seed);
    let stage = stage(&mut random, isolation, Duration::from_millis(500));
    let threads = 2 + random.below(3);
    let work = |thread: usize| {
        let mut random = Random::new(seed ^ (thread as u64 + 1) << 48);
        let mut history = Vec::new();
        for count in 0..25 {
            let name = format!("T{thread}.{count}");
            let mut actor = Actor::begin(&stage, name, random.chance(15));
            let mut goes_on = true;
            for _ in 0..1 + random.below(8) {
                let result = actor.step(&mut random);
                goes_on = actor.goes_on(result, &mut random);
                if !goes_on {
                    break;
                }
                if random.chance(30) {
                    std::thread::yield_now();
                }
            }
            history.push(actor.end(goes_on && random.chance(90)));
        }
        history
    };
    let work = &work;
    let history = std::thread::scope(|scope| {
        let handles: Vec<_> =
            (0..threads).map(|thread| scope.spawn(move || work(thread))).collect();
        handles.into_iter().flat_map(|handle| handle.join().unwrap()).collect()
    });
    judge(&stage, history, seed)
}

/// Many histories, each with its own seed.
fn many(count: usize, isolation: Isolation, history: fn(u64, Isolation) -> usize) {
    let first = crate::common::first_seed();
    println!("first seed {first}");
    let factor = crate::common::rounds("QUICKBEAM_HISTORIES", 1);
    let committed: usize =
        (first..first + (count * factor) as u64).map(|seed| history(seed, isolation)).sum();
    assert!(committed > count * 5, "hardly anything was committed: {committed}");
}

#[test]
fn interleaved_serializable_histories_have_no_cycle() {
    many(1000, Isolation::Serializable, interleaved);
}

#[test]
fn interleaved_snapshot_histories_have_no_forbidden_cycle() {
    many(600, Isolation::Snapshot, interleaved);
}

#[test]
fn interleaved_read_committed_histories_read_nothing_dirty() {
    many(400, Isolation::ReadCommitted, interleaved);
}

#[test]
fn parallel_serializable_histories_have_no_cycle() {
    many(300, Isolation::Serializable, parallel);
}

#[test]
fn parallel_snapshot_histories_have_no_forbidden_cycle() {
    many(200, Isolation::Snapshot, parallel);
}

#[test]
fn parallel_read_committed_histories_read_nothing_dirty() {
    many(100, Isolation::ReadCommitted, parallel);
}

fn record(at: u64, reads: &[(usize, u64)], writes: &[(usize, u64, Option<u64>)]) -> Record {
    Record {
        name: format!("T{at}"),
        committed: true,
        begun: at,
        ended: at + 10,
        reads: reads.to_vec(),
        writes: writes.iter().map(|&(key, version, after)| (key, (version, after))).collect(),
        made: writes.iter().map(|&(_, version, _)| version).collect(),
        ..Record::default()
    }
}

#[test]
fn history_checker_distinguishes_anomalies() {
    let skew = [
        record(1, &[(0, 0), (1, 0)], &[(0, 5, Some(0))]),
        record(2, &[(0, 0), (1, 0)], &[(1, 6, Some(0))]),
    ];
    assert!(check(&skew, Isolation::Snapshot).is_ok());
    assert!(check(&skew, Isolation::Serializable).unwrap_err().contains("cycle"));

    let lost = [record(1, &[(0, 0)], &[(0, 5, Some(0))]), record(2, &[(0, 0)], &[(0, 6, Some(0))])];
    assert!(check(&lost, Isolation::Snapshot).unwrap_err().contains("lost update"));
    assert!(check(&lost, Isolation::ReadCommitted).is_ok());

    // The second saw the first's write of key 0 but not the one of key 1: one anti-dependency only.
    let torn =
        [record(1, &[(1, 0)], &[(0, 5, None), (1, 6, Some(0))]), record(2, &[(0, 5), (1, 0)], &[])];
    assert!(check(&torn, Isolation::Snapshot).unwrap_err().contains("cycle"));

    let mut dirty = [record(1, &[], &[(0, 5, None)]), record(2, &[(0, 5)], &[])];
    assert!(check(&dirty, Isolation::ReadCommitted).is_ok());
    dirty[0].committed = false;
    assert!(check(&dirty, Isolation::ReadCommitted).unwrap_err().contains("G1a"));

    let mut stale = [record(1, &[], &[(0, 5, Some(0))]), record(2, &[(0, 0)], &[])];
    assert!(check(&stale, Isolation::Serializable).is_ok());
    stale[1].begun = 20;
    assert!(check(&stale, Isolation::Serializable).is_err(), "the end of the first was known");
    assert!(check(&stale, Isolation::Snapshot).is_err());
}
