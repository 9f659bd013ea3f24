//! The white paper's key/value workload: what keys and values look like, in which order they are
//! used, and what the database must hold after each step. Nothing here knows an engine.

pub mod content;
pub mod random;

use std::fmt;
use std::str::FromStr;

use anyhow::{Result, anyhow, ensure};
use serde::{Deserialize, Serialize};

use random::{Random, Zipf, mix, permutation};

/// Keys that follow each other in one set: the paper's spatial locality of ten.
pub const SET_SIZE: u64 = 10;

/// The steps of one run, in the order in which they are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Step {
    /// Fills the database and warms the cache; not reported.
    Populate,
    /// Reads every set.
    Fetch,
    /// Replaces the values of every set.
    Update,
    /// A mixture of fetching and updating transactions.
    Mixed,
    /// Replaces the values again, with others than `Update` does.
    Rewrite,
    /// Removes every set.
    Delete,
    /// Fills the database again.
    Insert,
}

impl Step {
    /// The name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Step::Populate => "populate",
            Step::Fetch => "fetch",
            Step::Update => "update",
            Step::Mixed => "mixed",
            Step::Rewrite => "rewrite",
            Step::Delete => "delete",
            Step::Insert => "insert",
        }
    }

    /// What a value written by this step adds to its key, so that each step's values differ from
    /// every other's and a lost update shows.
    fn value_offset(self) -> u64 {
        match self {
            Step::Populate | Step::Fetch | Step::Delete => 0,
            Step::Update => 1 << 40,
            Step::Mixed => 2 << 40,
            Step::Insert => 3 << 40,
            Step::Rewrite => 4 << 40,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How the sets of fetch and update are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Distribution {
    /// The paper's: a random permutation, every set once.
    Uniform,
    /// Popular sets are drawn often, others never.
    Zipf,
    /// Every set once, in key order.
    Sequential,
}

impl FromStr for Distribution {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "uniform" => Ok(Distribution::Uniform),
            "zipf" => Ok(Distribution::Zipf),
            "sequential" => Ok(Distribution::Sequential),
            _ => Err(anyhow!("unknown distribution `{text}`; one of uniform, zipf, sequential")),
        }
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Distribution::Uniform => "uniform",
            Distribution::Zipf => "zipf",
            Distribution::Sequential => "sequential",
        })
    }
}

/// Everything that defines the work of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Workload {
    /// Records in the database: a multiple of [`SET_SIZE`].
    pub records: u64,
    /// Bytes of a key, at least 8.
    pub key_size: usize,
    /// Bytes of a value, at least 8.
    pub value_size: usize,
    /// Operations in one transaction.
    pub ops_per_txn: usize,
    /// How sets are chosen.
    pub distribution: Distribution,
    /// Fraction of fetching transactions in [`Step::Mixed`].
    pub read_ratio: Option<f64>,
    /// How many sets fetch and update touch; all when not given.
    pub sample: Option<u64>,
    /// Where every order comes from.
    pub seed: u64,
}

impl Workload {
    /// Refuses what cannot be run.
    pub fn validate(&self) -> Result<()> {
        ensure!(self.records > 0, "--records must be above zero");
        ensure!(
            self.records.is_multiple_of(SET_SIZE),
            "--records must be a multiple of {SET_SIZE}, the size of a set"
        );
        ensure!(self.records < 1 << 40, "--records must be below 2^40");
        ensure!(self.key_size >= 8, "--key-size must be at least 8, the size of the integer");
        ensure!(self.value_size >= 8, "--value-size must be at least 8, the size of the integer");
        ensure!(self.ops_per_txn > 0, "--ops-per-txn must be above zero");
        if let Some(ratio) = self.read_ratio {
            ensure!((0.0..=1.0).contains(&ratio), "--read-ratio must lie between 0 and 1");
            // A set is fetched or updated as a whole, so that its content stays known.
            ensure!(
                SET_SIZE.is_multiple_of(self.ops_per_txn as u64),
                "--read-ratio needs an --ops-per-txn that divides {SET_SIZE}"
            );
        }
        Ok(())
    }

    /// How many sets the database holds.
    pub fn sets(&self) -> u64 {
        self.records / SET_SIZE
    }

    /// The sets that `step` of repetition `repetition` works on, in order.
    pub fn order(&self, step: Step, repetition: u32) -> Vec<u64> {
        let sets = self.sets();
        let seed = mix(self.seed ^ mix(u64::from(repetition) << 8 | step as u64));
        let mut random = Random::new(seed);
        let complete = matches!(step, Step::Populate | Step::Delete | Step::Insert);
        let mut order = match self.distribution {
            Distribution::Sequential => (0..sets).collect(),
            Distribution::Zipf if !complete => {
                let zipf = Zipf::new(sets);
                (0..sets).map(|_| zipf.draw(&mut random)).collect()
            }
            _ => permutation(sets, &mut random),
        };
        if let (Some(sample), false) = (self.sample, complete) {
            order.truncate(sample as usize);
        }
        order
    }

