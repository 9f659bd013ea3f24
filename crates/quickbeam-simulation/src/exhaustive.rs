//! Exhaustive small cases: short workloads, cut at every call that changes something, each cut
//! followed by every kind of loss; and with every call failing once.
//!
//! Above: the program and the tests. Below: [`crate::vfs`]. The workloads have one client and a
//! fixed schedule, so call number *n* is the same call in every run. The workload runs once up to
//! each cut, and each kind of loss starts from a copy of the disk.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use quickbeam::{AccessMethod, Durability, Environment, Error, Options, Result, Transaction};

use crate::model::{Records, State, difference};
use crate::run::{DIRECTORY, dump};
use crate::vfs::disk::{Disk, Loss, Medium};
use crate::vfs::faults::{Cut, Phase, Restart};
use crate::vfs::{Core, SimVfs, stored_in_vain};

/// The result of all cases.
#[derive(Default)]
pub struct Report {
    /// Number of cuts, each with one kind of restart.
    pub cuts: u64,
    /// Number of failing calls, each in one way.
    pub failures: u64,
    /// The violations found.
    pub violations: Vec<String>,
}

impl Report {
    /// Describes the counts.
    #[must_use]
    pub fn counts(&self) -> String {
        format!(
            "{} crash points with a kind of loss each, {} failing calls, {} distinct cases in all, {} violations",
            self.cuts,
            self.failures,
            self.cuts + self.failures,
            self.violations.len()
        )
    }
}

/// The committed states, and which of them are acknowledged.
#[derive(Default, Clone)]
struct DurableState {
    states: Vec<State>,
    /// The newest state that must survive a power loss, and the death of the process.
    power: usize,
    process: usize,
}

type Shared = Arc<Mutex<DurableState>>;

fn lock(known: &Shared) -> std::sync::MutexGuard<'_, DurableState> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A step of a workload.
#[derive(Clone, Copy, Debug)]
enum WorkloadStep {
    /// Puts `count` records of `bytes` bytes each in a transaction, beginning with number `from`.
    Put {
        from: u32,
        count: u32,
        bytes: usize,
        durability: Durability,
    },
    /// Deletes records in a transaction.
    Delete {
        from: u32,
        count: u32,
    },
    /// Puts records in a transaction that is rolled back.
    Abort {
        from: u32,
        count: u32,
        bytes: usize,
    },
    /// Create, rename, empty or drop a database.
    Make,
    Rename,
    Empty,
    Drop,
    /// Makes a checkpoint.
    Checkpoint,
    /// Compacts the environment.
    Compact,
    /// Closes the environment and opens it again.
    Reopen,
}

use WorkloadStep::{Abort, Checkpoint, Compact, Delete, Drop, Empty, Make, Put, Rename, Reopen};

const SYNC: Durability = Durability::Sync;
const WRITE: Durability = Durability::WriteNoSync;
const NOSYNC: Durability = Durability::NoSync;

/// A workload.
#[derive(Clone, Copy)]
struct Workload {
    name: &'static str,
    /// The access method of the database that it writes to.
    method: AccessMethod,
    steps: &'static [WorkloadStep],
}

const fn ordered(name: &'static str, steps: &'static [WorkloadStep]) -> Workload {
    Workload { name, method: AccessMethod::BTree, steps }
}

const fn hashed(name: &'static str, steps: &'static [WorkloadStep]) -> Workload {
    Workload { name, method: AccessMethod::Hash, steps }
}

