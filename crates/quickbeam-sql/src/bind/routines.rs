//! Functions of the catalog: which one a call means, and the variables of their bodies.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use smol_str::SmolStr;
use sqlparser::ast::{BinaryOperator, Expr as Ast, FunctionArg, FunctionArgExpr};

use crate::bind::from::json_records::DefinedColumns;
use crate::bind::polymorphic::{VariadicForm, concrete_types, interned};
use crate::bind::{
    Binder, Derivation, FunctionCall, OutputColumn, Scope, TableFunctionKind, Typed, fold,
};
use crate::catalog::rights::denied;
use crate::catalog::{
    AclKind, ArgumentMode, CatalogSnapshot, ConcreteTypes, ObjectId, PUBLIC, Privileges, Routine,
    RoutineResult, Table, TransitionSide, lookup_name, split_lookup_name,
};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{
    Builtin, Expr, Implementation, RoutineCall, TextPosition, VARIADIC_PREFIX, overloads,
};
use crate::types::encoded::row_types::RowType;
use crate::types::{DataType, ElementType, EncodedType};

/// The variables that a statement in the body of a function can name.
pub trait VariableLookup {
    /// Returns the number of the parameter that stands for a variable, and its type. `is_column`:
    /// the name means a column, too.
    fn variable(&self, names: &[SmolStr], is_column: bool) -> Result<Option<GivenValue>>;

    /// Returns the transition table of that name, and the table whose rows it has.
    fn transition_table(&self, _name: &str) -> Option<(TransitionSide, Arc<Table>)> {
        None
    }
}

/// A parameter that stands for a variable.
#[derive(Clone, Copy, Debug)]
pub struct GivenValue {
    /// Its number.
    pub number: usize,
    /// Its type.
    pub data_type: DataType,
    /// Its collation.
    pub collation: Derivation,
}

/// Returns the entry that calls a routine with these arguments. Entries stay until the process
/// ends, since plans refer to them: one for each routine and number of arguments.
fn entry(
    routine: &Routine,
    arguments: &[DataType],
    result: DataType,
    types: Option<&'static ConcreteTypes>,
) -> &'static Builtin {
    type Key = (ObjectId, SmolStr, Vec<DataType>, DataType, RoutineCall);
    static ENTRIES: LazyLock<Mutex<HashMap<Key, &'static Builtin>>> = LazyLock::new(Mutex::default);
    let call = RoutineCall {
        id: routine.id,
        is_strict: routine.strict,
        volatility: routine.volatility,
        returns_set: routine.returns_set,
        types,
    };
    let key = (routine.id, routine.name.clone(), arguments.to_vec(), result, call);
    ENTRIES.lock().entry(key).or_insert_with(|| {
        let name: &'static str = Box::leak(routine.name.to_string().into_boxed_str());
        let arguments: &'static [DataType] = Box::leak(arguments.to_vec().into_boxed_slice());
        let call: &'static RoutineCall = Box::leak(Box::new(call));
        let implementation = Implementation::Routine(call);
        Box::leak(Box::new(Builtin::of_routine(name, arguments, result, implementation)))
    })
}

/// Returns the columns of a function's result.
pub(crate) fn result_columns(
    routine: &Routine,
    snapshot: &CatalogSnapshot,
) -> Result<Vec<OutputColumn>> {
    let column = |name: &SmolStr, data_type| OutputColumn::new(name.clone(), data_type);
    Ok(match &routine.result {
        RoutineResult::Value(data_type) => {
            let named = routine.outputs().next().and_then(|output| output.name.as_ref());
            vec![column(named.unwrap_or(&routine.name), *data_type)]
        }
        RoutineResult::Trigger => Vec::new(),
        RoutineResult::Pseudo(_) => vec![column(&routine.name, DataType::Text)],
        RoutineResult::Record => {
            routine.columns.iter().map(|(name, data_type)| column(name, *data_type)).collect()
        }
        RoutineResult::Void => {
            vec![column(&routine.name, DataType::Text)]
        }
        RoutineResult::Columns | RoutineResult::Procedure => routine
            .outputs()
            .enumerate()
            .map(|(at, output)| {
                let name = || smol_str::format_smolstr!("column{}", at + 1);
                column(&output.name.clone().unwrap_or_else(name), output.data_type)
            })
            .collect(),
        RoutineResult::Row(of) => {
            let fields = snapshot.row_data_type(*of)?.row_fields().iter();
            let table = snapshot.table(*of);
            let known = |name: &str| table?.columns.iter().find(|it| it.name == name);
            let collation =
                |name: &str| Derivation::of_column(known(name).and_then(|it| it.collation));
            let field = |(name, data_type): &(SmolStr, DataType)| OutputColumn {
                collation: collation(name),
                ..column(name, *data_type)
            };
            fields.map(field).collect()
        }
    })
}

