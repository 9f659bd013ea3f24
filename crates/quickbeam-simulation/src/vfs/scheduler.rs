//! The scheduler: exactly one thread runs, and the seed decides which one continues.
//!
//! Above: [`crate::vfs`]. Below: nothing. Every thread has a baton. A thread that yields draws the
//! next one among the runnable threads, passes it the baton and sleeps until it gets its own again.
//! Time advances only by the cost of the running thread's calls; when no thread can run, it jumps
//! to the next deadline.
//!
//! - SCHED-1: only the thread that is `current` runs code of the engine, of a client, or of the
//!   simulation.
//! - SCHED-2: each random choice depends only on the seed and on earlier choices.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::thread::Thread;

use quickbeam_testing::Random;

/// Permission to run, for one thread.
#[derive(Default)]
pub struct Baton {
    mine: AtomicBool,
    thread: std::sync::OnceLock<Thread>,
}

impl Baton {
    /// Sets the baton's thread; called by that thread.
    pub fn claim(&self) {
        let _ = self.thread.set(std::thread::current());
    }

    /// Passes the baton to its thread.
    pub fn pass(&self) {
        self.mine.swap(true, Ordering::SeqCst);
        // Either the thread is known here, or its first check finds the baton.
        fence(Ordering::SeqCst);
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Sleeps until the baton is passed.
    pub fn wait(&self) {
        fence(Ordering::SeqCst);
        while !self.mine.swap(false, Ordering::SeqCst) {
            std::thread::park();
        }
    }
}

/// Whether and why a thread cannot run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It can run.
    Ready,
    /// It waits for an event, or for a time.
    Waiting {
        /// The event.
        event: usize,
        /// The time.
        deadline: Option<u64>,
    },
    /// It waits for a thread to end.
    Joining(usize),
    /// It has ended.
    Ended,
}

struct Entry {
    name: String,
    status: Status,
    baton: Arc<Baton>,
}

/// Consecutive yields without progress after which time jumps.
const IDLE_YIELDS: u32 = 64;
/// Consecutive yields without progress that count as a livelock.
const LIVELOCK: u32 = 200_000;

/// The threads of a simulation and its clock.
pub struct Scheduler {
    entries: Vec<Entry>,
    current: usize,
    /// Nanoseconds.
    pub now: u64,
    random: Random,
    events: Vec<u64>,
    yields: u32,
    /// In how many of 1024 calls, and of other moments, another thread continues.
    pub switch_at_calls: usize,
    /// See `switch_at_calls`.
    pub switch_between: usize,
}

/// No thread can run.
#[derive(Debug)]
pub struct Stuck(pub String);

impl Scheduler {
    /// Creates a scheduler without threads.
    pub fn new(seed: u64) -> Scheduler {
        let mut random = Random::part(seed, 0x5c4e);
        let switch_at_calls = random.pick(&[1024, 512, 256, 64]);
        let switch_between = random.pick(&[0, 8, 32, 128]);
        Scheduler {
            entries: Vec::new(),
            current: 0,
            now: 0,
            random,
            events: Vec::new(),
            yields: 0,
            switch_at_calls,
            switch_between,
        }
    }

    /// Registers a thread; it runs when it is drawn.
    pub fn add(&mut self, name: &str) -> (usize, Arc<Baton>) {
        let baton = Arc::new(Baton::default());
        let status = Status::Ready;
        self.entries.push(Entry { name: name.to_owned(), status, baton: baton.clone() });
        (self.entries.len() - 1, baton)
    }

    /// Returns the thread added last.
    pub fn last(&self) -> usize {
        self.entries.len() - 1
    }

    /// Returns the running thread.
    pub fn current(&self) -> usize {
        self.current
    }

    /// Returns the running thread's name.
    pub fn name(&self) -> &str {
        self.entries.get(self.current).map_or("", |entry| &entry.name)
    }

