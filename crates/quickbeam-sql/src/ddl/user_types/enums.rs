//! CREATE, ALTER and DROP of enumerated types.

use std::sync::Arc;

use quickbeam::Transaction;

use crate::catalog::{Catalog, DropBehavior};
use crate::ddl::change::CatalogChange;
use crate::ddl::depended;
use crate::error::{Result, SqlError};
use crate::schema::EnumType;
use crate::types::EncodedType;

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

    /// DROP TYPE. With CASCADE, columns, functions and domains of the types go, too.
    pub fn drop_enums(
        &self,
        transaction: &Transaction,
        enums: &[Arc<EnumType>],
        behavior: DropBehavior,
    ) -> Result<()> {
        for known in enums {
            self.drop_uses_of(transaction, known, behavior)?;
        }
        let change = CatalogChange::begin(self, transaction)?;
        enums.iter().try_for_each(|known| change.remove(known.id))
    }

    fn drop_uses_of(
        &self,
        transaction: &Transaction,
        known: &EnumType,
        behavior: DropBehavior,
    ) -> Result<()> {
        let what = format!("type {}", known.name);
        let check = |by: String| match behavior {
            DropBehavior::Restrict => Err(depended(&what, &by)),
            DropBehavior::Cascade => Ok(()),
        };
        let snapshot = self.snapshot(transaction)?;
        let is_it = |data_type| snapshot.is_enum(data_type, known.id);
        let columns: Vec<_> = snapshot.columns_of_enum(known.id).collect();
        if let Some((table, column)) = columns.first() {
            check(format!("column {} of table {}", column.name, table.name))?;
        }
        let domains: Vec<_> =
            snapshot.domains().filter(|it| is_it(it.data_type)).cloned().collect();
        if let Some(domain) = domains.first() {
            check(format!("type {}", domain.name))?;
        }
        let routines: Vec<_> =
            snapshot.routines().filter(|it| it.has_type(&is_it)).cloned().collect();
        if let Some(routine) = routines.first() {
            check(format!("{} {}", routine.word(), routine.signature()))?;
        }
        if !routines.is_empty() {
            self.drop_routines(transaction, &routines, behavior)?;
        }
        for (table, column) in columns {
            self.drop_column(transaction, &table.lookup_name(), &column.name, behavior)?;
        }
        match domains.is_empty() {
            true => Ok(()),
            false => self.drop_domains(transaction, &domains, behavior),
        }
    }
}
