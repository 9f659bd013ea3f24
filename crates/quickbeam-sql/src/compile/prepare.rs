//! From text to something that can run.

use std::sync::Arc;

use quickbeam::{CHECKS_INVARIANTS, invariant};
use sqlparser::ast::{self, DescribeAlias, Statement as Ast};

use super::create_as::{CreateAsTarget, into_target};
use super::returned_rows::with_returned_rows;
use super::session_command::control_of;
use super::{CompileContext, CopyFrom, Prepared, Program};
use crate::bind::{
    Binder, BoundStatement, CatalogChange, CopyForm, CopyPlace, OutputColumn, Persistence,
    SlotShape, Source, check_create_table, has_changing_with, named_outputs,
};
use crate::catalog::Table;
use crate::error::{Result, SqlError, SqlState};
use crate::execute::{
    ChangingWithExec, InsertExec, InsteadExec, KeptKeys, MergeExec, OperatorBuilder, RowCounts,
    UpdateExec,
};
use crate::expression::{Clock, Slot};
use crate::parse::Command;
use crate::parse::ExplainFormat;
use crate::plan::{self, Action, ChangePlan, ExecutionMode, InsertPlan, Plan};
use crate::schema::errors::no_row_security;
use crate::types::CastContext;
use crate::types::{DAY, DataType, Value, checked_text, is_date, is_timestamp};

