//! What transactions allocate again and again, kept from one for the next.
//!
//! Above: beginning and ending a transaction. Each thread keeps a few of these, whatever environment they were used in; each is as good as
//! empty while it is kept. So threads that begin and end transactions do not meet here.

use std::cell::RefCell;
use std::sync::Arc;

use super::State;
use super::catalog::Used;
use super::validate::ReadSet;
use crate::access::btree::{Finger, Tree};
use crate::log::Redo;

/// Memory that outgrew this many bytes is not kept.
const LARGEST_KEPT: usize = 1 << 20;

/// Memory of so many transactions is kept: more are seldom open at once in one thread.
const KEPT: usize = 4;

thread_local! {
    static SPARE: RefCell<Vec<Memory>> = const { RefCell::new(Vec::new()) };
}

/// The memory of a transaction.
#[derive(Default)]
pub struct Memory {
    pub(super) redo: Redo,
    pub(super) reads: ReadSet,
    pub(super) resolved: Vec<(Arc<str>, Tree)>,
    pub(super) used: Used,
    pub(super) values: (Vec<u8>, Vec<u8>),
    /// See `State`, and the environment in which it was.
    pub(super) behind: (u64, Finger),
}

impl Memory {
    /// That of a transaction which has ended.
    pub(super) fn of(state: &mut State, environment: u64) -> Memory {
        Memory {
            redo: std::mem::take(&mut state.redo),
            reads: std::mem::take(&mut state.reads),
            resolved: std::mem::take(&mut state.resolved),
            used: std::mem::take(&mut state.used),
            values: std::mem::take(&mut state.values),
            behind: (environment, state.behind),
        }
    }

    /// Memory used before, if the thread has such.
    #[inline]
    pub(super) fn spare() -> Memory {
        // A thread that ends has none any more.
        SPARE.try_with(|spare| spare.borrow_mut().pop()).ok().flatten().unwrap_or_default()
    }

    /// Empties it and keeps it for the thread's next transaction, if it is worth keeping and not too large for it.
    pub(super) fn keep(mut self) {
        let capacity = self.redo.capacity()
            + self.reads.capacity()
            + (self.values.0.capacity() + self.values.1.capacity())
            + self.used.capacity()
            + self.resolved.capacity() * size_of::<(Arc<str>, Tree)>();
        if capacity == 0 || capacity > LARGEST_KEPT {
            return;
        }
        self.redo.clear();
        self.reads.clear();
        self.resolved.clear();
        self.used.restart();
        // A thread that ends needs none any more.
        let _ended = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < KEPT {
                spare.push(self);
            }
        });
    }
}
