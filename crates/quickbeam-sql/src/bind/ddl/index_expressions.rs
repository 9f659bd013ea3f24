//! Expressions and predicates of indexes.
//!
//! They are stored as text, as CHECK is. Their values depend on the row alone, so the entries of a
//! row are the same whenever they are computed.

use std::sync::Arc;

use smol_str::SmolStr;
use sqlparser::ast;

use super::super::{Binder, Names, Scope, SearchPath, fold};
use super::generated::check_immutable;
use super::stored_expressions::read_columns;
use super::table_outline::Outline;
use crate::bind::collations::keys::unmarked;
use crate::bind::collations::not_under;
use crate::bind::query::implied_names::implied_name;
use crate::bind::scope::relation_of;
use crate::catalog::{
    Index, Method, NewIndex, NewIndexExpression, NewIndexPredicate, ObjectId, Relation, Table,
};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{Current, Expr, Frame, Slot};
use crate::handle::{IndexCompiler, IndexEvaluator, KeyType};
use crate::schema::errors::inverted_class;
use crate::schema::{OperatorClass, OperatorClasses};
use crate::table::StoredRow;
use crate::types::{Collation, DataType, Value};

/// The expressions and the predicate of an index over a row in a slot.
#[derive(Debug)]
pub struct BoundIndex {
    /// Its expressions.
    pub expressions: Vec<Expr>,
    /// The conditions that its predicate joins by AND.
    pub predicate: Vec<Expr>,
    types: Vec<KeyType>,
}

impl BoundIndex {
    /// Returns whether an expression depends on the settings of the session. Earlier releases made
    /// such indexes; their entries have the values of the default settings.
    pub fn reads_settings(&self) -> bool {
        self.expressions.iter().chain(&self.predicate).any(Expr::reads_settings)
    }

    /// Binds the expressions of an index over rows in that slot.
    pub fn of(names: &dyn Names, table: &Table, index: &Index, slot: usize) -> Result<BoundIndex> {
        let scope = Scope::of(vec![relation_of(table, slot, table.name.clone())]);
        let mut bound =
            BoundIndex { expressions: Vec::new(), predicate: Vec::new(), types: Vec::new() };
        for expression in &index.expressions {
            let parsed = crate::parse::expression(&expression.text)?;
            let (mut value, key_type) = key_value(Binder::of_stored(names), &parsed, &scope)?;
            value.simplify();
            bound.expressions.push(value);
            bound.types.push(key_type);
        }
        if let Some(predicate) = &index.predicate {
            let parsed = crate::parse::expression(&predicate.text)?;
            let mut condition = condition(Binder::of_stored(names), &parsed, &scope)?;
            condition.simplify_condition();
            condition.into_conjuncts(&mut bound.predicate);
        }
        Ok(bound)
    }
}

fn key_value(mut binder: Binder<'_>, parsed: &ast::Expr, scope: &Scope) -> Result<(Expr, KeyType)> {
    let (bound, level) = binder.level(|binder| binder.expression(parsed, scope))?;
    binder.stands_alone(parsed, &level, "index expression")?;
    if !binder.is_stored {
        let message = "functions in index expression must be marked IMMUTABLE";
        check_immutable(&bound.expr, message)?;
    }
    check_known_everywhere(&bound.expr)?;
    refuse_keys(&bound.expr)?;
    let data_type = bound.data_type.unwrap_or(DataType::Text);
    let collation = binder.key_collation([&bound], "index expression")?;
    match collation.filter(|own| !data_type.is_text() && !own.is_deterministic()) {
        Some(own) => Err(not_under("an index of arrays or rows", own)),
        None => {
            let collation = collation.filter(|own| data_type.is_text() && own.has_sort_keys());
            Ok((unmarked(bound.expr), (data_type, collation)))
        }
    }
}

fn condition(mut binder: Binder<'_>, parsed: &ast::Expr, scope: &Scope) -> Result<Expr> {
    let (bound, level) = binder.level(|binder| binder.condition(parsed, "WHERE", scope))?;
    binder.stands_alone(parsed, &level, "index predicate")?;
    if !binder.is_stored {
        check_immutable(&bound, "functions in index predicate must be marked IMMUTABLE")?;
    }
    check_known_everywhere(&bound)?;
    refuse_keys(&bound)?;
    Ok(bound)
}