impl CompileContext<'_> {
    /// Prepares the only statement of a text, whose syntax tree is known if it was just parsed.
    pub fn prepare(&self, text: &str, parsed: Option<Box<Ast>>) -> Result<Prepared> {
        let parsed = match parsed {
            Some(parsed) => Some(parsed),
            None => {
                let change = match crate::parse::command(text)? {
                    Some(Command::Access(statement)) => Some(CatalogChange::Access(statement)),
                    Some(Command::Routine(statement)) => Some(CatalogChange::Routine(statement)),
                    Some(Command::Type(statement)) => Some(CatalogChange::Type(statement)),
                    Some(Command::Collation(statement)) => {
                        Some(CatalogChange::Collation(statement))
                    }
                    Some(Command::Refresh(statement)) => {
                        return Ok(self.prepared(self.refresh(&statement)?));
                    }
                    Some(Command::Comment(statement)) => Some(CatalogChange::Comment(statement)),
                    Some(Command::Relation(statement)) => Some(CatalogChange::Relation(statement)),
                    Some(Command::Schema(statement)) => Some(CatalogChange::Schema(statement)),
                    _ => None,
                };
                if let Some(change) = change {
                    return Ok(self.prepared(Program::Catalog(change)));
                }
                crate::parse::statement(text)?.map(Box::new)
            }
        };
        let prepared = match parsed {
            Some(parsed) => self.statement(&parsed, text),
            None => Ok(self.prepared(Program::Nothing)),
        };
        let is_in_text =
            |error: &SqlError| error.position().is_none_or(|at| text.is_char_boundary(at));
        invariant!(BIND_2, prepared.as_ref().err().is_none_or(is_in_text), "a place beyond {text}");
        prepared
    }

    fn prepared(&self, work: Program) -> Prepared {
        Prepared {
            snapshot: Some(self.snapshot.clone()),
            work,
            columns: Arc::new([]),
            parameters: Vec::new(),
            slots: Vec::new(),
            values: Vec::new(),
            executions: 0,
            reads_only: false,
            planned_for: None,
        }
    }

    /// Prepares a statement of that text.
    pub fn statement(&self, parsed: &Ast, text: &str) -> Result<Prepared> {
        // What steers does not run here: it needs no plan.
        if control_of(parsed)?.is_some() {
            return Ok(self.prepared(Program::Nothing));
        }
        if let Ast::Explain {
            describe_alias: DescribeAlias::Explain,
            analyze,
            statement,
            options,
            ..
        } = parsed
        {
            let format = ExplainFormat::of(options.as_deref());
            return self.explain(statement, text, *analyze, format);
        }
        if let Some(plan) = self.plan(parsed, text)? {
            return self.program(plan, RowCounts::Off);
        }
        let mut binder = Binder::new(self, text);
        let work = match parsed {
            Ast::CreateTable(create) => {
                check_create_table(create)?;
                match &create.query {
                    Some(query) => {
                        self.create_as(&CreateAsTarget::of_table(create)?, query, text)?
                    }
                    None => Program::Catalog(binder.create_table(create)?),
                }
            }
            Ast::Query(query) => match into_target(query)? {
                Some((name, persistence, query)) => {
                    self.create_as(&CreateAsTarget::of_into(&name, persistence), &query, text)?
                }
                None => return Err(SqlError::internal("a query without a plan")),
            },
            Ast::CreateSchema {
                schema_name,
                or_replace: false,
                if_not_exists,
                with: None,
                options: None,
                default_collate_spec: None,
                clone: None,
            } => Program::Catalog(binder.create_schema(schema_name, *if_not_exists)?),
            Ast::AlterSchema(alter) => match binder.alter_schema(alter)? {
                Some(change) => Program::Catalog(change),
                None => Program::Nothing,
            },
            Ast::CreateIndex(create) => Program::Catalog(binder.create_index(create)?),
            Ast::CreateView(create) if create.materialized => {
                self.create_materialized(create, text)?
            }
            Ast::CreateView(create) => Program::Catalog(binder.create_view(create)?),
            Ast::CreateSequence {
                temporary,
                if_not_exists,
                name,
                data_type,
                sequence_options,
                owned_by,
            } => {
                let change = binder.create_sequence(
                    name,
                    data_type.as_ref(),
                    sequence_options,
                    owned_by.as_ref(),
                    *if_not_exists,
                    Persistence::from(*temporary),
                );
                Program::Catalog(change?)
            }
            Ast::Drop {
                object_type,
                if_exists,
                names,
                cascade,
                purge: false,
                temporary: false,
                table: None,
                ..
            } => Program::Catalog(binder.drop(*object_type, names, *if_exists, *cascade)?),
            Ast::Call(call) => Program::Catalog(binder.call_procedure(call)?),
            Ast::Truncate(truncate) => Program::Catalog(binder.truncate(truncate)?),
            Ast::AlterTable(alter) => Program::Catalog(binder.alter_table(alter)?),
            Ast::Copy { source, to, target, options, legacy_options, values } => {
                if values.iter().any(Option::is_some) {
                    return Err(SqlError::unsupported("COPY with its data in the statement"));
                }
                binder.check_copied_names(source, *to)?;
                if let Some(place) = crate::parse::repeated_option(text) {
                    let message = "conflicting or redundant options";
                    return Err(SqlError::new(SqlState::SyntaxError, message).at(place));
                }
                let form = crate::bind::copy_form(target, *to, options, legacy_options)?;
                if self.role.is_some() && matches!(form.place, CopyPlace::File(_)) {
                    return Err(crate::bind::rights::file_denied(*to));
                }
                return self.copy(source, *to, form, text);
            }
            Ast::CreatePolicy(_) => return Err(no_row_security("CREATE POLICY")),
            Ast::AlterPolicy(_) => return Err(no_row_security("ALTER POLICY")),
            Ast::DropPolicy(_) => return Err(no_row_security("DROP POLICY")),
            other => {
                let what = other.to_string();
                let word = what.split_whitespace().next().unwrap_or("this statement").to_owned();
                return Err(SqlError::unsupported(format!("the statement {word}")));
            }
        };
        let parameters = match &work {
            Program::CreateAs(made) => made.parameters.clone(),
            _ => Vec::new(),
        };
        Ok(Prepared { parameters, ..self.prepared(work) })
    }

    /// The plan of a statement that has one.
    fn plan(&self, parsed: &Ast, text: &str) -> Result<Option<Plan>> {
        if let Ast::Query(query) = parsed
            && !has_changing_with(query)
            && let Some(insert) = insert_with(query)
        {
            return self.plan(&insert, text);
        }
        if let Some(query) = with_returned_rows(parsed)? {
            return self.plan(&query, text);
        }
        let mut binder = Binder::new(self, text);
        binder.parameters = self.types.into();
        let bound = match parsed {
            Ast::Query(query) => match binder.query_or_change(query)? {
                Some(bound) => bound,
                None if into_target(query)?.is_some() => return Ok(None),
                None => BoundStatement::Query(binder.query_statement(query)?),
            },
            Ast::Insert(insert) => BoundStatement::Insert(binder.insert(insert)?),
            Ast::Update(update) => BoundStatement::Change(binder.update(update)?),
            Ast::Delete(delete) => BoundStatement::Change(binder.delete(delete)?),
            Ast::Merge(merge) => BoundStatement::Merge(binder.merge(merge)?),
            _ => return Ok(None),
        };
        let types = binder.parameter_types();
        let (action, slots) = plan::plan_statement(bound, &binder.slots, &types, self, self)?;
        let (parameters, mode_reason) = (binder.parameter_types(), String::new());
        let mut plan = Plan { action, slots, parameters, mode_reason };
        if let (true, Action::Query(query)) = (self.keeps_keys, &mut plan.action) {
            plan::keep_row_keys(&mut query.root, plan.slots.len());
        }
        if binder.reads_row_ids {
            plan::request_row_ids(&mut plan.action);
        }
        plan::prune_prefixes(&mut plan);
        let shared_scan: plan::SharedScan = crate::execute::shared_scan;
        let workers = |table: &Table| self.workers_for(table);
        let choice = plan::WorkerChoice { shared_scan, workers: &workers };
        let choice = (self.parallelism.workers > 0).then_some(choice);
        // A sort by rows keeps the keys of the rows that a cursor locks.
        let keeps_locked = self.keeps_keys && !plan.reads_only();
        let mode = if keeps_locked { ExecutionMode::Row } else { self.way };
        plan::choose_execution_mode(&mut plan, mode, &crate::execute::can_batch, choice);
        if CHECKS_INVARIANTS {
            plan.check_invariants();
        }
        Ok(Some(plan))
    }

    fn program(&self, mut plan: Plan, counts: RowCounts) -> Result<Prepared> {
        if !self.keeps_numbers {
            name_outputs(&mut plan.action);
        }
        let handles = self.handles();
        let builder = OperatorBuilder::new(&handles, counts).with_parameters(&plan.parameters);
        let mut reads_only = false;
        let work = match &plan.action {
            Action::Query(query) => {
                reads_only = plan.reads_only();
                let mut program = builder.query(query)?;
                if self.keeps_keys {
                    program.kept_keys = Some(Box::new(KeptKeys::of(&mut program.root)));
                }
                Program::Query(program)
            }
            Action::Insert(insert) => Program::Insert(Box::new(InsertExec::new(insert, &builder)?)),
            Action::Change(change) => Program::Change(Box::new(UpdateExec::new(change, &builder)?)),
            Action::Merge(merge) => Program::Merge(Box::new(MergeExec::new(merge, &builder)?)),
            Action::Instead(instead) => {
                Program::Instead(Box::new(InsteadExec::new(instead, &builder)?))
            }
            Action::ChangingWith(with) => {
                Program::ChangingWith(Box::new(ChangingWithExec::new(with, &builder)?))
            }
        };
        let columns = plan.action.columns().into();
        let slots = plan.slots.iter().map(new_slot).collect();
        let planned_for = self.planned_for(&plan.action);
        Ok(Prepared {
            columns,
            planned_for,
            parameters: plan.parameters,
            slots,
            reads_only,
            ..self.prepared(work)
        })
    }

    fn copy(
        &self,
        source: &ast::CopySource,
        to: bool,
        form: CopyForm,
        text: &str,
    ) -> Result<Prepared> {
        let mut binder = Binder::new(self, text);
        let condition = crate::parse::copy_condition(text);
        if let (Some((place, _)), true) = (&condition, to) {
            let message = "WHERE clause not allowed with COPY TO";
            return Err(SqlError::new(SqlState::SyntaxError, message).at(*place));
        }
        let query = match source {
            ast::CopySource::Query(query) => query.clone(),
            ast::CopySource::Table { table_name, columns } if to => {
                binder.copy_query(table_name, columns)?
            }
            ast::CopySource::Table { table_name, columns } => {
                let (insert, columns) = binder.copy_from(table_name, columns)?;
                let filter = condition.map(|(_, place)| {
                    let text = text.get(place.clone()).unwrap_or_default();
                    binder.copy_filter(&insert, text).map_err(|error| error.shifted(place.start))
                });
                let filter = filter.transpose()?;
                let relation = insert.table.name.clone();
                let types = binder.parameter_types();
                let (plan, slots) = plan::plan_insert(insert, &binder.slots, &types, self, self)?;
                let handles = self.handles();
                let builder = OperatorBuilder::new(&handles, RowCounts::Off);
                let insert = InsertExec::new(&plan, &builder)?;
                let work = Program::CopyFrom(Box::new(CopyFrom {
                    insert,
                    relation,
                    columns,
                    filter,
                    form,
                }));
                let slots = slots.iter().map(new_slot).collect();
                return Ok(Prepared { slots, ..self.prepared(work) });
            }
        };
        let statement = match *query.body {
            ast::SetExpr::Insert(change)
            | ast::SetExpr::Update(change)
            | ast::SetExpr::Delete(change)
                if query.with.is_none() =>
            {
                change
            }
            body => Ast::Query(Box::new(ast::Query { body: Box::new(body), ..*query })),
        };
        let plan = self.plan(&statement, text)?;
        let plan = plan.ok_or_else(|| SqlError::unsupported("COPY of SELECT … INTO"))?;
        if !plan.parameters.is_empty() {
            return Err(SqlError::unsupported("a parameter in COPY"));
        }
        let mut query = self.program(plan, RowCounts::Off)?;
        if query.columns.is_empty() && query.work.changes().is_some() {
            let message = "COPY query must have a RETURNING clause";
            return Err(SqlError::new(SqlState::FeatureNotSupported, message));
        }
        let planned_for = query.planned_for.take();
        Ok(Prepared { planned_for, ..self.prepared(Program::CopyTo(Box::new(query), form)) })
    }

    fn explain(
        &self,
        statement: &Ast,
        text: &str,
        analyze: bool,
        format: ExplainFormat,
    ) -> Result<Prepared> {
        let Some(plan) = self.plan(statement, text)? else {
            return Err(SqlError::unsupported("EXPLAIN of a statement that has no plan"));
        };
        let inner = match analyze {
            true => Some(Box::new(self.program(plan.clone(), RowCounts::On)?)),
            false => None,
        };
        let parameters = plan.parameters.clone();
        let is_json = format == ExplainFormat::Json;
        let data_type = if is_json { DataType::Json } else { DataType::Text };
        let columns = [OutputColumn::new("QUERY PLAN", data_type)];
        let work = Program::Explain(Box::new(plan), inner, format);
        Ok(Prepared { columns: Arc::new(columns), parameters, ..self.prepared(work) })
    }
}

