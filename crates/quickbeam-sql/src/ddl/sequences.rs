//! Sequences: numbers that are given out once.
//!
//! - SEQ-1: no value is given out twice, also by transactions that roll back; values may be
//!   skipped. For that, values are reserved, some at a time, in separate transactions. Only a
//!   sequence that no other transaction can see yet counts in the transaction that created it.
//! - SEQ-2: the record of a sequence's next value is never removed while the environment is open:
//!   values may have been reserved since the snapshot of the transaction that drops it. Opening the
//!   catalog removes the records that remain.

use std::collections::BTreeSet;
use std::sync::Arc;

use quickbeam::{ReadTransaction, Transaction, TransactionOptions, invariant};
use smol_str::SmolStr;

use super::change::CatalogChange;
use crate::catalog::{Catalog, CatalogSnapshot, DropBehavior, Reserved};
use crate::error::{Result, SqlError, SqlState};
use crate::schema::errors::{is_not, no_relation, read_only};
use crate::schema::names::{shown_name, split_lookup_name};
use crate::schema::{Column, Identity, ObjectId, Relation, Sequence, Table};
use crate::schema::{SequenceChanges, SequenceOptions};
use crate::types::DataType;

/// Values reserved at a time.
const RESERVED_AT_ONCE: i64 = 32;
/// Times that a reservation is tried again when another one was quicker.
const ATTEMPTS: usize = 100;

impl CatalogSnapshot {
    /// Returns the identity column that a sequence belongs to.
    #[must_use]
    pub fn identity_of(&self, sequence: &Sequence) -> Option<(&Arc<Table>, &Column)> {
        let (table, number) = sequence.owned_by?;
        let table = self.table(table)?;
        let column = table.columns.get(table.position_of(number)?)?;
        let is_own = |identity: &Identity| identity.sequence == sequence.id;
        column.identity.as_ref().is_some_and(is_own).then_some((table, column))
    }

    /// Returns the sequence that the column of a table owns.
    #[must_use]
    pub fn owned_sequence(&self, table: ObjectId, column: u16) -> Option<&Sequence> {
        self.sequences().find(|sequence| sequence.owned_by == Some((table, column)))
    }

    /// The sequence of that name, or an error that says what is wrong.
    pub fn sequence_named(&self, name: &str) -> Result<Arc<Sequence>> {
        match self.relation(name) {
            Some(Relation::Sequence(sequence)) => Ok(sequence),
            None => Err(no_relation(name)),
            Some(_) => Err(is_not(name, "a sequence")),
        }
    }
}

impl Catalog {
    /// CREATE SEQUENCE.
    pub fn create_sequence(
        &self,
        transaction: &Transaction,
        name: &str,
        options: &SequenceOptions,
    ) -> Result<ObjectId> {
        let change = CatalogChange::begin(self, transaction)?;
        change.check_free(name)?;
        change.check_no_type(name)?;
        let schema = split_lookup_name(name).0;
        let owner = options.owned_by.as_ref();
        let owner = owner.map(|owner| change.owner_of(&schema, owner)).transpose()?;
        change.define_sequence(name, options, owner)
    }

    /// DROP SEQUENCE of all of these. `behavior` says what becomes of views that read them.
    pub fn drop_sequences(
        &self,
        transaction: &Transaction,
        names: &[SmolStr],
        behavior: DropBehavior,
    ) -> Result<()> {
        let cascade = behavior == DropBehavior::Cascade;
        let change = CatalogChange::begin(self, transaction)?;
        for name in names {
            let sequence = change.before.sequence_named(name)?;
            if let Some((table, _)) = change.before.identity_of(&sequence) {
                let by = format!("column of table {}", table.name);
                return Err(super::tables::depended(&format!("sequence {}", sequence.name), &by));
            }
            let what = format!("sequence {}", shown_name(name));
            change.drop_dependents(sequence.id, &[], &what, cascade)?;
            change.remove(sequence.id)?;
        }
        Ok(())
    }

    /// Removes the records that dropped sequences left (SEQ-2).
    pub(crate) fn sweep_sequences(&self) -> Result<()> {
        invariant!(SEQ_2, self.reserved.lock().is_empty(), "values are reserved already");
        let transaction = self.environment.begin()?;
        let snapshot = self.snapshot(&transaction)?;
        let kept: BTreeSet<[u8; 8]> =
            snapshot.sequences.values().map(|sequence| sequence.key()).collect();
        let mut cursor = self.sequences.cursor(&transaction)?;
        let mut more = cursor.first()?;
        while more {
            if cursor.key().first_chunk().is_none_or(|key| !kept.contains(key)) {
                cursor.delete()?;
            }
            more = cursor.next()?;
        }
        Ok(transaction.commit()?)
    }

