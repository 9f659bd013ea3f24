//! The constraints of all tables, and `pg_constraint`.

use std::sync::Arc;

use super::SystemSource;
use crate::catalog::system::{
    check_oid, constraint_oid, foreign_key_oid, object_oid, primary_key_oid,
};
use crate::catalog::{CatalogSnapshot, Column, ConstraintTiming, ForeignKeyAction, Table};

/// A constraint of a table.
pub(super) struct Constraint<'s> {
    pub table: &'s Arc<Table>,
    pub oid: i64,
    pub name: &'s str,
    /// `p`, `u`, `c` or `f`.
    pub kind: &'static str,
    pub columns: Vec<&'s Column>,
    /// The index that keeps it, or, of a foreign key, the index of the columns referred to.
    pub index: i64,
    /// The expression of a CHECK.
    pub check: Option<&'s str>,
    /// Whether existing rows satisfy it.
    pub is_valid: bool,
    /// NO INHERIT.
    pub no_inherit: bool,
    /// When it is checked.
    pub timing: ConstraintTiming,
    /// The table and columns that a foreign key refers to, and what happens to its rows.
    pub parent: Option<Parent<'s>>,
}

/// The other side of a foreign key.
pub(super) struct Parent<'s> {
    pub table: &'s Arc<Table>,
    pub columns: Vec<&'s Column>,
    /// The name of the constraint that makes the columns unique.
    pub key: Option<&'s str>,
    pub on_update: ForeignKeyAction,
    pub on_delete: ForeignKeyAction,
    /// MATCH FULL.
    pub is_full: bool,
    /// The columns that ON DELETE sets; none: all.
    pub delete_columns: Vec<&'s Column>,
}

fn columns(table: &Table, positions: impl Iterator<Item = usize>) -> Vec<&Column> {
    positions.filter_map(|position| table.columns.get(position)).collect()
}

/// Returns the constraints of all tables.
pub(super) fn constraints(snapshot: &CatalogSnapshot) -> Vec<Constraint<'_>> {
    let mut all = Vec::new();
    for table in snapshot.tables() {
        if let Some(key) = &table.primary_key {
            let columns = columns(table, key.columns.iter().copied());
            all.push(Constraint {
                table,
                oid: constraint_oid(table.id),
                name: &key.name,
                kind: "p",
                columns,
                index: primary_key_oid(table),
                check: None,
                no_inherit: false,
                is_valid: true,
                timing: ConstraintTiming::NotDeferrable,
                parent: None,
            });
        }
        for index in table.indexes.iter().filter(|index| index.is_constraint) {
            let columns = columns(table, index.columns.iter().map(|key| key.position));
            all.push(Constraint {
                table,
                oid: constraint_oid(index.id),
                name: &index.name,
                kind: if index.is_primary { "p" } else { "u" },
                columns,
                index: object_oid(index.id),
                check: None,
                no_inherit: false,
                is_valid: true,
                timing: index.timing,
                parent: None,
            });
        }
        for check in &table.checks {
            let read = check.columns.iter().filter_map(|id| table.position_of(*id));
            all.push(Constraint {
                table,
                oid: check_oid(table, &check.name),
                name: &check.name,
                kind: "c",
                columns: columns(table, read),
                index: 0,
                check: Some(&check.expression),
                no_inherit: check.no_inherit,
                is_valid: !check.not_valid,
                timing: ConstraintTiming::NotDeferrable,
                parent: None,
            });
        }
        for key in &table.foreign_keys {
            let Some(parent) = snapshot.table(key.parent) else { continue };
            let positions: Vec<usize> =
                key.parent_columns.iter().filter_map(|id| parent.position_of(*id)).collect();
            let (index, name) = unique_key(parent, &positions);
            all.push(Constraint {
                table,
                oid: foreign_key_oid(table, &key.name),
                name: &key.name,
                kind: "f",
                columns: columns(table, key.columns.iter().copied()),
                index,
                check: None,
                no_inherit: false,
                is_valid: !key.not_valid,
                timing: key.timing,
                parent: Some(Parent {
                    table: parent,
                    columns: columns(parent, positions.iter().copied()),
                    key: name,
                    on_update: key.on_update,
                    on_delete: key.on_delete,
                    is_full: key.is_full,
                    delete_columns: columns(
                        table,
                        key.delete_columns.iter().filter_map(|id| table.position_of(*id)),
                    ),
                }),
            });
        }
    }
    all
}

/// Returns the index that makes columns unique, and the name of its constraint.
fn unique_key<'s>(table: &'s Table, positions: &[usize]) -> (i64, Option<&'s str>) {
    let same = |mut found: Vec<usize>| {
        let mut wanted = positions.to_vec();
        found.sort_unstable();
        wanted.sort_unstable();
        found == wanted
    };
    if let Some(key) = table.primary_key.as_ref().filter(|key| same(key.columns.clone())) {
        return (primary_key_oid(table), Some(&key.name));
    }
    let indexes = table.indexes.iter().filter(|index| index.unique && !index.is_partial());
    let mut found =
        indexes.filter(|index| same(index.columns.iter().map(|it| it.position).collect()));
    found.next().map_or((0, None), |index| (object_oid(index.id), Some(&index.name)))
}

/// Returns the letter of an action in `pg_constraint`.
fn letter(action: ForeignKeyAction) -> &'static str {
    match action {
        ForeignKeyAction::NoAction => "a",
        ForeignKeyAction::Restrict => "r",
        ForeignKeyAction::Cascade => "c",
        ForeignKeyAction::SetNull => "n",
        ForeignKeyAction::SetDefault => "d",
    }
}

/// Returns the numbers of columns as the text of an array.
fn numbers(columns: &[&Column]) -> String {
    let numbers: Vec<String> = columns.iter().map(|column| column.id.to_string()).collect();
    format!("{{{}}}", numbers.join(","))
}

impl SystemSource<'_> {
    pub(super) fn pg_constraint(&mut self) {
        self.domain_constraints();
        for constraint in constraints(self.snapshot) {
            let schema = self.snapshot.schema_oid(&constraint.table.schema);
            self.add(|row| {
                row.set("oid", constraint.oid).text("conname", constraint.name);
                row.set("connamespace", schema).text("contype", constraint.kind);
                row.set("convalidated", constraint.is_valid)
                    .set("conrelid", object_oid(constraint.table.id));
                row.set("condeferrable", constraint.timing.is_deferrable());
                row.set("condeferred", constraint.timing == ConstraintTiming::Deferred);
                row.set("conindid", constraint.index).set("conislocal", true);
                row.set("connoinherit", constraint.kind != "c" || constraint.no_inherit);
                row.text("conkey", numbers(&constraint.columns));
                for action in ["confupdtype", "confdeltype", "confmatchtype"] {
                    row.text(action, " ");
                }
                if let Some(check) = constraint.check {
                    row.text("conbin", check);
                }
                if let Some(parent) = &constraint.parent {
                    row.set("confrelid", object_oid(parent.table.id));
                    row.text("confmatchtype", if parent.is_full { "f" } else { "s" });
                    if !parent.delete_columns.is_empty() {
                        row.text("confdelsetcols", numbers(&parent.delete_columns));
                    }
                    row.text("confkey", numbers(&parent.columns));
                    row.text("confupdtype", letter(parent.on_update));
                    row.text("confdeltype", letter(parent.on_delete));
                }
            });
        }
    }
}