/// Refuses comparisons under a collation of ICU, whose results depend on the release of the
/// library.
fn refuse_keys(expr: &Expr) -> Result<()> {
    if let Some((_, own)) = expr.as_sort_key() {
        return Err(not_under("a comparison in an index", own));
    }
    let mut result = Ok(());
    expr.each_child(&mut |child| {
        if result.is_ok() {
            result = refuse_keys(child);
        }
    });
    result
}

/// Refuses functions of the program: a program without them could not keep the index.
fn check_known_everywhere(expr: &Expr) -> Result<()> {
    if expr.calls_program() {
        return Err(SqlError::unsupported("a function of the program in an index"));
    }
    if has_domain(expr) {
        return Err(SqlError::unsupported("a cast to a domain in an index"));
    }
    Ok(())
}

fn has_domain(expr: &Expr) -> bool {
    let mut has = matches!(expr, Expr::Domain(..));
    expr.each_child(&mut |child| has |= has_domain(child));
    has
}

/// Evaluates the expressions and the predicate of an index over single rows.
#[derive(Debug)]
struct RowEvaluator {
    table: Arc<Table>,
    bound: BoundIndex,
}

impl IndexEvaluator for RowEvaluator {
    fn evaluate(&self, row: StoredRow<'_>) -> Result<Option<Vec<Value>>> {
        let mut slot = Slot::new(Some(self.table.clone()));
        slot.bytes.extend_from_slice(row.bytes());
        slot.current = Current::Bytes(0, slot.bytes.len());
        let slots = [slot];
        let frame = Frame { slots: &slots, ..Frame::of_parameters(&[]) };
        for condition in &self.bound.predicate {
            if condition.truth(&frame)? != Some(true) {
                return Ok(None);
            }
        }
        let value = |expr: &Expr| Ok(expr.evaluate(&frame)?.into_value());
        self.bound.expressions.iter().map(value).collect::<Result<_>>().map(Some)
    }
}

/// The names that an expression of an index may use besides columns: none.
struct NoNames;

impl Names for NoNames {
    fn relation(&self, _: &str) -> Result<Option<Relation>> {
        Ok(None)
    }

    fn has_schema(&self, _: &str) -> bool {
        false
    }

    fn search_path(&self) -> SearchPath {
        None
    }

    fn sequence_name(&self, _: ObjectId) -> Option<SmolStr> {
        None
    }
}

/// The compiler of index expressions that every SQL database gives its catalog.
#[derive(Debug)]
pub struct ExpressionCompiler;

impl IndexCompiler for ExpressionCompiler {
    fn compile(&self, table: &Arc<Table>, index: &Index) -> Result<Arc<dyn IndexEvaluator>> {
        let bound = BoundIndex::of(&NoNames, table, index, 0)?;
        Ok(Arc::new(RowEvaluator { table: table.clone(), bound }))
    }

    fn types(&self, table: &Arc<Table>, index: &Index) -> Result<Vec<KeyType>> {
        Ok(BoundIndex::of(&NoNames, table, index, 0)?.types)
    }
}

