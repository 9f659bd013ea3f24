//! A process that four threads commit in is killed, over and over, in one and the same directory.
//! What it had acknowledged is there, and the state is that after some number of its commits,
//! exactly.
//!
//! Every transaction takes the next number of one sequence, and what it changes follows from that
//! number; so after number N there is one right content for each database, known without having
//! watched. `QUICKBEAM_CRASH_ROUNDS` sets how many times each kind of environment is killed;
//! `QUICKBEAM_SEED` repeats the waits, not the moments.

use std::collections::BTreeMap;

use crate::common::kill::{
    Acknowledgements, THREADS, assert_kept, busy_options, draw_wait, orders, run_and_kill,
    work_until_killed,
};
use crate::common::{Random, Records, assert_same, contents};
use quickbeam::{AccessMethod, Durability, Environment, Result, Transaction};

type All = BTreeMap<String, Records>;

/// What transaction `number` puts and deletes: database, key, value.
fn changes(number: u64) -> Vec<(String, Vec<u8>, Option<Vec<u8>>)> {
    let mut random = Random::new(number);
    let mut changes = Vec::new();
    for _ in 0..1 + random.below(5) {
        let key = format!("key {:03}", random.below(200)).into_bytes();
        let longest = [20, 300, 300, 1000, 20_000][random.below(5)];
        let value = vec![random.next() as u8; random.below(longest)];
        changes.push(("data".to_owned(), key, random.chance(75).then_some(value)));
    }
    changes
}

/// The database that transaction `number` makes, and the one that it drops.
fn databases(number: u64) -> (Option<String>, Option<String>) {
    let name = |number: u64| format!("made by {number}");
    if !number.is_multiple_of(20) {
        return (None, None);
    }
    (Some(name(number)), (number > 60).then(|| name(number - 60)))
}

/// Does transaction `number` to the model.
fn advance(all: &mut All, number: u64, thread: u64, counter: u64) {
    let count = |number: u64| number.to_be_bytes().to_vec();
    let data = all.entry("data".into()).or_default();
    for (_, key, value) in changes(number) {
        match value {
            Some(value) => drop(data.insert(key, value)),
            None => drop(data.remove(&key)),
        }
    }
    let order = all.entry("order".into()).or_default();
    order.insert(b"newest".to_vec(), count(number));
    order.insert([&b"thread "[..], &count(thread)].concat(), count(counter));
    order.insert(
        [&b"number "[..], &count(number)].concat(),
        [count(thread), count(counter)].concat(),
    );
    let (made, dropped) = databases(number);
    if let Some(made) = made {
        all.insert(made, Records::from([(count(number), vec![7; number as usize % 6000])]));
    }
    if let Some(dropped) = dropped {
        all.remove(&dropped);
    }
}

fn number_in(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(*bytes.first_chunk().unwrap())
}

/// The same in the environment. The number that the transaction took.
fn commit_one(environment: &Environment, thread: u64, counter: u64) -> Result<u64> {
    environment.transact(|transaction: &Transaction| {
        let order = transaction.open_database("order")?;
        let newest = order.get(transaction, b"newest")?;
        let number = newest.map_or(0, |bytes| number_in(&bytes)) + 1;
        let count = |number: u64| number.to_be_bytes();
        order.put(transaction, b"newest", &count(number))?;
        order.put(transaction, &[&b"thread "[..], &count(thread)].concat(), &count(counter))?;
        let who = [count(thread), count(counter)].concat();
        order.put(transaction, &[&b"number "[..], &count(number)].concat(), &who)?;
        for (database, key, value) in changes(number) {
            let database = transaction.open_database(&database)?;
            match value {
                Some(value) => database.put(transaction, &key, &value)?,
                None => drop(database.delete(transaction, &key)?),
            }
        }
        let (made, dropped) = databases(number);
        if let Some(made) = made {
            // One in two is found by hash.
            let hashed = number.is_multiple_of(40);
            let method = if hashed { AccessMethod::Hash } else { AccessMethod::BTree };
            let database = transaction.create_database_with(&made, method)?;
            database.put(transaction, &count(number), &vec![7; number as usize % 6000])?;
        }
        if let Some(dropped) = dropped {
            transaction.drop_database(&dropped)?;
        }
        Ok(number)
    })
}

