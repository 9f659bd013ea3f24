//! CALL and DO.

use std::ops::Range;
use std::sync::Arc;

use super::call::{CallTransaction, Invocation, TransactionEnd};
use super::{CompiledRoutine, Routine, block_routine};
use crate::bind::{Binder, OutputColumn};
use crate::compile::session_command::Settings;
use crate::error::{Result, SqlError, SqlState};
use crate::execute::Returned;
use crate::parse::plpgsql::CallArgument;
use crate::parse::{GivenArgument, Name};
use crate::session::Session;
use crate::session::prepared_statement::PreparedStatement;
use crate::session::statement_cache::Lease;
use crate::session::utility::CommandCall;
use crate::types::{DataType, Value};

/// Times that a CALL outside a transaction is tried when it gets into the way of others.
const ATTEMPTS: usize = 20;

/// Returns the texts of arguments in the order of a procedure, if they can be its arguments.
fn in_order(procedure: &Routine, given: &[GivenArgument]) -> Option<String> {
    let first = given.iter().position(|(named, _)| named.is_some())?;
    let (unnamed, named) = given.split_at(first);
    let declared: Vec<_> = procedure.identity().collect();
    let rest = declared.get(first..)?;
    let is_known =
        |(name, _): &GivenArgument| name.is_some() && rest.iter().any(|it| it.name == *name);
    if !named.iter().all(is_known) {
        return None;
    }
    let mut ordered: Vec<&str> = unnamed.iter().map(|(_, value)| value.as_str()).collect();
    for argument in rest {
        let own = named.iter().find(|(name, _)| *name == argument.name);
        let value = own.map(|(_, value)| value.as_str()).or(argument.default.as_deref());
        ordered.push(value?);
    }
    Some(ordered.join(", "))
}

/// Returns the texts of arguments of a VARIADIC procedure, the last ones as an array. Returns
/// `None` if they have other forms.
fn gathered(procedure: &Routine, given: &[GivenArgument]) -> Option<String> {
    let declared: Vec<_> = procedure.identity().collect();
    let (last, own) = declared.split_last().filter(|(last, _)| last.variadic)?;
    let text = |(_, value): &GivenArgument| value.clone();
    let (first, rest) = given.split_at_checked(own.len())?;
    if first.iter().any(|(named, _)| named.is_some()) || rest.is_empty() {
        return None;
    }
    let array = match (rest, last.data_type) {
        ([(Some(word), array)], _) if word == "variadic" => array.clone(),
        (_, DataType::Array(element)) if rest.iter().all(|(named, _)| named.is_none()) => {
            let elements: Vec<String> = rest.iter().map(text).collect();
            format!("ARRAY[{}]::{}[]", elements.join(", "), element.data_type())
        }
        _ => return None,
    };
    let all: Vec<String> = first.iter().map(text).chain([array]).collect();
    Some(all.join(", "))
}

/// Checks that no argument without a name follows one with a name.
fn check_positions(named: impl Iterator<Item = bool>) -> Result<()> {
    if named.skip_while(|is_named| !is_named).any(|is_named| !is_named) {
        let message = "positional argument cannot follow named argument";
        return Err(SqlError::new(SqlState::SyntaxError, message));
    }
    Ok(())
}

/// Returns the error of CALL with named arguments that no procedure takes.
#[cold]
fn no_procedure(name: &str, given: &[GivenArgument]) -> SqlError {
    let shown = given.iter().map(|(named, value)| match named {
        Some(named) => format!("{named} => {value}"),
        None => value.clone(),
    });
    let shown: Vec<String> = shown.collect();
    let message = format!("procedure {name}({}) does not exist", shown.join(", "));
    SqlError::new(SqlState::UndefinedFunction, message)
}

/// An argument that a procedure declares, as CALL in a body gives it.
pub(super) struct OrderedArgument {
    /// The number of the value that is given; `None`: its default.
    pub given: Option<usize>,
    /// The type of the value, if it is known.
    pub data_type: Option<DataType>,
}

