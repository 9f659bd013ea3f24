//! Notices of what CASCADE has dropped beside what a statement names.

use std::collections::BTreeSet;

use smol_str::SmolStr;

use super::Session;
use crate::bind::{CatalogChange, TableChange};
use crate::catalog::describe::quoted_if_needed;
use crate::catalog::{CatalogSnapshot, ObjectId, PUBLIC, Table};
use crate::compile::CompileContext;
use crate::error::Result;
use crate::parse::{CollationStatement, RoutineStatement, TypeStatement};

/// Most objects that a notice lists.
const LISTED: usize = 100;

/// Compares the catalog before and after a statement.
struct Dropped<'s> {
    before: &'s CatalogSnapshot,
    after: &'s CatalogSnapshot,
    path: Vec<SmolStr>,
    /// What the statement names.
    named: BTreeSet<ObjectId>,
    found: Vec<String>,
}

/// Returns what a statement with CASCADE names, or `None` for any other statement.
fn named_by(change: &CatalogChange, before: &CatalogSnapshot) -> Option<BTreeSet<ObjectId>> {
    let ids = |names: &[SmolStr]| {
        names.iter().filter_map(|name| before.names.get(name).copied()).collect()
    };
    match change {
        CatalogChange::Drop(_, names, _, true) => Some(ids(names)),
        CatalogChange::DropSchemas(_, _, true) => Some(BTreeSet::new()),
        CatalogChange::Alter(name, changes, _) => {
            let cascades = changes.iter().any(|change| {
                matches!(
                    change,
                    TableChange::DropColumn(_, _, true) | TableChange::DropConstraint(_, _, true)
                )
            });
            cascades.then(|| ids(std::slice::from_ref(name)))
        }
        CatalogChange::Routine(statement) => match &**statement {
            RoutineStatement::Drop(drop) if drop.cascade => {
                let names = drop.names.iter().map(|((_, name), _)| name);
                let named = |it: &SmolStr| names.clone().any(|name| name == it);
                let routines = before.routines().filter(|it| named(&it.name));
                Some(routines.map(|it| it.id).collect())
            }
            _ => None,
        },
        CatalogChange::Collation(statement) => match &**statement {
            CollationStatement::Drop(names, _, true) => {
                let is_named = |it: &str| names.iter().any(|(_, name)| name == it);
                let made = before.collations().filter(|it| is_named(&it.name));
                Some(made.map(|it| it.id).collect())
            }
            _ => None,
        },
        CatalogChange::Type(statement) => match &**statement {
            TypeStatement::Drop(drop) if drop.cascade => {
                let is_named = |name: &str| drop.names.iter().any(|(_, named)| *named == name);
                let all = before.type_names.iter();
                let own = |lookup: &str| crate::catalog::split_lookup_name(lookup).1.to_owned();
                Some(all.filter(|(name, _)| is_named(&own(name))).map(|(_, id)| *id).collect())
            }
            _ => None,
        },
        _ => None,
    }
}

