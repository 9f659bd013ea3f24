//! Calls of functions and procedures, and their bodies as a session has compiled them.
//!
//! A body runs inside the statement that calls it, in the same transaction. Its statements are
//! prepared when they run for the first time, and are kept with the session. A variable that a
//! statement names is a parameter of that statement.
//!
//! - ROUTINE-1: a statement in a body is used only under the catalog version that it was compiled
//!   for, with records of the same columns
//! - ROUTINE-2: a statement that fails undoes what the functions that it called have changed

mod call;
mod command;
mod control;
mod cursors;
pub(crate) mod definitions;
mod fragments;
mod raise;
mod statements;
mod trigger_definitions;
mod triggers;
pub(in crate::session) mod types;
mod variables;

use std::cell::{Cell as Flag, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use quickbeam::query_layer::TransactionExt;
use quickbeam::{Savepoint, Transaction, invariant};
use smol_str::SmolStr;

use self::call::{CallTransaction, Invocation, TransactionEnd};
use self::fragments::PreparedFragment;
use self::types::{row_columns, variable_kind};
use self::variables::{DomainCast, domains_of};
use crate::bind::routines::result_columns;
use crate::bind::{OutputColumn, SearchPath};
use crate::catalog::{
    ArgumentMode, BOOTSTRAP, CatalogSnapshot, ConcreteTypes, Language, NamedDomain, ObjectId,
    Routine, RoutineResult, TransitionSide, Volatility,
};
use crate::compile::CompileContext;
use crate::error::{Result, SqlError, SqlState};
use crate::execute::Returned;
use crate::expression::{QueryRows, RoutineCall};
use crate::parse::plpgsql::{
    self, Block, BlockBody, BlockVariable, Fragment, GivenVariable, Namespace, VariableConflict,
    VariableKind,
};
use crate::session::Session;
use crate::session::executor::TransactionUse;
use crate::session::prepared_statement::PreparedStatement;
use crate::session::settings::SettingsGuard;
use crate::session::transaction::KeptMark;
use crate::table::Transitions;
use crate::types::{DataType, Value};

/// Calls within calls. Each takes stack.
const DEPTH: usize = 40;

/// Bodies that a session keeps.
const KEPT: usize = 500;

/// A function, and for one of triggers their table; or the condition of a trigger. Last the types
/// that a call decides.
type RoutineKey = (ObjectId, Option<ObjectId>, Option<&'static ConcreteTypes>);

/// The bodies that a session has compiled.
#[derive(Default)]
pub(crate) struct Routines {
    compiled: RefCell<HashMap<RoutineKey, Arc<CompiledRoutine>>>,
    depth: Flag<usize>,
    /// The cursors so far that got a name of their own.
    portals: Flag<u64>,
    /// The rows of the transition tables of the triggers that run, the innermost last.
    transitions: RefCell<Vec<Arc<Transitions>>>,
    /// The tables whose changes have fired the triggers that run, the innermost last.
    changing: RefCell<Vec<ObjectId>>,
    /// Where the transaction was before the first call of the statement under way (ROUTINE-2).
    before: Flag<Option<(Savepoint, KeptMark)>>,
}

impl Routines {
    fn known(&self, key: RoutineKey, version: u64) -> Option<Arc<CompiledRoutine>> {
        self.compiled.borrow().get(&key).filter(|known| known.version == version).cloned()
    }

    /// Returns the rows of a transition table of the trigger that runs.
    pub(in crate::session) fn transition_rows(
        &self,
        side: TransitionSide,
    ) -> Result<Vec<Vec<Value>>> {
        let innermost = self.transitions.borrow().last().cloned();
        let rows = innermost.ok_or_else(|| SqlError::internal("no transition tables"))?;
        rows.rows(side)
    }

    /// Returns how many triggers run, one within another.
    pub(in crate::session) fn trigger_depth(&self) -> i32 {
        self.changing.borrow().len() as i32
    }

    /// Returns a name for a cursor that has none.
    fn portal_name(&self) -> String {
        self.portals.set(self.portals.get() + 1);
        format!("<unnamed portal {}>", self.portals.get())
    }

    fn keep(&self, key: RoutineKey, compiled: Arc<CompiledRoutine>) {
        let mut all = self.compiled.borrow_mut();
        if all.len() >= KEPT {
            all.clear();
        }
        all.insert(key, compiled);
    }
}

/// A compiled body.
pub(in crate::session) struct CompiledRoutine {
    /// The catalog version that it was compiled for.
    version: u64,
    routine: Arc<Routine>,
    body: BlockBody,
    /// The variables of the arguments, in their order.
    arguments: Vec<usize>,
    /// The types of the arguments: those of the first parameters of each statement.
    types: Arc<[Option<DataType>]>,
    columns: Vec<OutputColumn>,
    /// The domains of variables, by their numbers.
    domains: HashMap<usize, DomainCast>,
    /// The domains of the columns of the result, by their numbers.
    result_domains: HashMap<usize, DomainCast>,
    /// The statements of the body; `None` while one is in use, and before it is prepared.
    fragments: Vec<Mutex<Option<Box<PreparedFragment>>>>,
}

impl CompiledRoutine {
    fn is_sql(&self) -> bool {
        self.routine.language == Language::Sql
    }

    /// The variables of the OUT arguments and the columns of RETURNS TABLE.
    fn outputs(&self) -> impl Iterator<Item = usize> {
        let all = self.routine.arguments.iter().zip(&self.arguments);
        all.filter(|(argument, _)| argument.mode != ArgumentMode::In).map(|it| *it.1)
    }

    /// Compiles a body. `given`: variables before those of the arguments.
    fn new(
        routine: Arc<Routine>,
        look: &CompileContext<'_>,
        given: Vec<GivenVariable>,
    ) -> Result<CompiledRoutine> {
        let first = given.len();
        let mut all = given;
        for (at, argument) in routine.arguments.iter().enumerate() {
            let number = smol_str::format_smolstr!("${}", at + 1);
            all.push(GivenVariable {
                names: argument.name.clone().into_iter().chain([number]).collect(),
                kind: match argument.data_type.record() {
                    Some(_) => VariableKind::Record(match argument.data_type.row_object() {
                        Some(id) => row_columns(look, ObjectId(id), argument.data_type),
                        None => argument.data_type.row_fields().to_vec().into(),
                    }),
                    None => match &argument.domain {
                        Some(domain) => VariableKind::Domain(argument.data_type, domain.used),
                        None => VariableKind::Scalar(argument.data_type),
                    },
                },
            });
        }
        let arguments = (first..all.len()).collect();
        let columns = result_columns(&routine, look.snapshot)?;
        let body = match routine.language {
            Language::PlPgSql => {
                let types = |text: &str| variable_kind(look, text);
                plpgsql::parse(&routine.body, &routine.name, all, &types)
                    .map_err(SqlError::without_place)?
            }
            Language::Sql => sql_body(&routine, all)?,
        };
        let domains = domains_of(&body.variables, look.snapshot);
        let result_domains = result_domains(&routine, look.snapshot);
        let made = CompiledRoutine::of_body(routine, body, look.snapshot.version());
        Ok(CompiledRoutine { arguments, columns, domains, result_domains, ..made })
    }

    /// A body without arguments and results.
    fn of_body(routine: Arc<Routine>, body: BlockBody, version: u64) -> CompiledRoutine {
        CompiledRoutine {
            version,
            types: routine.arguments.iter().map(|it| Some(it.data_type.unconstrained())).collect(),
            routine,
            fragments: body.fragments.iter().map(|_| Mutex::new(None)).collect(),
            body,
            arguments: Vec::new(),
            columns: Vec::new(),
            domains: HashMap::new(),
            result_domains: HashMap::new(),
        }
    }
}

/// Returns the domains of the columns of a result.
fn result_domains(routine: &Routine, snapshot: &CatalogSnapshot) -> HashMap<usize, DomainCast> {
    let cast = |(at, (domain, data_type)): (usize, (&Option<NamedDomain>, DataType))| {
        let used = domain.as_ref()?.used;
        Some((at, DomainCast::new(snapshot, used, data_type)))
    };
    match &routine.result {
        RoutineResult::Value(data_type) => {
            cast((0, (&routine.result_domain, *data_type))).into_iter().collect()
        }
        RoutineResult::Columns => {
            let outputs = routine.outputs().map(|it| (&it.domain, it.data_type));
            outputs.enumerate().filter_map(cast).collect()
        }
        _ => HashMap::new(),
    }
}

/// The statements of a body in SQL.
fn sql_body(routine: &Routine, given: Vec<GivenVariable>) -> Result<BlockBody> {
    let label = Some(routine.name.clone());
    let mut names = Namespace { label, ..Namespace::default() };
    let mut variables = Vec::new();
    for (number, GivenVariable { names: known, kind }) in given.into_iter().enumerate() {
        let name = known.first().cloned().unwrap_or_default();
        names.names.extend(known.into_iter().map(|name| (name, number)));
        let not_null = false;
        variables.push(BlockVariable {
            name,
            kind,
            not_null,
            constant: false,
            initial: None,
            cursor: None,
            line: 0,
        });
    }
    let pieces = crate::parse::pieces(&routine.body).map_err(SqlError::without_place)?;
    let fragments = pieces.into_iter().map(|piece| Fragment {
        text: routine.body.get(piece).unwrap_or_default().into(),
        namespace: 0,
    });
    Ok(BlockBody {
        block: Block::default(),
        fragments: fragments.collect(),
        variables,
        namespaces: vec![names],
        found: usize::MAX,
        conflict: VariableConflict::default(),
    })
}

/// What runs while a function with the rights of its owner is called.
struct RoleGuard<'s> {
    session: &'s Session,
    role: ObjectId,
    definer: Option<ObjectId>,
    path_number: u64,
    path: SearchPath,
}

impl Drop for RoleGuard<'_> {
    fn drop(&mut self) {
        self.session.definer.set(self.definer);
        self.session.role.set(self.role);
        // The function may have changed the path.
        match *self.session.search_path.borrow() == self.path {
            true => self.session.path_number.set(self.path_number),
            false => self.session.note_path_number(),
        }
        self.session.note_plan_key();
    }
}

