//! Sets of places in a text.

/// A set of places in a text of a known length, its end included.
#[derive(Clone, Debug, Default)]
pub(super) struct PlaceSet {
    words: Vec<u64>,
}

impl PlaceSet {
    /// Makes an empty set for a text of `length` bytes.
    pub fn new(length: usize) -> PlaceSet {
        PlaceSet { words: vec![0; length / 64 + 1] }
    }

    pub fn insert(&mut self, at: usize) {
        self.words[at / 64] |= 1 << (at % 64);
    }

    /// Makes the set of all other places.
    pub fn invert(&mut self) {
        self.words.iter_mut().for_each(|word| *word = !*word);
    }

    pub fn contains(&self, at: usize) -> bool {
        self.words.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 != 0)
    }

    /// Returns the first place from `at` on.
    pub fn next(&self, at: usize) -> Option<usize> {
        let mut index = at / 64;
        let mut word = *self.words.get(index)? & (u64::MAX << (at % 64));
        while word == 0 {
            index += 1;
            word = *self.words.get(index)?;
        }
        Some(index * 64 + word.trailing_zeros() as usize)
    }
}
