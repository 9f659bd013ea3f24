//! CREATE TABLE, and the definition of a column.

use std::cell::Cell;

use smol_str::SmolStr;
use sqlparser::ast::helpers::stmt_create_table::CreateTableBuilder;
use sqlparser::ast::{self, ColumnOption, GeneratedAs, TableConstraint};
use sqlparser::tokenizer::Token;

use super::super::{Binder, Derivation, OutputColumn, types};
use super::CatalogChange;
use super::constraints::Constraints;
use super::storage_parameters::check_table_parameters;
use super::stored_expressions::inherited_default;
use super::table_outline::{ConstraintPlace, Outline};
use crate::bind::ddl::table_outline::{OnExisting, Persistence};
use crate::catalog::{NewColumn, NewIdentity, NewTable, OnCommit, SequenceOptions};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::Expr;
use crate::parse::{first_from, is_nulls_not_distinct, is_untyped, is_word, like_clause};

/// The table that CREATE TABLE … AS makes.
pub fn table_for(
    name: SmolStr,
    columns: &[OutputColumn],
    existing: OnExisting,
    on_commit: OnCommit,
) -> CatalogChange {
    let columns = columns.iter().map(OutputColumn::to_new_column).collect();
    let table = NewTable { name, columns, on_commit, ..NewTable::default() };
    CatalogChange::CreateTable(Box::new(table), existing == OnExisting::Skip)
}

impl OutputColumn {
    /// Returns the column of a table with the name, type and collation of an output.
    pub(super) fn to_new_column(&self) -> NewColumn {
        NewColumn {
            name: self.name.clone(),
            data_type: self.data_type,
            domain: None,
            collation: self.collation.for_table().unwrap_or_default(),
            not_null: false,
            default: None,
            identity: None,
            generated: None,
        }
    }
}

/// Refuses clauses that the parser accepts and that would have no effect here.
pub fn check_create_table(create: &ast::CreateTable) -> Result<()> {
    if create.partition_by.is_some() || create.partition_of.is_some() {
        return Err(SqlError::unsupported("a table in partitions"));
    }
    let mut columns = create.columns.iter();
    let is_list_wrong = match create.query {
        Some(_) => {
            columns.any(|column| !is_untyped(&column.data_type)) || !create.constraints.is_empty()
        }
        None => columns.any(|column| is_untyped(&column.data_type)),
    };
    if is_list_wrong {
        let message = "syntax error: CREATE TABLE … AS takes names, CREATE TABLE names and types";
        return Err(SqlError::new(SqlState::SyntaxError, message));
    }
    let plain = CreateTableBuilder::new(create.name.clone())
        .if_not_exists(create.if_not_exists)
        .columns(create.columns.clone())
        .constraints(create.constraints.clone())
        .query(create.query.clone())
        .with_data(create.with_data.filter(|with| with.statistics.is_none()))
        .build();
    check_table_parameters(&create.table_options)?;
    // A table that is not logged would lose its rows in a crash. This one keeps them.
    let (table_options, unlogged) = (create.table_options.clone(), create.unlogged);
    let (temporary, on_commit) = (create.temporary, create.on_commit);
    // LOCAL and GLOBAL have no effect.
    let global = create.global.filter(|_| temporary);
    let plain = ast::CreateTable { table_options, unlogged, temporary, on_commit, global, ..plain };
    if *create == plain { Ok(()) } else { Err(SqlError::unsupported("this form of CREATE TABLE")) }
}

/// Returns what a commit does with the table of CREATE TABLE.
pub fn on_commit_of(create: &ast::CreateTable) -> Result<OnCommit> {
    let Some(on_commit) = &create.on_commit else { return Ok(OnCommit::Preserve) };
    if !create.temporary {
        let message = "ON COMMIT can only be used on temporary tables";
        return Err(SqlError::new(SqlState::InvalidTableDefinition, message));
    }
    Ok(match on_commit {
        ast::OnCommit::PreserveRows => OnCommit::Preserve,
        ast::OnCommit::DeleteRows => OnCommit::DeleteRows,
        ast::OnCommit::Drop => OnCommit::Drop,
    })
}