/// Makes the outputs of the rows that a statement returns values of their columns' types.
fn name_outputs(action: &mut Action) {
    match action {
        Action::Query(query) => named_outputs(&mut query.outputs, &query.columns),
        Action::Insert(InsertPlan { returning: Some(returning), .. })
        | Action::Change(ChangePlan { returning: Some(returning), .. }) => {
            named_outputs(&mut returning.outputs, &returning.columns);
        }
        Action::Instead(instead) => {
            if let Some(returning) = &mut instead.returning {
                named_outputs(&mut returning.outputs, &returning.columns);
            }
        }
        Action::ChangingWith(with) => name_outputs(&mut with.main),
        Action::Insert(_) | Action::Change(_) | Action::Merge(_) => {}
    }
}

fn new_slot(shape: &SlotShape) -> Slot {
    match &shape.source {
        Source::Table(table) => Slot::new(Some(table.clone())),
        Source::Query(_) | Source::Computed => Slot::new(None),
    }
}

/// WITH … INSERT: the INSERT, with the WITH before its query.
fn insert_with(query: &ast::Query) -> Option<Ast> {
    let ast::SetExpr::Insert(Ast::Insert(insert)) = &*query.body else { return None };
    let mut insert = insert.clone();
    let source = insert.source.as_mut().filter(|source| source.with.is_none())?;
    source.with.clone_from(&query.with);
    Some(Ast::Insert(insert))
}

