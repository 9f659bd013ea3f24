//! Functions in FROM.

use std::sync::Arc;

use smol_str::SmolStr;
use sqlparser::ast::{FunctionArg, FunctionArgExpr, ObjectName, TableAlias};

use super::from_clause::lateral_scope;
use super::{
    Binder, Body, From, OutputColumn, Query, Scope, Source, TableFunction, TableFunctionKind,
    Typed, fold, object_name, types,
};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::Expr;
use crate::types::DataType;

impl Binder<'_> {
    /// Binds a function in FROM. Its arguments may read the items to its left.
    pub(super) fn table_function(
        &mut self,
        name: &ObjectName,
        args: &[FunctionArg],
        ordinality: bool,
        alias: Option<&TableAlias>,
        scope: &mut Scope,
    ) -> Result<From> {
        let position = self.position(name);
        let folded = object_name(name).map_err(|error| error.at(position as usize))?;
        let around = Scope { outer: lateral_scope(scope), ..Scope::default() };
        let (arguments, level) = self.level(|binder| {
            let mut arguments = Vec::with_capacity(args.len());
            for argument in args {
                let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = argument else {
                    return Err(SqlError::unsupported("this form of an argument"));
                };
                arguments.push(binder.expression(expr, &around)?);
            }
            Ok(arguments)
        })?;
        if !level.subqueries.is_empty() {
            return Err(SqlError::unsupported("a subquery as argument of a function in FROM"));
        }
        let (kind, arguments, data_type) = self.series(&folded, arguments, position)?;
        let slot = self.add_slot(folded.clone(), Source::Computed);
        let function = TableFunction { kind, arguments, ordinality, slot };
        let column: SmolStr = alias.map_or_else(|| folded.clone(), |alias| fold(&alias.name));
        let mut columns = vec![OutputColumn { name: column, data_type }];
        if ordinality {
            let name = "ordinality".into();
            columns.push(OutputColumn { name, data_type: DataType::BigInt });
        }
        let query = Query {
            with: Vec::new(),
            body: Body::Function(function),
            columns,
            order: Vec::new(),
            limit: None,
            offset: None,
            with_ties: false,
        };
        self.derived(Arc::new(query), alias, Some(folded), scope)
    }

    /// Binds the arguments of `generate_series`, the only function that returns rows.
    fn series(
        &mut self,
        name: &str,
        arguments: Vec<Typed>,
        position: u32,
    ) -> Result<(TableFunctionKind, Vec<Expr>, DataType)> {
        let known: Vec<DataType> = arguments.iter().filter_map(|one| one.data_type).collect();
        let missing = || {
            let types = arguments.iter().map(|one| {
                one.data_type.map_or_else(|| "unknown".to_owned(), |known| known.to_string())
            });
            let types: Vec<String> = types.collect();
            let message = format!("function {name}({}) does not exist", types.join(", "));
            SqlError::new(SqlState::UndefinedFunction, message).at(position as usize)
        };
        let is_series = name == "generate_series" && (2..=3).contains(&arguments.len());
        if is_series && known.is_empty() {
            let message = "function generate_series is not unique for arguments without types";
            let error = SqlError::new(SqlState::AmbiguousFunction, message);
            return Err(error.at(position as usize));
        }
        let common = known.iter().copied().map(Some);
        let common = common.reduce(|a, b| types::common_number(a?, b?)).flatten();
        let data_type = match common.map(DataType::unconstrained) {
            Some(DataType::SmallInt | DataType::Integer) => DataType::Integer,
            Some(known @ (DataType::BigInt | DataType::Numeric(_))) => known,
            _ => return Err(missing()),
        };
        if !is_series {
            return Err(missing());
        }
        let mut exprs = Vec::with_capacity(arguments.len());
        for argument in arguments {
            exprs.push(self.coerce(argument, data_type)?);
        }
        Ok((TableFunctionKind::GenerateSeries(data_type), exprs, data_type))
    }
}
