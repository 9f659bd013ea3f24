//! Rows of several slots, stored in memory.

use crate::error::Result;
use crate::execute::row::{Context, MemoryCharge, values_memory};
use crate::expression::Current;
use crate::types::Value;

/// The place of one slot's part of a stored row.
#[derive(Clone, Copy, Debug)]
enum Kept {
    Nothing,
    Bytes(usize, usize),
    Values(usize),
}

/// Rows of several slots, stored in memory.
#[derive(Debug, Default)]
pub struct BufferedRows {
    slots: Vec<usize>,
    /// Encoded rows of each slot, concatenated.
    bytes: Vec<Vec<u8>>,
    values: Vec<Vec<Value>>,
    /// For each row one entry per slot.
    kept: Vec<Kept>,
    /// Keys of the rows that will be changed, if the plan needs them.
    keys: Vec<Vec<(usize, usize)>>,
    pub account: MemoryCharge,
}

impl BufferedRows {
    pub fn new(slots: Vec<usize>) -> BufferedRows {
        let bytes = slots.iter().map(|_| Vec::new()).collect();
        let keys = slots.iter().map(|_| Vec::new()).collect();
        BufferedRows { slots, bytes, keys, ..BufferedRows::default() }
    }

    pub fn clear(&mut self, context: &Context<'_>) {
        self.account.clear(context);
        self.bytes.iter_mut().for_each(Vec::clear);
        self.keys.iter_mut().for_each(Vec::clear);
        self.values.clear();
        self.kept.clear();
    }

    /// Returns the memory that the current rows would take.
    pub fn memory_of_current(&self, context: &Context<'_>) -> usize {
        let of_slot = |number: &usize| match context.slots.get(*number) {
            None => 0,
            Some(slot) => match slot.current {
                Current::Nothing => 0,
                Current::Values => values_memory(&slot.values),
                Current::Record(_) | Current::Bytes(..) => slot.row().len() + size_of::<Kept>(),
            },
        };
        self.slots.iter().map(of_slot).sum()
    }

    /// Stores the current rows, whose memory was charged. `key_of` returns the key of a slot's row.
    pub fn push<'k>(&mut self, context: &Context<'_>, key_of: impl Fn(usize) -> Option<&'k [u8]>) {
        for (nth, number) in self.slots.iter().enumerate() {
            let Some(slot) = context.slots.get(*number) else { continue };
            let kept = match slot.current {
                Current::Nothing => Kept::Nothing,
                Current::Values => {
                    self.values.push(slot.values.clone());
                    Kept::Values(self.values.len() - 1)
                }
                Current::Record(_) | Current::Bytes(..) => {
                    let row = slot.row();
                    let start = self.bytes[nth].len();
                    self.bytes[nth].extend_from_slice(row);
                    Kept::Bytes(start, self.bytes[nth].len())
                }
            };
            self.kept.push(kept);
            if let Some(key) = key_of(*number) {
                let start = self.bytes[nth].len();
                self.bytes[nth].extend_from_slice(key);
                self.keys[nth].push((start, start + key.len()));
            }
        }
    }

    /// Moves the bytes of the stored rows into the slots, after the last row.
    pub fn settle(&mut self, context: &mut Context<'_>) -> Result<()> {
        for (nth, number) in self.slots.iter().enumerate() {
            std::mem::swap(&mut context.slot(*number)?.bytes, &mut self.bytes[nth]);
        }
        Ok(())
    }

    /// Makes a stored row the current row of the slots.
    #[inline]
    pub fn stand(&self, row: usize, context: &mut Context<'_>) -> Result<()> {
        let width = self.slots.len();
        for (nth, number) in self.slots.iter().enumerate() {
            let slot = context.slot(*number)?;
            slot.current = match self.kept.get(row * width + nth) {
                Some(Kept::Bytes(start, end)) => Current::Bytes(*start, *end),
                Some(Kept::Values(at)) => {
                    slot.values.clone_from(&self.values[*at]);
                    Current::Values
                }
                Some(Kept::Nothing) | None => Current::Nothing,
            };
        }
        Ok(())
    }

    pub fn row_key<'o>(
        &'o self,
        slot: usize,
        row: usize,
        context: &'o Context<'_>,
    ) -> Option<&'o [u8]> {
        let nth = self.slots.iter().position(|number| *number == slot)?;
        let (start, end) = *self.keys[nth].get(row)?;
        context.slots.get(slot)?.bytes.get(start..end)
    }
}