/// Counts a call within another one.
struct DepthGuard<'s>(&'s Routines);

impl Drop for DepthGuard<'_> {
    fn drop(&mut self) {
        self.0.depth.set(self.0.depth.get() - 1);
    }
}

#[cold]
fn too_deep() -> SqlError {
    SqlError::new(SqlState::StatementTooComplex, "stack depth limit exceeded")
        .with_hint(format!("Functions can call each other {DEPTH} levels deep."))
}

impl Session {
    /// Returns the compiled body of a routine.
    fn compiled(&self, transaction: &Transaction, id: ObjectId) -> Result<Arc<CompiledRoutine>> {
        self.compiled_for(transaction, (id, None, None), Vec::new)
    }

    /// As [`compiled`](Self::compiled), with variables before those of the arguments.
    fn compiled_for(
        &self,
        transaction: &Transaction,
        key: RoutineKey,
        given: impl FnOnce() -> Vec<GivenVariable>,
    ) -> Result<Arc<CompiledRoutine>> {
        let version = self.database.catalog.version(transaction)?;
        if let Some(known) = self.routines.known(key, version) {
            return Ok(known);
        }
        let id = key.0;
        let snapshot = self.database.catalog.snapshot(transaction)?;
        let look = self.look(transaction, &snapshot);
        let routine = snapshot.routine(id).cloned();
        let routine = routine.ok_or_else(|| SqlError::internal("there is no such function"))?;
        let routine = match key.2 {
            Some(types) => Arc::new(routine.with_types(types)),
            None => routine,
        };
        let compiled = Arc::new(CompiledRoutine::new(routine, &look, given())?);
        self.routines.keep(key, compiled.clone());
        Ok(compiled)
    }

