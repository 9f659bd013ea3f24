//! One execution of a statement in a transaction.

use std::sync::Arc;

use quickbeam::query_layer::TransactionExt;
use quickbeam::{CHECKS_INVARIANTS, Isolation, Transaction, invariant};

use super::access::{check_change, own_new};
use super::definition::apply;
use super::rows::{QueryTransaction, Rows};
use crate::bind::{CatalogChange, ObjectKind, OutputColumn};
use crate::catalog::{AclKind, CatalogSnapshot, Privileges, Relation, TriggerTiming, lookup_name};
use crate::compile::cascades::Cascades;
use crate::compile::explain_format::formatted;
use crate::compile::prepare::lines;
use crate::compile::{CompileContext, Prepared, Program};
use crate::error::{Result, SqlError, SqlState};
use crate::execute::{Context, MemoryBudget, Returned};
use crate::expression::Slot;
use crate::parse::ExplainFormat;
use crate::plan::Plan;
use crate::session::Session;
use crate::session::prepared_statement::PreparedStatement;
use crate::session::statement_cache::Lease;
use crate::table::{self, DeferredChecks, TableHandle};
use crate::types::Value;

/// The rows of EXPLAIN.
fn explained(plan: &Plan, counts: Option<&[u64]>, format: ExplainFormat) -> Returned {
    let found = formatted(crate::plan::explain(plan, counts), format);
    match format {
        ExplainFormat::Json => found.iter().map(|text| vec![Value::json(text)]).collect(),
        _ => lines(found),
    }
}

/// What happens to the rows that a statement returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultRows {
    /// The caller reads them, or drops them.
    Kept,
    /// The caller cannot read them: a statement that returns rows is an error.
    Refused,
}

impl ResultRows {
    /// Refuses a statement that returns rows, before it runs, where the caller does not read rows.
    #[inline]
    pub fn check(self, prepared: &Prepared) -> Result<()> {
        self.check_columns(&prepared.columns)
    }

    /// As [`check`](Self::check), by the columns of the rows.
    #[inline]
    pub fn check_columns(self, columns: &[OutputColumn]) -> Result<()> {
        if self == ResultRows::Refused && !columns.is_empty() {
            return Err(rows_not_read());
        }
        Ok(())
    }
}

#[cold]
fn rows_not_read() -> SqlError {
    let message = "the statement returns rows, which `execute` does not read";
    SqlError::new(SqlState::ObjectNotInPrerequisiteState, message)
        .with_hint("Call `query`, `query_row` or `query_map`.")
}

/// What an execution did.
#[derive(Default)]
pub(crate) struct Done {
    /// Rows inserted, changed, removed or delivered.
    pub count: u64,
    /// Rows delivered, if they were asked for.
    pub returned: Returned,
}

/// Refuses a change of a table whose deferred constraints are still to be checked.
fn check_not_deferred(
    change: &CatalogChange,
    look: &CompileContext<'_>,
    deferred: Option<&DeferredChecks>,
) -> Result<()> {
    let Some(deferred) = deferred.filter(|it| !it.is_empty()) else { return Ok(()) };
    let (what, names) = match change {
        CatalogChange::Alter(name, ..) => ("ALTER TABLE", std::slice::from_ref(name)),
        CatalogChange::Drop(ObjectKind::Table, names, ..) => ("DROP TABLE", &names[..]),
        CatalogChange::Truncate(names, ..) => ("TRUNCATE", &names[..]),
        _ => return Ok(()),
    };
    for name in names {
        if let Some(Relation::Table(table)) = look.snapshot.relation(name)
            && deferred.reads(table.id)
        {
            let message =
                format!("cannot {what} \"{}\" because it has pending trigger events", table.name);
            return Err(SqlError::new(SqlState::ObjectInUse, message)
                .with_hint("Its deferred constraints are to be checked first."));
        }
    }
    Ok(())
}

/// Who a statement's transaction belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransactionUse {
    /// To the statement: if the statement fails, the transaction is aborted.
    Own,
    /// To the connection or caller: if the statement fails, only its changes are undone.
    Shared,
}

impl Session {
    /// Executes a statement to its end, as one of the transaction's.
    pub(crate) fn run(
        &self,
        statement: &mut PreparedStatement,
        transaction: &Transaction,
        parameters: &[Value],
        rows: ResultRows,
    ) -> Result<Done> {
        transaction.begin_statement();
        let result = self.ensure_compiled(statement, transaction).and_then(|prepared| {
            rows.check(prepared)?;
            self.run_prepared(prepared, transaction, parameters, TransactionUse::Shared)
        });
        transaction.end_statement();
        result
    }

