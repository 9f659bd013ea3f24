//! Session and maintenance commands: SHOW, PREPARE, cursors, DISCARD, CHECKPOINT, LOCK TABLE.
//!
//! VACUUM, ANALYZE and CLUSTER check the names that they are given and do nothing else: the engine
//! keeps its trees and its statistics up to date by itself.

mod accepted;
pub(in crate::session) mod backward;
mod cascades;
mod comments;
mod cursors;
mod prepared;
mod reindex;
pub(super) mod relations;
pub(super) mod routine_changes;
mod schema_elements;
mod table_locks;

use std::sync::Arc;

use quickbeam::ReadTransaction;
use smol_str::SmolStr;

use crate::bind::{Binder, Names, OutputColumn};
use crate::catalog::rights::{denied, not_owner};
use crate::catalog::{CatalogSnapshot, ObjectId, Relation};
use crate::compile::CompileContext;
use crate::error::{Result, SqlError, SqlState};
use crate::parse::{Command, Discard, Name};
use crate::schema::Privileges;
use crate::schema::errors::no_relation;
use crate::session::Session;
use crate::session::events::Event;
use crate::session::events::NoticeLevel;
use crate::session::executor::ResultRows;
use crate::session::named::{no_cursor, no_statement};
use crate::session::prepared_statement::PreparedStatement;
use crate::session::rows::Rows;
use crate::session::settings::known_settings::setting;
use crate::session::settings::variables::SettingScope;
use crate::session::statement_cache::Lease;
use crate::types::{DataType, Value};
use table_locks::check_lockable;

fn text_column(name: &str) -> OutputColumn {
    OutputColumn::new(name, DataType::Text)
}

#[cold]
pub(super) fn not_in_transaction(what: &str) -> SqlError {
    let message = format!("{what} cannot run inside a transaction block");
    SqlError::new(SqlState::ActiveSqlTransaction, message)
}

/// What a command does with relations.
#[derive(Clone, Copy)]
enum What {
    /// LOCK, which takes one of these privileges.
    Lock(Privileges),
    /// VACUUM, ANALYZE or CLUSTER.
    Maintain(&'static str),
}

/// What a command is executed with, beside itself.
pub(crate) struct CommandCall<'p> {
    pub(super) text: Arc<str>,
    /// The parameters, and the types that were declared for them.
    pub(super) parameters: &'p [Value],
    pub(super) types: Arc<[Option<DataType>]>,
}

impl<'p> CommandCall<'p> {
    /// The call of a statement with parameters.
    pub fn of(statement: &PreparedStatement, parameters: &'p [Value]) -> CommandCall<'p> {
        CommandCall { text: statement.text.clone(), parameters, types: statement.types.clone() }
    }
}

impl Session {
    /// Returns the types of a command's parameters: DECLARE has those of its query.
    pub(super) fn command_parameters(
        &self,
        command: &Command,
        statement: &PreparedStatement,
    ) -> Result<Arc<[DataType]>> {
        if let Command::Call(_, arguments) = command {
            return self.call_parameters(arguments, statement);
        }
        let Command::Declare(_, _, query) = command else { return Ok(Arc::new([])) };
        let text = statement.text.get(query.clone()).unwrap_or_default();
        // Without parameters the query is compiled when it is executed.
        if !text.contains('$') {
            return Ok(Arc::new([]));
        }
        let mut inner = PreparedStatement::new(text).with_types(statement.types.clone());
        self.prepare(&mut inner).map_err(|error| error.shifted(query.start))?;
        Ok(inner.parameters().into())
    }

    /// Returns the columns of a command's result.
    pub fn command_columns(&self, command: &Command) -> Arc<[OutputColumn]> {
        match command {
            Command::Show(Some(name)) => {
                let name = setting(name).map_or(&name[..], |setting| setting.name);
                Arc::new([text_column(name)])
            }
            Command::Show(None) => Arc::new(["name", "setting", "description"].map(text_column)),
            Command::ExplainExecute(_) => Arc::new([text_column("QUERY PLAN")]),
            Command::Call(name, _) => self.call_columns(name),
            Command::Execute(name, _) => {
                // An error is that of the execution, too.
                self.columns_of_named(name).unwrap_or_else(|_| Arc::new([]))
            }
            Command::Fetch(name, _, true) => {
                let cursors = self.cursors.borrow();
                cursors.get(name).map_or_else(|| Arc::new([]) as Arc<[_]>, |it| it.columns.clone())
            }
            _ => Arc::new([]),
        }
    }