    /// Calls a routine in a statement's transaction, and returns its rows.
    pub(super) fn call_in(
        &self,
        transaction: &Transaction,
        call: &RoutineCall,
        arguments: Vec<Value>,
    ) -> Result<Returned> {
        let compiled = self.compiled_for(transaction, (call.id, None, call.types), Vec::new)?;
        if compiled.routine.volatility == Volatility::Volatile {
            self.begin_changing_calls(transaction)?;
        }
        let rows = self
            .invoke(
                &compiled,
                CallTransaction::Lent(transaction),
                arguments,
                TransactionEnd::Refused,
            )
            .map_err(SqlError::inner);
        // A statement of the body has ended the interruption of this one.
        transaction.interrupt_on(&self.limits.cancelled);
        rows
    }

    /// Keeps where the transaction was before the first call of a statement (ROUTINE-2).
    fn begin_changing_calls(&self, transaction: &Transaction) -> Result<()> {
        if self.routines.depth.get() == 0 && self.routines.before.get().is_none() {
            let before = (transaction.savepoint()?, self.kept_mark());
            self.routines.before.set(Some(before));
        }
        Ok(())
    }

    /// Ends the calls of a statement: undoes what they have changed if the statement failed
    /// (ROUTINE-2).
    #[inline]
    pub(super) fn finish_calls<T>(
        &self,
        transaction: &Transaction,
        result: Result<T>,
    ) -> Result<T> {
        match self.routines.before.get() {
            Some(before) if self.routines.depth.get() == 0 => {
                self.finish_changing_calls(transaction, before, result)
            }
            _ => result,
        }
    }

    #[cold]
    fn finish_changing_calls<T>(
        &self,
        transaction: &Transaction,
        (before, kept): (Savepoint, KeptMark),
        result: Result<T>,
    ) -> Result<T> {
        self.routines.before.set(None);
        if result.is_err() {
            transaction.rollback_to(before)?;
            self.restore_kept(kept);
        }
        transaction.release_savepoint(before);
        invariant!(ROUTINE_2, self.routines.before.get().is_none(), "a call that was not ended");
        result
    }

