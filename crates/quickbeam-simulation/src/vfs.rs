//! The simulated VFS: one seed decides which thread runs, the clock, which call fails, and when
//! power is lost.
//!
//! Above: the engine, through its VFS ([`quickbeam::vfs`]), and the clients. Below:
//! [`crate::disk`], [`crate::scheduler`]. A call may first yield to another thread. Then it is
//! traced; it may be the last call before a cut, or fail; otherwise it is applied to the disk.
//!
//! - WORLD-1: after a cut every call on files fails until the restart, and nothing is changed any
//!   more.
//! - WORLD-2: a simulation has no state outside itself, so several can run in parallel in one
//!   process.

mod file;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use quickbeam::failpoints::{Probe, observe};
use quickbeam::sync::locks::take_turns;
use quickbeam::vfs::{Event, File, OpenMode, Task, Vfs};

use crate::disk::{Disk, Medium};
use crate::faults::{CallKind, Cut, Fault, Full, Phase, Restart, Target};
use crate::random::Random;
use crate::scheduler::{Baton, Scheduler, Status, Stuck};
use crate::trace::Trace;
use file::SimulatedFile;
pub use file::stored_in_vain;

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
    flush_failed_by: Option<usize>,
    flush_known: bool,
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
    cut_off: bool,
    phases: [u32; 3],
    random: Random,
    slowness: u64,
}

/// The rounds of the thread that writes the log in the background. Commits before the beginning of
/// a round are written at its end, and the next round begins at most an interval later.
#[derive(Clone, Copy, Default)]
pub struct Background {
    /// Wait between two rounds in nanoseconds.
    pub interval: u64,
    /// The newest commit when the current round began.
    began: u64,
    /// The newest commit that is written, unless a call failed.
    pub written: u64,
}

/// The name of that thread.
const LOG_THREAD: &str = "quickbeam-log";

/// How a simulation ended.
enum End {
    Ended,
    Stuck,
}

struct Inner {
    core: Mutex<Core>,
    done: Sender<End>,
}

/// A handle to a simulation; cloning returns another handle to the same one.
#[derive(Clone)]
pub struct SimVfs {
    inner: Arc<Inner>,
}

/// Called with a transaction's commit timestamp once its position in commit order is fixed.
pub type OnCommit = Box<dyn FnMut(u64)>;

thread_local! {
    /// The callback of the thread's client for its transaction's commit timestamp.
    static COMMITTED: RefCell<Option<OnCommit>> = const { RefCell::new(None) };
    /// Message of the thread's panic.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
    static SIMULATED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Sets the calling thread's callback for its transaction's commit timestamp.
pub fn on_commit(work: Option<OnCommit>) {
    COMMITTED.with(|own| *own.borrow_mut() = work);
}

/// Records panics of simulated threads as violations instead of printing them.
fn catch_panics() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if SIMULATED.get() {
                PANIC.with(|own| {
                    own.borrow_mut().get_or_insert_with(|| info.to_string());
                });
            } else {
                before(info);
            }
        }));
    });
}

fn gone() -> io::Error {
    io::Error::other("the machine has stopped")
}