impl Dropped<'_> {
    fn name(&self, schema: &str, name: &str) -> String {
        match self.path.iter().any(|known| known == schema) {
            true => quoted_if_needed(name),
            false => format!("{}.{}", quoted_if_needed(schema), quoted_if_needed(name)),
        }
    }

    fn add(&mut self, id: ObjectId, what: String) {
        if !self.named.contains(&id) {
            self.found.push(what);
        }
    }

    /// Adds the tables, views, sequences, functions and types that are gone.
    fn objects(&mut self) {
        let (before, after) = (self.before, self.after);
        for table in before.tables.values().filter(|it| !after.tables.contains_key(&it.id)) {
            self.add(
                table.id,
                format!("{} {}", table.word(), self.name(&table.schema, &table.name)),
            );
        }
        for view in before.views.values().filter(|it| !after.views.contains_key(&it.id)) {
            self.add(view.id, format!("view {}", self.name(&view.schema, &view.name)));
        }
        for sequence in before.sequences.values() {
            let is_owned =
                sequence.owned_by.is_some_and(|(owner, _)| !after.tables.contains_key(&owner));
            if !after.sequences.contains_key(&sequence.id) && !is_owned {
                let name = self.name(&sequence.schema, &sequence.name);
                self.add(sequence.id, format!("sequence {name}"));
            }
        }
        for routine in before.routines().filter(|it| after.routine(it.id).is_none()) {
            let name = self.name(&routine.schema, &routine.name);
            let types: Vec<String> = routine.signature_names();
            // PostgreSQL calls procedures functions here.
            self.add(routine.id, format!("function {name}({})", types.join(",")));
        }
        let types =
            before.type_names.iter().filter(|(name, _)| !after.type_names.contains_key(*name));
        for (lookup, id) in types.collect::<Vec<_>>() {
            let (schema, name) = crate::catalog::split_lookup_name(lookup);
            self.add(*id, format!("type {}", self.name(&schema, name)));
        }
    }

    /// Adds what is gone of a table that stays.
    fn parts(&mut self, old: &Table, new: &Table) {
        let table = self.name(&old.schema, &old.name);
        for column in &old.columns {
            let Some(position) = new.position_of(column.id) else {
                self.found.push(format!("column {} of table {table}", column.name));
                continue;
            };
            if column.default.is_some() && new.columns[position].default.is_none() {
                let name = &column.name;
                self.found.push(format!("default value for column {name} of table {table}"));
            }
        }
        let columns = |name: &str| {
            old.columns.iter().any(|column| {
                new.position_of(column.id).is_none()
                    && old
                        .checks
                        .iter()
                        .any(|it| it.name == name && it.columns.contains(&column.id))
            })
        };
        let keys = old.foreign_keys.iter().map(|key| &key.name);
        let checks = old.checks.iter().map(|check| &check.name).filter(|name| !columns(name));
        for name in keys.chain(checks).filter(|name| !new.has_constraint(name)) {
            self.found.push(format!("constraint {name} on table {table}"));
        }
        for trigger in &old.triggers {
            if !new.triggers.iter().any(|it| it.id == trigger.id) {
                self.found.push(format!("trigger {} on table {table}", trigger.name));
            }
        }
    }
}

impl Session {
    /// Leaves a notice of what CASCADE has dropped.
    pub(in crate::session) fn notice_cascades(
        &self,
        change: &CatalogChange,
        look: &CompileContext<'_>,
    ) -> Result<()> {
        if !self.keeps_notices() {
            return Ok(());
        }
        if let CatalogChange::Truncate(names, true, _) = change {
            return self.notice_truncated(names, look);
        }
        let Some(named) = named_by(change, look.snapshot) else { return Ok(()) };
        let after = look.catalog.snapshot(look.transaction)?;
        let path = look.path.as_deref().map_or_else(|| vec![PUBLIC], <[SmolStr]>::to_vec);
        let before = look.snapshot;
        let mut dropped = Dropped { before, after: &after, path, named, found: Vec::new() };
        for old in before.tables.values() {
            // What a statement drops of the table that it alters goes without a notice.
            if let (Some(new), false) = (after.tables.get(&old.id), dropped.named.contains(&old.id))
            {
                dropped.parts(old, new);
            }
        }
        dropped.objects();
        match &dropped.found[..] {
            [] => {}
            [only] => self.notice_detailed(format!("drop cascades to {only}"), None),
            found => {
                let lines = found.iter().take(LISTED).map(|it| format!("drop cascades to {it}"));
                let mut detail = lines.collect::<Vec<_>>().join("\n");
                if found.len() > LISTED {
                    let rest = found.len() - LISTED;
                    detail
                        .push_str(&format!("\nand {rest} other objects (see server log for list)"));
                }
                let message = format!("drop cascades to {} other objects", found.len());
                self.notice_detailed(message, Some(detail));
            }
        }
        Ok(())
    }

    /// Leaves a notice for each table that TRUNCATE … CASCADE has emptied besides those named.
    fn notice_truncated(&self, names: &[SmolStr], look: &CompileContext<'_>) -> Result<()> {
        let ids: Vec<ObjectId> =
            names.iter().filter_map(|name| look.snapshot.names.get(name).copied()).collect();
        let cascade = true;
        for id in look.snapshot.truncated(ids.clone(), cascade)? {
            if !ids.contains(&id) {
                let name = &look.snapshot.known_table(id)?.name;
                self.notice_detailed(format!("truncate cascades to table \"{name}\""), None);
            }
        }
        Ok(())
    }
}
