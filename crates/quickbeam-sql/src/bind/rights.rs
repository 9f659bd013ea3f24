//! The rights of the role for which a statement is bound.
//!
//! - RIGHTS-1: a role learns nothing of a relation on which it has no right but that the name is
//!   taken: the check comes before any column is looked up.
//! - RIGHTS-2: the relations of a view are read with the rights of the view's owner, and the view
//!   itself with those of who reads it.

use quickbeam::invariant;
use smol_str::SmolStr;

use super::{Binder, From, Names, SlotShape, Source};
use crate::catalog::rights::{denied, not_owner};
use crate::catalog::{
    AclKind, CatalogSnapshot, ObjectId, Privileges, Relation, Table, View, is_temporary_schema,
};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::ColumnRef;

/// What a statement does with a table that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::bind) enum Right {
    /// It needs a privilege on the table or on one of its columns.
    Has(Privileges),
    /// It needs a privilege on the table as a whole.
    Whole(Privileges),
    /// It needs to be its owner.
    Owns,
}

/// The columns of a slot that the role may read; its name for the error.
pub(in crate::bind) struct Restricted {
    slot: usize,
    readable: Vec<bool>,
    word: &'static str,
    name: SmolStr,
}

/// The functions that only superusers call.
const OF_SUPERUSERS: [&str; 2] = ["quickbeam_backup", "quickbeam_control"];

/// The catalogs that only superusers read.
const SECRET: [&str; 2] = ["pg_authid", "pg_shadow"];

impl<'a> Binder<'a> {
    /// Returns the role whose rights count, with the catalog; `None` for superusers.
    pub(in crate::bind) fn acting(&self) -> Option<(ObjectId, &'a CatalogSnapshot)> {
        let names: &'a dyn Names = self.names;
        let acting = (self.role?, names.snapshot()?);
        let (role, snapshot) = acting;
        invariant!(ACCESS_1, !snapshot.is_superuser(role), "the rights of a superuser are checked");
        Some(acting)
    }

    /// Whether the role may learn of the columns of a relation (RIGHTS-1).
    pub(in crate::bind) fn knows_columns(&self, relation: ObjectId) -> bool {
        let has = |(role, snapshot): (ObjectId, &CatalogSnapshot)| {
            let select = Privileges::SELECT;
            snapshot.has_any(role, relation, AclKind::Table, select)
        };
        self.acting().is_none_or(has)
    }

    /// Checks the right of a statement on a table.
    pub(in crate::bind) fn check_table(&self, table: &Table, right: Right) -> Result<()> {
        let Some((role, snapshot)) = self.acting() else { return Ok(()) };
        // Key/value databases have no rights that could be granted.
        let has = |check: &dyn Fn() -> bool| !table.is_database() && check();
        let is_allowed = match right {
            Right::Has(wanted) => has(&|| snapshot.has_any(role, table.id, AclKind::Table, wanted)),
            Right::Whole(wanted) => {
                has(&|| snapshot.rights(role, table.id, AclKind::Table).has(wanted))
            }
            Right::Owns if has(&|| snapshot.owns(role, table.id)) => true,
            Right::Owns => return Err(not_owner("table", &table.name)),
        };
        if is_allowed { Ok(()) } else { Err(denied("table", &table.name)) }
    }

    /// Checks that a privilege holds for columns of a table, by their positions.
    pub(in crate::bind) fn check_columns(
        &self,
        table: &Table,
        mut positions: impl Iterator<Item = usize>,
        wanted: Privileges,
    ) -> Result<()> {
        let Some((role, snapshot)) = self.acting() else { return Ok(()) };
        if snapshot.rights(role, table.id, AclKind::Table).has(wanted) {
            return Ok(());
        }
        let may = |position: usize| {
            let id = table.columns.get(position).map_or(0, |column| column.id);
            snapshot.column_rights(role, table.id, id).has(wanted)
        };
        if positions.all(may) { Ok(()) } else { Err(denied("table", &table.name)) }
    }

