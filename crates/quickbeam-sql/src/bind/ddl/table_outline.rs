//! The names that a statement which creates or alters a table can refer to: columns, constraints,
//! and names of other objects, as of that point of the statement.
//!
//! The catalog checks all of it again when it makes the change. Names are resolved here so that
//! errors have a position (BIND-2).

use std::sync::Arc;

use smol_str::SmolStr;
use sqlparser::ast::{Ident, ObjectName};

use super::super::{Binder, Derivation, Scope, fold, object_name};
use super::ObjectKind;
use crate::bind::rights::Right;
use crate::bind::scope::relation_with;
use crate::catalog::{Relation, Table, lookup_name, shown_name, split_lookup_name};
use crate::ddl::check_name;
use crate::error::{Result, SqlError, SqlState};
use crate::keywords::{NameKind, is_name};
use crate::schema::SYSTEM_COLUMNS;
use crate::schema::errors::{
    column_exists, constraint_exists, is_not, many_primary_keys, named_twice, no_column,
    no_constraint, no_definition, no_index, no_materialized_view, no_object, no_view,
    relation_exists, system_column_exists,
};
use crate::types::DataType;

/// Whether a constraint's name is also the name of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConstraintKind {
    /// PRIMARY KEY or UNIQUE, which has an index.
    Key,
    /// CHECK or FOREIGN KEY.
    Rule,
}

/// Where a constraint is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::bind) enum ConstraintPlace {
    /// After a column, whose name comes before PRIMARY KEY.
    Column,
    /// Among the columns, so that its column list follows PRIMARY KEY.
    Table,
}

/// What becomes of a statement whose object exists already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnExisting {
    /// IF NOT EXISTS: it does nothing.
    Skip,
    /// It fails.
    Fail,
}

/// Whether a relation ends with its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    /// It stays.
    Permanent,
    /// TEMPORARY.
    Temporary,
}

impl From<bool> for Persistence {
    fn from(temporary: bool) -> Persistence {
        if temporary { Persistence::Temporary } else { Persistence::Permanent }
    }
}

impl From<bool> for OnExisting {
    fn from(if_not_exists: bool) -> OnExisting {
        if if_not_exists { OnExisting::Skip } else { OnExisting::Fail }
    }
}

/// What becomes of a statement whose object does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::bind) enum OnMissing {
    /// IF EXISTS: it does nothing.
    Skip,
    /// It fails.
    Fail,
}

impl From<bool> for OnMissing {
    fn from(if_exists: bool) -> OnMissing {
        if if_exists { OnMissing::Skip } else { OnMissing::Fail }
    }
}

/// A name that is no reserved word, or is quoted.
fn check_word(name: &Ident) -> Result<()> {
    let is_plain = name.quote_style.is_none();
    if is_plain && !is_name(&fold(name), NameKind::Object) {
        let message = format!("syntax error at or near \"{name}\"");
        return Err(SqlError::new(SqlState::SyntaxError, message));
    }
    Ok(())
}

/// A table in the course of a statement.
pub(super) struct Outline {
    pub schema: SmolStr,
    pub name: SmolStr,
    pub columns: Vec<(SmolStr, DataType, Derivation)>,
    /// Names of the generated columns.
    pub generated: Vec<SmolStr>,
    /// Names of constraints, and whether an index has the same name.
    constraints: Vec<(SmolStr, bool)>,
    has_primary_key: bool,
    pub is_new: bool,
    /// Whether the statement has not yet generated or freed a name of a constraint or index.
    pub is_untouched: bool,
}

impl Outline {
    /// A table of that lookup name without anything.
    pub fn new(lookup: &str) -> Outline {
        let (schema, name) = split_lookup_name(lookup);
        let name = SmolStr::new(name);
        let (columns, constraints, generated) = (Vec::new(), Vec::new(), Vec::new());
        let (has_primary_key, is_new, is_untouched) = (false, true, true);
        Outline {
            schema,
            name,
            columns,
            generated,
            constraints,
            has_primary_key,
            is_new,
            is_untouched,
        }
    }

