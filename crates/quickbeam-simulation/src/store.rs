//! A run of the data store: one owner, no log; a power loss reverts to the last `sync`.
//!
//! A failed call has changed nothing, and the store continues. The exception is a failed `sync`:
//! unless the device was full, the store accepts no further call until it is reopened.

use std::path::Path;
use std::sync::Arc;

use quickbeam::{DataStore, Error, Result, StoreDatabase};

use crate::client::value;
use crate::model::{Records, State, difference};
use crate::plan::{Plan, Round, RoundEnd};
use crate::run::DIRECTORY;
use crate::vfs::SimVfs;
use crate::vfs::faults::{Cut, Phase, Restart};
use quickbeam_testing::Random;

fn dump(store: &mut DataStore) -> Result<State> {
    let mut state = State::new();
    for name in store.databases()? {
        let database = store.open_database(&name)?;
        let mut records = Records::new();
        let mut cursor = store.cursor(database)?;
        let mut more = cursor.first()?;
        while more {
            records.insert(cursor.key().to_vec(), cursor.value().into());
            more = cursor.next()?;
        }
        state.insert(name, records);
    }
    Ok(state)
}

/// The states that the store may have at the next opening, and its current state.
struct StoreModel {
    /// The states of all syncs that may be durable; the last one may be unacknowledged.
    synced: Vec<State>,
    now: State,
}

/// Runs the plan.
pub fn run(vfs: &SimVfs, plan: &Arc<Plan>) {
    let random = &mut Random::part(plan.seed, 0x5704);
    let mut known = StoreModel { synced: vec![State::new()], now: State::new() };
    for round in &plan.rounds {
        let store = match open(vfs, plan, round) {
            Ok(store) => store,
            Err(error) => return vfs.core().violation(format!("opening: {error}")),
        };
        if let Err(what) = work(vfs, plan, random, store, &mut known, round) {
            return vfs.core().violation(what);
        }
    }
}

/// Opens the store, through cuts and failing calls.
fn open(vfs: &SimVfs, plan: &Plan, round: &Round) -> Result<DataStore> {
    let mut cuts = round.opening_cuts.clone();
    vfs.core().faults.clone_from(&round.opening_faults);
    loop {
        let restart = cuts.pop().map(|(after, restart)| {
            vfs.core().cut = Some(Cut { phase: Phase::Recovery, after });
            restart
        });
        let met = vfs.core().met;
        vfs.enter(Phase::Recovery);
        let directory = Some(Path::new(DIRECTORY));
        let opened = DataStore::open_in(vfs.as_world(), directory, plan.options.clone());
        vfs.leave(Phase::Recovery);
        let mut core = vfs.core();
        core.cut = None;
        let cut_off = core.is_cut_off();
        match opened {
            Ok(store) if !cut_off => {
                core.faults.clear();
                return Ok(store);
            }
            Err(_) if cut_off => core.restart(restart.unwrap_or(Restart::Process)),
            Ok(store) => {
                drop(core);
                let _ = store.close();
                vfs.core().restart(restart.unwrap_or(Restart::Process));
            }
            Err(Error::Io { .. } | Error::Failed { .. } | Error::Corruption { .. })
                if core.met > met =>
            {
                core.faults.clear();
                core.go_on();
                core.probe("openings that failed");
            }
            Err(error) => return Err(error),
        }
    }
}

/// A call of the store that failed.
struct FailedCall {
    error: Error,
    /// The store refuses the calls after this one: it was a sync, and the device was not full.
    stops_store: bool,
}

impl From<Error> for FailedCall {
    fn from(error: Error) -> FailedCall {
        FailedCall { error, stops_store: false }
    }
}

/// Returns whether the store continues after a failed call. Fails if no fault explains the error.
fn goes_on(vfs: &SimVfs, error: &Error) -> std::result::Result<bool, String> {
    let core = vfs.core();
    match error {
        _ if core.is_cut_off() => Ok(false),
        Error::DiskFull { .. } if core.refused_now > 0 => Ok(true),
        Error::Io { .. } if core.met_now > 0 => Ok(true),
        Error::Failed { .. } if core.met_now > 0 => Ok(false),
        // Data that a failed flush did not write may have disappeared from the page cache.
        Error::Corruption { .. } if core.flush_failed => Ok(false),
        error => Err(format!("unexpected error: {error}")),
    }
}

