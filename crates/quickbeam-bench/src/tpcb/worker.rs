//! One thread of TPC-B: transactions one after the other, each timed from its first statement
//! until its commit has come back.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Result, anyhow};

use super::data::{Bank, HISTORY_FILLER, Inputs, Tally};
use crate::engine::OpResult;
use crate::sql::plan::Start;
use crate::sql::{Access, Prepared, SqlConnection, SqlInstance, Value, retry};
use crate::statistics::Latencies;
use crate::workload::random::Random;

/// When a thread stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// After so much time.
    Time(Duration),
    /// After this number of transactions.
    Count(u64),
}

/// What one thread measured.
pub struct TpcbThreadOutcome {
    /// Transactions that were committed.
    pub tally: Tally,
    /// From the common start to the end of the last transaction.
    pub elapsed: Duration,
    /// Residence times: one for each transaction, retries included.
    pub latencies: Latencies,
    /// How often a transaction was run again.
    pub retries: u64,
}

/// The statements of a connection.
struct Teller<'c> {
    connection: Box<dyn SqlConnection + 'c>,
    account: Prepared,
    balance: Prepared,
    teller: Prepared,
    branch: Prepared,
    history: Prepared,
}

impl<'c> Teller<'c> {
    fn connect(instance: &'c dyn SqlInstance) -> Result<Teller<'c>> {
        let mut c = instance.connect()?;
        Ok(Teller {
            account: c.prepare("UPDATE accounts SET balance = balance + $1 WHERE id = $2")?,
            balance: c.prepare("SELECT balance FROM accounts WHERE id = $1")?,
            teller: c.prepare("UPDATE tellers SET balance = balance + $1 WHERE id = $2")?,
            branch: c.prepare("UPDATE branches SET balance = balance + $1 WHERE id = $2")?,
            history: c.prepare(
                "INSERT INTO history (teller, branch, account, delta, mtime, filler) VALUES ($1, $2, $3, $4, $5, $6)",
            )?,
            connection: c,
        })
    }

    /// The transaction of clause 1.2; returns how often it had to be run again.
    fn transaction(&mut self, inputs: Inputs) -> Result<u64> {
        let Teller { account, balance, teller, branch, history, .. } = *self;
        retry::transaction(&mut *self.connection, Access::Write, |c| {
            let delta = Value::Bigint(inputs.delta);
            one(c.execute(account, &[delta, Value::Integer(inputs.account)])?)?;
            let mut found = None;
            c.query(balance, &[Value::Integer(inputs.account)], &mut |row| found = row.integer(0))?;
            found.ok_or_else(|| anyhow!("account {} has no balance", inputs.account))?;
            one(c.execute(teller, &[delta, Value::Integer(inputs.teller)])?)?;
            one(c.execute(branch, &[delta, Value::Integer(inputs.branch)])?)?;
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            one(c.execute(
                history,
                &[
                    Value::Integer(inputs.teller),
                    Value::Integer(inputs.branch),
                    Value::Integer(inputs.account),
                    delta,
                    Value::Bigint(now.as_micros() as i64),
                    Value::Text(HISTORY_FILLER),
                ],
            )?)
        })
    }
}

fn one(rows: u64) -> OpResult {
    match rows {
        1 => Ok(()),
        rows => Err(anyhow!("{rows} rows changed where one was expected").into()),
    }
}

/// Connects, waits until every thread has, and runs transactions up to the limit.
pub fn run(
    instance: &dyn SqlInstance,
    bank: &Bank,
    limit: Limit,
    seed: u64,
    start: &Start,
) -> Result<TpcbThreadOutcome> {
    let teller = Teller::connect(instance);
    // Waited for even after an error: the other threads would wait for ever.
    let begin = start.wait();
    let mut teller = teller?;
    let mut random = Random::new(seed);
    let mut outcome = TpcbThreadOutcome {
        tally: Tally::default(),
        elapsed: Duration::ZERO,
        latencies: Latencies::default(),
        retries: 0,
    };
    let mut last = begin;
    loop {
        let inputs = bank.draw(&mut random);
        outcome.retries += teller.transaction(inputs)?;
        outcome.tally.add(inputs.delta);
        let now = Instant::now();
        outcome.latencies.record(now - last);
        last = now;
        outcome.elapsed = now - begin;
        let enough = match limit {
            Limit::Time(time) => outcome.elapsed >= time,
            Limit::Count(count) => outcome.tally.count >= count,
        };
        if enough {
            return Ok(outcome);
        }
    }
}
