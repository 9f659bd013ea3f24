//! Operations on records with uniformly random keys: the steps of `bench kv --ycsb`.
//!
//! A step runs for a time rather than for a number of operations, so that it holds checkpoints. The
//! words of every value cancel out under exclusive or. So a reader looks at every byte of a record,
//! and finds one that is torn or mixed up.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};

use super::worker::StartGate;
use crate::engine::{Instance, OpError, OpResult, Reader, Session, Span, Writer};
use crate::statistics::Latencies;
use crate::workload::Workload;
use crate::workload::random::{Random, Zipf, mix};

/// A transaction that was given up this often by the engine will never come through.
const RETRY_LIMIT: u32 = 100_000;

/// Records of a scan, and the most of one in YCSB E.
const SCAN_RECORDS: usize = 100;

/// How a step chooses records.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Choice {
    Uniform,
    /// Popular records are chosen often.
    Zipf,
    /// Newly inserted records are popular.
    Latest,
}

/// What a transaction does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Update,
    Insert,
    /// Reads a record, then writes it.
    Modify,
    ScanUp,
    ScanDown,
    /// A scan of up to [`SCAN_RECORDS`] records.
    ScanSome,
}

/// A step: how often each kind of transaction is run, and on which records.
pub struct Mixture {
    /// The name in reports.
    pub name: &'static str,
    choice: Choice,
    kinds: &'static [(f64, Kind)],
}

const fn mixture(name: &'static str, choice: Choice, kinds: &'static [(f64, Kind)]) -> Mixture {
    Mixture { name, choice, kinds }
}

/// The steps in order. The workloads of YCSB (Cooper et al., SoCC 2010) are its core workloads; the
/// two that insert come last.
pub const MIXTURES: [Mixture; 12] = [
    mixture("read, uniform", Choice::Uniform, &[(1.0, Kind::Read)]),
    mixture("read, zipfian", Choice::Zipf, &[(1.0, Kind::Read)]),
    mixture("update, uniform", Choice::Uniform, &[(1.0, Kind::Update)]),
    mixture("update, zipfian", Choice::Zipf, &[(1.0, Kind::Update)]),
    mixture("scan forward", Choice::Uniform, &[(1.0, Kind::ScanUp)]),
    mixture("scan backward", Choice::Uniform, &[(1.0, Kind::ScanDown)]),
    mixture("YCSB A", Choice::Zipf, &[(0.5, Kind::Read), (0.5, Kind::Update)]),
    mixture("YCSB B", Choice::Zipf, &[(0.95, Kind::Read), (0.05, Kind::Update)]),
    mixture("YCSB C", Choice::Zipf, &[(1.0, Kind::Read)]),
    mixture("YCSB F", Choice::Zipf, &[(0.5, Kind::Read), (0.5, Kind::Modify)]),
    mixture("YCSB D", Choice::Latest, &[(0.95, Kind::Read), (0.05, Kind::Insert)]),
    mixture("YCSB E", Choice::Zipf, &[(0.95, Kind::ScanSome), (0.05, Kind::Insert)]),
];

/// What a step measured.
#[derive(Default)]
pub struct Measured {
    /// Operations, where a scan is one.
    pub operations: u64,
    /// From the common start to the end of the last thread.
    pub elapsed: Duration,
    /// One for each transaction, retries included.
    pub latencies: Latencies,
    /// Operations of each whole second.
    pub seconds: Vec<u64>,
    /// How often a transaction was run again.
    pub retries: u64,
}

/// A database under test and the records in it.
pub struct Records<'a> {
    instance: &'a dyn Instance,
    workload: &'a Workload,
    zipf: Zipf,
    /// The number of the next record to be inserted.
    next: AtomicU64,
}

