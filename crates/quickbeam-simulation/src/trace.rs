//! The trace of a run, condensed to one number: two runs are equal if their numbers are.

/// A running hash, and the events in words if requested.
#[derive(Default)]
pub struct Trace {
    hash: u64,
    /// Events so far.
    pub count: u64,
    /// The events in words, if they are kept.
    pub words: Option<Vec<String>>,
}

fn mix(hash: u64, value: u64) -> u64 {
    (hash.rotate_left(5) ^ value).wrapping_mul(0x517c_c1b7_2722_0a95)
}

impl Trace {
    /// Returns the hash.
    pub fn hash(&self) -> u64 {
        self.hash ^ self.count
    }

    /// Adds numbers.
    pub fn add(&mut self, values: &[u64]) {
        self.count += 1;
        self.hash = values.iter().fold(self.hash, |hash, &value| mix(hash, value));
    }

    /// Adds bytes.
    pub fn add_bytes(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        let mut hash = mix(self.hash, bytes.len() as u64);
        for word in &mut words {
            hash = mix(hash, u64::from_le_bytes(*word.first_chunk().unwrap_or(&[0; 8])));
        }
        self.hash = words.remainder().iter().fold(hash, |hash, &byte| mix(hash, u64::from(byte)));
    }

    /// Records an event in words, if they are kept.
    pub fn say(&mut self, words: impl FnOnce() -> String) {
        if let Some(list) = &mut self.words {
            list.push(words());
        }
    }
}