/// Returns the arguments of CALL in the order in which a procedure of that name declares them.
pub(super) fn argument_order(
    name: &str,
    all: &[Arc<Routine>],
    arguments: &[CallArgument],
    types: &[Option<DataType>],
) -> Result<Vec<OrderedArgument>> {
    let at = |number: usize| OrderedArgument {
        given: Some(number),
        data_type: types.get(number).copied().flatten(),
    };
    let Some(first) = arguments.iter().position(|it| it.name.is_some()) else {
        return Ok((0..arguments.len()).map(at).collect());
    };
    check_positions(arguments.iter().map(|it| it.name.is_some()))?;
    let ordered = |procedure: &Routine| {
        let declared: Vec<_> = procedure.identity().collect();
        let (rest, named) = (declared.get(first..)?, arguments.get(first..)?);
        let is_known = |it: &CallArgument| rest.iter().any(|known| known.name == it.name);
        if !named.iter().all(is_known) {
            return None;
        }
        let mut order: Vec<OrderedArgument> = (0..first).map(at).collect();
        for argument in rest {
            order.push(match named.iter().position(|it| it.name == argument.name) {
                Some(number) => at(first + number),
                None if argument.default.is_some() => {
                    OrderedArgument { given: None, data_type: Some(argument.data_type) }
                }
                None => return None,
            });
        }
        Some(order)
    };
    all.iter().find_map(|procedure| ordered(procedure)).ok_or_else(|| {
        let shown = |(argument, found): (&CallArgument, &Option<DataType>)| {
            let found =
                found.map_or_else(|| "unknown".to_owned(), |it| it.unconstrained().to_string());
            (argument.name.clone(), found)
        };
        let given: Vec<GivenArgument> = arguments.iter().zip(types).map(shown).collect();
        no_procedure(name, &given)
    })
}

/// Returns the error of an OUT argument to which CALL gives no variable.
#[cold]
pub(super) fn not_writable(name: Option<&str>, number: usize) -> SqlError {
    let name = name.map_or_else(|| (number + 1).to_string(), |name| format!("\"{name}\""));
    let message = format!(
        "procedure parameter {name} is an output parameter but corresponding argument is not writable"
    );
    SqlError::new(SqlState::SyntaxError, message)
}

/// The type of an argument of CALL. A text may be a literal without a type.
pub(super) fn known(column: &OutputColumn) -> Option<DataType> {
    (!column.data_type.is_text()).then_some(column.data_type)
}

impl CompiledRoutine {
    /// Returns the values of the arguments that a procedure takes: those given without the places
    /// of OUT arguments, and default values for those that are not given.
    pub(super) fn input_values(
        &self,
        session: &Session,
        place: CallTransaction<'_>,
        given: Vec<Option<Value>>,
    ) -> Result<Vec<Value>> {
        let mut given = given.into_iter();
        let mut values = Vec::new();
        for argument in self.routine.identity() {
            let value = match (given.next().flatten(), &argument.default) {
                (Some(value), _) => value,
                (None, Some(default)) => place.with(session, |transaction| {
                    let mut statement = PreparedStatement::new(&format!("SELECT {default}"));
                    let rows = session.run(
                        &mut statement,
                        transaction,
                        &[],
                        crate::session::executor::ResultRows::Kept,
                    )?;
                    let row = rows.returned.into_iter().next().unwrap_or_default();
                    Ok(row.into_iter().next().unwrap_or(Value::Null))
                })?,
                (None, None) => Value::Null,
            };
            if argument.mode.is_input() {
                values.push(value);
            }
        }
        Ok(values)
    }
}

impl Session {
    /// Ends the transaction of a procedure and begins another one.
    pub(super) fn end_in_procedure(&self, commits: bool, chains: bool) -> Result<()> {
        let settings = self.open.borrow().as_ref().map(|open| open.settings);
        let settings = settings.filter(|_| chains);
        self.ended_in_procedure.set(true);
        if commits {
            self.commit()?
        } else {
            self.rollback()?
        }
        self.begin(settings.unwrap_or_default())
    }