impl Prepared {
    /// The parameters of an execution, each of the type that the statement needs: those given, if
    /// they are so already.
    #[inline]
    pub fn parameters_of<'p>(
        types: &[DataType],
        given: &'p [Value],
        values: &'p mut Vec<Value>,
        clock: &Clock,
    ) -> Result<&'p [Value]> {
        let fits = |(value, data_type): (&Value, &DataType)| is_ready(value, *data_type);
        if given.len() == types.len() && given.iter().zip(types).all(fits) {
            return Ok(given);
        }
        take_parameters(types, given, values, clock)?;
        Ok(values)
    }

    /// Begins another execution of a query.
    pub fn restart(&mut self) {
        if let Program::Query(query) = &mut self.work {
            query.root.rewind();
        }
        self.executions += 1;
    }

    /// Takes the parameters of an execution, each as one of the type that the statement needs.
    pub fn take_parameters(&mut self, given: &[Value], clock: &Clock) -> Result<()> {
        take_parameters(&self.parameters, given, &mut self.values, clock)
    }
}

fn take_parameters(
    types: &[DataType],
    given: &[Value],
    values: &mut Vec<Value>,
    clock: &Clock,
) -> Result<()> {
    if given.len() != types.len() {
        let message =
            format!("the statement has {} parameters, {} were given", types.len(), given.len());
        return Err(SqlError::new(SqlState::UndefinedParameter, message));
    }
    values.clear();
    for (value, data_type) in given.iter().zip(types) {
        if !is_storable(value) {
            return Err(not_storable(value));
        }
        // What applications mostly give: the type itself, or an integer of another width. Numbers
        // are made in their place, because a value that is copied waits for the stores of its
        // parts.
        match (value, data_type) {
            (Value::Integer(number), DataType::Integer) => values.push(Value::Integer(*number)),
            (Value::BigInt(number), DataType::BigInt) => values.push(Value::BigInt(*number)),
            (Value::Integer(number), DataType::BigInt) => {
                values.push(Value::BigInt(i64::from(*number)));
            }
            (Value::BigInt(number), DataType::Integer) if i32::try_from(*number).is_ok() => {
                values.push(Value::Integer(*number as i32));
            }
            (value, data_type) if value.is_of(*data_type) => values.push(value.clone()),
            (value, data_type) => {
                let datum = crate::expression::Datum::Ref(value.as_ref());
                let (to, context) = (data_type.unconstrained(), CastContext::Explicit);
                let value = crate::expression::cast(datum, to, context, Some(clock))?;
                values.push(value.into_value());
            }
        }
    }
    Ok(())
}