/// Returns the one column of the result of a function that returns `record`, where no other columns
/// are defined.
pub(in crate::bind) fn whole_record(name: &SmolStr) -> DefinedColumns {
    vec![(name.clone(), DataType::RECORD)]
}

/// Returns the type of a function's result as one value, if it returns rows of several columns.
pub(crate) fn row_result(
    routine: &Routine,
    snapshot: &CatalogSnapshot,
) -> Result<Option<EncodedType>> {
    Ok(match &routine.result {
        RoutineResult::Row(of) => snapshot.row_data_type(*of)?.record(),
        RoutineResult::Columns => {
            let columns = result_columns(routine, snapshot)?.into_iter();
            let fields = columns.map(|it| (it.name, it.data_type)).collect();
            Some(RowType { name: None, fields }.intern())
        }
        _ => None,
    })
}

/// Whether a call with `count` arguments may mean a function.
fn accepts(routine: &Routine, count: usize, form: VariadicForm) -> bool {
    if routine.is_procedure() {
        return false;
    }
    let inputs = routine.inputs().count();
    let defaults = routine.inputs().filter(|it| it.default.is_some()).count();
    match (routine.is_variadic(), form) {
        (true, VariadicForm::Elements) if count >= inputs => true,
        (false, VariadicForm::Whole) => false,
        (true, VariadicForm::Elements) => count + defaults >= inputs && defaults > 0,
        _ => count <= inputs && count + defaults >= inputs,
    }
}