    /// Runs a body in the transaction of the session; without one in one of its own, which the body
    /// may end.
    fn in_session<T>(&self, work: impl Fn(TransactionEnd) -> Result<T>) -> Result<T> {
        if self.in_transaction() {
            let place = CallTransaction::Session;
            let before = place.with(self, |transaction| Ok(transaction.savepoint()?))?;
            let kept = self.kept_mark();
            let done = work(TransactionEnd::Refused);
            place.with(self, |transaction| {
                if done.is_err() {
                    transaction.rollback_to(before)?;
                    self.restore_kept(kept);
                }
                transaction.release_savepoint(before);
                Ok(())
            })?;
            return done;
        }
        let mut attempt = 0;
        loop {
            attempt += 1;
            self.begin(Settings::default())?;
            self.ended_in_procedure.set(false);
            let done = work(TransactionEnd::Allowed);
            let done = match done {
                Ok(done) => self.commit().map(|()| done),
                Err(error) => {
                    if self.in_transaction() {
                        self.rollback()?;
                    }
                    Err(error)
                }
            };
            match done {
                Err(error)
                    if error.is_retryable()
                        && error.state() != SqlState::LockNotAvailable
                        && attempt < ATTEMPTS
                        && !self.ended_in_procedure.get() => {}
                done => return done,
            }
        }
    }

    /// CALL.
    pub(in crate::session) fn call(
        &self,
        (schema, name): &Name,
        arguments: &Range<usize>,
        call: &CommandCall<'_>,
    ) -> Result<(Arc<[OutputColumn]>, Returned)> {
        self.in_session(|end| {
            let text = call.text.get(arguments.clone()).unwrap_or_default();
            let ordered = self.ordered_arguments((schema.as_deref(), name), text)?;
            let (types, values) = match text.trim().is_empty() {
                true => (Vec::new(), Vec::new()),
                false => {
                    let text = format!("SELECT {}", ordered.as_deref().unwrap_or(text));
                    let statement = PreparedStatement::new(&text).with_types(call.types.clone());
                    let shift = arguments.start.saturating_sub("SELECT ".len());
                    let rows = self
                        .query(Lease::Owned(Box::new(statement)), call.parameters)
                        .map_err(|error| error.shifted(shift))?;
                    let types: Vec<_> = rows.columns().iter().map(known).collect();
                    (types, rows.collect()?.into_iter().next().unwrap_or_default())
                }
            };
            let place = CallTransaction::Session;
            let compiled = place.with(self, |transaction| {
                let snapshot = self.database.catalog.snapshot(transaction)?;
                let look = self.look(transaction, &snapshot);
                let found = Binder::new(&look, "").procedure(schema.as_deref(), name, &types)?;
                self.compiled(transaction, found.id)
            })?;
            let values = values.into_iter().map(Some).collect();
            let values = compiled.input_values(self, place, values)?;
            let routine = &compiled.routine;
            let is_alone = !routine.security_definer && routine.settings.is_empty();
            let end = if !is_alone { TransactionEnd::Refused } else { end };
            let rows = self.invoke(&compiled, place, values, end)?;
            Ok((compiled.columns.as_slice().into(), rows))
        })
    }

    /// Returns the arguments of CALL in the order in which a procedure declares them, if some are
    /// named. Those between them that are missing have their default values.
    fn ordered_arguments(
        &self,
        (schema, name): (Option<&str>, &str),
        text: &str,
    ) -> Result<Option<String>> {
        let has_names = text.contains("=>") || text.contains(":=");
        let all = self.read_catalog(|look| Ok(Binder::new(look, "").procedures(schema, name)))?;
        let variadic = match &all[..] {
            [only] if only.is_variadic() => Some(only),
            _ => None,
        };
        if !has_names && variadic.is_none() {
            return Ok(None);
        }
        let Some(given) = crate::parse::call_arguments(text)? else { return Ok(None) };
        if let Some(gathered) = variadic.and_then(|procedure| gathered(procedure, &given)) {
            return Ok(Some(gathered));
        }
        if given.iter().all(|(named, _)| named.is_none()) {
            return Ok(None);
        }
        check_positions(given.iter().map(|(named, _)| named.is_some()))?;
        let found = all.iter().find_map(|procedure| in_order(procedure, &given));
        found.map(Some).ok_or_else(|| no_procedure(name, &given))
    }

