//! Binds the constraints PRIMARY KEY, UNIQUE, CHECK and FOREIGN KEY. A column's constraint is a
//! table constraint with that column.

use smol_str::SmolStr;
use sqlparser::ast::{
    self, ConstraintReferenceMatchKind, DeferrableInitial, Ident, IndexColumn, IndexType,
    NullsDistinctOption, ReferentialAction, Spanned, TableConstraint,
};

use super::super::{Binder, fold};
use super::table_outline::{ConstraintKind, ConstraintPlace, Outline};
use crate::bind::rights::Right;
use crate::catalog::{
    ConstraintTiming, ForeignKeyAction, Method, NewCheck, NewForeignKey, NewKey, Privileges,
};
use crate::catalog::{is_temporary_schema, lookup_name, split_lookup_name};
use crate::error::{Result, SqlError, SqlState};
use crate::parse::set_columns;

/// Returns the access method of a key.
pub(super) fn method_of(index_type: Option<&IndexType>) -> Result<Method> {
    match index_type {
        None | Some(IndexType::BTree) => Ok(Method::Range),
        Some(IndexType::Hash) => Ok(Method::Hash),
        Some(IndexType::Custom(name)) => {
            let message = format!("access method \"{}\" does not exist", fold(name));
            Err(SqlError::new(SqlState::UndefinedObject, message))
        }
        Some(other) => Err(SqlError::unsupported(format!("the index method {other}"))),
    }
}