    /// ALTER SEQUENCE. A change of its values begins a new epoch, as a restart does.
    pub fn alter_sequence(
        &self,
        transaction: &Transaction,
        name: &str,
        changes: &SequenceChanges,
    ) -> Result<()> {
        let change = CatalogChange::begin(self, transaction)?;
        let old = change.before.sequence_named(name)?;
        let mut sequence = (*old).clone();
        sequence.change(changes)?;
        if let Some(owner) = &changes.owned_by {
            if change.before.identity_of(&old).is_some() {
                let message = "cannot change ownership of identity sequence";
                let detail = format!("Sequence \"{}\" is linked to a column.", old.name);
                return Err(
                    SqlError::new(SqlState::FeatureNotSupported, message).with_detail(detail)
                );
            }
            let owner = owner.as_ref().map(|owner| change.owner_of(&old.schema, owner));
            sequence.owned_by = owner.transpose()?;
        }
        let next = match changes.restart {
            Some(value) => {
                let value = value.unwrap_or(sequence.start);
                sequence.check_last(value)?;
                NextValue { next: Some(value), last: None }
            }
            None => {
                let state = self.state_of(transaction, &old)?;
                sequence.check_last(state.last)?;
                sequence.next_after(state)
            }
        };
        sequence.epoch = sequence.epoch.wrapping_add(1);
        put_next(self, transaction, &sequence, next)?;
        change.put_sequence(sequence)
    }

    /// `nextval`: the next value (SEQ-1).
    pub fn next_value(&self, transaction: &Transaction, sequence: &Sequence) -> Result<i64> {
        if transaction.is_read_only() {
            return Err(read_only("nextval()"));
        }
        // The lock is not held while the tree is asked: that may wait for other transactions.
        if let Some(reserved) = self.reserved.lock().get_mut(&sequence.count())
            && reserved.left > 0
        {
            reserved.left -= 1;
            let value = reserved.next;
            // What does not fit is never given out: nothing is left then.
            reserved.next = value.wrapping_add(reserved.increment);
            return Ok(value);
        }
        self.reserve(transaction, sequence)
    }

    /// `setval`: the next value is the one after `value`, or `value` itself if it is not
    /// `is_called`.
    pub fn set_value(
        &self,
        transaction: &Transaction,
        sequence: &Sequence,
        value: i64,
        is_called: bool,
    ) -> Result<()> {
        if transaction.is_read_only() {
            return Err(read_only("setval()"));
        }
        if !(sequence.minimum..=sequence.maximum).contains(&value) {
            return Err(SqlError::new(
                SqlState::NumericValueOutOfRange,
                format!(
                    "setval: value {value} is out of bounds for sequence \"{}\" ({}..{})",
                    sequence.name, sequence.minimum, sequence.maximum
                ),
            ));
        }
        let next = if is_called { sequence.after(value) } else { Some(value) };
        let next = NextValue { next, last: is_called.then_some(value) };
        let set = |own: &Transaction| put_next(self, own, sequence, next);
        self.in_own_transaction(transaction, sequence, set)?;
        self.reserved.lock().remove(&sequence.count());
        Ok(())
    }

    /// Returns the next value that no session has reserved, as the transaction sees it, or `None`
    /// if the sequence is exhausted.
    pub fn next_unreserved(
        &self,
        transaction: &impl ReadTransaction,
        sequence: &Sequence,
    ) -> Result<Option<i64>> {
        let transaction = transaction.as_transaction();
        let mut record = Vec::new();
        self.sequences.get_into(transaction, &sequence.key(), &mut record)?;
        Ok(next_of(sequence, &record)?.next)
    }

    /// Returns what a query of a sequence shows.
    pub fn state_of(
        &self,
        transaction: &impl ReadTransaction,
        sequence: &Sequence,
    ) -> Result<SequenceState> {
        if let Some(reserved) = self.reserved.lock().get(&sequence.count()) {
            let last = reserved.next.wrapping_sub(reserved.increment);
            return Ok(SequenceState { last, left: reserved.left, is_called: true });
        }
        let mut record = Vec::new();
        self.sequences.get_into(transaction.as_transaction(), &sequence.key(), &mut record)?;
        let NextValue { next, last } = next_of(sequence, &record)?;
        let end = if sequence.increment > 0 { sequence.maximum } else { sequence.minimum };
        let shown = last.or(next).unwrap_or(end);
        Ok(SequenceState { last: shown, left: 0, is_called: last.is_some() || next.is_none() })
    }

