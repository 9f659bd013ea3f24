//! Table scans: by key, by a range of the key, through an index, or of the whole table.
//!
//! Predicate pushdown: comparisons of integer columns with constants, and the key ranges of a hash
//! join above, are tested by the engine on encoded rows (`Scan::filter_ints()`).

mod cached_parts;
mod inverted;
mod key_ranges;
mod morsels;
mod rows_ahead;

use std::ops::Bound;
use std::sync::Arc;

use quickbeam::query_layer::{DatabaseExt, IntField, IntRange, Scan, ScanBatch};

use self::inverted::InvertedScan;
pub use self::key_ranges::constant_range;
use self::key_ranges::{encode_point, encode_range};
pub use self::morsels::Morsel;
use self::rows_ahead::{RowAhead, RowsAhead};
use super::Context;
use crate::catalog::Table;
use crate::error::{Result, SqlError};
use crate::execute::vector::{Failures, LeafSelection};
use crate::expression::{ColumnRef, Comparison, Current, Expr};
use crate::plan::{AccessPath, KeyRangeExpr, TableAccess};
use crate::schema::append_row_id;
use crate::table::{KeyRange, NumberAt, TableHandle};
use crate::types::{DataType, Numeric, ValueRef};

/// The fewest rows of a leaf whose filter is evaluated by columns.
const FEWEST_SELECTED: usize = 16;

/// The operator of a table scan.
#[derive(Debug)]
pub struct TableScan {
    slot: usize,
    handle: Arc<TableHandle>,
    filter: Option<Expr>,
    /// Conditions of the filter that can be tested on the encoded row.
    pushed_filters: Vec<PushedFilter>,
    /// Whether the filter has only such conditions, on NOT NULL columns.
    is_filter_pushed: bool,
    /// Whether rows inside all ranges satisfy the filter.
    is_filter_covered: bool,
    /// The filter by columns, if it can be evaluated so, and whether the batch is.
    selection: Option<Box<LeafSelection>>,
    is_selected: bool,
    /// The row format tag, and the ranges of integer columns that a join above asks for.
    key_filters: Vec<(u16, IntRange)>,
    /// The columns of those ranges, with the ranges in use.
    key_ranges: Vec<(usize, IntRange)>,
    /// The row format tag and integer fields, if nothing else of a row is read.
    numbers: Option<(u16, Vec<IntField>)>,
    method: ScanMethod,
    scan: Scan,
    state: ScanState,
    /// The next record of the batch.
    next: usize,
    /// Index entries.
    entries: ScanBatch,
    ahead: RowsAhead,
    /// The key of the last lookup.
    key: Vec<u8>,
    entry: Vec<u8>,
    range: KeyRange,
    keys: bool,
    /// Whether row ids are appended to the rows (ROW-3).
    row_ids: bool,
    is_database: bool,
    /// The row limit, and the rows left.
    most: usize,
    left: usize,
}

/// A condition on a column of whole numbers, whose rows are of that form.
#[derive(Debug)]
struct PushedFilter {
    form: u16,
    at: usize,
    width: usize,
    /// The scale of a NUMERIC column, whose numbers stand without their point.
    scale: Option<u8>,
    comparison: Comparison,
    value: Expr,
}

/// Returns the conditions of a filter that compare an integer column with a value known before the
/// scan. The flag says whether they are the whole filter, on NOT NULL columns.
fn pushed_filters(access: &TableAccess) -> (Vec<PushedFilter>, bool) {
    let mut conjuncts = Vec::new();
    if let Some(filter) = &access.filter {
        filter.clone().into_conjuncts(&mut conjuncts);
    }
    let pushed = |conjunct: Expr| {
        let Expr::Compare(comparison, pair) = conjunct else { return None };
        let [left, right] = *pair;
        let own = |side: &Expr| side.as_column().filter(|column| column.slot == access.slot);
        let (column, comparison, value) = match (own(&left), own(&right)) {
            (Some(column), None) => (column, comparison, right),
            (None, Some(column)) => (column, comparison.flipped(), left),
            _ => return None,
        };
        let is_known = matches!(value, Expr::Constant(_) | Expr::Parameter(_) | Expr::Column(_));
        let NumberAt { form, at, width } = access.table.number_at(column.column)?;
        let known = access.table.columns.get(column.column)?;
        let scale = match known.data_type {
            DataType::Numeric(Some((_, scale))) => Some(scale),
            _ => None,
        };
        let not_null = known.not_null;
        let filter = PushedFilter { form, at, width, scale, comparison, value };
        (is_known && comparison != Comparison::NotEqual).then_some((filter, not_null))
    };
    let count = conjuncts.len();
    let (filters, not_null): (Vec<PushedFilter>, Vec<bool>) =
        conjuncts.into_iter().filter_map(pushed).unzip();
    let all = filters.len() == count && not_null.into_iter().all(|not_null| not_null);
    (filters, all)
}

