//! Constraints: PRIMARY KEY, UNIQUE, CHECK and FOREIGN KEY, of a column and of a table.

use smol_str::SmolStr;
use sqlparser::ast::{self, IndexColumn, IndexType, ReferentialAction, TableConstraint};

use super::super::{fold, object_name};
use super::kept::new_check;
use crate::catalog::{ForeignKeyAction, Method, NewCheck, NewForeignKey, NewKey};
use crate::error::{Result, SqlError, SqlState};

pub(super) fn method_of(index_type: Option<&IndexType>) -> Result<Method> {
    match index_type {
        None | Some(IndexType::BTree) => Ok(Method::Range),
        Some(IndexType::Hash) => Ok(Method::Hash),
        Some(other) => Err(SqlError::unsupported(format!("the index method {other}"))),
    }
}

fn action_of(action: Option<&ReferentialAction>) -> ForeignKeyAction {
    match action {
        None | Some(ReferentialAction::NoAction) => ForeignKeyAction::NoAction,
        Some(ReferentialAction::Restrict) => ForeignKeyAction::Restrict,
        Some(ReferentialAction::Cascade) => ForeignKeyAction::Cascade,
        Some(ReferentialAction::SetNull) => ForeignKeyAction::SetNull,
        Some(ReferentialAction::SetDefault) => ForeignKeyAction::SetDefault,
    }
}

pub(super) fn plain_column(column: &IndexColumn) -> Result<SmolStr> {
    match &column.column.expr {
        ast::Expr::Identifier(ident) => Ok(fold(ident)),
        other => Err(SqlError::unsupported(format!("a key on the expression {other}"))),
    }
}

/// Constraints as they are collected from columns and from the table.
#[derive(Default)]
pub(super) struct Constraints {
    pub primary_key: Option<NewKey>,
    pub uniques: Vec<NewKey>,
    pub checks: Vec<NewCheck>,
    pub foreign_keys: Vec<NewForeignKey>,
}

impl Constraints {
    pub fn set_primary_key(&mut self, key: NewKey) -> Result<()> {
        if self.primary_key.is_some() {
            let message = "multiple primary keys for a table are not allowed";
            return Err(SqlError::new(SqlState::InvalidTableDefinition, message));
        }
        self.primary_key = Some(key);
        Ok(())
    }

    pub fn add(&mut self, constraint: &TableConstraint) -> Result<()> {
        match constraint {
            TableConstraint::PrimaryKey(key) => {
                let columns = key.columns.iter().map(plain_column).collect::<Result<_>>()?;
                let name = key.name.as_ref().map(fold);
                self.set_primary_key(NewKey {
                    name,
                    columns,
                    method: key_method(&key.index_type, &key.index_options)?,
                })
            }
            TableConstraint::Unique(key) => {
                let columns = key.columns.iter().map(plain_column).collect::<Result<_>>()?;
                let name = key.name.as_ref().map(fold);
                let method = key_method(&key.index_type, &key.index_options)?;
                self.uniques.push(NewKey { name, columns, method });
                Ok(())
            }
            TableConstraint::Check(check) => {
                self.checks.push(new_check(check.name.as_ref().map(fold), &check.expr));
                Ok(())
            }
            TableConstraint::ForeignKey(key) => {
                self.foreign_key(key, key.columns.iter().map(fold).collect())
            }
            other => Err(SqlError::unsupported(format!("the constraint {other}"))),
        }
    }

    pub fn foreign_key(
        &mut self,
        key: &ast::ForeignKeyConstraint,
        columns: Vec<SmolStr>,
    ) -> Result<()> {
        self.foreign_keys.push(NewForeignKey {
            name: key.name.as_ref().map(fold),
            columns,
            parent: object_name(&key.foreign_table)?,
            parent_columns: key.referred_columns.iter().map(fold).collect(),
            on_delete: action_of(key.on_delete.as_ref()),
            on_update: action_of(key.on_update.as_ref()),
        });
        Ok(())
    }
}

pub(super) fn key_method(
    index_type: &Option<IndexType>,
    options: &[ast::IndexOption],
) -> Result<Method> {
    let using = options.iter().find_map(|option| match option {
        ast::IndexOption::Using(method) => Some(method),
        ast::IndexOption::Comment(_) => None,
    });
    method_of(using.or(index_type.as_ref()))
}
