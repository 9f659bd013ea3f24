//! CREATE and ALTER VIEW.

use smol_str::SmolStr;
use sqlparser::ast::{self, AlterColumnOperation, AlterTableOperation, Spanned, SqlOption};
use sqlparser::tokenizer::Token;

use super::storage_parameters::check_parameters;
use super::table::table_for;
use super::table_outline::{OnExisting, OnMissing, Outline, Persistence};
use super::{CatalogChange, ObjectKind};
use crate::bind::dml::target::reason_not_updatable;
use crate::bind::records::whole_rows::refuse_records;
use crate::bind::{
    Binder, DerivedKind, OutputColumn, Query, SlotShape, Source, check_derived, fold,
};
use crate::catalog::describe::quoted_if_needed;
use crate::catalog::{
    NewMaterialized, NewTable, NewView, OnCommit, Relation, View, ViewChange, ViewOptions,
    is_temporary_schema,
};
use crate::error::{Result, SqlError, SqlState};
use crate::parse::{NO_DATA, RESET_OPTION, RefreshStatement, first_from};
use crate::schema::errors::{no_column, no_relation};

/// Returns the options that a statement sets.
fn options_of(written: &ast::CreateTableOptions) -> Result<ViewOptions> {
    let mut options = ViewOptions::default();
    let list = match written {
        ast::CreateTableOptions::None => return Ok(options),
        ast::CreateTableOptions::With(list) => list,
        _ => return Err(SqlError::unsupported("this form of CREATE VIEW")),
    };
    for option in list {
        let (name, value) = option_of(option)?;
        if options.pairs().any(|(known, _)| known == name) {
            let message = format!("parameter \"{name}\" specified more than once");
            return Err(SqlError::new(SqlState::InvalidParameterValue, message));
        }
        options.set(&name, &value)?;
    }
    Ok(options)
}

/// Returns name and value of an option.
fn option_of(option: &SqlOption) -> Result<(SmolStr, String)> {
    match option {
        SqlOption::KeyValue { key, value: ast::Expr::Value(value) } => {
            let value = value.value.clone().into_string();
            Ok((fold(key), value.unwrap_or_default()))
        }
        other => Err(SqlError::unsupported(format!("the view option {other}"))),
    }
}

/// Refuses WITH CHECK OPTION on a view that cannot be changed.
fn check_option_allowed(written: &ast::Query, bound: &Query) -> Result<()> {
    let Some(reason) = reason_not_updatable(written, bound) else { return Ok(()) };
    let message = "WITH CHECK OPTION is supported only on automatically updatable views";
    Err(SqlError::new(SqlState::FeatureNotSupported, message)
        .with_hint(format!("{reason} are not automatically updatable.")))
}

/// Refuses clauses that the parser accepts and that would have no effect here.
fn check_create_view(create: &ast::CreateView) -> Result<()> {
    let plain = ast::CreateView {
        or_alter: false,
        or_replace: create.or_replace,
        materialized: false,
        secure: false,
        name: create.name.clone(),
        name_before_not_exists: false,
        columns: create.columns.clone(),
        query: create.query.clone(),
        options: create.options.clone(),
        cluster_by: Vec::new(),
        comment: None,
        with_no_schema_binding: false,
        if_not_exists: false,
        temporary: create.temporary,
        copy_grants: false,
        to: None,
        params: None,
    };
    let is_more =
        |column: &ast::ViewColumnDef| column.data_type.is_some() || column.options.is_some();
    if *create != plain || create.columns.iter().any(is_more) {
        return Err(SqlError::unsupported("this form of CREATE VIEW"));
    }
    Ok(())
}