    /// Executes what a statement was prepared as.
    pub(crate) fn run_prepared(
        &self,
        prepared: &mut Prepared,
        transaction: &Transaction,
        parameters: &[Value],
        transaction_use: TransactionUse,
    ) -> Result<Done> {
        let Prepared { work, executions, reads_only, .. } = &mut *prepared;
        *executions += 1;
        if !*reads_only {
            self.has_changed.set(true);
        }
        let is_refused =
            !*reads_only && (transaction.is_read_only() || self.temporary.is_changing.get());
        if is_refused {
            let _access = self.access_in_read_only(work, transaction)?;
            return self.run_allowed(prepared, transaction, parameters, transaction_use);
        }
        self.run_allowed(prepared, transaction, parameters, transaction_use)
    }

    /// Executes what a statement was prepared as, and the transaction may do.
    fn run_allowed(
        &self,
        prepared: &mut Prepared,
        transaction: &Transaction,
        parameters: &[Value],
        transaction_use: TransactionUse,
    ) -> Result<Done> {
        let alone = transaction_use == TransactionUse::Own;
        let Prepared { snapshot, work, slots, values, parameters: types, executions, .. } =
            prepared;
        let parameters = Prepared::parameters_of(types, parameters, values, &self.clock)?;
        transaction.interrupt_on(&self.limits.cancelled);
        let Some(snapshot) = snapshot else {
            return Err(SqlError::internal("a statement without a catalog"));
        };
        invariant!(
            SESSION_2,
            transaction.isolation() == Isolation::ReadCommitted
                || self.database.catalog.version(transaction)? == snapshot.version(),
            "a plan of version {}",
            snapshot.version()
        );
        if !work.has_plan() {
            let done = self.run_utility(work, slots, snapshot, transaction, parameters, alone);
            return self.finish_calls(transaction, done);
        }
        let budget = MemoryBudget::new(*executions);
        let mut context = Context {
            transaction,
            catalog: &self.database.catalog,
            snapshot,
            slots,
            parameters,
            clock: &self.clock,
            session: self,
            given: &self.given,
            limits: &self.limits,
            budget: &budget,
        };
        let done = self.work(work, &mut context, alone);
        let done = done.map_err(|error| self.hide_values(error, snapshot, transaction));
        self.finish_calls(transaction, done)
    }

    /// Removes the values of a row from the error of a violated constraint, unless the role may
    /// read the table.
    #[cold]
    fn hide_values(
        &self,
        error: SqlError,
        snapshot: &Arc<CatalogSnapshot>,
        transaction: &Transaction,
    ) -> SqlError {
        let role = self.look(transaction, snapshot).role;
        let (Some(role), Some(schema), Some(table)) = (role, error.schema(), error.table()) else {
            return error;
        };
        let may_read = match snapshot.relation(&lookup_name(schema, table)) {
            Some(Relation::Table(table)) => {
                snapshot.rights(role, table.id, AclKind::Table).has(Privileges::SELECT)
            }
            _ => false,
        };
        if may_read { error } else { error.without_detail() }
    }

    /// Executes what is no query and changes no rows of a table by a plan of its own.
    #[cold]
    fn run_utility(
        &self,
        work: &mut Program,
        slots: &mut Vec<Slot>,
        snapshot: &Arc<CatalogSnapshot>,
        transaction: &Transaction,
        parameters: &[Value],
        alone: bool,
    ) -> Result<Done> {
        let look = self.look(transaction, snapshot);
        match work {
            Program::Nothing => Ok(Done::default()),
            Program::Catalog(change) => self.run_change(change, &look, alone),
            Program::CreateAs(made) => self.whole(transaction, alone, || {
                if let Some(role) = look.role {
                    check_change(&made.change, snapshot, role)?;
                }
                self.begin_temporary(&made.change, &look)?;
                apply(&made.change, &look)?;
                own_new(&look)?;
                self.note_temporary(&made.change, &look)?;
                let Some(insert) = &made.insert else { return Ok(Done::default()) };
                let snapshot = self.database.catalog.snapshot(transaction)?;
                let view = made.materialized.as_deref().and_then(|it| snapshot.materialized(it));
                let types: Vec<_> = made.parameters.iter().copied().map(Some).collect();
                let (path, snapshot) = (look.path.clone(), &snapshot);
                let mut look = CompileContext { snapshot, path, types: &types, ..look };
                if let Some(view) = &view {
                    // The query is run with the rights of the owner.
                    look.role = look.role.map(|_| snapshot.owner(view.id));
                    (look.refreshed, look.path) = (Some(view), None);
                }
                let fill = || {
                    let mut filled = look.statement(insert, &made.text)?;
                    self.run_prepared(&mut filled, transaction, parameters, TransactionUse::Own)
                };
                // The query of a materialized view stands in another text.
                match look.refreshed {
                    Some(_) => fill().map_err(SqlError::without_place),
                    None => fill(),
                }
            }),
            Program::CopyFrom(copy) => self.copy_from(copy, slots, &look, alone),
            Program::CopyTo(query, form) => self.copy_to(query, form, &look, alone),
            Program::Explain(plan, None, format) => {
                Ok(Done { count: 0, returned: explained(plan, None, *format) })
            }
            Program::Explain(plan, Some(inner), format) => {
                let transaction_use =
                    if alone { TransactionUse::Own } else { TransactionUse::Shared };
                self.run_prepared(inner, transaction, parameters, transaction_use)?;
                let mut counts = Vec::new();
                match &inner.work {
                    Program::Query(query) => query.root.counts(&mut counts),
                    Program::Insert(insert) => insert.counts(&mut counts),
                    Program::Change(change) => change.counts(&mut counts),
                    Program::Merge(merge) => merge.counts(&mut counts),
                    Program::Instead(instead) => instead.counts(&mut counts),
                    Program::ChangingWith(with) => with.counts(&mut counts),
                    _ => {}
                }
                Ok(Done { count: 0, returned: explained(plan, Some(&counts), *format) })
            }
            Program::Query(_)
            | Program::Insert(_)
            | Program::Change(_)
            | Program::Merge(_)
            | Program::Instead(_)
            | Program::ChangingWith(_) => Ok(Done::default()),
        }
    }

