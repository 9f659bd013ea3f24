//! ALTER FUNCTION, and what calls a function.
//!
//! Views, defaults and checks are kept as texts. Each that may name a function is bound to see
//! whether it calls it.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use smol_str::SmolStr;

use super::Session;
use super::accepted::{PLPGSQL, no_extension};
use super::relations::target_schema;
use crate::bind::{Binder, check_of, column_default};
use crate::catalog::rights::not_owner;
use crate::catalog::{DropBehavior, ObjectId, Routine};
use crate::compile::CompileContext;
use crate::ddl::depended;
use crate::error::{Result, SqlError, SqlState};
use crate::parse::{AlterRoutine, RoutineChange};
use crate::session::access::check_create_in;

/// What calls a function, or casts to a type.
pub(in crate::session) enum RoutineUser {
    /// A view: its lookup name and its own, and whether it is materialized.
    View(SmolStr, SmolStr, bool),
    /// A default: the table's lookup name and its own, and the column.
    Default(SmolStr, SmolStr, SmolStr),
    /// A CHECK: the table's lookup name and its own, and the constraint.
    Check(SmolStr, SmolStr, SmolStr),
}

impl RoutineUser {
    /// Returns its name as messages have it.
    pub fn shown(&self) -> String {
        match self {
            RoutineUser::View(_, name, true) => format!("materialized view {name}"),
            RoutineUser::View(_, name, false) => format!("view {name}"),
            RoutineUser::Default(_, table, column) => {
                format!("default value for column {column} of table {table}")
            }
            RoutineUser::Check(_, table, name) => format!("constraint {name} on table {table}"),
        }
    }

    pub fn drop(&self, look: &CompileContext<'_>) -> Result<()> {
        let (catalog, transaction) = (look.catalog, look.transaction);
        let is_there = |name: &str| -> Result<bool> {
            Ok(catalog.snapshot(transaction)?.relation(name).is_some())
        };
        match self {
            RoutineUser::View(lookup, _, is_materialized) => {
                let names = std::slice::from_ref(lookup);
                match is_there(lookup)? {
                    false => Ok(()),
                    true if *is_materialized => {
                        catalog.drop_tables(transaction, names, DropBehavior::Cascade)
                    }
                    true => catalog.drop_views(transaction, names, DropBehavior::Cascade),
                }
            }
            RoutineUser::Default(table, _, column) => {
                catalog.set_default(transaction, table, column, None)
            }
            RoutineUser::Check(table, _, name) => {
                let cascade = false;
                catalog.drop_constraint(transaction, table, name, cascade)
            }
        }
    }
}

/// Returns the views, defaults and checks that call a function.
fn users_of(routine: &Routine, look: &CompileContext<'_>) -> Result<Vec<RoutineUser>> {
    let noted: RefCell<BTreeSet<ObjectId>> = RefCell::default();
    let look = &CompileContext { path: None, role: None, noted: Some(&noted), ..*look };
    let name = routine.name.to_lowercase();
    let may_call = |text: &str| text.to_lowercase().contains(&name);
    // A text that cannot be bound calls nothing.
    let calls = |bind: &dyn Fn() -> Result<()>| {
        noted.borrow_mut().clear();
        bind().is_ok() && noted.borrow().contains(&routine.id)
    };
    let mut users = Vec::new();
    for view in look.snapshot.all_views().filter(|view| may_call(&view.query)) {
        let bind = || {
            let parsed = crate::parse::query(&view.query)?;
            Binder::of_stored(look).query_statement(&parsed).map(drop)
        };
        if calls(&bind) {
            let is_materialized = look.snapshot.table(view.id).is_some();
            users.push(RoutineUser::View(view.lookup_name(), view.name.clone(), is_materialized));
        }
    }
    for table in look.snapshot.tables() {
        let (lookup, own) = (table.lookup_name(), &table.name);
        for (position, column) in table.columns.iter().enumerate() {
            let bind = || column_default(look, table, position).map(drop);
            if column.default.as_deref().is_some_and(may_call) && calls(&bind) {
                let name = column.name.clone();
                users.push(RoutineUser::Default(lookup.clone(), own.clone(), name));
            }
        }
        for check in table.checks.iter().filter(|check| may_call(&check.expression)) {
            let bind = || check_of(look, table, &check.expression, 0).map(drop);
            if calls(&bind) {
                let name = check.name.clone();
                users.push(RoutineUser::Check(lookup.clone(), own.clone(), name));
            }
        }
    }
    Ok(users)
}

/// Drops what calls functions that are to be dropped, or refuses to.
pub(in crate::session) fn drop_users(
    routines: &[Arc<Routine>],
    behavior: DropBehavior,
    look: &CompileContext<'_>,
) -> Result<()> {
    for routine in routines {
        for user in users_of(routine, look)? {
            if behavior == DropBehavior::Restrict {
                let what = format!("{} {}", routine.word(), routine.signature());
                return Err(depended(&what, &user.shown()));
            }
            user.drop(look)?;
        }
    }
    Ok(())
}

impl Session {
    /// Drops functions and what calls them, or refuses to.
    pub(in crate::session) fn drop_with_callers(
        &self,
        routines: &[Arc<Routine>],
        behavior: DropBehavior,
        look: &CompileContext<'_>,
    ) -> Result<()> {
        drop_users(routines, behavior, look)?;
        look.catalog.drop_routines(look.transaction, routines, behavior)
    }

    /// ALTER FUNCTION, PROCEDURE or ROUTINE.
    pub(in crate::session) fn alter_routine(
        &self,
        alter: &AlterRoutine,
        look: &CompileContext<'_>,
    ) -> Result<()> {
        let (name, types) = &alter.name;
        let known = self.known_routine(alter.kind, name, types.as_deref(), look)?;
        if look.role.is_some_and(|role| !look.snapshot.owns(role, known.id)) {
            return Err(not_owner(known.word(), &known.name));
        }
        let mut routine = (*known).clone();
        match &alter.change {
            RoutineChange::Rename(to) => {
                if let Some(role) = look.role {
                    check_create_in(look.snapshot, role, &routine.schema)?;
                }
                routine.name = to.clone();
            }
            RoutineChange::Schema(schema) => routine.schema = target_schema(schema, look)?,
            RoutineChange::Extension(name) if name == PLPGSQL => return Ok(()),
            RoutineChange::Extension(name) => return Err(no_extension(name)),
            RoutineChange::Options { volatility, strict, security_definer, has_rows, settings } => {
                if *has_rows && !routine.returns_set {
                    let message = "ROWS is not applicable when function does not return a set";
                    return Err(SqlError::new(SqlState::InvalidParameterValue, message));
                }
                if routine.is_procedure() && (volatility.is_some() || strict.is_some()) {
                    let message = "invalid attribute in procedure definition";
                    return Err(SqlError::new(SqlState::InvalidFunctionDefinition, message));
                }
                routine.volatility = volatility.unwrap_or(routine.volatility);
                routine.strict = strict.unwrap_or(routine.strict);
                routine.security_definer = security_definer.unwrap_or(routine.security_definer);
                routine.settings = self.routine_settings(&routine.settings, settings)?;
            }
        }
        if routine == *known {
            return Ok(());
        }
        let is_named_alike = routine.name == known.name && routine.schema == known.schema;
        if let Some(user) = users_of(&known, look)?.first().filter(|_| !is_named_alike) {
            let (word, by) = (known.word(), user.shown());
            let what = format!("a new name of {word} {} while {by} calls it", known.signature());
            return Err(SqlError::unsupported(what));
        }
        look.catalog.alter_routine(look.transaction, routine)
    }
}
