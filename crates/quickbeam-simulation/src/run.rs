//! A run: openings, work, cuts and restarts according to the plan, with the checks after each.
//!
//! Above: the program and the tests. Below: [`crate::client`], [`crate::vfs`]. After an opening,
//! the databases must equal the state of some commit that is not older than the promised one. At
//! the end of an undisturbed round, the newest state must be present and the structure valid. No
//! unneeded version, chain or block may remain.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quickbeam::vfs::Vfs;
use quickbeam::{Durability, Environment, Error, Options, Result, TransactionOptions};

use crate::client::{Client, Oracle, SharedOracle, open};
use crate::model::{Model, State, difference};
use crate::plan::{Plan, Round, RoundEnd};
use crate::vfs::disk::Disk;
use crate::vfs::faults::{Cut, Phase, Restart};
use crate::vfs::{Core, SimVfs};
use quickbeam_testing::Random;

/// The environment's directory.
pub const DIRECTORY: &str = "/db";

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// One number for all events.
    pub hash: u64,
    /// The violations found.
    pub violations: Vec<String>,
    /// How often each probe was reached.
    pub probes: BTreeMap<&'static str, u64>,
    /// The events in words, if requested.
    pub words: Vec<String>,
}

/// Runs a plan once.
#[must_use]
pub fn run(plan: &Plan, words: bool) -> Outcome {
    let disk = Disk::new(plan.medium);
    let shared = Arc::new(plan.clone());
    let core = SimVfs::run(plan.seed, disk, words, move |vfs| {
        if shared.store {
            crate::store::run(vfs, &shared);
        } else {
            Runner::new(vfs, &shared).run();
        }
    });
    outcome(core)
}

/// Returns the result of a finished simulation.
pub fn outcome(mut core: Core) -> Outcome {
    if core.violations.is_empty() && !core.scheduler.running().is_empty() {
        let running = core.scheduler.running().join(", ");
        core.violations.push(format!("threads were left running: {running}"));
    }
    *core.probes.entry("calls on files").or_default() += core.calls;
    Outcome {
        hash: core.trace.hash(),
        violations: core.violations,
        probes: core.probes,
        words: core.trace.words.unwrap_or_default(),
    }
}

/// Returns the content of all databases.
pub fn dump(environment: &Environment) -> Result<State> {
    let options = TransactionOptions::new().read_only(true).never_expires(true);
    let reader = environment.begin_with(options)?;
    let mut state = State::new();
    for name in reader.databases()? {
        let database = reader.open_database(&name)?;
        let mut cursor = database.cursor(&reader)?;
        let mut records = BTreeMap::new();
        let mut more = cursor.first()?;
        while more {
            records.insert(cursor.key().to_vec(), cursor.value().into());
            more = cursor.next()?;
        }
        state.insert(name, records);
    }
    Ok(state)
}

/// Finds the commit of the model whose state that is, the newest one if several are equal. Fails if
/// it is older than `bound`.
pub fn find(model: &Model, state: &State, bound: u64) -> std::result::Result<u64, String> {
    let newest = model.newest();
    let commits = model.commits(0, newest);
    let found = commits.iter().rev().find(|at| model.state(**at) == *state);
    match found {
        Some(&at) if at >= bound => Ok(at),
        Some(&at) => Err(format!(
            "the databases are as of commit {at}, though commit {bound} was promised to stay (newest {newest})"
        )),
        None => Err(format!(
            "the databases are as of no commit; from the newest, {newest} (promised {bound}): {}",
            difference(state, &model.state(newest))
        )),
    }
}

struct Runner<'w> {
    vfs: &'w SimVfs,
    plan: &'w Arc<Plan>,
    oracle: SharedOracle,
    random: Random,
    /// The commit that the next opening must contain, and the one it must contain after a power
    /// loss.
    bound: u64,
    power: u64,
    /// The newest root was damaged since the last opening.
    root_lost: bool,
    /// The run cannot continue after an error.
    over: bool,
}

