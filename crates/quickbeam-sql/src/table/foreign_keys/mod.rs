//! Foreign keys: a row that refers to another finds it, and what happens when the row referred to
//! goes or changes its key.
//!
//! Rows that follow from others are worked off from a queue, so that a long chain of them needs no
//! stack. What NO ACTION forbids is looked at again when the statement ends.

mod key_values;
mod pending_checks;

use std::ops::Bound;
use std::sync::Arc;

use quickbeam::query_layer::{DatabaseExt, ReadTracking, Scan, ScanBatch, TransactionExt};
use quickbeam::{CHECKS_INVARIANTS, Database, Transaction, invariant};

pub(crate) use self::key_values::can_refer;
use self::key_values::{converted, new_value};
use crate::catalog::{FiredTriggers, ForeignKey, ForeignKeyAction, Table, TriggerEvent};
use crate::error::{Result, SqlError, SqlState};
use crate::handle::describe;
use crate::handle::table_handle::{IndexHandle, TableHandle};
use crate::schema::encoding::key_encoding::{KeyPart, KeyRange, KeySpec};
use crate::schema::encoding::row_format::StoredRow;
use crate::table::table_writer::{TableWriter, differ, values_of};
use crate::table::transaction_state::deferred_checks::{DeferredCheck, DeferredChecks, PendingKey};
use crate::table::trigger_queue::{QueuedEvent, RowDecision};
use crate::table::violations::check_violation;
use crate::types::{Collation, DataType, Value, ValueRef};

/// Rows that have to follow one that went or changed.
pub(in crate::table) struct CascadeTask {
    reference: Referring,
    action: ForeignKeyAction,
    /// The new key, unless the row went.
    new: Option<Vec<Value>>,
}

impl CascadeTask {
    /// The triggers of the rows that follow.
    fn triggers(&self) -> Result<Option<Arc<FiredTriggers>>> {
        let table = self.reference.child.table();
        if table.triggers.is_empty() {
            return Ok(None);
        }
        Ok(match self.action {
            ForeignKeyAction::NoAction | ForeignKeyAction::Restrict => None,
            ForeignKeyAction::Cascade if self.new.is_none() => {
                FiredTriggers::of(table, TriggerEvent::Delete, None)
            }
            _ => {
                let columns = &self.reference.definition()?.columns;
                FiredTriggers::of(table, TriggerEvent::Update, Some(columns))
            }
        })
    }
}

/// What constraints leave to be done. A statement makes this when it first needs it: most of them
/// never do, and pay for one word.
#[derive(Default)]
pub(in crate::table) struct ConstraintWork {
    /// Rows that follow at once.
    cascades: Vec<CascadeTask>,
    /// Rows that follow in the order of the queue of triggers.
    pub ordered: Vec<Option<CascadeTask>>,
    /// What is checked at the statement's end.
    pub pending: Vec<PendingCheck>,
    /// References to rows of other tables, which are checked before triggers fire.
    missing: Vec<Pending>,
}

/// References that may wait for the statement's end. One more is an error at once.
const MOST_MISSING: usize = 10_000;

/// What is checked at the statement's end.
pub(in crate::table) enum PendingCheck {
    Reference(Pending),
    Key(PendingKey),
}

/// A foreign-key violation to check for: a reference to a key that does not exist.
pub(in crate::table) struct Pending {
    reference: Referring,
    /// It was not there when who refers to it came; otherwise it went.
    came_first: bool,
}

impl Pending {
    /// Adds the check to those of the transaction.
    fn defer(self, deferred: &DeferredChecks) -> Result<()> {
        let Pending { reference, came_first } = self;
        let constraint = (reference.child.table().id, reference.definition()?.name.clone());
        let (parent, key, shown) = (reference.parent.table().id, reference.key, reference.shown);
        let check = DeferredCheck::Reference { parent, key, shown, came_first };
        deferred.defer(constraint, check);
        Ok(())
    }
}

/// A row's key, and the row.
type KeyedRow = (Vec<u8>, Vec<u8>);

