//! What transactions allocate again and again, kept from one for the next.
//!
//! Above: beginning and ending a transaction. The environment keeps a few of these; each is empty while it is kept.

use std::sync::Arc;

use super::State;
use super::validate::ReadSet;
use crate::access::btree::Tree;
use crate::log::Redo;

/// Memory that outgrew this many bytes is not kept.
const LARGEST_KEPT: usize = 1 << 20;

/// The memory of a transaction.
#[derive(Default)]
pub struct Memory {
    pub(super) redo: Redo,
    pub(super) reads: ReadSet,
    pub(super) resolved: Vec<(Arc<str>, Tree)>,
    pub(super) used: Vec<(Arc<str>, Tree)>,
}

impl Memory {
    /// That of a transaction which has ended.
    pub(super) fn of(state: &mut State) -> Memory {
        Memory {
            redo: std::mem::take(&mut state.redo),
            reads: std::mem::take(&mut state.reads),
            resolved: std::mem::take(&mut state.resolved),
            used: std::mem::take(&mut state.used),
        }
    }

    /// Empties it; `None` if it is not worth keeping, or too large for it.
    pub fn emptied(mut self) -> Option<Memory> {
        let capacity = self.redo.capacity()
            + self.reads.capacity()
            + (self.resolved.capacity() + self.used.capacity()) * size_of::<(Arc<str>, Tree)>();
        if capacity == 0 || capacity > LARGEST_KEPT {
            return None;
        }
        self.redo.clear();
        self.reads.clear();
        self.resolved.clear();
        self.used.clear();
        Some(self)
    }
}
