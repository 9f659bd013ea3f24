//! One thread of Tptbm: its transactions, drawn from the mix.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};

use super::subscribers::{Key, Operation, Procedure, TptbmStatements};
use crate::engine::OpResult;
use crate::sql::plan::Start;
use crate::sql::trace::Traced;
use crate::sql::{Access, SqlConnection, SqlInstance, retry};
use crate::statistics::Latencies;
use crate::workload::random::{Random, mix};

/// What a run consists of.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    /// Percent of operations that read.
    pub reads: u8,
    /// Percent that insert.
    pub inserts: u8,
    /// Percent that delete.
    pub deletes: u8,
    /// Least operations of a transaction.
    pub min: u32,
    /// Most operations of a transaction.
    pub max: u32,
    /// One insertion, three reads, one update in each transaction.
    pub multiop: bool,
    /// The same in one call of a stored procedure.
    pub procedure: bool,
    /// Whether transactions that only read are committed.
    pub commit_reads: bool,
    /// Transactions of each thread.
    pub transactions: u64,
}

impl Mix {
    /// Percent of operations that update.
    pub fn updates(&self) -> u8 {
        100 - self.reads - self.inserts - self.deletes
    }

    /// Whether this can be run.
    pub fn validate(&self) -> Result<()> {
        let sum = u32::from(self.reads) + u32::from(self.inserts) + u32::from(self.deletes);
        ensure!(sum <= 100, "reads, inserts and deletes are more than 100 percent");
        ensure!(0 < self.min && self.min <= self.max, "--min must be from 1 to --max");
        ensure!(!self.procedure || self.multiop, "--plsql goes with --multiop");
        Ok(())
    }
}

/// One thread's share of a run.
pub struct TptbmWorker<'a> {
    /// The mix.
    pub mix: &'a Mix,
    /// The table is filled with keys below.
    pub key: u32,
    /// The thread's number.
    pub thread: usize,
    /// How many there are.
    pub threads: usize,
    /// Seed of the random choices.
    pub seed: u64,
    /// Whether every statement is printed.
    pub trace: bool,
}

/// What a thread measured.
pub struct TptbmThreadOutcome {
    /// What it changed: operations that were committed and found their row.
    pub changes: Vec<Operation>,
    /// From the common start to the end of its last transaction.
    pub elapsed: Duration,
    /// One for each transaction, retries included.
    pub latencies: Latencies,
    /// How often a transaction was run again.
    pub retries: u64,
}

/// A sequence of keys that belongs to one thread: every `step` ids, all numbers of each.
struct Sequence {
    id: i32,
    number: i32,
    step: i32,
    key: i32,
}

impl Sequence {
    fn next(&mut self) -> Key {
        let key = Key { id: self.id, number: self.number };
        self.number += 1;
        if self.number == self.key {
            (self.id, self.number) = (self.id + self.step, 0);
        }
        key
    }
}

/// Draws transactions.
struct Draw<'a> {
    mix: &'a Mix,
    random: Random,
    key: u64,
    inserts: Sequence,
    deletes: Sequence,
}

impl Draw<'_> {
    fn key(&mut self) -> Key {
        let mut part = || self.random.below(self.key) as i32;
        Key { id: part(), number: part() }
    }

    fn transaction(&mut self, operations: &mut Vec<Operation>) {
        operations.clear();
        if self.mix.multiop {
            operations.push(Operation::Insert(self.inserts.next()));
            for _ in 0..3 {
                let key = self.key();
                operations.push(Operation::Read(key));
            }
            let key = self.key();
            operations.push(Operation::Update(key));
            return;
        }
        let Mix { reads, inserts, deletes, min, max, .. } = *self.mix;
        let count = u64::from(min) + self.random.below(u64::from(max - min) + 1);
        for _ in 0..count {
            let number = self.random.below(100) as u8;
            operations.push(if number < reads {
                Operation::Read(self.key())
            } else if number < reads + inserts {
                Operation::Insert(self.inserts.next())
            } else if number < reads + inserts + deletes {
                Operation::Delete(self.deletes.next())
            } else {
                Operation::Update(self.key())
            });
        }
    }
}

/// A connection with its statements.
struct Client<'c> {
    connection: Box<dyn SqlConnection + 'c>,
    statements: TptbmStatements,
    procedure: Option<Procedure>,
}

