//! The state of a simulation, and the rules by which its calls fail.
//!
//! Above: the simulated VFS. Below: the scheduler, the disk and the faults.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use super::disk::Disk;
use super::faults::{CallKind, Cut, Fault, Full, Phase, Restart, Target};
use super::scheduler::Scheduler;
use crate::trace::Trace;
use quickbeam_testing::Random;

/// The whole state of a simulation.
pub struct Core {
    /// The threads and the clock.
    pub scheduler: Scheduler,
    /// The files.
    pub disk: Disk,
    /// The trace of events.
    pub trace: Trace,
    /// Calls that will fail.
    pub faults: Vec<Fault>,
    /// A period with a full device.
    pub full: Option<Full>,
    /// The next cut.
    pub cut: Option<Cut>,
    /// A call that fails by its number, for the exhaustive cases: number, and whether the device is
    /// full.
    pub fail_call: Option<(u64, bool)>,
    /// Calls on files so far, and those of them that change something.
    pub calls: u64,
    /// See `calls`.
    pub changes: u64,
    /// The phases that were active at the cut.
    pub cut_in: Vec<Phase>,
    /// How often each probe was reached.
    pub probes: BTreeMap<&'static str, u64>,
    /// The violations found.
    pub violations: Vec<String>,
    /// The newest commit of the current engine.
    pub newest: u64,
    /// A flush of the log or the data file has failed since the environment was opened.
    pub flush_failed: bool,
    /// The thread whose flush failed. Once it has continued, the failure counts as known.
    pub(super) flush_failed_by: Option<usize>,
    pub(super) flush_known: bool,
    /// Faults that were met.
    pub met: u64,
    /// Faults met, and calls refused because the device was full, since the environment was last
    /// opened.
    pub met_now: u64,
    /// See `met_now`.
    pub refused_now: u64,
    /// Calls refused since the device became full.
    pub refused: u32,
    /// The guarantees of the thread that writes the log of `NoSync` commits.
    pub background: Background,
    pub(super) cut_off: bool,
    pub(super) phases: [u32; 3],
    pub(super) random: Random,
    pub(super) slowness: u64,
}

/// The rounds of the thread that writes the log in the background. Commits before the beginning of
/// a round are written at its end, and the next round begins at most an interval later.
#[derive(Clone, Copy, Default)]
pub struct Background {
    /// Wait between two rounds in nanoseconds.
    pub interval: u64,
    /// The newest commit when the current round began.
    pub(super) began: u64,
    /// The newest commit that is written, unless a call failed.
    pub written: u64,
}

/// The name of that thread.
pub(super) const LOG_THREAD: &str = "quickbeam-log";

pub(super) fn gone() -> io::Error {
    io::Error::other("the machine has stopped")
}

pub(super) fn broken() -> io::Error {
    io::Error::other("the device reported an error")
}

impl Core {
    pub(super) fn new(seed: u64, disk: Disk) -> Core {
        Core {
            scheduler: Scheduler::new(seed),
            disk,
            trace: Trace::default(),
            faults: Vec::new(),
            full: None,
            cut: None,
            fail_call: None,
            calls: 0,
            changes: 0,
            cut_in: Vec::new(),
            probes: BTreeMap::new(),
            violations: Vec::new(),
            newest: 0,
            flush_failed: false,
            flush_failed_by: None,
            flush_known: false,
            met: 0,
            met_now: 0,
            refused_now: 0,
            refused: 0,
            background: Background::default(),
            cut_off: false,
            phases: [0; 3],
            random: Random::new(seed),
            slowness: 1,
        }
    }

    /// Counts a probe.
    pub fn probe(&mut self, what: &'static str) {
        *self.probes.entry(what).or_default() += 1;
    }

    /// Records a violation.
    pub fn violation(&mut self, what: String) {
        self.trace.say(|| format!("VIOLATION {what}"));
        self.violations.push(what);
    }

    /// Returns whether the engine has had time to see that a flush failed.
    pub fn flush_known(&self) -> bool {
        self.flush_known
    }

    /// Records that the current thread continues.
    pub(super) fn note_progress(&mut self) {
        if self.flush_failed_by == Some(self.scheduler.current()) {
            self.flush_known = true;
        }
    }

    /// Returns whether the current thread is the log's background thread and now waits for its next
    /// round: that wait lasts exactly an interval.
    pub(super) fn note_wait(&mut self, timeout: Option<Duration>) -> bool {
        let nanos = timeout.map(|timeout| timeout.as_nanos());
        let ends_round = self.scheduler.name() == LOG_THREAD
            && nanos == Some(u128::from(self.background.interval));
        if ends_round && !self.cut_off {
            self.background.written = self.background.began;
        }
        ends_round
    }

    /// Returns whether all calls fail now.
    pub fn is_cut_off(&self) -> bool {
        self.cut_off
    }