    /// Returns the columns of a prepared statement, which is compiled if it has not been yet.
    fn columns_of_named(&self, name: &SmolStr) -> Result<Arc<[OutputColumn]>> {
        let mut cached = self.named_statement(name)?;
        let statement = cached.statement()?;
        if statement.prepared.is_none() {
            self.prepare(statement)?;
        }
        Ok(statement.columns().into())
    }

    /// Executes a command and returns the number of rows of its result, or that it changed.
    pub fn execute_command(
        &self,
        command: &Command,
        call: &CommandCall<'_>,
        result: ResultRows,
    ) -> Result<u64> {
        if let Command::Execute(name, arguments) = command {
            let mut values = self.argument_values(arguments.as_ref(), &call.text)?;
            let mut cached = self.named_statement(name)?;
            let statement = cached.statement()?;
            self.check_arguments(name, statement, &mut values)?;
            return self.execute(statement, &values, result);
        }
        result.check_columns(&self.command_columns(command))?;
        if let Command::Fetch(name, direction, returns_rows) = command {
            return Ok(self.fetch(name, *direction, *returns_rows)?.1.len() as u64);
        }
        if let Command::TableOfExecute(table) = command {
            return self.create_of_execute(table, &call.text);
        }
        self.query_command(command, call).map(|_| 0)
    }