impl<'a> Records<'a> {
    /// No records yet.
    pub fn new(instance: &'a dyn Instance, workload: &'a Workload) -> Records<'a> {
        let zipf = Zipf::new(workload.records);
        Records { instance, workload, zipf, next: AtomicU64::new(0) }
    }

    /// Fills the database, in the order of the records' numbers: a random one of their keys.
    pub fn load(&self, batch: u64) -> Result<Measured> {
        let begin = Instant::now();
        let mut session = self.instance.session()?;
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let mut measured = Measured::default();
        let mut last = begin;
        for first in (0..self.workload.records).step_by(batch as usize) {
            let numbers = first..(first + batch).min(self.workload.records);
            write(&mut *session, &mut measured.retries, &mut |writer| {
                for number in numbers.clone() {
                    self.encode(number, 0, &mut key, &mut value);
                    writer.insert(&key, &value)?;
                }
                Ok(())
            })?;
            let now = Instant::now();
            measured.latencies.record(now - last);
            last = now;
        }
        self.next.store(self.workload.records, Ordering::Relaxed);
        measured.operations = self.workload.records;
        measured.elapsed = last - begin;
        Ok(measured)
    }

    /// Runs a step on that number of threads.
    pub fn run(
        &self,
        step: &Mixture,
        threads: usize,
        duration: Duration,
        seed: u64,
    ) -> Result<Measured> {
        let start = StartGate::new(threads);
        let base = self.next.load(Ordering::Relaxed);
        let outcomes: Vec<Result<Measured>> = thread::scope(|scope| {
            let workers: Vec<_> = (0..threads as u64)
                .map(|number| {
                    let random = Random::new(mix(seed ^ mix(number)));
                    let start = &start;
                    scope.spawn(move || {
                        let session = self.instance.session();
                        // Waited for even after an error: the other threads would wait for ever.
                        let begin = start.wait();
                        let mut thread = Thread {
                            records: self,
                            step,
                            session: session?,
                            random,
                            base,
                            own: Vec::new(),
                            key: Vec::new(),
                            value: Vec::new(),
                        };
                        thread.work(begin, duration)
                    })
                })
                .collect();
            workers
                .into_iter()
                .map(|worker| worker.join().unwrap_or_else(|_| Err(anyhow!("a thread panicked"))))
                .collect()
        });
        let mut total = Measured::default();
        for outcome in outcomes {
            let outcome = outcome.context(step.name)?;
            total.operations += outcome.operations;
            total.elapsed = total.elapsed.max(outcome.elapsed);
            total.latencies.merge(&outcome.latencies);
            total.retries += outcome.retries;
            total.seconds.resize(total.seconds.len().max(outcome.seconds.len()), 0);
            for (sum, one) in total.seconds.iter_mut().zip(&outcome.seconds) {
                *sum += one;
            }
        }
        Ok(total)
    }

    /// Reads all records in order: each must be whole, and none may be missing.
    pub fn verify(&self) -> Result<()> {
        let mut session = self.instance.session()?;
        let mut last: Vec<u8> = Vec::new();
        let (mut count, mut wrong) = (0, 0);
        session.scan(&mut |key, value| {
            count += 1;
            let in_place = key > &last[..] && value.len() == self.workload.value_size;
            wrong += u64::from(!in_place || !is_whole(value));
            last.clear();
            last.extend_from_slice(key);
        })?;
        let expected = self.next.load(Ordering::Relaxed);
        ensure!(wrong == 0, "{wrong} records are out of order or not whole");
        ensure!(count == expected, "{count} records where {expected} must be");
        Ok(())
    }

    fn encode(&self, number: u64, generation: u64, key: &mut Vec<u8>, value: &mut Vec<u8>) {
        self.encode_key(number, key);
        value.resize(self.workload.value_size, 0);
        let mut word = mix(number ^ generation << 40);
        let mut sum = 0;
        let (first, rest) = value.split_at_mut(8);
        let (words, tail) = rest.as_chunks_mut::<8>();
        for chunk in words {
            word = word.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(number);
            sum ^= word;
            *chunk = word.to_le_bytes();
        }
        tail.fill(0);
        first.copy_from_slice(&sum.to_le_bytes());
    }

    fn encode_key(&self, number: u64, key: &mut Vec<u8>) {
        key.clear();
        key.extend_from_slice(&mix(number ^ self.workload.seed << 20).to_be_bytes());
        key.extend_from_slice(&number.to_be_bytes());
        key.resize(self.workload.key_size, 0);
    }
}

/// Whether a value is as `encode` writes it; looks at every byte.
fn is_whole(value: &[u8]) -> bool {
    let (words, tail) = value.as_chunks::<8>();
    let sum = words.iter().fold(0, |sum, word| sum ^ u64::from_le_bytes(*word));
    let tail = tail.iter().fold(0, |all, &byte| all | byte);
    sum == 0 && tail == 0
}

/// Runs a transaction until it comes through.
fn write(
    session: &mut dyn Session,
    retries: &mut u64,
    work: &mut dyn FnMut(&mut dyn Writer) -> OpResult,
) -> Result<()> {
    for _ in 0..RETRY_LIMIT {
        match session.write(work) {
            Ok(()) => return Ok(()),
            Err(OpError::Failed(error)) => return Err(error),
            Err(OpError::Retry) => *retries += 1,
        }
        thread::yield_now();
    }
    Err(anyhow!("the engine gave the same transaction up {RETRY_LIMIT} times"))
}

