//! The session of a worker: none. What a worker evaluates does not ask for one (PARALLEL-3).

use std::time::Duration;

use crate::catalog::{BOOTSTRAP, ObjectId};
use crate::error::{Result, SqlError};
use crate::expression::{
    AdvisoryKey, AdvisoryRequest, SessionActivity, SessionLock, SessionSignal, SessionState,
};

/// The session of a worker.
pub struct WorkerSession;

#[cold]
fn no_session<T>() -> Result<T> {
    Err(SqlError::internal("a worker has no session"))
}

impl SessionState for WorkerSession {
    fn setting(&self, _name: &str) -> Result<Option<String>> {
        no_session()
    }

    fn settings(&self) -> Result<Vec<[String; 3]>> {
        no_session()
    }

    fn set_setting(&self, _name: &str, _value: &str, _is_local: bool) -> Result<String> {
        no_session()
    }

    fn log_position(&self) -> u64 {
        0
    }

    fn process_id(&self) -> i32 {
        0
    }

    fn trigger_depth(&self) -> i32 {
        0
    }

    fn opened(&self) -> i64 {
        0
    }

    fn new_transaction_number(&self) -> u64 {
        0
    }

    fn has_changed(&self) -> bool {
        false
    }

    fn role(&self) -> ObjectId {
        BOOTSTRAP
    }

    fn notify(&self, _channel: &str, _payload: &str) -> Result<()> {
        no_session()
    }

    fn backup(&self, _name: &str) -> Result<u64> {
        no_session()
    }

    fn control(&self, _command: &str, _argument: &str) -> Result<String> {
        no_session()
    }

    fn activities(&self) -> Vec<SessionActivity> {
        Vec::new()
    }

    fn signal(&self, _number: i32, _signal: SessionSignal) -> bool {
        false
    }

    fn sleep(&self, _time: Duration) -> Result<()> {
        no_session()
    }

    fn warn(&self, _message: &str) {}

    fn advisory_locks(&self) -> Vec<SessionLock> {
        Vec::new()
    }

    fn lock_advisory(&self, _request: AdvisoryRequest) -> Result<bool> {
        no_session()
    }

    fn unlock_advisory(&self, _key: AdvisoryKey, _is_shared: bool) -> bool {
        false
    }

    fn unlock_all_advisory(&self) {}
}