/// Whether a value can be used as it is for a parameter of that type. Integers, the most frequent
/// parameters, are decided without a call.
#[inline]
fn is_ready(value: &Value, data_type: DataType) -> bool {
    match (value, data_type) {
        (Value::Integer(_), DataType::Integer) | (Value::BigInt(_), DataType::BigInt) => true,
        _ => value.is_of(data_type) && is_storable(value),
    }
}

/// Whether a value that a program made is one that SQL could have read: a [`Value`] can hold
/// others.
fn is_storable(value: &Value) -> bool {
    match value {
        Value::Null | Value::Integer(_) | Value::BigInt(_) => true,
        Value::Text(text) => checked_text(text).is_ok(),
        Value::Date(days) => is_date((*days).into()) || matches!(*days, i32::MIN | i32::MAX),
        Value::Time(moment) => (0..=DAY).contains(moment),
        Value::Timestamp(moment) | Value::TimestampTz(moment) => {
            is_timestamp(*moment) || matches!(*moment, i64::MIN | i64::MAX)
        }
        _ => true,
    }
}

#[cold]
fn not_storable(value: &Value) -> SqlError {
    if let Value::Text(text) = value
        && let Err(error) = checked_text(text)
    {
        return error;
    }
    let name = value.data_type().map_or_else(String::new, |data_type| data_type.to_string());
    SqlError::new(SqlState::DatetimeFieldOverflow, format!("{name} out of range"))
}

/// A constant text for each line of an EXPLAIN.
pub(crate) fn lines(lines: Vec<String>) -> Vec<Vec<Value>> {
    lines.into_iter().map(|line| vec![Value::text(line)]).collect()
}
