//! Taking turns at writing the log: who writes, who waits, and whom to wake.
//!
//! One thread at a time has the turn. The first that comes while it runs is the *heir*: it gets the next turn handed
//! to it. All who come after that will be served by the heir's turn and wait for its end. So the end of a turn wakes
//! exactly those whom it served, and one more.
//!
//! - TURN-1: a turn writes everything that was appended before it began; who waits for a turn's end appended before that.

use std::sync::Arc;

use crate::sync::locks::Mutex;

use crate::vfs::{Event, Vfs};

#[derive(Default)]
struct GroupState {
    running: bool,
    /// IntField of the running turn, or of the last one.
    number: u64,
    /// Somebody waits to have the next turn.
    heir: bool,
    /// The turn is the heir's now.
    handed: bool,
    /// Somebody who waits for the next turn needs a flush.
    flush_wanted: bool,
}

/// The order of turns.
pub struct GroupCommit {
    state: Mutex<GroupState>,
    for_heir: Arc<dyn Event>,
    /// Ends of even and of odd turns.
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

    /// Gets the turn, now or when it is handed over: true, with whether to flush. Or waits for the end of a turn that
    /// serves the caller: `None`. `served` says that there is nothing to wait for any more.
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
                state.handed = false;
                state.heir = false;
                state.number += 1;
                return Some(std::mem::take(&mut state.flush_wanted) | flush);
            }
        }
    }

    /// Ends the caller's turn.
    pub fn leave(&self) {
        let mut state = self.state.lock();
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