impl Binder<'_> {
    /// Binds the columns and expressions of CREATE INDEX.
    pub(super) fn index_keys(
        &mut self,
        columns: &[ast::IndexColumn],
        outline: &Outline,
        index: &mut NewIndex,
    ) -> Result<()> {
        for column in columns {
            self.index_key(column, outline, index)?;
            self.check_operator_class(column, outline, index)?;
        }
        Ok(())
    }

    /// Binds the column or the expression of CREATE INDEX USING gin.
    pub(super) fn inverted_key(
        &mut self,
        columns: &[ast::IndexColumn],
        outline: &Outline,
        index: &mut NewIndex,
    ) -> Result<()> {
        let mut classes = Vec::new();
        for column in columns {
            self.index_key(column, outline, index)?;
            let data_type =
                match index.expressions.iter().find(|it| it.0 + 1 == index.columns.len()) {
                    Some((_, expression)) => expression.data_type,
                    None => {
                        let name = index.columns.last().map_or("", |column| &column.0);
                        let position = outline.column(name);
                        position.map_or(DataType::Text, |position| outline.columns[position].1)
                    }
                };
            let given = column.operator_class.as_ref().map(inverted_class_named).transpose()?;
            classes.push(inverted_class(given, data_type)?);
            let options = &column.column.options;
            let what = match (options.sort.is_some(), options.nulls_first.is_some()) {
                (true, _) => "ASC/DESC",
                (false, true) => "NULLS FIRST/LAST",
                (false, false) => continue,
            };
            let message = format!("access method \"gin\" does not support {what} options");
            return Err(SqlError::new(SqlState::FeatureNotSupported, message));
        }
        index.method = Method::Inverted(OperatorClasses::of(classes));
        Ok(())
    }

    fn index_key(
        &mut self,
        column: &ast::IndexColumn,
        outline: &Outline,
        index: &mut NewIndex,
    ) -> Result<()> {
        let options = &column.column.options;
        let descending = matches!(options.sort, Some(ast::OrderBySort::Desc));
        let has_byte_order = |class: &ast::ObjectName| super::constraints::is_byte_order(class);
        if column.operator_class.as_ref().is_some_and(has_byte_order) {
            index.collations.push((index.columns.len(), None));
        }
        let name = match self.collated_key(&column.column.expr, outline)? {
            Some((name, named)) => {
                self.known_column(outline, name)?;
                if let Some(collation) = named {
                    let collation = Some(collation).filter(|own| own.has_sort_keys());
                    index.collations.push((index.columns.len(), collation));
                }
                fold(name)
            }
            None => {
                let written = &column.column.expr;
                let mut expression = self.index_expression(written, outline)?;
                let is_by_bytes = |(place, _): &(usize, _)| *place == index.columns.len();
                if index.collations.iter().any(is_by_bytes) {
                    expression.collation = None;
                }
                index.expressions.push((index.columns.len(), expression));
                let taken: Vec<&str> =
                    index.columns.iter().map(|column| column.0.as_str()).collect();
                expression_name(written, &taken)
            }
        };
        index.columns.push((name, descending, options.nulls_first));
        Ok(())
    }

    /// Returns the column that an index key is, and the collation that COLLATE gives it.
    fn collated_key<'e>(
        &self,
        written: &'e ast::Expr,
        outline: &Outline,
    ) -> Result<Option<(&'e ast::Ident, Option<Collation>)>> {
        let ast::Expr::Collate { expr, collation } = written else {
            return Ok(key_column(written).map(|name| (name, None)));
        };
        let Some(name) = key_column(expr) else { return Ok(None) };
        let at = self.known_column(outline, name)?;
        let Some((_, data_type, _)) = outline.columns.get(at) else { return Ok(None) };
        Ok(Some((name, Some(self.collation_of_new(collation, *data_type)?))))
    }

    fn index_expression(
        &self,
        written: &ast::Expr,
        outline: &Outline,
    ) -> Result<NewIndexExpression> {
        let scope = outline.scope();
        let place = || self.position(written) as usize;
        let binder = Binder::new(self.names, self.text.as_str());
        key_value(binder, written, &scope).map_err(|error| match error.state() {
            SqlState::IndeterminateCollation => error,
            _ => error.at(place()),
        })?;
        let text = stored_text(written);
        let parsed = crate::parse::expression(&text)?;
        let (value, key_type) = key_value(Binder::of_stored(self.names), &parsed, &scope)?;
        let (data_type, collation) = key_type;
        Ok(NewIndexExpression {
            text: text.into(),
            data_type,
            collation,
            columns: read_columns(&value, outline),
        })
    }

    /// Binds WHERE of CREATE INDEX.
    pub(super) fn index_predicate(
        &self,
        written: &ast::Expr,
        outline: &Outline,
    ) -> Result<NewIndexPredicate> {
        let scope = outline.scope();
        let place = || self.position(written) as usize;
        let binder = Binder::new(self.names, self.text.as_str());
        condition(binder, written, &scope).map_err(|error| error.at(place()))?;
        let text = stored_text(written);
        let parsed = crate::parse::expression(&text)?;
        let value = condition(Binder::of_stored(self.names), &parsed, &scope)?;
        Ok(NewIndexPredicate { text: text.into(), columns: read_columns(&value, outline) })
    }

    /// Refuses operator classes other than that of the type of the last key of an index and those
    /// that order by bytes.
    fn check_operator_class(
        &self,
        column: &ast::IndexColumn,
        outline: &Outline,
        index: &NewIndex,
    ) -> Result<()> {
        let Some(class) = &column.operator_class else { return Ok(()) };
        let place = index.columns.len().saturating_sub(1);
        let expression = index.expressions.iter().find(|(at, _)| *at == place);
        let data_type = match (expression, &column.column.expr) {
            (Some((_, expression)), _) => Some(expression.data_type),
            (None, ast::Expr::Collate { expr, .. }) => self.type_of_column(expr, outline)?,
            (None, written) => self.type_of_column(written, outline)?,
        };
        let is_default = data_type.is_some_and(|data_type| is_default_class(class, data_type));
        if is_default || super::constraints::is_byte_order(class) {
            return Ok(());
        }
        Err(SqlError::unsupported("a key with an operator class")
            .at(self.position(&column.column.expr) as usize))
    }

    /// Returns the type of the column that an index key is.
    fn type_of_column(&self, key: &ast::Expr, outline: &Outline) -> Result<Option<DataType>> {
        let Some(name) = key_column(key) else { return Ok(None) };
        let at = self.known_column(outline, name)?;
        Ok(outline.columns.get(at).map(|(_, data_type, _)| *data_type))
    }
}