/// A column as it was written.
pub(super) struct Defined {
    pub column: NewColumn,
    /// The bound DEFAULT.
    pub default: Option<Expr>,
    /// The expression of a generated column, which is bound when all columns are known.
    pub generation: Option<ast::Expr>,
    /// Its own constraints.
    pub constraints: Vec<TableConstraint>,
}

impl Binder<'_> {
    /// CREATE TABLE without a query.
    pub fn create_table(&mut self, create: &ast::CreateTable) -> Result<CatalogChange> {
        let on_commit = on_commit_of(create)?;
        let persistence = Persistence::from(create.temporary);
        let existing = OnExisting::from(create.if_not_exists);
        let (name, is_there) = self.new_relation_of(persistence, &create.name, existing)?;
        if is_there {
            let table = NewTable { name, ..NewTable::default() };
            return Ok(CatalogChange::CreateTable(Box::new(table), true));
        }
        self.check_words(create)?;
        let mut outline = Outline::new(&name);
        let mut columns = Vec::with_capacity(create.columns.len());
        let (mut of_columns, mut generations) = (Vec::new(), Vec::new());
        let mut copied = NewTable { name, ..NewTable::default() };
        for column in &create.columns {
            let place = self.place_of(&column.name);
            if let Some(like) = like_clause(&column.name).map_err(|error| error.at(place))? {
                let taken = self.columns_like(&like, &mut outline, &mut copied);
                columns.extend(taken.map_err(|error| error.at(place))?);
                generations.resize(columns.len(), None);
                continue;
            }
            let defined = self.new_column(column, &mut outline)?;
            columns.push(defined.column);
            generations.push(defined.generation);
            of_columns.extend(defined.constraints);
        }
        for (column, generation) in columns.iter_mut().zip(&generations) {
            let Some(generation) = generation else { continue };
            let named = (&column.name[..], column.data_type);
            column.generated = Some(self.new_generated(generation, named, &outline)?);
        }
        let mut constraints = Constraints::default();
        let (outline, constraints_of_table) = (&mut outline, &mut constraints);
        let (column, table) = (ConstraintPlace::Column, ConstraintPlace::Table);
        self.add_constraints(&of_columns, column, outline, constraints_of_table)?;
        self.add_constraints(&create.constraints, table, outline, constraints_of_table)?;
        let Constraints { primary_key, uniques, checks, foreign_keys } = constraints;
        let mut table = NewTable { columns, foreign_keys, on_commit, ..copied };
        table.primary_key = table.primary_key.or(primary_key);
        table.uniques.extend(uniques);
        table.checks.extend(checks);
        Ok(CatalogChange::CreateTable(Box::new(table), create.if_not_exists))
    }

    /// Refuses keywords of other dialects that the parser skips after a column's type.
    fn check_words(&self, create: &ast::CreateTable) -> Result<()> {
        let Some(first) = create.columns.first() else { return Ok(()) };
        let (depth, follows) = (Cell::new(0), Cell::new(true));
        let is_such = |token: &Token| {
            let words = ["AUTO_INCREMENT", "AUTOINCREMENT", "ASC", "DESC"];
            let is_such = depth.get() == 0
                && follows.get()
                && words.iter().any(|wanted| is_word(token, wanted));
            match token {
                Token::Whitespace(_) => return false,
                Token::LParen => depth.set(depth.get() + 1),
                // After the closing parenthesis of the table, nothing is a column.
                Token::RParen if depth.get() == 0 => depth.set(i32::MIN / 2),
                Token::RParen => depth.set(depth.get() - 1),
                _ => {}
            }
            // A column or a constraint may have such a name.
            follows.set(*token != Token::Comma && !is_word(token, "CONSTRAINT"));
            is_such
        };
        match first_from(self.text.as_str(), first.name.span.end, is_such) {
            Some(place) => {
                let message = "syntax error: a word that is no option of a column";
                Err(SqlError::new(SqlState::SyntaxError, message).at(place))
            }
            None => Ok(()),
        }
    }

    /// Binds a new column and adds it to the outline.
    pub(super) fn new_column(
        &mut self,
        column: &ast::ColumnDef,
        outline: &mut Outline,
    ) -> Result<Defined> {
        let declared = self.declared_type(&column.data_type);
        let declared = declared.or_else(|error| self.row_type_named(&column.data_type, error));
        let declared = declared.map_err(|error| {
            error.at(self.place_of_type(&column.data_type, column.name.span.end))
        })?;
        let data_type = declared.data_type;
        let place = self.place_of(&column.name);
        let name = self.take_column(outline, &column.name, data_type)?;
        let mut new = NewColumn {
            name,
            data_type,
            domain: declared.domain,
            collation: None,
            not_null: false,
            default: None,
            identity: None,
            generated: None,
        };
        if types::is_serial(&column.data_type) {
            let options =
                SequenceOptions { data_type: Some(data_type), ..SequenceOptions::default() };
            new.identity = Some(NewIdentity { always: false, is_serial: true, options });
            new.not_null = true;
        }
        let mut defined =
            Defined { column: new, default: None, generation: None, constraints: Vec::new() };
        let mut is_null = false;
        for option in &column.options {
            is_null |= option.option == ColumnOption::Null;
            if let ColumnOption::Collation(name) = &option.option
                && is_nulls_not_distinct(name)
            {
                if let Some(TableConstraint::Unique(key)) = defined.constraints.last_mut() {
                    key.nulls_distinct = ast::NullsDistinctOption::NotDistinct;
                }
                continue;
            }
            match constraint_of(&column.name, option) {
                Some(constraint) => defined.constraints.push(constraint),
                None => {
                    let done = self.column_option(&option.option, &mut defined);
                    done.map_err(|error| error.at(place))?;
                }
            }
        }
        let is_plain = defined.generation.is_none() && defined.column.identity.is_none();
        if defined.default.is_none() && is_plain {
            let NewColumn { domain, data_type, name, .. } = &defined.column;
            defined.default = inherited_default(self.names, *domain, *data_type, name)?;
        }
        if defined.generation.is_some() {
            outline.generated.push(defined.column.name.clone());
        }
        let is_key =
            |constraint: &TableConstraint| matches!(constraint, TableConstraint::PrimaryKey(_));
        let new = &mut defined.column;
        if let Some((.., collation)) = outline.columns.last_mut() {
            *collation = Derivation::of_column(new.collation);
        }
        new.not_null |= defined.constraints.iter().any(is_key);
        if new.identity.is_some() && !data_type.is_integer() {
            let message = "identity column type must be smallint, integer, or bigint";
            let place = self.place_of_type(&column.data_type, column.name.span.end);
            return Err(SqlError::new(SqlState::InvalidParameterValue, message).at(place));
        }
        let what = if is_null && new.not_null {
            "conflicting NULL/NOT NULL declarations"
        } else if new.default.is_some() && types::is_serial(&column.data_type) {
            "multiple default values specified"
        } else if new.default.is_some() && new.identity.is_some() {
            "both default and identity specified"
        } else if new.default.is_some() && defined.generation.is_some() {
            "both default and generation expression specified"
        } else if new.identity.is_some() && defined.generation.is_some() {
            "both identity and generation expression specified"
        } else {
            return Ok(defined);
        };
        let message = format!("{what} for column \"{}\" of table \"{}\"", new.name, outline.name);
        Err(SqlError::new(SqlState::SyntaxError, message).at(place))
    }

    /// Binds a column option, except named constraints.
    fn column_option(&mut self, option: &ColumnOption, defined: &mut Defined) -> Result<()> {
        let new = &mut defined.column;
        let twice = |what: &str, name: &str| {
            let message = format!("multiple {what} specified for column \"{name}\"");
            Err(SqlError::new(SqlState::SyntaxError, message))
        };
        match option {
            ColumnOption::Null => {}
            ColumnOption::NotNull => new.not_null = true,
            ColumnOption::Default(_) if new.default.is_some() => {
                return twice("default values", &new.name);
            }
            ColumnOption::Default(written) => {
                if !is_restricted(written) {
                    let message =
                        "syntax error: parentheses are missing around the expression of a DEFAULT";
                    let place = self.position(written) as usize;
                    return Err(SqlError::new(SqlState::SyntaxError, message).at(place));
                }
                let (text, value) = self.new_default(written, new.data_type, &new.name)?;
                (new.default, defined.default) = (Some(text), Some(value));
            }
            ColumnOption::Generated { generation_expr: Some(_), .. }
                if defined.generation.is_some() =>
            {
                return twice("generation clauses", &new.name);
            }
            ColumnOption::Generated {
                generation_expr: Some(written),
                generated_keyword: true,
                ..
            } => defined.generation = Some(written.clone()),
            ColumnOption::Generated { .. } if new.identity.is_some() => {
                return twice("identity specifications", &new.name);
            }
            ColumnOption::Generated {
                generated_as,
                sequence_options: list,
                generation_expr: None,
                ..
            } => {
                let always = matches!(generated_as, GeneratedAs::Always);
                let list = list.as_deref().unwrap_or_default();
                let options = self.sequence_options(list, Some(new.data_type))?;
                new.identity = Some(NewIdentity { always, is_serial: false, options });
                new.not_null = true;
            }
            ColumnOption::Collation(name) => {
                let data_type = new.data_type;
                new.collation = Some(self.collation_of_new(name, data_type)?);
            }
            other => return Err(SqlError::unsupported(format!("the column option {other}"))),
        }
        Ok(())
    }
}