    /// Calls `work` in a transaction of its own; in the one given if the sequence is not to be seen
    /// by others yet.
    fn in_own_transaction<T>(
        &self,
        transaction: &Transaction,
        sequence: &Sequence,
        mut work: impl FnMut(&Transaction) -> Result<T>,
    ) -> Result<T> {
        let mut attempt = 0;
        loop {
            let own = self.environment.begin_with(TransactionOptions::default())?;
            if !self.sequences.exists(&own, &sequence.key())? {
                return work(transaction);
            }
            let done = work(&own).and_then(|value| Ok(own.commit().map(|()| value)?));
            attempt += 1;
            match done {
                Err(error) if error.is_retryable() && attempt < ATTEMPTS => {
                    std::thread::yield_now()
                }
                done => return done,
            }
        }
    }

    #[cold]
    fn reserve(&self, transaction: &Transaction, sequence: &Sequence) -> Result<i64> {
        let (first, left) = self.in_own_transaction(transaction, sequence, |own| {
            let mut record = Vec::new();
            self.sequences.get_into(own, &sequence.key(), &mut record)?;
            let first = next_of(sequence, &record)?.next.ok_or_else(|| sequence.exhausted())?;
            let (mut last, mut left) = (first, 0);
            // What is reserved is known to everybody, so only what is committed is.
            while !std::ptr::eq(own, transaction) && left + 1 < RESERVED_AT_ONCE {
                match last.checked_add(sequence.increment) {
                    Some(value) if (sequence.minimum..=sequence.maximum).contains(&value) => {
                        last = value;
                        left += 1;
                    }
                    _ => break,
                }
            }
            let is_committed_apart = !std::ptr::eq(own, transaction);
            invariant!(SEQ_1, left == 0 || is_committed_apart, "{left} values are reserved");
            let next = NextValue { next: sequence.after(last), last: Some(last) };
            put_next(self, own, sequence, next)?;
            Ok((first, left))
        })?;
        if left > 0 {
            let increment = sequence.increment;
            let reserved = Reserved { next: first.wrapping_add(increment), left, increment };
            self.reserved.lock().insert(sequence.count(), reserved);
        }
        Ok(first)
    }
}

/// What the record of a sequence holds.
#[derive(Clone, Copy)]
struct NextValue {
    /// The next value; `None`: there is no further one.
    next: Option<i64>,
    /// The value given out last; `None`: the next one is the first.
    last: Option<i64>,
}

/// What a query of a sequence shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceState {
    /// The value given out last, or the first one.
    pub last: i64,
    /// How many values are reserved.
    pub left: i64,
    /// Whether a value was given out.
    pub is_called: bool,
}

/// Reads the record of a sequence. Those of earlier releases do not have the last value: it is the
/// one before the next.
fn next_of(sequence: &Sequence, record: &[u8]) -> Result<NextValue> {
    let number = |bytes: &[u8]| bytes.first_chunk().map(|bytes| i64::from_le_bytes(*bytes));
    let Some((has_next @ (0 | 1), rest)) = record.split_first() else {
        let message = format!("sequence \"{}\" does not exist any more", sequence.name);
        return Err(SqlError::new(SqlState::SerializationFailure, message));
    };
    let next = number(rest).filter(|_| *has_next == 1);
    let last = match rest.get(8..).and_then(<[u8]>::split_first) {
        Some((1, last)) => number(last),
        Some(_) => None,
        None => next
            .filter(|next| *next != sequence.start)
            .and_then(|next| next.checked_sub(sequence.increment)),
    };
    Ok(NextValue { next, last })
}

/// Writes the next value, or that there is none, and the last one.
fn put_next(
    catalog: &Catalog,
    transaction: &Transaction,
    sequence: &Sequence,
    NextValue { next, last }: NextValue,
) -> Result<()> {
    let mut record = [0; 18];
    if let Some(next) = next {
        record[0] = 1;
        record[1..9].copy_from_slice(&next.to_le_bytes());
    }
    if let Some(last) = last {
        record[9] = 1;
        record[10..].copy_from_slice(&last.to_le_bytes());
    }
    Ok(catalog.sequences.put(transaction, &sequence.key(), &record)?)
}