/// One thread at work.
struct Thread<'a> {
    records: &'a Records<'a>,
    step: &'a Mixture,
    session: Box<dyn Session + 'a>,
    random: Random,
    /// Records before the step.
    base: u64,
    /// Numbers of the records that this thread has inserted in the step.
    own: Vec<u64>,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Thread<'_> {
    fn work(&mut self, begin: Instant, duration: Duration) -> Result<Measured> {
        let mut measured = Measured::default();
        let operations = self.records.workload.ops_per_txn;
        let mut last = begin;
        // At least one transaction, however short the step is.
        loop {
            let kind = self.draw_kind();
            let numbers: Vec<u64> = (0..operations).map(|_| self.draw(kind)).collect();
            self.transaction(kind, &numbers, &mut measured.retries)?;
            if kind == Kind::Insert {
                self.own.extend(&numbers);
            }
            let now = Instant::now();
            measured.latencies.record(now - last);
            measured.operations += operations as u64;
            let second = (now - begin).as_secs() as usize;
            if second < duration.as_secs() as usize {
                measured.seconds.resize(second + 1, 0);
                measured.seconds[second] += operations as u64;
            }
            last = now;
            if last - begin >= duration {
                break;
            }
        }
        measured.elapsed = last - begin;
        Ok(measured)
    }

    fn draw_kind(&mut self) -> Kind {
        let mut left = self.random.fraction();
        for &(share, kind) in self.step.kinds {
            if left < share {
                return kind;
            }
            left -= share;
        }
        self.step.kinds[0].1
    }

    fn draw(&mut self, kind: Kind) -> u64 {
        if kind == Kind::Insert {
            return self.records.next.fetch_add(1, Ordering::Relaxed);
        }
        match self.step.choice {
            Choice::Uniform => self.random.below(self.base),
            Choice::Zipf => self.records.zipf.draw(&mut self.random),
            Choice::Latest => {
                let back = self.records.zipf.rank(&mut self.random);
                match (self.own.len() as u64).checked_sub(back + 1) {
                    Some(at) => self.own[at as usize],
                    None => self.base - 1 - (back - self.own.len() as u64) % self.base,
                }
            }
        }
    }

    fn transaction(&mut self, kind: Kind, numbers: &[u64], retries: &mut u64) -> Result<()> {
        if matches!(kind, Kind::Update | Kind::Insert) {
            return self.write(kind, numbers, retries);
        }
        let (records, key, value) = (self.records, &mut self.key, &mut self.value);
        let lengths = &mut self.random;
        let outcome = self.session.read(&mut |reader| {
            for &number in numbers {
                records.encode_key(number, key);
                if matches!(kind, Kind::Read | Kind::Modify) {
                    let found = reader.get(key, value)?;
                    if !found || !is_whole(value) {
                        return Err(anyhow!("record {number} is missing or not whole").into());
                    }
                } else {
                    let count = match kind {
                        Kind::ScanSome => 1 + lengths.below(SCAN_RECORDS as u64) as usize,
                        _ => SCAN_RECORDS,
                    };
                    let backward = kind == Kind::ScanDown;
                    scan(reader, Span { from: key, backward, count })?;
                }
            }
            Ok(())
        });
        match outcome {
            Ok(()) if kind == Kind::Modify => self.write(kind, numbers, retries),
            Ok(()) => Ok(()),
            Err(OpError::Failed(error)) => Err(error),
            Err(OpError::Retry) => Err(anyhow!("the engine gave a read-only transaction up")),
        }
    }

    fn write(&mut self, kind: Kind, numbers: &[u64], retries: &mut u64) -> Result<()> {
        let (records, key, value) = (self.records, &mut self.key, &mut self.value);
        let generation = self.random.next_u64() >> 40;
        write(&mut *self.session, retries, &mut |writer| {
            for &number in numbers {
                records.encode(number, generation, key, value);
                match kind {
                    Kind::Insert => writer.insert(key, value)?,
                    _ => writer.update(key, value)?,
                }
            }
            Ok(())
        })
    }
}

/// Reads a span and looks at every byte of its records.
fn scan(reader: &mut dyn Reader, span: Span<'_>) -> OpResult {
    let (mut count, mut wrong) = (0, 0);
    let mut key_sum = 0;
    reader.range(span, &mut |key, value| {
        count += 1;
        key_sum ^= key.iter().fold(0, |sum, &byte| sum ^ byte);
        wrong += u64::from(!is_whole(value));
    })?;
    std::hint::black_box(key_sum);
    if wrong > 0 || count == 0 {
        return Err(anyhow!("{wrong} of {count} scanned records are not whole").into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_each_step_add_up_to_one() {
        for step in &MIXTURES {
            let sum: f64 = step.kinds.iter().map(|(share, _)| share).sum();
            assert!((sum - 1.0).abs() < 1e-9, "{}", step.name);
        }
    }

    #[test]
    fn one_changed_byte_shows() {
        for size in [16, 100, 4096] {
            let mut value = vec![0; size];
            assert!(is_whole(&value));
            for at in [0, size / 2, size - 1] {
                value[at] ^= 4;
                assert!(!is_whole(&value), "{size} bytes, byte {at}");
                value[at] ^= 4;
            }
        }
    }
}
