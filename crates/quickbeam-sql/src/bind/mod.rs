//! The binder: from a syntax tree to a statement with resolved names and types.
//!
//! Above: statements. Below: the parser's tree, the catalog, expressions.
//!
//! - BIND-1: every bound expression has a type, and casts where PostgreSQL inserts them.
//! - BIND-2: an error has the position of the name, operator or literal that caused it.
//! - BIND-3: the binder recurses no deeper than [`MAX_DEPTH`](crate::expression::MAX_DEPTH). A
//!   chain of AND or OR counts once.

mod collations;
mod ddl;
mod dml;
mod expression;
mod from;
mod grouping;
mod polymorphic;
mod positions;
mod query;
mod records;
mod relation_names;
pub(crate) mod rights;
pub(crate) mod routines;
mod scope;
mod statement_tree;
mod tree;
mod types;
mod user_types;
mod walk;
mod window_tree;

use std::collections::HashMap;
use std::sync::Arc;

use smol_str::SmolStr;
use sqlparser::ast::{Ident, ObjectName, ObjectNamePart};

pub use self::ddl::{
    BoundIndex, CatalogChange, ExpressionCompiler, ObjectKind, OnExisting, Persistence,
    TableChange, check_create_table, check_of, column_default, conversion_of, generated_columns,
    on_commit_of, table_for,
};
pub use self::dml::changing_with::has_changing_with;
pub use self::dml::copy::{CopyForm, CopyFormat, CopyHeader, CopyPlace, copy_form};
pub use self::dml::target::updatability;
pub(crate) use self::expression::system_types::named_outputs;
pub use self::grouping::made_aggregates::{StateCall, state_call};
pub use self::query::relation_places::{NameChange, renamed_query, views_without};
pub use self::query::syntax::outer_clauses::may_have_subquery;
pub(crate) use self::routines::row_result;
pub use self::routines::{GivenValue, VariableLookup};
pub use collations::Derivation;
pub(crate) use collations::names::{DerivedKind, check_derived, no_collation};
pub use records::whole_rows::refuse_records;
pub use scope::{RowOf, RowOrigin, Scope, ScopeColumn, ScopeRelation};
pub use statement_tree::*;
pub use tree::*;
pub use types::data_type;
pub use user_types::{checked_value, column_domain_check, domain_constraints, kept_domain_check};
pub use walk::{PartMut, QueryPart};
pub use window_tree::*;

use self::query::common_tables::CteSource;
use self::query::expand::Expansion;
use self::query::relation_places::RelationPlace;
use self::query::row_calls::{RowCalls, RowFunctions};
use self::records::row_markers::RowMarker;
use crate::catalog::{CatalogSnapshot, ObjectId, Relation, Table, TransitionSide};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{Builtin, ColumnRef, Expr};
use crate::parse::Text;
use crate::schema::errors::{is_not, no_relation};
use crate::types::{CastContext, Collation, DataType, TextSettings, Value, convert};

/// Name resolution for the binder.
pub trait Names {
    /// The table, view, sequence or index of that lookup name.
    fn relation(&self, name: &str) -> Result<Option<Relation>>;

    /// Whether there is a schema of that name.
    fn has_schema(&self, name: &str) -> bool;

    /// The schemas of the statement's `search_path`; `None`: `public` alone.
    fn search_path(&self) -> SearchPath {
        None
    }

    /// The schema of the session's temporary objects; `None` outside of sessions.
    fn temporary_schema(&self) -> Option<SmolStr> {
        None
    }

    /// The lookup name of the sequence of that number.
    fn sequence_name(&self, id: ObjectId) -> Option<SmolStr>;

    /// The role whose rights are checked; `None`: a superuser.
    fn role(&self) -> Option<ObjectId> {
        None
    }

    /// The name of the session's role, or with `of_session` of the one that it was opened for.
    fn role_name(&self, _of_session: bool) -> SmolStr {
        crate::catalog::BOOTSTRAP_NAME.into()
    }

    /// The catalog in which rights are looked up.
    fn snapshot(&self) -> Option<&CatalogSnapshot> {
        None
    }

