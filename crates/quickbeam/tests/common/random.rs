//! Random numbers from a printed seed, and how often a test does its work. Tests of other crates
//! include this file.

/// Numbers that follow from a seed (splitmix64).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// True in `percent` of a hundred cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// The seed to start from: `QUICKBEAM_SEED` when it is set, so that a failure can be repeated, else
/// one of the clock.
pub fn first_seed() -> u64 {
    match std::env::var("QUICKBEAM_SEED") {
        Ok(text) => text.parse().expect("QUICKBEAM_SEED is a number"),
        Err(_) => {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
            now.as_nanos() as u64 % 1_000_000_000_000
        }
    }
}

/// How many rounds to make: `default`, or what the environment variable says.
pub fn rounds(variable: &str, default: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}
