//! System columns of tables: `tableoid`, `ctid` and `xmax`.
//!
//! `ctid` is the key of the row: its primary key, or its row id in a table without one. `xmax` is
//! 0, but in RETURNING of INSERT … ON CONFLICT DO UPDATE, where it is the number of the transaction
//! if the row was there. The engine forgets the writer of a version, so there are no `xmin`, `cmin`
//! and `cmax`.

use smol_str::SmolStr;

use crate::bind::{Binder, Scope, ScopeRelation, Source, Typed};
use crate::catalog::Table;
use crate::catalog::system::object_oid;
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{ColumnRef, Expr, Function, ROW_CTID, TextPosition, overloads};
use crate::types::{DataType, EncodedKind, SystemType, Value};

/// The type `xid`.
const XID: DataType = DataType::System(SystemType::Xid);

/// A system column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::bind) enum SystemColumn {
    TableOid,
    Ctid,
    Xmax,
    Xmin,
    Cmin,
    Cmax,
}

impl SystemColumn {
    /// Returns the system column of that name.
    pub fn named(name: &str) -> Option<SystemColumn> {
        Some(match name {
            "tableoid" => SystemColumn::TableOid,
            "ctid" => SystemColumn::Ctid,
            "xmax" => SystemColumn::Xmax,
            "xmin" => SystemColumn::Xmin,
            "cmin" => SystemColumn::Cmin,
            "cmax" => SystemColumn::Cmax,
            _ => return None,
        })
    }

    fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

impl Binder<'_> {
    /// Binds a system column of the item of FROM of that name, or of the only one. Returns `None`
    /// if the item has none.
    pub(super) fn system_column(
        &mut self,
        kind: SystemColumn,
        relation: Option<&SmolStr>,
        scope: &Scope,
        position: u32,
    ) -> Result<Option<Typed>> {
        let mut around = Some(scope);
        while let Some(here) = around {
            let mut of = here.relations.iter().filter(|it| match relation {
                None => !it.is_second_name && self.has_system_columns(it),
                Some(name) => *name == it.name,
            });
            if let Some(found) = of.next() {
                if of.next().is_some() {
                    return Err(ambiguous(kind).at(position as usize));
                }
                return self.column_of_system(kind, found, position);
            }
            around = here.outer.as_deref();
        }
        Ok(None)
    }

    fn has_system_columns(&self, relation: &ScopeRelation) -> bool {
        let first = relation.columns.first().filter(|column| column.stored.is_none());
        let Some(slot) = first.map(|column| column.at.slot) else { return false };
        match self.slots.get(slot).map(|shape| &shape.source) {
            Some(Source::Table(table)) => !table.is_database(),
            // The row of a definition.
            None => true,
            _ => self.catalog_slots.iter().any(|(known, _)| *known == slot),
        }
    }

    fn column_of_system(
        &mut self,
        kind: SystemColumn,
        relation: &ScopeRelation,
        position: u32,
    ) -> Result<Option<Typed>> {
        let Some(first) = relation.columns.first() else { return Ok(None) };
        let slot = first.at.slot;
        let table = match self.slots.get(slot).map(|shape| &shape.source) {
            Some(Source::Table(table)) if !table.is_database() => table.clone(),
            None => return Err(in_definition(kind).at(position as usize)),
            _ => {
                let known = self.catalog_slots.iter().find(|(known, _)| *known == slot);
                let Some((_, oid)) = known.filter(|_| kind == SystemColumn::TableOid) else {
                    return Ok(None);
                };
                let present = Expr::Column(first.at);
                return Ok(Some(of_present(relation, present, oid_value(*oid)?, position)));
            }
        };
        self.reads_system_columns = true;
        let id = ColumnRef { slot, column: table.columns.len() };
        self.check_column(id).map_err(|error| error.at(position as usize))?;
        let value = match kind {
            SystemColumn::Ctid => {
                let ctid = overloads(ROW_CTID).first().map(|builtin| Function(builtin));
                let ctid = ctid.ok_or_else(|| SqlError::internal("no function of ctid"))?;
                let key = self.row_key(&table, slot);
                let call = Expr::Call(ctid, key, TextPosition(position));
                return Ok(Some(Typed::new(call, EncodedKind::Tid.data_type(), position)));
            }
            SystemColumn::TableOid => oid_value(object_oid(table.id))?,
            SystemColumn::Xmax if self.returned_row == Some(slot) => {
                let known = self.xmax_slot;
                let of_row =
                    known.unwrap_or_else(|| self.add_slot("xmax".into(), Source::Computed));
                self.xmax_slot = Some(of_row);
                return Ok(Some(Typed::new(Expr::column(of_row, 0), XID, position)));
            }
            SystemColumn::Xmax => (Value::Oid(0), XID),
            SystemColumn::Xmin | SystemColumn::Cmin | SystemColumn::Cmax => {
                let what = "the system columns xmin, cmin and cmax";
                return Err(SqlError::unsupported(what).at(position as usize));
            }
        };
        let present = match table.columns.iter().position(|column| column.not_null) {
            Some(column) => Expr::column(slot, column),
            None if relation.is_nullable => {
                self.reads_row_ids = true;
                Expr::Column(id)
            }
            None => Expr::Constant(Value::Boolean(true)),
        };
        Ok(Some(of_present(relation, present, value, position)))
    }

    /// Returns the key of the row in a slot.
    fn row_key(&mut self, table: &Table, slot: usize) -> Vec<Expr> {
        match &table.primary_key {
            Some(key) => key.columns.iter().map(|column| Expr::column(slot, *column)).collect(),
            None => {
                self.reads_row_ids = true;
                vec![Expr::column(slot, table.columns.len())]
            }
        }
    }
}

fn oid_value(oid: i64) -> Result<(Value, DataType)> {
    let oid = u32::try_from(oid).map_err(|_| SqlError::internal("an OID out of range"))?;
    Ok((Value::Oid(oid), DataType::OID))
}

/// Returns a value that is NULL where an outer join has no row.
fn of_present(
    relation: &ScopeRelation,
    present: Expr,
    (value, data_type): (Value, DataType),
    position: u32,
) -> Typed {
    let value = Expr::Constant(value);
    if !relation.is_nullable {
        return Typed::new(value, data_type, position);
    }
    let is_missing = Expr::IsNull(Box::new(present), false);
    let value = Expr::Case(vec![(is_missing, Expr::Constant(Value::Null))], Box::new(value));
    Typed::new(value, data_type, position)
}

#[cold]
fn in_definition(kind: SystemColumn) -> SqlError {
    let message = format!("system column \"{}\" reference in a definition is invalid", kind.name());
    SqlError::new(SqlState::InvalidColumnReference, message)
}

#[cold]
fn ambiguous(kind: SystemColumn) -> SqlError {
    let message = format!("column reference \"{}\" is ambiguous", kind.name());
    SqlError::new(SqlState::AmbiguousColumn, message)
}
