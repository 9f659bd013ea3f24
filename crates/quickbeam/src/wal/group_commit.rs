//! Group commit: elects the thread that writes the log and wakes the threads that it served.
//!
//! Above: [`Log`](super::Log). Below: the VFS's events.
//!
//! One thread at a time is the *leader*. The first thread that arrives while the leader writes is
//! the *heir*, the next leader. All threads that arrive after it are followers of the heir's round
//! and wait for the end of that round. So the end of a round wakes only the threads that it served,
//! and the heir.
//!
//! - TURN-1: a round writes every byte appended before it began. A follower that waits for a
//!   round's end appended its record before that round began.

use std::sync::Arc;

use crate::sync::locks::Mutex;

use crate::vfs::{Event, Vfs};

#[derive(Default)]
struct GroupState {
    running: bool,
    /// Number of the running round, or of the last one.
    number: u64,
    /// A thread waits to lead the next round.
    heir: bool,
    /// The previous leader has handed the lead to the heir.
    handed: bool,
    /// A thread that waits for the next round needs a flush.
    flush_wanted: bool,
}

/// The state of group commit.
pub struct GroupCommit {
    state: Mutex<GroupState>,
    for_heir: Arc<dyn Event>,
    /// Events for the ends of even and of odd rounds.
    ended: [Arc<dyn Event>; 2],
}

impl GroupCommit {
    pub fn new(vfs: &dyn Vfs) -> GroupCommit {
        GroupCommit {
            state: Mutex::default(),
            for_heir: vfs.event(),
            ended: [vfs.event(), vfs.event()],
        }
    }

    /// Makes the caller the leader, at once or when the current round ends, and returns whether to
    /// flush. Returns `None` if another leader served the caller, or if `served` says that no work
    /// is left.
    pub fn enter(&self, flush: bool, served: impl Fn() -> bool) -> Option<bool> {
        let mut state = self.state.lock();
        if served() {
            return None;
        }
        if !state.running {
            state.running = true;
            state.number += 1;
            return Some(std::mem::take(&mut state.flush_wanted) | flush);
        }
        state.flush_wanted |= flush;
        if state.heir {
            let event = &self.ended[(state.number + 1) as usize % 2];
            let seen = event.generation();
            drop(state);
            event.wait(seen, None);
            return None;
        }
        state.heir = true;
        loop {
            let seen = self.for_heir.generation();
            drop(state);
            self.for_heir.wait(seen, None);
            state = self.state.lock();
            if state.handed {
                invariant!(TURN_1, state.running, "round {} was not handed on", state.number);
                state.handed = false;
                state.heir = false;
                state.number += 1;
                return Some(std::mem::take(&mut state.flush_wanted) | flush);
            }
        }
    }

    /// Ends the caller's round and hands the lead to the heir, if there is one.
    pub fn leave(&self) {
        let mut state = self.state.lock();
        invariant!(
            TURN_1,
            state.running && !state.handed,
            "round {} ends and does not run",
            state.number
        );
        let ended = &self.ended[state.number as usize % 2];
        let heir = state.heir;
        state.handed = heir;
        state.running = heir;
        drop(state);
        if heir {
            self.for_heir.notify();
        }
        ended.notify();
    }
}