fn counter_of(environment: &Environment, thread: u64) -> u64 {
    let reader = environment.begin_read().unwrap();
    let order = reader.open_database("order").unwrap();
    let key = [&b"thread "[..], &thread.to_be_bytes()].concat();
    order.get(&reader, &key).unwrap().map_or(0, |bytes| number_in(&bytes))
}

/// Not a test by itself: the process that is killed.
#[test]
fn victim() {
    let Some((directory, durability)) = orders() else { return };
    let environment =
        Environment::open(directory.join("environment"), busy_options(durability)).unwrap();
    environment.open_or_create_database("data").unwrap();
    if environment.open_database("order").is_err() {
        environment.create_database_with("order", AccessMethod::Hash).unwrap();
    }
    let work = |thread: u64| {
        let mut counter = counter_of(&environment, thread);
        let mut acknowledgements = Acknowledgements::of(&directory, thread);
        loop {
            match commit_one(&environment, thread, counter + 1) {
                Ok(_) => counter += 1,
                Err(error) => {
                    assert!(error.is_retryable(), "{error}");
                    continue;
                }
            }
            acknowledgements.note(counter);
        }
    };
    work_until_killed(work);
}

/// Kills in one directory. Then the test continues in a new one, because the whole content is
/// compared after each kill.
const KILLS: usize = 100;

/// Kills a process again and again; `keeps`: what it acknowledged survives.
fn kill_again_and_again(durability: Durability, keeps: bool, rounds: usize) {
    let mut left = crate::common::rounds("QUICKBEAM_CRASH_ROUNDS", rounds);
    let mut seed = crate::common::first_seed();
    while left > 0 {
        let rounds = left.min(KILLS);
        kill_in_one_place(durability, keeps, rounds, seed);
        left -= rounds;
        seed += 1;
    }
}

fn kill_in_one_place(durability: Durability, keeps: bool, rounds: usize, seed: u64) {
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("environment");
    let mut known = (0, All::new());
    let mut commits = 0;
    for round in 0..rounds {
        let wait = draw_wait(&mut random, 30, 400);
        run_and_kill(directory.path(), "durability::crash::victim", durability, wait);

        let what = format!("seed {seed}, round {round}, killed after {wait:?}");
        if random.chance(30) && place.exists() {
            // The same recovery twice: once on a copy that is never closed.
            let copy = directory.path().join("copy");
            crate::common::files::copy_environment(&place, &copy).unwrap();
            let environment = Environment::open(&copy, busy_options(durability)).unwrap();
            crate::common::assert_sound(&environment);
            drop(environment);
            std::fs::remove_dir_all(&copy).unwrap();
        }
        let environment = Environment::open(&place, busy_options(durability)).unwrap();
        let mut found = contents(&environment).unwrap();
        let order = found.get("order").cloned().unwrap_or_default();
        let newest = order.get(&b"newest"[..]).map_or(0, |bytes| number_in(bytes));
        assert!(!keeps || newest >= known.0, "{what}: {newest} commits, {} before", known.0);
        if newest < known.0 {
            known = (0, All::new());
        }
        let (from, model) = &mut known;
        for number in *from + 1..=newest {
            let who = order.get(&[&b"number "[..], &number.to_be_bytes()].concat());
            let who =
                who.unwrap_or_else(|| panic!("{what}: commit {number} of {newest} is missing"));
            advance(model, number, number_in(who), number_in(&who[8..]));
        }
        commits += newest.saturating_sub(*from);
        *from = newest;
        // The names may have been made and nothing else.
        found.retain(|name, records| !records.is_empty() || model.contains_key(name));
        assert!(
            found.keys().eq(model.keys()),
            "{what}: {:?}, expected {:?}",
            found.keys(),
            model.keys()
        );
        for (name, records) in &found {
            assert_same(records, &model[name], &format!("{what}, {name}"));
        }
        for thread in (0..THREADS).filter(|_| keeps) {
            assert_kept(directory.path(), thread, counter_of_model(model, thread), &what);
        }
        let report = environment.verify().unwrap();
        assert_eq!(report.complaints, Vec::<String>::new(), "{what}");
        if random.chance(50) {
            environment.close().unwrap();
        }
    }
    println!("{durability}: {rounds} kills, {commits} commits");
    assert!(commits > 5 * rounds as u64, "only {commits} commits survived in all rounds");
}

