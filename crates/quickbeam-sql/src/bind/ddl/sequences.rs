//! CREATE SEQUENCE, ALTER SEQUENCE … RESTART, and the sequence options of an identity column.

use sqlparser::ast::{self, Spanned};

use super::super::{Binder, Scope, object_name, types};
use super::{CatalogChange, ObjectKind};
use crate::catalog::SequenceOptions;
use crate::error::{Result, SqlError, SqlState};
use crate::types::DataType;

impl Binder<'_> {
    /// Reads an option of a sequence that is a signed number.
    fn number_of(&self, written: &ast::Expr) -> Result<i64> {
        let text = written.to_string().replace(' ', "");
        text.parse().map_err(|_| {
            let message = format!("{written} is no integer");
            let error = SqlError::new(SqlState::InvalidParameterValue, message);
            error.at(self.position(written) as usize)
        })
    }

    /// Binds the options of a sequence.
    pub(super) fn sequence_options(
        &self,
        list: &[ast::SequenceOptions],
        data_type: Option<DataType>,
    ) -> Result<SequenceOptions> {
        use ast::SequenceOptions as Said;
        let mut options = SequenceOptions { data_type, ..SequenceOptions::default() };
        for option in list {
            match option {
                Said::IncrementBy(by, _) => options.increment = Some(self.number_of(by)?),
                Said::StartWith(start, _) => options.start = Some(self.number_of(start)?),
                Said::MinValue(Some(least)) => options.minimum = Some(self.number_of(least)?),
                Said::MaxValue(Some(most)) => options.maximum = Some(self.number_of(most)?),
                Said::MinValue(None) | Said::MaxValue(None) => {}
                // Values are not handed out in advance.
                Said::Cache(count) => {
                    let count = self.number_of(count)?;
                    if count <= 0 {
                        let message = format!("CACHE ({count}) must be greater than zero");
                        return Err(SqlError::new(SqlState::InvalidParameterValue, message));
                    }
                }
                // The parser's flag means NO CYCLE.
                Said::Cycle(no) => options.cycle = !no,
            }
        }
        Ok(options)
    }

    /// CREATE SEQUENCE.
    pub fn create_sequence(
        &mut self,
        name: &ast::ObjectName,
        data_type: Option<&ast::DataType>,
        list: &[ast::SequenceOptions],
        owned_by: Option<&ast::ObjectName>,
        if_not_exists: bool,
    ) -> Result<CatalogChange> {
        if let Some(owner) = owned_by
            && !owner.to_string().eq_ignore_ascii_case("none")
        {
            let position = self.position(owner) as usize;
            return Err(SqlError::unsupported("OWNED BY a column").at(position));
        }
        let (folded, _) = self.new_relation(name, if_not_exists)?;
        let type_of = |written: &ast::DataType| {
            let known = types::data_type(written).and_then(|data_type| {
                let message = "sequence type must be smallint, integer, or bigint";
                let wrong = || SqlError::new(SqlState::InvalidParameterValue, message);
                data_type.is_integer().then_some(data_type).ok_or_else(wrong)
            });
            known.map_err(|error| error.at(self.place_of_type(written, name.span().end)))
        };
        let options = self.sequence_options(list, data_type.map(type_of).transpose()?)?;
        Ok(CatalogChange::CreateSequence(folded, options, if_not_exists))
    }

    /// Binds the procedure call that replaces ALTER SEQUENCE … RESTART.
    pub fn call_procedure(&mut self, call: &ast::Function) -> Result<CatalogChange> {
        let refuse = || SqlError::unsupported("this form of CALL or of ALTER SEQUENCE");
        let ast::FunctionArguments::List(list) = &call.args else { return Err(refuse()) };
        let is_restart = object_name(&call.name)? == crate::parse::RESTART_SEQUENCE;
        let mut arguments = list.args.iter().map(|argument| match argument {
            ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) => Some(expr),
            _ => None,
        });
        let name = match arguments.next().flatten() {
            Some(ast::Expr::Identifier(name)) if is_restart => vec![name.clone()],
            Some(ast::Expr::CompoundIdentifier(parts)) if is_restart => parts.clone(),
            _ => return Err(refuse()),
        };
        let name = self.known_object(ObjectKind::Sequence, &name.into(), false)?;
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
