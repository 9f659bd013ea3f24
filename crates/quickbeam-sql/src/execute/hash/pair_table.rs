//! A hash set of integers for each group: count(DISTINCT …) of integers.

use super::key_table::{mix, seed};

/// Integers, each with the number of its group.
#[derive(Debug)]
pub struct PairTable {
    /// Group, counted from one, and integer. Group zero: nothing is here.
    entries: Vec<(u32, i64)>,
    used: usize,
    seed: u64,
}

impl Default for PairTable {
    fn default() -> PairTable {
        PairTable { entries: Vec::new(), used: 0, seed: seed() }
    }
}

impl PairTable {
    pub fn clear(&mut self) {
        self.entries = Vec::new();
        self.used = 0;
    }

    /// Returns the bytes that one more insertion allocates.
    #[inline]
    pub fn growth(&self) -> usize {
        if self.is_full() { self.entries.len().max(32) * size_of::<(u32, i64)>() } else { 0 }
    }

    /// Returns the groups and their integers.
    pub fn pairs(&self) -> impl Iterator<Item = (u32, i64)> {
        let used = self.entries.iter().filter(|entry| entry.0 != 0);
        used.map(|(group, number)| (group - 1, *number))
    }

    fn is_full(&self) -> bool {
        self.used * 2 >= self.entries.len()
    }

    #[inline]
    fn start(&self, group: u32, number: i64) -> usize {
        let hash = mix(number as u64 ^ self.seed, 0x9e37_79b9_7f4a_7c15 ^ (u64::from(group) << 20));
        hash as usize & (self.entries.len() - 1)
    }

    /// Adds an integer to a group. Returns whether it is new there.
    #[inline]
    pub fn insert(&mut self, group: u32, number: i64) -> bool {
        if self.is_full() {
            self.grow();
        }
        let entry = (group + 1, number);
        let mut at = self.start(entry.0, number);
        while let Some(found) = self.entries.get_mut(at) {
            if *found == entry {
                return false;
            }
            if found.0 == 0 {
                *found = entry;
                self.used += 1;
                return true;
            }
            at = (at + 1) & (self.entries.len() - 1);
        }
        false
    }

    #[cold]
    fn grow(&mut self) {
        let size = (self.entries.len() * 2).max(64);
        let entries = std::mem::replace(&mut self.entries, vec![(0, 0); size]);
        for (group, number) in entries.into_iter().filter(|entry| entry.0 != 0) {
            let mut at = self.start(group, number);
            while self.entries[at].0 != 0 {
                at = (at + 1) & (size - 1);
            }
            self.entries[at] = (group, number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn an_integer_is_new_once_in_each_group() {
        let mut table = PairTable::default();
        for _ in 0..2 {
            let mut model = HashSet::new();
            for n in 0..20_000i64 {
                let (group, number) = ((n * n % 13) as u32, n * 7919 % 801 - 400);
                assert_eq!(table.insert(group, number), model.insert((group, number)));
            }
            assert_eq!(table.used, model.len());
            assert!(table.insert(7, i64::MIN) && table.insert(7, i64::MAX));
            table.clear();
        }
    }
}