fn work(
    vfs: &SimVfs,
    plan: &Plan,
    random: &mut Random,
    mut store: DataStore,
    known: &mut StoreModel,
    round: &Round,
) -> std::result::Result<(), String> {
    let state = dump(&mut store).map_err(|error| format!("reading after opening: {error}"))?;
    if !known.synced.contains(&state) {
        let want = known.synced.last().cloned().unwrap_or_default();
        return Err(format!("not as of a sync: {}", difference(&state, &want)));
    }
    known.synced = vec![state.clone()];
    known.now = state;
    {
        let mut core = vfs.core();
        core.probe("openings of a store");
        core.cut = round.cut.map(|cut| match cut.phase {
            Phase::Commit | Phase::Recovery => Cut { phase: Phase::Any, ..cut },
            _ => cut,
        });
        core.faults.clone_from(&round.faults);
        core.full = round.full;
    }
    let mut fit = true;
    for _ in 0..plan.clients * plan.transactions * 2 {
        if let Err(FailedCall { error, stops_store }) = operate(plan, random, &mut store, known) {
            let goes_on = goes_on(vfs, &error)?;
            if goes_on {
                vfs.core().probe("calls of a store that failed");
            }
            fit = goes_on && !stops_store;
            if !fit {
                break;
            }
        }
    }
    {
        let mut core = vfs.core();
        core.faults.clear();
        core.make_room();
    }
    if fit && let Err(what) = check(vfs, &mut store, &known.now) {
        return Err(what);
    }
    if fit && round.end == RoundEnd::Cut {
        vfs.core().cut_now();
    }
    // Closing successfully implies a sync.
    known.synced.push(known.now.clone());
    let closed = store.close();
    let mut core = vfs.core();
    if core.is_cut_off() {
        core.restart(round.restart);
        return Ok(());
    }
    let failed = !fit || core.flush_failed;
    match closed {
        Err(error) if !failed => return Err(format!("closing: {error}")),
        // A failed store has the state of one of its syncs when it is reopened.
        Err(_) => core.probe("reopened after a failure"),
        Ok(()) => known.synced = vec![known.now.clone()],
    }
    core.go_on();
    Ok(())
}

/// Checks that failed calls have changed nothing and left no garbage.
fn check(vfs: &SimVfs, store: &mut DataStore, now: &State) -> std::result::Result<(), String> {
    let found = dump(store).and_then(|state| store.verify().map(|report| (state, report)));
    if vfs.core().is_cut_off() {
        return Ok(());
    }
    match found {
        Ok((state, _)) if state != *now => {
            Err(format!("not what the calls made: {}", difference(&state, now)))
        }
        Ok((_, report)) if !report.complaints.is_empty() => {
            Err(format!("verify: {}", report.complaints.join("; ")))
        }
        Ok(_) => Ok(()),
        Err(Error::Corruption { .. }) if vfs.core().flush_failed => Ok(()),
        Err(error) => Err(format!("reading: {error}")),
    }
}

fn operate(
    plan: &Plan,
    random: &mut Random,
    store: &mut DataStore,
    known: &mut StoreModel,
) -> std::result::Result<(), FailedCall> {
    let name = random.pick(&["first", "second"]);
    let database: StoreDatabase = match store.open_database(name) {
        Err(Error::NoSuchDatabase { .. }) => {
            store.create_database_with(name, plan.method_of(name))?
        }
        opened => opened?,
    };
    let records = known.now.entry(name.to_owned()).or_default();
    let key = format!("key {:04}", random.below(plan.keys)).into_bytes();
    match random.below(100) {
        0..50 => {
            let longest = random.pick(&plan.lengths);
            let number = random.next();
            let new = value(number, random.below(longest + 1));
            store.put(database, &key, &new)?;
            records.insert(key, new);
        }
        50..70 => {
            let was_there = store.delete(database, &key)?;
            assert_eq!(was_there, records.remove(&key).is_some(), "delete of a store");
        }
        70..92 => {
            let found = store.get(database, &key)?;
            assert_eq!(
                found.as_deref(),
                records.get(&key).map(|value| &value[..]),
                "get of a store"
            );
        }
        92..97 => {
            // If interrupted, the sync may or may not be durable.
            known.synced.push(known.now.clone());
            store.sync().map_err(|error| FailedCall {
                stops_store: !matches!(error, Error::DiskFull { .. }),
                error,
            })?;
            known.synced = vec![known.now.clone()];
        }
        _ => {
            store.drop_database(name)?;
            known.now.remove(name);
        }
    }
    Ok(())
}
