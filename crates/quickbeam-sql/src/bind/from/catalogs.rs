//! System catalogs in FROM, and names that `pg_catalog` qualifies.

use std::sync::Arc;

use smol_str::SmolStr;
use sqlparser::ast::{BinaryOperator, ObjectName, ObjectNamePart, TableAlias};

use crate::bind::{
    Binder, Body, Derivation, From, FunctionCall, OutputColumn, Query, Scope, Source,
    TableFunction, TableFunctionKind, fold,
};
use crate::catalog::system::{SystemTable, is_operator, object_oid, system_table};
use crate::catalog::{Sequence, Table, TransitionSide};
use crate::error::{Result, SqlError, SqlState};
use crate::types::DataType;

/// Returns the system catalog that a qualified name means.
pub(in crate::bind) fn named_catalog(name: &ObjectName) -> Result<Option<&'static SystemTable>> {
    let [ObjectNamePart::Identifier(schema), ObjectNamePart::Identifier(table)] = &name.0[..]
    else {
        return Ok(None);
    };
    let (schema, table) = (fold(schema), fold(table));
    if schema != "pg_catalog" && schema != "information_schema" {
        return Ok(None);
    }
    system_table(Some(&schema), &table).map(Some).ok_or_else(|| {
        let message = format!("relation \"{schema}.{table}\" does not exist");
        SqlError::new(SqlState::UndefinedTable, message)
    })
}

/// Returns the operator that `OPERATOR(pg_catalog.~)` means.
pub(in crate::bind) fn plain_operator(op: &BinaryOperator) -> Result<BinaryOperator> {
    known_operator(op).ok_or_else(|| {
        let message = format!("operator does not exist: {op}");
        SqlError::new(SqlState::UndefinedFunction, message)
    })
}

fn known_operator(op: &BinaryOperator) -> Option<BinaryOperator> {
    let BinaryOperator::PGCustomBinaryOperator(parts) = op else { return None };
    let symbol = match &parts[..] {
        [symbol] => symbol,
        [schema, symbol] if schema == "pg_catalog" => symbol,
        _ => return None,
    };
    Some(match &symbol[..] {
        "=" => BinaryOperator::Eq,
        "<>" | "!=" => BinaryOperator::NotEq,
        "<" => BinaryOperator::Lt,
        "<=" => BinaryOperator::LtEq,
        ">" => BinaryOperator::Gt,
        ">=" => BinaryOperator::GtEq,
        "+" => BinaryOperator::Plus,
        "-" => BinaryOperator::Minus,
        "*" => BinaryOperator::Multiply,
        "/" => BinaryOperator::Divide,
        "%" => BinaryOperator::Modulo,
        "||" => BinaryOperator::StringConcat,
        "~" => BinaryOperator::PGRegexMatch,
        "~*" => BinaryOperator::PGRegexIMatch,
        "!~" => BinaryOperator::PGRegexNotMatch,
        "!~*" => BinaryOperator::PGRegexNotIMatch,
        "~~" => BinaryOperator::PGLikeMatch,
        "~~*" => BinaryOperator::PGILikeMatch,
        "!~~" => BinaryOperator::PGNotLikeMatch,
        "!~~*" => BinaryOperator::PGNotILikeMatch,
        other if is_operator(other) => BinaryOperator::Custom(other.to_owned()),
        _ => return None,
    })
}

impl Binder<'_> {
    /// Binds a system catalog in FROM.
    pub(in crate::bind) fn catalog(
        &mut self,
        table: &'static SystemTable,
        alias: Option<&TableAlias>,
        scope: &mut Scope,
    ) -> Result<From> {
        self.check_catalog(table.name)?;
        let columns = table.columns.iter();
        let columns =
            columns.map(|(name, _, data_type)| OutputColumn::new(name.clone(), *data_type));
        let name = SmolStr::new_static(table.name);
        let kind = TableFunctionKind::Catalog(table);
        let from = self.computed_rows(kind, name, columns.collect(), alias, scope)?;
        if let From::Query(derived) = &from {
            self.catalog_slots.push((derived.slot, table.oid));
        }
        Ok(from)
    }
    /// Binds a sequence in FROM.
    pub(in crate::bind) fn sequence_row(
        &mut self,
        sequence: &Sequence,
        alias: Option<&TableAlias>,
        scope: &mut Scope,
    ) -> Result<From> {
        let columns = [
            ("last_value", DataType::BigInt),
            ("log_cnt", DataType::BigInt),
            ("is_called", DataType::Boolean),
        ];
        let columns = columns.map(|(name, data_type)| OutputColumn::new(name, data_type));
        let (kind, name) = (TableFunctionKind::Sequence(sequence.id), sequence.name.clone());
        let from = self.computed_rows(kind, name, columns.into(), alias, scope)?;
        if let From::Query(derived) = &from {
            self.catalog_slots.push((derived.slot, object_oid(sequence.id)));
        }
        Ok(from)
    }

    /// Binds a transition table in FROM.
    pub(in crate::bind) fn transition_rows(
        &mut self,
        (side, table): (TransitionSide, &Table),
        name: SmolStr,
        alias: Option<&TableAlias>,
        scope: &mut Scope,
    ) -> Result<From> {
        let columns = table.columns.iter();
        let columns = columns
            .map(|it| OutputColumn {
                name: it.name.clone(),
                data_type: it.data_type,
                collation: Derivation::of_column(it.collation),
            })
            .collect();
        self.computed_rows(TableFunctionKind::Transition(side), name, columns, alias, scope)
    }

    /// Binds rows that are computed from the catalog, under a name.
    fn computed_rows(
        &mut self,
        kind: TableFunctionKind,
        name: SmolStr,
        columns: Vec<OutputColumn>,
        alias: Option<&TableAlias>,
        scope: &mut Scope,
    ) -> Result<From> {
        let slot = self.add_slot(name.clone(), Source::Computed);
        let call = FunctionCall { kind, arguments: Vec::new(), width: columns.len() };
        let query = Query::plain(
            Body::Function(TableFunction { calls: vec![call], ordinality: false, slot }),
            columns,
        );
        self.derived(Arc::new(query), alias, Some(name), scope)
    }
}