    /// Notes which columns of a table's slot may be read: those that are not are refused where they
    /// are named.
    pub(in crate::bind) fn restrict_table(&mut self, table: &Table, slot: usize) {
        let Some((role, snapshot)) = self.acting() else { return };
        let whole = snapshot.rights(role, table.id, AclKind::Table);
        if whole.has(Privileges::SELECT) && !table.is_database() {
            return;
        }
        let may = |id| snapshot.column_rights(role, table.id, id).has(Privileges::SELECT);
        let readable = table.columns.iter().map(|column| may(column.id)).collect();
        let (word, name) = ("table", table.name.clone());
        self.restricted.push(Restricted { slot, readable, word, name });
    }

    /// Checks that a view may be read.
    pub(in crate::bind) fn check_view(&self, view: &View) -> Result<()> {
        self.check_view_right(view, Right::Has(Privileges::SELECT))
    }

    /// Checks the right of a statement on a view.
    pub(in crate::bind) fn check_view_right(&self, view: &View, right: Right) -> Result<()> {
        let Some((role, snapshot)) = self.acting() else { return Ok(()) };
        let is_allowed = match right {
            Right::Has(wanted) => snapshot.has_any(role, view.id, AclKind::Table, wanted),
            Right::Whole(wanted) => snapshot.rights(role, view.id, AclKind::Table).has(wanted),
            Right::Owns => snapshot.owns(role, view.id),
        };
        if is_allowed { Ok(()) } else { Err(denied("view", &view.name)) }
    }

    /// Checks that a privilege holds for columns of a view, by their positions.
    pub(in crate::bind) fn check_view_columns(
        &self,
        view: &View,
        mut positions: impl Iterator<Item = usize>,
        wanted: Privileges,
    ) -> Result<()> {
        let Some((role, snapshot)) = self.acting() else { return Ok(()) };
        if snapshot.rights(role, view.id, AclKind::Table).has(wanted) {
            return Ok(());
        }
        let number = |position: usize| u16::try_from(position + 1).unwrap_or(u16::MAX);
        let may = |position| snapshot.column_rights(role, view.id, number(position)).has(wanted);
        if positions.all(may) { Ok(()) } else { Err(denied("view", &view.name)) }
    }

    /// As [`restrict_table`](Self::restrict_table), of a view.
    pub(in crate::bind) fn restrict_view(&mut self, view: &View, slot: usize) {
        let Some((role, snapshot)) = self.acting() else { return };
        if snapshot.rights(role, view.id, AclKind::Table).has(Privileges::SELECT) {
            return;
        }
        let may = |id| snapshot.column_rights(role, view.id, id).has(Privileges::SELECT);
        let readable = (1..).take(view.columns.len()).map(may).collect();
        let (word, name) = ("view", view.name.clone());
        self.restricted.push(Restricted { slot, readable, word, name });
    }

    /// Returns the role whose rights count within a view: its owner's, or with `security_invoker`
    /// that of the statement (RIGHTS-2).
    pub(in crate::bind) fn role_within(&self, view: &View) -> Option<ObjectId> {
        if view.options.is_security_invoker() {
            return self.invoker;
        }
        let snapshot = self.names.snapshot()?;
        let owner = snapshot.owner(view.id);
        (!snapshot.is_superuser(owner)).then_some(owner)
    }

    /// Refuses a column that the role may not read.
    #[inline]
    pub(in crate::bind) fn check_column(&self, at: ColumnRef) -> Result<()> {
        if self.restricted.is_empty() { Ok(()) } else { self.check_restricted(at) }
    }

    #[cold]
    fn check_restricted(&self, at: ColumnRef) -> Result<()> {
        let found = self.restricted.iter().find(|it| it.slot == at.slot);
        match found {
            Some(it) if it.readable.get(at.column) != Some(&true) => Err(denied(it.word, &it.name)),
            _ => Ok(()),
        }
    }

    /// Refuses columns that the role may not read.
    pub(in crate::bind) fn check_read(
        &self,
        mut columns: impl Iterator<Item = ColumnRef>,
    ) -> Result<()> {
        if self.restricted.is_empty() {
            return Ok(());
        }
        columns.try_for_each(|at| self.check_column(at))
    }

