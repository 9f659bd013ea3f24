//! The permanent failure state of a log, shared by the log and the preparation of segments.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};
use crate::sync::locks::Mutex;

/// The first failure, if there was one.
#[derive(Default)]
pub struct Failure {
    reason: Mutex<Option<String>>,
    failed: AtomicBool,
}

impl Failure {
    /// Makes every later [`check`](Self::check) fail. The first reason is kept.
    pub fn set(&self, reason: &Error) {
        self.reason.lock().get_or_insert_with(|| reason.to_string());
        self.failed.store(true, Ordering::Release);
    }

    #[inline]
    pub fn is_set(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Returns an error if there was a failure.
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.is_set() { Err(self.error()) } else { Ok(()) }
    }

    #[cold]
    fn error(&self) -> Error {
        let reason = self.reason.lock().clone().unwrap_or_default();
        Error::Failed { reason: reason.into() }
    }
}