    /// Runs a compiled body. `end`: whether it may end the transaction of the session.
    fn invoke(
        &self,
        compiled: &Arc<CompiledRoutine>,
        place: CallTransaction<'_>,
        arguments: Vec<Value>,
        end: TransactionEnd,
    ) -> Result<Returned> {
        let _guards = self.enter(compiled, place)?;
        let mut call = Invocation::new(self, compiled.clone(), place, end);
        call.take_arguments(arguments)?;
        let rows = if compiled.is_sql() { call.run_sql() } else { call.run_block() };
        // Without a transaction of the session, cursors end with the call that opened them.
        if self.routines.depth.get() == 1 && !self.in_transaction() {
            self.end_cursors(true);
        }
        rows
    }

    /// Counts a call within others.
    fn enter_depth(&self) -> Result<DepthGuard<'_>> {
        let depth = self.routines.depth.get();
        if depth >= DEPTH {
            return Err(too_deep());
        }
        self.routines.depth.set(depth + 1);
        Ok(DepthGuard(&self.routines))
    }

    /// Runs a query that reads only, for a function of the statement under way.
    pub(super) fn rows_for_function(
        &self,
        transaction: &Transaction,
        text: &str,
    ) -> Result<QueryRows> {
        self.begin_changing_calls(transaction)?;
        let guard = self.enter_depth()?;
        transaction.begin_statement();
        let found = self.run_reading(transaction, text);
        transaction.end_statement();
        drop(guard);
        // The query has ended the interruption of the statement.
        transaction.interrupt_on(&self.limits.cancelled);
        found
    }

    /// Runs a query, and refuses everything else.
    fn run_reading(&self, transaction: &Transaction, text: &str) -> Result<QueryRows> {
        let mut statement = PreparedStatement::new(text);
        let unread = || {
            let what = text.split_whitespace().next().unwrap_or_default().to_ascii_uppercase();
            let message = format!("cannot open {what} query as cursor");
            SqlError::new(SqlState::InvalidCursorDefinition, message)
        };
        if self.control_of(&mut statement)?.is_some() {
            return Err(unread());
        }
        let prepared =
            self.ensure_compiled(&mut statement, transaction).map_err(SqlError::without_place)?;
        if let Some(what) = prepared.work.changes() {
            if prepared.columns.is_empty() {
                return Err(unread());
            }
            let message = format!("{what} is not allowed in a non-volatile function");
            return Err(SqlError::new(SqlState::FeatureNotSupported, message));
        }
        let types = prepared.columns.iter().map(|it| it.data_type).collect();
        let done = self.run_prepared(prepared, transaction, &[], TransactionUse::Shared)?;
        Ok(QueryRows { types, rows: done.returned })
    }

    /// Counts a call, and takes on the role of the owner if the function has its rights.
    fn enter(
        &self,
        compiled: &CompiledRoutine,
        place: CallTransaction<'_>,
    ) -> Result<(DepthGuard<'_>, Option<SettingsGuard<'_>>, Option<RoleGuard<'_>>)> {
        let guard = self.enter_depth()?;
        let role = self.with_owner(compiled, place)?;
        // The settings end before the role does.
        Ok((guard, self.with_settings(&compiled.routine.settings)?, role))
    }

    /// Takes on the role of the owner of a SECURITY DEFINER function.
    fn with_owner(
        &self,
        compiled: &CompiledRoutine,
        place: CallTransaction<'_>,
    ) -> Result<Option<RoleGuard<'_>>> {
        if !compiled.routine.security_definer {
            return Ok(None);
        }
        let owner = place.with(self, |transaction| {
            let snapshot = self.database.catalog.snapshot(transaction)?;
            Ok(snapshot.owner(compiled.routine.id))
        })?;
        let guard = RoleGuard {
            session: self,
            role: self.role.get(),
            definer: self.definer.replace(Some(owner)),
            path_number: self.path_number.get(),
            path: self.search_path.borrow().clone(),
        };
        if self.role.replace(owner) != owner {
            self.note_path_number();
            self.note_plan_key();
        }
        Ok(Some(guard))
    }
}

/// The routine that the block of DO is.
fn block_routine(body: Arc<str>) -> Routine {
    Routine {
        id: BOOTSTRAP,
        schema: crate::catalog::PUBLIC,
        name: SmolStr::new_static("inline_code_block"),
        language: Language::PlPgSql,
        arguments: Vec::new(),
        result: RoutineResult::Void,
        result_domain: None,
        returns_set: false,
        volatility: Volatility::Volatile,
        strict: false,
        security_definer: false,
        settings: Vec::new(),
        body,
        aggregate: None,
        columns: Vec::new(),
    }
}
