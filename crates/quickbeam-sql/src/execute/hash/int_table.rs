//! A hash table of integers, numbered in insertion order.

use super::super::row::{mix, seed};

/// Numbers from zero up to this one have their places in an array.
const SMALL: usize = 1024;

/// Integers, and NULL, each with its insertion number.
#[derive(Clone, Debug)]
pub struct IntTable {
    /// Places counted from one; zero: nothing is here.
    slots: Vec<u32>,
    /// The numbers of the integers from zero on, in an array.
    small: Vec<u32>,
    keys: Vec<i64>,
    null: Option<u32>,
    seed: u64,
}

impl Default for IntTable {
    fn default() -> IntTable {
        IntTable {
            slots: Vec::new(),
            small: Vec::new(),
            keys: Vec::new(),
            null: None,
            seed: seed(),
        }
    }
}

impl IntTable {
    /// Forgets all integers, in time by their number: an execution of few rows may follow one of
    /// many.
    pub fn clear(&mut self) {
        let count = self.keys.len();
        if count < SMALL / 8 {
            for key in &self.keys {
                let place = usize::try_from(*key).ok().and_then(|at| self.small.get_mut(at));
                place.into_iter().for_each(|place| *place = 0);
            }
        } else {
            self.small.fill(0);
        }
        if self.slots.len() > SMALL && count < self.slots.len() / 16 {
            self.slots = Vec::new();
        } else if !self.slots.is_empty() {
            self.slots.fill(0);
        }
        self.keys.clear();
        self.null = None;
    }

    /// The place of NULL; true: it is new.
    pub fn null(&mut self) -> (u32, bool) {
        match self.null {
            Some(place) => (place, false),
            None => {
                let place = self.keys.len() as u32;
                // An entry for NULL, which no probe reaches.
                self.keys.push(0);
                self.null = Some(place);
                (place, true)
            }
        }
    }

    /// Returns the number of NULL.
    pub fn find_null(&self) -> Option<u32> {
        self.null
    }

    /// Returns the integer with that insertion number; `Some(None)` is NULL.
    pub fn key(&self, place: usize) -> Option<Option<i64>> {
        let key = self.keys.get(place)?;
        Some((self.null.map(|null| null as usize) != Some(place)).then_some(*key))
    }

    /// Removes the integer, or NULL, that was inserted last.
    pub fn forget_last(&mut self, number: Option<i64>) {
        let Some(number) = number else {
            self.null = None;
            self.keys.pop();
            return;
        };
        if let Some(place) = usize::try_from(number).ok().and_then(|at| self.small.get_mut(at)) {
            *place = 0;
        } else if let Ok(place) = self.probe(number)
            && let Some(slot) = self.slots.iter_mut().find(|slot| **slot == place + 1)
        {
            // It is the last one of its chain of probes.
            *slot = 0;
        }
        self.keys.pop();
    }

    #[inline]
    fn start(&self, number: i64) -> usize {
        mix(number as u64 ^ self.seed, 0x9e37_79b9_7f4a_7c15) as usize & (self.slots.len() - 1)
    }

    /// The place of a number; true: it is new.
    #[inline]
    pub fn place(&mut self, number: i64) -> (u32, bool) {
        if self.small.is_empty() {
            self.small.resize(SMALL, 0);
        }
        if let Some(place) = usize::try_from(number).ok().and_then(|at| self.small.get_mut(at)) {
            let new = *place == 0;
            if new {
                self.keys.push(number);
                *place = self.keys.len() as u32;
            }
            return (*place - 1, new);
        }
        self.place_hashed(number)
    }