    /// Checks that the rows of a slot, or of all tables, may be locked.
    pub(in crate::bind) fn check_locked(
        &self,
        from: Option<&From>,
        of: Option<usize>,
    ) -> Result<()> {
        let slots = from.map(From::slots).unwrap_or_default();
        for slot in slots.iter().filter(|slot| of.is_none_or(|of| of == *slot)) {
            if let Some(SlotShape { source: Source::Table(table), .. }) = self.slots.get(slot) {
                if table.materialized.is_some() {
                    let name = &table.name;
                    let message = format!("cannot lock rows in materialized view \"{name}\"");
                    return Err(SqlError::new(SqlState::WrongObjectType, message));
                }
                self.check_table(table, Right::Has(Privileges::UPDATE))?;
            }
        }
        Ok(())
    }

    /// Checks a privilege on a schema.
    pub(in crate::bind) fn check_schema(&self, schema: &str, wanted: Privileges) -> Result<()> {
        let Some((role, snapshot)) =
            self.acting().filter(|_| self.view_depth == 0 && !self.is_stored)
        else {
            return Ok(());
        };
        if is_temporary_schema(schema) {
            return Ok(());
        }
        // A schema that does not exist is reported as such.
        let is_allowed =
            !snapshot.has_schema(schema) || snapshot.may_in_schema(role, schema, wanted);
        if is_allowed { Ok(()) } else { Err(denied("schema", schema)) }
    }

    /// Checks the right to temporary objects.
    pub(in crate::bind) fn check_temporary(&self) -> Result<()> {
        match self.acting() {
            Some((role, snapshot)) if !snapshot.may_in_database(role, Privileges::TEMPORARY) => {
                let message =
                    "permission denied to create temporary tables in database \"quickbeam\"";
                Err(SqlError::new(SqlState::InsufficientPrivilege, message))
            }
            _ => Ok(()),
        }
    }

    /// Whether unqualified names are looked up in a schema of the path.
    pub(in crate::bind) fn uses_schema(&self, schema: &str) -> bool {
        self.check_schema(schema, Privileges::USAGE).is_ok()
    }

    /// Checks that one of the privileges on a sequence is there.
    pub(in crate::bind) fn check_sequence(
        &self,
        id: ObjectId,
        name: &str,
        wanted: Privileges,
    ) -> Result<()> {
        let Some((role, snapshot)) = self.acting() else { return Ok(()) };
        let rights = snapshot.rights(role, id, AclKind::Sequence);
        match rights.within(wanted).is_empty() {
            true => Err(denied("sequence", name)),
            false => Ok(()),
        }
    }

    /// Checks that a built-in function may be called.
    pub(in crate::bind) fn check_function(&self, name: &str) -> Result<()> {
        match self.role.is_some() && OF_SUPERUSERS.contains(&name) {
            true => Err(denied("function", name)),
            false => Ok(()),
        }
    }

    /// Checks that a system catalog may be read.
    pub(in crate::bind) fn check_catalog(&self, name: &str) -> Result<()> {
        if self.role.is_none() || !SECRET.contains(&name) {
            return Ok(());
        }
        Err(denied(if name == "pg_shadow" { "view" } else { "table" }, name))
    }

    /// Checks that a relation belongs to the role.
    pub(in crate::bind) fn check_owner(&self, relation: &Relation, name: &str) -> Result<()> {
        let Some((role, snapshot)) = self.acting() else { return Ok(()) };
        // Who owns a schema may drop what is in it.
        let schema: Option<&SmolStr> = match relation {
            Relation::Table(table) => Some(&table.schema),
            Relation::View(view) => Some(&view.schema),
            Relation::Sequence(sequence) => Some(&sequence.schema),
            Relation::Index(..) => None,
        };
        let owns_schema =
            schema.is_some_and(|schema| snapshot.owns(role, snapshot.schema_id(schema)));
        match owns_schema || snapshot.owns(role, relation.protected().0) {
            true => Ok(()),
            false => Err(not_owner(relation.word(), name)),
        }
    }
}

/// The error for a file that only superusers read or write by COPY.
#[cold]
pub(crate) fn file_denied(to: bool) -> SqlError {
    let (role, what) = match to {
        true => ("pg_write_server_files", "to"),
        false => ("pg_read_server_files", "from"),
    };
    let message =
        format!("must be superuser or have privileges of the {role} role to COPY {what} a file");
    SqlError::new(SqlState::InsufficientPrivilege, message).with_hint(
        "Anyone can COPY to stdout or from stdin. psql's \\copy command also works for anyone.",
    )
}
