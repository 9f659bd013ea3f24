//! Plan steps that a session can turn off, by PostgreSQL's settings.

use super::AccessPath;
use super::cost::OFF_COST;

/// Plan steps that the session has turned off, by PostgreSQL's settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TurnedOff {
    /// `enable_hashjoin`: hash joins and hashed subqueries.
    pub hash_join: bool,
    /// `enable_nestloop`: nested loops, where a hash join is possible.
    pub nested_loop: bool,
    /// `enable_indexscan`: keys and indexes.
    pub index_scan: bool,
    /// `enable_bitmapscan`: inverted indexes.
    pub bitmap_scan: bool,
    /// `enable_seqscan`: scans of whole tables.
    pub seq_scan: bool,
}

impl TurnedOff {
    fn cost_if(off: bool) -> f64 {
        if off { OFF_COST } else { 0.0 }
    }

    pub(super) fn cost_of_hash_join(self) -> f64 {
        Self::cost_if(self.hash_join)
    }

    pub(super) fn cost_of_nested_loop(self) -> f64 {
        Self::cost_if(self.nested_loop)
    }

    pub(super) fn cost_of_path(self, path: &AccessPath) -> f64 {
        match path {
            AccessPath::All => Self::cost_if(self.seq_scan),
            AccessPath::Inverted(_) => Self::cost_if(self.bitmap_scan),
            _ => Self::cost_if(self.index_scan),
        }
    }
}