    /// Writes the places of numbers, but for the first `done`, whose places are written, up to the
    /// first number that is new. Makes the place of that one. Returns how many places are written
    /// then, or `None` if no number is new.
    ///
    /// This loop is a function of its own, so that its variables stay in registers.
    #[inline(never)]
    pub fn place_run(&mut self, numbers: &[i64], places: &mut [u32], done: usize) -> Option<usize> {
        // Rows of one group often follow each other.
        let before = done.checked_sub(1);
        let mut last = before.and_then(|nth| Some((*numbers.get(nth)?, *places.get(nth)?)));
        for (nth, (number, place)) in numbers.iter().zip(places).enumerate().skip(done) {
            if let Some((of, known)) = last
                && of == *number
            {
                *place = known;
                continue;
            }
            let (found, is_new) = self.place(*number);
            *place = found;
            if is_new {
                return Some(nth + 1);
            }
            last = Some((*number, found));
        }
        None
    }

    /// Returns the number of an integer.
    #[inline]
    pub fn find(&self, number: i64) -> Option<u32> {
        if let Some(place) = usize::try_from(number).ok().and_then(|at| self.small.get(at)) {
            return place.checked_sub(1);
        }
        if self.slots.is_empty() { None } else { self.probe(number).ok() }
    }

    /// Returns the position of a number among the hashed ones, or its free slot. The table is never
    /// full.
    #[inline]
    fn probe(&self, number: i64) -> Result<u32, usize> {
        let mut at = self.start(number);
        loop {
            let Some(slot) = self.slots.get(at) else {
                at = 0;
                continue;
            };
            let Some(place) = slot.checked_sub(1) else { return Err(at) };
            if self.keys.get(place as usize) == Some(&number) && self.null != Some(place) {
                return Ok(place);
            }
            at += 1;
        }
    }

    fn place_hashed(&mut self, number: i64) -> (u32, bool) {
        if self.keys.len() * 2 >= self.slots.len() {
            self.grow();
        }
        match self.probe(number) {
            Ok(place) => (place, false),
            Err(at) => {
                self.keys.push(number);
                self.slots[at] = self.keys.len() as u32;
                (self.keys.len() as u32 - 1, true)
            }
        }
    }

    #[cold]
    fn grow(&mut self) {
        self.slots = vec![0; (self.slots.len() * 2).max(64)];
        for place in 0..self.keys.len() as u32 {
            let number = self.keys[place as usize];
            if self.null == Some(place) || (0..SMALL as i64).contains(&number) {
                continue;
            }
            let mut at = self.start(number);
            while self.slots[at] != 0 {
                at = (at + 1) & (self.slots.len() - 1);
            }
            self.slots[at] = place + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn numbers_are_found_again_in_the_order_in_which_they_came() {
        let mut table = IntTable::default();
        for _ in 0..2 {
            assert_eq!((table.find(5), table.find(-5), table.find(5_000)), (None, None, None));
            let mut model: HashMap<Option<i64>, u32> = HashMap::new();
            for n in 0..5_000i64 {
                let number = match n % 4 {
                    _ if n % 501 == 0 => None,
                    0 => Some(n * n % 1_500),
                    1 => Some(-n % 700),
                    2 => Some(i64::MAX - n % 900),
                    _ => Some(i64::MIN + n % 90),
                };
                let next = model.len() as u32;
                let place = *model.entry(number).or_insert(next);
                let found = match number {
                    Some(number) => table.place(number),
                    None => table.null(),
                };
                assert_eq!(found, (place, place == next), "{number:?}");
            }
            let numbers =
                model.iter().filter_map(|(number, place)| Some((number.as_ref()?, place)));
            assert!(numbers.into_iter().all(|(number, place)| table.find(*number) == Some(*place)));
            assert!(model.iter().all(|(key, place)| table.key(*place as usize) == Some(*key)));
            assert_eq!(table.key(model.len()), None);
            assert_eq!((table.find(1_501), table.find(i64::MAX / 2)), (None, None));
            table.clear();
            // Few numbers in a large table.
            for _ in 0..2 {
                for (place, number) in [0, 1_023, 1_024, -1].into_iter().enumerate() {
                    assert_eq!(table.place(number), (place as u32, true));
                }
                assert_eq!(table.null(), (4, true));
                table.clear();
                assert!(table.small.iter().chain(&table.slots).all(|place| *place == 0));
            }
        }
    }
}
