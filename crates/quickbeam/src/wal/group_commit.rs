//! Group commit: elects the thread that writes the log and wakes the threads that it served.
//!
//! Above: [`Log`](super::Log). Below: the VFS's events.
//!
//! One thread at a time is the *leader*. The first thread that arrives while the leader writes
//! leads the next round. All threads that arrive after it are *followers* of that next round and
//! wait for its end. So the end of a round wakes only the threads that it served, and the next
//! leader.
//!
//! - GROUP-1: a round writes every byte appended before it began. A follower that waits for a
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
    next_leader: bool,
    /// The previous leader has handed the lead to the next one.
    lead_handed_over: bool,
    /// A thread that waits for the next round needs a flush.
    flush_wanted: bool,
}

/// The state of group commit.
pub struct GroupCommit {
    state: Mutex<GroupState>,
    next_leader_event: Arc<dyn Event>,
    /// Events for the ends of even and of odd rounds.
    ended: [Arc<dyn Event>; 2],
}

impl GroupCommit {
    pub fn new(vfs: &dyn Vfs) -> GroupCommit {
        GroupCommit {
            state: Mutex::default(),
            next_leader_event: vfs.event(),
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
        if state.next_leader {
            let event = &self.ended[(state.number + 1) as usize % 2];
            let seen = event.generation();
            drop(state);
            event.wait(seen, None);
            return None;
        }
        state.next_leader = true;
        loop {
            let seen = self.next_leader_event.generation();
            drop(state);
            self.next_leader_event.wait(seen, None);
            state = self.state.lock();
            if state.lead_handed_over {
                invariant!(GROUP_1, state.running, "round {} was not handed on", state.number);
                state.lead_handed_over = false;
                state.next_leader = false;
                state.number += 1;
                return Some(std::mem::take(&mut state.flush_wanted) | flush);
            }
        }
    }

    /// Ends the caller's round and hands the lead to the next leader, if one waits.
    pub fn leave(&self) {
        let mut state = self.state.lock();
        invariant!(
            GROUP_1,
            state.running && !state.lead_handed_over,
            "round {} ends and does not run",
            state.number
        );
        let ended = &self.ended[state.number as usize % 2];
        let next_leader = state.next_leader;
        state.lead_handed_over = next_leader;
        state.running = next_leader;
        drop(state);
        if next_leader {
            self.next_leader_event.notify();
        }
        ended.notify();
    }
}