impl PushedFilter {
    /// Returns the range of the integer that the condition allows, or `None` if it does not limit
    /// it.
    fn range(&self, value: ValueRef<'_>) -> Option<IntRange> {
        if let (Some(scale), false) = (self.scale, value.is_null()) {
            return self.window_of_numeric(value.as_numeric()?, scale);
        }
        let number = match value {
            ValueRef::Date(days) => i64::from(days),
            // Nothing compares with NULL.
            ValueRef::Null => return Some(self.of(1, 0)),
            other => other.as_i64()?,
        };
        self.window_of_number(number)
    }

    /// Returns the range of the numbers of a NUMERIC column without their point.
    fn window_of_numeric(&self, value: Numeric, scale: u8) -> Option<IntRange> {
        let floor = value.scaled_floor(scale)?;
        let is_exact = Numeric::new(floor.into(), scale).is_ok_and(|number| number == value);
        let Some(above) = floor.checked_add(1).filter(|_| !is_exact) else {
            return is_exact.then(|| self.window_of_number(floor)).flatten();
        };
        Some(match self.comparison {
            Comparison::Equal => self.of(1, 0),
            Comparison::Less | Comparison::LessOrEqual => self.of(i64::MIN, floor),
            Comparison::Greater | Comparison::GreaterOrEqual => self.of(above, i64::MAX),
            Comparison::NotEqual => return None,
        })
    }

    fn window_of_number(&self, number: i64) -> Option<IntRange> {
        let below = number.checked_sub(1);
        let above = number.checked_add(1);
        Some(match self.comparison {
            Comparison::Equal => self.of(number, number),
            Comparison::LessOrEqual => self.of(i64::MIN, number),
            Comparison::GreaterOrEqual => self.of(number, i64::MAX),
            Comparison::Less => below.map_or(self.of(1, 0), |below| self.of(i64::MIN, below)),
            Comparison::Greater => above.map_or(self.of(1, 0), |above| self.of(above, i64::MAX)),
            Comparison::NotEqual => return None,
        })
    }

    fn of(&self, low: i64, high: i64) -> IntRange {
        IntRange { at: self.at, width: self.width, low, high, members: None }
    }
}

/// Adds a range of an integer without members. Ranges of the same integer become one.
fn add_range(ranges: &mut Vec<IntRange>, range: IntRange) {
    let is_same = |known: &&mut IntRange| known.at == range.at && known.width == range.width;
    match ranges.iter_mut().find(is_same) {
        Some(known) => {
            (known.low, known.high) = (known.low.max(range.low), known.high.min(range.high));
        }
        None => ranges.push(range),
    }
}