    /// Makes a change of the catalog.
    fn run_change(
        &self,
        change: &CatalogChange,
        look: &CompileContext<'_>,
        alone: bool,
    ) -> Result<Done> {
        let (snapshot, transaction) = (look.snapshot, look.transaction);
        if let (CatalogChange::CreateIndex(index, _), false) = (change, alone)
            && index.concurrently
        {
            return Err(super::utility::not_in_transaction("CREATE INDEX CONCURRENTLY"));
        }
        let open = self.open.borrow();
        check_not_deferred(change, look, self.deferred_of(open.as_ref(), look.transaction))?;
        drop(open);
        self.check_not_changing(change, snapshot)?;
        self.check_no_rows_read()?;
        self.notice_skipped(change, snapshot);
        if let Some(role) = look.role {
            check_change(change, snapshot, role)?;
        }
        let make = || match change {
            CatalogChange::Access(statement) => self.change_access(statement, look),
            CatalogChange::Comment(statement) => self.change_comment(statement, look),
            CatalogChange::Relation(statement) => self.change_relation(statement, look),
            CatalogChange::Schema(statement) => self.create_with_elements(statement, look),
            CatalogChange::Routine(statement) => {
                self.change_routine(statement, look)?;
                own_new(look)
            }
            CatalogChange::Type(statement) => {
                self.change_type(statement, look)?;
                own_new(look)
            }
            CatalogChange::Collation(statement) => {
                self.change_collation(statement, look)?;
                own_new(look)
            }
            change => {
                self.begin_temporary(change, look)?;
                let truncated = self.truncated(change, snapshot)?;
                self.fire_truncate(&truncated, transaction, TriggerTiming::Before)?;
                apply(change, look)?;
                own_new(look)?;
                self.note_temporary(change, look)?;
                self.fire_truncate(&truncated, transaction, TriggerTiming::After)
            }
        };
        self.whole(transaction, alone, make)?;
        self.notice_cascades(change, look)?;
        Ok(Done::default())
    }

    #[inline]
    fn work(&self, work: &mut Program, context: &mut Context<'_>, alone: bool) -> Result<Done> {
        match work {
            Program::Change(change) if change.is_plain() => {
                Ok(Done { count: change.run_plain(context)?, ..Done::default() })
            }
            Program::Insert(insert) if insert.is_plain() => {
                Ok(Done { count: insert.run_plain(context)?, ..Done::default() })
            }
            work => self.run_program(work, context, alone),
        }
    }

