//! The figures of a server in the text format of Prometheus.

use std::fmt::Write;
use std::sync::atomic::Ordering;

use serde_json::{Map, Value};

use super::{BOUNDS, Watched};

/// The fields of the engine's statistics that only grow. The others are gauges.
const COUNTERS: [&str; 18] = [
    "cache_hits",
    "cache_misses",
    "evictions",
    "page_writes",
    "log_bytes",
    "log_writes",
    "log_flushes",
    "commits",
    "aborts",
    "write_conflicts",
    "serialization_failures",
    "deadlocks",
    "lock_timeouts",
    "retries",
    "expired_snapshots",
    "delayed_writers",
    "undo_file_failures",
    "checkpoints",
];

/// Returns the metrics.
pub fn prometheus(server: &dyn Watched) -> String {
    let mut text = String::new();
    for (name, value) in engine(server) {
        let is_counter = COUNTERS.contains(&name.as_str());
        let (kind, suffix) = if is_counter { ("counter", "_total") } else { ("gauge", "") };
        metric(&mut text, &format!("quickbeam_engine_{name}{suffix}"), kind, &[("", value)]);
    }
    let counters = server.counters();
    let read = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed) as f64;
    let totals = [
        ("sessions", &counters.sessions),
        ("refused_clients", &counters.refused),
        ("slow_statements", &counters.slow),
    ];
    for (name, counter) in totals {
        let name = format!("quickbeam_server_{name}_total");
        metric(&mut text, &name, "counter", &[("", read(counter))]);
    }
    let lost = [("", server.audit_failures() as f64)];
    metric(&mut text, "quickbeam_server_audit_failures_total", "counter", &lost);
    let states = ["active", "idle", "idle in transaction", "idle in transaction (aborted)"];
    let activities = server.activities();
    let of_state = |state: &&str| {
        let count = activities.iter().filter(|activity| activity.state == *state).count();
        (format!("{{state=\"{state}\"}}"), count as f64)
    };
    let open: Vec<(String, f64)> = states.iter().map(of_state).collect();
    metric(&mut text, "quickbeam_server_sessions", "gauge", &open);
    let failures: Vec<(String, f64)> = counters
        .failures
        .lock()
        .iter()
        .map(|(code, count)| (format!("{{sqlstate=\"{code}\"}}"), *count as f64))
        .collect();
    metric(&mut text, "quickbeam_server_failures_total", "counter", &failures);
    let name = "quickbeam_server_statement_seconds";
    let mut sum = 0.0;
    let mut buckets = Vec::new();
    for (bound, bucket) in BOUNDS.iter().zip(&counters.durations) {
        sum += read(bucket);
        buckets.push((format!("_bucket{{le=\"{}\"}}", *bound as f64 / 1e6), sum));
    }
    // All counts come from the buckets, so that they agree whenever they are read.
    let all: f64 = counters.durations.iter().map(read).sum();
    buckets.push(("_bucket{le=\"+Inf\"}".to_owned(), all));
    buckets.push(("_sum".to_owned(), read(&counters.microseconds) / 1e6));
    buckets.push(("_count".to_owned(), all));
    metric(&mut text, name, "histogram", &buckets);
    text
}

/// Appends a metric: for each sample what follows the name, and the value.
fn metric(text: &mut String, name: &str, kind: &str, samples: &[(impl AsRef<str>, f64)]) {
    // Writing to a text does not fail.
    let _ = writeln!(text, "# TYPE {name} {kind}");
    for (rest, value) in samples {
        let _ = writeln!(text, "{name}{} {value}", rest.as_ref());
    }
}

/// Returns the engine's statistics as numbers; names of nested fields are joined.
pub fn engine(server: &dyn Watched) -> Vec<(String, f64)> {
    let statistics = server.database().environment().statistics();
    let value = serde_json::to_value(statistics).unwrap_or_default();
    let mut numbers = Vec::new();
    flatten("", &value, &mut numbers);
    numbers
}

fn flatten(name: &str, value: &Value, numbers: &mut Vec<(String, f64)>) {
    match value {
        Value::Object(fields) => match duration(fields) {
            Some(seconds) => numbers.push((format!("{name}_seconds"), seconds)),
            None => {
                for (field, value) in fields {
                    let separator = if name.is_empty() { "" } else { "_" };
                    flatten(&format!("{name}{separator}{field}"), value, numbers);
                }
            }
        },
        Value::Bool(value) => numbers.push((name.to_owned(), f64::from(u8::from(*value)))),
        Value::Number(number) => {
            numbers.extend(number.as_f64().map(|number| (name.to_owned(), number)));
        }
        Value::Null | Value::String(_) | Value::Array(_) => {}
    }
}

/// Returns the seconds of a duration, which has two fields.
fn duration(fields: &Map<String, Value>) -> Option<f64> {
    let (seconds, nanoseconds) = (fields.get("secs")?.as_f64()?, fields.get("nanos")?.as_f64()?);
    (fields.len() == 2).then_some(seconds + nanoseconds / 1e9)
}