#[derive(Debug)]
enum ScanMethod {
    Rows(Option<KeyRangeExpr>),
    Key(Vec<Expr>),
    Entries(usize, KeyRangeExpr),
    /// One entry of a unique index.
    Entry(usize, Vec<Expr>),
    /// By the keys of an inverted index.
    Inverted(Box<InvertedScan>),
    /// The current row of a cursor.
    Cursor(Expr),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScanState {
    Fresh,
    Running,
    Done,
}

impl TableScan {
    /// Makes a scan. `parameters` are the types of the parameters.
    pub fn new(
        access: &TableAccess,
        handle: Arc<TableHandle>,
        parameters: &[DataType],
    ) -> TableScan {
        let method = match &access.path {
            AccessPath::All => ScanMethod::Rows(None),
            AccessPath::Key(values) => ScanMethod::Key(values.clone()),
            AccessPath::KeyRange(range) => ScanMethod::Rows(Some(range.clone())),
            AccessPath::Cursor(name) => ScanMethod::Cursor(name.clone()),
            AccessPath::Inverted(path) => {
                ScanMethod::Inverted(Box::new(InvertedScan::new((**path).clone())))
            }
            AccessPath::Index(number, range) => {
                let index = access.table.indexes.get(*number);
                let whole = index.is_some_and(|i| i.unique && i.columns.len() == range.equal.len());
                if whole {
                    ScanMethod::Entry(*number, range.equal.clone())
                } else {
                    ScanMethod::Entries(*number, range.clone())
                }
            }
        };
        let is_database = handle.table().is_database();
        let mut scan = Scan::new(Bound::Unbounded, Bound::Unbounded);
        if access.backward {
            scan = scan.backward();
        }
        let entries = matches!(method, ScanMethod::Entries(..) | ScanMethod::Inverted(_));
        if !access.keys && !is_database && !entries {
            scan = scan.without_keys();
        }
        if let (Some(prefix), false) = (access.prefix, entries || is_database) {
            scan = scan.value_limit(prefix as usize);
        }
        let (pushed_filters, is_filter_pushed) =
            if entries { (Vec::new(), false) } else { pushed_filters(access) };
        let is_selecting =
            matches!(access.path, AccessPath::All) && !is_filter_pushed && !access.row_ids;
        let filter = access.filter.as_ref().filter(|_| is_selecting && !is_database);
        let selection = filter.and_then(|filter| {
            let table = (&*access.table, access.slot);
            LeafSelection::new(filter, table, parameters, Failures::Excluded)
        });
        TableScan {
            slot: access.slot,
            handle,
            filter: access.filter.clone(),
            pushed_filters,
            is_filter_pushed,
            is_filter_covered: false,
            selection: selection.map(Box::new),
            is_selected: false,
            key_filters: Vec::new(),
            key_ranges: Vec::new(),
            numbers: None,
            method,
            scan,
            state: ScanState::Fresh,
            next: 0,
            entries: ScanBatch::default(),
            ahead: RowsAhead::default(),
            key: Vec::new(),
            entry: Vec::new(),
            range: KeyRange::default(),
            keys: access.keys,
            row_ids: access.row_ids,
            is_database,
            most: usize::MAX,
            left: usize::MAX,
        }
    }

    pub fn rewind(&mut self) {
        self.state = ScanState::Fresh;
        self.key_filters.clear();
        self.key_ranges.clear();
    }

    pub fn next(&mut self, context: &mut Context<'_>) -> Result<bool> {
        if self.state == ScanState::Fresh {
            self.state = ScanState::Running;
            self.left = self.most;
            if !self.start(context)? {
                self.state = ScanState::Done;
            }
            if let ScanMethod::Key(_) | ScanMethod::Entry(..) | ScanMethod::Cursor(_) = self.method
            {
                let found = self.state == ScanState::Running && self.look_up(context)?;
                self.state = ScanState::Done;
                return Ok(found);
            }
        }
        if self.state == ScanState::Done {
            return Ok(false);
        }
        let found = match self.reads_rows() {
            true => self.next_row(context)?,
            false => self.next_entry(context)?,
        };
        self.left -= usize::from(found);
        if !found || self.left == 0 {
            self.state = ScanState::Done;
        }
        Ok(found)
    }

    /// Sets the row limit. Returns true if the scan itself stops at the limit, so that no Limit
    /// operator is needed.
    pub fn expect(&mut self, limit: &Expr, offset: Option<&Expr>) -> bool {
        let constant = |bound: &Expr| bound.as_constant().and_then(|value| value.as_ref().as_i64());
        let Some(limit) = constant(limit) else { return false };
        let Some(skipped) = offset.map_or(Some(0), constant) else { return false };
        let most = usize::try_from(limit.saturating_add(skipped)).unwrap_or(0);
        if self.filter.is_none() && (1..1_000).contains(&most) {
            self.scan.set_record_limit(most);
        }
        let counts = most > 0 && offset.is_none();
        if counts {
            self.most = most;
        }
        counts
    }

    /// Whether the scan may stop early at a limit. Reading its leaves directly would return further
    /// rows.
    pub fn is_limited(&self) -> bool {
        self.most != usize::MAX
    }

    /// Gives the scan the ranges, so that it skips rows that the filter would reject.
    fn push_down_filters(&mut self, context: &Context<'_>) -> Result<()> {
        if self.pushed_filters.is_empty() && self.key_filters.is_empty() && self.numbers.is_none() {
            self.is_filter_covered = self.is_filter_pushed;
            self.scan.filter_ints(0, []);
            return Ok(());
        }
        let frame = context.frame();
        let (mut ranges, mut known) = (Vec::with_capacity(self.pushed_filters.len()), 0);
        for filter in &self.pushed_filters {
            let value = filter.value.evaluate(&frame)?;
            if let Some(range) = filter.range(value.as_ref()) {
                known += 1;
                add_range(&mut ranges, range);
            }
        }
        self.is_filter_covered = self.is_filter_pushed && known == self.pushed_filters.len();
        let form = self.pushed_filters.first().map(|filter| filter.form);
        let form = form.or(self.key_filters.first().map(|filter| filter.0)).unwrap_or(0);
        ranges.extend(self.key_filters.drain(..).map(|filter| filter.1));
        self.scan.filter_ints(form, ranges);
        if let Some((form, numbers)) = &self.numbers {
            self.scan.project_ints(*form, numbers.iter().copied());
        }
        Ok(())
    }