    /// Returns the parameter that stands for a variable of the function around the statement, and
    /// its type. `is_column`: the name means a column, too.
    fn variable(&self, _names: &[SmolStr], _is_column: bool) -> Result<Option<GivenValue>> {
        Ok(None)
    }

    /// Returns the transition table of that name, and the table whose rows it has.
    fn transition_table(&self, _name: &str) -> Option<(TransitionSide, Arc<Table>)> {
        None
    }

    /// The settings of the session with which literals are read.
    fn settings(&self) -> TextSettings {
        TextSettings::DEFAULT
    }

    /// Takes note of a function of the catalog that the text calls.
    fn note_routine(&self, _routine: ObjectId) {}

    /// Whether the statement populates a materialized view.
    fn populates(&self) -> bool {
        false
    }

    /// The functions of that name that the program has registered.
    fn registered_functions(&self, _name: &str) -> Vec<&'static Builtin> {
        Vec::new()
    }
}

/// The schemas in which names without a schema are looked up; `None`: `public` alone.
pub type SearchPath = Option<Arc<[SmolStr]>>;

/// An expression and its type. NULL, a quoted literal or a parameter has no type yet and takes the
/// type that the context needs.
#[derive(Clone, Debug)]
pub struct Typed {
    /// The expression.
    pub expr: Expr,
    /// Its type.
    pub data_type: Option<DataType>,
    /// Its position in the text.
    pub position: u32,
}

/// State of one query level, collected while the query is bound.
#[derive(Default)]
struct Level {
    /// The first slot of this level.
    first_slot: usize,
    /// The group's slot, once an aggregate was seen or GROUP BY.
    group_slot: Option<usize>,
    aggregates: Vec<Aggregate>,
    subqueries: Vec<Subquery>,
    /// The text of GROUP BY, if it has subqueries: equal ones elsewhere are the same.
    group_text: Option<String>,
    /// The subqueries of GROUP BY, as they are written and bound.
    of_keys: Vec<(sqlparser::ast::Expr, Typed)>,
    /// The subqueries of the aggregate with DISTINCT and ORDER BY that is bound.
    of_aggregate: Option<Vec<(sqlparser::ast::Expr, Typed)>>,
    /// The clause whose condition is bound, or nothing.
    clause: &'static str,
    /// Aggregates are allowed here.
    allows_aggregates: bool,
    /// Inside the argument of an aggregate.
    in_aggregate: bool,
    /// The arguments of the calls of GROUPING, with their positions.
    groupings: Vec<(Vec<Expr>, u32)>,
    /// Window functions are allowed here.
    allows_windows: bool,
    /// Inside a call of a window function, or its window.
    in_window: bool,
    /// Whether functions that return rows are allowed here.
    row_functions: RowFunctions,
    /// Those of the select list.
    row_calls: RowCalls,
    /// The windows of the WINDOW clause, by name.
    named_windows: Vec<(SmolStr, sqlparser::ast::WindowSpec)>,
    /// The window functions so far.
    windows: Option<Windows>,
    /// Columns named outside of aggregates where aggregates are allowed, with their positions.
    named: Vec<(ColumnRef, u32)>,
}