const WORKLOADS: [Workload; 8] = [
    ordered(
        "commits",
        &[
            Put { from: 0, count: 3, bytes: 40, durability: SYNC },
            Put { from: 1, count: 2, bytes: 500, durability: SYNC },
            Delete { from: 0, count: 2 },
            Put { from: 7, count: 1, bytes: 9000, durability: SYNC },
            Abort { from: 1, count: 5, bytes: 700 },
            Put { from: 0, count: 4, bytes: 90, durability: SYNC },
        ],
    ),
    ordered(
        "checkpoints",
        &[
            Put { from: 0, count: 30, bytes: 700, durability: SYNC },
            Checkpoint,
            Put { from: 10, count: 30, bytes: 300, durability: SYNC },
            Delete { from: 5, count: 20 },
            Checkpoint,
            Put { from: 0, count: 2, bytes: 20_000, durability: SYNC },
            Checkpoint,
            Checkpoint,
        ],
    ),
    ordered(
        "levels",
        &[
            Put { from: 0, count: 2, bytes: 100, durability: NOSYNC },
            Put { from: 1, count: 2, bytes: 200, durability: WRITE },
            Put { from: 2, count: 2, bytes: 300, durability: SYNC },
            Put { from: 3, count: 2, bytes: 400, durability: WRITE },
            Put { from: 4, count: 2, bytes: 500, durability: NOSYNC },
            Checkpoint,
            Put { from: 5, count: 2, bytes: 600, durability: WRITE },
        ],
    ),
    ordered(
        "names",
        &[
            Make,
            Put { from: 0, count: 5, bytes: 300, durability: SYNC },
            Rename,
            Make,
            Empty,
            Checkpoint,
            Drop,
            Put { from: 2, count: 5, bytes: 300, durability: SYNC },
            Checkpoint,
            Make,
        ],
    ),
    ordered(
        "segments",
        &[
            Put { from: 0, count: 9, bytes: 20_000, durability: SYNC },
            Put { from: 3, count: 9, bytes: 20_000, durability: SYNC },
            Checkpoint,
            Put { from: 0, count: 9, bytes: 20_000, durability: SYNC },
            Delete { from: 0, count: 4 },
            Checkpoint,
        ],
    ),
    ordered(
        "openings",
        &[
            Put { from: 0, count: 10, bytes: 500, durability: SYNC },
            Reopen,
            Put { from: 5, count: 10, bytes: 500, durability: SYNC },
            Reopen,
            Put { from: 2, count: 1, bytes: 30_000, durability: SYNC },
            Reopen,
        ],
    ),
    ordered(
        "compaction",
        &[
            Put { from: 0, count: 40, bytes: 700, durability: SYNC },
            Put { from: 40, count: 3, bytes: 9000, durability: SYNC },
            Checkpoint,
            Delete { from: 3, count: 14 },
            Delete { from: 19, count: 14 },
            Delete { from: 40, count: 2 },
            Compact,
            Put { from: 10, count: 4, bytes: 700, durability: SYNC },
            Compact,
        ],
    ),
    hashed(
        "hashed",
        &[
            Put { from: 0, count: 12, bytes: 700, durability: SYNC },
            Checkpoint,
            Put { from: 8, count: 20, bytes: 500, durability: SYNC },
            Abort { from: 20, count: 20, bytes: 700 },
            Delete { from: 4, count: 15 },
            Checkpoint,
            Put { from: 0, count: 1, bytes: 12_000, durability: SYNC },
            Reopen,
            Put { from: 2, count: 3, bytes: 300, durability: SYNC },
        ],
    ),
];

fn options() -> Options {
    Options::new()
        .page_size(4096)
        .cache_size(4096 * 64)
        .log_segment_size(256 << 10)
        .log_buffer(64 << 10)
}

fn key(number: u32) -> Vec<u8> {
    format!("key {number:04}").into_bytes()
}

fn open(vfs: &SimVfs) -> Result<Environment> {
    vfs.enter(Phase::Recovery);
    let opened = Environment::open_in(vfs.as_world(), Some(Path::new(DIRECTORY)), options());
    vfs.leave(Phase::Recovery);
    opened
}

/// Commits the changes that `work` makes to the environment and to `state`, with that durability.
fn commit(
    environment: &Environment,
    known: &Shared,
    durability: Durability,
    work: impl FnOnce(&Transaction, &mut State) -> Result<()>,
) -> Result<()> {
    let mut state = lock(known).states.last().cloned().unwrap_or_default();
    let options = quickbeam::TransactionOptions::new().durability(durability);
    let transaction = environment.begin_with(options)?;
    work(&transaction, &mut state)?;
    // From here on the state may be durable, even if the commit fails.
    let number = {
        let mut known = lock(known);
        known.states.push(state);
        known.states.len() - 1
    };
    stored_in_vain();
    let placed = std::rc::Rc::new(std::cell::Cell::new(false));
    let seen = placed.clone();
    crate::vfs::on_commit(Some(Box::new(move |_| seen.set(true))));
    let done = transaction.commit();
    crate::vfs::on_commit(None);
    let in_vain = stored_in_vain();
    let mut known = lock(known);
    if done.is_ok() {
        // The simulated process died before it could acknowledge the commit.
        if in_vain {
            return done;
        }
        if durability == SYNC {
            known.power = number;
        }
        if durability != NOSYNC {
            known.process = number;
        }
    } else if !placed.get() {
        known.states.pop();
    }
    done
}