    /// Whether the scan reads the rows of the slot one after another, and `column` is an integer
    /// column.
    pub fn takes_keys(&self, column: ColumnRef) -> bool {
        let table = self.handle.table();
        let is_number = || {
            let known = table.columns.get(column.column);
            table.number_at(column.column).is_some()
                && known.is_some_and(|known| !matches!(known.data_type, DataType::Numeric(_)))
        };
        column.slot == self.slot
            && matches!(self.method, ScanMethod::Rows(_))
            && !self.is_limited()
            && is_number()
    }

    /// Limits the scan to rows whose column is one of these numbers, until the next
    /// [`rewind`](Self::rewind).
    pub fn push_down_key_filters(
        &mut self,
        column: ColumnRef,
        low: i64,
        high: i64,
        members: Option<Arc<[u64]>>,
    ) {
        if let Some(NumberAt { form, at, width }) = self.handle.table().number_at(column.column) {
            let range = IntRange { at, width, low, high, members };
            self.key_ranges.push((column.column, range.clone()));
            self.key_filters.push((form, range));
        }
    }

    /// Whether the rows are read one after another.
    #[inline]
    fn reads_rows(&self) -> bool {
        match &self.method {
            ScanMethod::Rows(_) => true,
            ScanMethod::Inverted(scan) => scan.reads_all,
            _ => false,
        }
    }

    /// Finds the range to read. Returns false if it is empty.
    fn start(&mut self, context: &Context<'_>) -> Result<bool> {
        if let ScanMethod::Rows(_) = self.method {
            self.push_down_filters(context)?;
            self.is_selected = false;
            if let Some(selection) = &mut self.selection {
                selection.begin(context)?;
            }
        }
        match &mut self.method {
            ScanMethod::Inverted(scan) => {
                let some = scan.start(self.handle.indexes(), context)?;
                if scan.reads_all {
                    self.scan.restart(Bound::Unbounded, Bound::Unbounded);
                    self.next = context.slots.get(self.slot).map_or(0, |slot| slot.batch.len());
                }
                self.ahead.restart();
                Ok(some)
            }
            ScanMethod::Key(values) => {
                self.key.clear();
                encode_point(self.handle.key(), values, context, &mut self.key)
            }
            ScanMethod::Cursor(name) => {
                let name = context.value(name)?;
                let ValueRef::Text(name) = name.as_ref() else {
                    return Err(SqlError::internal("a name of a cursor that is no text"));
                };
                let key = context.session.current_row(name, self.handle.table())?;
                let is_there = key.is_some();
                self.key = key.unwrap_or_default();
                Ok(is_there)
            }
            ScanMethod::Entry(number, values) => {
                let index = index_of(&self.handle, *number)?;
                self.entry.clear();
                encode_point(&index.key, values, context, &mut self.entry)
            }
            ScanMethod::Rows(None) => {
                self.scan.restart(Bound::Unbounded, Bound::Unbounded);
                self.next = 0;
                if let Some(slot) = context.slots.get(self.slot) {
                    self.next = slot.batch.len();
                }
                Ok(true)
            }
            ScanMethod::Rows(Some(range)) => {
                let some =
                    encode_range(self.handle.key(), range, &context.frame(), &mut self.range)?;
                self.restart();
                self.next = context.slots.get(self.slot).map_or(0, |slot| slot.batch.len());
                Ok(some)
            }
            ScanMethod::Entries(number, range) => {
                let index = index_of(&self.handle, *number)?;
                let some = encode_range(&index.key, range, &context.frame(), &mut self.range)?;
                if index.key.grouped {
                    self.scan.restart_hash_prefix(&self.range.low);
                } else {
                    self.restart();
                }
                self.entries.clear();
                self.ahead.restart();
                self.next = 0;
                Ok(some)
            }
        }
    }

