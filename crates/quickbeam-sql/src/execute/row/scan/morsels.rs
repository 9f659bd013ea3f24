//! Scans in pieces: each of several threads reads ranges of the keys, one after another.
//!
//! Above: workers of a vectorized step. Below: the scan, which has found its range and its filters.
//!
//! - MORSEL-1: the morsels of a scan are its whole range, in the order of the keys, and no key is
//!   in two of them.

use std::ops::Bound;

use quickbeam::invariant;
use quickbeam::query_layer::DatabaseExt;

use super::super::{Context, Operator};
use super::{RowsAhead, ScanBatch, ScanMethod, ScanState, TableScan};
use crate::error::Result;
use crate::plan::WorkerPlan;
use crate::table::KeyRange;

/// Rows of a morsel of a large table, about.
const ROWS: f64 = 32_768.0;
/// The fewest morsels for each thread, so that all end at about the same time.
const FEWEST: usize = 4;
/// The most morsels of a scan.
const MOST: usize = 4096;

/// A range of keys: the first one, and the first one after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Morsel {
    low: Option<Vec<u8>>,
    high: Option<Vec<u8>>,
}

impl TableScan {
    /// Begins the run: finds the range to read, and the filters.
    pub fn begin(&mut self, context: &Context<'_>) -> Result<()> {
        if self.state == ScanState::Fresh {
            let some = self.start(context)?;
            self.state = if some { ScanState::Running } else { ScanState::Done };
        }
        Ok(())
    }

    /// Cuts the range of the scan, which has begun, into parts for the threads. Returns nothing if
    /// the range has fewer rows than the plan's least, or cannot be cut. `cut` may move a cut to a
    /// key before it, where the column cache has a part.
    pub fn morsels(
        &self,
        plan: WorkerPlan,
        cut: &dyn Fn(Vec<u8>) -> Vec<u8>,
        context: &Context<'_>,
    ) -> Result<Vec<Morsel>> {
        let (low, high) = match &self.method {
            ScanMethod::Rows(None) => (None, None),
            ScanMethod::Rows(Some(_)) => (Some(&self.range.low), self.range.high.as_ref()),
            _ => return Ok(Vec::new()),
        };
        let (database, transaction) = (self.handle.database(), context.transaction);
        if self.state != ScanState::Running || !database.access_method().is_ordered() {
            return Ok(Vec::new());
        }
        let before = |key: Option<&Vec<u8>>, none: f64| match key {
            Some(key) => database.estimate_before(transaction, key),
            None => Ok(none),
        };
        let from = before(low, 0.0)?;
        let part = (before(high, 1.0)? - from).max(0.0);
        let rows = database.estimate(transaction)? * part;
        if rows < plan.least_rows {
            return Ok(Vec::new());
        }
        let threads = plan.workers.saturating_add(1);
        let fewest = threads.saturating_mul(FEWEST).min(MOST);
        let count = ((rows / ROWS) as usize).clamp(fewest, MOST);
        let mut cuts: Vec<Vec<u8>> = Vec::with_capacity(count);
        for nth in 1..count {
            let fraction = from + part * nth as f64 / count as f64;
            let Some(key) = database.sample_key(transaction, fraction)? else { continue };
            let key = cut(key);
            let is_inside = low.is_none_or(|low| key > *low) && high.is_none_or(|high| key < *high);
            cuts.extend((is_inside && !key.is_empty()).then_some(key));
        }
        Ok(between(low, cuts, high))
    }

    /// Makes a scan for the morsels of this one, which has begun: it reads the same of each row.
    fn fork(&self) -> TableScan {
        TableScan {
            slot: self.slot,
            handle: self.handle.clone(),
            filter: self.filter.clone(),
            pushed_filters: Vec::new(),
            is_filter_pushed: self.is_filter_pushed,
            is_filter_covered: self.is_filter_covered,
            selection: None,
            is_selected: false,
            key_filters: Vec::new(),
            key_ranges: self.key_ranges.clone(),
            numbers: None,
            method: ScanMethod::Rows(None),
            scan: self.scan.clone(),
            state: ScanState::Done,
            next: 0,
            entries: ScanBatch::default(),
            ahead: RowsAhead::default(),
            key: Vec::new(),
            entry: Vec::new(),
            range: KeyRange::default(),
            keys: self.keys,
            row_ids: self.row_ids,
            is_database: self.is_database,
            most: self.most,
            left: self.left,
        }
    }

    /// Begins to read a morsel.
    pub fn begin_morsel(&mut self, morsel: &Morsel) {
        let (low, high) = (morsel.low.as_deref(), morsel.high.as_deref());
        self.scan.restart(
            low.map_or(Bound::Unbounded, Bound::Included),
            high.map_or(Bound::Unbounded, Bound::Excluded),
        );
        self.state = ScanState::Running;
    }
}

/// Returns the ranges between keys.
fn between(low: Option<&Vec<u8>>, mut cuts: Vec<Vec<u8>>, high: Option<&Vec<u8>>) -> Vec<Morsel> {
    cuts.sort_unstable();
    cuts.dedup();
    let ends = cuts.iter().map(Some).chain([high]);
    let begins = [low].into_iter().chain(cuts.iter().map(Some));
    let morsel = |(low, high): (Option<&Vec<u8>>, Option<&Vec<u8>>)| Morsel {
        low: low.cloned(),
        high: high.cloned(),
    };
    let morsels: Vec<Morsel> = begins.zip(ends).map(morsel).collect();
    let are_joined = || morsels.windows(2).all(|pair| pair[0].high == pair[1].low);
    invariant!(MORSEL_1, are_joined(), "{} morsels leave keys out", morsels.len());
    morsels
}

impl Operator {
    /// Makes an operator for the morsels of this one, if it is a scan that has begun.
    pub(in crate::execute) fn fork_scan(&self) -> Option<Operator> {
        match self {
            Operator::Scan(scan) => Some(Operator::Scan(Box::new(scan.fork()))),
            Operator::Counted(operator, _) => {
                Some(Operator::Counted(Box::new(operator.fork_scan()?), 0))
            }
            _ => None,
        }
    }

    /// Adds the count of rows of an operator that [`fork_scan`](Self::fork_scan) made.
    pub(in crate::execute) fn add_count(&mut self, fork: &Operator) {
        if let (Operator::Counted(_, own), Operator::Counted(_, more)) = (self, fork) {
            *own += more;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn morsels_are_the_whole_range_in_order() {
        let key = |byte: u8| vec![byte];
        let morsels = between(Some(&key(1)), vec![key(7), key(3), key(7)], None);
        let ends = morsels.iter().map(|it| (it.low.clone(), it.high.clone()));
        let expected =
            [(Some(key(1)), Some(key(3))), (Some(key(3)), Some(key(7))), (Some(key(7)), None)];
        assert!(ends.eq(expected));
        assert_eq!(between(None, Vec::new(), None), [Morsel::default()]);
    }
}
