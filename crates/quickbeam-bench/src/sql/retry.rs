//! Transactions that an engine may give up: run again from their beginning until they come through.

use std::thread;

use anyhow::{Result, anyhow};

use super::{Access, SqlConnection};
use crate::engine::{OpError, OpResult};

/// A transaction that was given up this often by the engine will never come through.
const LIMIT: u32 = 100_000;

/// The outcome of work that cannot meet a conflict.
pub fn settled<T>(outcome: OpResult<T>) -> Result<T> {
    outcome.map_err(|error| match error {
        OpError::Failed(error) => error,
        OpError::Retry => anyhow!("the engine gave up a transaction that was alone"),
    })
}

/// How work in a transaction ends that has not failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With a commit.
    Commit,
    /// With a rollback, as the application wants it.
    Rollback,
}

/// Runs `work` in a transaction until it is committed; returns how often it had to be run again.
pub fn transaction(
    connection: &mut dyn SqlConnection,
    access: Access,
    mut work: impl FnMut(&mut dyn SqlConnection) -> OpResult,
) -> Result<u64> {
    ended_transaction(connection, access, |connection| work(connection).map(|()| Ending::Commit))
}

/// Runs `work` in a transaction until it has come to its ending; returns how often it had to be
/// run again.
pub fn ended_transaction(
    connection: &mut dyn SqlConnection,
    access: Access,
    mut work: impl FnMut(&mut dyn SqlConnection) -> OpResult<Ending>,
) -> Result<u64> {
    again(|| {
        let ending = connection.begin(access).and_then(|()| work(connection));
        let outcome = ending.and_then(|ending| match ending {
            Ending::Commit => connection.commit().map(|()| true),
            Ending::Rollback => Ok(false),
        });
        if !matches!(outcome, Ok(true)) {
            connection.rollback();
        }
        outcome.map(|_| ())
    })
}

/// Runs `attempt` until the engine does not give it up; returns how often it had to be run again.
pub fn again(mut attempt: impl FnMut() -> OpResult) -> Result<u64> {
    for number in 0..LIMIT {
        match attempt() {
            Ok(()) => return Ok(u64::from(number)),
            Err(OpError::Failed(error)) => return Err(error),
            Err(OpError::Retry) if number < 16 => thread::yield_now(),
            // Those in the way need the processor more than the next vain attempt does.
            Err(OpError::Retry) => thread::sleep(std::time::Duration::from_micros(50)),
        }
    }
    Err(anyhow!("the engine gave the same transaction up {LIMIT} times"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_up_is_run_again_and_what_fails_is_not() {
        let mut left = 3;
        let retried = again(|| {
            left -= 1;
            if left == 0 { Ok(()) } else { Err(OpError::Retry) }
        });
        assert_eq!((retried.unwrap(), left), (2, 0));
        let mut calls = 0;
        let failed = again(|| {
            calls += 1;
            Err(anyhow!("broken").into())
        });
        assert_eq!((failed.unwrap_err().to_string(), calls), ("broken".to_owned(), 1));
    }
}