    fn restart(&mut self) {
        let high = self.range.high.as_deref();
        self.scan.restart(
            Bound::Included(&self.range.low),
            high.map_or(Bound::Unbounded, Bound::Excluded),
        );
    }

    /// Returns the key of the only possible row, if the plan asks for nothing but the key. Returns
    /// `None` otherwise, or if there is no row. Replaces [`next`](Self::next).
    pub fn only_key(&mut self, context: &Context<'_>) -> Result<Option<&[u8]>> {
        let is_lookup = matches!(self.method, ScanMethod::Key(_)) && self.filter.is_none();
        Ok(if is_lookup && self.start(context)? { Some(&self.key) } else { None })
    }

    /// The one row with the key.
    fn look_up(&mut self, context: &mut Context<'_>) -> Result<bool> {
        if let ScanMethod::Entry(number, _) = self.method {
            let index = index_of(&self.handle, number)?;
            let mut value = std::mem::take(&mut self.key);
            let found = index.entries.get_into(context.transaction, &self.entry, &mut value);
            let found = found.map_err(|error| index.failed(error))?;
            if found {
                let start = value.len() - index.row_key(&self.entry, &value)?.len();
                value.drain(..start);
            }
            self.key = value;
            if !found {
                return Ok(false);
            }
        }
        self.fetch(context)
    }

    fn fetch(&self, context: &mut Context<'_>) -> Result<bool> {
        self.fetch_row(&self.key, context)
    }

    /// Appends the key of the row whose columns' values `value` gives by position.
    pub fn encode_key<'v>(
        &self,
        out: &mut Vec<u8>,
        value: impl FnMut(usize) -> Result<ValueRef<'v>>,
    ) -> Result<()> {
        self.handle.key().encode_with(out, value)
    }

    /// Reads the row with a key. Returns false if it is missing or fails the filter.
    pub fn fetch_row(&self, key: &[u8], context: &mut Context<'_>) -> Result<bool> {
        let transaction = context.transaction;
        let slot = context.slot(self.slot)?;
        if !self.handle.get(transaction, key, &mut slot.bytes)? {
            return Ok(false);
        }
        if self.row_ids {
            append_row_id(key, &mut slot.bytes)?;
        }
        slot.current = Current::Bytes(0, slot.bytes.len());
        context.holds(self.filter.as_ref())
    }

    /// Asks for these NOT NULL integer columns only. Where a leaf allows it, its batch has them as
    /// columns and no records.
    pub fn want_numbers(&mut self, numbers: &[NumberAt]) {
        let form = self.handle.table().form();
        let numbers = numbers.iter().map(|number| IntField { at: number.at, width: number.width });
        self.numbers = Some((form, numbers.collect()));
    }

    /// Whether the rows of a batch are known to satisfy the filter.
    pub fn is_filtered(&self, batch: &ScanBatch) -> bool {
        self.filter.is_none() || self.is_filter_covered && batch.is_exact()
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        self.handle.table()
    }

    /// Returns the slot of its rows.
    pub fn slot(&self) -> usize {
        self.slot
    }

    /// Reads the next leaf's rows into the slot's batch, without applying the filter. Returns false
    /// at the end.
    pub fn next_leaf(&mut self, context: &mut Context<'_>) -> Result<bool> {
        self.begin(context)?;
        if self.state == ScanState::Done {
            return Ok(false);
        }
        let transaction = context.transaction;
        let slot = context.slot(self.slot)?;
        let more = self.handle.database().scan(transaction, &mut self.scan, &mut slot.batch);
        let more = more.map_err(|error| self.handle.failed(error))?;
        if !more {
            self.state = ScanState::Done;
        }
        context.check_cancelled()?;
        Ok(more)
    }

    /// Evaluates the filter for all rows of the batch by columns, if that is possible and worth it.
    /// Otherwise it is evaluated for each row.
    fn select(&mut self, context: &Context<'_>) {
        self.is_selected = false;
        let (Some(selection), Some(slot)) = (&mut self.selection, context.slots.get(self.slot))
        else {
            return;
        };
        let is_covered = self.is_filter_covered && slot.batch.is_exact();
        if slot.batch.len() < FEWEST_SELECTED || is_covered {
            return;
        }
        self.is_selected = selection.select(self.handle.table(), &slot.batch).is_ok();
    }

