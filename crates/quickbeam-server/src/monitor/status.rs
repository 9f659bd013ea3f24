//! What the status page shows, as JSON.

use std::sync::atomic::Ordering;

use quickbeam::query_layer::EnvironmentExt;
use quickbeam_sql::{Result, SessionActivity, StatementStatistics};
use serde_json::{Map, Value, json};

use super::metrics::engine;
use super::{BOUNDS, Watched};

/// The most statements shown, of those with the longest durations in all.
const SHOWN_STATEMENTS: usize = 10;

/// Returns what the status page shows.
pub fn status(server: &dyn Watched) -> Value {
    let engine: Map<String, Value> =
        engine(server).into_iter().map(|(name, number)| (name, json!(number))).collect();
    let sessions: Vec<Value> = server.activities().into_iter().map(session).collect();
    let counters = server.counters();
    let durations: Vec<u64> =
        counters.durations.iter().map(|bucket| bucket.load(Ordering::Relaxed)).collect();
    json!({
        "now": super::now(),
        "version": env!("CARGO_PKG_VERSION"),
        "engine": engine,
        "server": {
            "sessions": counters.sessions.load(Ordering::Relaxed),
            "refused_clients": counters.refused.load(Ordering::Relaxed),
            "statements": counters.statements.load(Ordering::Relaxed),
            "slow_statements": counters.slow.load(Ordering::Relaxed),
            "statement_microseconds": counters.microseconds.load(Ordering::Relaxed),
            "duration_bounds": BOUNDS,
            "durations": durations,
        },
        "failures": *counters.failures.lock(),
        "sessions": sessions,
        "transactions": transactions(server),
        // Null where too many transactions are open to read the view.
        "locks": locks(server).ok(),
        "statements": statements(server),
    })
}

fn session(activity: SessionActivity) -> Value {
    json!({
        "session": activity.number,
        "user": activity.user,
        "application": activity.application_name,
        "address": activity.address,
        "state": activity.state,
        "changed": activity.changed,
        "transaction_began": activity.transaction_began,
        "statement": &*activity.statement,
    })
}

/// Returns the open transactions, the oldest first.
fn transactions(server: &dyn Watched) -> Vec<Value> {
    let mut open = server.database().environment().open_transactions();
    open.sort_by_key(|one| std::cmp::Reverse(one.age));
    let one = |one: &quickbeam::query_layer::OpenTransaction| {
        json!({
            "session": (one.owner != 0).then_some(one.owner),
            "seconds": one.age.as_secs_f64(),
            "snapshot_seconds": one.snapshot_age.map(|age| age.as_secs_f64()),
            "changes": one.changes,
            "undo_bytes": one.undo_bytes,
            "waited_seconds": one.waited.map(|waited| waited.as_secs_f64()),
        })
    };
    open.iter().map(one).collect()
}

/// Returns the locks and the waits for them, as `quickbeam_stat_locks` has them.
fn locks(server: &dyn Watched) -> Result<Vec<Value>> {
    let connection = server.database().connect();
    let query = "SELECT json_build_object('kind', locktype, 'lock', lock, 'session', pid, \
        'mode', mode, 'granted', granted, 'blocked_by', blocked_by, 'changes', changes, \
        'waited_seconds', extract(epoch FROM now() - wait_start))::text \
        FROM quickbeam_stat_locks ORDER BY granted, wait_start, pid LIMIT 100";
    let rows = connection.query(query, &[])?.collect()?;
    let fields = rows.iter().filter_map(|row| serde_json::from_str(&row.first()?.to_string()).ok());
    Ok(fields.collect())
}

/// Returns the statements with the longest durations in all, where the server counts them.
fn statements(server: &dyn Watched) -> Vec<Value> {
    let mut all = server.statements();
    all.sort_by_key(|one| std::cmp::Reverse(one.total));
    let one = |one: &StatementStatistics| {
        json!({
            "user": &*one.user,
            "statement": &*one.text,
            "calls": one.calls,
            "failures": one.failures,
            "rows": one.rows,
            "microseconds": one.total.as_micros() as u64,
            "longest_microseconds": one.slowest.as_micros() as u64,
        })
    };
    all.iter().take(SHOWN_STATEMENTS).map(one).collect()
}