fn counter_of_model(model: &All, thread: u64) -> u64 {
    let key = [&b"thread "[..], &thread.to_be_bytes()].concat();
    model.get("order").and_then(|order| order.get(&key)).map_or(0, |bytes| number_in(bytes))
}

#[test]
fn sync_commits_survive_kills() {
    kill_again_and_again(Durability::Sync, true, 20);
}

#[test]
fn write_nosync_commits_survive_kills() {
    kill_again_and_again(Durability::WriteNoSync, true, 15);
}

#[test]
fn nosync_kills_leave_the_state_of_some_commit() {
    kill_again_and_again(Durability::NoSync, false, 10);
}

#[test]
fn kills_without_a_log_leave_a_checkpoint() {
    kill_again_and_again(Durability::InMemory, false, 10);
}

/// Not a test by itself: the process that is killed while it makes and frees trees.
#[test]
fn churn_victim() {
    let Some((directory, durability)) = orders() else { return };
    let path = directory.join("environment");
    let environment = Environment::open(path, crate::common::churn::options(durability)).unwrap();
    crate::common::churn::prepare(&environment).unwrap();
    work_until_killed(|thread| {
        let mut churner = crate::common::churn::Churner::new(&environment, thread).unwrap();
        churner.work(&mut Acknowledgements::of(&directory, thread));
    });
}

/// Kills a process that makes and frees trees again and again. After each kill every value is whole
/// and every page is accounted for; `keeps`: what the process acknowledged survives.
fn kill_churn(durability: Durability, keeps: bool, rounds: usize) {
    let rounds = crate::common::rounds("QUICKBEAM_CRASH_ROUNDS", rounds);
    let seed = crate::common::first_seed();
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let mut directory = tempfile::tempdir().unwrap();
    let mut values = 0;
    for round in 0..rounds {
        if round % KILLS == KILLS - 1 {
            directory = tempfile::tempdir().unwrap();
            println!("{durability}: {} kills of {rounds}, {values} values read", round + 1);
        }
        let wait = draw_wait(&mut random, 60, 350);
        run_and_kill(directory.path(), "durability::crash::churn_victim", durability, wait);
        let what = format!("{durability}, seed {seed}, round {round}, killed after {wait:?}");
        let path = directory.path().join("environment");
        let environment = Environment::open(&path, crate::common::churn::options(durability))
            .unwrap_or_else(|error| panic!("{what}: {error}; see {:?}", keep(&mut directory)));
        let report = environment.verify().unwrap();
        if !report.complaints.is_empty() {
            panic!("{what}: {:?}; see {:?}", report.complaints, keep(&mut directory));
        }
        values += crate::common::churn::assert_readable(&environment, &what);
        for thread in (0..THREADS).filter(|_| keeps) {
            let counter = crate::common::churn::counter_of(&environment, thread).unwrap();
            assert_kept(directory.path(), thread, counter, &what);
        }
        if random.chance(50) {
            environment.close().unwrap();
        }
    }
    println!("{durability}: {rounds} kills, {values} values read");
    assert!(values > 10 * rounds, "only {values} values in all rounds");
}

/// Leaves the directory of a failed round where it is.
fn keep(directory: &mut tempfile::TempDir) -> std::path::PathBuf {
    directory.disable_cleanup(true);
    directory.path().to_owned()
}

#[test]
fn freed_trees_keep_other_pages_at_sync() {
    kill_churn(Durability::Sync, true, 8);
}

#[test]
fn freed_trees_keep_other_pages_at_write_nosync() {
    kill_churn(Durability::WriteNoSync, true, 8);
}

#[test]
fn freed_trees_keep_other_pages_at_nosync() {
    kill_churn(Durability::NoSync, false, 12);
}

#[test]
fn freed_trees_keep_other_pages_without_a_log() {
    kill_churn(Durability::InMemory, false, 12);
}