impl Binder<'_> {
    /// Returns the routines of a name along the search path, or in the schema that it has.
    pub(in crate::bind) fn routines_named(&self, name: &str) -> Vec<Arc<Routine>> {
        let Some(snapshot) = self.names.snapshot() else { return Vec::new() };
        if name.contains('\0') {
            let (schema, own) = split_lookup_name(name);
            return snapshot.routines_named(&lookup_name(&schema, own)).cloned().collect();
        }
        let Some(path) = &self.path else {
            return snapshot.routines_named(name).cloned().collect();
        };
        let mut found: Vec<Arc<Routine>> = Vec::new();
        for schema in path.iter() {
            for routine in snapshot.routines_named(&lookup_name(schema, name)) {
                // One of an earlier schema hides those with the same arguments.
                let types = routine.signature_key();
                if !found.iter().any(|other| other.signature_key() == types) {
                    found.push(routine.clone());
                }
            }
        }
        found
    }

    /// Returns the entries of the functions that a call with arguments of these types may mean.
    pub(in crate::bind) fn routine_entries(
        &self,
        name: &str,
        given: &[Option<DataType>],
    ) -> Vec<&'static Builtin> {
        let (mut entries, mut polymorphic) = (Vec::new(), Vec::new());
        let (own, form) = match name.strip_prefix(VARIADIC_PREFIX) {
            Some(own) => (own, VariadicForm::Whole),
            None => (name, VariadicForm::Elements),
        };
        let mut routines = self.routines_named(own);
        // A value has its base type, which a function of this type fits best.
        routines.sort_by_key(|it| it.inputs().filter(|input| input.domain.is_some()).count());
        for routine in routines {
            if !accepts(&routine, given.len(), form) {
                continue;
            }
            if let Some(entry) = self.routine_entry(&routine, given, form) {
                let is_plain = !routine.is_polymorphic();
                let has_domain = routine.inputs().any(|input| input.domain.is_some());
                let is_known = |it: &&'static Builtin| it.arguments == entry.arguments;
                if !(has_domain && entries.iter().any(is_known)) {
                    if is_plain { &mut entries } else { &mut polymorphic }.push(entry);
                }
            }
        }
        entries.append(&mut polymorphic);
        entries
    }

    /// Returns the entry of a function for a call with arguments of these types; `None` if it does
    /// not fit.
    fn routine_entry(
        &self,
        routine: &Routine,
        given: &[Option<DataType>],
        form: VariadicForm,
    ) -> Option<&'static Builtin> {
        let types = match routine.is_polymorphic() {
            true => Some(interned(concrete_types(routine, given, form)?)),
            false => None,
        };
        let made = types.map(|types| routine.with_types(types));
        let known = made.as_ref().unwrap_or(routine);
        let mut arguments: Vec<DataType> =
            known.inputs().map(|it| it.data_type.unconstrained()).collect();
        if routine.is_variadic() && form == VariadicForm::Elements {
            let DataType::Array(element) = arguments.pop()? else { return None };
            arguments.resize(given.len(), element.data_type());
        }
        let result = match &known.result {
            RoutineResult::Value(data_type) => data_type.unconstrained(),
            _ => {
                let snapshot = self.names.snapshot();
                let row = snapshot.and_then(|it| row_result(known, it).ok().flatten());
                row.map_or(DataType::Text, DataType::Encoded)
            }
        };
        Some(entry(routine, &arguments[..given.len()], result, types))
    }

    /// Returns whether a call may mean another function of the same schema, which takes the same
    /// types as the arguments that are written.
    pub(in crate::bind) fn is_rival(
        &self,
        call: &RoutineCall,
        chosen: &Builtin,
        other: &Builtin,
    ) -> bool {
        let Implementation::Routine(rival) = other.implementation else { return false };
        if rival.id == call.id || other.arguments != chosen.arguments {
            return false;
        }
        let Some(snapshot) = self.names.snapshot() else { return false };
        let (Some(one), Some(other)) = (snapshot.routine(call.id), snapshot.routine(rival.id))
        else {
            return false;
        };
        let is_plain = |routine: &Routine| {
            !routine.is_polymorphic() && routine.inputs().all(|input| input.domain.is_none())
        };
        one.schema == other.schema
            && one.is_variadic() == other.is_variadic()
            && is_plain(one)
            && is_plain(other)
    }

    /// Returns whether a name is that of a function of the catalog that returns rows.
    pub(in crate::bind) fn is_set_routine(&self, name: &str, count: usize) -> bool {
        let own = name.strip_prefix(VARIADIC_PREFIX).unwrap_or(name);
        overloads(name).is_empty()
            && self.routines_named(own).iter().any(|routine| {
                routine.returns_set && accepts(routine, count, VariadicForm::Elements)
            })
    }

    /// Returns the routine that an entry calls, after a check of the right to call it.
    pub(in crate::bind) fn routine_of(
        &self,
        call: &RoutineCall,
        position: u32,
    ) -> Result<Arc<Routine>> {
        let snapshot = self.names.snapshot();
        let routine = snapshot.and_then(|it| it.routine(call.id)).cloned();
        let routine = routine.ok_or_else(|| SqlError::internal("there is no such function"))?;
        self.check_execute(&routine).map_err(|error| error.at(position as usize))?;
        if self.view_depth == 0 {
            self.names.note_routine(routine.id);
        }
        if routine.result == RoutineResult::Trigger {
            let message = "trigger functions can only be called as triggers";
            let error = SqlError::new(SqlState::FeatureNotSupported, message);
            return Err(error.at(position as usize));
        }
        Ok(match call.types {
            Some(types) => Arc::new(routine.with_types(types)),
            None => routine,
        })
    }

    /// Checks that the role may call a routine.
    fn check_execute(&self, routine: &Routine) -> Result<()> {
        let (Some(role), Some(snapshot)) = (self.role, self.names.snapshot()) else {
            return Ok(());
        };
        let rights = snapshot.rights(role, routine.id, AclKind::Function);
        match rights.has(Privileges::EXECUTE) {
            true => Ok(()),
            false => Err(denied(routine.word(), &routine.name)),
        }
    }

    /// Binds a call of a function of the catalog in an expression: adds the default values.
    pub(in crate::bind) fn routine_call(
        &mut self,
        builtin: &'static Builtin,
        call: &'static RoutineCall,
        mut arguments: Vec<Expr>,
        position: u32,
    ) -> Result<Typed> {
        let routine = self.routine_of(call, position)?;
        let mut builtin = self.with_defaults(builtin, &routine, &mut arguments, position)?;
        if routine.result == RoutineResult::Record
            && let Implementation::Routine(call) = builtin.implementation
        {
            // The rows have the columns that the body gives them.
            let columns = whole_record(&routine.name);
            let types = ConcreteTypes { columns, ..call.types.cloned().unwrap_or_default() };
            let (arguments, types) = (builtin.arguments, Some(interned(types)));
            builtin = entry(&routine, arguments, DataType::RECORD, types);
        }
        let function = crate::expression::Function(builtin);
        let place = crate::expression::TextPosition(position);
        Ok(Typed::new(Expr::Call(function, arguments, place), builtin.result, position))
    }

    /// Adds the default values of the arguments that a call leaves out.
    pub(in crate::bind) fn with_defaults(
        &mut self,
        builtin: &'static Builtin,
        routine: &Routine,
        arguments: &mut Vec<Expr>,
        position: u32,
    ) -> Result<&'static Builtin> {
        let Implementation::Routine(call) = builtin.implementation else { return Ok(builtin) };
        let last = routine.inputs().count().wrapping_sub(1);
        let is_whole = |given: &DataType| matches!(given, DataType::Array(_));
        if routine.is_variadic() && builtin.arguments.get(last).is_some_and(|it| !is_whole(it)) {
            let elements = arguments.split_off(last);
            let element = builtin.arguments.last().copied().and_then(ElementType::new);
            let element = element.ok_or_else(|| SqlError::internal("elements without a type"))?;
            arguments.push(Expr::Array(element, elements, TextPosition(position)));
            self.check_domains(routine, arguments)?;
            let types: Vec<DataType> =
                routine.inputs().map(|it| it.data_type.unconstrained()).collect();
            return Ok(entry(routine, &types, builtin.result, call.types));
        }
        let missing: Vec<_> = routine.inputs().skip(arguments.len()).cloned().collect();
        if missing.is_empty() {
            self.check_domains(routine, arguments)?;
            return Ok(builtin);
        }
        for argument in missing {
            let text = argument.default.as_deref().unwrap_or("NULL");
            let parsed = crate::parse::expression(text)?;
            let typed = self.expression(&parsed, &Scope::default())?;
            arguments.push(self.coerce(typed, argument.data_type.unconstrained())?);
        }
        self.check_domains(routine, arguments)?;
        let types: Vec<DataType> =
            routine.inputs().map(|it| it.data_type.unconstrained()).collect();
        Ok(entry(routine, &types, builtin.result, call.types))
    }

    /// Returns the one column of the rows of a function that returns SETOF record, in a select
    /// list.
    pub(in crate::bind) fn whole_record_of(
        &self,
        name: &str,
        arguments: &[Typed],
        position: u32,
    ) -> Result<Option<DefinedColumns>> {
        let types: Vec<Option<DataType>> = arguments.iter().map(|it| it.data_type).collect();
        for entry in self.routine_entries(name, &types) {
            let Implementation::Routine(call) = entry.implementation else { continue };
            let routine = self.routine_of(call, position)?;
            if routine.result == RoutineResult::Record {
                return Ok(Some(whole_record(&routine.name)));
            }
        }
        Ok(None)
    }

    /// Binds a call of a function of the catalog that stands for rows.
    pub(in crate::bind) fn routine_rows(
        &mut self,
        name: &str,
        arguments: Vec<Typed>,
        position: u32,
        defined: &mut Option<DefinedColumns>,
    ) -> Result<Option<(FunctionCall, Vec<OutputColumn>)>> {
        let types: Vec<Option<DataType>> = arguments.iter().map(|it| it.data_type).collect();
        if self.routine_entries(name, &types).is_empty() {
            return Ok(None);
        }
        let (builtin, mut exprs) = self.chosen(name, arguments, position)?;
        let Implementation::Routine(call) = builtin.implementation else {
            return Ok(None);
        };
        let mut routine = self.routine_of(call, position)?;
        self.with_defaults(builtin, &routine, &mut exprs, position)?;
        let mut call = call;
        if routine.result == RoutineResult::Record {
            let columns = defined.take().ok_or_else(|| {
                let message =
                    "a column definition list is required for functions returning \"record\"";
                SqlError::new(SqlState::SyntaxError, message).at(position as usize)
            })?;
            let types = ConcreteTypes { columns, ..call.types.cloned().unwrap_or_default() };
            routine = Arc::new(routine.with_types(&types));
            let made = entry(&routine, builtin.arguments, builtin.result, Some(interned(types)));
            if let Implementation::Routine(made) = made.implementation {
                call = made;
            }
        }
        let Some(snapshot) = self.names.snapshot() else { return Ok(None) };
        let columns = result_columns(&routine, snapshot)?;
        let kind = TableFunctionKind::Routine(call, builtin.name);
        Ok(Some((FunctionCall { kind, arguments: exprs, width: columns.len() }, columns)))
    }

    /// Finds the procedure that CALL means, by the types of its arguments: those that a procedure
    /// takes in order, each with its default value if there is one.
    pub(crate) fn procedure(
        &mut self,
        schema: Option<&str>,
        name: &str,
        types: &[Option<DataType>],
    ) -> Result<Arc<Routine>> {
        let lookup = match schema {
            Some(schema) => smol_str::format_smolstr!("{schema}\0{name}"),
            None => SmolStr::new(name),
        };
        let all = self.routines_named(&lookup);
        let fits = |routine: &&Arc<Routine>| {
            let all: Vec<_> = routine.identity().collect();
            all.len() >= types.len() && all.iter().skip(types.len()).all(|it| it.default.is_some())
        };
        let procedures: Vec<_> = all.iter().filter(|it| it.is_procedure()).filter(fits).collect();
        let score = |routine: &Routine| {
            let pairs = routine.identity().zip(types);
            let one = |(argument, found): (&crate::catalog::Argument, &Option<DataType>)| match (
                argument.mode.is_input(),
                found,
            ) {
                (false, _) => Some(0),
                (true, None) => Some(usize::from(!argument.data_type.is_text())),
                (true, Some(found)) => {
                    super::expression::overloads::distance(*found, argument.data_type)
                }
            };
            pairs.map(one).sum::<Option<usize>>()
        };
        let mut scored: Vec<_> =
            procedures.iter().filter_map(|it| Some((score(it)?, (**it).clone()))).collect();
        scored.sort_by_key(|it| it.0);
        if let Some((_, found)) = scored.first() {
            self.check_execute(found)?;
            return Ok(found.clone());
        }
        let shown: Vec<String> = types
            .iter()
            .map(|it| it.map_or_else(|| "unknown".to_owned(), |it| it.unconstrained().to_string()))
            .collect();
        // CALL counts OUT arguments, too.
        let count =
            |it: &Routine| it.arguments.iter().filter(|it| it.mode != ArgumentMode::Table).count();
        let is_meant = |it: &&Arc<Routine>| !it.is_procedure() && count(it) == types.len();
        if let Some(function) = all.iter().find(is_meant) {
            let message = format!("{}({}) is not a procedure", function.name, shown.join(", "));
            return Err(SqlError::new(SqlState::WrongObjectType, message)
                .with_hint("To call a function, use SELECT."));
        }
        let message = format!("procedure {name}({}) does not exist", shown.join(", "));
        Err(SqlError::new(SqlState::UndefinedFunction, message).with_hint(
            "No procedure matches the given name and argument types. You might need to add explicit type casts.",
        ))
    }

    /// Returns the functions and procedures of a name.
    pub(crate) fn all_routines(&self, schema: Option<&str>, name: &str) -> Vec<Arc<Routine>> {
        match schema {
            Some(schema) => self.routines_named(&smol_str::format_smolstr!("{schema}\0{name}")),
            None => self.routines_named(name),
        }
    }

    /// Returns the procedures of a name.
    pub(crate) fn procedures(&self, schema: Option<&str>, name: &str) -> Vec<Arc<Routine>> {
        self.all_routines(schema, name).into_iter().filter(|it| it.is_procedure()).collect()
    }

    /// Refuses a call of a procedure as if it were a function.
    pub(in crate::bind) fn refuse_procedure(&self, name: &str, position: u32) -> Result<()> {
        match self.routines_named(name).iter().find(|it| it.is_procedure()) {
            None => Ok(()),
            Some(procedure) => {
                let message = format!("{} is a procedure", procedure.signature());
                Err(SqlError::new(SqlState::WrongObjectType, message)
                    .with_hint("To call a procedure, use CALL.")
                    .at(position as usize))
            }
        }
    }

    /// Returns the schema in which a routine is made, and its name.
    pub(crate) fn routine_schema(&self, schema: Option<&SmolStr>) -> Result<SmolStr> {
        match schema {
            Some(schema) if !self.names.has_schema(schema) => {
                Err(crate::schema::errors::no_schema(schema))
            }
            Some(schema) => Ok(schema.clone()),
            None => self.path.as_ref().map_or(Ok(PUBLIC), |_| self.creation_schema()),
        }
    }

    /// Returns the parameter that stands for a variable.
    pub(in crate::bind) fn variable(
        &mut self,
        names: &[SmolStr],
        is_column: bool,
        position: u32,
    ) -> Result<Option<Typed>> {
        if self.is_stored || self.view_depth > 0 {
            return Ok(None);
        }
        let found = self.names.variable(names, is_column);
        let found = found.map_err(|error| error.at(position as usize))?;
        let Some(GivenValue { number, data_type, collation }) = found else { return Ok(None) };
        self.set_parameter_collation(number, collation);
        if self.parameters.len() <= number {
            self.parameters.resize(number + 1, None);
        }
        self.parameters[number] = Some(data_type.unconstrained());
        Ok(Some(Typed::new(Expr::Parameter(number), data_type.unconstrained(), position)))
    }
}

