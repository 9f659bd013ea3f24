//! The views `quickbeam_stat_…`: what sessions, transactions, locks, statements and trees do and
//! take, for an operator.
//!
//! They have the same sources as `pg_stat_activity`, `pg_locks` and the statistics of the
//! environment. A role sees the statements of the roles whose rights it has; `pg_read_all_stats`
//! and superusers see all.

use std::collections::{BTreeSet, HashMap};

use quickbeam::Environment;
use quickbeam::query_layer::{EnvironmentExt, OpenTransaction, TreeShape};

use super::{SystemRow, SystemSource};
use crate::catalog::describe::Described;
use crate::catalog::rights::{MembershipUse, READ_ALL_STATS};
use crate::catalog::system::object_oid;
use crate::catalog::{BOOTSTRAP, Index, Method, ObjectId, PrimaryKey};
use crate::error::Result;
use crate::expression::{AdvisoryKey, SessionActivity, SessionLock};
use crate::types::{Array, ElementType, Value, ValueRef, current_moment};

/// What stands in place of a statement that the role may not see.
pub(super) const HIDDEN: &str = "<insufficient privilege>";

/// Whose statements a role sees.
pub(super) struct VisibleUsers {
    sees_all: bool,
    roles: BTreeSet<ObjectId>,
}

/// The open transactions, and which session each writer belongs to.
pub(super) struct Transactions {
    pub open: Vec<OpenTransaction>,
    sessions: HashMap<u64, i32>,
    now: i64,
}

impl Transactions {
    /// Returns those of now.
    fn new(environment: &Environment) -> Transactions {
        let open = environment.open_transactions();
        let writer = |it: &OpenTransaction| Some((it.writer?, Transactions::session_of(it)?));
        let sessions = open.iter().filter_map(writer).collect();
        Transactions { open, sessions, now: current_moment() }
    }

    /// Returns the session of a transaction.
    pub fn session_of(transaction: &OpenTransaction) -> Option<i32> {
        i32::try_from(transaction.owner).ok().filter(|number| *number != 0)
    }

    /// Returns the session that the transaction waits for.
    pub fn blocker(&self, waiter: &OpenTransaction) -> Option<i32> {
        self.sessions.get(&waiter.waits_for?).copied()
    }

    /// Returns when a span of time that lasts until now began.
    pub fn since(&self, span: std::time::Duration) -> Value {
        let micros = i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
        Value::TimestampTz(self.now.saturating_sub(micros))
    }

    /// Returns the transaction in which a session changes or waits, or any other of it.
    pub fn of_session(&self, number: i32) -> Option<&OpenTransaction> {
        let own = |it: &&OpenTransaction| Self::session_of(it) == Some(number);
        let mut found = self.open.iter().filter(own);
        let first = found.clone().next();
        found.find(|it| it.writer.is_some()).or(first)
    }
}

/// Returns the sessions that keep a session from an advisory lock.
pub(super) fn advisory_blockers(locks: &[SessionLock], waiter: &SessionLock) -> Vec<i32> {
    let blocks = |it: &&SessionLock| {
        let excludes = !(it.is_shared && waiter.is_shared);
        it.is_held && it.key == waiter.key && it.session != waiter.session && excludes
    };
    locks.iter().filter(blocks).map(|it| it.session).collect()
}

/// Returns numbers as an array.
fn numbers(sessions: &[i32]) -> Value {
    let values = sessions.iter().map(|number| ValueRef::Integer(*number));
    Array::new(ElementType::INTEGER, values).map_or(Value::Null, Value::Array)
}

fn moment(known: Option<i64>) -> Value {
    known.map_or(Value::Null, Value::TimestampTz)
}

fn number(known: Option<u64>) -> Value {
    known.map_or(Value::Null, |known| Value::BigInt(known as i64))
}

