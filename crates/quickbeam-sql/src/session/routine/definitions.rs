//! CREATE and DROP of functions and procedures.

use std::sync::Arc;

use smol_str::SmolStr;

use super::call::{CallTransaction, Invocation, TransactionEnd};
use super::types::{WrittenType, written_type};
use super::{CompiledRoutine, Language, Routine, RoutineResult};
use crate::bind::Binder;
use crate::catalog::rights::not_owner;
use crate::catalog::{
    Argument, ArgumentMode, DeclaredType, DomainUse, DropBehavior, NamedDomain, ObjectId,
    PseudoType, TypeKey, lookup_name,
};
use crate::compile::CompileContext;
use crate::error::{Result, SqlError, SqlState};
use crate::parse::plpgsql::{BlockBody, VariableKind, check_statements, with_fields};
use crate::parse::{CreateRoutine, DropRoutines, Name, RoutineStatement};
use crate::session::Session;
use crate::session::events::NoticeLevel;
use crate::session::utility::routine_changes::drop_users;
use crate::types::DataType;

#[cold]
fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::InvalidFunctionDefinition, message)
}

impl Session {
    /// Executes a statement about functions or procedures.
    pub(in crate::session) fn change_routine(
        &self,
        statement: &RoutineStatement,
        look: &CompileContext<'_>,
    ) -> Result<()> {
        match statement {
            RoutineStatement::Create(create) => self.create_routine(create, look),
            RoutineStatement::Aggregate(create) => self.create_aggregate(create, look),
            RoutineStatement::Alter(alter) => self.alter_routine(alter, look),
            RoutineStatement::Drop(drop) => self.drop_routines(drop, look),
            RoutineStatement::Trigger(trigger) => self.change_trigger(trigger, look),
        }
    }

    fn create_routine(&self, create: &CreateRoutine, look: &CompileContext<'_>) -> Result<()> {
        let binder = Binder::new(look, "");
        let (schema, name) = &create.name;
        let schema = binder.routine_schema(schema.as_ref())?;
        if let Some(role) = look.role {
            super::super::access::check_create_in(look.snapshot, role, &schema)?;
        }
        let arguments = written_arguments(create, look)?;
        let (result, returns_set) = result_of(create, &arguments, look)?;
        check_polymorphic(&arguments, &result)?;
        let result_domain = result_domain(create, &arguments, look)?;
        let routine = Routine {
            id: ObjectId(0),
            schema,
            name: name.clone(),
            language: create.language,
            arguments,
            result,
            result_domain,
            returns_set,
            volatility: create.volatility,
            strict: create.strict,
            security_definer: create.security_definer,
            settings: self.routine_settings(&[], &create.settings)?,
            body: create.body.as_str().into(),
            aggregate: None,
            columns: Vec::new(),
        };
        {
            let _settings = self.with_settings(&routine.settings)?;
            let look = &self.look(look.transaction, look.snapshot);
            self.check_body(&routine, look).map_err(|error| error.of_body(create.body_at))?;
        }
        store_routine(routine, create.replace, look)
    }

    /// Checks a body: one in SQL wholly, of one in PL/pgSQL the syntax.
    fn check_body(&self, routine: &Routine, look: &CompileContext<'_>) -> Result<()> {
        let given = match routine.result {
            RoutineResult::Trigger => super::triggers::trigger_variables(&Default::default()),
            _ => Vec::new(),
        };
        // A body may name types that a dump makes later.
        if self.setting_is_off("check_function_bodies") {
            return Ok(());
        }
        let compiled = Arc::new(CompiledRoutine::new(Arc::new(routine.clone()), look, given)?);
        if routine.language == Language::Sql && routine.is_polymorphic() {
            // Its types are not known yet.
            return Ok(());
        }
        if routine.language == Language::Sql {
            let place = CallTransaction::Lent(look.transaction);
            return Invocation::new(self, compiled, place, TransactionEnd::Refused).check_sql();
        }
        let body = &compiled.body;
        check_statements(body, routine)?;
        for fragment in &body.fragments {
            // The fields of a record are not known yet.
            let fields = |names: &[SmolStr]| {
                let found = BlockBody::lookup(&body.namespaces, fragment.namespace, names);
                let (variable, []) = found? else { return None };
                let kind = &body.variables.get(variable)?.kind;
                matches!(kind, VariableKind::Record(_)).then(|| vec![SmolStr::new_static("field")])
            };
            let written = with_fields(&fragment.text, &fields).map_err(SqlError::without_place)?;
            let text = written.as_deref().unwrap_or(&fragment.text);
            if crate::parse::command(text).map_err(SqlError::without_place)?.is_none() {
                crate::parse::statement(text).map_err(SqlError::without_place)?;
            }
        }
        Ok(())
    }