    fn next_row(&mut self, context: &mut Context<'_>) -> Result<bool> {
        let transaction = context.transaction;
        loop {
            let mut slot = context.slot(self.slot)?;
            while self.next >= slot.batch.len() {
                let more =
                    self.handle.database().scan(transaction, &mut self.scan, &mut slot.batch);
                if !more.map_err(|error| self.handle.failed(error))? {
                    return Ok(false);
                }
                self.next = 0;
                context.check_cancelled()?;
                self.select(context);
                slot = context.slot(self.slot)?;
            }
            if let (true, Some(selection)) = (self.is_selected, &mut self.selection) {
                let Some(record) = selection.rows.get(selection.next) else {
                    self.next = slot.batch.len();
                    continue;
                };
                selection.next += 1;
                slot.current = Current::Record(*record as usize);
                self.next = *record as usize + 1;
                return Ok(true);
            }
            if self.is_database {
                slot.bytes.clear();
                let columns =
                    [slot.batch.key(self.next), slot.batch.value(self.next)].map(ValueRef::Bytea);
                let value = |position: usize| columns.get(position).copied().unwrap_or_default();
                self.handle.table().encode_row(&mut slot.bytes, value)?;
                slot.current = Current::Bytes(0, slot.bytes.len());
            } else if self.row_ids {
                slot.bytes.clear();
                slot.bytes.extend_from_slice(slot.batch.value(self.next));
                append_row_id(slot.batch.key(self.next), &mut slot.bytes)?;
                slot.current = Current::Bytes(0, slot.bytes.len());
            } else {
                slot.current = Current::Record(self.next);
            }
            self.next += 1;
            if self.is_filter_covered && slot.batch.is_exact() {
                return Ok(true);
            }
            if context.holds(self.filter.as_ref())? {
                return Ok(true);
            }
        }
    }

    fn next_entry(&mut self, context: &mut Context<'_>) -> Result<bool> {
        loop {
            let Some(ahead) = self.ahead.next(&mut self.key) else {
                if self.read_ahead(context)? {
                    continue;
                }
                return Ok(false);
            };
            let found = match ahead {
                RowAhead::Missing => false,
                RowAhead::Unread => self.fetch(context)?,
                RowAhead::Read(start, end) => {
                    let (row, slot) = (self.ahead.row(start, end), context.slot(self.slot)?);
                    slot.bytes.clear();
                    slot.bytes.extend_from_slice(row);
                    if self.row_ids {
                        append_row_id(&self.key, &mut slot.bytes)?;
                    }
                    slot.current = Current::Bytes(0, slot.bytes.len());
                    context.holds(self.filter.as_ref())?
                }
            };
            if found {
                return Ok(true);
            }
        }
    }

    /// Reads the next entries of the index, and rows of them. Returns false at the end.
    fn read_ahead(&mut self, context: &Context<'_>) -> Result<bool> {
        let most = if self.filter.is_none() { self.left } else { usize::MAX };
        self.ahead.begin(most);
        // The bytes of the last row stand for those of any.
        let row_bytes = context.slots.get(self.slot).map_or(0, |slot| slot.bytes.len());
        if let ScanMethod::Inverted(scan) = &mut self.method {
            while self.ahead.has_room()
                && let Some(key) = scan.next_key()
            {
                self.ahead.push(key);
            }
            return self.ahead.read(&self.handle, row_bytes, context);
        }
        let ScanMethod::Entries(number, _) = self.method else { return Ok(false) };
        let index = index_of(&self.handle, number)?;
        while self.ahead.has_room() {
            if self.next >= self.entries.len() {
                let (scan, entries) = (&mut self.scan, &mut self.entries);
                let more = index.entries.scan(context.transaction, scan, entries);
                if !more.map_err(|error| index.failed(error))? {
                    break;
                }
                self.next = 0;
                context.check_cancelled()?;
            }
            let (key, value) = (self.entries.key(self.next), self.entries.value(self.next));
            self.next += 1;
            self.ahead.push(index.row_key(key, value)?);
        }
        self.ahead.read(&self.handle, row_bytes, context)
    }

    /// Returns the key of the current row.
    pub fn row_key<'o>(&'o self, slot: usize, context: &'o Context<'_>) -> Option<&'o [u8]> {
        if slot != self.slot || !self.keys {
            return None;
        }
        if !self.reads_rows() {
            return Some(&self.key);
        }
        let slot = context.slots.get(slot)?;
        Some(slot.batch.key(self.next.checked_sub(1)?))
    }
}

fn index_of(handle: &TableHandle, number: usize) -> Result<&crate::table::IndexHandle> {
    handle.indexes().get(number).ok_or_else(|| SqlError::internal("there is no such index"))
}
