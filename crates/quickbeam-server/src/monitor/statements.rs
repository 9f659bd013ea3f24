//! What is counted of each statement, for `quickbeam_stat_statements`.
//!
//! Above: the sessions, and the view. Below: nothing. Off, it costs a comparison a statement. On, a
//! statement costs a lock that sessions share, and its text is read once more when it is prepared.
//!
//! - STATEMENTS-1: the table never has more entries than its limit.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use quickbeam_sql::{StatementStatistics, without_constants};

/// When the table is full, one entry in this number goes.
const EVICTED: usize = 16;

/// The statements counted, by their numbers.
#[derive(Debug)]
pub struct StatementTable {
    limit: usize,
    content: Mutex<HashMap<i64, StatementStatistics>>,
}

/// One execution.
#[derive(Clone, Copy, Debug)]
pub struct Execution {
    /// When it began, in microseconds since 1970-01-01 UTC.
    pub began: i64,
    pub duration: Duration,
    pub rows: u64,
    pub is_done: bool,
}

/// Returns the number of a statement of a user: the hash FNV-1a, so that it is the same in every
/// process.
fn number_of(user: &str, text: &str) -> i64 {
    let bytes = user.bytes().chain([0]).chain(text.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash.cast_signed()
}

impl StatementTable {
    /// Returns a table of at most `limit` statements; of none, it counts nothing.
    pub fn new(limit: usize) -> StatementTable {
        StatementTable { limit, content: Mutex::default() }
    }

    /// Whether statements are counted.
    pub fn is_on(&self) -> bool {
        self.limit > 0
    }

    /// Returns the text under which executions of a statement are counted.
    pub fn counted_text(text: &str) -> Arc<str> {
        without_constants(text).into()
    }

    /// Counts an execution.
    pub fn count(&self, user: &str, text: &Arc<str>, execution: Execution) {
        let id = number_of(user, text);
        let mut content = self.content.lock();
        if content.len() >= self.limit && !content.contains_key(&id) {
            evict(&mut content, self.limit);
        }
        let entry = content.entry(id).or_insert_with(|| StatementStatistics {
            id,
            user: user.into(),
            text: text.clone(),
            fastest: Duration::MAX,
            first: execution.began,
            ..StatementStatistics::default()
        });
        entry.calls += 1;
        entry.failures += u64::from(!execution.is_done);
        entry.rows += execution.rows;
        entry.total += execution.duration;
        entry.fastest = entry.fastest.min(execution.duration);
        entry.slowest = entry.slowest.max(execution.duration);
        entry.last = execution.began;
    }

    /// Returns what was counted, in the order of the first executions.
    pub fn all(&self) -> Vec<StatementStatistics> {
        let mut all: Vec<_> = self.content.lock().values().cloned().collect();
        all.sort_by_key(|entry| (entry.first, entry.id));
        all
    }
}

/// Removes the statements that were used longest ago (STATEMENTS-1).
fn evict(content: &mut HashMap<i64, StatementStatistics>, limit: usize) {
    let mut used: Vec<(i64, i64)> = content.values().map(|it| (it.last, it.id)).collect();
    used.sort_unstable();
    for (_, id) in used.iter().take(limit.div_ceil(EVICTED)) {
        content.remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executions_are_counted_up_to_the_limit() {
        let table = StatementTable::new(2);
        let count = |text: &str, began, milliseconds, is_done| {
            let duration = Duration::from_millis(milliseconds);
            let execution = Execution { began, duration, rows: 3, is_done };
            table.count("anna", &StatementTable::counted_text(text), execution);
        };
        count("SELECT 1", 1, 5, true);
        count("SELECT 2", 2, 9, false);
        count("SELECT a FROM t", 3, 1, true);
        let all = table.all();
        assert_eq!(all.len(), 2);
        assert_eq!((&*all[0].text, all[0].calls, all[0].failures), ("SELECT $1", 2, 1));
        assert_eq!((all[0].rows, all[0].first, all[0].last), (6, 1, 2));
        let milliseconds = [all[0].total, all[0].fastest, all[0].slowest].map(|it| it.as_millis());
        assert_eq!(milliseconds, [14, 5, 9]);
        count("SELECT b FROM t", 4, 1, true);
        let texts: Vec<Arc<str>> = table.all().into_iter().map(|it| it.text).collect();
        assert_eq!(texts, ["SELECT a FROM t".into(), "SELECT b FROM t".into()]);
    }
}