    fn setting_is_off(&self, name: &str) -> bool {
        self.variables.borrow().get(name).is_some_and(|value| &*value == "off")
    }

    fn drop_routines(&self, drop: &DropRoutines, look: &CompileContext<'_>) -> Result<()> {
        let mut routines = Vec::new();
        for (name, types) in &drop.names {
            let found = self.known_routine(drop.kind, name, types.as_deref(), look);
            let routine = match found {
                Err(error) if drop.if_exists && error.state() == SqlState::UndefinedFunction => {
                    let (what, name) = (drop.kind.to_lowercase(), &name.1);
                    let types = types.as_deref().unwrap_or_default().join(",");
                    self.notice(NoticeLevel::Notice, SqlState::SuccessfulCompletion, || {
                        format!("{what} {name}({types}) does not exist, skipping")
                    });
                    continue;
                }
                found => found?,
            };
            let owns_schema =
                |role| look.snapshot.owns(role, look.snapshot.schema_id(&routine.schema));
            if let Some(role) = look.role
                && !look.snapshot.owns(role, routine.id)
                && !owns_schema(role)
            {
                return Err(not_owner(routine.word(), &routine.name));
            }
            routines.push(routine);
        }
        let behavior = DropBehavior::from(drop.cascade);
        drop_users(&routines, behavior, look)?;
        look.catalog.drop_routines(look.transaction, &routines, behavior)
    }

    /// Returns the routine that a statement names, by the types of its arguments if they are given.
    pub(in crate::session) fn known_routine(
        &self,
        kind: &str,
        (schema, name): &Name,
        types: Option<&[String]>,
        look: &CompileContext<'_>,
    ) -> Result<Arc<Routine>> {
        let binder = Binder::new(look, "");
        let fits_kind = |routine: &Routine| match kind {
            "FUNCTION" => !routine.is_procedure() && routine.aggregate.is_none(),
            "PROCEDURE" => routine.is_procedure(),
            "AGGREGATE" => routine.aggregate.is_some(),
            _ => true,
        };
        let all = binder.all_routines(schema.as_deref(), name);
        let word = match kind {
            "FUNCTION" => "function",
            "PROCEDURE" => "procedure",
            "AGGREGATE" => "aggregate",
            _ => "routine",
        };
        let Some(types) = types else {
            let fitting: Vec<_> = all.into_iter().filter(|it| fits_kind(it)).collect();
            return match &fitting[..] {
                [only] => Ok(only.clone()),
                [] => {
                    let message = format!("could not find a {word} named \"{name}\"");
                    Err(SqlError::new(SqlState::UndefinedFunction, message))
                }
                _ => {
                    let message = format!("{word} name \"{name}\" is not unique");
                    Err(SqlError::new(SqlState::AmbiguousFunction, message).with_hint(format!(
                        "Specify the argument list to select the {word} unambiguously."
                    )))
                }
            };
        };
        let mut wanted = Vec::with_capacity(types.len());
        for text in types {
            match written_type(look, text)? {
                WrittenType::Value(declared) => {
                    wanted.push((declared.data_type.unconstrained(), None, declared.domain));
                }
                WrittenType::Row(_, data_type) => wanted.push((data_type, None, None)),
                WrittenType::Record => wanted.push((DataType::RECORD, None, None)),
                WrittenType::Pseudo(pseudo) => wanted.push((DataType::Text, Some(pseudo), None)),
                _ => return Err(SqlError::unsupported(format!("an argument of type {text}"))),
            }
        }
        let inputs = |routine: &Routine| -> Vec<TypeKey> {
            routine.inputs().map(Argument::type_key).collect()
        };
        let found = all
            .iter()
            .find(|it| it.signature_key() == wanted)
            .or_else(|| all.iter().find(|it| inputs(it) == wanted));
        match found {
            Some(found) if fits_kind(found) => Ok(found.clone()),
            Some(found) if kind == "FUNCTION" && found.aggregate.is_some() => {
                let message = format!("{} is an aggregate function", found.signature());
                Err(SqlError::new(SqlState::WrongObjectType, message)
                    .with_hint("Use DROP AGGREGATE to drop aggregate functions."))
            }
            Some(found) => {
                let article = if kind == "AGGREGATE" { "an aggregate function" } else { word };
                let a = if kind == "AGGREGATE" { "" } else { "a " };
                let message = format!("{} is not {a}{article}", found.signature());
                Err(SqlError::new(SqlState::WrongObjectType, message))
            }
            None => {
                let shown = |(data_type, pseudo, domain): &TypeKey| match (pseudo, domain) {
                    (Some(pseudo), _) => pseudo.name().to_owned(),
                    (None, Some(domain)) => look.snapshot.domain_shown(*domain),
                    (None, None) => data_type.to_string(),
                };
                let shown: Vec<String> = wanted.iter().map(shown).collect();
                let message = format!("{word} {name}({}) does not exist", shown.join(", "));
                Err(SqlError::new(SqlState::UndefinedFunction, message))
            }
        }
    }
}

