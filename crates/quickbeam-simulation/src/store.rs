//! A run of the data store: one owner, no log; a loss of power goes back to the last `sync`.

use std::path::Path;
use std::sync::Arc;

use quickbeam::{DataStore, Error, Result, StoreDatabase};

use crate::client::value;
use crate::faults::{Cut, Phase, Restart};
use crate::model::{Records, State, difference};
use crate::plan::Plan;
use crate::random::Random;
use crate::run::DIRECTORY;
use crate::world::SimulatedWorld;

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

/// What the store may hold at the next opening, and what it holds now.
struct Known {
    /// What it held at each `sync` that may count, the last of them acknowledged or not.
    synced: Vec<State>,
    now: State,
}

/// Runs the plan.
pub fn run(world: &SimulatedWorld, plan: &Arc<Plan>) {
    let random = &mut Random::part(plan.seed, 0x5704);
    let mut known = Known { synced: vec![State::new()], now: State::new() };
    for round in &plan.rounds {
        let mut cuts = round.opening_cuts.clone();
        let store = loop {
            let restart = cuts.pop().map(|(after, restart)| {
                world.core().cut = Some(Cut { phase: Phase::Recovery, after });
                restart
            });
            world.enter(Phase::Recovery);
            let directory = Some(Path::new(DIRECTORY));
            let opened = DataStore::open_in(world.as_world(), directory, plan.options.clone());
            world.leave(Phase::Recovery);
            let mut core = world.core();
            core.cut = None;
            let cut_off = core.is_cut_off();
            match opened {
                Ok(store) if !cut_off => break store,
                Err(_) if cut_off => core.restart(restart.unwrap_or(Restart::Process)),
                Ok(store) => {
                    drop(core);
                    let _ = store.close();
                    world.core().restart(restart.unwrap_or(Restart::Process));
                }
                Err(error) => return core.violation(format!("opening: {error}")),
            }
        };
        if let Err(what) = work(world, plan, random, store, &mut known, round) {
            return world.core().violation(what);
        }
    }
}

fn work(
    world: &SimulatedWorld,
    plan: &Plan,
    random: &mut Random,
    mut store: DataStore,
    known: &mut Known,
    round: &crate::plan::Round,
) -> std::result::Result<(), String> {
    let state = dump(&mut store).map_err(|error| format!("reading after opening: {error}"))?;
    if !known.synced.contains(&state) {
        let want = known.synced.last().cloned().unwrap_or_default();
        return Err(format!("not as of a sync: {}", difference(&state, &want)));
    }
    known.synced = vec![state.clone()];
    known.now = state;
    {
        let mut core = world.core();
        core.probe("openings of a store");
        core.cut = round.cut.map(|cut| match cut.phase {
            Phase::Commit | Phase::Recovery => Cut { phase: Phase::Any, ..cut },
            _ => cut,
        });
        core.full = round.full;
    }
    let mut failed = false;
    for _ in 0..plan.clients * plan.transactions * 2 {
        match operate(plan, random, &mut store, known) {
            Ok(()) => {}
            Err(Error::DiskFull { .. }) => {
                // What a refused call may have begun is not known of a store: it goes back to its last sync.
                failed = true;
                break;
            }
            Err(_) if world.core().is_cut_off() => {
                failed = true;
                break;
            }
            Err(error) => return Err(format!("unexpected error: {error}")),
        }
    }
    world.core().make_room();
    if !failed && !world.core().is_cut_off() {
        let report = store.verify().map_err(|error| format!("verify: {error}"));
        let cut_off = world.core().is_cut_off();
        match report {
            Ok(report) if !report.complaints.is_empty() && !cut_off => {
                return Err(format!("verify: {}", report.complaints.join("; ")));
            }
            Err(error) if !cut_off => return Err(error),
            _ => {}
        }
    }
    let crash = round.end == crate::plan::RoundEnd::Cut || failed;
    if crash {
        world.core().cut_now();
    }
    known.synced.push(known.now.clone());
    let closed = store.close();
    let mut core = world.core();
    if core.is_cut_off() {
        if crash && failed {
            // The state of the call that failed is of no sync.
            core.restart(round.restart);
            return Ok(());
        }
        core.restart(round.restart);
        return Ok(());
    }
    closed.map_err(|error| format!("closing: {error}"))?;
    known.synced = vec![known.now.clone()];
    core.go_on();
    Ok(())
}

fn operate(
    plan: &Plan,
    random: &mut Random,
    store: &mut DataStore,
    known: &mut Known,
) -> Result<()> {
    let name = random.pick(&["first", "second"]);
    let database: StoreDatabase = match store.open_database(name) {
        Err(Error::NoSuchDatabase { .. }) => {
            store.create_database_as(name, plan.method_of(name))?
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
            // Interrupted, it counts or it does not.
            known.synced.push(known.now.clone());
            store.sync()?;
            known.synced = vec![known.now.clone()];
        }
        _ => {
            let there = known.now.remove(name).is_some();
            if there {
                store.drop_database(name)?;
            }
        }
    }
    Ok(())
}
