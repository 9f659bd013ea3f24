//! Function calls: resolves names and argument types.

use smol_str::{SmolStr, format_smolstr};
use sqlparser::ast::{
    self, CeilFloorKind, DuplicateTreatment, Expr as Ast, FunctionArgumentClause,
    FunctionArguments, TrimWhereField,
};

use super::argument_forms::positional;
use super::overloads::catalog_functions::is_reserved_type;
use super::system_types::name_fields;
use crate::bind::grouping::aggregates::AggregateCall;
use crate::bind::grouping::made_aggregates::MadeCall;
use crate::bind::query::row_calls::{RowFunctions, RowsRefused};
use crate::bind::routines::is_named;
use crate::bind::types::undefined::{no_function, no_operator};
use crate::bind::{AggregateKind, Binder, Scope, Source, Typed, function_name};
use crate::catalog::describe::{name_parts, quoted_if_needed};
use crate::catalog::system::{domain_oid, type_oid};
use crate::catalog::{ObjectId, Privileges, Relation, Sequence};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{
    Builtin, Expr, Function, JsonRecords, TextPosition, VARIADIC_PREFIX, json_of_any,
    record_function,
};
use crate::schema::errors::{is_not, no_relation};
use crate::types::{DataType, EncodedKind, EncodedType, SystemType, Value};

/// The OID of the type of an untyped literal.
const UNKNOWN: i64 = 705;

/// The type `name`.
const NAME: DataType = DataType::System(SystemType::Name);

/// The name of the only database of an environment.
const DATABASE: &str = "quickbeam";

/// A call without arguments whose value depends on the transaction.
fn session_value(function: Function, data_type: DataType, position: u32) -> Typed {
    Typed::new(Expr::Call(function, Vec::new(), TextPosition(position)), data_type, position)
}

/// Returns whether a function of that name makes multiranges.
fn is_multirange(name: &str) -> bool {
    EncodedKind::named(name).is_some_and(EncodedKind::is_multirange)
}

/// Returns the name in a literal, also one that is cast to `regclass`.
fn named_in_literal(argument: &Typed) -> Option<SmolStr> {
    match &argument.expr {
        Expr::Constant(Value::Text(name)) => Some(name.clone()),
        Expr::Call(function, list, _) if function.0.name == "regclassin" => match &list[..] {
            [Expr::Constant(Value::Text(name))] => Some(name.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the word after the comma of `normalize(text, NFC)`.
fn normalization_form<'a>(name: &str, form: &'a ast::FunctionArg) -> Option<&'a ast::Ident> {
    match form {
        ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(Ast::Identifier(form))) => {
            Some(form).filter(|_| name == "normalize")
        }
        _ => None,
    }
}

/// Whether `=` takes values of two types without a cast. Then `nullif` has the type of the first.
fn is_compared_uncast(a: DataType, b: DataType) -> bool {
    use DataType::{Date, Double, Real, Timestamp, TimestampTz};
    let are_both = |is_member: fn(DataType) -> bool| is_member(a) && is_member(b);
    a != b
        && (are_both(DataType::is_integer)
            || are_both(|it| matches!(it, Real | Double))
            || are_both(|it| matches!(it, Date | Timestamp | TimestampTz)))
}

/// Casts a TIME that is compared with an INTERVAL.
fn comparable_times(arguments: Vec<Typed>) -> Vec<Typed> {
    let has = |wanted: DataType| arguments.iter().any(|it| it.data_type == Some(wanted));
    match has(DataType::Time) && has(DataType::Interval) {
        true => arguments.into_iter().map(Typed::time_as_interval).collect(),
        false => arguments,
    }
}

/// Returns the type of a choice between values: `nullif` compares VARCHAR as TEXT.
fn choice_type(special: Function, common: DataType) -> DataType {
    match common {
        DataType::Varchar(_) if special == Function::NULL_IF => DataType::Text,
        other => other,
    }
}

impl Binder<'_> {
    /// Binds `nullif` of two values that are compared without a cast. Returns `None` for others.
    fn null_if_uncast(
        &mut self,
        left: &Typed,
        right: &Typed,
        position: u32,
    ) -> Result<Option<Typed>> {
        let types = [left.data_type, right.data_type];
        let [Some(a), Some(b)] = types else { return Ok(None) };
        if crate::bind::types::common(a, b).is_none_or(|it| !it.has_order()) {
            return Err(no_operator("=", &types, position));
        }
        if !is_compared_uncast(a, b) || left.expr.is_volatile() {
            return Ok(None);
        }
        let made = self.null_if(&[left.clone(), right.clone()], position)?;
        Ok(made.map(|made| self.folded(made)))
    }

    /// Returns the OID of the domain of a column, or of a cast to a domain with constraints.
    fn domain_of(&self, value: &Typed) -> Option<i64> {
        let domain = match &value.expr {
            Expr::Domain(_, constraints) => constraints.used,
            Expr::Call(function, ..) => match function.0.implementation {
                crate::expression::Implementation::Routine(call) => {
                    let routine = self.names.snapshot()?.routine(call.id)?;
                    routine.result_domain.as_ref()?.used
                }
                _ => return None,
            },
            Expr::Column(at) => match &self.slots.get(at.slot)?.source {
                Source::Table(table) => table.columns.get(at.column)?.domain?,
                _ => return None,
            },
            _ => return None,
        };
        Some(domain_oid(domain))
    }
}

