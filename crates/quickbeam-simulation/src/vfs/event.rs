//! Events and tasks of the simulated VFS: a wait gives the turn to another thread.

use super::SimVfs;
use std::thread::JoinHandle;
use std::time::Duration;

use quickbeam::vfs::{Event, Task};

use super::scheduler::Status;

pub(super) struct SimulatedEvent {
    pub(super) vfs: SimVfs,
    pub(super) number: usize,
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

pub(super) struct SimulatedTask {
    pub(super) vfs: SimVfs,
    pub(super) thread: usize,
    pub(super) handle: JoinHandle<()>,
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
