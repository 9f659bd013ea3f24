//! From a parsed statement to a program: the context of compilation, and the statistics that plans
//! depend on.

pub(crate) mod cascades;
pub(crate) mod create_as;
pub(crate) mod explain_format;
pub(crate) mod prepare;
pub(crate) mod returned_rows;
pub(crate) mod session_command;
pub(crate) mod statistics;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use quickbeam::Transaction;
use smol_str::SmolStr;

use self::create_as::{CreateAs, REFRESHED};
pub(crate) use self::statistics::Parallelism;
use self::statistics::PlanBasis;
use crate::bind::{
    CatalogChange, CopyForm, GivenValue, Names, OutputColumn, SearchPath, VariableLookup,
};
use crate::catalog::{
    Catalog, CatalogSnapshot, ObjectId, Relation, Table, TransitionSide, View, split_lookup_name,
};
use crate::error::Result;
use crate::execute::{
    ChangingWithExec, InsertExec, InsteadExec, KeptKeys, MergeExec, QueryProgram, TableHandles,
    UpdateExec,
};
use crate::expression::{Builtin, Clock, Expr, FunctionRegistry, Slot};
use crate::parse::ExplainFormat;
use crate::plan::{ExecutionMode, Plan, TurnedOff};
use crate::types::{DataType, TextSettings, Value};

/// A statement that can run, under one version of the catalog.
pub(crate) struct Prepared {
    pub snapshot: Option<Arc<CatalogSnapshot>>,
    pub work: Program,
    /// Names and types of the answer's columns.
    pub columns: Arc<[OutputColumn]>,
    pub parameters: Vec<DataType>,
    pub slots: Vec<Slot>,
    /// The parameters of the execution under way.
    pub values: Vec<Value>,
    /// How often it was executed.
    pub executions: u64,
    /// It changes nothing, locks nothing and counts nothing.
    pub reads_only: bool,
    /// What it was planned for, if another way may be better when there is more, or less.
    pub planned_for: Option<PlanBasis>,
}

impl Prepared {
    /// Whether it may run in a transaction that only reads: it reads only, or explains such a
    /// statement.
    #[inline]
    pub fn only_reads(&self) -> bool {
        match &self.work {
            Program::Explain(_, Some(inner), _) => inner.reads_only,
            _ => self.reads_only,
        }
    }
}

/// What a statement does.
pub(crate) enum Program {
    /// An empty text.
    Nothing,
    Query(QueryProgram),
    Insert(Box<InsertExec>),
    Change(Box<UpdateExec>),
    Merge(Box<MergeExec>),
    /// A change of a view by its INSTEAD OF triggers.
    Instead(Box<InsteadExec>),
    ChangingWith(Box<ChangingWithExec>),
    Catalog(CatalogChange),
    CreateAs(Box<CreateAs>),
    CopyFrom(Box<CopyFrom>),
    /// COPY … TO: the query, and where its rows go.
    CopyTo(Box<Prepared>, CopyForm),
    /// EXPLAIN: the plan; the statement itself, if it is to run; the format.
    Explain(Box<Plan>, Option<Box<Prepared>>, ExplainFormat),
}

impl Program {
    /// Whether it reads or changes rows by a plan.
    #[inline]
    pub fn has_plan(&self) -> bool {
        matches!(
            self,
            Program::Query(_)
                | Program::Insert(_)
                | Program::Change(_)
                | Program::Merge(_)
                | Program::Instead(_)
                | Program::ChangingWith(_)
        )
    }

    /// Returns the one table whose rows it changes, if it is a change of rows.
    pub fn changed_table(&self) -> Option<&Arc<Table>> {
        match self {
            Program::Insert(insert) => Some(insert.table()),
            Program::Change(change) => Some(change.table()),
            Program::Merge(merge) => Some(merge.table()),
            Program::CopyFrom(copy) => Some(copy.insert.table()),
            _ => None,
        }
    }

    /// What a read-only transaction refuses of it, whether or not it would find rows to change.
    pub fn changes(&self) -> Option<&'static str> {
        match self {
            Program::Insert(_) => Some("INSERT"),
            Program::Change(_) => Some("UPDATE or DELETE"),
            Program::Merge(_) => Some("MERGE"),
            Program::Instead(_) => Some("a change of a view"),
            Program::ChangingWith(with) if !with.has_parts() => Some("INSERT"),
            Program::ChangingWith(_) => Some("a WITH that changes rows"),
            Program::Catalog(_) => Some("a change of a definition"),
            Program::CreateAs(_) => Some("CREATE TABLE AS"),
            Program::CopyFrom(_) => Some("COPY FROM"),
            // What a query changes, and an EXPLAIN or COPY runs, is refused where it is done.
            Program::Nothing | Program::Query(_) | Program::CopyTo(..) | Program::Explain(..) => {
                None
            }
        }
    }
}

