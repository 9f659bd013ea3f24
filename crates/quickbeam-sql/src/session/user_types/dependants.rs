//! Stored texts that cast to a type: DROP … CASCADE drops what has them.

use smol_str::SmolStr;

use super::{casts_to, refuse_named};
use crate::catalog::{CatalogSnapshot, Column, DropBehavior, ObjectId};
use crate::compile::CompileContext;
use crate::ddl::depended;
use crate::error::{Result, SqlError};
use crate::session::utility::routine_changes::RoutineUser;

/// Returns whether a column has a type, which goes with the type.
fn has_type(snapshot: &CatalogSnapshot, column: &Column, id: ObjectId) -> bool {
    let of_domain = |domain: ObjectId| snapshot.domain_chain(domain).any(|it| it.id == id);
    column.domain.is_some_and(|used| of_domain(used.id()))
        || snapshot.is_enum(column.data_type, id)
        || column.data_type.has_rows_of(id.0)
}

/// Returns the views, defaults and checks whose texts cast to a type of that name.
fn users_of(snapshot: &CatalogSnapshot, id: ObjectId, name: &SmolStr) -> Result<Vec<RoutineUser>> {
    let casts = |text: &str| casts_to(text, name);
    let mut users = Vec::new();
    for view in snapshot.all_views().filter(|view| casts(&view.query)) {
        let is_materialized = snapshot.table(view.id).is_some();
        users.push(RoutineUser::View(view.lookup_name(), view.name.clone(), is_materialized));
    }
    for table in snapshot.tables() {
        let (lookup, own) = (table.lookup_name(), &table.name);
        let with_cast = |column: &&Column| column.default.as_deref().is_some_and(casts);
        for column in table.columns.iter().filter(with_cast) {
            if column.generated.is_some() {
                let what = format!("the generated column {} of table {own}", column.name);
                let message = format!("dropping the type {name} while {what} names it");
                return Err(SqlError::unsupported(message));
            }
            if !has_type(snapshot, column, id) {
                let (lookup, own) = (lookup.clone(), own.clone());
                users.push(RoutineUser::Default(lookup, own, column.name.clone()));
            }
        }
        for check in table.checks.iter().filter(|check| casts(&check.expression)) {
            let (lookup, own) = (lookup.clone(), own.clone());
            users.push(RoutineUser::Check(lookup, own, check.name.clone()));
        }
    }
    Ok(users)
}

/// Drops what casts to a type that is to be dropped, or refuses to.
pub(super) fn drop_type_users(
    id: ObjectId,
    name: &SmolStr,
    behavior: DropBehavior,
    look: &CompileContext<'_>,
) -> Result<()> {
    let snapshot = look.snapshot;
    let mut others = snapshot.domains().filter(|it| it.id != id);
    let of_domain = others.any(|other| {
        other
            .checks
            .iter()
            .map(|it| &it.expression)
            .chain(&other.default)
            .any(|it| casts_to(it, name))
    });
    let split = |lookup: &str| crate::catalog::split_lookup_name(lookup).1 == name.as_str();
    let is_named_twice = snapshot.type_names.keys().filter(|lookup| split(lookup)).count() > 1;
    // The texts do not tell types of one name in two schemas apart.
    if of_domain || is_named_twice {
        return refuse_named(snapshot, id, name, "dropping");
    }
    let users = users_of(snapshot, id, name)?;
    if behavior == DropBehavior::Restrict {
        let mut columns = snapshot.tables().flat_map(|table| &table.columns);
        // A column that has the type is named first, as by PostgreSQL.
        let is_first = columns.any(|column| has_type(snapshot, column, id));
        return match users.first().filter(|_| !is_first) {
            Some(user) => Err(depended(&format!("type {name}"), &user.shown())),
            None => Ok(()),
        };
    }
    users.iter().try_for_each(|user| user.drop(look))
}