    /// Whether the set at `position` in the order of the mixed step is fetched.
    pub fn fetches(&self, position: u64) -> bool {
        let draw = (mix(self.seed ^ mix(position)) >> 11) as f64 / (1u64 << 53) as f64;
        draw < self.read_ratio.unwrap_or(0.0)
    }

    /// Writes `key` into `buffer`: zeros, then the integer in the last eight bytes, most
    /// significant first, so that the order of the bytes is the order of the integers.
    pub fn encode_key(&self, key: u64, buffer: &mut Vec<u8>) {
        encode(key, self.key_size, buffer);
    }

    /// Writes the value that `step` gives to `key` into `buffer`.
    pub fn encode_value(&self, step: Step, key: u64, buffer: &mut Vec<u8>) {
        encode(key + step.value_offset(), self.value_size, buffer);
    }
}

/// The value that `step` gives to `key`.
pub fn value_of(step: Step, key: u64) -> u64 {
    key + step.value_offset()
}

fn encode(integer: u64, size: usize, buffer: &mut Vec<u8>) {
    // Once the buffer has its size only the integer changes, so this costs eight bytes a call.
    if buffer.len() != size {
        buffer.clear();
        buffer.resize(size, 0);
    }
    buffer[size - 8..].copy_from_slice(&integer.to_be_bytes());
}

/// The integer of a key or value, or `None` when it does not have the layout of this workload.
pub fn decode(bytes: &[u8], size: usize) -> Option<u64> {
    if bytes.len() != size || size < 8 {
        return None;
    }
    let (zeros, integer) = bytes.split_at(size - 8);
    if zeros.iter().any(|&byte| byte != 0) {
        return None;
    }
    integer.try_into().ok().map(u64::from_be_bytes)
}

/// As [`decode`], but of the zeros it looks only at the first eight bytes: for use inside a timer.
pub fn decode_quick(bytes: &[u8], size: usize) -> Option<u64> {
    if bytes.len() != size || (size >= 16 && bytes[..8] != [0; 8]) {
        return None;
    }
    bytes.last_chunk().map(|integer| u64::from_be_bytes(*integer))
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn small() -> Workload {
        Workload {
            records: 1000,
            key_size: 64,
            value_size: 64,
            ops_per_txn: 10,
            distribution: Distribution::Uniform,
            read_ratio: None,
            sample: None,
            seed: 42,
        }
    }

    #[test]
    fn keys_are_zeros_and_a_big_endian_integer() {
        let (workload, mut buffer) = (small(), Vec::new());
        workload.encode_key(0x0102, &mut buffer);
        assert_eq!(buffer.len(), 64);
        assert!(buffer[..62].iter().all(|&byte| byte == 0));
        assert_eq!(buffer[62..], [1, 2]);
        assert_eq!(decode(&buffer, 64), Some(0x0102));
        assert_eq!(decode_quick(&buffer, 64), Some(0x0102));
        buffer[0] = 1;
        assert_eq!(decode(&buffer, 64), None);
        assert_eq!(decode_quick(&buffer, 64), None);
        assert_eq!(decode(&buffer[1..], 64), None);
    }

    #[test]
    fn each_step_writes_values_of_its_own() {
        let values: Vec<u64> =
            [Step::Populate, Step::Update, Step::Mixed, Step::Rewrite, Step::Insert]
                .into_iter()
                .map(|step| value_of(step, 5))
                .collect();
        let mut distinct = values.clone();
        distinct.dedup();
        assert_eq!(values, distinct);
    }

    #[test]
    fn orders_differ_by_step_and_repetition_and_cover_every_set() {
        let workload = small();
        let first = workload.order(Step::Fetch, 0);
        assert_ne!(first, workload.order(Step::Fetch, 1));
        assert_ne!(first, workload.order(Step::Update, 0));
        let mut sorted = first;
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..100));
    }

    #[test]
    fn the_read_ratio_is_kept() {
        let workload = Workload { read_ratio: Some(0.9), ..small() };
        let fetches = (0..10_000).filter(|&n| workload.fetches(n)).count();
        assert!((8_800..9_200).contains(&fetches), "{fetches} of 10000 transactions fetch");
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        assert!(Workload { records: 15, ..small() }.validate().is_err());
        assert!(Workload { key_size: 4, ..small() }.validate().is_err());
        assert!(Workload { read_ratio: Some(1.5), ..small() }.validate().is_err());
        assert!(small().validate().is_ok());
    }
}
