//! Functions that `pg_proc` has for casts and operators: `date(now())`, `int4pl(1, 2)`.
//!
//! A call of one becomes the cast or the operator that it stands for.

use sqlparser::ast::{
    self, BinaryOperator, CastKind, Expr as Ast, FunctionArg, FunctionArgExpr, Ident, ObjectName,
    UnaryOperator,
};

use crate::bind::types::undefined::no_function;
use crate::bind::{Binder, Scope, Typed, types};
use crate::catalog::system::operator_of;
use crate::error::Result;
use crate::expression::overloads;

/// Names of types that SQL reserves: without quotes they name no function.
const RESERVED: [&str; 20] = [
    "bigint",
    "bit",
    "boolean",
    "char",
    "character",
    "dec",
    "decimal",
    "float",
    "int",
    "integer",
    "interval",
    "national",
    "nchar",
    "numeric",
    "precision",
    "real",
    "smallint",
    "time",
    "timestamp",
    "varchar",
];

/// Returns whether an unquoted name is one of a type that cannot be called as a function.
pub(in crate::bind) fn is_reserved_type(name: &ObjectName) -> bool {
    match &name.0[..] {
        [part] => part.as_ident().is_some_and(|ident| {
            ident.quote_style.is_none() && RESERVED.contains(&&*ident.value.to_ascii_lowercase())
        }),
        _ => false,
    }
}

fn cast(value: &Ast, type_name: &str) -> Ast {
    let parts = ["pg_catalog", type_name].map(|part| Ident::with_quote('"', part));
    Ast::Cast {
        kind: CastKind::DoubleColon,
        expr: Box::new(value.clone()),
        data_type: ast::DataType::Custom(ObjectName::from(parts.to_vec()), Vec::new()),
        format: None,
    }
}

fn prefix(symbol: &str) -> Option<UnaryOperator> {
    Some(match symbol {
        "-" => UnaryOperator::Minus,
        "+" => UnaryOperator::Plus,
        "~" => UnaryOperator::BitwiseNot,
        "@" => UnaryOperator::PGAbs,
        "|/" => UnaryOperator::PGSquareRoot,
        "||/" => UnaryOperator::PGCubeRoot,
        "!!" => UnaryOperator::PGPrefixFactorial,
        _ => return None,
    })
}

impl Binder<'_> {
    /// Binds a call of a type's name with one argument, which is a cast. Returns `None` for other
    /// calls.
    pub(in crate::bind) fn cast_by_call(
        &mut self,
        name: &str,
        arguments: &[FunctionArg],
        position: u32,
        scope: &Scope,
    ) -> Option<Result<Typed>> {
        let [FunctionArg::Unnamed(FunctionArgExpr::Expr(value))] = arguments else { return None };
        let data_type = types::catalog_type(name)?;
        if !self.routines_named(name).is_empty() || name == "pg_lsn" {
            return None;
        }
        Some(self.nested(|binder| {
            let bound = binder.expression(value, scope)?;
            match bound.data_type {
                Some(from) if !types::is_castable(from, data_type) => {
                    Err(no_function(name, [Some(from)], position))
                }
                _ => binder.cast(bound, data_type),
            }
        }))
    }

    /// Returns the operator that a call stands for; `None` if the name is one of a function.
    pub(in crate::bind) fn operator_by_call(
        &self,
        name: &str,
        arguments: &[FunctionArg],
    ) -> Option<Ast> {
        let is_function = || !overloads(name).is_empty() || !self.routines_named(name).is_empty();
        let values = || {
            let value = |argument: &FunctionArg| match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value.clone()),
                _ => None,
            };
            arguments.iter().map(value).collect::<Option<Vec<Ast>>>()
        };
        let operator = operator_of(name).filter(|known| known.operands.len() == arguments.len())?;
        if is_function() {
            return None;
        }
        let values = values()?;
        let operands =
            values.iter().zip(&operator.operands).map(|(value, name)| Box::new(cast(value, name)));
        let mut operands = operands.collect::<Vec<Box<Ast>>>().into_iter();
        match (operands.next()?, operands.next()) {
            (expr, None) => Some(Ast::UnaryOp { op: prefix(operator.symbol)?, expr }),
            (left, Some(right)) => {
                let symbol = vec![operator.symbol.to_owned()];
                let op = BinaryOperator::PGCustomBinaryOperator(symbol);
                Some(Ast::BinaryOp { left, op, right })
            }
        }
    }
}
