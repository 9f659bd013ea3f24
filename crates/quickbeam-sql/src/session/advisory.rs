//! Advisory locks: names that sessions of one [`SqlDatabase`](crate::SqlDatabase) lock.
//!
//! The locks live in memory, beside the environment. A lock that the same session takes again is
//! released as often. A wait that closes a cycle of sessions ends with an error (40P01).

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::error::{Result, SqlError, SqlState};
use crate::expression::{AdvisoryKey, AdvisoryRequest, SessionLock};
use crate::types::current_moment;

/// How long a waiting session sleeps before it looks whether it was cancelled.
const STEP: Duration = Duration::from_millis(10);

/// The advisory locks of a database.
#[derive(Debug, Default)]
pub(crate) struct AdvisoryLocks {
    table: Mutex<LockTable>,
    released: Condvar,
}

#[derive(Debug, Default)]
struct LockTable {
    held: HashMap<AdvisoryKey, Vec<Hold>>,
    /// The lock that each waiting session waits for.
    waiting: HashMap<i32, AdvisoryWait>,
}

/// A wait for a lock.
#[derive(Clone, Copy, Debug)]
struct AdvisoryWait {
    key: AdvisoryKey,
    is_shared: bool,
    /// When it began, in microseconds since 1970-01-01 UTC.
    since: i64,
}

/// One lock taken by a session, with the number of times.
#[derive(Debug)]
struct Hold {
    session: i32,
    is_shared: bool,
    in_transaction: bool,
    count: u32,
}

impl LockTable {
    /// Returns the sessions that keep a session from a lock.
    fn blockers(&self, session: i32, key: AdvisoryKey, is_shared: bool) -> Vec<i32> {
        let holds = self.held.get(&key).map_or(&[][..], |holds| &holds[..]);
        let blocks = |hold: &&Hold| hold.session != session && !(is_shared && hold.is_shared);
        holds.iter().filter(blocks).map(|hold| hold.session).collect()
    }

    /// Returns whether the sessions that a session waits for wait for it in turn.
    fn is_deadlocked(&self, session: i32, key: AdvisoryKey, is_shared: bool) -> bool {
        let mut open = self.blockers(session, key, is_shared);
        let mut seen = Vec::new();
        while let Some(next) = open.pop() {
            if next == session {
                return true;
            }
            if seen.contains(&next) {
                continue;
            }
            seen.push(next);
            if let Some(wait) = self.waiting.get(&next) {
                open.extend(self.blockers(next, wait.key, wait.is_shared));
            }
        }
        false
    }

    fn add(&mut self, session: i32, request: AdvisoryRequest) {
        let AdvisoryRequest { key, is_shared, in_transaction, .. } = request;
        let holds = self.held.entry(key).or_default();
        let same = |hold: &&mut Hold| {
            (hold.session, hold.is_shared, hold.in_transaction)
                == (session, is_shared, in_transaction)
        };
        match holds.iter_mut().find(same) {
            Some(hold) => hold.count += 1,
            None => holds.push(Hold { session, is_shared, in_transaction, count: 1 }),
        }
    }

    fn retain(&mut self, keep: impl Fn(&Hold) -> bool) {
        self.held.retain(|_, holds| {
            holds.retain(&keep);
            !holds.is_empty()
        });
    }
}

impl AdvisoryLocks {
    /// Takes a lock and returns whether it did. A request that waits calls `check` from time to
    /// time, whose error ends the wait.
    pub fn lock(
        &self,
        session: i32,
        request: AdvisoryRequest,
        check: impl Fn() -> Result<()>,
    ) -> Result<bool> {
        let AdvisoryRequest { key, is_shared, waits, .. } = request;
        let mut table = self.table.lock();
        let mut since = None;
        loop {
            if table.blockers(session, key, is_shared).is_empty() {
                table.add(session, request);
                return Ok(true);
            }
            if !waits {
                return Ok(false);
            }
            if table.is_deadlocked(session, key, is_shared) {
                let message = "deadlock detected";
                return Err(SqlError::new(SqlState::DeadlockDetected, message));
            }
            let since = *since.get_or_insert_with(current_moment);
            table.waiting.insert(session, AdvisoryWait { key, is_shared, since });
            self.released.wait_for(&mut table, STEP);
            table.waiting.remove(&session);
            check()?;
        }
    }

    /// Returns the locks that sessions hold or wait for.
    pub fn all(&self) -> Vec<SessionLock> {
        let table = self.table.lock();
        let held = table.held.iter().flat_map(|(key, holds)| {
            holds.iter().map(|hold| SessionLock {
                session: hold.session,
                key: *key,
                is_shared: hold.is_shared,
                is_held: true,
                waits_since: None,
            })
        });
        let waiting = table.waiting.iter().map(|(session, wait)| SessionLock {
            session: *session,
            key: wait.key,
            is_shared: wait.is_shared,
            is_held: false,
            waits_since: Some(wait.since),
        });
        let mut all: Vec<SessionLock> = held.chain(waiting).collect();
        all.sort_by_key(|lock| (lock.session, !lock.is_held));
        all
    }

    /// Releases a lock of a session and returns whether the session held it.
    pub fn unlock(&self, session: i32, key: AdvisoryKey, is_shared: bool) -> bool {
        let mut table = self.table.lock();
        let same = |hold: &&mut Hold| {
            hold.session == session && hold.is_shared == is_shared && !hold.in_transaction
        };
        let holds = table.held.get_mut(&key);
        let Some(hold) = holds.and_then(|holds| holds.iter_mut().find(same)) else { return false };
        hold.count -= 1;
        table.retain(|hold| hold.count > 0);
        self.released.notify_all();
        true
    }

    /// Releases all locks of a session: those of its transaction, or the others.
    pub fn release(&self, session: i32, in_transaction: bool) {
        let mut table = self.table.lock();
        table.retain(|hold| hold.session != session || hold.in_transaction != in_transaction);
        self.released.notify_all();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn request(key: i64, is_shared: bool) -> AdvisoryRequest {
        let key = AdvisoryKey::One(key);
        AdvisoryRequest { key, is_shared, waits: false, in_transaction: false }
    }

    #[test]
    fn a_lock_excludes_other_sessions_unless_both_share_it() {
        let locks = AdvisoryLocks::default();
        let take =
            |session, key, shared| locks.lock(session, request(key, shared), || Ok(())).unwrap();
        assert!(take(1, 7, false) && take(1, 7, false) && take(1, 7, true));
        assert!(!take(2, 7, false) && !take(2, 7, true) && take(2, 8, false));
        assert!(locks.unlock(1, AdvisoryKey::One(7), false));
        assert!(!take(2, 7, true), "taken twice, released once");
        assert!(locks.unlock(1, AdvisoryKey::One(7), false));
        assert!(take(2, 7, true) && !take(2, 7, false));
        assert!(!locks.unlock(2, AdvisoryKey::One(7), false), "held as a shared one only");
        locks.release(1, false);
        assert!(take(2, 7, false));
    }

    #[test]
    fn a_cycle_of_waits_is_a_deadlock() {
        let locks = AdvisoryLocks::default();
        let waiting = |key| AdvisoryRequest { waits: true, ..request(key, false) };
        locks.lock(1, request(1, false), || Ok(())).unwrap();
        locks.lock(2, request(2, false), || Ok(())).unwrap();
        let wait = AdvisoryWait { key: AdvisoryKey::One(1), is_shared: false, since: 0 };
        locks.table.lock().waiting.insert(2, wait);
        let error = locks.lock(1, waiting(2), || Ok(())).unwrap_err();
        assert_eq!(error.code(), "40P01");
    }
}
