//! CREATE AGGREGATE.

use super::Session;
use crate::bind::{Binder, StateCall, state_call};
use crate::catalog::describe::name_parts;
use crate::catalog::{
    AggregateDefinition, Argument, FunctionName, Language, ObjectId, PseudoType, Routine,
    RoutineResult, Volatility,
};
use crate::compile::CompileContext;
use crate::error::{Result, SqlError, SqlState};
use crate::parse::CreateAggregate;
use crate::session::access::check_create_in;
use crate::session::events::NoticeLevel;
use crate::session::routine::definitions::{check_polymorphic, store_routine, written_arguments};
use crate::session::routine::types::{WrittenType, written_type};
use crate::types::{DataType, TextSettings, parse_value};

/// The options, in the words of PostgreSQL. Those that only help PostgreSQL to compute in parts
/// have no effect.
const OPTIONS: [&str; 26] = [
    "sfunc",
    "sfunc1",
    "stype",
    "stype1",
    "sspace",
    "finalfunc",
    "finalfunc_extra",
    "finalfunc_modify",
    "combinefunc",
    "serialfunc",
    "deserialfunc",
    "initcond",
    "initcond1",
    "msfunc",
    "minvfunc",
    "mstype",
    "msspace",
    "mfinalfunc",
    "mfinalfunc_extra",
    "mfinalfunc_modify",
    "minitcond",
    "sortop",
    "parallel",
    "hypothetical",
    "basetype",
    "stype2",
];

#[cold]
fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::InvalidFunctionDefinition, message.into())
}

/// Returns the function that an option names; without a schema, the schema is empty.
fn function_named(text: &str) -> Result<FunctionName> {
    let parts = name_parts(text).unwrap_or_default();
    match &parts[..] {
        [name] => Ok(("".into(), name.into())),
        [schema, name] => Ok((schema.into(), name.into())),
        _ => Err(SqlError::new(SqlState::SyntaxError, format!("invalid name \"{text}\""))),
    }
}

/// Returns the type of the state.
fn state_type(text: &str, look: &CompileContext<'_>) -> Result<(DataType, Option<PseudoType>)> {
    match written_type(look, text)? {
        WrittenType::Value(declared) => Ok((declared.data_type.unconstrained(), None)),
        WrittenType::Row(_, data_type) => Ok((data_type, None)),
        WrittenType::Pseudo(pseudo) => Ok((DataType::Text, Some(pseudo))),
        _ => Err(invalid(format!("aggregate transition data type cannot be {text}"))),
    }
}

/// Checks the function of the state and the first state, and returns the call.
fn checked_step(
    definition: &AggregateDefinition,
    inputs: &[DataType],
    look: &CompileContext<'_>,
) -> Result<StateCall> {
    let state = definition.state;
    let types: Vec<DataType> = [state].into_iter().chain(inputs.iter().copied()).collect();
    let step = state_call(look, &definition.step, &types)?;
    if !step.data_type.is_same_kind(state) {
        let name = &step.function.1;
        let message = format!("return type of transition function {name} is not {state}");
        return Err(SqlError::new(SqlState::DatatypeMismatch, message));
    }
    let first_fits = inputs.first().is_some_and(|first| first.is_same_kind(state));
    match &definition.initial {
        Some(text) => {
            parse_value(text, state, &TextSettings::DEFAULT)?;
        }
        None if step.is_strict && !first_fits => {
            return Err(invalid(
                "must not omit initial value when transition function is strict and transition \
                 type is not compatible with input type",
            ));
        }
        None => {}
    }
    Ok(step)
}