/// Returns the smallest and the largest value of a type of sequences.
fn limits(data_type: DataType) -> Result<(i64, i64)> {
    Ok(match data_type {
        DataType::SmallInt => (i16::MIN.into(), i16::MAX.into()),
        DataType::Integer => (i32::MIN.into(), i32::MAX.into()),
        DataType::BigInt => (i64::MIN, i64::MAX),
        _ => {
            let message = "sequence type must be smallint, integer, or bigint";
            return Err(SqlError::new(SqlState::InvalidParameterValue, message));
        }
    })
}

/// Returns what is wrong with the first value of a sequence.
fn start_fault(start: i64, (minimum, maximum): (i64, i64)) -> Option<String> {
    if start < minimum {
        return Some(format!("START value ({start}) cannot be less than MINVALUE ({minimum})"));
    }
    let is_beyond = start > maximum;
    is_beyond.then(|| format!("START value ({start}) cannot be greater than MAXVALUE ({maximum})"))
}

impl Sequence {
    /// Gives it another type. A limit that was the old type's becomes the new type's.
    pub(super) fn set_type(&mut self, data_type: DataType) -> Result<()> {
        let ((old_low, old_high), (low, high)) = (limits(self.data_type)?, limits(data_type)?);
        if self.maximum == old_high {
            self.maximum = high;
        }
        if self.minimum == old_low {
            self.minimum = low;
        }
        for (what, value) in [("MAXVALUE", self.maximum), ("MINVALUE", self.minimum)] {
            if !(low..=high).contains(&value) {
                let message =
                    format!("{what} ({value}) is out of range for sequence data type {data_type}");
                return Err(SqlError::new(SqlState::InvalidParameterValue, message));
            }
        }
        self.data_type = data_type;
        Ok(())
    }

    /// Returns what follows when it has other options than those of a state.
    fn next_after(&self, state: SequenceState) -> NextValue {
        match state.is_called {
            true => NextValue { next: self.after(state.last), last: Some(state.last) },
            false => NextValue { next: Some(state.last), last: None },
        }
    }

    /// Returns whether a value is within its limits.
    fn holds(&self, value: i64) -> bool {
        (self.minimum..=self.maximum).contains(&value)
    }

    /// Checks that the last value is within the limits.
    fn check_last(&self, last: i64) -> Result<()> {
        if self.holds(last) {
            return Ok(());
        }
        let (what, limit) = match last > self.maximum {
            true => ("greater than MAXVALUE", self.maximum),
            false => ("less than MINVALUE", self.minimum),
        };
        let message = format!("RESTART value ({last}) cannot be {what} ({limit})");
        Err(SqlError::new(SqlState::InvalidParameterValue, message))
    }

    /// Makes the changes of ALTER SEQUENCE to the definition.
    fn change(&mut self, changes: &SequenceChanges) -> Result<()> {
        let wrong = |message: String| Err(SqlError::new(SqlState::InvalidParameterValue, message));
        if changes.increment == Some(0) {
            return wrong("INCREMENT must not be zero".into());
        }
        self.increment = changes.increment.unwrap_or(self.increment);
        self.cycle = changes.cycle.unwrap_or(self.cycle);
        if let Some(minimum) = changes.minimum.flatten() {
            self.minimum = minimum;
        }
        if let Some(maximum) = changes.maximum.flatten() {
            self.maximum = maximum;
        }
        if let Some(data_type) = changes.data_type {
            self.set_type(data_type)?;
        }
        let (low, high) = limits(self.data_type)?;
        let is_up = self.increment > 0;
        if changes.minimum == Some(None) {
            self.minimum = if is_up { 1 } else { low };
        }
        if changes.maximum == Some(None) {
            self.maximum = if is_up { high } else { -1 };
        }
        for (what, value) in [("MAXVALUE", self.maximum), ("MINVALUE", self.minimum)] {
            if !(low..=high).contains(&value) {
                return wrong(format!(
                    "{what} ({value}) is out of range for sequence data type {}",
                    self.data_type
                ));
            }
        }
        let (minimum, maximum) = (self.minimum, self.maximum);
        if minimum >= maximum {
            return wrong(format!("MINVALUE ({minimum}) must be less than MAXVALUE ({maximum})"));
        }
        self.start = changes.start.unwrap_or(self.start);
        match start_fault(self.start, (minimum, maximum)) {
            Some(message) => wrong(message),
            None => Ok(()),
        }
    }

