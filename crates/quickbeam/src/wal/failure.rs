//! Why a log accepts nothing any more; shared by the log and whoever makes its segments ready.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};
use crate::sync::locks::Mutex;

/// The first failure, once there is one.
#[derive(Default)]
pub struct Failure {
    reason: Mutex<Option<String>>,
    failed: AtomicBool,
}

impl Failure {
    /// Refuses everything from now on; the first reason stays.
    pub fn set(&self, reason: &Error) {
        self.reason.lock().get_or_insert_with(|| reason.to_string());
        self.failed.store(true, Ordering::Release);
    }

    #[inline]
    pub fn is_set(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// An error once there was a failure.
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.is_set() { Err(self.error()) } else { Ok(()) }
    }

    #[cold]
    fn error(&self) -> Error {
        let reason = self.reason.lock().clone().unwrap_or_default();
        Error::Failed { reason }
    }
}
