//! CREATE, ALTER and DROP of enumerated types.

use std::sync::Arc;

use quickbeam::Transaction;

use crate::catalog::text::literal;
use crate::catalog::{Catalog, DropBehavior};
use crate::ddl::change::CatalogChange;
use crate::error::{Result, SqlError};
use crate::schema::encoding::StoredRow;
use crate::schema::{Column, EnumType};
use crate::types::encoded::enums;
use crate::types::{EncodedType, Value, ValueRef};

/// Returns a value with another label in the place of one.
fn relabelled(value: ValueRef<'_>, from: &str, to: &str) -> Result<Value> {
    match value {
        ValueRef::Encoded(encoded, bytes) if enums::label(bytes) == Some(from) => {
            let order = &bytes[..bytes.len() - from.len()];
            Ok(Value::Encoded(encoded, [order, to.as_bytes()].concat().into()))
        }
        ValueRef::Array(array) => {
            let made = array.map(array.element_type(), |value| relabelled(value, from, to));
            Ok(Value::Array(made?))
        }
        other => Ok(other.to_value()),
    }
}

/// Returns the DEFAULT of a column of an enumerated type with another label in the place of one;
/// `None` if it is not a literal of that label.
pub(crate) fn relabelled_default(column: &Column, from: &str, to: &str) -> Option<String> {
    let text = column.default.as_deref().filter(|_| column.generated.is_none())?;
    let rest = text.strip_prefix(&literal(from))?;
    let is_literal = rest.is_empty() || rest.starts_with("::") && !rest.contains('\'');
    is_literal.then(|| format!("{}{rest}", literal(to)))
}

impl Catalog {
    /// CREATE TYPE … AS ENUM.
    pub fn create_enum(&self, transaction: &Transaction, mut known: EnumType) -> Result<()> {
        let change = CatalogChange::begin(self, transaction)?;
        change.check_type_free(&known.lookup_name())?;
        known.id = change.new_id()?;
        // A column's record has three bytes for the number.
        if known.id.0 > EncodedType::MAX_LENGTH {
            return Err(SqlError::internal("no object numbers left for types"));
        }
        change.put_enum(known)
    }

    /// ALTER TYPE: gives an enumerated type its new definition.
    pub fn alter_enum(&self, transaction: &Transaction, known: EnumType) -> Result<()> {
        let change = CatalogChange::begin(self, transaction)?;
        let old = change.before.enums.get(&known.id).map(|it| it.lookup_name());
        if old.unwrap_or_default() != known.lookup_name() {
            change.check_type_free(&known.lookup_name())?;
        }
        change.put_enum(known)
    }

    /// ALTER TYPE … RENAME VALUE: gives an enumerated type its new definition. A value has its
    /// label (`types/encoded/enums.rs`), so the tables with columns of the type are written again.
    pub fn rename_label(
        &self,
        transaction: &Transaction,
        known: EnumType,
        from: &str,
        to: &str,
    ) -> Result<()> {
        let before = self.snapshot(transaction)?;
        let is_it = |column: &Column| before.is_enum(column.data_type, known.id);
        for table in before.tables().filter(|table| table.columns.iter().any(is_it)) {
            let change = CatalogChange::begin(self, transaction)?;
            let mut new = (**table).clone();
            for column in new.columns.iter_mut().filter(|column| is_it(column)) {
                column.missing = Value::Null;
                if let Some(default) = relabelled_default(column, from, to) {
                    column.default = Some(default.into());
                }
            }
            change.rewrite(table, &mut new, &mut |row: StoredRow<'_>| {
                let value = |(at, column): (usize, &Column)| match is_it(column) {
                    true => relabelled(row.get(at)?, from, to),
                    false => Ok(row.get(at)?.to_value()),
                };
                table.columns.iter().enumerate().map(value).collect()
            })?;
            change.put_table(&new)?;
        }
        // A record of a table has values as texts, which are read under the new definition from
        // now on.
        CatalogChange::begin(self, transaction)?.put_enum(known)
    }

    /// DROP TYPE. With CASCADE, columns, functions, attributes and domains of the types go, too.
    pub fn drop_enums(
        &self,
        transaction: &Transaction,
        enums: &[Arc<EnumType>],
        behavior: DropBehavior,
    ) -> Result<()> {
        for known in enums {
            let snapshot = self.snapshot(transaction)?;
            let is_it = |data_type| snapshot.is_enum(data_type, known.id);
            let what = format!("type {}", known.name);
            self.drop_uses(transaction, &what, &is_it, (behavior, &[]))?;
        }
        let change = CatalogChange::begin(self, transaction)?;
        enums.iter().try_for_each(|known| change.remove(known.id))
    }
}