    /// Returns the types of the parameters in the arguments of CALL.
    pub(in crate::session) fn call_parameters(
        &self,
        arguments: &Range<usize>,
        statement: &PreparedStatement,
    ) -> Result<Arc<[DataType]>> {
        let text = statement.text.get(arguments.clone()).unwrap_or_default();
        if !text.contains('$') {
            return Ok(Arc::new([]));
        }
        let text = format!("SELECT {text}");
        let mut inner = PreparedStatement::new(&text).with_types(statement.types.clone());
        self.prepare(&mut inner)?;
        Ok(inner.parameters().into())
    }

    /// Returns the columns of the result of CALL, as far as they are known without its arguments.
    pub(in crate::session) fn call_columns(&self, (schema, name): &Name) -> Arc<[OutputColumn]> {
        let look_up = || -> Result<Arc<[OutputColumn]>> {
            let reader = self.database.environment.begin_read()?;
            let own = if self.in_transaction() {
                self.make_begun()?;
                Some(self.begun()?)
            } else {
                None
            };
            let transaction = match &own {
                Some(own) => own,
                None => quickbeam::ReadTransaction::as_transaction(&reader),
            };
            let snapshot = self.database.catalog.snapshot(transaction)?;
            let look = self.look(transaction, &snapshot);
            let all = Binder::new(&look, "").procedures(schema.as_deref(), name);
            let [only] = &all[..] else { return Ok(Arc::new([])) };
            Ok(crate::bind::routines::result_columns(only, &snapshot)?.into())
        };
        // An error is that of the execution, too.
        look_up().unwrap_or_else(|_| Arc::new([]))
    }

    /// DO.
    pub(in crate::session) fn run_block(&self, block: &Arc<str>) -> Result<()> {
        self.in_session(|end| {
            let place = CallTransaction::Session;
            let compiled = place.with(self, |transaction| {
                let snapshot = self.database.catalog.snapshot(transaction)?;
                let look = self.look(transaction, &snapshot);
                let routine = Arc::new(block_routine(block.clone()));
                Ok(Arc::new(CompiledRoutine::new(routine, &look, Vec::new())?))
            })?;
            self.invoke(&compiled, place, Vec::new(), end).map(|_| ())
        })
    }
}

impl Invocation<'_> {
    /// Checks that the statements of a body in SQL can be compiled, and give the result.
    pub(super) fn check_sql(&self) -> Result<()> {
        let mut last: Arc<[OutputColumn]> = Arc::new([]);
        for fragment in 0..self.compiled.fragments.len() {
            last = self.check(fragment).map_err(SqlError::without_place)?;
        }
        let wanted = &self.compiled.columns;
        let routine = &self.compiled.routine;
        if matches!(routine.result, crate::catalog::RoutineResult::Void)
            || wanted.is_empty() && routine.is_procedure()
        {
            return Ok(());
        }
        let is_whole = routine.result.is_row()
            && matches!(&last[..], [only] if only.data_type.record().is_some());
        let fits = is_whole
            || last.len() == wanted.len()
                && last.iter().zip(wanted).all(|(found, wanted)| {
                    let context = crate::types::cast_context(found.data_type, wanted.data_type);
                    matches!(
                        context,
                        Some(
                            crate::types::CastContext::Implicit
                                | crate::types::CastContext::Assignment
                        )
                    )
                });
        if fits {
            return Ok(());
        }
        let shown = match &wanted[..] {
            [only] => only.data_type.to_string(),
            _ => "record".to_owned(),
        };
        let message = format!("return type mismatch in function declared to return {shown}");
        let detail = match (&last[..], &wanted[..]) {
            ([], _) => {
                "Function's final statement must be SELECT or INSERT/UPDATE/DELETE RETURNING."
                    .to_owned()
            }
            ([found], [_]) => format!("Actual return type is {}.", found.data_type),
            (_, [_]) => "Final statement must return exactly one column.".to_owned(),
            (found, wanted) if found.len() < wanted.len() => {
                "Final statement returns too few columns.".to_owned()
            }
            (found, wanted) if found.len() > wanted.len() => {
                "Final statement returns too many columns.".to_owned()
            }
            _ => "Final statement returns columns of other types.".to_owned(),
        };
        Err(SqlError::new(SqlState::InvalidFunctionDefinition, message).with_detail(detail))
    }
}