/// Stores a new routine. `replace`: it may take the place of one that the role owns.
pub(in crate::session) fn store_routine(
    routine: Routine,
    replace: bool,
    look: &CompileContext<'_>,
) -> Result<()> {
    let lookup = lookup_name(&routine.schema, &routine.name);
    let types = routine.signature_key();
    let known = look.snapshot.routines_named(&lookup).find(|it| it.signature_key() == types);
    if let (Some(known), Some(role)) = (known, look.role)
        && !look.snapshot.owns(role, known.id)
    {
        return Err(not_owner(known.word(), &known.name));
    }
    look.catalog.create_routine(look.transaction, routine, replace)
}

/// Returns the type of an argument or a result that is declared so. The length in a domain counts.
fn argument_type(declared: DeclaredType) -> DataType {
    match declared.domain {
        Some(_) => declared.data_type,
        None => declared.data_type.unconstrained(),
    }
}

/// Returns a domain with its name.
fn named_domain(used: DomainUse, look: &CompileContext<'_>) -> NamedDomain {
    NamedDomain { used, shown: look.snapshot.domain_shown(used).into() }
}

/// Returns the arguments of a definition.
pub(in crate::session) fn written_arguments(
    create: &CreateRoutine,
    look: &CompileContext<'_>,
) -> Result<Vec<Argument>> {
    let mut arguments: Vec<Argument> = Vec::with_capacity(create.arguments.len());
    for written in &create.arguments {
        let (mut pseudo, mut domain) = (None, None);
        let data_type = match written_type(look, &written.data_type)? {
            WrittenType::Pseudo(found) => {
                pseudo = Some(found);
                DataType::Text
            }
            WrittenType::Value(declared) => {
                domain = declared.domain;
                argument_type(declared)
            }
            WrittenType::Row(_, data_type) => data_type,
            WrittenType::Record if create.language == Language::PlPgSql => DataType::RECORD,
            WrittenType::Record => {
                return Err(invalid("SQL functions cannot have arguments of type record"));
            }
            WrittenType::Void | WrittenType::Trigger => {
                let kind = if create.is_procedure { "procedures" } else { "functions" };
                let message = format!("{kind} cannot have arguments of type {}", written.data_type);
                return Err(invalid(message));
            }
        };
        let is_same = |it: &&Argument| it.name.is_some() && it.name == written.name;
        if arguments.iter().any(|it| is_same(&it) && it.mode.is_input() == written.mode.is_input())
        {
            let name = written.name.as_deref().unwrap_or_default();
            return Err(invalid(format!("parameter name \"{name}\" used more than once")));
        }
        if let Some(default) = &written.default {
            if !written.mode.is_input() {
                return Err(invalid("only input parameters can have default values"));
            }
            crate::parse::expression(default).map_err(SqlError::without_place)?;
        } else if written.mode.is_input() && arguments.iter().any(|it| it.default.is_some()) {
            let message = "input parameters after one with a default value must also have defaults";
            return Err(invalid(message));
        }
        let is_array = match pseudo {
            Some(pseudo) => pseudo.is_array(),
            None => matches!(data_type, DataType::Array(_)),
        };
        if written.variadic && !is_array {
            return Err(invalid("VARIADIC parameter must be an array"));
        }
        if written.mode.is_input() && arguments.iter().any(|it| it.variadic) {
            return Err(invalid("VARIADIC parameter must be the last input parameter"));
        }
        arguments.push(Argument {
            pseudo,
            domain: domain.map(|used| named_domain(used, look)),
            variadic: written.variadic,
            name: written.name.clone(),
            mode: written.mode,
            data_type,
            default: written.default.as_deref().map(Into::into),
        });
    }
    Ok(arguments)
}

