//! CREATE TABLE, and the definition of a column.

use smol_str::SmolStr;
use sqlparser::ast::{self, ColumnOption, GeneratedAs, Spanned};

use super::super::{Binder, OutputColumn, fold, object_name, types};
use super::CatalogChange;
use super::constraints::{Constraints, key_method};
use super::kept::{default_value, new_check};
use super::sequences::sequence_options;
use crate::catalog::{NewColumn, NewIdentity, NewKey, NewTable, SequenceOptions};
use crate::error::{Result, SqlError};

/// The table that CREATE TABLE … AS makes.
pub fn table_for(
    name: SmolStr,
    columns: &[OutputColumn],
    if_not_exists: bool,
) -> Result<CatalogChange> {
    let columns = columns.iter().map(|column| NewColumn {
        name: column.name.clone(),
        data_type: column.data_type,
        not_null: false,
        default: None,
        identity: None,
    });
    let table = NewTable { name, columns: columns.collect(), ..NewTable::default() };
    Ok(CatalogChange::CreateTable(table, if_not_exists))
}

impl Binder<'_> {
    /// CREATE TABLE without a query.
    pub fn create_table(&mut self, create: &ast::CreateTable) -> Result<CatalogChange> {
        if create.temporary || create.external || create.or_replace || create.like.is_some() {
            return Err(SqlError::unsupported("this form of CREATE TABLE"));
        }
        let name = object_name(&create.name)?;
        let mut constraints = Constraints::default();
        let mut columns = Vec::with_capacity(create.columns.len());
        for column in &create.columns {
            columns.push(self.new_column(column, &mut constraints)?);
        }
        for constraint in &create.constraints {
            constraints.add(constraint).map_err(|error| {
                error.at(self.place_of_key(self.span_start(constraint.span()), true))
            })?;
        }
        self.bind_checks(&name, &columns, &mut constraints.checks)?;
        let Constraints { primary_key, uniques, checks, foreign_keys } = constraints;
        let table = NewTable { name, columns, primary_key, uniques, checks, foreign_keys };
        Ok(CatalogChange::CreateTable(table, create.if_not_exists))
    }

    pub(super) fn new_column(
        &mut self,
        column: &ast::ColumnDef,
        constraints: &mut Constraints,
    ) -> Result<NewColumn> {
        let name = fold(&column.name);
        let data_type = types::data_type(&column.data_type).map_err(|error| {
            let behind = crate::parse::offset_of(self.text, column.name.span.end);
            error.at(self.place_of_type(&column.data_type, behind))
        })?;
        if types::digits_of_second(&column.data_type).is_some() {
            let what = format!("a column of type {}", column.data_type);
            let position = self.place_of(&column.name);
            return Err(SqlError::unsupported(what).at(position));
        }
        let mut new = NewColumn {
            name: name.clone(),
            data_type,
            not_null: false,
            default: None,
            identity: None,
        };
        if types::is_serial(&column.data_type) {
            let options =
                SequenceOptions { data_type: Some(data_type), ..SequenceOptions::default() };
            new.identity = Some(NewIdentity { always: false, options });
            new.not_null = true;
        }
        for option in &column.options {
            let constraint_name = option.name.as_ref().map(fold);
            let columns = vec![name.clone()];
            match &option.option {
                ColumnOption::Null => {}
                ColumnOption::NotNull => new.not_null = true,
                ColumnOption::Default(expr) => {
                    let text = expr.to_string();
                    default_value(self.names, &text, data_type, &name)?;
                    new.default = Some(text.into());
                }
                ColumnOption::PrimaryKey(key) => {
                    let method = key_method(&key.index_type, &key.index_options)?;
                    let key = NewKey { name: constraint_name, columns, method };
                    let behind = column.name.span;
                    constraints.set_primary_key(key).map_err(|error| {
                        error.at(self.place_of_key(self.span_start(behind), false))
                    })?;
                    new.not_null = true;
                }
                ColumnOption::Unique(key) => {
                    let method = key_method(&key.index_type, &key.index_options)?;
                    constraints.uniques.push(NewKey { name: constraint_name, columns, method });
                }
                ColumnOption::Check(check) => {
                    let name = constraint_name.or_else(|| check.name.as_ref().map(fold));
                    constraints.checks.push(new_check(name, &check.expr));
                }
                ColumnOption::ForeignKey(key) => {
                    constraints.foreign_key(key, columns)?;
                    if let (Some(last), Some(name)) =
                        (constraints.foreign_keys.last_mut(), constraint_name)
                    {
                        last.name = Some(name);
                    }
                }
                ColumnOption::Generated {
                    generated_as,
                    sequence_options: list,
                    generation_expr: None,
                    ..
                } => {
                    let always = matches!(generated_as, GeneratedAs::Always);
                    let options =
                        sequence_options(list.as_deref().unwrap_or_default(), Some(data_type))?;
                    new.identity = Some(NewIdentity { always, options });
                    new.not_null = true;
                }
                other => return Err(SqlError::unsupported(format!("the column option {other}"))),
            }
        }
        Ok(new)
    }

    /// Where the words PRIMARY KEY stand: behind a column's name, or before the first column of a constraint that has no name.
    fn place_of_key(&self, near: u32, before: bool) -> usize {
        let near = near as usize;
        let lower = self.text.to_ascii_lowercase();
        let found = if before {
            lower.get(..near).and_then(|text| {
                let word = text.trim_end_matches([' ', '(', '\n', '\t']);
                word.ends_with("key").then(|| word.rfind("primary")).flatten()
            })
        } else {
            lower.get(near..).and_then(|text| text.find("primary")).map(|at| near + at)
        };
        found.unwrap_or(near)
    }
}