    /// Executes a query, or a change that needs more than the plain change of one row. Not inlined,
    /// so that the code of plain changes is small.
    #[inline(never)]
    fn run_program(
        &self,
        work: &mut Program,
        context: &mut Context<'_>,
        alone: bool,
    ) -> Result<Done> {
        let mut done = Done::default();
        let single: Option<&TableHandle> = match work {
            Program::Insert(insert) => insert.single(),
            Program::Change(change) => change.single(),
            Program::Query(query) => {
                done.count = query.collect(context, &mut done.returned)?;
                return Ok(done);
            }
            Program::Merge(_) | Program::Instead(_) | Program::ChangingWith(_) => None,
            _ => return Ok(done),
        };
        let (catalog, transaction, snapshot) =
            (context.catalog, context.transaction, context.snapshot);
        let look = || self.look(transaction, snapshot);
        let cascades = Cascades { look: &look };
        let before = CHECKS_INVARIANTS.then(|| transaction.change_count());
        // Outside a transaction everything goes with the statement's own one.
        let may_be_undone = !alone && !single.is_some_and(TableHandle::has_rows_only);
        let mut statement = table::TableWriter::new(catalog, transaction, snapshot, &cascades);
        if may_be_undone {
            statement.set_savepoint()?;
        }
        let open = self.open.borrow();
        let deferred = self.deferred_of(open.as_ref(), transaction);
        statement.set_deferred(deferred);
        statement.set_moved(self.noted_moves());
        statement.set_triggers(self);
        let result = match work {
            Program::Insert(insert) => insert.run(context, &mut statement, &mut done.returned),
            Program::Change(change) => change.run(context, &mut statement, &mut done.returned),
            Program::Merge(merge) => merge.run(context, &mut statement),
            Program::Instead(it) => it.run(context, &mut statement, &mut done.returned),
            Program::ChangingWith(with) => with.run(context, &mut statement, &mut done.returned),
            _ => Ok(0),
        };
        let result = result.and_then(|count| statement.finish().map(|()| count));
        match result {
            Ok(count) => {
                done.count = count;
                Ok(done)
            }
            Err(error) => {
                statement.rollback()?;
                // Without a savepoint, the lock of one row may remain.
                let most = before.map(|before| before + usize::from(!may_be_undone));
                invariant!(SESSION_1, alone || Some(transaction.change_count()) <= most, "{error}");
                Err(error)
            }
        }
    }

    /// Does something wholly or not at all.
    pub(super) fn whole<T>(
        &self,
        transaction: &Transaction,
        alone: bool,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        if alone {
            return work();
        }
        let savepoint = transaction.savepoint()?;
        let kept = self.kept_mark();
        let result = work();
        if result.is_err() {
            transaction.rollback_to(savepoint)?;
            self.restore_kept(kept);
        }
        transaction.release_savepoint(savepoint);
        result
    }

    /// Begins a query whose rows are delivered as they are asked for.
    pub(crate) fn stream<'c>(
        &'c self,
        mut lease: Lease<'c>,
        read: QueryTransaction<'c>,
        parameters: &[Value],
    ) -> Result<Rows<'c>> {
        self.begin_reading(&read);
        let compiled = lease.statement().and_then(|it| {
            self.ensure_compiled(it, read.transaction())?;
            Ok(())
        });
        self.deliver(compiled, lease, read, parameters)
    }

    /// As [`stream`](Self::stream), of a statement that is compiled for what the transaction sees.
    pub(crate) fn stream_compiled<'c>(
        &'c self,
        lease: Lease<'c>,
        read: QueryTransaction<'c>,
        parameters: &[Value],
    ) -> Result<Rows<'c>> {
        self.begin_reading(&read);
        self.deliver(Ok(()), lease, read, parameters)
    }

    #[inline]
    fn begin_reading(&self, read: &QueryTransaction<'_>) {
        read.transaction().interrupt_on(&self.limits.cancelled);
        read.transaction().begin_statement();
    }

    /// Returns the rows of a statement, if it was compiled.
    #[inline]
    fn deliver<'c>(
        &'c self,
        compiled: Result<()>,
        mut lease: Lease<'c>,
        read: QueryTransaction<'c>,
        parameters: &[Value],
    ) -> Result<Rows<'c>> {
        let prepared = compiled.and_then(|()| lease.statement()?.compiled());
        match prepared.and_then(|it| self.start(it, read.transaction(), parameters)) {
            // The rows end the statement when they are dropped.
            Ok(None) => Ok(Rows::streaming(self, lease, read)),
            Ok(Some(rows)) => {
                read.transaction().end_statement();
                Ok(rows)
            }
            Err(error) => {
                read.transaction().end_statement();
                Err(error)
            }
        }
    }

    /// Makes a query ready to deliver rows; what is no query is executed, and its rows returned.
    #[inline]
    fn start<'c>(
        &self,
        prepared: &mut Prepared,
        transaction: &Transaction,
        parameters: &[Value],
    ) -> Result<Option<Rows<'c>>> {
        if !matches!(prepared.work, Program::Query(_)) {
            let shared = TransactionUse::Shared;
            let done = self.run_prepared(prepared, transaction, parameters, shared)?;
            return Ok(Some(Rows::of(prepared.columns.clone(), done.returned)));
        }
        self.has_changed.set(self.has_changed.get() | !prepared.reads_only);
        prepared.take_parameters(parameters, &self.clock)?;
        prepared.restart();
        Ok(None)
    }
}