impl Binder<'_> {
    /// CREATE VIEW.
    pub fn create_view(&mut self, create: &ast::CreateView) -> Result<CatalogChange> {
        let name = self.view_name(create)?;
        let options = options_of(&create.options)?;
        let message = "CREATE VIEW specifies more column names than columns";
        let (query, columns) = self.view_query(create, &name, message)?;
        let columns: Vec<SmolStr> = columns.into_iter().map(|column| column.name).collect();
        self.check_replaced(&name, &columns, &query)?;
        let name = match !create.temporary && self.reads_temporary() {
            true => self.new_relation_of(Persistence::Temporary, &create.name, OnExisting::Fail)?.0,
            false => name,
        };
        let text = self.expanded(&create.query)?.into();
        if options.check_option().is_some() {
            check_option_allowed(&create.query, &query)?;
        }
        let view = NewView { name, columns, query: text, options, replace: create.or_replace };
        Ok(CatalogChange::CreateView(view))
    }

    /// Refuses to replace a view by one that lacks its columns, or has others in their places.
    fn check_replaced(&self, name: &str, columns: &[SmolStr], query: &Query) -> Result<()> {
        let Some(Relation::View(old)) = self.names.relation(name)? else { return Ok(()) };
        let wrong = |message: String| SqlError::new(SqlState::InvalidTableDefinition, message);
        if columns.len() < old.columns.len() {
            return Err(wrong("cannot drop columns from view".to_owned()));
        }
        // What the old view reads is none of what the new one depends on.
        let known = Binder::new(self.names, "").view(&old)?.columns;
        let pairs = old.columns.iter().zip(columns);
        for ((before, after), (known, new)) in pairs.zip(known.iter().zip(&query.columns)) {
            if before != after {
                let message =
                    format!("cannot change name of view column \"{before}\" to \"{after}\"");
                return Err(wrong(message).with_hint(
                    "Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead.",
                ));
            }
            let (from, to) = (known.data_type, new.data_type);
            if from != to {
                return Err(wrong(format!(
                    "cannot change data type of view column \"{before}\" from {from} to {to}"
                )));
            }
        }
        Ok(())
    }

    /// Binds the query of a new view. Returns its columns with their names. `excess` is the message
    /// of more names than columns.
    fn view_query(
        &mut self,
        create: &ast::CreateView,
        name: &str,
        excess: &str,
    ) -> Result<(Query, Vec<OutputColumn>)> {
        let query = self.query(&create.query, None)?;
        refuse_records(&query.columns)?;
        self.check_literals()?;
        if !self.parameters.is_empty() {
            let (state, message) = match create.materialized {
                true => {
                    let message = "materialized views may not be defined using bound parameters";
                    (SqlState::FeatureNotSupported, message)
                }
                false => (SqlState::UndefinedParameter, "a view may not have parameters"),
            };
            let is_parameter = |token: &Token| matches!(token, Token::Placeholder(_));
            let position = first_from(self.text.as_str(), create.query.span().start, is_parameter);
            return Err(SqlError::new(state, message).at(position.unwrap_or_default()));
        }
        if let Some(column) = create.columns.get(query.columns.len()) {
            let error = SqlError::new(SqlState::SyntaxError, excess);
            return Err(match create.materialized {
                true => error,
                false => error.at(self.place_of(&column.name)),
            });
        }
        let mut outline = Outline::new(name);
        let mut given = Vec::with_capacity(create.columns.len());
        for (column, output) in create.columns.iter().zip(&query.columns) {
            given.push(self.take_column(&mut outline, &column.name, output.data_type)?);
        }
        let columns = self.columns_for(&query, &given);
        let kind = if create.materialized { DerivedKind::Table } else { DerivedKind::View };
        check_derived(&columns, kind)?;
        Ok((query, columns))
    }

    /// Whether the statement reads a temporary table.
    fn reads_temporary(&self) -> bool {
        self.slots.iter().any(|shape: &SlotShape| {
            matches!(&shape.source, Source::Table(table) if is_temporary_schema(&table.schema))
        })
    }

    /// CREATE MATERIALIZED VIEW. Under IF NOT EXISTS and with a name that is taken, there is no
    /// materialized view in the result.
    pub fn create_materialized(&mut self, create: &ast::CreateView) -> Result<CatalogChange> {
        let written = match &create.options {
            ast::CreateTableOptions::None => &[][..],
            ast::CreateTableOptions::With(list) => list,
            _ => return Err(SqlError::unsupported("this form of CREATE MATERIALIZED VIEW")),
        };
        let is_marker = |option: &&SqlOption| matches!(option, SqlOption::KeyValue { key, .. } if key.value == NO_DATA);
        let is_populated = !written.iter().any(|option| is_marker(&option));
        let options: Vec<SqlOption> = written.iter().filter(|it| !is_marker(it)).cloned().collect();
        check_parameters(&options)?;
        let options = ast::CreateTableOptions::None;
        let plain = ast::CreateView {
            materialized: false,
            if_not_exists: false,
            options,
            ..create.clone()
        };
        check_create_view(&plain)?;
        if create.temporary || create.or_replace {
            return Err(SqlError::new(
                SqlState::SyntaxError,
                "syntax error at or near \"MATERIALIZED\"",
            ));
        }
        let existing = OnExisting::from(create.if_not_exists);
        let (name, is_there) = self.new_relation(&create.name, existing)?;
        if is_there {
            let table = Box::new(NewTable { name, ..NewTable::default() });
            return Ok(CatalogChange::CreateTable(table, true));
        }
        let (_, columns) =
            self.view_query(create, &name, "too many column names were specified")?;
        if self.reads_temporary() {
            let message = "materialized views must not use temporary tables or views";
            return Err(SqlError::new(SqlState::FeatureNotSupported, message));
        }
        let query = self.expanded(&create.query)?.into();
        let mut change = table_for(name, &columns, existing, OnCommit::Preserve);
        if let CatalogChange::CreateTable(table, _) = &mut change {
            table.materialized = Some(NewMaterialized { query, is_populated });
        }
        Ok(change)
    }

    /// REFRESH MATERIALIZED VIEW: the lookup name.
    pub fn refreshed(&self, statement: &RefreshStatement) -> Result<SmolStr> {
        let (schema, name) = &statement.name;
        let lookup = self.lookup(schema.as_deref(), name)?;
        let table = match self.names.relation(&lookup)? {
            None => return Err(no_relation(&lookup)),
            Some(Relation::Table(table)) if table.materialized.is_some() => table,
            Some(_) => {
                let message = format!("\"{name}\" is not a materialized view");
                return Err(SqlError::new(SqlState::FeatureNotSupported, message));
            }
        };
        self.check_owner(&Relation::Table(table.clone()), name)?;
        if !statement.concurrently {
            return Ok(lookup);
        }
        let state = SqlState::FeatureNotSupported;
        if table.is_unpopulated() {
            let message = "CONCURRENTLY cannot be used when the materialized view is not populated";
            return Err(SqlError::new(state, message));
        }
        if !statement.with_data {
            let message = "CONCURRENTLY and WITH NO DATA options cannot be used together";
            return Err(SqlError::new(SqlState::SyntaxError, message));
        }
        if !table.indexes.iter().any(|index| index.unique && !index.is_computed()) {
            let shown = format!("{}.{}", quoted_if_needed(&table.schema), quoted_if_needed(name));
            let message = format!("cannot refresh materialized view \"{shown}\" concurrently");
            let hint = "Create a unique index with no WHERE clause on one or more columns of the materialized view.";
            let state = SqlState::ObjectNotInPrerequisiteState;
            return Err(SqlError::new(state, message).with_hint(hint));
        }
        Ok(lookup)
    }

    /// The name of a new view, or of the one that it replaces.
    fn view_name(&self, create: &ast::CreateView) -> Result<SmolStr> {
        check_create_view(create)?;
        if create.or_replace
            && let Ok(name) = match create.temporary {
                true => self.temporary_name(&create.name),
                false => self.new_relation_name(&create.name),
            }
            && let Some(Relation::View(_)) = self.names.relation(&name)?
        {
            return Ok(name);
        }
        let persistence = Persistence::from(create.temporary);
        Ok(self.new_relation_of(persistence, &create.name, OnExisting::Fail)?.0)
    }

    /// ALTER VIEW.
    pub(super) fn alter_view(&mut self, alter: &ast::AlterTable) -> Result<CatalogChange> {
        let name = self.relation_name(&alter.name)?;
        let place = self.position(&alter.name) as usize;
        let found = self.names.relation(&name)?;
        let Some(found) = found else {
            if alter.if_exists {
                return Ok(CatalogChange::AlterView(name, Vec::new(), true));
            }
            return Err(no_relation(&name).at(place));
        };
        let mut words = self.text.as_str().split_whitespace().skip(1);
        if words.next().is_some_and(|word| word.eq_ignore_ascii_case("MATERIALIZED")) {
            self.known_object(ObjectKind::MaterializedView, &alter.name, OnMissing::Fail)?;
            let alter = ast::AlterTable { table_type: None, ..alter.clone() };
            return self.alter_table(&alter);
        }
        self.known_object(ObjectKind::View, &alter.name, OnMissing::Fail)?;
        let Relation::View(view) = found else {
            return Err(SqlError::internal("a view that is none"));
        };
        let mut changes = Vec::with_capacity(alter.operations.len());
        for operation in &alter.operations {
            changes.push(self.view_change(&view, operation)?);
        }
        Ok(CatalogChange::AlterView(name, changes, alter.if_exists))
    }

    fn view_change(&mut self, view: &View, operation: &AlterTableOperation) -> Result<ViewChange> {
        match operation {
            AlterTableOperation::SetOptionsParens { options: list } => {
                let mut options = view.options.clone();
                for option in list {
                    let (name, value) = option_of(option)?;
                    match value == RESET_OPTION {
                        true => options.reset(&name),
                        false => options.set(&name, &value)?,
                    }
                }
                if options.check_option().is_some() {
                    let query = self.view(view)?;
                    check_option_allowed(&*crate::parse::query(&view.query)?, &query)?;
                }
                Ok(ViewChange::Options(options))
            }
            AlterTableOperation::AlterColumn { column_name, op } => {
                let query = self.view(view)?;
                let name = fold(column_name);
                let at = view.columns.iter().position(|known| *known == name);
                let (Some(at), Some(column)) = (at, at.and_then(|at| query.columns.get(at))) else {
                    return Err(no_column(&view.name, &name).at(self.place_of(column_name)));
                };
                let text = match op {
                    AlterColumnOperation::SetDefault { value } => {
                        Some(self.new_default(value, column.data_type, &name)?.0)
                    }
                    AlterColumnOperation::DropDefault => None,
                    other => {
                        return Err(SqlError::unsupported(format!("ALTER VIEW … {other}")));
                    }
                };
                Ok(ViewChange::Default(u16::try_from(at).unwrap_or(u16::MAX), text))
            }
            other => Err(SqlError::unsupported(format!("ALTER VIEW … {other}"))),
        }
    }
}