/// What the binder and the planner ask about the database.
pub(crate) struct CompileContext<'l> {
    pub catalog: &'l Catalog,
    pub transaction: &'l Transaction,
    pub snapshot: &'l Arc<CatalogSnapshot>,
    /// What the session wants of the planner.
    pub way: ExecutionMode,
    /// The role that executes the statement.
    pub user: ObjectId,
    /// The role that the session was opened for.
    pub session_user: ObjectId,
    /// The role whose rights are checked; `None`: a superuser.
    pub role: Option<ObjectId>,
    /// The session's path; `None`: the default one.
    pub path: SearchPath,
    /// The schema of the session's temporary objects; `None` outside of sessions.
    pub temporary: Option<&'l SmolStr>,
    /// The plan steps that the session has turned off.
    pub turned_off: TurnedOff,
    /// The workers that the session allows.
    pub parallelism: Parallelism,
    /// The functions of the program.
    pub functions: &'l FunctionRegistry,
    /// The start of the transaction, and the settings with which literals are read.
    pub clock: &'l Clock,
    /// The variables of the function around the statement.
    pub variables: Option<&'l dyn VariableLookup>,
    /// The declared types of the first parameters.
    pub types: &'l [Option<DataType>],
    /// The materialized view that the statement populates.
    pub refreshed: Option<&'l Arc<View>>,
    /// Whether a query keeps the keys of its rows, as that of a cursor does.
    pub keeps_keys: bool,
    /// Whether numbers of objects are delivered as they are, not as names.
    pub keeps_numbers: bool,
    /// The functions of the catalog that the text calls, if they are noted.
    pub noted: Option<&'l RefCell<BTreeSet<ObjectId>>>,
}

/// COPY … FROM, prepared.
pub(crate) struct CopyFrom {
    pub insert: InsertExec,
    pub relation: SmolStr,
    /// What the fields of a record are for.
    pub columns: Vec<OutputColumn>,
    /// WHERE, over the parameters that the fields are.
    pub filter: Option<Expr>,
    pub form: CopyForm,
}

impl Names for CompileContext<'_> {
    fn relation(&self, name: &str) -> Result<Option<Relation>> {
        if let Some(view) = self.refreshed.filter(|_| split_lookup_name(name).1 == REFRESHED) {
            return Ok(Some(Relation::View(view.clone())));
        }
        if let Some(found) = self.snapshot.relation(name) {
            return Ok(Some(found));
        }
        let database = self.catalog.database_as_table(self.transaction, name)?;
        Ok(database.map(|handle| Relation::Table(handle.table().clone())))
    }

    fn has_schema(&self, name: &str) -> bool {
        self.snapshot.has_schema(name)
    }

    fn search_path(&self) -> SearchPath {
        self.path.clone()
    }

    fn temporary_schema(&self) -> Option<SmolStr> {
        self.temporary.cloned()
    }

    fn sequence_name(&self, id: ObjectId) -> Option<SmolStr> {
        self.snapshot.sequence(id).map(|sequence| sequence.lookup_name())
    }

    fn role(&self) -> Option<ObjectId> {
        self.role
    }

    fn role_name(&self, of_session: bool) -> SmolStr {
        self.snapshot.role_name(if of_session { self.session_user } else { self.user })
    }

    fn snapshot(&self) -> Option<&CatalogSnapshot> {
        Some(self.snapshot)
    }

    fn variable(&self, names: &[SmolStr], is_column: bool) -> Result<Option<GivenValue>> {
        match self.variables {
            Some(variables) => variables.variable(names, is_column),
            None => Ok(None),
        }
    }

    fn transition_table(&self, name: &str) -> Option<(TransitionSide, Arc<Table>)> {
        self.variables?.transition_table(name)
    }

    fn settings(&self) -> TextSettings {
        self.clock.settings()
    }

    fn note_routine(&self, routine: ObjectId) {
        if let Some(noted) = self.noted {
            noted.borrow_mut().insert(routine);
        }
    }

    fn populates(&self) -> bool {
        self.refreshed.is_some()
    }

    fn registered_functions(&self, name: &str) -> Vec<&'static Builtin> {
        self.functions.named(name)
    }
}

impl Prepared {
    /// Whether it is the query of a cursor and locks rows.
    pub fn locks_rows(&self) -> bool {
        let Program::Query(query) = &self.work else { return false };
        query.kept_keys.as_ref().is_some_and(|keys| keys.locks())
    }

    /// Takes the keys of the rows of the last execution, if it is the query of a cursor.
    pub fn take_keys(&mut self) -> Option<Box<KeptKeys>> {
        let Program::Query(query) = &mut self.work else { return None };
        let fresh = query.kept_keys.as_ref().map(|_| Box::new(KeptKeys::of(&mut query.root)))?;
        query.kept_keys.replace(fresh)
    }
}

impl CompileContext<'_> {
    pub fn handles(&self) -> TableHandles<'_> {
        TableHandles {
            transaction: self.transaction,
            catalog: self.catalog,
            snapshot: self.snapshot,
        }
    }
}