    /// Makes all calls fail from now on.
    pub fn cut_now(&mut self) {
        if self.cut_off {
            return;
        }
        self.cut_off = true;
        self.cut = None;
        self.trace.say(|| "CUT".into());
        let names = [Phase::Commit, Phase::Checkpoint, Phase::Recovery];
        let on = names.into_iter().zip(self.phases).filter(|(_, count)| *count > 0);
        self.cut_in = on.map(|(phase, _)| phase).collect();
        for (phase, what) in
            names.into_iter().zip(["cut in a commit", "cut in a checkpoint", "cut in a recovery"])
        {
            if self.cut_in.contains(&phase) {
                self.probe(what);
            }
        }
        self.probe("cuts");
    }

    /// Restarts the machine.
    pub fn restart(&mut self, restart: Restart) {
        match restart {
            Restart::Process => {
                self.disk.lose_process();
                self.probe("process deaths");
            }
            Restart::Power(loss) => {
                self.disk.lose_power(&mut self.random, loss);
                self.probe("power losses");
            }
        }
        self.cut_off = false;
        self.phases = [0; 3];
        self.go_on();
        self.trace.add(&[77]);
    }

    /// Resets the state of the previous environment before the next opening.
    pub fn go_on(&mut self) {
        self.newest = 0;
        self.met_now = 0;
        self.refused_now = 0;
        self.background =
            Background { interval: self.background.interval, ..Background::default() };
        self.flush_failed = false;
        self.flush_failed_by = None;
        self.flush_known = false;
        self.disk.limit = u64::MAX;
    }

    pub(super) fn phase(&mut self, phase: Phase) -> &mut u32 {
        let at = match phase {
            Phase::Any | Phase::Commit => 0,
            Phase::Checkpoint => 1,
            Phase::Recovery => 2,
        };
        &mut self.phases[at]
    }

    /// Returns whether this call is the one at which everything stops.
    pub(super) fn is_cut_here(&mut self) -> bool {
        let Some(mut cut) = self.cut else { return false };
        if cut.phase != Phase::Any && *self.phase(cut.phase) == 0 {
            return false;
        }
        let here = cut.after == 0;
        cut.after = cut.after.saturating_sub(1);
        self.cut = Some(cut);
        here
    }

    /// Returns the error that this call fails with, if any.
    pub(super) fn fault(&mut self, kind: CallKind, path: &Path) -> Option<io::Error> {
        if let Some((number, full)) = self.fail_call
            && number + 1 == self.calls
        {
            self.met += 1;
            self.met_now += 1;
            let no_room = full && matches!(kind, CallKind::Write | CallKind::Length);
            let error = if no_room { io::ErrorKind::StorageFull.into() } else { broken() };
            return Some(error);
        }
        let name = path.to_string_lossy();
        let (data, log) = (name.ends_with("data.quickbeam"), name.contains("/log/"));
        let fault = self.faults.iter_mut().find(|fault| {
            fault.kind == kind
                && match fault.target {
                    Target::Any => true,
                    Target::Data => data,
                    Target::Log => log,
                }
        })?;
        if fault.after > 0 {
            fault.after -= 1;
            return None;
        }
        fault.times = fault.times.saturating_sub(1);
        let is_last = fault.times == 0;
        if is_last {
            self.faults.retain(|fault| fault.times > 0);
        }
        self.met += 1;
        self.met_now += 1;
        self.probe(match kind {
            CallKind::Open => "failed openings",
            CallKind::Read => "failed reads",
            CallKind::Write => "failed writes",
            CallKind::Flush => "failed flushes",
            CallKind::Length => "failed changes of length",
            CallKind::Name => "failed changes of names",
        });
        Some(broken())
    }

    /// Returns whether there is space for `more` bytes.
    pub(super) fn has_room(&mut self, more: u64, writes: bool) -> bool {
        if let Some(full) = &mut self.full
            && writes
        {
            if full.after == 0 {
                if self.disk.limit == u64::MAX {
                    self.disk.limit = self.disk.used() + full.slack;
                }
            } else {
                full.after -= 1;
            }
        }
        if self.disk.limit == u64::MAX || more == 0 || self.disk.used() + more <= self.disk.limit {
            return true;
        }
        self.refused += 1;
        self.refused_now += 1;
        self.probe("refused for want of room");
        if self.full.is_some_and(|full| self.refused >= full.refusals) {
            self.make_room();
        }
        false
    }

    /// Makes space free again.
    pub fn make_room(&mut self) {
        if self.disk.limit != u64::MAX {
            self.probe("room came back");
        }
        self.disk.limit = u64::MAX;
        self.full = None;
        self.refused = 0;
    }

    pub(super) fn charge(&mut self, kind: CallKind) {
        let cost = match kind {
            CallKind::Open | CallKind::Name => 20_000,
            CallKind::Read => 30_000,
            CallKind::Write | CallKind::Length => 10_000,
            CallKind::Flush => 300_000,
        };
        let jitter = self.random.below(cost) as u64;
        self.scheduler.now += (cost as u64 + jitter) * self.slowness;
    }
}