/// A key that was referred to, and by what.
#[derive(Clone)]
struct Referring {
    child: Arc<TableHandle>,
    foreign_key: usize,
    parent: Arc<TableHandle>,
    /// In the order of the foreign key's columns.
    key: Vec<Value>,
    /// The key for messages.
    shown: String,
}

impl Referring {
    fn definition(&self) -> Result<&ForeignKey> {
        definition(self.child.table(), self.foreign_key)
    }

    /// Who refers to the key is there, the key is not.
    #[cold]
    fn missing(&self) -> SqlError {
        let (parent, child) = (&self.parent.table().name, &self.child.table().name);
        let name = self.definition().map_or("", |key| key.name.as_str());
        let message = format!(
            "insert or update on table \"{child}\" violates foreign key constraint \"{name}\""
        );
        SqlError::new(SqlState::ForeignKeyViolation, message)
            .with_detail(format!("Key {} is not present in table \"{parent}\".", self.shown))
            .of_table(&self.child.table().schema, child)
            .of_constraint(name)
    }

    /// The key is to go, who refers to it stays.
    #[cold]
    fn violated(&self) -> SqlError {
        let (parent, child) = (&self.parent.table().name, &self.child.table().name);
        let name = self.definition().map_or("", |key| key.name.as_str());
        SqlError::new(
            SqlState::ForeignKeyViolation,
            format!(
                "update or delete on table \"{parent}\" violates foreign key constraint \"{name}\" on table \"{child}\""
            ),
        )
        .with_detail(format!("Key {} is still referenced from table \"{child}\".", self.shown))
        .of_table(&self.child.table().schema, child)
        .of_constraint(name)
    }
}

fn definition(table: &Table, foreign_key: usize) -> Result<&ForeignKey> {
    let found = table.foreign_keys.get(foreign_key);
    found.ok_or_else(|| SqlError::internal("a foreign key that the table does not have"))
}

fn parent_positions(parent: &Table, key: &ForeignKey) -> Result<Vec<usize>> {
    let position = |&id: &u16| parent.position_of(id);
    let found: Option<Vec<usize>> = key.parent_columns.iter().map(position).collect();
    found.ok_or_else(|| SqlError::internal("a foreign key to a column that is not there"))
}

/// Returns the collation of a column if it takes texts of different bytes as equal.
fn equality_of(table: &Table, position: usize) -> Option<Collation> {
    let own = table.columns.get(position)?.key_collation()?;
    (!own.is_deterministic()).then_some(own)
}

/// Returns the collations under which rows that refer to a key are found, in the order of its
/// columns. As in PostgreSQL, that of the referencing column counts if the other is deterministic.
fn equalities(parent: &Table, child: &Table, key: &ForeignKey) -> Result<Vec<Option<Collation>>> {
    let positions = parent_positions(parent, key)?;
    let both = positions.iter().zip(&key.columns);
    let equality = |(&to, &from)| equality_of(parent, to).or_else(|| equality_of(child, from));
    Ok(both.map(equality).collect())
}

/// Whether the first columns of a key are these, in any order, and equal texts have equal keys.
fn begins_with(key: &KeySpec, positions: &[usize], collations: &[Option<Collation>]) -> bool {
    let first = key.parts.get(..positions.len());
    let is_one = |part: &KeyPart| {
        let place = positions.iter().position(|position| *position == part.position);
        place.is_some_and(|place| match collations.get(place).copied().flatten() {
            Some(wanted) => part.collation == Some(wanted),
            None => part.collation.is_none_or(Collation::is_deterministic),
        })
    };
    first.is_some_and(|parts| !parts.is_empty() && parts.iter().all(is_one))
}

/// The beginning of a key, from the values of the columns at these positions.
fn prefix(key: &KeySpec, positions: &[usize], values: &[Value], out: &mut Vec<u8>) -> Result<()> {
    let start = key.begin(out);
    for part in key.parts.iter().take(positions.len()) {
        let place = positions.iter().position(|position| *position == part.position);
        let value = place.and_then(|place| values.get(place));
        part.encode(out, value.map_or(ValueRef::Null, Value::as_ref))?;
    }
    key.end(out, start)
}

