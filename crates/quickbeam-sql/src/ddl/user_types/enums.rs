//! CREATE, ALTER and DROP of enumerated types.

use std::sync::Arc;

use quickbeam::Transaction;

use crate::catalog::{Catalog, DropBehavior};
use crate::ddl::change::CatalogChange;
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
