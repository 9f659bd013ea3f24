//! A table of whole numbers, numbered in the order in which they came.

use super::super::direct::{mix, seed};

/// Numbers, and NULL, each with its place among those that came.
#[derive(Debug)]
pub struct NumberTable {
    /// Places counted from one; zero: nothing is here.
    slots: Vec<u32>,
    keys: Vec<i64>,
    null: Option<u32>,
    seed: u64,
}

impl Default for NumberTable {
    fn default() -> NumberTable {
        NumberTable { slots: Vec::new(), keys: Vec::new(), null: None, seed: seed() }
    }
}

impl NumberTable {
    pub fn clear(&mut self) {
        self.slots.fill(0);
        self.keys.clear();
        self.null = None;
    }

    /// The place of NULL; true: it is new.
    pub fn null(&mut self) -> (u32, bool) {
        match self.null {
            Some(place) => (place, false),
            None => {
                let place = self.keys.len() as u32;
                // A place of its own, which no search comes to.
                self.keys.push(0);
                self.null = Some(place);
                (place, true)
            }
        }
    }

    #[inline]
    fn start(&self, number: i64) -> usize {
        mix(number as u64 ^ self.seed, 0x9e37_79b9_7f4a_7c15) as usize & (self.slots.len() - 1)
    }

    /// The place of a number; true: it is new.
    #[inline]
    pub fn place(&mut self, number: i64) -> (u32, bool) {
        if self.keys.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let mut at = self.start(number);
        loop {
            let Some(slot) = self.slots.get_mut(at) else {
                at = 0;
                continue;
            };
            if *slot == 0 {
                self.keys.push(number);
                *slot = self.keys.len() as u32;
                return (*slot - 1, true);
            }
            if self.keys.get(*slot as usize - 1) == Some(&number) && self.null != Some(*slot - 1) {
                return (*slot - 1, false);
            }
            at += 1;
        }
    }

    #[cold]
    fn grow(&mut self) {
        self.slots = vec![0; (self.slots.len() * 2).max(64)];
        for place in 0..self.keys.len() as u32 {
            if self.null == Some(place) {
                continue;
            }
            let mut at = self.start(self.keys[place as usize]);
            while self.slots[at] != 0 {
                at = (at + 1) & (self.slots.len() - 1);
            }
            self.slots[at] = place + 1;
        }
    }
}