impl TptbmWorker<'_> {
    fn client<'c>(&self, instance: &'c dyn SqlInstance) -> Result<Client<'c>> {
        let mut connection = instance.connect()?;
        if self.trace {
            connection = Box::new(Traced::new(connection, self.thread));
        }
        let statements = TptbmStatements::prepare(&mut *connection)?;
        let procedure = match self.mix.procedure {
            true => Some(Procedure::prepare(&mut *connection)?),
            false => None,
        };
        Ok(Client { connection, statements, procedure })
    }

    fn draw(&self) -> Draw<'_> {
        let sequence = |first: u32| Sequence {
            id: first as i32 + self.thread as i32,
            number: 0,
            step: self.threads as i32,
            key: self.key as i32,
        };
        Draw {
            mix: self.mix,
            random: Random::new(mix(self.seed ^ mix(self.thread as u64 + 1))),
            key: self.key.into(),
            inserts: sequence(self.key),
            deletes: sequence(0),
        }
    }

    /// Connects, waits until every thread has, and runs the transactions.
    pub fn run(&self, instance: &dyn SqlInstance, start: &Start) -> Result<TptbmThreadOutcome> {
        let client = self.client(instance);
        // Waited for even after an error: the other threads would wait for ever.
        let begin = start.wait();
        let mut client = client?;
        let mut draw = self.draw();
        let mut outcome = TptbmThreadOutcome {
            changes: Vec::new(),
            elapsed: Duration::ZERO,
            latencies: Latencies::default(),
            retries: 0,
        };
        let (mut operations, mut found) = (Vec::new(), Vec::new());
        let mut last = begin;
        for _ in 0..self.mix.transactions {
            draw.transaction(&mut operations);
            outcome.retries += self.transaction(&mut client, &operations, &mut found)?;
            for (&operation, &rows) in operations.iter().zip(&found) {
                check(operation, rows, self)?;
                if rows > 0 && !matches!(operation, Operation::Read(_)) {
                    outcome.changes.push(operation);
                }
            }
            let now = Instant::now();
            outcome.latencies.record(now - last);
            last = now;
        }
        outcome.elapsed = last - begin;
        Ok(outcome)
    }

    /// Runs one transaction until it commits; records how many rows each operation
    /// found, and returns how often it had to be run again.
    fn transaction(
        &self,
        client: &mut Client<'_>,
        operations: &[Operation],
        found: &mut Vec<u64>,
    ) -> Result<u64> {
        let Client { connection, statements, procedure } = client;
        let only_reads = operations.iter().all(|o| matches!(o, Operation::Read(_)));
        let mut all = |connection: &mut dyn SqlConnection| -> OpResult {
            found.clear();
            if let Some(procedure) = procedure {
                return call(procedure, connection, operations, found);
            }
            for &operation in operations {
                found.push(statements.run(connection, operation)?);
            }
            Ok(())
        };
        match (only_reads, self.mix.commit_reads) {
            (true, false) => retry::again(|| all(&mut **connection)),
            (true, true) => retry::transaction(&mut **connection, Access::Read, all),
            (false, _) => retry::transaction(&mut **connection, Access::Write, all),
        }
    }
}

fn call(
    procedure: &mut Procedure,
    connection: &mut dyn SqlConnection,
    operations: &[Operation],
    found: &mut Vec<u64>,
) -> OpResult {
    let [
        Operation::Insert(insert),
        Operation::Read(a),
        Operation::Read(b),
        Operation::Read(c),
        Operation::Update(update),
    ] = *operations
    else {
        return Err(anyhow!("the procedure has another transaction than this").into());
    };
    let changed = procedure.call(connection, insert, [a, b, c], update)?;
    found.extend([1, 1, 1, 1, changed]);
    Ok(())
}

/// Rows are found unless something deletes; a row is inserted and deleted once.
fn check(operation: Operation, rows: u64, worker: &TptbmWorker<'_>) -> Result<()> {
    let expected = match operation {
        Operation::Insert(_) => rows == 1,
        // A thread that has removed all its rows goes on above, where there may be none.
        Operation::Delete(key) => rows == 1 || key.id >= worker.key as i32,
        Operation::Read(_) | Operation::Update(_) => {
            rows == 1 || (rows == 0 && worker.mix.deletes > 0)
        }
    };
    ensure!(expected, "{operation:?} found {rows} rows");
    Ok(())
}