impl<'w> Runner<'w> {
    fn new(vfs: &'w SimVfs, plan: &'w Arc<Plan>) -> Runner<'w> {
        let oracle = Oracle { model: Model::new(&State::new()), ..Oracle::default() };
        Runner {
            vfs,
            plan,
            oracle: Arc::new(std::sync::Mutex::new(oracle)),
            random: Random::part(plan.seed, 0x2077),
            bound: 0,
            power: 0,
            root_lost: false,
            over: false,
        }
    }

    fn violation(&mut self, what: String) {
        self.vfs.core().violation(what);
        self.over = true;
    }

    fn options(&self) -> Options {
        self.plan.options.clone()
    }

    fn run(&mut self) {
        let plan = self.plan.clone();
        for (number, round) in plan.rounds.iter().enumerate() {
            let Some(environment) = self.open(round) else { return };
            self.round(environment, round, number);
            if self.over || !self.vfs.core().violations.is_empty() {
                return;
            }
        }
        if plan.rot {
            self.rot();
            return;
        }
        let quiet = Round {
            opening_cuts: Vec::new(),
            opening_faults: Vec::new(),
            cut: None,
            faults: Vec::new(),
            full: None,
            restart: Restart::Process,
            end: RoundEnd::Close,
        };
        if let Some(environment) = self.open(&quiet) {
            self.rest(environment, &quiet);
        }
    }

    /// Opens the environment, through cuts and failing calls, and compares its content with the
    /// model.
    fn open(&mut self, round: &Round) -> Option<Environment> {
        let mut cuts = round.opening_cuts.clone();
        self.vfs.core().faults.clone_from(&round.opening_faults);
        loop {
            let restart = cuts.pop().map(|(after, restart)| {
                self.vfs.core().cut = Some(Cut { phase: Phase::Recovery, after });
                restart
            });
            let met = self.vfs.core().met;
            let opened = self.open_once(self.options());
            let mut core = self.vfs.core();
            let cut_off = core.is_cut_off();
            core.cut = None;
            match opened {
                Ok(environment) if !cut_off => {
                    core.faults.clear();
                    drop(core);
                    self.recognize(&environment);
                    if self.over {
                        self.end(environment);
                        return None;
                    }
                    return Some(environment);
                }
                Ok(environment) => {
                    // The environment was open when the cut occurred in one of its threads.
                    drop(core);
                    self.end(environment);
                    self.restart_opening(restart);
                }
                Err(_) if cut_off => {
                    drop(core);
                    self.restart_opening(restart);
                }
                Err(Error::Io { .. } | Error::Failed { .. } | Error::Corruption { .. })
                    if core.met > met =>
                {
                    core.faults.clear();
                    core.go_on();
                    core.probe("openings that failed");
                }
                // Blocks of the previous root were reused. But no log record may be refused.
                Err(Error::Corruption(damage))
                    if self.root_lost
                        && (damage.file.ends_with(quickbeam::DATA_FILE)
                            || damage.detail.contains("missing")) =>
                {
                    core.probe("lost roots that were missed");
                    return None;
                }
                Err(error) => {
                    drop(core);
                    self.violation(format!("opening: {error}"));
                    return None;
                }
            }
        }
    }

    /// Restarts after a cut during an opening. A power loss may lose data that survived an earlier
    /// process death.
    fn restart_opening(&mut self, restart: Option<Restart>) {
        let mut restart = restart.unwrap_or(Restart::Process);
        if self.root_lost {
            // A simultaneous power loss is outside the guarantee (`lose_root`).
            restart = Restart::Process;
        }
        if restart != Restart::Process {
            self.bound = self.bound.min(self.power);
        }
        self.vfs.core().restart(restart);
    }

    fn open_once(&self, options: Options) -> Result<Environment> {
        self.vfs.core().background.interval = options.log_write_interval.as_nanos() as u64;
        self.vfs.enter(Phase::Recovery);
        let directory = Some(Path::new(DIRECTORY));
        let opened = Environment::open_in(self.vfs.as_world(), directory, options);
        self.vfs.leave(Phase::Recovery);
        opened
    }

    /// Compares the opened content with the model, and begins a new model from it.
    fn recognize(&mut self, environment: &Environment) {
        let state = match dump(environment) {
            Ok(state) => state,
            Err(Error::Corruption { .. }) if self.root_lost => {
                self.over = true;
                return self.vfs.core().probe("lost roots that were missed");
            }
            Err(error) => {
                self.verify(environment);
                return self.violation(format!("reading after opening: {error}"));
            }
        };
        let found = find(&open(&self.oracle).model, &state, self.bound);
        match found {
            Ok(at) => {
                let mut core = self.vfs.core();
                core.trace.add(&[3, at]);
                core.trace.say(|| format!("opened as of commit {at}"));
                core.probe("openings");
                if self.root_lost {
                    core.probe("lost roots that the log made up for");
                }
            }
            Err(what) => return self.violation(what),
        }
        self.root_lost = false;
        if self.random.chance(50) {
            self.verify(environment);
        }
        *open(&self.oracle) = Oracle { model: Model::new(&state), ..Oracle::default() };
        self.bound = 0;
        self.power = 0;
    }

    fn verify(&mut self, environment: &Environment) {
        match environment.verify() {
            Ok(report) if report.complaints.is_empty() => {}
            Ok(report) => self.violation(format!("verify: {}", report.complaints.join("; "))),
            Err(error) => self.violation(format!("verify: {error}")),
        }
    }

    fn client(&self, environment: &Environment, number: u64) -> Client {
        let part = number + 100 * (1 + self.random.clone().next() % 1_000_000);
        Client {
            vfs: self.vfs.clone(),
            environment: environment.clone(),
            oracle: self.oracle.clone(),
            random: Random::part(self.plan.seed, part),
            plan: self.plan.clone(),
        }
    }

    fn round(&mut self, environment: Environment, round: &Round, number: usize) {
        let records = if number == 0 { self.plan.preload } else { 0 };
        if self.client(&environment, 99).prepare(records).is_err() {
            // No fault has begun yet.
            self.violation("the first transactions failed".into());
            return self.end(environment);
        }
        {
            let mut core = self.vfs.core();
            core.cut = round.cut;
            core.faults.clone_from(&round.faults);
            core.full = round.full;
        }
        let mut tasks = Vec::new();
        for number in 0..self.plan.clients {
            let mut client = self.client(&environment, number as u64);
            let name = format!("client {number}");
            match self.vfs.spawn(&name, Box::new(move || client.work())) {
                Ok(task) => tasks.push(task),
                Err(error) => self.violation(format!("no thread: {error}")),
            }
        }
        self.random.next();
        tasks.into_iter().for_each(|task| task.join());
        if self.plan.hasty && !self.vfs.core().is_cut_off() {
            return self.close(environment, round);
        }
        let refuses = {
            let mut core = self.vfs.core();
            core.faults.clear();
            core.make_room();
            core.cut = core.cut.filter(|cut| cut.phase == Phase::Checkpoint);
            drop(core);
            open(&self.oracle).refuses
        };
        self.note_statistics(&environment);
        if self.vfs.core().is_cut_off() {
            self.end(environment);
            self.restart(round.restart);
        } else if refuses {
            self.reopen(environment);
        } else {
            self.rest(environment, round);
        }
    }

    /// Closes the environment while calls still fail. Either all commits are kept, or closing
    /// reports an error.
    fn close(&mut self, environment: Environment, round: &Round) {
        let closed = environment.close();
        {
            let mut core = self.vfs.core();
            core.faults.clear();
            core.make_room();
            core.cut = None;
        }
        if self.vfs.core().is_cut_off() {
            return self.restart(round.restart);
        }
        let oracle = open(&self.oracle);
        let mut core = self.vfs.core();
        match closed {
            Ok(()) => {
                core.probe("closed in haste");
                self.bound = oracle.model.newest();
                self.power = self.bound;
            }
            Err(error) => {
                if core.met_now == 0 && core.refused_now == 0 {
                    core.violation(format!("closing, where nothing had failed: {error}"));
                }
                core.probe("failures that closing reported");
                self.bound = if core.flush_failed { oracle.power } else { oracle.process };
                self.power = oracle.power;
            }
        }
        core.go_on();
    }

    /// After a cut: the commits promised for that kind of restart must be present.
    fn restart(&mut self, restart: Restart) {
        let oracle = open(&self.oracle);
        let lost = self.vfs.core().flush_failed || restart != Restart::Process;
        self.bound = if lost { oracle.power } else { oracle.process.max(self.written()) };
        self.power = oracle.power;
        drop(oracle);
        self.vfs.core().restart(restart);
        if restart == Restart::Process && self.random.clone().chance(self.plan.lost_roots) {
            self.lose_root();
        }
    }

    /// Damages both copies of the newest root. The previous root and the log contain all commits,
    /// or opening reports the loss. Not combined with a power loss, which may remove log records
    /// that only the newest root covered.
    fn lose_root(&mut self) {
        let path = Path::new(DIRECTORY).join(quickbeam::DATA_FILE);
        let mut core = self.vfs.core();
        let sequence = |core: &Core, slot: u64| {
            let bytes = core.disk.peek(&path, slot + 40, 8);
            bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
        };
        let newest = if sequence(&core, 0) > sequence(&core, 8192) { 0 } else { 8192 };
        if sequence(&core, newest) < 2 {
            // There is no root before the first one.
            return;
        }
        let bit = self.random.clone().below(8) as u8;
        for copy in [newest, newest + 4096] {
            core.disk.rot(&path, copy + 60, bit);
        }
        core.probe("newest roots lost");
        self.root_lost = true;
    }

    /// Returns the newest commit that the log's thread has written, which `log_write_interval`
    /// guarantees regardless of durability.
    fn written(&self) -> u64 {
        let mut core = self.vfs.core();
        let written = core.background.written;
        if core.met_now > 0 {
            return 0;
        }
        if written > 0 {
            core.probe("commits written in the background");
        }
        written
    }

    /// Closes an environment that accepts no more writes, and opens it again in the same process.
    fn reopen(&mut self, environment: Environment) {
        let mut core = self.vfs.core();
        core.probe("reopened after a failure");
        core.cut = None;
        drop(core);
        let closed = environment.close();
        let oracle = open(&self.oracle);
        let mut core = self.vfs.core();
        self.bound = if core.flush_failed { oracle.power } else { oracle.process };
        self.power = oracle.power;
        if closed.is_ok() && !core.is_cut_off() {
            // Closing reported that all commits are kept.
            self.bound = oracle.model.newest();
            self.power = self.bound;
        }
        core.go_on();
    }

    /// Closes an environment that may have failed, ignoring the result.
    fn end(&self, environment: Environment) {
        let _ = environment.close();
    }

    /// Checks an undisturbed end of a round: everything must be in order.
    fn rest(&mut self, environment: Environment, round: &Round) {
        let met = self.vfs.core().met;
        let settled = self.client(&environment, 98).prepare(20);
        let refuses = open(&self.oracle).refuses;
        if self.vfs.core().is_cut_off() {
            self.end(environment);
            return self.restart(round.restart);
        }
        if refuses {
            return self.reopen(environment);
        }
        if settled.is_err() && self.vfs.core().met == met {
            self.violation("the environment does not go on".into());
        }
        let checked = self.check_rest(&environment);
        if self.vfs.core().is_cut_off() {
            self.end(environment);
            return self.restart(round.restart);
        }
        if let Err(what) = checked {
            // A background thread may have met the failing call after the last client ended.
            let may_fail = self.vfs.core().met > 0;
            if may_fail && matches!(environment.checkpoint(), Err(Error::Failed { .. })) {
                return self.reopen(environment);
            }
            self.violation(what);
        }
        if round.end == RoundEnd::Cut {
            self.vfs.core().cut_now();
            self.end(environment);
            return self.restart(round.restart);
        }
        match environment.close() {
            Ok(()) => {
                self.bound = open(&self.oracle).model.newest();
                self.power = self.bound;
                self.vfs.core().probe("clean closes");
                self.vfs.core().go_on();
            }
            Err(_) if self.vfs.core().is_cut_off() => self.restart(round.restart),
            Err(error) => self.violation(format!("closing: {error}")),
        }
    }

    fn check_rest(&mut self, environment: &Environment) -> std::result::Result<(), String> {
        let words = |what: &str| {
            let what = what.to_owned();
            move |error: Error| format!("{what}: {error}")
        };
        // The thread for deferred work has finished by now.
        self.vfs.sleep(Duration::from_millis(300));
        for _ in 0..2 {
            environment.checkpoint().map_err(words("checkpoint at rest"))?;
        }
        let numbers = environment.statistics();
        let newest = {
            let mut oracle = open(&self.oracle);
            let newest = oracle.model.newest();
            oracle.power = newest;
            oracle.process = newest;
            newest
        };
        let state = dump(environment).map_err(words("reading at rest"))?;
        find(&open(&self.oracle).model, &state, newest)?;
        let report = environment.verify().map_err(words("verify at rest"))?;
        if !report.complaints.is_empty() {
            return Err(format!("verify at rest: {}", report.complaints.join("; ")));
        }
        let held = [
            ("open transactions", numbers.open_transactions),
            ("writers", numbers.writers_held),
            ("bytes of undo", numbers.undo_bytes),
            ("bytes of undo in files", numbers.undo_file_bytes as usize),
            ("pieces of work", numbers.deferred_work),
        ];
        for (what, count) in held {
            if count > 0 {
                return Err(format!("{count} {what} are held at rest"));
            }
        }
        self.vfs.core().probe("rests checked");
        Ok(())
    }

    fn note_statistics(&self, environment: &Environment) {
        let numbers = environment.statistics();
        let mut core = self.vfs.core();
        let mut add = |what: &'static str, count: u64| {
            *core.probes.entry(what).or_default() += count;
        };
        add("evictions", numbers.evictions);
        add("checkpoints", numbers.checkpoints);
        add("log flushes", numbers.log_flushes);
        add("rounds with trees of more than one level", u64::from(numbers.tree_depth > 1));
        add("rounds with undo in files", u64::from(numbers.undo_file_bytes > 0));
        add("rounds with evictions", u64::from(numbers.evictions > 0));
        add("rounds with group commits", u64::from(numbers.commits_per_flush > 1.2));
    }

    /// Flips bits: every read must return the original data or an error that names the place.
    fn rot(&mut self) {
        self.vfs.core().cut = None;
        let durable = self.plan.options.durability;
        let places = {
            let mut core = self.vfs.core();
            let files = core.disk.files();
            let mut places = Vec::new();
            for (path, length) in files {
                let name = path.to_string_lossy().into_owned();
                let hit = name.ends_with(".log") || name.ends_with("data.quickbeam");
                if !hit || length == 0 || !self.random.chance(60) {
                    continue;
                }
                let reach = if self.random.chance(50) { length } else { length.min(80 << 10) };
                let (at, bit) = (self.random.next() % reach, self.random.below(8) as u8);
                core.disk.rot(&path, at, bit);
                places.push(format!("{name} at {at}"));
            }
            core.probe("rounds with bit rot");
            places
        };
        let environment = match self.open_once(self.options()) {
            Ok(environment) => environment,
            Err(
                Error::Corruption { .. }
                | Error::NotAnEnvironment { .. }
                | Error::FormatVersion { .. },
            ) => {
                return self.vfs.core().probe("bit rot found by opening");
            }
            Err(error) => return self.violation(format!("bit rot {places:?}: {error}")),
        };
        match dump(&environment) {
            // Damage to the newest log records cannot be distinguished from a torn end; no other
            // loss is allowed.
            Ok(state) => {
                let log = places.iter().any(|place| place.contains(".log"));
                let roots = places.iter().any(|place| place.contains("data.quickbeam"));
                let exempt = log || roots || durable == Durability::InMemory;
                let bound = if exempt { 0 } else { self.bound };
                let found = find(&open(&self.oracle).model, &state, bound);
                if let Err(what) = found {
                    self.violation(format!("bit rot {places:?}: {what}"));
                }
            }
            Err(Error::Corruption { .. }) => self.vfs.core().probe("bit rot found by reading"),
            Err(error) => self.violation(format!("bit rot {places:?}: {error}")),
        }
        self.end(environment);
    }
}
