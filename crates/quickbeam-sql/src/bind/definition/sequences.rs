//! CREATE SEQUENCE, ALTER SEQUENCE … RESTART, and what is said of the sequence of an identity column.

use sqlparser::ast;

use super::super::{Binder, Scope, fold, object_name, types};
use super::CatalogChange;
use crate::catalog::SequenceOptions;
use crate::error::{Result, SqlError, SqlState};
use crate::types::DataType;

fn number_of(expr: &ast::Expr) -> Result<i64> {
    let text = expr.to_string().replace(' ', "");
    text.parse().map_err(|_| {
        SqlError::new(SqlState::InvalidParameterValue, format!("{expr} is no integer"))
    })
}

pub(super) fn sequence_options(
    list: &[ast::SequenceOptions],
    data_type: Option<DataType>,
) -> Result<SequenceOptions> {
    let mut options = SequenceOptions { data_type, ..SequenceOptions::default() };
    for option in list {
        match option {
            ast::SequenceOptions::IncrementBy(by, _) => options.increment = Some(number_of(by)?),
            ast::SequenceOptions::StartWith(start, _) => options.start = Some(number_of(start)?),
            ast::SequenceOptions::MinValue(Some(least)) => {
                options.minimum = Some(number_of(least)?)
            }
            ast::SequenceOptions::MaxValue(Some(most)) => options.maximum = Some(number_of(most)?),
            ast::SequenceOptions::MinValue(None) | ast::SequenceOptions::MaxValue(None) => {}
            // Values are not handed out in advance.
            ast::SequenceOptions::Cache(_) => {}
            // The parser's flag says NO CYCLE.
            ast::SequenceOptions::Cycle(no) => options.cycle = !no,
        }
    }
    Ok(options)
}

impl Binder<'_> {
    /// CREATE SEQUENCE.
    pub fn create_sequence(
        &mut self,
        name: &ast::ObjectName,
        data_type: Option<&ast::DataType>,
        list: &[ast::SequenceOptions],
        owned_by: Option<&ast::ObjectName>,
        if_not_exists: bool,
    ) -> Result<CatalogChange> {
        if owned_by.is_some_and(|owner| !owner.to_string().eq_ignore_ascii_case("none")) {
            return Err(SqlError::unsupported("OWNED BY a column"));
        }
        let data_type = data_type.map(types::data_type).transpose()?;
        let options = sequence_options(list, data_type)?;
        Ok(CatalogChange::CreateSequence(object_name(name)?, options, if_not_exists))
    }

    /// CALL of the procedure that stands for ALTER SEQUENCE … RESTART.
    pub fn call_procedure(&mut self, call: &ast::Function) -> Result<CatalogChange> {
        let refuse = || SqlError::unsupported("this form of CALL or of ALTER SEQUENCE");
        let ast::FunctionArguments::List(list) = &call.args else { return Err(refuse()) };
        let is_restart = object_name(&call.name)? == crate::parse::RESTART_SEQUENCE;
        let mut arguments = list.args.iter().map(|argument| match argument {
            ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) => Some(expr),
            _ => None,
        });
        let name = match arguments.next().flatten() {
            Some(ast::Expr::Identifier(name)) if is_restart => fold(name),
            Some(ast::Expr::CompoundIdentifier(parts)) if is_restart => {
                object_name(&ast::ObjectName::from(parts.clone()))?
            }
            _ => return Err(refuse()),
        };
        let value = match arguments.next() {
            None => None,
            Some(expr) => {
                let bound = self.expression(expr.ok_or_else(refuse)?, &Scope::default())?;
                let value = bound.expr.as_constant().and_then(|value| value.as_ref().as_i64());
                Some(value.ok_or_else(refuse)?)
            }
        };
        if arguments.next().is_some() {
            return Err(refuse());
        }
        Ok(CatalogChange::RestartSequence(name, value))
    }
}
