//! Functions and procedures.
//!
//! A body is kept as text and bound when it is executed. So it depends on no object: what it names
//! may be dropped and made again.

mod aggregates;
mod builtin_triggers;
mod pseudo_types;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

pub use self::aggregates::{AggregateDefinition, FunctionName};
pub use self::builtin_triggers::BuiltinTrigger;
pub use self::pseudo_types::{ConcreteTypes, PseudoType};
use super::names::{is_public, public};
use super::{DomainUse, NamedDomain, ObjectId};
use crate::error::Result;
use crate::types::DataType;

/// What an argument is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArgumentMode {
    /// The caller passes it.
    #[default]
    In,
    /// A column of the result.
    Out,
    /// Both.
    InOut,
    /// A column of RETURNS TABLE.
    Table,
}

impl ArgumentMode {
    /// Whether the caller passes a value.
    #[must_use]
    pub fn is_input(self) -> bool {
        matches!(self, ArgumentMode::In | ArgumentMode::InOut)
    }

    /// The letter in `pg_proc.proargmodes`.
    #[must_use]
    pub fn letter(self) -> &'static str {
        match self {
            ArgumentMode::In => "i",
            ArgumentMode::Out => "o",
            ArgumentMode::InOut => "b",
            ArgumentMode::Table => "t",
        }
    }
}

/// An argument of a routine, or a column of its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Argument {
    /// Its name, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<SmolStr>,
    /// What it is for.
    #[serde(default)]
    pub mode: ArgumentMode,
    /// Its type.
    pub data_type: DataType,
    /// The text of its default value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Arc<str>>,
    /// Its type, if calls decide it. Then `data_type` is TEXT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pseudo: Option<PseudoType>,
    /// The domain that its type is, or that of its elements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<NamedDomain>,
    /// Whether calls give the elements of its array one by one.
    #[serde(default, skip_serializing_if = "is_false")]
    pub variadic: bool,
}

impl Argument {
    /// Returns the name of its type.
    #[must_use]
    pub fn type_name(&self) -> String {
        match (self.pseudo, &self.domain) {
            (Some(pseudo), _) => pseudo.name().to_owned(),
            (None, Some(domain)) => domain.shown.to_string(),
            (None, None) => self.data_type.unconstrained().to_string(),
        }
    }

    /// Returns what tells its type from others.
    #[must_use]
    pub fn type_key(&self) -> TypeKey {
        (self.data_type.unconstrained(), self.pseudo, self.domain.as_ref().map(|it| it.used))
    }
}

/// What tells the type of an argument from others.
pub type TypeKey = (DataType, Option<PseudoType>, Option<DomainUse>);

/// The language of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Language {
    /// Statements.
    Sql,
    /// A block of PL/pgSQL.
    PlPgSql,
}

impl Language {
    /// The name in `pg_language`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Language::Sql => "sql",
            Language::PlPgSql => "plpgsql",
        }
    }
}

/// How the value of a function changes between calls with the same arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Volatility {
    /// Never.
    Immutable,
    /// Not within a statement.
    Stable,
    /// With each call.
    #[default]
    Volatile,
}

impl Volatility {
    /// The letter in `pg_proc.provolatile`.
    #[must_use]
    pub fn letter(self) -> &'static str {
        match self {
            Volatility::Immutable => "i",
            Volatility::Stable => "s",
            Volatility::Volatile => "v",
        }
    }
}

/// What a routine returns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoutineResult {
    /// A procedure returns nothing but its OUT arguments.
    Procedure,
    /// RETURNS void.
    Void,
    /// RETURNS trigger.
    Trigger,
    /// A value.
    Value(DataType),
    /// The OUT arguments, or the columns of RETURNS TABLE.
    Columns,
    /// A row of a table or composite type.
    Row(ObjectId),
    /// A value of a type that calls decide.
    Pseudo(PseudoType),
    /// A row whose columns each call names.
    Record,
}

impl RoutineResult {
    /// Returns whether calls return rows of several columns, also as one value.
    #[must_use]
    pub fn is_row(&self) -> bool {
        matches!(self, RoutineResult::Row(_) | RoutineResult::Columns | RoutineResult::Record)
    }
}

fn is_false(value: &bool) -> bool {
    !*value
}

/// A function or procedure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Routine {
    /// Its number.
    pub id: ObjectId,
    /// Its schema.
    #[serde(default = "public", skip_serializing_if = "is_public")]
    pub schema: SmolStr,
    /// Its name.
    pub name: SmolStr,
    /// The language of its body.
    pub language: Language,
    /// Its arguments, with those of the result.
    pub arguments: Vec<Argument>,
    /// What it returns.
    pub result: RoutineResult,
    /// The domain that the type of the value is, or that of its elements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_domain: Option<NamedDomain>,
    /// Whether it returns any number of rows.
    #[serde(default, skip_serializing_if = "is_false")]
    pub returns_set: bool,
    /// Whether its value changes.
    pub volatility: Volatility,
    /// Whether the result is NULL if an argument is.
    #[serde(default, skip_serializing_if = "is_false")]
    pub strict: bool,
    /// Whether it runs with the rights of its owner.
    #[serde(default, skip_serializing_if = "is_false")]
    pub security_definer: bool,
    /// The settings that its calls have, with their values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<(SmolStr, SmolStr)>,
    /// Its body.
    pub body: Arc<str>,
    /// How its value is computed, if it is an aggregate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregate: Option<Box<AggregateDefinition>>,
    /// The columns that a call of a function that returns `record` names.
    #[serde(skip)]
    pub columns: Vec<(SmolStr, DataType)>,
}