#[cold]
fn without_row() -> SqlError {
    SqlError::corrupted("an entry of an index without its row")
}

/// Whether a row's columns at these positions have these values.
fn matches(
    row: StoredRow<'_>,
    positions: &[usize],
    values: &[Value],
    collations: &[Option<Collation>],
) -> Result<bool> {
    for ((position, value), collation) in positions.iter().zip(values).zip(collations) {
        let found = row.get(*position)?;
        let order = match (collation, found, value) {
            (Some(own), ValueRef::Text(found), Value::Text(wanted)) => {
                own.key(found)?.compare(&own.key(wanted)?)
            }
            _ => found.compare(value.as_ref()),
        };
        if order != Some(std::cmp::Ordering::Equal) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Encodes the row again with the columns at these positions replaced by `values`.
fn with_values(
    table: &Table,
    row: StoredRow<'_>,
    positions: &[usize],
    values: &[Value],
) -> Result<Vec<u8>> {
    let mut all = row.to_values()?;
    for (position, value) in positions.iter().zip(values) {
        if let Some(place) = all.get_mut(*position) {
            *place = value.clone();
        }
    }
    let mut out = Vec::new();
    table.encode_values(&mut out, &all)?;
    Ok(out)
}

/// The error of a row with NULL in some of the columns of a key MATCH FULL.
#[cold]
fn mixed_nulls(table: &Table, key: &ForeignKey) -> SqlError {
    let (child, name) = (&table.name, &key.name);
    let message =
        format!("insert or update on table \"{child}\" violates foreign key constraint \"{name}\"");
    SqlError::new(SqlState::ForeignKeyViolation, message)
        .with_detail("MATCH FULL does not allow mixing of null and nonnull key values.")
        .of_table(&table.schema, child)
        .of_constraint(name.as_str())
}

/// Whether the row that a row refers to by a foreign key is in the table referred to; true where a
/// column of the key is NULL.
pub(in crate::table) fn has_parent(
    transaction: &Transaction,
    (table, key): (&Table, &ForeignKey),
    row: StoredRow<'_>,
    parent: &TableHandle,
) -> Result<bool> {
    let values = values_of(row, &key.columns)?;
    if values.iter().any(|value| value.is_null()) {
        return Ok(!key.is_full || values.iter().all(|value| value.is_null()));
    }
    let positions = parent_positions(parent.table(), key)?;
    match converted(&values, (table, &key.columns), (parent.table(), &positions)) {
        None => Ok(false),
        Some(values) => has_row(transaction, parent, &positions, &values),
    }
}

/// Whether a table has a row with these values in the columns of its primary key or of a unique
/// index.
fn has_row(
    transaction: &Transaction,
    handle: &TableHandle,
    positions: &[usize],
    values: &[Value],
) -> Result<bool> {
    let collation = |&position: &usize| equality_of(handle.table(), position);
    let collations: Vec<_> = positions.iter().map(collation).collect();
    let is_key = |key: &KeySpec| {
        key.parts.len() == positions.len() && begins_with(key, positions, &collations)
    };
    let (database, key) = if is_key(handle.key()) {
        (handle.database(), handle.key())
    } else {
        let index = handle
            .indexes()
            .iter()
            .find(|i| i.index.unique && !i.index.is_partial() && is_key(&i.key));
        let index = index.ok_or_else(|| SqlError::internal("a foreign key to no unique key"))?;
        index.index.check_current()?;
        (&index.entries, &index.key)
    };
    let mut bytes = Vec::new();
    prefix(key, positions, values, &mut bytes)?;
    Ok(database.exists(transaction, &bytes)?)
}

impl TableWriter<'_> {
    /// A row refers to one that is there, by the foreign key of that place, or is an error
    /// (STMT-2), now or at the statement's end.
    pub(crate) fn check_parent(
        &mut self,
        child: &Arc<TableHandle>,
        foreign_key: usize,
        row: StoredRow<'_>,
    ) -> Result<()> {
        if self.is_replica {
            return Ok(());
        }
        let table = child.table();
        let key = definition(table, foreign_key)?;
        let values = values_of(row, &key.columns)?;
        if values.iter().any(|value| value.is_null()) {
            return match key.is_full && !values.iter().all(|value| value.is_null()) {
                true => Err(mixed_nulls(table, key)),
                false => Ok(()),
            };
        }
        let parent = self.snapshot.handle(self.transaction, key.parent)?;
        let positions = parent_positions(parent.table(), key)?;
        let deferred = self.deferred.filter(|it| it.defers(table, &key.name, key.timing));
        let found = match converted(&values, (table, &key.columns), (parent.table(), &positions)) {
            None => false,
            // The row may come later: that it is missing now need not hold at commit.
            Some(values) if deferred.is_some() => {
                has_row(self.transaction, &parent, &positions, &values)?
                    && self.has_row(&parent, &positions, &values)?
            }
            Some(values) => self.has_row(&parent, &positions, &values)?,
        };
        if found {
            return Ok(());
        }
        let reference = Referring {
            child: child.clone(),
            foreign_key,
            key: values.iter().map(|value| value.to_value()).collect(),
            shown: describe(table, &key.columns, row),
            parent,
        };
        if let Some(deferred) = deferred {
            return Pending { reference, came_first: true }.defer(deferred);
        }
        if key.parent != table.id && !self.parents_may_follow {
            // The errors of other rows come first, as in PostgreSQL.
            let missing = &mut self.constraint_work().missing;
            if missing.len() >= MOST_MISSING {
                return Err(reference.missing());
            }
            missing.push(Pending { reference, came_first: true });
            return Ok(());
        }
        // In its own table the statement may bring the row referred to after the one that refers to
        // it.
        let check = Pending { reference, came_first: true };
        self.constraint_work().pending.push(PendingCheck::Reference(check));
        Ok(())
    }

    /// As [`has_row`], so that it has to be so at commit.
    fn has_row(&self, handle: &TableHandle, positions: &[usize], values: &[Value]) -> Result<bool> {
        self.tracked(|| has_row(self.transaction, handle, positions, values))
    }

    /// Reads so that what was read has to hold still at commit.
    pub(in crate::table) fn tracked<T>(&self, read: impl FnOnce() -> Result<T>) -> Result<T> {
        let before = self.transaction.track_reads(ReadTracking::On);
        let result = read();
        let was_tracked = self.transaction.track_reads(before) == ReadTracking::On;
        if CHECKS_INVARIANTS {
            self.tracked.set(self.tracked.get() + usize::from(was_tracked));
        }
        invariant!(STMT_2, was_tracked, "a constraint relies on a read that is not validated");
        result
    }

    /// A row that may be referred to went, or became another: who refers to it has to follow,
    /// later.
    pub(in crate::table) fn parent_changed(
        &mut self,
        parent: &Arc<TableHandle>,
        old: StoredRow<'_>,
        new: Option<StoredRow<'_>>,
    ) -> Result<()> {
        for reference in &parent.table().referenced_by {
            if self.is_replica {
                break;
            }
            let child = self.snapshot.handle(self.transaction, reference.child)?;
            let key = definition(child.table(), reference.foreign_key)?;
            let positions = parent_positions(parent.table(), key)?;
            if let Some(new) = new
                && !differ(&positions, old, new)?
            {
                continue;
            }
            let values = values_of(old, &positions)?;
            if values.iter().any(|value| value.is_null()) {
                continue;
            }
            // No row can refer to a key that is not a value of the child's type.
            let own = (&**parent.table(), &positions[..]);
            let Some(values) = converted(&values, own, (child.table(), &key.columns)) else {
                continue;
            };
            let new_values = match new {
                None => None,
                Some(new) => {
                    Some(values_of(new, &positions)?.iter().map(|v| v.to_value()).collect())
                }
            };
            let task = CascadeTask {
                action: if new.is_some() { key.on_update } else { key.on_delete },
                new: new_values,
                reference: Referring {
                    child: child.clone(),
                    foreign_key: reference.foreign_key,
                    parent: parent.clone(),
                    key: values,
                    shown: describe(parent.table(), &positions, old),
                },
            };
            // Where triggers fire, rows follow in the order of the queue of triggers.
            if parent.table().triggers.is_empty() && child.table().triggers.is_empty() {
                self.constraint_work().cascades.push(task);
            } else {
                let ordered = &mut self.constraint_work().ordered;
                ordered.push(Some(task));
                let number = ordered.len() - 1;
                self.triggers.push(QueuedEvent::Cascade(number));
            }
        }
        Ok(())
    }

    /// Lets rows follow until none has to.
    #[inline]
    pub(in crate::table) fn work_off(&mut self) -> Result<()> {
        if self.constraint_work.is_none() { Ok(()) } else { self.cascade_all() }
    }

    /// Works the tasks off in their order, each with those that it leads to, as PostgreSQL does.
    #[inline(never)]
    fn cascade_all(&mut self) -> Result<()> {
        let mut levels: Vec<std::vec::IntoIter<CascadeTask>> = Vec::new();
        loop {
            let tasks = self.constraint_work.as_mut().map(|it| std::mem::take(&mut it.cascades));
            levels.extend(tasks.filter(|it| !it.is_empty()).map(Vec::into_iter));
            let Some(level) = levels.last_mut() else { return Ok(()) };
            match level.next() {
                Some(task) => self.cascade(task)?,
                None => drop(levels.pop()),
            }
        }
    }

    /// Returns the list of what constraints leave to be done, empty at first.
    pub(in crate::table) fn constraint_work(&mut self) -> &mut ConstraintWork {
        self.constraint_work.get_or_insert_default()
    }

    /// Lets the rows of one reference follow.
    pub(in crate::table) fn cascade(&mut self, work: CascadeTask) -> Result<()> {
        let triggers = work.triggers()?;
        let table = work.reference.child.table().clone();
        self.begin_triggers(triggers.as_ref(), &table)?;
        let children = self.referring_rows(&work.reference, usize::MAX)?;
        if !children.is_empty() {
            match work.action {
                ForeignKeyAction::NoAction => {
                    let table = work.reference.child.table().clone();
                    let key = work.reference.definition()?;
                    let deferred =
                        self.deferred.filter(|it| it.defers(&table, &key.name, key.timing));
                    let check = Pending { reference: work.reference, came_first: false };
                    match deferred {
                        Some(deferred) => check.defer(deferred)?,
                        None => self.constraint_work().pending.push(PendingCheck::Reference(check)),
                    }
                }
                ForeignKeyAction::Restrict => return Err(work.reference.violated()),
                ForeignKeyAction::Cascade if work.new.is_none() => {
                    let (handle, triggers) = (&work.reference.child, triggers.as_ref());
                    for (key, row) in children {
                        let decision =
                            self.before_row(triggers, handle, Some((&key, &row)), None)?;
                        if decision != RowDecision::Skipped {
                            self.delete_one(handle, &key, &row)?;
                            self.after_row(triggers, handle, Some(&row), None)?;
                        }
                    }
                }
                _ => self.follow(&work, children, triggers.as_ref())?,
            }
        }
        self.end_triggers(triggers.as_ref(), &table);
        Ok(())
    }

    /// Gives referring rows another key, NULL, or the DEFAULT.
    fn follow(
        &mut self,
        work: &CascadeTask,
        children: Vec<KeyedRow>,
        triggers: Option<&Arc<FiredTriggers>>,
    ) -> Result<()> {
        let (handle, table) = (&work.reference.child, work.reference.child.table());
        let key = work.reference.definition()?;
        let named = key.delete_columns.iter().filter_map(|id| table.position_of(*id));
        let named: Vec<usize> = named.filter(|_| work.new.is_none()).collect();
        let columns = if named.is_empty() { &key.columns } else { &named };
        let mut values = Vec::with_capacity(columns.len());
        for (place, &column) in columns.iter().enumerate() {
            let to = table.columns.get(column).map_or(DataType::Text, |column| column.data_type);
            values.push(match (work.action, &work.new) {
                (ForeignKeyAction::SetDefault, _) => self.expressions.default(table, column)?,
                (ForeignKeyAction::Cascade, Some(new)) => {
                    let value = new.get(place).cloned().unwrap_or_default();
                    let parent = work.reference.parent.table();
                    let position = parent_positions(parent, key)?.get(place).copied();
                    let from = position.and_then(|it| parent.columns.get(it));
                    new_value(value, from.map_or(to, |column| column.data_type), to)?
                }
                _ => Value::Null,
            });
        }
        for (key, old) in children {
            let mut new = with_values(table, StoredRow::new(table, &old)?, columns, &values)?;
            let all: Vec<usize>;
            let mut set = &columns[..];
            match self.before_row(triggers, handle, Some((&key, &old)), Some(&new))? {
                RowDecision::Skipped => continue,
                RowDecision::Changed(row) => {
                    new = row;
                    all = (0..table.columns.len()).collect();
                    set = &all;
                }
                RowDecision::Same => {}
            }
            let generated = self.expressions.generated(table, set, StoredRow::new(table, &new)?)?;
            let (places, computed): (Vec<usize>, Vec<Value>) = generated.into_iter().unzip();
            if !places.is_empty() {
                new = with_values(table, StoredRow::new(table, &new)?, &places, &computed)?;
            }
            let changed = [set, &places].concat();
            self.expressions.check_domains(table, &changed, StoredRow::new(table, &new)?)?;
            for check in 0..table.checks.len() {
                self.check(table, check, StoredRow::new(table, &new)?)?;
            }
            // Another reference may delete the row, or bring the one referred to.
            let may_follow = std::mem::replace(&mut self.parents_may_follow, true);
            let updated = self.update_one(handle, &key, &old, &new, &changed);
            self.parents_may_follow = may_follow;
            updated?;
            self.after_row(triggers, handle, Some(&old), Some(&new))?;
        }
        if work.action == ForeignKeyAction::SetDefault {
            // The DEFAULT may be the key that went: then nothing was changed that would have been
            // looked at.
            let check = Pending { reference: work.reference.clone(), came_first: false };
            self.constraint_work().pending.push(PendingCheck::Reference(check));
        }
        Ok(())
    }

    fn check(&self, table: &Table, check: usize, row: StoredRow<'_>) -> Result<()> {
        if self.expressions.check(table, check, row)? != Some(false) {
            return Ok(());
        }
        Err(check_violation(table, check, row))
    }

    /// Rows that refer to a key, up to `limit` of them: their keys and bytes.
    fn referring_rows(&self, reference: &Referring, limit: usize) -> Result<Vec<KeyedRow>> {
        self.tracked(|| self.find_referring(reference, limit))
    }

    fn find_referring(&self, reference: &Referring, limit: usize) -> Result<Vec<KeyedRow>> {
        let (handle, transaction) = (&reference.child, self.transaction);
        let columns = &reference.definition()?.columns;
        let parent = reference.parent.table();
        let collations = equalities(parent, handle.table(), reference.definition()?)?;
        let mut found = Vec::new();
        if let Some(found) = self.find_by_hash(reference, columns, &collations, limit)? {
            return Ok(found);
        }
        let is_ordered = |database: &Database| database.access_method().is_ordered();
        let by_key =
            is_ordered(handle.database()) && begins_with(handle.key(), columns, &collations);
        let leads = |index: &&IndexHandle| {
            !index.index.is_partial()
                && is_ordered(&index.entries)
                && begins_with(&index.key, columns, &collations)
                && !index.index.is_stale()
        };
        let index = handle.indexes().iter().find(leads);
        let key = if by_key {
            Some((handle.database(), handle.key()))
        } else {
            index.map(|index| (&index.entries, &index.key))
        };
        let mut range = KeyRange::default();
        let database = match key {
            None => handle.database(),
            Some((database, key)) => {
                prefix(key, columns, &reference.key, &mut range.low)?;
                let mut high = range.low.clone();
                range.high =
                    crate::schema::encoding::key_encoding::prefix_end(&mut high).then_some(high);
                database
            }
        };
        let by_index = key.is_some() && !by_key;
        let mut cursor = database.cursor(transaction)?;
        let mut more = match key {
            Some(_) => cursor.seek(&range.low)?,
            None => cursor.first()?,
        };
        while more && range.high.as_deref().is_none_or(|high| cursor.key() < high) {
            let (row_key, row) = match index.filter(|_| by_index) {
                None => (cursor.key().to_vec(), cursor.value().to_vec()),
                Some(index) => {
                    let row_key = index.row_key(cursor.key(), cursor.value())?.to_vec();
                    let row = handle.database().get(transaction, &row_key)?;
                    (row_key, row.ok_or_else(without_row)?)
                }
            };
            if key.is_some()
                || matches(
                    StoredRow::new(handle.table(), &row)?,
                    columns,
                    &reference.key,
                    &collations,
                )?
            {
                found.push((row_key, row));
            }
            if found.len() >= limit {
                break;
            }
            more = cursor.next()?;
        }
        Ok(found)
    }

    /// The rows that refer to a key, where its columns are a hash key of the table or of an index.
    fn find_by_hash(
        &self,
        reference: &Referring,
        columns: &[usize],
        collations: &[Option<Collation>],
        limit: usize,
    ) -> Result<Option<Vec<KeyedRow>>> {
        let (handle, transaction) = (&reference.child, self.transaction);
        let is_hash_key = |database: &Database, key: &KeySpec| {
            !database.access_method().is_ordered()
                && key.parts.len() == columns.len()
                && begins_with(key, columns, collations)
        };
        let (mut row_key, mut row) = (Vec::new(), Vec::new());
        if is_hash_key(handle.database(), handle.key()) {
            prefix(handle.key(), columns, &reference.key, &mut row_key)?;
        } else {
            let mut indexes = handle.indexes().iter();
            let is_hash_index = |index: &&IndexHandle| {
                !index.index.is_partial()
                    && is_hash_key(&index.entries, &index.key)
                    && !index.index.is_stale()
            };
            let Some(index) = indexes.find(is_hash_index) else {
                return Ok(None);
            };
            let mut entry = Vec::new();
            prefix(&index.key, columns, &reference.key, &mut entry)?;
            if index.key.grouped {
                return self.find_group(handle, index, &entry, limit).map(Some);
            }
            let Some(value) = index.entries.get(transaction, &entry)? else {
                return Ok(Some(Vec::new()));
            };
            row_key.extend_from_slice(index.row_key(&entry, &value)?);
        }
        let found = handle.get(transaction, &row_key, &mut row)?;
        Ok(Some(if found { vec![(row_key, row)] } else { Vec::new() }))
    }

    /// The rows of a group of an index, up to `limit` of them.
    fn find_group(
        &self,
        handle: &TableHandle,
        index: &IndexHandle,
        group: &[u8],
        limit: usize,
    ) -> Result<Vec<KeyedRow>> {
        let mut scan = Scan::new(Bound::Unbounded, Bound::Unbounded).record_limit(limit);
        scan.restart_hash_prefix(group);
        let (mut entries, mut found) = (ScanBatch::default(), Vec::new());
        while found.len() < limit
            && index.entries.scan(self.transaction, &mut scan, &mut entries)?
        {
            for entry in 0..entries.len().min(limit - found.len()) {
                let row_key = index.row_key(entries.key(entry), entries.value(entry))?;
                let row = handle.database().get(self.transaction, row_key)?;
                found.push((row_key.to_vec(), row.ok_or_else(without_row)?));
            }
        }
        Ok(found)
    }
}
