//! What a server needs of prepared statements beside running them: declared types of parameters,
//! the tables that columns come from, and rows that own their statement.
//!
//! - PORTAL-1: rows that a portal has not delivered yet are not changed by later statements: under
//!   read committed they are read in a snapshot of their own, unless the transaction has changed
//!   something before.

use std::sync::Arc;

use quickbeam::{Isolation, ReadTransaction, invariant};
use smol_str::SmolStr;

use super::connection::Connection;
use super::connection::statement::Statement;
use crate::bind::OutputColumn;
use crate::catalog::system::object_oid;
use crate::compile::Program;
use crate::error::Result;
use crate::expression::ShownStatement;
use crate::parse::{Command, Direction};
use crate::session::Session;
use crate::session::named::{Named, duplicate_statement};
use crate::session::prepared_statement::PreparedStatement;
use crate::session::rows::{QueryTransaction, Rows};
use crate::session::statement_cache::Lease;
use crate::types::{DataType, Value, current_moment};

/// The declared types of a statement's parameters; `None` where a type is to be inferred.
pub type DeclaredTypes = Arc<[Option<DataType>]>;

/// A statement about a cursor, which may be a portal that a server keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortalCommand {
    /// FETCH, or MOVE if no rows are returned.
    Fetch {
        /// The portal.
        name: SmolStr,
        /// The most rows to pass; `None`: all that are left.
        count: Option<u64>,
        /// Whether the rows are returned.
        returns_rows: bool,
    },
    /// FETCH or MOVE in another direction than forward, of this portal.
    Backward(SmolStr),
    /// CLOSE.
    Close(SmolStr),
}

impl PortalCommand {
    /// Reads the statement; `None` if it is another one.
    ///
    /// ```
    /// use quickbeam_sql::PortalCommand;
    ///
    /// let moved = PortalCommand::of("MOVE FORWARD 3 IN c").unwrap();
    /// assert_eq!(moved.name(), "c");
    /// assert!(PortalCommand::of("SELECT 1").is_none());
    /// ```
    #[must_use]
    pub fn of(text: &str) -> Option<PortalCommand> {
        // An error is reported when the statement is prepared.
        match crate::parse::command(text).ok()?? {
            Command::Close(Some(name)) => Some(PortalCommand::Close(name)),
            Command::Fetch(name, direction, returns_rows) => {
                let count = match direction {
                    Direction::All(true) => None,
                    Direction::By(count @ 1..) => u64::try_from(count).ok(),
                    _ => return Some(PortalCommand::Backward(name)),
                };
                Some(PortalCommand::Fetch { name, count, returns_rows })
            }
            _ => None,
        }
    }

    /// Returns the name of the cursor or portal.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            PortalCommand::Fetch { name, .. }
            | PortalCommand::Backward(name)
            | PortalCommand::Close(name) => name,
        }
    }
}

impl Connection {
    /// Prepares a statement whose first parameters have these types; `None` where the statement
    /// says.
    ///
    /// ```
    /// # use quickbeam_sql::{DataType, SqlDatabase};
    /// # let connection = SqlDatabase::open_in_memory(Default::default())?.connect();
    /// let statement = connection.prepare_typed("SELECT $1, $2", &[Some(DataType::Date), None])?;
    /// assert_eq!(statement.parameters(), [DataType::Date, DataType::Text]);
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn prepare_typed(&self, text: &str, types: &[Option<DataType>]) -> Result<Statement<'_>> {
        let mut statement = PreparedStatement::new(text).with_types(types.into());
        self.session.prepare(&mut statement)?;
        Ok(Statement::new(self, statement))
    }
}

impl Connection {
    /// Returns the columns of a cursor that DECLARE has made; `None` if there is none of that name.
    ///
    /// ```
    /// # let connection = quickbeam_sql::SqlDatabase::open_in_memory(Default::default())?.connect();
    /// connection.execute("DECLARE c CURSOR WITH HOLD FOR SELECT 1 AS one", &[])?;
    /// assert_eq!(connection.cursor_columns("c").unwrap()[0].name, "one");
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    #[must_use]
    pub fn cursor_columns(&self, name: &str) -> Option<Arc<[OutputColumn]>> {
        self.session.cursors.borrow().get(name).map(|cursor| cursor.columns.clone())
    }