/// Binds one statement.
pub struct Binder<'a> {
    names: &'a dyn Names,
    path: SearchPath,
    /// The role whose rights are checked; `None`: a superuser.
    role: Option<ObjectId>,
    /// The role of the statement.
    invoker: Option<ObjectId>,
    /// Whether the text is stored: the schemas in it are not those of the role.
    is_stored: bool,
    /// The settings with which literals are read: those of the session, in a stored text the
    /// defaults.
    settings: TextSettings,
    /// Whether a literal would be another value with the default settings.
    has_own_literals: bool,
    /// Slots of which the role may not read all columns.
    restricted: Vec<rights::Restricted>,
    /// The views read so far.
    pub views: Vec<ObjectId>,
    text: Text<'a>,
    /// The row slots of the statement.
    pub slots: Vec<SlotShape>,
    /// Types of the parameters, as far as they are known.
    pub parameters: Vec<Option<DataType>>,
    levels: Vec<Level>,
    depth: usize,
    view_depth: usize,
    ctes: Vec<(SmolStr, CteSource)>,
    /// For each column of the query bound last: whether it is NULL or a quoted literal, so that it
    /// takes the type that the context needs.
    unknown: Vec<bool>,
    /// Whether untyped parameters in the select list of the next query wait for the type that the
    /// context needs.
    defers: bool,
    /// The slots of system catalogs, with the OIDs of the catalogs.
    catalog_slots: Vec<(usize, i64)>,
    /// Whether a column or a COLLATE has another collation than the default.
    has_collations: bool,
    /// The collations of columns that are computed, or whose slots are not known.
    collations: HashMap<ColumnRef, Derivation>,
    /// The places of the COLLATE clauses.
    collate_places: Vec<(Collation, u32)>,
    /// Whether the statement reads row ids.
    pub reads_row_ids: bool,
    /// The outputs that mark rows, of queries that are bound already.
    row_markers: Vec<RowMarker>,
    /// Whether it reads a system column.
    reads_system_columns: bool,
    /// The slot of the new row of INSERT while its RETURNING is bound.
    returned_row: Option<usize>,
    /// The slot of the `xmax` of that row.
    xmax_slot: Option<usize>,
    /// Expansions of names in the text, if they are recorded.
    expansions: Option<Vec<Expansion>>,
    /// Where the text names relations, if that is recorded.
    places: Option<Vec<RelationPlace>>,
}

/// Parameters that a statement may have.
const PARAMETERS: usize = 65_535;

/// Views within views.
const VIEW_DEPTH: usize = 20;

/// Slots of a statement beyond which no view is expanded. Views of views can double the slots at
/// each level.
const VIEW_SLOTS: usize = 2_000;

/// Returns a name as it is looked up: in lower case, unless it is quoted.
pub fn fold(ident: &Ident) -> SmolStr {
    match ident.quote_style {
        Some(_) => SmolStr::new(&ident.value),
        None => SmolStr::new(ident.value.to_lowercase()),
    }
}

/// Returns the last part of a name that may be qualified with a schema.
pub fn object_name(name: &ObjectName) -> Result<SmolStr> {
    let mut parts = Vec::new();
    for part in &name.0 {
        match part {
            ObjectNamePart::Identifier(ident) => parts.push(fold(ident)),
            ObjectNamePart::Function(_) => {
                return Err(SqlError::unsupported("a function as a name"));
            }
        }
    }
    match &parts[..] {
        [name] => Ok(name.clone()),
        [_, name] => Ok(name.clone()),
        _ => Err(cross_database(name)),
    }
}

#[cold]
fn cross_database(name: &ObjectName) -> SqlError {
    SqlError::unsupported(format!("a reference to another database, {name},"))
}

/// Returns the name of a function. Those that are built in are in the schema `pg_catalog`; the name
/// of one in another schema has the schema before it, with the character 0 between them.
pub fn function_name(name: &ObjectName) -> Result<SmolStr> {
    match &name.0[..] {
        [ObjectNamePart::Identifier(schema), ObjectNamePart::Identifier(function)]
            if fold(schema) == "pg_catalog"
                || fold(schema) == "information_schema" && fold(function) == "_pg_expandarray" =>
        {
            Ok(fold(function))
        }
        [_] => object_name(name),
        [ObjectNamePart::Identifier(schema), ObjectNamePart::Identifier(function)]
            if fold(schema) != "information_schema" =>
        {
            Ok(smol_str::format_smolstr!("{}\0{}", fold(schema), fold(function)))
        }
        _ => Err(types::undefined::no_such_call(&name.to_string())),
    }
}