impl Core {
    fn new(seed: u64, disk: Disk) -> Core {
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
    fn note_progress(&mut self) {
        if self.flush_failed_by == Some(self.scheduler.current()) {
            self.flush_known = true;
        }
    }

    /// Returns whether the current thread is the log's background thread and now waits for its next
    /// round: that wait lasts exactly an interval.
    fn note_wait(&mut self, timeout: Option<Duration>) -> bool {
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

    fn phase(&mut self, phase: Phase) -> &mut u32 {
        let at = match phase {
            Phase::Any | Phase::Commit => 0,
            Phase::Checkpoint => 1,
            Phase::Recovery => 2,
        };
        &mut self.phases[at]
    }

    /// Returns whether this call is the one at which everything stops.
    fn is_cut_here(&mut self) -> bool {
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
    fn fault(&mut self, kind: CallKind, path: &Path) -> Option<io::Error> {
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
    fn has_room(&mut self, more: u64, writes: bool) -> bool {
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

    fn charge(&mut self, kind: CallKind) {
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

fn broken() -> io::Error {
    io::Error::other("the device reported an error")
}

/// The partial effect of a call that is the last one before the cut, or fails.
type Partial<'a> = &'a dyn Fn(&mut Core, &mut Random);

impl SimVfs {
    /// Runs `body` as the first thread of a new simulation, until all its threads have ended, and
    /// returns the final state.
    pub fn run(
        seed: u64,
        disk: Disk,
        words: bool,
        body: impl FnOnce(&SimVfs) + Send + 'static,
    ) -> Core {
        catch_panics();
        let (done, end) = channel();
        let mut random = Random::part(seed, 0xd15c);
        let slowness = random.pick(&[1, 1, 1, 10, 40]);
        let mut trace = Trace::default();
        trace.words = words.then(Vec::new);
        let core = Core { slowness, random, trace, ..Core::new(seed, disk) };
        let vfs = SimVfs { inner: Arc::new(Inner { core: Mutex::new(core), done }) };
        let handle = vfs.clone();
        let first = vfs.start("driver", Box::new(move || body(&handle)));
        vfs.finish(first, &end)
    }

    /// Starts the first thread and waits for the end of all threads.
    fn finish(self, first: io::Result<JoinHandle<()>>, end: &Receiver<End>) -> Core {
        let mut stuck = true;
        match first {
            Ok(first) => {
                let baton = self.core().scheduler.baton(0);
                baton.pass();
                if matches!(end.recv(), Ok(End::Ended)) {
                    stuck = first.join().is_err();
                }
            }
            Err(error) => self.core().violation(format!("no thread: {error}")),
        }
        let mut core = self.core();
        if stuck && core.violations.is_empty() {
            core.violation("the run came to no end".into());
        }
        // Stuck threads keep the old one, which is no longer used.
        let empty = Core { cut_off: true, ..Core::new(0, Disk::new(Medium::default())) };
        std::mem::replace(&mut *core, empty)
    }

    /// Locks the state. The guard must not be held over a call of the engine.
    pub fn core(&self) -> MutexGuard<'_, Core> {
        self.inner.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets simulated time pass.
    pub fn sleep(&self, time: Duration) {
        let event = self.event();
        event.wait(event.generation(), Some(time));
    }

    /// Records a client's action in words.
    pub fn say(&self, words: impl FnOnce() -> String) {
        let mut core = self.core();
        let name = core.scheduler.name().to_owned();
        core.trace.say(|| format!("{name:>32}: {}", words()));
    }

    /// Returns the VFS for the engine.
    #[must_use]
    pub fn as_world(&self) -> Arc<dyn Vfs> {
        Arc::new(self.clone())
    }

    /// Marks the beginning of a phase.
    pub fn enter(&self, phase: Phase) {
        *self.core().phase(phase) += 1;
    }

    /// Marks the end of a phase.
    pub fn leave(&self, phase: Phase) {
        let mut core = self.core();
        let count = core.phase(phase);
        *count = count.saturating_sub(1);
    }

    fn start(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>> {
        let (_, baton) = self.core().scheduler.add(name);
        let vfs = self.clone();
        std::thread::Builder::new()
            .name(name.to_owned())
            .stack_size(1 << 20)
            .spawn(move || vfs.live(&baton, body))
    }

    /// Runs a simulated thread from start to end.
    fn live(&self, baton: &Baton, body: Box<dyn FnOnce() + Send>) {
        SIMULATED.set(true);
        baton.claim();
        baton.wait();
        let vfs = self.clone();
        take_turns(Some(Rc::new(move || vfs.yield_now())));
        let vfs = self.clone();
        observe(Some(Rc::new(move |moment| vfs.hear(moment))));
        if catch_unwind(AssertUnwindSafe(body)).is_err() {
            let words = PANIC.with(|own| own.borrow_mut().take()).unwrap_or_default();
            let mut core = self.core();
            core.violation(format!("panic: {words}"));
            core.cut_now();
        }
        on_commit(None);
        take_turns(None);
        observe(None);
        let mut core = self.core();
        core.scheduler.set_status(Status::Ended);
        match core.scheduler.draw() {
            Ok(Some(next)) => {
                let next = core.scheduler.baton(next);
                drop(core);
                next.pass();
            }
            Ok(None) => {
                drop(core);
                let _ = self.inner.done.send(End::Ended);
            }
            Err(stuck) => {
                self.stand_still(core, stuck);
            }
        }
    }

    fn hear(&self, moment: Probe) {
        match moment {
            Probe::Between => self.give_way(false),
            Probe::Committed(timestamp) => {
                self.core().newest = timestamp;
                COMMITTED.with(|own| {
                    if let Some(work) = &mut *own.borrow_mut() {
                        work(timestamp);
                    }
                });
            }
            Probe::CheckpointBegins => self.enter(Phase::Checkpoint),
            Probe::CheckpointEnds => self.leave(Phase::Checkpoint),
        }
    }

    fn stand_still(&self, mut core: MutexGuard<'_, Core>, Stuck(words): Stuck) {
        core.violation(words);
        drop(core);
        let _ = self.inner.done.send(End::Stuck);
    }

    /// Passes the baton to the thread that is drawn, and waits to get it back.
    fn hand_over(&self, mut core: MutexGuard<'_, Core>) {
        let me = core.scheduler.current();
        let drawn = core.scheduler.draw();
        match drawn {
            Ok(Some(next)) if next != me => {
                core.trace.add(&[1, next as u64]);
                let mine = core.scheduler.baton(me);
                let next = core.scheduler.baton(next);
                drop(core);
                next.pass();
                mine.wait();
            }
            Ok(_) => {}
            Err(stuck) => {
                self.stand_still(core, stuck);
                loop {
                    // The remaining threads of this simulation never run again.
                    std::thread::park();
                }
            }
        }
    }

    fn give_way(&self, call: bool) {
        let mut core = self.core();
        if core.scheduler.draws_switch(call) {
            self.hand_over(core);
        }
    }

    fn block(&self, mut core: MutexGuard<'_, Core>, status: Status) {
        core.scheduler.set_status(status);
        self.hand_over(core);
    }

    /// Makes a call on files.
    fn call<T>(
        &self,
        kind: CallKind,
        path: &Path,
        values: &[u64],
        partial: Partial<'_>,
        work: impl FnOnce(&mut Core) -> io::Result<T>,
    ) -> io::Result<T> {
        self.give_way(true);
        let done = {
            let mut guard = self.core();
            let core = &mut *guard;
            if core.cut_off {
                return Err(gone());
            }
            core.note_progress();
            let thread = core.scheduler.current() as u64;
            core.trace.add(&[2, thread, kind as u64]);
            core.trace.add(values);
            core.trace.add_bytes(path.as_os_str().as_encoded_bytes());
            core.calls += 1;
            core.changes += u64::from(kind.changes());
            core.charge(kind);
            let mut random = core.random.clone();
            random.next();
            core.random.next();
            if kind.changes() && core.is_cut_here() {
                if random.chance(70) {
                    partial(core, &mut random);
                }
                core.cut_now();
                Err(gone())
            } else if let Some(error) = core.fault(kind, path) {
                if random.chance(50) {
                    partial(core, &mut random);
                }
                core.trace.say(|| format!("  fault: {error}"));
                Err(error)
            } else {
                work(core)
            }
        };
        let mut core = self.core();
        core.trace.add(&[u64::from(done.is_ok())]);
        let failed = done.as_ref().err().map(ToString::to_string);
        if core.trace.words.is_some() {
            let (name, now) = (core.scheduler.name().to_owned(), core.scheduler.now / 1000);
            core.trace.say(|| {
                let failed = failed.map(|error| format!(" -> {error}")).unwrap_or_default();
                format!("{now:>9} {name:<22} {kind:?} {} {values:?}{failed}", path.display())
            });
        }
        drop(core);
        self.give_way(true);
        done
    }
}

fn nothing(_: &mut Core, _: &mut Random) {}

struct SimulatedEvent {
    vfs: SimVfs,
    number: usize,
}

impl Event for SimulatedEvent {
    fn generation(&self) -> u64 {
        self.vfs.core().scheduler.generation(self.number)
    }

    fn wait(&self, seen: u64, timeout: Option<Duration>) {
        let mut core = self.vfs.core();
        core.note_progress();
        let ends_round = core.note_wait(timeout);
        if core.scheduler.generation(self.number) > seen {
            if ends_round {
                core.background.began = core.newest;
            }
            return;
        }
        let in_nanos = |timeout: Duration| u64::try_from(timeout.as_nanos()).ok();
        let deadline = timeout.and_then(in_nanos).map(|timeout| core.scheduler.now + timeout);
        self.vfs.block(core, Status::Waiting { event: self.number, deadline });
        if ends_round {
            let mut core = self.vfs.core();
            core.background.began = core.newest;
        }
    }

    fn notify(&self) {
        let mut core = self.vfs.core();
        core.note_progress();
        core.scheduler.notify(self.number);
        drop(core);
        self.vfs.give_way(true);
    }
}

struct SimulatedTask {
    vfs: SimVfs,
    thread: usize,
    handle: JoinHandle<()>,
}

impl Task for SimulatedTask {
    fn join(self: Box<Self>) {
        let core = self.vfs.core();
        if !core.scheduler.has_ended(self.thread) {
            self.vfs.block(core, Status::Joining(self.thread));
        } else {
            drop(core);
        }
        // The thread has passed its baton and ends without further scheduling. Its panic is
        // recorded as a violation.
        let _ = self.handle.join();
    }
}

impl Vfs for SimVfs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let through = mode == OpenMode::WriteThrough;
        let inode = self.call(CallKind::Open, path, &[mode as u64], &nothing, |core| {
            if through && !core.disk.medium.write_through {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            match core.disk.find(path) {
                Some(inode) => Ok(inode),
                None if mode == OpenMode::Create => core.disk.create(path),
                None => Err(io::ErrorKind::NotFound.into()),
            }
        })?;
        let locks = std::sync::atomic::AtomicBool::new(false);
        let (vfs, path) = (self.clone(), path.to_owned());
        Ok(Arc::new(SimulatedFile { vfs, path, inode, through, locks }))
    }

    fn exists(&self, path: &Path) -> bool {
        self.core().disk.exists(path)
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        self.call(CallKind::Name, path, &[1], &nothing, |core| {
            core.disk.create_folder(path);
            Ok(())
        })
    }

    fn list_directory(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        self.call(CallKind::Name, path, &[2], &nothing, |core| core.disk.list(path))
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        let partial =
            |core: &mut Core, random: &mut Random| core.disk.fail_flush_folder(random, path);
        self.call(CallKind::Name, path, &[3], &partial, |core| {
            core.disk.flush_folder(path);
            Ok(())
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let partial = |core: &mut Core, _: &mut Random| drop(core.disk.rename(from, to));
        self.call(CallKind::Name, from, &[4], &partial, |core| {
            if from.extension().is_some_and(|extension| extension == "log") {
                core.probe("segments used again");
            }
            core.disk.rename(from, to)
        })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let partial = |core: &mut Core, _: &mut Random| drop(core.disk.remove(path));
        self.call(CallKind::Name, path, &[5], &partial, |core| core.disk.remove(path))
    }

    fn now(&self) -> Duration {
        let mut core = self.core();
        core.scheduler.now += 50;
        Duration::from_nanos(core.scheduler.now)
    }

    fn random(&self) -> u64 {
        self.core().random.next()
    }

    fn yield_now(&self) {
        let mut core = self.core();
        match core.scheduler.note_yield() {
            Ok(()) => self.hand_over(core),
            Err(stuck) => {
                self.stand_still(core, stuck);
                loop {
                    std::thread::park();
                }
            }
        }
    }

    fn event(&self) -> Arc<dyn Event> {
        let number = self.core().scheduler.add_event();
        Arc::new(SimulatedEvent { vfs: self.clone(), number })
    }

    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> io::Result<Box<dyn Task>> {
        let handle = self.start(name, body)?;
        let thread = self.core().scheduler.last();
        Ok(Box::new(SimulatedTask { vfs: self.clone(), thread, handle }))
    }
}
