//! CREATE SEQUENCE, ALTER SEQUENCE, and the sequence options of an identity column.

use smol_str::SmolStr;
use sqlparser::ast::{self, Spanned};

use super::super::{Binder, fold, object_name, types};
use super::{CatalogChange, ObjectKind};
use crate::bind::ddl::table_outline::OnMissing;
use crate::bind::ddl::table_outline::{OnExisting, Persistence};
use crate::catalog::{Relation, SequenceChanges, SequenceOptions, shown_name};
use crate::error::{Result, SqlError, SqlState};
use crate::parse::sequence_name;
use crate::schema::errors::{no_column, no_relation};
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
                    if let Some((schema, name)) = sequence_name(count) {
                        options.name = Some(self.lookup(schema.as_deref(), &name)?);
                        continue;
                    }
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
        persistence: Persistence,
    ) -> Result<CatalogChange> {
        let owner = owned_by.map(|owner| self.owner_of(&owner.0)).transpose()?.flatten();
        let existing = OnExisting::from(if_not_exists);
        let (folded, _) = self.new_relation_of(persistence, name, existing)?;
        let type_of = |written: &ast::DataType| {
            let known = types::data_type(written).and_then(|data_type| {
                let message = "sequence type must be smallint, integer, or bigint";
                let wrong = || SqlError::new(SqlState::InvalidParameterValue, message);
                data_type.is_integer().then_some(data_type).ok_or_else(wrong)
            });
            known.map_err(|error| error.at(self.place_of_type(written, name.span().end)))
        };
        let mut options = self.sequence_options(list, data_type.map(type_of).transpose()?)?;
        options.owned_by = owner;
        Ok(CatalogChange::CreateSequence(folded, options, if_not_exists))
    }

    /// Binds the procedure call that replaces ALTER SEQUENCE.
    pub fn call_procedure(&mut self, call: &ast::Function) -> Result<CatalogChange> {
        let (name, changes) = self.sequence_changes(call)?;
        let written = ast::ObjectName::from(name.clone());
        let lookup = self.relation_name(&written)?;
        if !changes.if_exists && self.names.relation(&lookup)?.is_none() {
            return Err(no_relation(&lookup).at(self.position(&written) as usize));
        }
        let name = self.known_object(
            ObjectKind::Sequence,
            &name.into(),
            OnMissing::from(changes.if_exists),
        )?;
        Ok(CatalogChange::AlterSequence(name, changes))
    }

    /// Returns the sequence and the changes of the procedure call that replaces ALTER SEQUENCE.
    pub(super) fn sequence_changes(
        &self,
        call: &ast::Function,
    ) -> Result<(Vec<ast::Ident>, SequenceChanges)> {
        let refuse = || SqlError::unsupported("this form of CALL or of ALTER SEQUENCE");
        let ast::FunctionArguments::List(list) = &call.args else { return Err(refuse()) };
        if object_name(&call.name)? != crate::parse::ALTER_SEQUENCE {
            return Err(refuse());
        }
        let arguments = list.args.iter().filter_map(|argument| match argument {
            ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) => Some(expr),
            _ => None,
        });
        let arguments: Vec<&ast::Expr> = arguments.collect();
        let Some((name, options)) = arguments.split_first() else { return Err(refuse()) };
        let name = match name {
            ast::Expr::Identifier(name) => vec![name.clone()],
            ast::Expr::CompoundIdentifier(parts) => parts.clone(),
            _ => return Err(refuse()),
        };
        let mut changes = SequenceChanges::default();
        for pair in options.chunks_exact(2) {
            let [option, value] = pair else { continue };
            self.sequence_change(&option.to_string(), value, &mut changes)?;
        }
        Ok((name, changes))
    }

    /// Reads an option of ALTER SEQUENCE. NULL is the default.
    fn sequence_change(
        &self,
        option: &str,
        value: &ast::Expr,
        changes: &mut SequenceChanges,
    ) -> Result<()> {
        let text = value.to_string();
        let is_null = text == "NULL";
        let number = || self.number_of(value);
        let optional = || if is_null { Ok(None) } else { number().map(Some) };
        let once = |is_given: bool| match is_given {
            true => Err(SqlError::new(SqlState::SyntaxError, "conflicting or redundant options")),
            false => Ok(()),
        };
        match option.trim_matches('\'') {
            "if exists" => changes.if_exists = true,
            "increment" => {
                once(changes.increment.replace(number()?).is_some())?;
            }
            "start" => {
                once(changes.start.replace(number()?).is_some())?;
            }
            "minvalue" => {
                once(changes.minimum.replace(optional()?).is_some())?;
            }
            "maxvalue" => {
                once(changes.maximum.replace(optional()?).is_some())?;
            }
            "restart" => {
                once(changes.restart.replace(optional()?).is_some())?;
            }
            "cycle" => {
                once(changes.cycle.replace(text.eq_ignore_ascii_case("true")).is_some())?;
            }
            "cache" => {
                let count = number()?;
                if count <= 0 {
                    let message = format!("CACHE ({count}) must be greater than zero");
                    return Err(SqlError::new(SqlState::InvalidParameterValue, message));
                }
            }
            "as" => {
                let parsed = crate::parse::data_types(text.trim_matches('\''))?;
                let known = parsed.first().map(types::data_type).transpose()?;
                let known = known.filter(|known| known.is_integer()).ok_or_else(|| {
                    let message = "sequence type must be smallint, integer, or bigint";
                    SqlError::new(SqlState::InvalidParameterValue, message)
                })?;
                once(changes.data_type.replace(known).is_some())?;
            }
            _ => {
                let parts = match value {
                    ast::Expr::Identifier(name) => vec![name.clone()],
                    ast::Expr::CompoundIdentifier(parts) => parts.clone(),
                    _ => Vec::new(),
                };
                let owner = self.owner_of(&ast::ObjectName::from(parts).0)?;
                once(changes.owned_by.replace(owner).is_some())?;
            }
        }
        Ok(())
    }

    /// Reads the column of OWNED BY; `None` is NONE.
    fn owner_of(&self, parts: &[ast::ObjectNamePart]) -> Result<Option<(SmolStr, SmolStr)>> {
        let Some((column, table)) = parts.split_last() else { return Ok(None) };
        let column = column.as_ident().map(fold).unwrap_or_default();
        if table.is_empty() {
            if column == "none" {
                return Ok(None);
            }
            let error = SqlError::new(SqlState::SyntaxError, "invalid OWNED BY option");
            return Err(error.with_hint("Specify OWNED BY table.column or OWNED BY NONE."));
        }
        let table = self.relation_name(&ast::ObjectName(table.to_vec()))?;
        match self.names.relation(&table)? {
            Some(Relation::Table(known)) if !known.is_database() => {
                self.check_owner(&Relation::Table(known.clone()), &known.name)?;
                known.column(&column).ok_or_else(|| no_column(&known.name, &column))?;
                Ok(Some((known.lookup_name(), column)))
            }
            Some(_) => {
                let name = shown_name(&table);
                let message = format!("sequence cannot be owned by relation \"{name}\"");
                Err(SqlError::new(SqlState::WrongObjectType, message))
            }
            None => Err(no_relation(&table)),
        }
    }
}
