//! Runs a closure in a transaction and retries it after a conflict.
//!
//! Above: the user. Below: [`Environment::begin`]. [`Options::retry_timeout`] bounds the retries.
//! Between retries the thread waits for a random, growing time, so that threads that change the
//! same records do not conflict again at once.
//!
//! [`Options::retry_timeout`]: crate::Options::retry_timeout

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Environment;
use crate::error::{Error, Result};
use crate::transaction::Transaction;

/// Retries without a pause: most conflicts are over by then.
const QUICK_RETRIES: u32 = 3;
/// Longest pause before the first retry that pauses; it doubles with each later one.
const FIRST_PAUSE: Duration = Duration::from_micros(50);
/// Longest pause before any retry.
const LONGEST_PAUSE: Duration = Duration::from_millis(5);

impl Environment {
    /// Runs `work` in a transaction and commits it. If `work` or the commit fails with a
    /// [retryable](Error::is_retryable) error, retries both in a new transaction until
    /// [`Options::retry_timeout`](crate::Options::retry_timeout) has passed.
    ///
    /// `work` may run more than once: it should have no effects outside the transaction. If it has
    /// errors of its own, use [`transact_with`](Self::transact_with).
    /// [`Statistics::retries`](crate::Statistics::retries) counts the retries.
    ///
    /// ```
    /// # fn main() -> quickbeam::Result<()> {
    /// # let environment = quickbeam::Environment::open_in_memory(quickbeam::Options::default())?;
    /// let counters = environment.create_database("counters")?;
    /// let value = environment.transact(|transaction| {
    ///     let value = counters.get(transaction, b"visits")?.map_or(0, |bytes| bytes[0]) + 1;
    ///     counters.put(transaction, b"visits", &[value])?;
    ///     Ok(value)
    /// })?;
    /// assert_eq!(value, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn transact<T>(&self, work: impl FnMut(&Transaction) -> Result<T>) -> Result<T> {
        self.retry(work, |_, error| error.is_retryable())
    }

    /// Like [`transact`](Self::transact), for a closure with its own error type. Retries if a call
    /// in the transaction failed with a retryable [`Error`], even if the closure returned another
    /// error. Any other error of the closure rolls the transaction back and is returned.
    ///
    /// ```
    /// use quickbeam::{Environment, Error, Options};
    ///
    /// #[derive(Debug)]
    /// enum TransferError {
    ///     TooLittle(u8),
    ///     Database(Error),
    /// }
    ///
    /// impl From<Error> for TransferError {
    ///     fn from(error: Error) -> Self {
    ///         TransferError::Database(error)
    ///     }
    /// }
    ///
    /// # fn main() -> quickbeam::Result<()> {
    /// let environment = Environment::open_in_memory(Options::default())?;
    /// let accounts = environment.create_database("accounts")?;
    /// let paid = environment.transact_with(|transaction| {
    ///     let balance = accounts.get(transaction, b"alice")?.map_or(0, |bytes| bytes[0]);
    ///     if balance < 10 {
    ///         return Err(TransferError::TooLittle(balance));
    ///     }
    ///     accounts.put(transaction, b"alice", &[balance - 10])?;
    ///     Ok(())
    /// });
    /// assert!(matches!(paid, Err(TransferError::TooLittle(0))));
    /// # Ok(())
    /// # }
    /// ```
    pub fn transact_with<T, E: From<Error>>(
        &self,
        work: impl FnMut(&Transaction) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        self.retry(work, |transaction, _| transaction.has_met_conflict())
    }

    /// Runs `work` until a commit succeeds, time runs out or `is_conflict` returns false.
    fn retry<T, E: From<Error>>(
        &self,
        mut work: impl FnMut(&Transaction) -> std::result::Result<T, E>,
        is_conflict: impl Fn(&Transaction, &E) -> bool,
    ) -> std::result::Result<T, E> {
        let engine = self.engine();
        let mut first_conflict = None;
        let mut retries = 0;
        loop {
            let transaction = self.begin()?;
            let (error, may_succeed) = match work(&transaction) {
                Ok(value) => match transaction.commit() {
                    Ok(()) => return Ok(value),
                    Err(error) => {
                        let may_succeed = error.is_retryable();
                        (E::from(error), may_succeed)
                    }
                },
                Err(error) => {
                    let may_succeed = is_conflict(&transaction, &error);
                    transaction.abort()?;
                    (error, may_succeed)
                }
            };
            if !may_succeed {
                return Err(error);
            }
            let now = engine.vfs.now();
            let waited = now.saturating_sub(*first_conflict.get_or_insert(now));
            if waited >= engine.options.retry_timeout {
                return Err(error);
            }
            engine.counters.retries.fetch_add(1, Ordering::Relaxed);
            self.pause(retries);
            retries += 1;
        }
    }

    /// Pauses before a retry.
    fn pause(&self, retry: u32) {
        let vfs = &self.engine().vfs;
        let Some(doublings) = retry.checked_sub(QUICK_RETRIES) else { return vfs.yield_now() };
        let longest = FIRST_PAUSE.saturating_mul(1 << doublings.min(10)).min(LONGEST_PAUSE);
        let pause = vfs.random() % longest.as_nanos() as u64;
        let event = vfs.event();
        event.wait(event.generation(), Some(Duration::from_nanos(pause)));
    }
}