impl<'a> Binder<'a> {
    /// A binder of that text.
    pub fn new(names: &'a dyn Names, text: &'a str) -> Binder<'a> {
        Binder {
            names,
            path: names.search_path(),
            role: names.role(),
            invoker: names.role(),
            is_stored: false,
            settings: names.settings(),
            has_own_literals: false,
            restricted: Vec::new(),
            views: Vec::new(),
            text: Text::new(text),
            slots: Vec::new(),
            parameters: Vec::new(),
            levels: Vec::new(),
            depth: 0,
            view_depth: 0,
            ctes: Vec::new(),
            unknown: Vec::new(),
            defers: false,
            catalog_slots: Vec::new(),
            has_collations: false,
            collations: HashMap::new(),
            collate_places: Vec::new(),
            reads_row_ids: false,
            row_markers: Vec::new(),
            reads_system_columns: false,
            returned_row: None,
            xmax_slot: None,
            expansions: None,
            places: None,
        }
    }

    /// A binder of a stored text, whose names do not depend on the path (SCHEMA-NAME-2).
    pub fn of_stored(names: &'a dyn Names) -> Binder<'a> {
        Binder::of_stored_text(names, "")
    }

    /// As [`of_stored`](Self::of_stored), where the places in the text matter.
    pub fn of_stored_text(names: &'a dyn Names, text: &'a str) -> Binder<'a> {
        let settings = TextSettings::DEFAULT;
        Binder { path: None, is_stored: true, settings, ..Binder::new(names, text) }
    }

    /// Reads a literal as a value of that type.
    fn read_literal(
        &mut self,
        value: Value,
        data_type: DataType,
        context: CastContext,
    ) -> Result<Value> {
        let read = |settings: &TextSettings| {
            let from = value.data_type().unwrap_or(data_type);
            convert(value.clone(), from, data_type, context, settings)
        };
        let found = read(&self.settings);
        if self.settings != TextSettings::DEFAULT {
            let plain = read(&TextSettings::DEFAULT);
            self.has_own_literals |= plain.ok().as_ref() != found.as_ref().ok();
        }
        found
    }

    /// Refuses a text to be stored that has a literal which depends on the settings of the session.
    fn check_literals(&self) -> Result<()> {
        if !self.has_own_literals || self.is_stored {
            return Ok(());
        }
        let what = "a literal that depends on TimeZone, DateStyle or IntervalStyle in a definition";
        Err(SqlError::unsupported(what)
            .with_hint("Write it in the default form, a time with its distance from UTC."))
    }

    /// A place for rows.
    fn add_slot(&mut self, name: SmolStr, source: Source) -> usize {
        self.note_collations_of(&source);
        self.slots.push(SlotShape { name, source });
        self.slots.len() - 1
    }

    /// Runs one step of a recursion (BIND-3).
    fn nested<T>(&mut self, step: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.deeper(1, "the statement is nested too deep", step)
    }

    /// Runs a step that adds `levels` to the depth. `too_deep` is the message if that exceeds the
    /// limit.
    fn deeper<T>(
        &mut self,
        levels: usize,
        too_deep: &str,
        step: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.depth += levels;
        let result = if self.depth > crate::expression::MAX_DEPTH {
            Err(SqlError::new(SqlState::StatementTooComplex, too_deep))
        } else {
            step(self)
        };
        self.depth -= levels;
        result
    }

    /// The table of that name, on which the statement needs a right.
    fn table(
        &mut self,
        name: &ObjectName,
        right: rights::Right,
    ) -> Result<Arc<crate::catalog::Table>> {
        let position = self.position(name) as usize;
        let folded = self.relation_name(name).map_err(|error| error.at(position))?;
        let found = self.names.relation(&folded)?;
        self.checked_table(found, &folded, right).map_err(|error| error.at(position))
    }

    /// Returns the table that was found under a name.
    fn checked_table(
        &self,
        found: Option<Relation>,
        name: &str,
        right: rights::Right,
    ) -> Result<Arc<crate::catalog::Table>> {
        match found {
            Some(Relation::Table(table)) => {
                self.check_table(&table, right)?;
                Ok(table)
            }
            Some(_) => Err(is_not(name, "a table")),
            None => Err(no_relation(name)),
        }
    }

    /// Returns the types of all parameters. An untyped parameter is a text.
    pub fn parameter_types(&self) -> Vec<DataType> {
        self.parameters.iter().map(|known| known.unwrap_or(DataType::Text)).collect()
    }
}