/// Whether an argument is named, with `=>` or `:=`.
pub(in crate::bind) fn is_named(argument: &FunctionArg) -> bool {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Ast::BinaryOp { op, .. })) => {
            *op == BinaryOperator::Assignment
        }
        other => !matches!(other, FunctionArg::Unnamed(_)),
    }
}

impl Binder<'_> {
    /// Returns the arguments of a call in the order in which a function declares them, if some are
    /// named. Those between them that are missing have their default values.
    pub(in crate::bind) fn in_order(
        &self,
        name: &str,
        list: &[FunctionArg],
        position: u32,
    ) -> Result<Option<Vec<FunctionArg>>> {
        let first = list.iter().position(is_named);
        let Some(first) = first else { return Ok(None) };
        let (unnamed, named) = list.split_at(first);
        let mut values: Vec<(SmolStr, &Ast)> = Vec::with_capacity(named.len());
        for argument in named {
            match argument {
                FunctionArg::Named { name, arg: FunctionArgExpr::Expr(expr), .. } => {
                    values.push((fold(name), expr));
                }
                FunctionArg::ExprNamed {
                    name: Ast::Identifier(name),
                    arg: FunctionArgExpr::Expr(expr),
                    ..
                } => values.push((fold(name), expr)),
                FunctionArg::Unnamed(FunctionArgExpr::Expr(Ast::BinaryOp {
                    left,
                    op: BinaryOperator::Assignment,
                    right,
                })) => {
                    let Ast::Identifier(name) = &**left else { return Ok(None) };
                    values.push((fold(name), right));
                }
                FunctionArg::Unnamed(_) => {
                    let message = "positional argument cannot follow named argument";
                    return Err(SqlError::new(SqlState::SyntaxError, message).at(position as usize));
                }
                _ => return Ok(None),
            }
        }
        for routine in self.routines_named(name).into_iter().filter(|it| !it.is_variadic()) {
            let inputs: Vec<_> = routine.inputs().collect();
            let rest = inputs.get(unnamed.len()..).unwrap_or_default();
            let is_known = |name: &SmolStr| rest.iter().any(|it| it.name.as_ref() == Some(name));
            if !values.iter().all(|(name, _)| is_known(name)) {
                continue;
            }
            let mut ordered = unnamed.to_vec();
            for input in rest {
                let given = values.iter().find(|(name, _)| input.name.as_ref() == Some(name));
                let expr = match (given, &input.default) {
                    (Some((_, expr)), _) => (*expr).clone(),
                    (None, Some(default)) => crate::parse::expression(default)?,
                    (None, None) => break,
                };
                ordered.push(FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)));
            }
            if ordered.len() == inputs.len() {
                return Ok(Some(ordered));
            }
        }
        Ok(None)
    }
}