    /// Returns the baton of a thread.
    pub fn baton(&self, thread: usize) -> Arc<Baton> {
        self.entries[thread].baton.clone()
    }

    /// Returns whether the thread has ended.
    pub fn has_ended(&self, thread: usize) -> bool {
        self.entries[thread].status == Status::Ended
    }

    /// Returns the names of threads that have not ended.
    pub fn running(&self) -> Vec<&str> {
        let running = self.entries.iter().filter(|entry| entry.status != Status::Ended);
        running.map(|entry| entry.name.as_str()).collect()
    }

    /// Creates an event.
    pub fn add_event(&mut self) -> usize {
        self.events.push(0);
        self.events.len() - 1
    }

    /// Returns an event's generation.
    pub fn generation(&self, event: usize) -> u64 {
        self.events[event]
    }

    /// Advances an event and wakes its waiters.
    pub fn notify(&mut self, event: usize) {
        self.yields = 0;
        self.events[event] += 1;
        for entry in &mut self.entries {
            if matches!(entry.status, Status::Waiting { event: of, .. } if of == event) {
                entry.status = Status::Ready;
            }
        }
    }

    /// Draws whether to yield at a VFS call (`call`) or at another moment.
    pub fn draws_switch(&mut self, call: bool) -> bool {
        if call {
            self.yields = 0;
        }
        let share = if call { self.switch_at_calls } else { self.switch_between };
        self.entries.len() > 1 && share > 0 && self.random.below(1024) < share
    }

    /// Sets the status of the current thread.
    pub fn set_status(&mut self, status: Status) {
        self.yields = 0;
        if status == Status::Ended {
            let ended = self.current;
            for entry in &mut self.entries {
                if entry.status == Status::Joining(ended) {
                    entry.status = Status::Ready;
                }
            }
        }
        self.entries[self.current].status = status;
    }

    /// Records that the current thread can only wait for another one.
    pub fn note_yield(&mut self) -> Result<(), Stuck> {
        self.now += 1000;
        self.yields += 1;
        if self.yields > LIVELOCK {
            return Err(Stuck(self.describe("nobody gets on")));
        }
        if self.yields.is_multiple_of(IDLE_YIELDS)
            && let Some(deadline) = self.next_deadline()
        {
            self.now = self.now.max(deadline);
        }
        Ok(())
    }

    fn next_deadline(&self) -> Option<u64> {
        let deadline = |entry: &Entry| match entry.status {
            Status::Waiting { deadline, .. } => deadline,
            _ => None,
        };
        self.entries.iter().filter_map(deadline).min()
    }

    fn describe(&self, what: &str) -> String {
        let threads = self.entries.iter().map(|entry| format!("{} {:?}", entry.name, entry.status));
        format!("{what}: {}", threads.collect::<Vec<_>>().join("; "))
    }

    /// Draws the next thread. Returns `None` if every thread has ended.
    pub fn draw(&mut self) -> Result<Option<usize>, Stuck> {
        loop {
            let now = self.now;
            for entry in &mut self.entries {
                if matches!(entry.status, Status::Waiting { deadline: Some(at), .. } if at <= now) {
                    entry.status = Status::Ready;
                }
            }
            let ready = self.entries.iter().filter(|e| e.status == Status::Ready).count();
            if ready > 0 {
                let drawn = self.random.below(ready);
                let is_ready = |(_, entry): &(usize, &Entry)| entry.status == Status::Ready;
                let next = self.entries.iter().enumerate().filter(is_ready).nth(drawn);
                self.current = next.map_or(self.current, |(at, _)| at);
                return Ok(Some(self.current));
            }
            if self.entries.iter().all(|entry| entry.status == Status::Ended) {
                return Ok(None);
            }
            match self.next_deadline() {
                Some(deadline) => self.now = deadline,
                None => return Err(Stuck(self.describe("everybody waits"))),
            }
        }
    }
}
