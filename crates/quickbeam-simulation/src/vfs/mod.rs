//! The simulated VFS: one seed decides which thread runs, the clock, which call fails, and when
//! power is lost.
//!
//! Above: the engine, through its VFS ([`quickbeam::vfs`]), and the clients. Below:
//! [`crate::vfs::disk`], [`crate::vfs::scheduler`]. A call may first yield to another thread. Then
//! it is traced; it may be the last call before a cut, or fail; otherwise it is applied to the
//! disk.
//!
//! - WORLD-1: after a cut every call on files fails until the restart, and nothing is changed any
//!   more.
//! - WORLD-2: a simulation has no state outside itself, so several can run in parallel in one
//!   process.

mod core;
pub mod disk;
mod event;
pub mod faults;
mod file;
pub mod scheduler;

use std::cell::RefCell;
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
use quickbeam::sync::start_as_thread;
use quickbeam::vfs::{Event, File, OpenMode, Task, Vfs};

use crate::trace::Trace;
use core::gone;
pub use core::{Background, Core};
use disk::{Disk, Medium};
use event::{SimulatedEvent, SimulatedTask};
use faults::{CallKind, Phase};
use file::SimulatedFile;
pub use file::stored_in_vain;
use quickbeam_testing::Random;
use scheduler::{Baton, Status, Stuck};

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
        let (number, baton) = self.core().scheduler.add(name);
        let vfs = self.clone();
        std::thread::Builder::new()
            .name(name.to_owned())
            .stack_size(1 << 20)
            .spawn(move || vfs.live(number, &baton, body))
    }

    /// Runs a simulated thread from start to end.
    fn live(&self, number: usize, baton: &Baton, body: Box<dyn FnOnce() + Send>) {
        SIMULATED.set(true);
        start_as_thread(number);
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