    /// Makes the outline of an existing table.
    pub fn of(table: &Table) -> Outline {
        let columns = table.columns.iter().map(|column| {
            let collation = Derivation::of_column(column.collation);
            (column.name.clone(), column.data_type, collation)
        });
        let keys = table.primary_key.iter().map(|key| (key.name.clone(), true));
        let uniques = table.indexes.iter().filter(|index| index.is_constraint);
        let uniques = uniques.map(|index| (index.name.clone(), true));
        let checks = table.checks.iter().map(|check| (check.name.clone(), false));
        let foreign_keys = table.foreign_keys.iter().map(|key| (key.name.clone(), false));
        let generated = table.columns.iter().filter(|column| column.generated.is_some());
        Outline {
            columns: columns.collect(),
            generated: generated.map(|column| column.name.clone()).collect(),
            constraints: keys.chain(uniques).chain(checks).chain(foreign_keys).collect(),
            has_primary_key: table.primary_columns().is_some(),
            is_new: false,
            ..Outline::new(&table.lookup_name())
        }
    }

    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|(known, ..)| known == name)
    }

    /// Returns the scope of an expression over one row.
    pub fn scope(&self) -> Scope {
        let columns = self.columns.iter().cloned();
        Scope::of(vec![relation_with(self.name.clone(), 0, columns)])
    }

    /// A table has one primary key.
    pub fn take_primary_key(&mut self) -> Result<()> {
        if self.has_primary_key && self.is_untouched {
            return Err(many_primary_keys(&self.name));
        }
        self.has_primary_key = true;
        Ok(())
    }

    fn take_constraint(&mut self, name: &SmolStr, kind: ConstraintKind) -> Result<()> {
        let is_index = kind == ConstraintKind::Key;
        let known = self.constraints.iter().find(|(known, _)| known == name);
        let is_taken = known.filter(|_| self.is_untouched);
        if is_index && (*name == self.name || is_taken.is_some_and(|(_, of_index)| *of_index)) {
            return Err(relation_exists(name));
        }
        if is_taken.is_some() {
            return Err(constraint_exists(&self.name, name));
        }
        self.constraints.push((name.clone(), is_index));
        Ok(())
    }

    fn drop_constraint(&self, name: &str) -> Result<()> {
        if !self.is_untouched || self.constraints.iter().any(|(known, _)| known == name) {
            return Ok(());
        }
        Err(no_constraint(&self.name, name))
    }
}

