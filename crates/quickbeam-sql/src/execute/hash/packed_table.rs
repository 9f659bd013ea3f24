//! A hash table of short keys, each packed into a word of 128 bits.

use super::key_table::{mix, seed};

/// The number of a slot without a key.
const FREE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct PackedSlot {
    low: u64,
    high: u64,
    number: u32,
}

const FREE_SLOT: PackedSlot = PackedSlot { low: 0, high: 0, number: FREE };

/// Packed keys, each with a number that the caller gives. A probe reads one slot, which holds the
/// whole key.
#[derive(Clone, Debug)]
pub struct PackedTable {
    /// A power of two of slots, at least half of them free.
    slots: Vec<PackedSlot>,
    count: usize,
    seed: u64,
}

impl Default for PackedTable {
    fn default() -> PackedTable {
        PackedTable { slots: Vec::new(), count: 0, seed: seed() }
    }
}

impl PackedTable {
    /// Bytes of memory of a key.
    pub const KEY_BYTES: usize = 2 * size_of::<PackedSlot>();

    /// Forgets all keys. An execution of few rows may follow one of many: then the next one begins
    /// with a small table.
    pub fn clear(&mut self) {
        if self.count < self.slots.len() / 64 {
            self.slots = Vec::new();
        }
        self.slots.fill(FREE_SLOT);
        self.count = 0;
    }

    #[inline]
    fn start(&self, low: u64, high: u64) -> usize {
        let hash = mix(low ^ self.seed, high ^ 0x9e37_79b9_7f4a_7c15);
        // A low bit of a product depends on few bits of its factors.
        (hash ^ hash >> 32) as usize & (self.slots.len() - 1)
    }

    /// Returns the number of a key.
    #[inline]
    pub fn find(&self, key: u128) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        let (low, high) = (key as u64, (key >> 64) as u64);
        let mut at = self.start(low, high);
        loop {
            let slot = self.slots[at];
            if slot.number == FREE {
                return None;
            }
            if slot.low == low && slot.high == high {
                return Some(slot.number);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// Inserts a key that is new.
    pub fn insert(&mut self, key: u128, number: u32) {
        if self.count * 2 >= self.slots.len() {
            self.grow();
        }
        self.count += 1;
        self.put(PackedSlot { low: key as u64, high: (key >> 64) as u64, number });
    }

    fn put(&mut self, slot: PackedSlot) {
        let mut at = self.start(slot.low, slot.high);
        while self.slots[at].number != FREE {
            at = (at + 1) & (self.slots.len() - 1);
        }
        self.slots[at] = slot;
    }

    #[cold]
    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(64);
        let slots = std::mem::replace(&mut self.slots, vec![FREE_SLOT; size]);
        slots.into_iter().filter(|slot| slot.number != FREE).for_each(|slot| self.put(slot));
    }

    /// Returns the keys with their numbers, in the order of the numbers.
    pub fn in_order(&self) -> Vec<(u32, u128)> {
        let used = self.slots.iter().filter(|slot| slot.number != FREE);
        let key = |slot: &PackedSlot| u128::from(slot.low) | u128::from(slot.high) << 64;
        let mut keys: Vec<(u32, u128)> = used.map(|slot| (slot.number, key(slot))).collect();
        keys.sort_unstable_by_key(|(number, _)| *number);
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn keys_are_found_again() {
        let mut table = PackedTable::default();
        for _ in 0..2 {
            let mut model: HashMap<u128, u32> = HashMap::new();
            for n in 0..5_000_u128 {
                let key = (n * n % 3_001) << (n % 3 * 40);
                assert_eq!(table.find(key), model.get(&key).copied());
                if !model.contains_key(&key) {
                    let number = model.len() as u32 * 2;
                    table.insert(key, number);
                    model.insert(key, number);
                }
            }
            let mut keys: Vec<(u32, u128)> = model.iter().map(|(key, at)| (*at, *key)).collect();
            keys.sort_unstable();
            assert_eq!(table.in_order(), keys);
            assert_eq!(table.find(u128::MAX), None);
            table.clear();
            assert_eq!(table.find(1), None);
        }
    }
}
