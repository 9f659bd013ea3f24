//! Sets of row slots.

use std::ops::BitOr;

/// Bits of a word.
const WORD: usize = u64::BITS as usize;

/// A set of slots. Slots below 64 need no allocation.
#[derive(Clone, Debug, Default)]
pub struct Slots {
    first: u64,
    /// Words for the slots from 64 on.
    rest: Vec<u64>,
}

impl Slots {
    /// Returns a set of one slot.
    pub fn one(slot: usize) -> Slots {
        let mut slots = Slots::default();
        slots.insert(slot);
        slots
    }

    /// Adds a slot.
    pub fn insert(&mut self, slot: usize) {
        let bit = 1 << (slot % WORD);
        match (slot / WORD).checked_sub(1) {
            None => self.first |= bit,
            Some(word) => {
                if self.rest.len() <= word {
                    self.rest.resize(word + 1, 0);
                }
                if let Some(word) = self.rest.get_mut(word) {
                    *word |= bit;
                }
            }
        }
    }

    /// Adds all of another set.
    pub fn extend(&mut self, other: &Slots) {
        self.first |= other.first;
        if self.rest.len() < other.rest.len() {
            self.rest.resize(other.rest.len(), 0);
        }
        self.rest.iter_mut().zip(&other.rest).for_each(|(word, more)| *word |= more);
    }

    /// Removes all slots of another set.
    pub fn remove(&mut self, other: &Slots) {
        self.first &= !other.first;
        self.rest.iter_mut().zip(&other.rest).for_each(|(word, less)| *word &= !less);
    }

    /// Returns whether the set contains the slot.
    pub fn contains(&self, slot: usize) -> bool {
        let word = match (slot / WORD).checked_sub(1) {
            None => self.first,
            Some(word) => self.rest.get(word).copied().unwrap_or(0),
        };
        word & (1 << (slot % WORD)) != 0
    }

    /// Returns the slots in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        let words = std::iter::once(&self.first).chain(&self.rest).enumerate();
        words.flat_map(|(number, word)| {
            (0..WORD).filter(move |bit| word & (1 << bit) != 0).map(move |bit| number * WORD + bit)
        })
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.first == 0 && self.rest.iter().all(|word| *word == 0)
    }

    /// Returns whether the sets have a slot in common.
    pub fn meets(&self, other: &Slots) -> bool {
        self.first & other.first != 0 || self.rest.iter().zip(&other.rest).any(|(a, b)| a & b != 0)
    }

    /// Returns whether all slots are in the other set.
    pub fn is_within(&self, other: &Slots) -> bool {
        let others = other.rest.iter().copied().chain(std::iter::repeat(0));
        self.first & !other.first == 0 && self.rest.iter().zip(others).all(|(a, b)| a & !b == 0)
    }
}

impl BitOr for &Slots {
    type Output = Slots;

    fn bitor(self, other: &Slots) -> Slots {
        let mut both = self.clone();
        both.extend(other);
        both
    }
}

impl FromIterator<usize> for Slots {
    fn from_iter<I: IntoIterator<Item = usize>>(slots: I) -> Slots {
        let mut all = Slots::default();
        slots.into_iter().for_each(|slot| all.insert(slot));
        all
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::Slots;

    fn set() -> impl Strategy<Value = BTreeSet<usize>> {
        prop::collection::btree_set(prop_oneof![0..70usize, 0..400usize], 0..6)
    }

    proptest! {
        #[test]
        fn sets_of_slots_are_sets(a in set(), b in set(), slot in 0..400usize) {
            let [left, right] = [&a, &b].map(|set| set.iter().copied().collect::<Slots>());
            prop_assert_eq!(left.is_empty(), a.is_empty());
            prop_assert!(left.iter().eq(a.iter().copied()));
            prop_assert_eq!(left.contains(slot), a.contains(&slot));
            prop_assert_eq!(left.meets(&right), !a.is_disjoint(&b));
            prop_assert_eq!(left.is_within(&right), a.is_subset(&b));
            let both = &left | &right;
            prop_assert!((0..410).all(|slot| both.contains(slot) == (a.contains(&slot) || b.contains(&slot))));
            prop_assert!(left.is_within(&both) && right.is_within(&both));
            let mut rest = left.clone();
            rest.remove(&right);
            prop_assert_eq!(rest.contains(slot), a.contains(&slot) && !b.contains(&slot));
        }
    }
}
