//! Random numbers from a seed, and the environment variables that choose the seed and the number of
//! rounds of a test.
//!
//! Above: the tests of all crates, the simulation, the fuzz targets. Below: nothing.

#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used))]

/// A random generator that its seed determines: SplitMix64 (Steele, Lea and Flood, 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Starts from a seed.
    #[must_use]
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Returns the generator of a part, which is independent of the other parts' choices.
    #[must_use]
    pub fn part(seed: u64, part: u64) -> Random {
        let mut random = Random(seed ^ part.wrapping_mul(0xd6e8_feb8_6659_fd93));
        random.next();
        random
    }

    /// Returns 64 random bits.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `bound`, or 0 if `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        if bound == 0 { 0 } else { (self.next() % bound as u64) as usize }
    }

    /// Returns true in `percent` of 100 cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Returns one of the choices. Panics if there are none.
    pub fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }
}

/// Returns the number in an environment variable, or `None` if the variable is not set. Panics if
/// it is no number: a mistyped setting must not run the default.
#[must_use]
pub fn number_in(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")))
}

/// Returns the seed to start from: `QUICKBEAM_SEED`, which repeats a failure, or one of the clock.
#[must_use]
#[allow(clippy::disallowed_methods)]
pub fn first_seed() -> u64 {
    number_in("QUICKBEAM_SEED").unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(0, |now| now.as_nanos() as u64 % 1_000_000_000_000)
    })
}

/// Returns how many rounds a test makes: `default`, or what the environment variable says.
#[must_use]
pub fn rounds(variable: &str, default: usize) -> usize {
    number_in(variable).map_or(default, |rounds| rounds as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs for seed 0 of the reference implementation.
    #[test]
    fn generator_is_the_published_one() {
        let mut random = Random::new(0);
        assert_eq!(random.next(), 0xe220_a839_7b1d_cdaf);
        assert_eq!(random.next(), 0x6e78_9e6a_a1b9_65f4);
    }

    #[test]
    fn parts_of_a_seed_differ() {
        assert_ne!(Random::part(1, 2).next(), Random::part(1, 3).next());
    }
}