impl Binder<'_> {
    /// Binds a call of a function or an aggregate.
    pub(in crate::bind) fn call(&mut self, call: &ast::Function, scope: &Scope) -> Result<Typed> {
        let position = self.position(call);
        let name = function_name(&call.name).map_err(|error| error.at(position as usize))?;
        let refuse = |what: &str| Err(SqlError::unsupported(what).at(position as usize));
        let has_more = call.uses_odbc_syntax || call.parameters != FunctionArguments::None;
        if has_more || call.null_treatment.is_some() {
            return refuse("this form of a function call");
        }
        let (list, distinct, order) = match &call.args {
            FunctionArguments::None => (&[][..], false, &[][..]),
            FunctionArguments::Subquery(query) if name == "array" => {
                return self.array_of_query(query, position, scope);
            }
            FunctionArguments::Subquery(_) => return refuse("a subquery as argument"),
            FunctionArguments::List(list) => {
                let order = match &list.clauses[..] {
                    [] => &[][..],
                    [FunctionArgumentClause::OrderBy(order)] => &order[..],
                    _ => return refuse("this form of a function call"),
                };
                let distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
                (&list.args[..], distinct, order)
            }
        };
        if list.iter().any(is_named)
            && let Some(ordered) = self.in_order(&name, list, position)?
        {
            let list = ast::FunctionArgumentList {
                duplicate_treatment: None,
                args: ordered,
                clauses: Vec::new(),
            };
            let call = ast::Function { args: FunctionArguments::List(list), ..call.clone() };
            return self.call(&call, scope);
        }
        let routines = self.routines_named(&name);
        let is_variadic = routines.iter().any(|it| it.is_variadic());
        let plain =
            positional(&name, list, is_variadic).map_err(|error| error.at(position as usize))?;
        let is_spread = plain.as_ref().is_some_and(|plain| plain.is_spread);
        let name = if is_spread { format_smolstr!("{VARIADIC_PREFIX}{name}") } else { name };
        let list = plain.as_ref().map_or(list, |plain| &plain.arguments[..]);
        if routines.iter().any(|it| it.aggregate.is_some()) && call.within_group.is_empty() {
            let made = MadeCall::new(call, (list, distinct, order), position);
            return self.made_aggregate(&name, &routines, &made, scope);
        }
        if let Some(over) = &call.over {
            if !order.is_empty() || !call.within_group.is_empty() {
                return refuse("ORDER BY in the arguments of a window function");
            }
            let filter = call.filter.as_deref();
            return self.window_call(&name, (list, distinct), filter, over, position, scope);
        }
        if let Some(normalized) = self.normalized(&name, list, position, scope) {
            return normalized;
        }
        let is_over_set = !call.within_group.is_empty();
        if let Some(error) = self.missing_over(&name, position).filter(|_| !is_over_set) {
            return Err(error);
        }
        if name == "row" && call.name.0.len() == 1 {
            return self.row_call_constructor(list, position, scope);
        }
        if name == "grouping" {
            return self.grouping(list, position, scope);
        }
        let wrong_kind = |message: String| {
            Err(SqlError::new(SqlState::WrongObjectType, message).at(position as usize))
        };
        let within = &call.within_group[..];
        if let Some(kind) = AggregateKind::named(&name) {
            if kind.is_ordered_set() == within.is_empty() {
                let how = if within.is_empty() { "without" } else { "with" };
                let message = format!("function {name} {how} WITHIN GROUP does not exist");
                let error = SqlError::new(SqlState::UndefinedFunction, message);
                return Err(error.at(position as usize));
            }
            let order = if within.is_empty() { order } else { within };
            let filter = call.filter.as_deref();
            let call = AggregateCall { kind, arguments: list, distinct, order, filter, position };
            return self.aggregate(&call, scope);
        }
        if distinct || call.filter.is_some() || !order.is_empty() || !within.is_empty() {
            return wrong_kind(format!("{name} is not an aggregate function"));
        }
        if is_reserved_type(&call.name) {
            let message = format!("syntax error: {name} is the name of a type");
            return Err(SqlError::new(SqlState::SyntaxError, message).at(position as usize));
        }
        if let Some(cast) = self.cast_by_call(&name, list, position, scope) {
            return cast;
        }
        if let Some(meant) = self.operator_by_call(&name, list) {
            return self.nested(|binder| binder.expression(&meant, scope));
        }
        let is_record_set = JsonRecords::named(&name).is_some_and(|function| function.is_set);
        if is_record_set
            || Self::is_row_function(&name, list.len())
            || self.is_set_routine(&name, list.len())
        {
            return self.listed_row_function(&name, list, position, scope);
        }
        let arguments = |binder: &mut Self| {
            let mut arguments = Vec::with_capacity(list.len());
            for argument in list {
                let bound = binder.argument(argument, scope)?;
                arguments.push(bound.ok_or_else(|| {
                    SqlError::unsupported("this form of an argument").at(position as usize)
                })?);
            }
            Ok(arguments)
        };
        let arguments = match &*name {
            "coalesce" => {
                self.with_row_functions(RowFunctions::Refused(RowsRefused::Coalesce), arguments)?
            }
            _ => arguments(self)?,
        };
        self.function(&name, arguments, position)
    }

    /// Binds `normalize(text, form)`, if a call is one.
    fn normalized(
        &mut self,
        name: &str,
        list: &[ast::FunctionArg],
        position: u32,
        scope: &Scope,
    ) -> Option<Result<Typed>> {
        let [value, form] = list else { return None };
        let form = normalization_form(name, form)?;
        let mut bind = || {
            let form = self.normalization(form)?;
            let value = self.argument(value, scope)?.into_iter();
            self.function(name, value.chain([form]).collect(), position)
        };
        Some(bind())
    }

    /// Binds the form of `normalize(text, NFC)`.
    fn normalization(&self, form: &ast::Ident) -> Result<Typed> {
        let position = self.place_of(form);
        if !["NFC", "NFD", "NFKC", "NFKD"].iter().any(|it| form.value.eq_ignore_ascii_case(it)) {
            let message = format!("syntax error at or near \"{form}\"");
            return Err(SqlError::new(SqlState::SyntaxError, message).at(position));
        }
        let form = Expr::Constant(Value::text(&*form.value));
        Ok(Typed::new(form, DataType::Text, position as u32))
    }

    /// Binds `pg_typeof`.
    fn name_of_type(&self, argument: &Typed, position: u32) -> Typed {
        let number = argument.data_type.map_or(UNKNOWN, type_oid);
        let number = self.domain_of(argument).unwrap_or(number);
        let number = Expr::Constant(Value::Oid(number as u32));
        Typed::new(number, DataType::System(SystemType::Regtype), position)
    }

    /// Binds a multirange of three or more ranges: the sum of multiranges of two.
    fn sum_of_ranges(&mut self, name: &str, ranges: Vec<Typed>, position: u32) -> Result<Typed> {
        let mut ranges = ranges.into_iter().peekable();
        let mut sum: Option<Typed> = None;
        while ranges.peek().is_some() {
            let pair = ranges.by_ref().take(2).collect();
            let next = self.function(name, pair, position)?;
            sum = Some(match sum {
                Some(sum) => self.builtin("+", vec![sum, next], position)?,
                None => next,
            });
        }
        sum.ok_or_else(|| SqlError::internal("a multirange of no ranges"))
    }

    /// Binds a function by name with bound arguments.
    pub(in crate::bind) fn function(
        &mut self,
        name: &str,
        arguments: Vec<Typed>,
        position: u32,
    ) -> Result<Typed> {
        if let Some(found) = self.of_sequence_named(name, &arguments, position) {
            return found;
        }
        self.check_function(name).map_err(|error| error.at(position as usize))?;
        match (name, &arguments[..]) {
            ("current_user" | "current_role" | "session_user" | "user", []) => {
                let name = self.names.role_name(name == "session_user");
                let name = Expr::Constant(Value::text(&*name));
                return Ok(Typed::new(name, NAME, position));
            }
            ("enum_first" | "enum_last" | "enum_range", _) => {
                return self.enum_function(name, arguments, position);
            }
            ("current_database" | "current_catalog", []) => {
                let name = Expr::Constant(Value::text(DATABASE));
                return Ok(Typed::new(name, NAME, position));
            }
            ("current_timestamp" | "localtimestamp" | "current_time" | "localtime", list)
                if list.len() < 2 =>
            {
                return self.moment(name, arguments.into_iter().next(), position);
            }
            ("pg_typeof", [argument]) => {
                return Ok(self.name_of_type(argument, position));
            }
            ("pg_collation_for", [value]) => return self.collation_for(value, position),
            (_, [_, _, _, ..]) if is_multirange(name) => {
                return self.sum_of_ranges(name, arguments, position);
            }
            ("row_to_json", [row, ..])
                if arguments.len() <= 2
                    && row.data_type.is_some_and(|known| known.record().is_some())
                    && let Some(builtin) = record_function(name) =>
            {
                return self.json_of_row(builtin, arguments, position);
            }
            _ if let Some(function) = JsonRecords::named(name) => {
                return self.json_record_value(function, arguments, position);
            }
            ("lastval", []) => {
                return Ok(Typed::new(Expr::CurrentValue(None), DataType::BigInt, position));
            }
            ("currval" | "setval", [argument, ..]) if arguments.len() <= 3 => {
                if let Some(sequence) = named_in_literal(argument) {
                    return self.known_sequence(name, &sequence, arguments, position);
                }
                return self.of_computed_sequence(name, arguments, position);
            }
            ("nextval" | "pg_sequence_last_value", [_]) => {
                return self.of_computed_sequence(name, arguments, position);
            }
            _ => {}
        }
        let arguments = match &arguments[..] {
            [Typed { data_type: Some(known), .. }]
                if matches!(name, "quote_literal" | "quote_nullable") && !known.is_text() =>
            {
                let cast: Result<Vec<Typed>> =
                    arguments.into_iter().map(|it| self.cast(it, DataType::Text)).collect();
                cast?
            }
            _ if name == "nullif" => comparable_times(arguments),
            _ => arguments,
        };
        if let Some(letters) = self.collated_letters(name, &arguments, position)? {
            return Ok(letters);
        }
        let special = match name {
            "coalesce" => Function::COALESCE,
            "nullif" if let [left, right] = &arguments[..] => {
                if let Some(made) = self.null_if_uncast(left, right, position)? {
                    return Ok(made);
                }
                Function::NULL_IF
            }
            "greatest" => Function::GREATEST,
            "least" => Function::LEAST,
            "now" | "transaction_timestamp" if arguments.is_empty() => {
                return Ok(session_value(Function::NOW, DataType::TimestampTz, position));
            }
            "current_date" if arguments.is_empty() => {
                return Ok(session_value(Function::CURRENT_DATE, DataType::Date, position));
            }
            _ if arguments.len() == 1
                && let Some(builtin) = json_of_any(name) =>
            {
                return self.json_of_any(builtin, arguments, position);
            }
            _ => {
                let types: Vec<Option<DataType>> =
                    arguments.iter().map(|argument| argument.data_type).collect();
                return match self.array_function(name, &types, position) {
                    Some(found) => found.and_then(|it| self.call_array(it, arguments, position)),
                    None => self.called(name, arguments, position),
                };
            }
        };
        if arguments.is_empty() {
            return self.builtin(name, arguments, position);
        }
        if let Some(chosen) = self.collated_choice(special, &arguments, position)? {
            return Ok(chosen);
        }
        let (exprs, result) = self.unify(arguments, &name.to_ascii_uppercase())?;
        if matches!(name, "greatest" | "least") && !result.has_order() {
            let message = format!("could not identify a comparison function for type {result}");
            return Err(SqlError::new(SqlState::UndefinedFunction, message));
        }
        let call = Expr::Call(special, exprs, TextPosition(position));
        Ok(self.folded(Typed::new(call, choice_type(special, result), position)))
    }

    /// Binds a call of a function, or the field that `field(row)` means.
    fn called(&mut self, name: &str, arguments: Vec<Typed>, position: u32) -> Result<Typed> {
        let row = match &arguments[..] {
            [row] if row.data_type.is_some_and(|known| known.record().is_some()) => {
                Some(row.clone())
            }
            _ => None,
        };
        let called = self.builtin(name, arguments, position);
        let Some(row) = row.filter(|_| {
            called.as_ref().is_err_and(|error| error.state() == SqlState::UndefinedFunction)
        }) else {
            return called;
        };
        let fields = self.fields_of(&row).unwrap_or_default();
        let field = fields.into_iter().find(|(field, _)| field == name);
        field.map_or(called, |(_, value)| Ok(value))
    }

    /// Binds the call that `row.function` means; `None` if no function takes the row.
    pub(in crate::bind) fn call_of_row(
        &mut self,
        name: &str,
        row: Typed,
        position: u32,
    ) -> Result<Option<Typed>> {
        let is_json = matches!(name, "row_to_json" | "to_json" | "to_jsonb");
        let is_known = is_json || !self.routine_entries(name, &[row.data_type]).is_empty();
        if !is_known || self.is_set_routine(name, 1) {
            return Ok(None);
        }
        match self.function(name, vec![row], position) {
            Err(error) if error.state() == SqlState::UndefinedFunction => Ok(None),
            called => called.map(Some),
        }
    }

    /// Binds `to_json` and `to_jsonb`.
    fn json_of_any(
        &mut self,
        builtin: &'static Builtin,
        arguments: Vec<Typed>,
        position: u32,
    ) -> Result<Typed> {
        if arguments.iter().any(|argument| argument.data_type.is_none()) {
            let message = "could not determine polymorphic type because input has type unknown";
            let error = SqlError::new(SqlState::DatatypeMismatch, message);
            return Err(error.at(position as usize));
        }
        let mut list = Vec::with_capacity(1);
        for argument in arguments {
            // An object is written as its name.
            let is_reference = argument.data_type.is_some_and(|known| known.reference().is_some());
            list.push(match is_reference {
                true => self.through_name(argument, DataType::Text)?.expr,
                false => {
                    let mut value = argument.expr;
                    name_fields(&mut value);
                    value
                }
            });
        }
        let call = Expr::Call(Function(builtin), list, TextPosition(position));
        Ok(self.folded(Typed::new(call, builtin.result, position)))
    }

    /// Binds `row_to_json`.
    fn json_of_row(
        &mut self,
        builtin: &'static Builtin,
        arguments: Vec<Typed>,
        position: u32,
    ) -> Result<Typed> {
        let mut list = Vec::with_capacity(2);
        for mut argument in arguments {
            name_fields(&mut argument.expr);
            list.push(match list.is_empty() {
                true => argument.expr,
                false => self.coerce(argument, DataType::Boolean)?,
            });
        }
        let call = Expr::Call(Function(builtin), list, TextPosition(position));
        Ok(self.folded(Typed::new(call, builtin.result, position)))
    }

    /// Binds `current_timestamp` and related functions, with an optional precision of the second.
    fn moment(&mut self, name: &str, digits: Option<Typed>, position: u32) -> Result<Typed> {
        let place = TextPosition(position);
        let data_type = match name {
            "localtimestamp" => DataType::Timestamp,
            "localtime" => DataType::Time,
            "current_time" => EncodedKind::TimeTz.data_type(),
            _ => DataType::TimestampTz,
        };
        let mut expr = Expr::Call(Function::NOW, Vec::new(), place);
        if data_type != DataType::TimestampTz {
            expr = expr.cast(Some(DataType::TimestampTz), data_type, place);
        }
        if let Some(digits) = digits {
            let Expr::Constant(Value::Integer(number @ 0..)) = &digits.expr else {
                let message = format!("the precision of {name} is no number");
                return Err(SqlError::new(SqlState::SyntaxError, message).at(position as usize));
            };
            expr = match data_type {
                DataType::Encoded(zoned) => {
                    // The length of the type is one more than the digits.
                    let length = u32::try_from(*number).unwrap_or_default().min(6) + 1;
                    let rounded = DataType::Encoded(EncodedType::new(zoned.kind(), length));
                    expr.cast(Some(data_type), rounded, place)
                }
                _ => Expr::Call(Function::ROUND_SECOND, vec![expr, digits.expr], place),
            };
        }
        Ok(Typed::new(expr, data_type, position))
    }

    /// Binds `currval` and `setval`.
    fn known_sequence(
        &mut self,
        function: &str,
        name: &str,
        arguments: Vec<Typed>,
        position: u32,
    ) -> Result<Typed> {
        let types: Vec<_> = arguments.iter().map(|it| it.data_type).collect();
        let number = self.sequence(name, position)?;
        let wanted = match function {
            "currval" => Privileges::USAGE.and(Privileges::SELECT),
            _ => Privileges::UPDATE,
        };
        self.check_sequence(ObjectId(number), name, wanted)
            .map_err(|error| error.at(position as usize))?;
        let mut rest = arguments.into_iter().skip(1);
        let expr = match (function, rest.next(), rest.next()) {
            ("currval", None, _) => Expr::CurrentValue(Some(number)),
            ("setval", Some(value), is_called) => {
                let value = self.coerce(value, DataType::BigInt)?;
                let is_called = match is_called {
                    Some(is_called) => self.coerce(is_called, DataType::Boolean)?,
                    None => Expr::Constant(Value::Boolean(true)),
                };
                Expr::SetValue(number, Box::new([value, is_called]))
            }
            _ => {
                return Err(no_function(function, types, position));
            }
        };
        Ok(Typed::new(expr, DataType::BigInt, position))
    }

    fn next_value(&self, name: &str, position: u32) -> Result<Typed> {
        let number = self.sequence(name, position)?;
        let wanted = Privileges::USAGE.and(Privileges::UPDATE);
        self.check_sequence(ObjectId(number), name, wanted)
            .map_err(|error| error.at(position as usize))?;
        Ok(Typed::new(Expr::NextValue(number, DataType::BigInt), DataType::BigInt, position))
    }

    /// Binds a function of a sequence whose name is computed.
    fn of_computed_sequence(
        &mut self,
        function: &str,
        arguments: Vec<Typed>,
        position: u32,
    ) -> Result<Typed> {
        let mut list = Vec::with_capacity(arguments.len());
        for argument in arguments {
            list.push(match list.is_empty() {
                true => self.through_name(argument, DataType::System(SystemType::Regclass))?,
                false => argument,
            });
        }
        self.builtin(function, list, position)
    }

    /// Binds `nextval` and `pg_get_serial_sequence`, whose arguments are names in literals. Returns
    /// `None` for any other function or arguments.
    fn of_sequence_named(
        &self,
        function: &str,
        arguments: &[Typed],
        position: u32,
    ) -> Option<Result<Typed>> {
        match (function, arguments) {
            ("nextval", [sequence]) => {
                Some(self.next_value(&named_in_literal(sequence)?, position))
            }
            ("pg_get_serial_sequence", [table, column]) => {
                let (table, column) = (named_in_literal(table)?, named_in_literal(column)?);
                Some(self.serial_sequence(&table, &column, position))
            }
            _ => None,
        }
    }

    /// Binds `pg_get_serial_sequence`: the quoted name of the sequence that a column owns, or NULL.
    fn serial_sequence(&self, table: &str, column: &str, position: u32) -> Result<Typed> {
        let Some(Relation::Table(known)) = self.relation_in(table)? else {
            return Err(no_relation(table).at(position as usize));
        };
        let found = known.columns.iter().find(|known| known.name == column).ok_or_else(|| {
            let message = format!("column \"{column}\" of relation \"{table}\" does not exist");
            SqlError::new(SqlState::UndefinedColumn, message).at(position as usize)
        })?;
        let snapshot = self.names.snapshot();
        let sequence = snapshot.and_then(|it| it.owned_sequence(known.id, found.id));
        let quoted = |sequence: &Sequence| {
            let (schema, name) = (&sequence.schema, &sequence.name);
            format!("{}.{}", quoted_if_needed(schema), quoted_if_needed(name))
        };
        let value = sequence.map_or(Value::Null, |sequence| Value::text(quoted(sequence)));
        Ok(Typed::new(Expr::Constant(value), DataType::Text, position))
    }

    /// Looks up the relation named by a text.
    fn relation_in(&self, name: &str) -> Result<Option<Relation>> {
        let parts = name_parts(name);
        let folded = match parts.as_deref() {
            Some([name]) => self.lookup(None, name)?,
            Some([schema, name]) => self.lookup(Some(schema), name)?,
            _ => return Ok(None),
        };
        self.names.relation(&folded)
    }

    /// Looks up the number of the sequence named by a text.
    fn sequence(&self, name: &str, position: u32) -> Result<u32> {
        match self.relation_in(name)? {
            Some(Relation::Sequence(sequence)) => Ok(sequence.id.0),
            Some(_) => Err(is_not(name, "a sequence").at(position as usize)),
            None => Err(no_relation(name).at(position as usize)),
        }
    }

    /// Binds special syntax that is equivalent to a function call.
    pub(in crate::bind) fn named_syntax(&mut self, ast: &Ast, scope: &Scope) -> Result<Typed> {
        let position = self.position(ast);
        let (name, parts): (&str, Vec<&Ast>) = match ast {
            Ast::Substring { expr, substring_from, substring_for, shorthand, .. } => {
                let mut parts = vec![&**expr];
                let one = &Ast::Value(ast::Value::Number("1".into(), false).into());
                let bound = match (substring_from, substring_for) {
                    (None, Some(count)) => {
                        let typed = [&**expr, one, count].map(|part| self.expression(part, scope));
                        let typed: Result<Vec<Typed>> = typed.into_iter().collect();
                        return self.function("substring", typed?, position);
                    }
                    (from, count) => from.iter().chain(count),
                };
                parts.extend(bound.map(|part| &**part));
                (if *shorthand { "substr" } else { "substring" }, parts)
            }
            Ast::Extract { field, expr, .. } => {
                let name = field.to_string().to_lowercase();
                let name = name.trim_matches(['\'', '"']);
                let field = Expr::Constant(Value::text(name));
                let field = Typed::new(field, DataType::Text, position);
                let value = self.expression(expr, scope)?;
                return self.function("extract", vec![field, value], position);
            }
            Ast::AtTimeZone { timestamp, time_zone } => {
                ("timezone", vec![&**time_zone, &**timestamp])
            }
            Ast::IsNormalized { expr, form, negated } => {
                let form = form.map_or_else(|| "NFC".to_owned(), |form| form.to_string());
                let form =
                    Typed::new(Expr::Constant(Value::text(&*form)), DataType::Text, position);
                let value = self.expression(expr, scope)?;
                let is = self.function("is_normalized", vec![value, form], position)?;
                let expr = if *negated { Expr::Not(Box::new(is.expr)) } else { is.expr };
                return Ok(self.folded(Typed::condition(expr, position)));
            }
            Ast::Position { expr, r#in } => ("position", vec![r#in, expr]),
            Ast::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
                let mut parts = vec![&**expr, overlay_what, overlay_from];
                parts.extend(overlay_for.as_deref());
                ("overlay", parts)
            }
            Ast::Trim { expr, trim_where, trim_what, trim_characters } => {
                let name = match trim_where {
                    Some(TrimWhereField::Leading) => "ltrim",
                    Some(TrimWhereField::Trailing) => "rtrim",
                    Some(TrimWhereField::Both) | None => "btrim",
                };
                let mut parts = vec![&**expr];
                parts.extend(trim_what.as_deref());
                parts.extend(trim_characters.iter().flatten());
                (name, parts)
            }
            Ast::Ceil {
                expr,
                field: CeilFloorKind::DateTimeField(ast::DateTimeField::NoDateTime),
            } => ("ceil", vec![expr]),
            Ast::Floor {
                expr,
                field: CeilFloorKind::DateTimeField(ast::DateTimeField::NoDateTime),
            } => ("floor", vec![expr]),
            other => {
                return Err(
                    SqlError::unsupported(format!("the expression {other}")).at(position as usize)
                );
            }
        };
        let arguments: Result<Vec<Typed>> =
            parts.into_iter().map(|part| self.expression(part, scope)).collect();
        self.function(name, arguments?, position)
    }
}
