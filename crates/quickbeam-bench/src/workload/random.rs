//! Seeded random numbers and the orders drawn from them.
//!
//! Written out rather than taken from a library so that a seed in a report gives the same order of
//! keys with every version of every dependency.

/// SplitMix64 (Steele, Lea, Flood 2014): 64 bits of state, passes BigCrush, one line of arithmetic.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator that depends on nothing but `seed`.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `bound` (Lemire's multiplication; the bias of 2^-40 and less does not matter
    /// for choosing keys).
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in [0, 1).
    pub fn fraction(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The finalizer of SplitMix64: a good 64-bit mixing function on its own.
pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A random permutation of `0..count` (Fisher and Yates).
pub fn permutation(count: u64, random: &mut Random) -> Vec<u64> {
    let mut order: Vec<u64> = (0..count).collect();
    for i in (1..order.len()).rev() {
        let j = random.below(i as u64 + 1) as usize;
        order.swap(i, j);
    }
    order
}

/// Zipf-distributed ranks (Gray et al., SIGMOD 1994, as in YCSB), spread over the key space by a
/// mixing function so that popular keys are not neighbours.
#[derive(Clone, Debug)]
pub struct Zipf {
    count: u64,
    theta: f64,
    alpha: f64,
    zeta: f64,
    eta: f64,
}

impl Zipf {
    /// YCSB's constant.
    pub const THETA: f64 = 0.99;

    /// A distribution over `0..count`.
    pub fn new(count: u64) -> Self {
        let theta = Self::THETA;
        let zeta: f64 = (1..=count).map(|i| (i as f64).powf(-theta)).sum();
        let zeta2 = 1.0 + 0.5f64.powf(theta);
        let eta = (1.0 - (2.0 / count as f64).powf(1.0 - theta)) / (1.0 - zeta2 / zeta);
        Zipf { count, theta, alpha: 1.0 / (1.0 - theta), zeta, eta }
    }

    /// Draws one of `0..count`.
    pub fn draw(&self, random: &mut Random) -> u64 {
        mix(self.rank(random)) % self.count
    }

    /// Draws a rank: 0 is the most popular one.
    pub fn rank(&self, random: &mut Random) -> u64 {
        let u = random.fraction();
        let uz = u * self.zeta;
        let rank = if uz < 1.0 {
            0
        } else if uz < 1.0 + 0.5f64.powf(self.theta) {
            1
        } else {
            (self.count as f64 * (self.eta * u - self.eta + 1.0).powf(self.alpha)) as u64
        };
        rank.min(self.count - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permutation_holds_every_number_once_for_each_seed() {
        let order = permutation(1000, &mut Random::new(7));
        assert_eq!(order, permutation(1000, &mut Random::new(7)));
        assert_ne!(order, permutation(1000, &mut Random::new(8)));
        let mut sorted = order;
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..1000));
    }

    #[test]
    fn the_generator_is_the_published_one() {
        // First outputs of SplitMix64 seeded with 0, from the reference implementation.
        let mut random = Random::new(0);
        assert_eq!(random.next_u64(), 0xe220_a839_7b1d_cdaf);
        assert_eq!(random.next_u64(), 0x6e78_9e6a_a1b9_65f4);
    }

    #[test]
    fn zipf_prefers_few_keys() {
        let zipf = Zipf::new(1000);
        let mut random = Random::new(1);
        let mut counts = vec![0u32; 1000];
        for _ in 0..100_000 {
            counts[zipf.draw(&mut random) as usize] += 1;
        }
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let top: u32 = counts[..100].iter().sum();
        assert!(top > 60_000, "a tenth of the keys got only {top} of 100000 draws");
    }
}