impl Session {
    /// Returns the definition of an aggregate of these arguments, and the type of its value.
    fn aggregate_of(
        &self,
        create: &CreateAggregate,
        arguments: &[Argument],
        look: &CompileContext<'_>,
    ) -> Result<(AggregateDefinition, RoutineResult)> {
        for (name, _) in &create.options {
            if !OPTIONS.contains(&name.as_str()) {
                self.notice(NoticeLevel::Warning, SqlState::SyntaxError, || {
                    format!("aggregate attribute \"{name}\" not recognized")
                });
            }
        }
        if create.option(&["hypothetical"]).is_some() {
            return Err(SqlError::unsupported("CREATE AGGREGATE of a hypothetical set"));
        }
        let missing = |what: &str| invalid(format!("aggregate {what} must be specified"));
        let state = create.option(&["stype", "stype1"]).ok_or_else(|| missing("stype"))?;
        let step = create.option(&["sfunc", "sfunc1"]).ok_or_else(|| missing("sfunc"))?;
        let (state, pseudo) = state_type(state, look)?;
        let finish = create.option(&["finalfunc"]).map(function_named).transpose()?;
        let is_on = |text: &str| !matches!(&text.to_lowercase()[..], "false" | "off" | "0" | "no");
        let mut definition = AggregateDefinition {
            step: function_named(step)?,
            state,
            pseudo,
            initial: create.option(&["initcond", "initcond1"]).map(Into::into),
            finish,
            extra: create.option(&["finalfunc_extra"]).is_some_and(is_on),
        };
        if pseudo.is_some() || arguments.iter().any(|it| it.pseudo.is_some()) {
            let result = pseudo.map_or(RoutineResult::Value(state), RoutineResult::Pseudo);
            check_polymorphic(arguments, &result).map_err(|error| {
                let detail = error.detail().unwrap_or_default().to_owned();
                invalid("cannot determine transition data type").with_detail(detail)
            })?;
            let result = self.known_functions(&mut definition, result, look)?;
            return Ok((definition, result));
        }
        let inputs: Vec<DataType> = arguments.iter().map(|it| it.data_type).collect();
        let step = checked_step(&definition, &inputs, look)?;
        definition.step = step.function;
        let mut result = state;
        if let Some(name) = &definition.finish {
            let mut types = vec![state];
            if definition.extra {
                types.extend(inputs);
            }
            let finish = state_call(look, name, &types)?;
            (result, definition.finish) = (finish.data_type, Some(finish.function));
        }
        Ok((definition, RoutineResult::Value(result)))
    }

    /// Looks up the functions of an aggregate whose types calls decide, and returns the type of its
    /// value.
    fn known_functions(
        &self,
        definition: &mut AggregateDefinition,
        result: RoutineResult,
        look: &CompileContext<'_>,
    ) -> Result<RoutineResult> {
        let binder = Binder::new(look, "");
        let find = |name: &FunctionName| {
            let schema = Some(&*name.0).filter(|schema| !schema.is_empty());
            binder.all_routines(schema, &name.1).into_iter().next()
        };
        let named = |name: &FunctionName, found: &Option<_>| match found {
            Some(routine) => {
                let routine: &std::sync::Arc<Routine> = routine;
                (routine.schema.clone(), routine.name.clone())
            }
            None => ("pg_catalog".into(), name.1.clone()),
        };
        let step = find(&definition.step);
        definition.step = named(&definition.step, &step);
        let Some(finish) = definition.finish.clone() else { return Ok(result) };
        let found = find(&finish);
        definition.finish = Some(named(&finish, &found));
        Ok(match found {
            Some(routine) => routine.result.clone(),
            None => RoutineResult::Pseudo(PseudoType::Element),
        })
    }

    /// CREATE AGGREGATE.
    pub(in crate::session) fn create_aggregate(
        &self,
        create: &CreateAggregate,
        look: &CompileContext<'_>,
    ) -> Result<()> {
        let written = &create.routine;
        let (schema, name) = &written.name;
        let schema = Binder::new(look, "").routine_schema(schema.as_ref())?;
        if let Some(role) = look.role {
            check_create_in(look.snapshot, role, &schema)?;
        }
        let arguments = written_arguments(written, look)?;
        if arguments.iter().any(|it| !it.mode.is_input() || it.default.is_some()) {
            return Err(invalid("aggregates cannot have output arguments or default values"));
        }
        let (definition, result) = self.aggregate_of(create, &arguments, look)?;
        let routine = Routine {
            id: ObjectId(0),
            schema,
            name: name.clone(),
            language: Language::Sql,
            arguments,
            result,
            result_domain: None,
            returns_set: false,
            volatility: Volatility::Immutable,
            strict: false,
            security_definer: false,
            settings: Vec::new(),
            body: "".into(),
            aggregate: Some(Box::new(definition)),
            columns: Vec::new(),
        };
        store_routine(routine, written.replace, look)
    }
}