/// Checks that arguments decide the polymorphic types of the result.
pub(in crate::session) fn check_polymorphic(
    arguments: &[Argument],
    result: &RoutineResult,
) -> Result<()> {
    let given: Vec<PseudoType> =
        arguments.iter().filter(|it| it.mode.is_input()).filter_map(|it| it.pseudo).collect();
    let of_result = match result {
        RoutineResult::Pseudo(pseudo) => Some(*pseudo),
        _ => None,
    };
    let outputs = arguments.iter().filter(|it| it.mode != ArgumentMode::In);
    let outputs = outputs.filter_map(|it| it.pseudo);
    for wanted in of_result.into_iter().chain(outputs) {
        let is_range = wanted == PseudoType::Range;
        let decides = |given: &PseudoType| match is_range {
            true => *given == PseudoType::Range,
            false => given.is_compatible() == wanted.is_compatible(),
        };
        if given.iter().any(decides) {
            continue;
        }
        let types = match (is_range, wanted.is_compatible()) {
            (true, _) => "anyrange or anymultirange",
            (_, true) => {
                "anycompatible, anycompatiblearray, anycompatiblenonarray, anycompatiblerange, or anycompatiblemultirange"
            }
            _ => "anyelement, anyarray, anynonarray, anyenum, anyrange, or anymultirange",
        };
        return Err(invalid("cannot determine result data type").with_detail(format!(
            "A result of type {} requires at least one input of type {types}.",
            wanted.name()
        )));
    }
    Ok(())
}

/// Returns the domain that the type of the value is which a definition returns.
fn result_domain(
    create: &CreateRoutine,
    arguments: &[Argument],
    look: &CompileContext<'_>,
) -> Result<Option<NamedDomain>> {
    let mut outputs = arguments.iter().filter(|it| it.mode != ArgumentMode::In);
    match (outputs.next(), outputs.next(), &create.returns) {
        _ if create.is_procedure => Ok(None),
        (Some(only), None, _) => Ok(only.domain.clone()),
        (None, None, Some((text, _))) => Ok(match written_type(look, text)? {
            WrittenType::Value(DeclaredType { domain: Some(used), .. }) => {
                Some(named_domain(used, look))
            }
            _ => None,
        }),
        _ => Ok(None),
    }
}

/// Returns what a definition returns, and whether it returns any number of rows.
fn result_of(
    create: &CreateRoutine,
    arguments: &[Argument],
    look: &CompileContext<'_>,
) -> Result<(RoutineResult, bool)> {
    if create.is_procedure {
        return Ok((RoutineResult::Procedure, false));
    }
    let outputs: Vec<&Argument> =
        arguments.iter().filter(|it| it.mode != ArgumentMode::In).collect();
    let of_outputs = || match &outputs[..] {
        [only] => only.pseudo.map_or(RoutineResult::Value(only.data_type), RoutineResult::Pseudo),
        _ => RoutineResult::Columns,
    };
    if create.returns_table {
        return Ok((of_outputs(), true));
    }
    let Some((text, set)) = &create.returns else {
        if outputs.is_empty() {
            return Err(invalid("function result type must be specified"));
        }
        return Ok((of_outputs(), false));
    };
    let written = written_type(look, text)?;
    if !outputs.is_empty() {
        let wanted = match (&written, &outputs[..]) {
            (WrittenType::Value(declared), [only]) => {
                declared.data_type.unconstrained() == only.data_type.unconstrained()
                    && declared.domain == only.domain.as_ref().map(|it| it.used)
            }
            (WrittenType::Record, [_, _, ..]) => true,
            (WrittenType::Pseudo(pseudo), [only]) => only.pseudo == Some(*pseudo),
            _ => false,
        };
        if !wanted {
            let shown = match &outputs[..] {
                [only] => only.type_name(),
                _ => "record".to_owned(),
            };
            let message = format!("function result type must be {shown} because of OUT parameters");
            return Err(invalid(message));
        }
        return Ok((of_outputs(), *set));
    }
    let result = match written {
        WrittenType::Value(declared) => RoutineResult::Value(argument_type(declared)),
        WrittenType::Row(id, _) => RoutineResult::Row(id),
        WrittenType::Void => RoutineResult::Void,
        WrittenType::Trigger => {
            if create.language == Language::Sql {
                return Err(invalid("SQL functions cannot return type trigger"));
            }
            if !arguments.is_empty() {
                let hint = "The arguments of the trigger can be accessed through TG_NARGS and TG_ARGV instead.";
                return Err(
                    invalid("trigger functions cannot have declared arguments").with_hint(hint)
                );
            }
            RoutineResult::Trigger
        }
        WrittenType::Pseudo(pseudo) => RoutineResult::Pseudo(pseudo),
        WrittenType::Record => RoutineResult::Record,
    };
    Ok((result, *set))
}
