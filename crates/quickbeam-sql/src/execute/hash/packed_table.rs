//! A hash table of short keys, each packed into a word of 128 bits.

use super::key_table::{mix, seed};

/// The number of a slot without a key.
const FREE: u32 = u32::MAX;

/// A key: its low and its high half.
pub type PackedKey = [u64; 2];

#[derive(Clone, Copy, Debug)]
struct PackedSlot {
    key: PackedKey,
    number: u32,
}

const FREE_SLOT: PackedSlot = PackedSlot { key: [0; 2], number: FREE };

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
    fn start(&self, [low, high]: PackedKey) -> usize {
        let hash = mix(low ^ self.seed, high ^ 0x9e37_79b9_7f4a_7c15);
        // A low bit of a product depends on few bits of its factors.
        (hash ^ hash >> 32) as usize & (self.slots.len() - 1)
    }

    /// Returns the number of a key.
    #[inline]
    pub fn find(&self, key: PackedKey) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        let mut at = self.start(key);
        loop {
            let slot = self.slots[at];
            if slot.number == FREE {
                return None;
            }
            if slot.key == key {
                return Some(slot.number);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// Appends the numbers of keys to `numbers`, up to the first key that is not found.
    ///
    /// Each key is looked up, though it often equals the one before: where groups alternate, a
    /// comparison with that one is mispredicted, which costs more than a lookup.
    #[inline(never)]
    pub fn find_run(&self, keys: &[PackedKey], numbers: &mut Vec<u32>) {
        numbers.extend(keys.iter().map_while(|key| self.find(*key)));
    }

    /// Inserts a key that is new.
    pub fn insert(&mut self, key: PackedKey, number: u32) {
        if self.count * 2 >= self.slots.len() {
            self.grow();
        }
        self.count += 1;
        self.put(PackedSlot { key, number });
    }

    fn put(&mut self, slot: PackedSlot) {
        let mut at = self.start(slot.key);
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
    pub fn in_order(&self) -> Vec<(u32, PackedKey)> {
        let used = self.slots.iter().filter(|slot| slot.number != FREE);
        let mut keys: Vec<(u32, PackedKey)> = used.map(|slot| (slot.number, slot.key)).collect();
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
            let mut model: HashMap<PackedKey, u32> = HashMap::new();
            for n in 0..5_000_u64 {
                let key = match n % 3 {
                    0 => [n * n % 3_001, 0],
                    1 => [0, n * n % 3_001],
                    _ => [n % 41, n % 37],
                };
                assert_eq!(table.find(key), model.get(&key).copied());
                if !model.contains_key(&key) {
                    let number = model.len() as u32 * 2;
                    table.insert(key, number);
                    model.insert(key, number);
                }
            }
            let mut keys: Vec<(u32, PackedKey)> =
                model.iter().map(|(key, at)| (*at, *key)).collect();
            keys.sort_unstable();
            assert_eq!(table.in_order(), keys);
            let mut run: Vec<PackedKey> = keys.iter().map(|(_, key)| *key).collect();
            run.insert(7, [u64::MAX; 2]);
            let mut numbers = vec![3];
            table.find_run(&run, &mut numbers);
            assert_eq!(numbers, [3, 0, 2, 4, 6, 8, 10, 12]);
            assert_eq!(table.find([u64::MAX; 2]), None);
            table.clear();
            assert_eq!(table.find([1, 0]), None);
            table.find_run(&run, &mut numbers);
            assert_eq!(numbers.len(), 8);
        }
    }
}