/// Sets what is known of the shape of a tree.
fn set_shape(row: &mut SystemRow<'_>, records: &str, shape: TreeShape, page_size: usize) {
    row.set(records, shape.records as i64).set("bytes", (shape.leaves * page_size as f64) as i64);
    row.set("levels", shape.levels as i32).set("leaf_pages", shape.leaves as i64);
    row.set("leaf_fill", Value::Double(shape.fill));
}

fn method_name(method: Method) -> &'static str {
    match method {
        Method::Range => "btree",
        Method::Hash => "hash",
        Method::Inverted(_) => "gin",
    }
}

impl SystemSource<'_> {
    /// Returns whose statements the role of the session sees.
    pub(super) fn visible_users(&self) -> VisibleUsers {
        let (snapshot, role) = (self.snapshot, self.session.role());
        let roles = snapshot.roles_of(role, MembershipUse::Inherited);
        let sees_all = snapshot.is_superuser(role) || roles.contains(&READ_ALL_STATS);
        VisibleUsers { sees_all, roles }
    }

    /// Whether the role sees the statements of a user.
    pub(super) fn sees(&self, visible: &VisibleUsers, user: &str) -> bool {
        let user = self.snapshot.role_named(user).unwrap_or(BOOTSTRAP);
        visible.sees_all || visible.roles.contains(&user)
    }

    /// Returns the open transactions of the engine.
    pub(super) fn open_transactions(&self) -> Transactions {
        Transactions::new(self.engine.environment())
    }

    /// Adds the rows of a view `quickbeam_stat_…`.
    pub(super) fn monitoring(&mut self) -> Result<()> {
        match self.table.name {
            "quickbeam_stat_activity" => self.monitored_sessions(),
            "quickbeam_stat_transactions" => self.monitored_transactions(),
            "quickbeam_stat_locks" => self.monitored_locks(),
            "quickbeam_stat_statements" => self.monitored_statements(),
            "quickbeam_stat_tables" => return self.monitored_tables(),
            "quickbeam_stat_indexes" => return self.monitored_indexes(),
            _ => {}
        }
        Ok(())
    }

    fn monitored_sessions(&mut self) {
        let visible = self.visible_users();
        let (transactions, locks) = (self.open_transactions(), self.session.advisory_locks());
        for activity in self.session.activities() {
            let sees = self.sees(&visible, &activity.user);
            let open = transactions.of_session(activity.number);
            self.add(|row| {
                row.set("pid", activity.number).text("usename", &activity.user);
                if !sees {
                    row.text("query", HIDDEN);
                    return;
                }
                set_activity(row, &activity);
                row.set("changes", open.map_or(0, |open| open.changes as i64));
                set_wait(row, activity.number, &transactions, &locks);
            });
        }
    }

    fn monitored_transactions(&mut self) {
        let visible = self.visible_users();
        let transactions = self.open_transactions();
        let activities = self.session.activities();
        let activities: HashMap<i32, &SessionActivity> =
            activities.iter().map(|activity| (activity.number, activity)).collect();
        for open in &transactions.open {
            let session = Transactions::session_of(open);
            let activity = session.and_then(|number| activities.get(&number));
            let sees = activity.is_some_and(|activity| self.sees(&visible, &activity.user));
            self.add(|row| {
                row.set("slot", open.slot as i32);
                row.set("pid", session.map_or(Value::Null, Value::Integer));
                row.set("xact_start", transactions.since(open.age));
                row.set("snapshot", number(open.snapshot)).set("writer", number(open.writer));
                let taken = open.snapshot_age.map(|age| transactions.since(age));
                row.set("snapshot_start", taken.unwrap_or(Value::Null));
                row.set("changes", open.changes as i64);
                row.set("undo_bytes", open.undo_bytes as i64);
                row.set("waits_for", number(open.waits_for));
                if let Some(waited) = open.waited {
                    let blocker = transactions.blocker(open);
                    row.set("blocked_by", numbers(blocker.as_slice()));
                    row.set("wait_start", transactions.since(waited));
                }
                if let Some(activity) = activity {
                    row.text("usename", &activity.user);
                    row.text("query", if sees { &activity.statement } else { HIDDEN });
                    if sees {
                        row.text("state", activity.state);
                    }
                }
            });
        }
    }

    /// The advisory locks, and a row for each writing transaction and each wait for one.
    fn monitored_locks(&mut self) {
        let (transactions, locks) = (self.open_transactions(), self.session.advisory_locks());
        let activities = self.session.activities();
        let users: HashMap<i32, &str> =
            activities.iter().map(|activity| (activity.number, &*activity.user)).collect();
        let set_session = |row: &mut SystemRow<'_>, session: Option<i32>| {
            row.set("pid", session.map_or(Value::Null, Value::Integer));
            if let Some(user) = session.and_then(|session| users.get(&session)) {
                row.text("usename", user);
            }
        };
        for lock in &locks {
            self.add(|row| {
                row.text("locktype", "advisory").set("granted", lock.is_held);
                set_session(row, Some(lock.session));
                match lock.key {
                    AdvisoryKey::One(key) => row.text("lock", key.to_string()),
                    AdvisoryKey::Two(first, second) => {
                        row.text("lock", format!("{first},{second}"))
                    }
                };
                row.text("mode", if lock.is_shared { "ShareLock" } else { "ExclusiveLock" });
                if !lock.is_held {
                    row.set("blocked_by", numbers(&advisory_blockers(&locks, lock)));
                    row.set("wait_start", moment(lock.waits_since));
                }
            });
        }
        for open in &transactions.open {
            let session = Transactions::session_of(open);
            if let Some(writer) = open.writer {
                self.add(|row| {
                    row.text("locktype", "transaction").text("lock", writer.to_string());
                    row.text("mode", "ExclusiveLock").set("granted", true);
                    set_session(row, session);
                    row.set("changes", open.changes as i64);
                });
            }
            if let (Some(other), Some(waited)) = (open.waits_for, open.waited) {
                self.add(|row| {
                    row.text("locktype", "transaction").text("lock", other.to_string());
                    row.text("mode", "ShareLock").set("granted", false);
                    set_session(row, session);
                    row.set("blocked_by", numbers(transactions.blocker(open).as_slice()));
                    row.set("wait_start", transactions.since(waited));
                });
            }
        }
    }

    fn monitored_statements(&mut self) {
        let visible = self.visible_users();
        for statement in self.session.statement_statistics() {
            let sees = self.sees(&visible, &statement.user);
            let milliseconds =
                |span: std::time::Duration| Value::Double(span.as_micros() as f64 / 1e3);
            self.add(|row| {
                row.text("usename", &*statement.user);
                row.text("query", if sees { &statement.text } else { HIDDEN });
                if sees {
                    row.set("query_id", statement.id);
                }
                row.set("calls", statement.calls as i64);
                row.set("failures", statement.failures as i64);
                row.set("rows", statement.rows as i64);
                row.set("total_exec_time", milliseconds(statement.total));
                let mean = statement.total.as_micros() as f64 / statement.calls.max(1) as f64;
                row.set("mean_exec_time", Value::Double(mean / 1e3));
                row.set("min_exec_time", milliseconds(statement.fastest));
                row.set("max_exec_time", milliseconds(statement.slowest));
                row.set("first_call", Value::TimestampTz(statement.first));
                row.set("last_call", Value::TimestampTz(statement.last));
            });
        }
    }

    fn monitored_tables(&mut self) -> Result<()> {
        let page_size = self.engine.environment().statistics().page_size;
        for table in self.snapshot.tables() {
            let shape = self.engine.shape(table, None)?;
            let mut index_pages = 0.0;
            for number in 0..table.indexes.len() {
                let index = self.engine.shape(table, Some(number))?;
                index_pages += index.map_or(0.0, |shape| shape.leaves);
            }
            let is_hash = |key: &PrimaryKey| key.method == Method::Hash;
            self.add(|row| {
                row.set("relid", object_oid(table.id)).text("schemaname", &table.schema);
                row.text("relname", &table.name);
                let is_hash = table.primary_key.as_ref().is_some_and(is_hash);
                row.text("method", if is_hash { "hash" } else { "btree" });
                if let Some(shape) = shape {
                    set_shape(row, "live_rows", shape, page_size);
                }
                row.set("indexes", table.indexes.len() as i32);
                row.set("index_bytes", (index_pages * page_size as f64) as i64);
            });
        }
        Ok(())
    }

    /// A primary key has no tree of its own: its rows have no figures of one.
    fn monitored_indexes(&mut self) -> Result<()> {
        let page_size = self.engine.environment().statistics().page_size;
        for relation in self.snapshot.described() {
            let (table, name, index): (_, _, Option<&Index>) = match relation {
                Described::Index(table, index) => (table, index.name.as_str(), Some(index)),
                Described::PrimaryKey(table) => (table, relation.name(), None),
                _ => continue,
            };
            let place = |index: &Index| table.indexes.iter().position(|it| it.id == index.id);
            let shape = match index.and_then(place) {
                Some(number) => self.engine.shape(table, Some(number))?,
                None => None,
            };
            self.add(|row| {
                row.set("relid", object_oid(table.id)).set("indexrelid", relation.oid());
                row.text("schemaname", &table.schema).text("relname", &table.name);
                row.text("indexrelname", name);
                let of_key = table.primary_key.as_ref().map(|key| key.method);
                let method = index.map(|index| index.method).or(of_key).unwrap_or_default();
                row.text("method", method_name(method));
                row.set("is_unique", index.is_none_or(Index::is_unique));
                row.set("is_primary", index.is_none_or(|index| index.is_primary));
                match shape {
                    Some(shape) => set_shape(row, "entries", shape, page_size),
                    None => drop(row.set("levels", Value::Null)),
                }
            });
        }
        Ok(())
    }
}