impl Binder<'_> {
    /// The name of something new in a table.
    pub(super) fn new_name(&self, name: &Ident) -> Result<SmolStr> {
        let folded = fold(name);
        check_word(name).map_err(|error| error.at(self.place_of(name)))?;
        check_name(&folded).map_err(|error| error.at(self.place_of(name)))?;
        Ok(folded)
    }

    /// Returns the name of a new table, view, index or sequence, and whether it exists already
    /// under IF NOT EXISTS.
    pub fn new_relation(&self, name: &ObjectName, existing: OnExisting) -> Result<(SmolStr, bool)> {
        let if_not_exists = existing == OnExisting::Skip;
        let folded = self.new_relation_name(name);
        let folded = folded.map_err(|error| error.at(self.position(name) as usize))?;
        self.free_relation(name, folded, if_not_exists)
    }

    /// As [`new_relation`](Self::new_relation), of a relation that may be temporary.
    pub fn new_relation_of(
        &self,
        persistence: Persistence,
        name: &ObjectName,
        existing: OnExisting,
    ) -> Result<(SmolStr, bool)> {
        if persistence == Persistence::Permanent {
            return self.new_relation(name, existing);
        }
        let folded = self.temporary_name(name);
        let folded = folded.map_err(|error| error.at(self.position(name) as usize))?;
        self.free_relation(name, folded, existing == OnExisting::Skip)
    }

    /// As [`new_relation`](Self::new_relation), of an unqualified name in the schema of a table.
    pub(super) fn new_relation_in(
        &self,
        schema: &str,
        name: &ObjectName,
        existing: OnExisting,
    ) -> Result<(SmolStr, bool)> {
        let if_not_exists = existing == OnExisting::Skip;
        let own = object_name(name)?;
        check_name(&own).map_err(|error| error.at(self.position(name) as usize))?;
        let (_, is_there) = self.free_relation(name, lookup_name(schema, &own), if_not_exists)?;
        Ok((own, is_there))
    }

    fn free_relation(
        &self,
        name: &ObjectName,
        folded: SmolStr,
        if_not_exists: bool,
    ) -> Result<(SmolStr, bool)> {
        let look = || {
            let is_there = match self.names.relation(&folded)? {
                None => false,
                // SQL does not create databases, so IF NOT EXISTS does not accept one.
                Some(Relation::Table(table)) if table.is_database() => {
                    return Err(relation_exists(&folded));
                }
                Some(_) if !if_not_exists => return Err(relation_exists(&folded)),
                Some(_) => true,
            };
            Ok((folded, is_there))
        };
        look().map_err(|error: SqlError| error.at(self.position(name) as usize))
    }

    /// Adds a column to a table.
    pub(super) fn take_column(
        &self,
        outline: &mut Outline,
        name: &Ident,
        data_type: DataType,
    ) -> Result<SmolStr> {
        let folded = self.new_name(name)?;
        if SYSTEM_COLUMNS.contains(&&*folded) {
            return Err(system_column_exists(&folded).at(self.place_of(name)));
        }
        if outline.column(&folded).is_some() {
            let error = match outline.is_new {
                true => named_twice(&folded),
                false => column_exists(&outline.name, &folded),
            };
            return Err(error.at(self.place_of(name)));
        }
        outline.columns.push((folded.clone(), data_type, Derivation::Default));
        Ok(folded)
    }

    /// The position of a column that has to be there.
    pub(super) fn known_column(&self, outline: &Outline, name: &Ident) -> Result<usize> {
        let folded = fold(name);
        let missing = || no_column(&outline.name, &folded).at(self.place_of(name));
        outline.column(&folded).ok_or_else(missing)
    }

    /// Names of columns that have to be there, each named once.
    pub(super) fn known_columns<'n>(
        &self,
        outline: &Outline,
        names: impl Iterator<Item = &'n Ident>,
    ) -> Result<Vec<SmolStr>> {
        let mut columns = Vec::new();
        for name in names {
            self.known_column(outline, name)?;
            let folded = fold(name);
            if columns.contains(&folded) {
                return Err(named_twice(&folded).at(self.place_of(name)));
            }
            columns.push(folded);
        }
        Ok(columns)
    }

    /// Returns the name of a new constraint. A key's name is also the name of its index.
    pub(super) fn take_constraint(
        &self,
        outline: &mut Outline,
        name: Option<&Ident>,
        kind: ConstraintKind,
    ) -> Result<Option<SmolStr>> {
        let Some(name) = name else { return Ok(None) };
        let folded = match kind == ConstraintKind::Key && outline.is_untouched {
            true => {
                let written = ObjectName::from(vec![name.clone()]);
                self.new_relation_in(&outline.schema, &written, OnExisting::Fail)?.0
            }
            false => self.new_name(name)?,
        };
        let taken = outline.take_constraint(&folded, kind);
        taken.map_err(|error| error.at(self.place_of(name)))?;
        Ok(Some(folded))
    }

    /// The name of a constraint that has to be there.
    pub(super) fn known_constraint(&self, outline: &Outline, name: &Ident) -> Result<SmolStr> {
        let folded = fold(name);
        outline.drop_constraint(&folded).map_err(|error| error.at(self.place_of(name)))?;
        Ok(folded)
    }

    /// The table of that name, whose definition is to be used or changed.
    pub(super) fn defined_table(&mut self, name: &ObjectName, right: Right) -> Result<Arc<Table>> {
        let table = self.table(name, right)?;
        if table.is_database() {
            return Err(no_definition(&table.name).at(self.position(name) as usize));
        }
        Ok(table)
    }

    /// Returns the name of an existing object of that kind, or `None` if it does not exist under IF
    /// EXISTS.
    pub(super) fn known_object(
        &self,
        kind: ObjectKind,
        name: &ObjectName,
        missing: OnMissing,
    ) -> Result<SmolStr> {
        let if_exists = missing == OnMissing::Skip;
        let look = || {
            let folded = self.relation_name(name)?;
            let relation = self.names.relation(&folded)?;
            if let Some(relation) = &relation {
                self.check_owner(relation, shown_name(&folded).as_str())?;
            }
            let found = match relation {
                Some(Relation::Table(table)) if table.is_database() => {
                    if kind == ObjectKind::Table && !if_exists {
                        return Err(no_definition(&folded));
                    }
                    None
                }
                Some(Relation::Table(table)) if table.materialized.is_some() => {
                    Some(ObjectKind::MaterializedView)
                }
                Some(Relation::Table(_)) => Some(ObjectKind::Table),
                Some(Relation::View(_)) => Some(ObjectKind::View),
                Some(Relation::Index(..)) => Some(ObjectKind::Index),
                Some(Relation::Sequence(_)) => Some(ObjectKind::Sequence),
                None => None,
            };
            match found {
                Some(found) if found == kind => Ok(folded),
                Some(_) => Err(is_not(&folded, kind.with_article())),
                None if if_exists => Ok(folded),
                None => Err(kind.missing(&folded)),
            }
        };
        look().map_err(|error: SqlError| error.at(self.position(name) as usize))
    }
}

impl ObjectKind {
    fn with_article(self) -> &'static str {
        match self {
            ObjectKind::Table => "a table",
            ObjectKind::View => "a view",
            ObjectKind::MaterializedView => "a materialized view",
            ObjectKind::Index => "an index",
            ObjectKind::Sequence => "a sequence",
        }
    }

    #[cold]
    fn missing(self, name: &str) -> SqlError {
        match self {
            ObjectKind::Table => no_object("table", name),
            ObjectKind::Sequence => no_object("sequence", name),
            ObjectKind::View => no_view(name),
            ObjectKind::MaterializedView => no_materialized_view(name),
            ObjectKind::Index => no_index(name),
        }
    }
}