fn do_step(
    environment: &Environment,
    known: &Shared,
    method: AccessMethod,
    step: WorkloadStep,
    salt: u8,
) -> Result<()> {
    let fill = |number: u32, bytes: usize| vec![number as u8 ^ salt; bytes];
    match step {
        Put { from, count, bytes, durability } => {
            commit(environment, known, durability, |transaction, state| {
                let database = match transaction.open_database("data") {
                    Err(Error::NoSuchDatabase { .. }) => {
                        transaction.create_database_with("data", method)?
                    }
                    other => other?,
                };
                let records = state.entry("data".into()).or_default();
                for number in from..from + count {
                    let value = fill(number, bytes);
                    database.put(transaction, &key(number), &value)?;
                    records.insert(key(number), value.into());
                }
                Ok(())
            })
        }
        Delete { from, count } => commit(environment, known, SYNC, |transaction, state| {
            let database = transaction.open_database("data")?;
            let records = state.entry("data".into()).or_default();
            for number in from..from + count {
                database.delete(transaction, &key(number))?;
                records.remove(&key(number));
            }
            Ok(())
        }),
        Abort { from, count, bytes } => {
            let transaction = environment.begin()?;
            let database = transaction.open_database("data")?;
            for number in from..from + count {
                database.put(&transaction, &key(number), &fill(number, bytes))?;
            }
            transaction.abort()
        }
        Make => commit(environment, known, SYNC, |transaction, state| {
            let database = transaction.create_database_with("made", AccessMethod::Hash)?;
            database.put(transaction, b"a", b"b")?;
            let records = Records::from([(b"a".to_vec(), b"b"[..].into())]);
            state.insert("made".into(), records);
            Ok(())
        }),
        Rename => commit(environment, known, SYNC, |transaction, state| {
            transaction.rename_database("made", "renamed")?;
            let records = state.remove("made").unwrap_or_default();
            state.insert("renamed".into(), records);
            Ok(())
        }),
        Empty => commit(environment, known, SYNC, |transaction, state| {
            transaction.clear_database("renamed")?;
            state.insert("renamed".into(), Records::new());
            Ok(())
        }),
        Drop => commit(environment, known, SYNC, |transaction, state| {
            transaction.drop_database("made")?;
            state.remove("made");
            Ok(())
        }),
        Checkpoint | Compact => {
            let newest = lock(known).states.len() - 1;
            match step {
                Compact => environment.compact().map(|_| ())?,
                _ => environment.checkpoint()?,
            }
            let mut known = lock(known);
            known.power = newest;
            known.process = newest;
            Ok(())
        }
        Reopen => Ok(()),
    }
}

/// Runs a workload until it ends or a step fails.
fn work(vfs: &SimVfs, workload: Workload, known: &Shared) -> Result<()> {
    let mut environment = open(vfs)?;
    for (number, &step) in workload.steps.iter().enumerate() {
        if matches!(step, Reopen) {
            environment.close()?;
            {
                let mut known = lock(known);
                known.power = known.states.len() - 1;
                known.process = known.power;
            }
            environment = open(vfs)?;
            continue;
        }
        if let Err(error) = do_step(&environment, known, workload.method, step, number as u8) {
            let _ = environment.close();
            return Err(error);
        }
    }
    environment.close()?;
    let mut known = lock(known);
    known.power = known.states.len() - 1;
    known.process = known.power;
    Ok(())
}

/// Opens the environment and compares its content with the known states.
fn check(vfs: &SimVfs, known: &DurableState, bound: usize) -> std::result::Result<(), String> {
    let environment = open(vfs).map_err(|error| format!("opening: {error}"))?;
    let checked = || {
        let state = dump(&environment).map_err(|error| format!("reading: {error}"))?;
        if !known.states[bound..].contains(&state) {
            let newest = known.states.last().cloned().unwrap_or_default();
            return Err(match known.states.iter().rposition(|other| *other == state) {
                Some(at) => format!("as of state {at}, though {bound} was promised to stay"),
                None => format!("of no state: {}", difference(&state, &newest)),
            });
        }
        let report = environment.verify().map_err(|error| format!("verify: {error}"))?;
        if !report.complaints.is_empty() {
            return Err(format!("verify: {}", report.complaints.join("; ")));
        }
        environment
            .transact(|transaction| {
                let database = transaction.create_database("after");
                database?.put(transaction, b"a", b"b")
            })
            .map_err(|error| format!("going on: {error}"))
    };
    let checked = checked();
    let closed = environment.close().map_err(|error| format!("closing: {error}"));
    checked.and(closed)
}

