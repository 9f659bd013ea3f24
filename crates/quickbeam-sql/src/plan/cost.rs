//! The constants of the cost model. Costs are counted in rows read one after another.

/// How many rows of a join are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowGoal {
    /// The first ones: a plan that starts fast is best.
    Few,
    /// All of them.
    All,
}

impl From<bool> for RowGoal {
    fn from(it: bool) -> RowGoal {
        if it { RowGoal::Few } else { RowGoal::All }
    }
}

/// What may be done with the rows of `value IN (SELECT …)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberUse {
    /// They may be joined like an item of FROM.
    Joined,
    /// Each row is checked, or tested by a semi-join that returns it with its key.
    Tested,
    /// Each row is checked. A row that is locked or changed must be the current row of its slot.
    Checked,
}

/// Costs, in rows read one after the other: a row by its key.
pub(super) const LOOKUP_COST: f64 = 6.0;
/// Cost of a row found through an index: its entry, and a lookup in the table.
pub(super) const FETCH_COST: f64 = 9.0;
/// What a hash index saves of a lookup.
pub(super) const HASH_LOOKUP_COST: f64 = 1.0;

/// Minimum row estimate, so that plans for small tables do not go stale quickly.
pub const MIN_TABLE_ROWS: f64 = 1_000.0;
/// Below this row count, range selectivity is not sampled from the tree.
pub(super) const MIN_ROWS_FOR_ESTIMATE: f64 = 500.0;

/// Selectivity of a comparison without statistics.
pub(super) const DEFAULT_EQ_SELECTIVITY: f64 = 0.05;
pub(super) const DEFAULT_INEQ_SELECTIVITY: f64 = 0.3;
pub(super) const DEFAULT_RANGE_SELECTIVITY: f64 = 0.1;
pub(super) const DEFAULT_LIKE_SELECTIVITY: f64 = 0.03;
pub(super) const DEFAULT_SELECTIVITY: f64 = 0.5;
/// Selectivity of a condition on the keys of an inverted index.
pub(super) const DEFAULT_KEY_SELECTIVITY: f64 = 0.005;
/// Selectivity of an EXISTS or a comparison with a subquery about which nothing is known.
pub(super) const SUBQUERY_SELECTIVITY: f64 = 0.5;
/// Cost added to a step that the session has turned off. It is used only where there is no other.
pub(super) const OFF_COST: f64 = 1e10;
/// Cost of keeping a row for a hash join, and of looking one up.
pub(super) const HASH_BUILD_COST: f64 = 2.0;
pub(super) const HASH_PROBE_COST: f64 = 1.5;
/// Estimated rows of a function, and of stored rows of unknown number.
pub(super) const MANY_ROWS: f64 = 1_000.0;
/// Row limit of a hashed subquery, unless evaluation for each outer row costs far more.
pub(super) const MOST_KEPT: f64 = 200_000.0;
/// Row count from which vectorized execution is worth building columns.
pub(super) const VECTOR_THRESHOLD: f64 = 500.0;
/// What a vectorized scan or join of a row costs, as a part of what it costs by rows.
pub(super) const VECTORIZED_COST: f64 = 0.3;
/// The same of a scan of columns that are in the column cache.
pub(super) const CACHED_COST: f64 = 0.06;
/// The same of a table of which the cache has other columns. Such a scan is dearer once.
pub(super) const QUIET_COST: f64 = 0.07;
/// The least cost of joins by rows for which vectorized joins are looked for.
pub(super) const MIN_VECTORIZED_COST: f64 = 10_000.0;
/// Fewest rows of a table whose scan looks up the rows that satisfy a vectorized filter.
pub(super) const FILTERED_ROWS: f64 = 4_096.0;
/// The largest part of the rows that may satisfy it. A lookup costs as much as the test of 32 rows.
pub(super) const MOST_FILTERED_PART: f64 = 1.0 / 32.0;
/// Fewest rows of a scan for which a top-N sort is vectorized, to use the column cache.
pub(super) const CACHED_ROWS: f64 = 100_000.0;
/// Most columns of such a scan.
pub(super) const CACHED_COLUMNS: usize = 4;
/// The number of elements that an array of unknown length is estimated to have.
pub(super) const ELEMENTS: f64 = 10.0;
/// How many times more outer rows than estimated a nested loop reads before a hash join takes over.
pub(super) const OUTGROWN_ESTIMATE: f64 = 100.0;
/// The most items of FROM whose order is searched for. The order of more items is found step by
/// step, each time the cheapest next one.
pub(super) const MOST_ORDERED: usize = 12;