    /// Executes a command and returns its rows.
    pub fn query_command<'c>(
        &'c self,
        command: &Command,
        call: &CommandCall<'_>,
    ) -> Result<Rows<'c>> {
        let text = &*call.text;
        match command {
            Command::Show(Some(name)) => {
                let value = self.show(name)?.ok_or_else(|| {
                    let message = format!("unrecognized configuration parameter \"{name}\"");
                    SqlError::new(SqlState::UndefinedObject, message)
                })?;
                return Ok(Rows::of(self.command_columns(command), vec![vec![Value::text(value)]]));
            }
            Command::Show(None) => {
                let rows = self.show_all()?.into_iter();
                let rows = rows.map(|row| row.map(Value::text).into()).collect();
                return Ok(Rows::of(self.command_columns(command), rows));
            }
            Command::Execute(name, arguments) => {
                let mut values = self.argument_values(arguments.as_ref(), text)?;
                let mut cached = self.named_statement(name)?;
                self.check_arguments(name, cached.statement()?, &mut values)?;
                return self.query(Lease::Cached(cached), &values);
            }
            Command::ExplainExecute(explained) => {
                let (made, values) = self.statement_of_execute(explained, text)?;
                let rows = self.query(Lease::Owned(Box::new(made)), &values);
                return rows.map_err(SqlError::without_place);
            }
            Command::Fetch(name, direction, returns_rows) => {
                let (columns, rows) = self.fetch(name, *direction, *returns_rows)?;
                return Ok(if *returns_rows { Rows::of(columns, rows) } else { Rows::none() });
            }
            Command::Reset(None) => self.reset_all(),
            Command::Reset(Some(name)) => drop(self.assign(name, None, SettingScope::Session)?),
            Command::Prepare(name, types, statement) => {
                self.prepare_named(name, types.as_ref(), statement, text)?;
            }
            Command::Deallocate(None) => self.named.borrow_mut().clear(),
            Command::Deallocate(Some(name)) => {
                let removed = self.named.borrow_mut().remove(name);
                removed.ok_or_else(|| no_statement(name))?;
            }
            Command::Discard(discard) => self.discard(*discard)?,
            Command::SetConstraints(names, is_deferred) => {
                self.set_constraints(names.as_deref(), *is_deferred)?;
            }
            Command::Listen(channel) => self.command_event(Event::Listen(channel.clone()))?,
            Command::Unlisten(channel) => self.command_event(Event::Unlisten(channel.clone()))?,
            Command::Notify(channel, payload) => {
                self.command_event(Event::Notify(channel.clone(), payload.clone()))?;
            }
            Command::Checkpoint => {
                if !self.may_checkpoint()? {
                    let message =
                        "must be superuser or have privileges of pg_checkpoint to do CHECKPOINT";
                    return Err(SqlError::new(SqlState::InsufficientPrivilege, message));
                }
                self.database.environment.checkpoint()?;
            }
            Command::Maintain(what, names) => {
                if self.in_transaction() && matches!(*what, "VACUUM") {
                    return Err(not_in_transaction(what));
                }
                self.check_relations(names, What::Maintain(what))?;
            }
            Command::Reindex(target) => self.reindex(target)?,
            Command::StorageHint(hint) => self.check_storage_hint(hint)?,
            Command::Extension(statement) => self.execute_extension(statement)?,
            Command::Lock(lock) => self.lock_tables(lock)?,
            Command::Call(name, arguments) => {
                let (columns, rows) = self.call(name, arguments, call)?;
                return Ok(Rows::of(columns, rows));
            }
            Command::Do(block, at) => {
                self.run_block(block).map_err(|error| error.of_body(*at))?;
            }
            Command::Access(_)
            | Command::Routine(_)
            | Command::Type(_)
            | Command::Collation(_)
            | Command::Refresh(_)
            | Command::Relation(_)
            | Command::Schema(_)
            | Command::Comment(_) => {
                return Err(SqlError::internal("a change of the catalog is no command"));
            }
            Command::Declare(name, options, query) => self.declare(name, *options, query, call)?,
            Command::TableOfExecute(table) => drop(self.create_of_execute(table, text)?),
            Command::Close(None) => self.cursors.borrow_mut().clear(),
            Command::Close(Some(name)) => {
                let removed = self.cursors.borrow_mut().remove(name);
                removed.ok_or_else(|| no_cursor(name))?;
            }
        }
        Ok(Rows::none())
    }

    fn discard(&self, discard: Discard) -> Result<()> {
        match discard {
            // Plans are checked against the catalog and the sizes of tables at each execution.
            Discard::Plans => {}
            Discard::Sequences => self.given.clear(),
            Discard::Temporary => self.drop_temporary()?,
            Discard::All => {
                if self.in_transaction() {
                    return Err(not_in_transaction("DISCARD ALL"));
                }
                self.cursors.borrow_mut().clear();
                self.drop_temporary()?;
                self.reset_all();
                self.command_event(Event::Unlisten(None))?;
                self.named.borrow_mut().clear();
                self.release_locks(false);
                self.given.clear();
            }
        }
        Ok(())
    }

    /// Checks that relations exist, and that the role has the right to do that with them.
    /// Returns their numbers.
    fn check_relations(&self, names: &[Name], what: What) -> Result<Vec<ObjectId>> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        self.read_catalog(|look| {
            let mut found = Vec::new();
            for (schema, name) in names {
                let lookup = Binder::new(look, "").lookup(schema.as_deref(), name)?;
                let Some(relation) = look.relation(&lookup)? else {
                    return Err(no_relation(&lookup));
                };
                if matches!(what, What::Lock(_)) {
                    check_lockable(&relation, name)?;
                }
                if let Some(role) = look.role {
                    self.check_use(&relation, name, what, look.snapshot, role)?;
                }
                found.push(relation.protected().0);
            }
            Ok(found)
        })
    }

    /// Calls `work` with the catalog of the open transaction, or of one that only reads.
    pub(super) fn read_catalog<T>(
        &self,
        work: impl Fn(&CompileContext<'_>) -> Result<T>,
    ) -> Result<T> {
        let work = |transaction: &quickbeam::Transaction| {
            let snapshot = self.database.catalog.snapshot(transaction)?;
            work(&self.look(transaction, &snapshot))
        };
        if self.in_transaction() {
            self.make_begun()?;
            work(&*self.begun()?)
        } else {
            work(self.database.environment.begin_read()?.as_transaction())
        }
    }

    fn check_use(
        &self,
        relation: &Relation,
        name: &str,
        what: What,
        snapshot: &CatalogSnapshot,
        role: ObjectId,
    ) -> Result<()> {
        let (id, kind) = relation.protected();
        let is_database = matches!(relation, Relation::Table(table) if table.is_database());
        match what {
            _ if snapshot.owns(role, id) && !is_database => Ok(()),
            What::Maintain(what @ ("VACUUM" | "ANALYZE")) => {
                self.notice(NoticeLevel::Warning, SqlState::InsufficientPrivilege, || {
                    format!("permission denied to {} \"{name}\", skipping it", what.to_lowercase())
                });
                Ok(())
            }
            What::Maintain(_) => Err(not_owner(relation.word(), name)),
            What::Lock(needed) => {
                let rights = snapshot.rights(role, id, kind).within(needed);
                match rights.is_empty() || is_database {
                    true => Err(denied(relation.word(), name)),
                    false => Ok(()),
                }
            }
        }
    }
}