fn fresh() -> Shared {
    Arc::new(Mutex::new(DurableState { states: vec![State::new()], ..DurableState::default() }))
}

/// Runs `body` in a new simulation and adds its violations to the report.
fn in_world(
    report: &mut Report,
    name: &str,
    disk: Disk,
    body: impl FnOnce(&SimVfs) + Send + 'static,
) -> Core {
    let core = SimVfs::run(7, disk, false, body);
    report.violations.extend(core.violations.iter().map(|what| format!("{name}: {what}")));
    core
}

/// Runs every cut of one workload on one medium.
fn cut_everywhere(report: &mut Report, workload: Workload, medium: Medium) {
    let name = workload.name;
    for after in 0.. {
        let known = fresh();
        let shared = known.clone();
        let what = format!("{name}, {medium:?}, cut {after}");
        let core = in_world(report, &what, Disk::new(medium), move |vfs| {
            vfs.core().cut = Some(Cut { phase: Phase::Any, after });
            let done = work(vfs, workload, &shared);
            let cut_off = vfs.core().is_cut_off();
            if let (Err(error), false) = (done, cut_off) {
                vfs.core().violation(error.to_string());
            }
        });
        if !core.is_cut_off() {
            return;
        }
        let known = lock(&known).clone();
        let losses = Loss::ALL.into_iter().map(Restart::Power);
        for restart in losses.chain([Restart::Process]) {
            report.cuts += 1;
            let bound = if restart == Restart::Process { known.process } else { known.power };
            let (known, disk) = (known.clone(), core.disk.clone());
            let what = format!("{what}, {restart:?}");
            in_world(report, &what, disk, move |vfs| {
                vfs.core().restart(restart);
                if let Err(what) = check(vfs, &known, bound) {
                    vfs.core().violation(what);
                }
            });
        }
    }
}

/// Runs every failing call of one workload, then reopens the environment, also after a power loss.
fn fail_everywhere(report: &mut Report, workload: Workload, medium: Medium) {
    let name = workload.name;
    for full in [false, true] {
        for number in 0.. {
            let known = fresh();
            let shared = known.clone();
            let what = format!("{name}, {medium:?}, call {number} fails, full {full}");
            let core = in_world(report, &what, Disk::new(medium), move |vfs| {
                vfs.core().fail_call = Some((number, full));
                let done = work(vfs, workload, &shared);
                let mut core = vfs.core();
                core.fail_call = None;
                match done {
                    Err(Error::Io { .. } | Error::Failed { .. } | Error::DiskFull { .. })
                    | Ok(()) => {}
                    // Data lost by a failed flush may be found missing at once.
                    Err(Error::Corruption { .. }) if core.flush_failed => {}
                    Err(error) => core.violation(error.to_string()),
                }
            });
            if core.met == 0 {
                break;
            }
            report.failures += 1;
            let known = lock(&known).clone();
            let bound = if core.flush_failed { known.power } else { known.process };
            let ways = [(Restart::Process, bound), (Restart::Power(Loss::Any), known.power)];
            for (restart, bound) in ways {
                let (known, disk) = (known.clone(), core.disk.clone());
                let what = format!("{what}, {restart:?}");
                in_world(report, &what, disk, move |vfs| {
                    vfs.core().restart(restart);
                    if let Err(what) = check(vfs, &known, bound) {
                        vfs.core().violation(what);
                    }
                });
            }
        }
    }
}

/// Runs all cases.
#[must_use]
pub fn run_all() -> Report {
    let report = Mutex::new(Report::default());
    let strict = Medium { grain: 512, strict: true, write_through: false, mapped: false };
    let mapped = Medium { mapped: true, ..strict };
    let through = Medium { grain: 4096, strict: false, write_through: true, mapped: false };
    std::thread::scope(|scope| {
        for medium in [strict, mapped, through] {
            let report = &report;
            scope.spawn(move || {
                let mut own = Report::default();
                for workload in WORKLOADS {
                    cut_everywhere(&mut own, workload, medium);
                    fail_everywhere(&mut own, workload, medium);
                }
                let mut all = report.lock().unwrap_or_else(PoisonError::into_inner);
                all.cuts += own.cuts;
                all.failures += own.failures;
                all.violations.append(&mut own.violations);
            });
        }
    });
    report.into_inner().unwrap_or_else(PoisonError::into_inner)
}
