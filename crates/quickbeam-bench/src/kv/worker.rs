//! One thread's share of a step: transactions of the workload, timed one by one.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use crate::engine::{Instance, OpError, OpResult, Reader, Session, Writer};
use crate::statistics::Latencies;
use crate::workload::content::Content;
use crate::workload::{SET_SIZE, Step, Workload, decode_quick, value_of};

/// A transaction that was given up this often by the engine will never come through.
const RETRY_LIMIT: u32 = 100_000;

/// What one thread measured.
pub struct ThreadOutcome {
    /// Operations that came through.
    pub operations: u64,
    /// From the first operation to the end of the last.
    pub elapsed: Duration,
    /// One for each transaction, retries included.
    pub latencies: Latencies,
    /// How often a transaction was run again.
    pub retries: u64,
}

/// One thread's share of a step.
pub struct Worker<'a> {
    /// The work.
    pub workload: &'a Workload,
    /// The step.
    pub step: Step,
    /// What the database holds before the step.
    pub content: &'a Content,
    /// Position of the first of `sets` in the order of the whole step.
    pub first: u64,
    /// The sets to work on, in order.
    pub sets: &'a [u64],
}

/// Buffers used for one record after another.
#[derive(Default)]
struct Buffers {
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Worker<'_> {
    /// Opens a session, waits until every thread has one, and runs.
    pub fn run(&self, instance: &dyn Instance, barrier: &Barrier) -> Result<ThreadOutcome> {
        let session = instance.session();
        // Waited for even after an error: the other threads would wait for ever.
        barrier.wait();
        let mut session = session?;
        let mut latencies = Latencies::default();
        let mut buffers = Buffers::default();
        let mut keys = Vec::with_capacity(self.workload.ops_per_txn);
        let mut retries = 0;
        let start = Instant::now();
        let mut last = start;
        let mut stream = (self.first..).zip(self.sets).flat_map(|(position, &set)| {
            (set * SET_SIZE..(set + 1) * SET_SIZE).map(move |key| (position, key))
        });
        while let Some((position, key)) = stream.next() {
            keys.clear();
            keys.push(key);
            keys.extend(stream.by_ref().take(self.workload.ops_per_txn - 1).map(|(_, key)| key));
            retries += self.transaction(&mut *session, position, &keys, &mut buffers)?;
            let now = Instant::now();
            latencies.record(now - last);
            last = now;
        }
        let operations = self.sets.len() as u64 * SET_SIZE;
        Ok(ThreadOutcome { operations, elapsed: last - start, latencies, retries })
    }

    /// Runs one transaction until it comes through; returns how often it had to be run again.
    fn transaction(
        &self,
        session: &mut dyn Session,
        position: u64,
        keys: &[u64],
        buffers: &mut Buffers,
    ) -> Result<u64> {
        let fetches = match self.step {
            Step::Fetch => true,
            Step::Mixed => self.workload.fetches(position),
            _ => false,
        };
        for attempt in 0..RETRY_LIMIT {
            let outcome = if fetches {
                session.read(&mut |reader| self.fetch(reader, keys, buffers))
            } else {
                session.write(&mut |writer| self.change(writer, keys, buffers))
            };
            match outcome {
                Ok(()) => return Ok(u64::from(attempt)),
                Err(OpError::Failed(error)) => return Err(error),
                Err(OpError::Retry) => thread::yield_now(),
            }
        }
        Err(anyhow!("the engine gave the same transaction up {RETRY_LIMIT} times"))
    }

    fn fetch(&self, reader: &mut dyn Reader, keys: &[u64], buffers: &mut Buffers) -> OpResult {
        for &key in keys {
            self.workload.encode_key(key, &mut buffers.key);
            if !reader.get(&buffers.key, &mut buffers.value)? {
                return Err(anyhow!("record {key} is not there").into());
            }
            let found = decode_quick(&buffers.value, self.workload.value_size);
            let before = self.content.value(key);
            let mixed = self.step == Step::Mixed && found == Some(value_of(Step::Mixed, key));
            if found != before && !mixed {
                return Err(anyhow!("record {key} has value {found:?}, not {before:?}").into());
            }
        }
        Ok(())
    }

    fn change(&self, writer: &mut dyn Writer, keys: &[u64], buffers: &mut Buffers) -> OpResult {
        for &key in keys {
            self.workload.encode_key(key, &mut buffers.key);
            if self.step != Step::Delete {
                self.workload.encode_value(self.step, key, &mut buffers.value);
            }
            match self.step {
                Step::Populate | Step::Insert => writer.insert(&buffers.key, &buffers.value)?,
                Step::Update | Step::Mixed | Step::Rewrite => {
                    writer.update(&buffers.key, &buffers.value)?
                }
                Step::Delete => writer.delete(&buffers.key)?,
                Step::Fetch => return Err(anyhow!("fetch does not change anything").into()),
            }
        }
        Ok(())
    }
}