impl Routine {
    /// Whether it is a procedure.
    #[must_use]
    pub fn is_procedure(&self) -> bool {
        self.result == RoutineResult::Procedure
    }

    /// Its kind, as messages name it.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match (&self.aggregate, self.is_procedure()) {
            (Some(_), _) => "aggregate",
            (None, true) => "procedure",
            (None, false) => "function",
        }
    }

    /// Calls `resolve` with each type in the definition.
    pub(crate) fn resolve_types(
        &mut self,
        resolve: &dyn Fn(&mut DataType) -> Result<()>,
    ) -> Result<()> {
        let mut arguments = self.arguments.iter_mut();
        arguments.try_for_each(|argument| resolve(&mut argument.data_type))?;
        if let Some(aggregate) = &mut self.aggregate {
            resolve(&mut aggregate.state)?;
        }
        match &mut self.result {
            RoutineResult::Value(data_type) => resolve(data_type),
            _ => Ok(()),
        }
    }

    /// Calls `name` with each domain in the definition.
    pub(crate) fn name_domains(&mut self, name: &dyn Fn(DomainUse) -> SmolStr) {
        let arguments = self.arguments.iter_mut().filter_map(|it| it.domain.as_mut());
        for domain in arguments.chain(&mut self.result_domain) {
            domain.shown = name(domain.used);
        }
    }

    fn domains(&self) -> impl Iterator<Item = &NamedDomain> {
        let arguments = self.arguments.iter().filter_map(|it| it.domain.as_ref());
        arguments.chain(&self.result_domain)
    }

    /// Whether an argument or the result has a domain.
    pub(crate) fn has_domain(&self, id: ObjectId) -> bool {
        self.domains().any(|it| it.used.id() == id)
    }

    /// Whether an argument or the result has any domain.
    pub(crate) fn has_domains(&self) -> bool {
        self.domains().next().is_some()
    }

    /// Returns the types in the definition.
    pub(crate) fn types(&self) -> Vec<DataType> {
        let mut all: Vec<DataType> = self.arguments.iter().map(|it| it.data_type).collect();
        if let RoutineResult::Value(data_type) = self.result {
            all.push(data_type);
        }
        all.extend(self.aggregate.as_ref().map(|aggregate| aggregate.state));
        all
    }

    /// Returns whether an argument or the result has a property.
    pub(crate) fn has_type(&self, has: &dyn Fn(DataType) -> bool) -> bool {
        self.arguments.iter().any(|argument| has(argument.data_type))
            || matches!(self.result, RoutineResult::Value(data_type) if has(data_type))
            || self.aggregate.as_ref().is_some_and(|aggregate| has(aggregate.state))
    }

    /// The arguments that callers pass.
    pub fn inputs(&self) -> impl Iterator<Item = &Argument> {
        self.arguments.iter().filter(|argument| argument.mode.is_input())
    }

    /// The arguments that identify it: those passed, and those of a procedure all.
    pub fn identity(&self) -> impl Iterator<Item = &Argument> {
        let all = self.is_procedure();
        self.arguments.iter().filter(move |argument| all || argument.mode.is_input())
    }

    /// The OUT arguments and the columns of RETURNS TABLE.
    pub fn outputs(&self) -> impl Iterator<Item = &Argument> {
        self.arguments.iter().filter(|argument| argument.mode != ArgumentMode::In)
    }

    /// What tells the types of the identifying arguments from others.
    #[must_use]
    pub fn signature_key(&self) -> Vec<TypeKey> {
        self.identity().map(Argument::type_key).collect()
    }

    /// The names of the types of the identifying arguments.
    #[must_use]
    pub fn signature_names(&self) -> Vec<String> {
        self.identity().map(Argument::type_name).collect()
    }

    /// Whether calls decide types of it.
    #[must_use]
    pub fn is_polymorphic(&self) -> bool {
        let is_pseudo = matches!(self.result, RoutineResult::Pseudo(_) | RoutineResult::Record);
        is_pseudo || self.arguments.iter().any(|argument| argument.pseudo.is_some())
    }

    /// Whether the last argument that callers pass is VARIADIC.
    #[must_use]
    pub fn is_variadic(&self) -> bool {
        self.inputs().last().is_some_and(|argument| argument.variadic)
    }

    /// Returns it with the types of a call.
    #[must_use]
    pub fn with_types(&self, types: &ConcreteTypes) -> Routine {
        let mut made = self.clone();
        for (argument, data_type) in made.arguments.iter_mut().zip(&types.arguments) {
            argument.data_type = *data_type;
            argument.pseudo = None;
        }
        if let Some(result) = types.result {
            made.result = RoutineResult::Value(result);
        }
        made.columns.clone_from(&types.columns);
        made
    }

    /// The name with the types of its arguments, as messages show it.
    #[must_use]
    pub fn signature(&self) -> String {
        format!("{}({})", self.name, self.signature_names().join(","))
    }
}