/// A column's own constraint, as one of the table.
fn constraint_of(column: &ast::Ident, option: &ast::ColumnOptionDef) -> Option<TableConstraint> {
    let named = |own: &Option<ast::Ident>| option.name.clone().or_else(|| own.clone());
    let column = column.clone();
    Some(match option.option.clone() {
        ColumnOption::PrimaryKey(key) => TableConstraint::PrimaryKey(ast::PrimaryKeyConstraint {
            name: named(&key.name),
            columns: vec![column.into()],
            ..key
        }),
        ColumnOption::Unique(key) => TableConstraint::Unique(ast::UniqueConstraint {
            name: named(&key.name),
            columns: vec![column.into()],
            ..key
        }),
        ColumnOption::Check(check) => {
            TableConstraint::Check(ast::CheckConstraint { name: named(&check.name), ..check })
        }
        ColumnOption::ForeignKey(key) => TableConstraint::ForeignKey(ast::ForeignKeyConstraint {
            name: named(&key.name),
            columns: vec![column],
            ..key
        }),
        _ => return None,
    })
}

/// Returns whether an expression may follow DEFAULT without parentheses. Operators such as NOT and
/// IN could begin the next column clause.
fn is_restricted(written: &ast::Expr) -> bool {
    use ast::{BinaryOperator, Expr, UnaryOperator};
    match written {
        Expr::BinaryOp { op: BinaryOperator::And | BinaryOperator::Or, .. }
        | Expr::UnaryOp { op: UnaryOperator::Not, .. }
        | Expr::InList { .. }
        | Expr::InSubquery { .. }
        | Expr::Between { .. }
        | Expr::Like { .. }
        | Expr::ILike { .. }
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsTrue(_)
        | Expr::IsNotTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsNotFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotUnknown(_) => false,
        Expr::BinaryOp { left, right, .. } => is_restricted(left) && is_restricted(right),
        Expr::UnaryOp { expr, .. } => is_restricted(expr),
        _ => true,
    }
}
