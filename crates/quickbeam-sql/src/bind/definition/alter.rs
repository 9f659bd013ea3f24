//! ALTER TABLE.

use smol_str::SmolStr;
use sqlparser::ast::{self, AlterColumnOperation, AlterTableOperation, RenameTableNameKind};

use super::super::{Binder, fold, object_name};
use super::constraints::Constraints;
use super::kept::{check_of, columns_read, default_value};
use super::{CatalogChange, TableChange};
use crate::catalog::{Column, Relation};
use crate::error::{Result, SqlError};
use crate::types::Value;

impl Binder<'_> {
    /// ALTER TABLE.
    pub fn alter_table(&mut self, alter: &ast::AlterTable) -> Result<CatalogChange> {
        let name = object_name(&alter.name)?;
        let mut changes = Vec::with_capacity(alter.operations.len());
        for operation in &alter.operations {
            self.table_change(&name, operation, &mut changes)?;
        }
        Ok(CatalogChange::Alter(name, changes, alter.if_exists))
    }

    fn table_change(
        &mut self,
        table: &SmolStr,
        operation: &AlterTableOperation,
        changes: &mut Vec<TableChange>,
    ) -> Result<()> {
        let cascades = |behavior: &Option<ast::DropBehavior>| {
            matches!(behavior, Some(ast::DropBehavior::Cascade))
        };
        match operation {
            AlterTableOperation::AddColumn { column_def, if_not_exists, .. } => {
                let mut constraints = Constraints::default();
                let column = self.new_column(column_def, &mut constraints)?;
                let missing = match &column.default {
                    None => Value::Null,
                    Some(text) => {
                        let value =
                            default_value(self.names, text, column.data_type, &column.name)?;
                        if value.is_volatile() {
                            return Err(SqlError::unsupported(
                                "ADD COLUMN with a DEFAULT that differs from row to row",
                            ));
                        }
                        let frame = crate::expression::Frame::of_parameters(&[]);
                        value.evaluate(&frame)?.into_value()
                    }
                };
                changes.push(TableChange::AddColumn(column, missing, *if_not_exists));
                constraint_changes(constraints, changes);
            }
            AlterTableOperation::DropColumn { column_names, if_exists, drop_behavior, .. } => {
                let names = column_names.iter().map(fold);
                changes.extend(names.map(|name| {
                    TableChange::DropColumn(name, *if_exists, cascades(drop_behavior))
                }));
            }
            AlterTableOperation::RenameColumn { old_column_name, new_column_name } => {
                changes
                    .push(TableChange::RenameColumn(fold(old_column_name), fold(new_column_name)));
            }
            AlterTableOperation::RenameTable { table_name } => {
                let (RenameTableNameKind::As(name) | RenameTableNameKind::To(name)) = table_name;
                changes.push(TableChange::Rename(object_name(name)?));
            }
            AlterTableOperation::AddConstraint { not_valid: true, .. } => {
                return Err(SqlError::unsupported("a constraint that is NOT VALID"));
            }
            AlterTableOperation::AddConstraint { constraint, .. } => {
                let mut constraints = Constraints::default();
                constraints.add(constraint)?;
                if let (Some(check), Some(Relation::Table(table))) =
                    (constraints.checks.first_mut(), self.names.relation(table)?)
                {
                    let names: Vec<SmolStr> =
                        table.columns.iter().map(|c| c.name.clone()).collect();
                    let condition = check_of(self.names, &table, &check.expression, 0)?;
                    check.columns = columns_read(&condition, &names);
                }
                constraint_changes(constraints, changes);
            }
            AlterTableOperation::DropConstraint { name, if_exists, drop_behavior } => {
                changes.push(TableChange::DropConstraint(
                    fold(name),
                    *if_exists,
                    cascades(drop_behavior),
                ));
            }
            AlterTableOperation::AlterColumn { column_name, op } => {
                let column = fold(column_name);
                changes.push(match op {
                    AlterColumnOperation::SetNotNull => TableChange::NotNull(column, true),
                    AlterColumnOperation::DropNotNull => TableChange::NotNull(column, false),
                    AlterColumnOperation::DropDefault => TableChange::Default(column, None),
                    AlterColumnOperation::SetDefault { value } => {
                        let text = value.to_string();
                        if let Some(Relation::Table(table)) = self.names.relation(table)?
                            && let Some(known) =
                                table.columns.iter().find(|known: &&Column| known.name == column)
                        {
                            default_value(self.names, &text, known.data_type, &column)?;
                        }
                        TableChange::Default(column, Some(text.into()))
                    }
                    other => return Err(SqlError::unsupported(format!("ALTER COLUMN {other}"))),
                });
            }
            other => return Err(SqlError::unsupported(format!("ALTER TABLE … {other}"))),
        }
        Ok(())
    }
}

fn constraint_changes(constraints: Constraints, changes: &mut Vec<TableChange>) {
    changes.extend(constraints.primary_key.map(TableChange::AddPrimaryKey));
    changes.extend(constraints.uniques.into_iter().map(TableChange::AddUnique));
    changes.extend(constraints.checks.into_iter().map(TableChange::AddCheck));
    changes.extend(constraints.foreign_keys.into_iter().map(TableChange::AddForeignKey));
}