    /// What its values are counted under.
    fn count(&self) -> (ObjectId, u32) {
        (self.id, self.epoch)
    }

    fn key(&self) -> [u8; 8] {
        let number = u64::from(self.id.0) << 32 | u64::from(self.epoch);
        number.to_be_bytes()
    }

    /// The value after that one; none at the end.
    fn after(&self, value: i64) -> Option<i64> {
        let next = value.checked_add(self.increment);
        let next = next.filter(|next| (self.minimum..=self.maximum).contains(next));
        let first = if self.increment > 0 { self.minimum } else { self.maximum };
        next.or(self.cycle.then_some(first))
    }

    #[cold]
    fn exhausted(&self) -> SqlError {
        let (end, limit) =
            if self.increment > 0 { ("maximum", self.maximum) } else { ("minimum", self.minimum) };
        SqlError::new(
            SqlState::SequenceGeneratorLimitExceeded,
            format!("nextval: reached {end} value of sequence \"{}\" ({limit})", self.name),
        )
    }
}

impl CatalogChange<'_> {
    /// Returns the numbers of the table and the column of OWNED BY.
    fn owner_of(
        &self,
        schema: &SmolStr,
        (table, column): &(SmolStr, SmolStr),
    ) -> Result<(ObjectId, u16)> {
        let table = self.table(table)?;
        if table.schema != *schema {
            let message = "sequence must be in same schema as table it is linked to";
            return Err(SqlError::new(SqlState::ObjectNotInPrerequisiteState, message));
        }
        let position = table.known_column(column)?;
        Ok((table.id, table.columns[position].id))
    }

    /// Makes a sequence of that lookup name; its number.
    pub(crate) fn define_sequence(
        &self,
        name: &str,
        options: &SequenceOptions,
        owned_by: Option<(ObjectId, u16)>,
    ) -> Result<ObjectId> {
        let wrong = |message: String| SqlError::new(SqlState::InvalidParameterValue, message);
        let data_type = options.data_type.unwrap_or(DataType::BigInt);
        let (lowest, highest) = limits(data_type)?;
        let increment = options.increment.unwrap_or(1);
        if increment == 0 {
            return Err(wrong("INCREMENT must not be zero".into()));
        }
        let up = increment > 0;
        let minimum = options.minimum.unwrap_or(if up { 1 } else { lowest });
        let maximum = options.maximum.unwrap_or(if up { highest } else { -1 });
        for (what, value) in [("MAXVALUE", maximum), ("MINVALUE", minimum)] {
            if !(lowest..=highest).contains(&value) {
                return Err(wrong(format!(
                    "{what} ({value}) is out of range for sequence data type {data_type}"
                )));
            }
        }
        if minimum >= maximum {
            return Err(wrong(format!(
                "MINVALUE ({minimum}) must be less than MAXVALUE ({maximum})"
            )));
        }
        let start = options.start.unwrap_or(if up { minimum } else { maximum });
        if let Some(message) = start_fault(start, (minimum, maximum)) {
            return Err(wrong(message));
        }
        let id = self.new_id()?;
        let (schema, name) = split_lookup_name(name);
        let sequence = Sequence {
            id,
            schema,
            name: name.into(),
            data_type,
            start,
            increment,
            minimum,
            maximum,
            cycle: options.cycle,
            owned_by,
            epoch: 0,
        };
        let first = NextValue { next: Some(start), last: None };
        put_next(self.catalog, self.transaction, &sequence, first)?;
        self.put_sequence(sequence)?;
        Ok(id)
    }

    /// Restarts a sequence at `value`. Starts a new epoch, so that the restart takes effect only if
    /// the transaction commits.
    pub(crate) fn restart(&self, sequence: &Sequence, value: i64) -> Result<()> {
        if !(sequence.minimum..=sequence.maximum).contains(&value) {
            let message = format!("RESTART value ({value}) is out of bounds");
            return Err(SqlError::new(SqlState::InvalidParameterValue, message));
        }
        let restarted = Sequence { epoch: sequence.epoch.wrapping_add(1), ..sequence.clone() };
        let first = NextValue { next: Some(value), last: None };
        put_next(self.catalog, self.transaction, &restarted, first)?;
        self.put_sequence(restarted)
    }
}