/// What a session waits for: the end of a transaction, or an advisory lock.
struct SessionWait {
    event: &'static str,
    blockers: Vec<i32>,
    since: Value,
}

fn wait_of(
    session: i32,
    transactions: &Transactions,
    locks: &[SessionLock],
) -> Option<SessionWait> {
    let own = |it: &&OpenTransaction| Transactions::session_of(it) == Some(session);
    let waiting = transactions.open.iter().filter(own).find_map(|it| Some((it, it.waited?)));
    if let Some((open, waited)) = waiting {
        let blockers = transactions.blocker(open).into_iter().collect();
        let since = transactions.since(waited);
        return Some(SessionWait { event: "transactionid", blockers, since });
    }
    let lock = locks.iter().find(|it| it.session == session && !it.is_held)?;
    let (blockers, since) = (advisory_blockers(locks, lock), moment(lock.waits_since));
    Some(SessionWait { event: "advisory", blockers, since })
}

/// Sets what a session does and since when.
pub(super) fn set_activity(row: &mut SystemRow<'_>, activity: &SessionActivity) {
    row.text("application_name", &activity.application_name);
    if let Some(address) = &activity.address {
        row.text("client_addr", address);
    }
    row.set("backend_start", Value::TimestampTz(activity.began));
    row.set("xact_start", moment(activity.transaction_began));
    row.set("query_start", moment(activity.statement_began));
    row.set("state_change", Value::TimestampTz(activity.changed));
    row.text("state", activity.state).text("query", &activity.statement);
}

/// Sets what a session waits for.
pub(super) fn set_wait(
    row: &mut SystemRow<'_>,
    session: i32,
    transactions: &Transactions,
    locks: &[SessionLock],
) {
    if let Some(wait) = wait_of(session, transactions, locks) {
        row.text("wait_event_type", "Lock").text("wait_event", wait.event);
        row.set("blocked_by", numbers(&wait.blockers)).set("wait_start", wait.since);
    }
}

/// Returns the sessions that keep a session waiting.
pub fn blockers(environment: &Environment, locks: &[SessionLock], session: i32) -> Vec<i32> {
    let transactions = Transactions::new(environment);
    wait_of(session, &transactions, locks).map_or_else(Vec::new, |wait| wait.blockers)
}