fn key_method(index_type: &Option<IndexType>, options: &[ast::IndexOption]) -> Result<Method> {
    let mut method = index_type.as_ref();
    for option in options {
        match option {
            ast::IndexOption::Using(using) => method = Some(using),
            other => return Err(SqlError::unsupported(format!("a key with {other}"))),
        }
    }
    method_of(method)
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

/// Returns when a constraint is checked.
pub(super) fn timing_of(
    characteristics: Option<&ast::ConstraintCharacteristics>,
) -> Result<ConstraintTiming> {
    let Some(characteristics) = characteristics else { return Ok(ConstraintTiming::NotDeferrable) };
    if characteristics.enforced == Some(false) {
        return Err(SqlError::unsupported("a constraint that is NOT ENFORCED"));
    }
    let is_deferred = characteristics.initially == Some(DeferrableInitial::Deferred);
    match characteristics.deferrable {
        Some(false) if is_deferred => {
            let message = "constraint declared INITIALLY DEFERRED must be DEFERRABLE";
            Err(SqlError::new(SqlState::SyntaxError, message))
        }
        _ if is_deferred => Ok(ConstraintTiming::Deferred),
        Some(true) => Ok(ConstraintTiming::Immediate),
        _ => Ok(ConstraintTiming::NotDeferrable),
    }
}

/// Refuses deferrable keys USING HASH, which PostgreSQL does not have either.
fn check_key_timing(timing: ConstraintTiming, method: Method) -> Result<()> {
    match method {
        Method::Hash if timing.is_deferrable() => {
            Err(SqlError::unsupported("a key USING HASH that is DEFERRABLE"))
        }
        _ => Ok(()),
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

/// Returns whether an operator class orders texts by their bytes, as all indexes do.
pub(super) fn is_byte_order(class: &ast::ObjectName) -> bool {
    let name = class.to_string().to_lowercase();
    let name = name.strip_prefix("pg_catalog.").unwrap_or(&name);
    matches!(name, "text_pattern_ops" | "varchar_pattern_ops" | "bpchar_pattern_ops")
}

impl Binder<'_> {
    /// Returns the column of an index. Expressions are refused.
    pub(super) fn index_column<'c>(&self, column: &'c IndexColumn) -> Result<&'c Ident> {
        let IndexColumn { column: item, operator_class } = column;
        let refuse =
            |what: String| Err(SqlError::unsupported(what).at(self.position(&item.expr) as usize));
        match &item.expr {
            _ if operator_class.as_ref().is_some_and(|class| !is_byte_order(class)) => {
                refuse("a key with an operator class".into())
            }
            ast::Expr::Identifier(name) => Ok(name),
            other => refuse(format!("a key on the expression {other}")),
        }
    }

    /// Adds constraints to the outline.
    pub(super) fn add_constraints(
        &mut self,
        written: &[TableConstraint],
        place: ConstraintPlace,
        outline: &mut Outline,
        constraints: &mut Constraints,
    ) -> Result<()> {
        for constraint in written {
            if let TableConstraint::PrimaryKey(key) = constraint {
                let position = || self.place_of_key(&key.columns, place);
                outline.take_primary_key().map_err(|error| error.at(position()))?;
            }
            let added = self.add_constraint(constraint, outline, constraints);
            added.map_err(|error| error.at(self.position(constraint) as usize))?;
        }
        Ok(())
    }

    fn add_constraint(
        &mut self,
        constraint: &TableConstraint,
        outline: &mut Outline,
        constraints: &mut Constraints,
    ) -> Result<()> {
        match constraint {
            TableConstraint::PrimaryKey(key) => {
                if key.index_name.is_some() {
                    return Err(SqlError::unsupported("this form of PRIMARY KEY"));
                }
                let timing = timing_of(key.characteristics.as_ref())?;
                let method = key_method(&key.index_type, &key.index_options)?;
                check_key_timing(timing, method)?;
                let (name, columns) = self.key(key.name.as_ref(), &key.columns, outline)?;
                let mut include = self.known_columns(outline, key.include.iter())?;
                if !timing.is_deferrable() {
                    // The rows are stored by the primary key: it includes all columns.
                    include.clear();
                }
                let key = NewKey { name, columns, method, include, timing, ..NewKey::default() };
                constraints.primary_key = Some(key);
            }
            TableConstraint::Unique(key) => {
                if key.index_name.is_some()
                    || key.index_type_display != ast::KeyOrIndexDisplay::None
                {
                    return Err(SqlError::unsupported("this form of UNIQUE"));
                }
                let timing = timing_of(key.characteristics.as_ref())?;
                let method = key_method(&key.index_type, &key.index_options)?;
                check_key_timing(timing, method)?;
                let (name, columns) = self.key(key.name.as_ref(), &key.columns, outline)?;
                let include = self.known_columns(outline, key.include.iter())?;
                let nulls_not_distinct = key.nulls_distinct == NullsDistinctOption::NotDistinct;
                let key = NewKey { name, columns, method, include, nulls_not_distinct, timing };
                constraints.uniques.push(key);
            }
            TableConstraint::Check(check) => {
                constraints.checks.push(self.new_check(check, outline)?);
            }
            TableConstraint::ForeignKey(key) => {
                constraints.foreign_keys.push(self.foreign_key(key, outline)?);
            }
            other => return Err(SqlError::unsupported(format!("the constraint {other}"))),
        }
        Ok(())
    }

    /// Name and columns of PRIMARY KEY and UNIQUE.
    fn key(
        &mut self,
        name: Option<&Ident>,
        columns: &[IndexColumn],
        outline: &mut Outline,
    ) -> Result<(Option<SmolStr>, Vec<SmolStr>)> {
        let mut names = Vec::with_capacity(columns.len());
        for column in columns {
            let name = self.index_column(column)?;
            let options = &column.column.options;
            if options.sort.is_some() || options.nulls_first.is_some() {
                let error = SqlError::unsupported("a constraint with an order of its columns");
                return Err(error.at(self.place_of(name)));
            }
            names.push(name);
        }
        let columns = self.known_columns(outline, names.into_iter())?;
        Ok((self.take_constraint(outline, name, ConstraintKind::Key)?, columns))
    }

    fn foreign_key(
        &mut self,
        key: &ast::ForeignKeyConstraint,
        outline: &mut Outline,
    ) -> Result<NewForeignKey> {
        if key.match_kind == Some(ConstraintReferenceMatchKind::Partial) {
            let message = "MATCH PARTIAL not yet implemented";
            return Err(SqlError::new(SqlState::FeatureNotSupported, message));
        }
        if key.index_name.is_some() {
            return Err(SqlError::unsupported("this form of FOREIGN KEY"));
        }
        let timing = timing_of(key.characteristics.as_ref())?;
        let columns = self.known_columns(outline, key.columns.iter())?;
        let name = self.take_constraint(outline, key.name.as_ref(), ConstraintKind::Rule)?;
        let position = self.position(&key.foreign_table) as usize;
        let own = lookup_name(&outline.schema, &outline.name);
        let is_own = outline.is_new && {
            let new = self.new_relation_name(&key.foreign_table);
            // The schema of temporary objects is searched first.
            let is_unqualified = matches!(&key.foreign_table.0[..], [_]);
            let is_found_first = is_unqualified && is_temporary_schema(&outline.schema);
            new.is_ok_and(|new| {
                new == own || is_found_first && split_lookup_name(&new).1 == outline.name
            })
        };
        let parent = match is_own {
            true => own.clone(),
            false => self.relation_name(&key.foreign_table).map_err(|error| error.at(position))?,
        };
        let referred = key.referred_columns.iter();
        let parent_columns = if parent == own {
            self.known_columns(outline, referred)?
        } else {
            let parent =
                self.defined_table(&key.foreign_table, Right::Has(Privileges::REFERENCES))?;
            if parent.materialized.is_some() {
                let message = format!("referenced relation \"{}\" is not a table", parent.name);
                return Err(SqlError::new(SqlState::WrongObjectType, message));
            }
            self.known_columns(&Outline::of(&parent), referred)?
        };
        let mut delete_columns: Vec<SmolStr> = Vec::new();
        for name in set_columns(self.text.as_str(), key.foreign_table.span().end)? {
            if !delete_columns.contains(&name) {
                delete_columns.push(name);
            }
        }
        Ok(NewForeignKey {
            name,
            columns,
            parent,
            parent_columns,
            on_delete: action_of(key.on_delete.as_ref()),
            on_update: action_of(key.on_update.as_ref()),
            not_valid: false,
            timing,
            is_full: key.match_kind == Some(ConstraintReferenceMatchKind::Full),
            delete_columns,
        })
    }
}
