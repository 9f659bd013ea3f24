//! One thread's share of a step: transactions of the workload, timed one by one.

use std::sync::{Barrier, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use crate::engine::{Instance, OpError, OpResult, Reader, Session, Writer};
use crate::statistics::Latencies;
use crate::workload::content::Content;
use crate::workload::{SET_SIZE, Step, Workload, decode_quick, value_of};

/// A transaction that was given up this often by the engine will never come through.
const RETRY_LIMIT: u32 = 100_000;

/// Fetching is repeated until this much time has passed. A pass takes only milliseconds on today's
/// machines, too little to measure, and threads that do not run at the same time do not compete:
/// the sum of their rates would then be many times what the machine does.
const SHORTEST_FETCH: Duration = Duration::from_millis(200);

/// What one thread measured.
pub struct ThreadOutcome {
    /// Operations that came through.
    pub operations: u64,
    /// From the common start to the end of the last operation.
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
    /// The sets of the whole step, in order.
    pub order: &'a [u64],
    /// Which share of the order is this thread's.
    pub number: usize,
    /// How many shares there are.
    pub threads: usize,
}

/// Where the threads of a step begin together.
pub struct StartGate {
    barrier: Barrier,
    instant: OnceLock<Instant>,
}

impl StartGate {
    /// For `threads` threads.
    pub fn new(threads: usize) -> StartGate {
        StartGate { barrier: Barrier::new(threads), instant: OnceLock::new() }
    }

    /// Waits for the others. All get the same instant: a thread that has to wait for a processor
    /// is at work all the same, and its timer runs.
    pub fn wait(&self) -> Instant {
        self.barrier.wait();
        *self.instant.get_or_init(Instant::now)
    }
}

/// Buffers used for one record after another.
#[derive(Default)]
struct Buffers {
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Worker<'_> {
    /// Opens a session, waits until every thread has one, and runs.
    pub fn run(&self, instance: &dyn Instance, start: &StartGate) -> Result<ThreadOutcome> {
        let session = instance.session();
        // Waited for even after an error: the other threads would wait for ever.
        let begin = start.wait();
        let mut session = session?;
        let mut outcome = ThreadOutcome {
            operations: 0,
            elapsed: Duration::ZERO,
            latencies: Latencies::default(),
            retries: 0,
        };
        let mut pass = 0;
        let mut last = begin;
        loop {
            last = self.pass(&mut *session, pass, last, &mut outcome)?;
            outcome.elapsed = last - begin;
            pass += 1;
            if self.step != Step::Fetch || outcome.elapsed >= SHORTEST_FETCH {
                return Ok(outcome);
            }
        }
    }

    /// Works through one share. In further passes it is the next thread's share, so that no thread
    /// comes to have its own small share in the processor's cache.
    fn pass(
        &self,
        session: &mut dyn Session,
        pass: usize,
        mut last: Instant,
        outcome: &mut ThreadOutcome,
    ) -> Result<Instant> {
        let share = (self.number + pass) % self.threads;
        let from = self.order.len() * share / self.threads;
        let to = self.order.len() * (share + 1) / self.threads;
        let per_transaction = self.workload.ops_per_txn;
        let mut buffers = Buffers::default();
        let mut keys = Vec::with_capacity(per_transaction);
        let mut stream = (from..to).flat_map(|position| {
            let set = self.order[position];
            (set * SET_SIZE..(set + 1) * SET_SIZE).map(move |key| (position as u64, key))
        });
        while let Some((position, key)) = stream.next() {
            keys.clear();
            keys.push(key);
            keys.extend(stream.by_ref().take(per_transaction - 1).map(|(_, key)| key));
            outcome.retries += self.transaction(session, position, &keys, &mut buffers)?;
            outcome.operations += keys.len() as u64;
            let now = Instant::now();
            outcome.latencies.record(now - last);
            last = now;
        }
        Ok(last)
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