/// Returns whether an operator class is the one that a type has without it.
fn is_default_class(class: &ast::ObjectName, data_type: DataType) -> bool {
    let written = class.to_string().to_lowercase();
    let name = written.strip_prefix("pg_catalog.").unwrap_or(&written);
    match data_type {
        DataType::Text | DataType::Varchar(_) => matches!(name, "text_ops" | "varchar_ops"),
        DataType::Array(_) => name == "array_ops",
        other => name.strip_suffix("_ops") == Some(other.catalog_name()),
    }
}

/// Returns the operator class of that name.
fn inverted_class_named(name: &ast::ObjectName) -> Result<OperatorClass> {
    let written = name.to_string().to_lowercase();
    let name = written.strip_prefix("pg_catalog.").unwrap_or(&written);
    OperatorClass::named(name).ok_or_else(|| {
        let message = format!("operator class \"{name}\" does not exist for access method \"gin\"");
        SqlError::new(SqlState::UndefinedObject, message)
    })
}

/// Refuses what an inverted index cannot be.
pub(super) fn check_inverted(create: &ast::CreateIndex) -> Result<()> {
    let what = match (create.unique, create.include.is_empty()) {
        (true, _) => "unique indexes",
        (false, false) => "included columns",
        (false, true) => return Ok(()),
    };
    let message = format!("access method \"gin\" does not support {what}");
    Err(SqlError::new(SqlState::FeatureNotSupported, message))
}

/// Returns the column that a key of an index is; parentheses change nothing.
pub(in crate::bind) fn key_column(expr: &ast::Expr) -> Option<&ast::Ident> {
    match expr {
        ast::Expr::Identifier(name) => Some(name),
        ast::Expr::Nested(inner) => key_column(inner),
        _ => None,
    }
}

/// Returns the text of an expression without parentheses around all of it.
fn stored_text(written: &ast::Expr) -> String {
    match written {
        ast::Expr::Nested(inner) => stored_text(inner),
        other => other.to_string(),
    }
}

/// Returns the name of an index's column for an expression, unlike those before it.
fn expression_name(written: &ast::Expr, taken: &[&str]) -> SmolStr {
    let implied = implied_name(written);
    let name = if implied == "?column?" { "expr".into() } else { implied };
    let numbered = (1_usize..).map(|number| smol_str::format_smolstr!("{name}{number}"));
    let mut names = std::iter::once(name.clone()).chain(numbered);
    names.find(|name| !taken.contains(&name.as_str())).unwrap_or(name)
}