    /// Gives a statement a name, as PREPARE does. EXECUTE and DEALLOCATE find it.
    ///
    /// # Errors
    /// 42P05 if there is one of that name.
    pub fn name_statement(&self, name: &str, text: &str, types: &[Option<DataType>]) -> Result<()> {
        let mut named = self.session.named.borrow_mut();
        if named.contains_key(name) {
            return Err(duplicate_statement(name));
        }
        let text: Arc<str> = text.into();
        let shown = ShownStatement {
            domains: [].into(),
            statement: text.clone(),
            prepared: current_moment(),
            parameters: Arc::new([]),
            from_sql: false,
        };
        named.insert(name.into(), Named { text, shown, types: types.into(), statement: None });
        Ok(())
    }

    /// Keeps the types of the parameters of a prepared statement, for `pg_prepared_statements`.
    pub fn note_parameters(&self, name: &str, types: &[DataType]) {
        if let Some(named) = self.session.named.borrow_mut().get_mut(name) {
            named.shown.parameters = types.into();
        }
    }

    /// Returns the text of the prepared statement of that name, and the types that were declared
    /// for its parameters.
    #[must_use]
    pub fn named_statement(&self, name: &str) -> Option<(Arc<str>, DeclaredTypes)> {
        let named = self.session.named.borrow();
        named.get(name).map(|named| (named.text.clone(), named.types.clone()))
    }

    /// Forgets a prepared statement, if there is one of that name.
    pub fn forget_statement(&self, name: &str) {
        self.session.named.borrow_mut().remove(name);
    }

    /// Closes a cursor, if there is one of that name.
    pub fn close_cursor(&self, name: &str) {
        self.session.cursors.borrow_mut().remove(name);
    }
}

impl PreparedStatement {
    /// Returns whether the statement changes nothing and locks nothing.
    #[must_use]
    pub fn reads_only(&self) -> bool {
        self.prepared.as_ref().is_some_and(|prepared| prepared.reads_only)
    }

    /// Returns of each column the table that it is read from, by its OID, and the number of the
    /// column there; `None` for what is computed.
    #[must_use]
    pub fn origins(&self) -> Vec<Option<(u32, i16)>> {
        let Some(prepared) = &self.prepared else { return Vec::new() };
        let Program::Query(query) = &prepared.work else {
            return vec![None; prepared.columns.len()];
        };
        let origin = |output: &crate::expression::Expr| {
            let column = output.as_column()?;
            let table = prepared.slots.get(column.slot)?.table.as_ref()?;
            if table.is_database() {
                return None;
            }
            let oid = u32::try_from(object_oid(table.id)).ok()?;
            let number = table.columns.get(column.column)?.id;
            Some((oid, i16::try_from(number).ok()?))
        };
        query.outputs.iter().map(origin).collect()
    }

    /// Executes the statement and returns its rows, which keep it. Rows that are not read yet are
    /// not affected by later statements if [`Rows::is_stable`] says so.
    pub fn into_rows<'c>(
        self,
        connection: &'c Connection,
        parameters: &[Value],
    ) -> Result<Rows<'c>> {
        connection.session.open_portal(Lease::Owned(Box::new(self)), parameters)
    }
}

impl Session {
    /// Begins a query whose rows are read by and by, between other statements (PORTAL-1).
    fn open_portal<'c>(&'c self, mut lease: Lease<'c>, parameters: &[Value]) -> Result<Rows<'c>> {
        let statement = lease.statement()?;
        let may_read_apart = self.is_read_committed()
            && !self.has_changed.get()
            && self.control_of(statement)?.is_none();
        if may_read_apart {
            self.begin_limits();
            let reader = self.database.environment.begin_read()?;
            if self.ensure_compiled(statement, reader.as_transaction())?.reads_only {
                return self.stream(lease, QueryTransaction::Own(reader), parameters);
            }
        }
        let rows = self.query(lease, parameters)?;
        invariant!(
            PORTAL_1,
            rows.is_stable() || !self.is_read_committed() || self.has_changed.get(),
            "{:?}",
            rows.columns()
        );
        Ok(rows)
    }

    /// Returns whether a transaction is open and reads what is committed before each statement.
    fn is_read_committed(&self) -> bool {
        let open = self.open.borrow();
        let Some(open) = &*open else { return false };
        let settings = open.settings.or(self.settings.get());
        settings.isolation == Some(Isolation::ReadCommitted)
    }
}
