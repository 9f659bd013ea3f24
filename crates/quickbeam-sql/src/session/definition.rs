//! Changes of the catalog, as statements say them.

use std::sync::Arc;

use smol_str::SmolStr;

use crate::bind::{
    Binder, CatalogChange, Names, ObjectKind, Source, TableChange, check_of, checked_value,
    column_default, conversion_of, domain_constraints, generated_columns, views_without,
};
use crate::catalog::DropBehavior;
use crate::catalog::{
    AclKind, Added, CatalogSnapshot, Column, DeclaredType, NewCheck, NewColumn, ObjectAccess,
    ObjectId, Relation, Table, lookup_name, shown_name, split_lookup_name,
};
use crate::compile::CompileContext;
use crate::ddl::{CatalogEdit, depended};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{Clock, Current, Expr, Frame, Slot};
use crate::parse::ColumnAction;
use crate::table::StoredRow;
use crate::types::{TextSettings, Value};

/// Makes a change of the catalog.
pub(crate) fn apply(change: &CatalogChange, look: &CompileContext<'_>) -> Result<()> {
    let (catalog, transaction) = (look.catalog, look.transaction);
    let there = |name: &str| look.snapshot.relation(name).is_some();
    match change {
        CatalogChange::CreateTable(table, if_not_exists) => {
            if !(*if_not_exists && there(&table.name)) {
                let id = catalog.create_table(transaction, table)?;
                if let Some(new) = &table.materialized {
                    let reads = tables_of(look, &new.query)?;
                    catalog.make_materialized(transaction, id, new, reads)?;
                }
            }
        }
        CatalogChange::CreateIndex(index, if_not_exists) => {
            let schema = split_lookup_name(&index.table).0;
            let known = index.name.as_ref().is_some_and(|name| there(&lookup_name(&schema, name)));
            if !(*if_not_exists && known) {
                catalog.create_index(transaction, index)?;
            }
        }
        CatalogChange::CreateView(view) => {
            catalog.create_view(transaction, view, tables_of(look, &view.query)?)?;
        }
        CatalogChange::Refresh(name, is_populated) => {
            catalog.empty_materialized(transaction, name, *is_populated)?;
        }
        CatalogChange::AlterView(name, changes, if_exists) => {
            if !*if_exists || there(name) {
                catalog.alter_view(transaction, name, changes)?;
            }
        }
        CatalogChange::CreateSequence(name, options, if_not_exists) => {
            if !(*if_not_exists && there(name)) {
                catalog.create_sequence(transaction, name, options)?;
            }
        }
        CatalogChange::AlterSequence(name, changes) => {
            if !changes.if_exists || there(name) {
                catalog.alter_sequence(transaction, name, changes)?;
            }
        }
        CatalogChange::Drop(kind, names, if_exists, cascade) => {
            let names: Vec<_> =
                names.iter().filter(|name| !*if_exists || there(name)).cloned().collect();
            if names.is_empty() {
                return Ok(());
            }
            match kind {
                ObjectKind::Table | ObjectKind::MaterializedView => {
                    catalog.drop_tables(transaction, &names, DropBehavior::from(*cascade))?
                }
                ObjectKind::View => {
                    catalog.drop_views(transaction, &names, DropBehavior::from(*cascade))?
                }
                ObjectKind::Sequence => {
                    let behavior = DropBehavior::from(*cascade);
                    drop_defaults(&names, behavior, look)?;
                    catalog.drop_sequences(transaction, &names, behavior)?;
                }
                ObjectKind::Index => {
                    for name in &names {
                        catalog.drop_index(transaction, name, *cascade)?;
                    }
                }
            }
        }
        CatalogChange::CreateSchema(name, if_not_exists, owner) => {
            if !(*if_not_exists && look.snapshot.has_schema(name)) {
                create_schema(name, owner.as_ref(), look)?;
            }
        }
        CatalogChange::Access(_)
        | CatalogChange::Routine(_)
        | CatalogChange::Type(_)
        | CatalogChange::Collation(_)
        | CatalogChange::Relation(_)
        | CatalogChange::Schema(_)
        | CatalogChange::Comment(_) => {
            return Err(SqlError::internal(
                "rights, functions, types, names and comments are changed by their session",
            ));
        }
        CatalogChange::RenameSchema(from, to) => catalog.rename_schema(transaction, from, to)?,
        CatalogChange::DropSchemas(names, if_exists, cascade) => {
            let there = |name: &&SmolStr| !*if_exists || look.snapshot.has_schema(name);
            let names: Vec<_> = names.iter().filter(there).cloned().collect();
            drop_schemas(&names, *cascade, look)?;
        }
        CatalogChange::Truncate(names, cascade, restart) => {
            catalog.truncate(transaction, names, *cascade, *restart)?;
        }
        CatalogChange::Alter(name, changes, if_exists) => {
            if *if_exists && !there(name) {
                return Ok(());
            }
            for change in changes {
                alter(name, change, look)?;
            }
        }
    }
    Ok(())
}

/// Returns the role of that name, to which the user may give an object.
pub(super) fn new_owner(name: &str, look: &CompileContext<'_>) -> Result<ObjectId> {
    let role = match name {
        "current_user" | "current_role" => look.user,
        "session_user" => look.session_user,
        name => look.snapshot.known_role(name)?,
    };
    if !look.snapshot.is_member(look.user, role) {
        let message = format!("must be member of role \"{name}\"");
        return Err(SqlError::new(SqlState::InsufficientPrivilege, message));
    }
    Ok(role)
}

/// Makes a schema; its owner is the role that AUTHORIZATION names.
fn create_schema(name: &SmolStr, owner: Option<&SmolStr>, look: &CompileContext<'_>) -> Result<()> {
    let (catalog, transaction) = (look.catalog, look.transaction);
    let Some(owner) = owner else { return catalog.create_schema(transaction, name) };
    let role = new_owner(owner, look)?;
    catalog.create_schema(transaction, name)?;
    let snapshot = catalog.snapshot(transaction)?;
    let (made, acl) =
        (snapshot.schema_id(name), snapshot.first_rights(role, AclKind::Schema, None));
    let access = ObjectAccess { owner: role.0, acl, ..ObjectAccess::default() };
    CatalogEdit::begin(catalog, transaction)?.put_access(made, Some(access))
}

/// Refuses to drop schemas that hold something.
fn refuse_contents(
    names: &[SmolStr],
    contents: Vec<(SmolStr, Relation)>,
    snapshot: &CatalogSnapshot,
) -> Result<()> {
    let mut found: Vec<(ObjectId, SmolStr, String)> = Vec::new();
    for (name, relation) in contents {
        let (id, kind) = match &relation {
            Relation::Table(table) => (table.id, table.word()),
            Relation::View(view) => (view.id, "view"),
            Relation::Sequence(sequence) if sequence.owned_by.is_some() => continue,
            Relation::Sequence(sequence) => (sequence.id, "sequence"),
            Relation::Index(..) => continue,
        };
        found.push((id, split_lookup_name(&name).0, format!("{kind} {}", shown_name(&name))));
    }
    for it in snapshot.routines().filter(|it| names.contains(&it.schema)) {
        let shown = format!("{} {}.{}", it.word(), it.schema, it.signature());
        found.push((it.id, it.schema.clone(), shown));
    }
    let types = snapshot.domains().map(|it| (it.id, &it.schema, &it.name));
    let types = types.chain(snapshot.enums().map(|it| (it.id, &it.schema, &it.name)));
    let types = types.chain(snapshot.composites().map(|it| (it.id, &it.schema, &it.name)));
    for (id, schema, name) in types.filter(|(_, schema, _)| names.contains(schema)) {
        found.push((id, schema.clone(), format!("type {schema}.{name}")));
    }
    for made in snapshot.collations().filter(|it| names.contains(&it.schema)) {
        let shown = format!("collation {}.{}", made.schema, made.name);
        found.push((made.id, made.schema.clone(), shown));
    }
    found.sort_by_key(|(id, ..)| *id);
    let lines = found.iter().map(|(_, schema, it)| format!("{it} depends on schema {schema}"));
    let lines: Vec<String> = lines.collect();
    let error = match names {
        _ if lines.is_empty() => return Ok(()),
        [name] => depended(&format!("schema {name}"), ""),
        _ => SqlError::new(
            SqlState::DependentObjectsStillExist,
            "cannot drop desired object(s) because other objects depend on them",
        )
        .with_hint("Use DROP ... CASCADE to drop the dependent objects too."),
    };
    Err(error.with_detail(lines.join("\n")))
}

/// Drops schemas, with all that is in them if `cascade`.
fn drop_schemas(names: &[SmolStr], cascade: bool, look: &CompileContext<'_>) -> Result<()> {
    let (catalog, transaction) = (look.catalog, look.transaction);
    let contents = || -> Result<Vec<(SmolStr, Relation)>> {
        let all = catalog.snapshot(transaction)?.relations();
        let is_inside = |name: &str| names.contains(&split_lookup_name(name).0);
        Ok(all.into_iter().filter(|(name, _)| is_inside(name)).collect())
    };
    let snapshot = catalog.snapshot(transaction)?;
    if !cascade {
        refuse_contents(names, contents()?, &snapshot)?;
    }
    let routines: Vec<_> =
        snapshot.routines().filter(|it| names.contains(&it.schema)).cloned().collect();
    if !routines.is_empty() {
        catalog.drop_routines(transaction, &routines, DropBehavior::Cascade)?;
    }
    let domains = |snapshot: &CatalogSnapshot| -> Vec<_> {
        snapshot.domains().filter(|it| names.contains(&it.schema)).cloned().collect()
    };
    let enums: Vec<_> = snapshot.enums().filter(|it| names.contains(&it.schema)).cloned().collect();
    let composites: Vec<_> =
        snapshot.composites().filter(|it| names.contains(&it.schema)).cloned().collect();
    // Each step may remove some of what the next one would.
    while let Some((name, _)) =
        contents()?.into_iter().find(|(_, it)| matches!(it, Relation::View(_)))
    {
        catalog.drop_views(transaction, &[name], DropBehavior::Cascade)?;
    }
    let tables: Vec<SmolStr> = contents()?
        .into_iter()
        .filter_map(|(name, it)| matches!(it, Relation::Table(_)).then_some(name))
        .collect();
    if !tables.is_empty() {
        catalog.drop_tables(transaction, &tables, DropBehavior::Cascade)?;
    }
    let domains = domains(&*catalog.snapshot(transaction)?);
    if !domains.is_empty() {
        catalog.drop_domains(transaction, &domains, DropBehavior::Cascade)?;
    }
    if !composites.is_empty() {
        catalog.drop_composites(transaction, &composites, DropBehavior::Cascade)?;
    }
    if !enums.is_empty() {
        catalog.drop_enums(transaction, &enums, DropBehavior::Cascade)?;
    }
    let collations: Vec<_> =
        snapshot.collations().filter(|it| names.contains(&it.schema)).cloned().collect();
    if !collations.is_empty() {
        catalog.drop_collations(transaction, &collations, DropBehavior::Cascade)?;
    }
    let sequences: Vec<SmolStr> = contents()?.into_iter().map(|(name, _)| name).collect();
    if !sequences.is_empty() {
        drop_defaults(&sequences, DropBehavior::Cascade, look)?;
        catalog.drop_sequences(transaction, &sequences, DropBehavior::Cascade)?;
    }
    catalog.drop_schemas(transaction, names)
}

/// Tables and views that a view reads.
fn tables_of(look: &CompileContext<'_>, text: &Arc<str>) -> Result<Vec<ObjectId>> {
    let parsed = crate::parse::query(text)?;
    let mut binder = Binder::of_stored(look as &dyn Names);
    binder.query_statement(&parsed)?;
    // What a view within the view reads was found, too.
    let mut reads: Vec<ObjectId> = std::mem::take(&mut binder.views);
    for shape in &binder.slots {
        match &shape.source {
            Source::Table(table) => reads.push(table.id),
            Source::Query(_) | Source::Computed => {}
        }
    }
    reads.sort_unstable();
    reads.dedup();
    Ok(reads)
}

/// Drops the DEFAULTs that take values of sequences to be dropped, or refuses to.
fn drop_defaults(
    names: &[SmolStr],
    behavior: DropBehavior,
    look: &CompileContext<'_>,
) -> Result<()> {
    let snapshot = look.catalog.snapshot(look.transaction)?;
    let look = &CompileContext { snapshot: &snapshot, path: None, ..*look };
    let sequences: Vec<_> = names
        .iter()
        .filter_map(|name| match snapshot.relation(name) {
            Some(Relation::Sequence(sequence)) => Some((name, sequence.id.0)),
            _ => None,
        })
        .collect();
    for table in snapshot.tables() {
        for (position, column) in table.columns.iter().enumerate() {
            if column.identity.is_some() {
                continue;
            }
            let Some(default) = column_default(look, table, position)? else { continue };
            let found = sequences.iter().find(|(_, id)| default.takes_from(*id));
            if found.is_some() && behavior == DropBehavior::Cascade {
                let table = table.lookup_name();
                look.catalog.set_default(look.transaction, &table, &column.name, None)?;
            } else if let Some((name, _)) = found {
                let by =
                    format!("default value for column {} of table {}", column.name, table.name);
                return Err(depended(&format!("sequence {}", shown_name(name)), &by));
            }
        }
    }
    Ok(())
}

fn table_of(look: &CompileContext<'_>, name: &str) -> Result<Arc<Table>> {
    // What was changed before in the same statement counts.
    let snapshot = look.catalog.snapshot(look.transaction)?;
    snapshot.table_named(name)
}

fn alter(name: &str, change: &TableChange, look: &CompileContext<'_>) -> Result<()> {
    let (catalog, transaction) = (look.catalog, look.transaction);
    match change {
        TableChange::AddColumn(column, missing, if_not_exists) => {
            if *if_not_exists && table_of(look, name)?.column(&column.name).is_some() {
                return Ok(());
            }
            if column.generated.is_some() {
                return add_generated(name, column, look);
            }
            match missing {
                Some(missing) => add_column(name, column, missing, look),
                None => add_computed(name, column, look),
            }
        }
        TableChange::Existing(_) => Ok(()),
        TableChange::DropColumn(column, if_exists, cascade) => {
            if *if_exists && table_of(look, name)?.column(column).is_none() {
                return Ok(());
            }
            let spared = views_without(look, name, column)?;
            catalog.drop_column(transaction, name, column, ((*cascade).into(), &spared))
        }
        TableChange::AddPrimaryKey(key) => catalog.add_primary_key(transaction, name, key),
        TableChange::AddUnique(key) => catalog.add_unique(transaction, name, key),
        TableChange::AddForeignKey(key) => catalog.add_foreign_key(transaction, name, key),
        TableChange::AddCheck(check) => add_check(name, check, look),
        TableChange::DropConstraint(constraint, if_exists, cascade) => {
            if *if_exists && !table_of(look, name)?.has_constraint(constraint) {
                return Ok(());
            }
            catalog.drop_constraint(transaction, name, constraint, *cascade)
        }
        TableChange::NotNull(column, not_null) => {
            catalog.set_not_null(transaction, name, column, *not_null)
        }
        TableChange::Default(column, default) => {
            catalog.set_default(transaction, name, column, default.clone())
        }
        TableChange::RenameConstraint(from, to) => {
            catalog.rename_constraint(transaction, name, from, to)
        }
        TableChange::Validate(constraint) => validate(name, constraint, look),
        TableChange::UseIndex(constraint) => catalog.use_index(transaction, name, constraint),
        TableChange::Type(column, data_type, using) => {
            set_type(name, column, *data_type, using.as_deref(), look)
        }
        TableChange::Column(column, action) => match action {
            ColumnAction::DropExpression(if_exists) => {
                catalog.drop_expression(transaction, name, column, *if_exists)
            }
            ColumnAction::DropIdentity(if_exists) => {
                catalog.drop_identity(transaction, name, column, *if_exists)
            }
        },
        TableChange::Identity(column, always, changes) => {
            catalog.set_identity(transaction, name, column, *always, changes)
        }
        TableChange::Triggers(trigger, state) => {
            catalog.set_trigger_state(transaction, name, trigger.as_deref(), *state)
        }
        TableChange::AddIdentity(column, identity) => {
            catalog.add_identity(transaction, name, column, identity)
        }
    }
}

fn add_check(name: &str, check: &NewCheck, look: &CompileContext<'_>) -> Result<()> {
    let table = table_of(look, name)?;
    let condition = check_of(look as &dyn Names, &table, &check.expression, 0)?;
    let mut row = RowSlot::new(table, Some(look.clock));
    let mut holds = |stored: StoredRow<'_>| condition.truth(&row.frame(stored));
    look.catalog.add_check(look.transaction, name, check, &mut holds)
}

/// A slot for the rows of one table, and the clock of the session if values may depend on it.
pub(super) struct RowSlot<'c>([Slot; 1], Option<&'c Clock>);

impl<'c> RowSlot<'c> {
    pub fn new(table: Arc<Table>, clock: Option<&'c Clock>) -> RowSlot<'c> {
        RowSlot([Slot::new(Some(table))], clock)
    }

    /// Makes a row current.
    pub fn frame(&mut self, row: StoredRow<'_>) -> Frame<'_> {
        let RowSlot([slot], clock) = self;
        slot.bytes.clear();
        slot.bytes.extend_from_slice(row.bytes());
        slot.current = Current::Bytes(0, slot.bytes.len());
        Frame { clock: *clock, slots: std::slice::from_ref(slot), ..Frame::of_parameters(&[]) }
    }
}

/// ADD COLUMN with one value for all rows, which its domain has to accept if there are any.
fn add_column(
    name: &str,
    column: &NewColumn,
    missing: &Value,
    look: &CompileContext<'_>,
) -> Result<()> {
    let (catalog, transaction) = (look.catalog, look.transaction);
    let constraints = column.domain.map(|it| domain_constraints(look as &dyn Names, it));
    let constraints = constraints.transpose()?.flatten();
    let frame = Frame { clock: Some(look.clock), ..Frame::of_parameters(&[]) };
    let refused = constraints.and_then(|it| it.check(missing.as_ref(), &frame).err());
    let Some(error) = refused else {
        return catalog.add_column(transaction, name, column, Added::Same(missing.clone()));
    };
    let mut error = Some(error);
    let mut refuse = || Err(error.take().unwrap_or_else(|| SqlError::internal("checked again")));
    catalog.add_column(transaction, name, column, Added::Each(&mut refuse))
}

/// ADD COLUMN with a DEFAULT that differs from row to row.
fn add_computed(name: &str, column: &NewColumn, look: &CompileContext<'_>) -> Result<()> {
    let (names, table) = (look as &dyn Names, table_of(look, name)?);
    let mut with_column = (*table).clone();
    with_column.columns.push(Column {
        id: u16::MAX,
        name: column.name.clone(),
        data_type: column.data_type,
        domain: column.domain,
        collation: column.collation,
        not_null: false,
        default: column.default.clone(),
        identity: None,
        generated: None,
        missing: Value::Null,
    });
    let value = column_default(names, &with_column, table.columns.len())?;
    let value = value.ok_or_else(|| SqlError::internal("a column without its default"))?;
    let value = checked_value(names, value, column.domain)?;
    let frame = Frame { clock: Some(look.clock), ..Frame::of_parameters(&[]) };
    let mut each = || {
        let mut value = value.clone();
        take_values(&mut value, look)?;
        Ok(value.evaluate(&frame)?.into_value())
    };
    look.catalog.add_column(look.transaction, name, column, Added::Each(&mut each))
}

/// Replaces each `nextval` in an expression by a value of its sequence.
fn take_values(expr: &mut Expr, look: &CompileContext<'_>) -> Result<()> {
    if let Expr::NextValue(number, data_type) = expr {
        let sequence = look.snapshot.sequence(ObjectId(*number));
        let sequence =
            sequence.ok_or_else(|| SqlError::internal("a sequence that is not there"))?;
        let value = Value::BigInt(look.catalog.next_value(look.transaction, sequence)?);
        let value = crate::types::assign(value.as_ref(), *data_type, &TextSettings::DEFAULT)?;
        *expr = Expr::Constant(value);
        return Ok(());
    }
    let mut done = Ok(());
    expr.each_child_mut(&mut |child| {
        if done.is_ok() {
            done = take_values(child, look);
        }
    });
    done
}

/// ADD COLUMN of a generated column.
fn add_generated(name: &str, column: &NewColumn, look: &CompileContext<'_>) -> Result<()> {
    let table = table_of(look, name)?;
    let Some(generated) = &column.generated else { return Ok(()) };
    let mut with_column = (*table).clone();
    with_column.columns.push(Column {
        id: u16::MAX,
        name: column.name.clone(),
        data_type: column.data_type,
        domain: column.domain,
        collation: column.collation,
        not_null: false,
        default: Some(generated.expression.clone()),
        identity: None,
        generated: Some(Vec::new()),
        missing: Value::Null,
    });
    let position = table.columns.len();
    let found = generated_columns(look as &dyn Names, &with_column, 0, Some(&[position]))?;
    let value = found.into_iter().find(|(at, _)| *at == position).map(|(_, value)| value);
    let value = value.ok_or_else(|| SqlError::internal("a generated column without expression"))?;
    let mut row = RowSlot::new(table, None);
    let mut each = |stored: StoredRow<'_>| Ok(value.evaluate(&row.frame(stored))?.into_value());
    look.catalog.add_column(look.transaction, name, column, Added::Generated(&mut each))
}

/// VALIDATE CONSTRAINT.
fn validate(name: &str, constraint: &str, look: &CompileContext<'_>) -> Result<()> {
    let table = table_of(look, name)?;
    let check = table.checks.iter().find(|check| check.name == constraint);
    let condition = check.map(|it| check_of(look as &dyn Names, &table, &it.expression, 0));
    let Some(condition) = condition.transpose()? else {
        return look.catalog.validate_constraint(look.transaction, name, constraint, None);
    };
    let mut row = RowSlot::new(table, Some(look.clock));
    let mut holds = |stored: StoredRow<'_>| condition.truth(&row.frame(stored));
    look.catalog.validate_constraint(look.transaction, name, constraint, Some(&mut holds))
}

/// ALTER COLUMN … TYPE.
fn set_type(
    name: &str,
    column: &str,
    declared: DeclaredType,
    using: Option<&str>,
    look: &CompileContext<'_>,
) -> Result<()> {
    let names = look as &dyn Names;
    let data_type = declared.data_type;
    let table = table_of(look, name)?;
    let position = table.known_column(column)?;
    let is_generated = table.columns[position].generated.is_some();
    let clock = (!is_generated).then_some(look.clock);
    let value = if is_generated {
        if using.is_some() {
            let message = "cannot specify USING when altering type of generated column";
            return Err(SqlError::new(SqlState::InvalidColumnDefinition, message));
        }
        let mut retyped = (*table).clone();
        retyped.columns[position].data_type = data_type;
        let found = generated_columns(names, &retyped, 0, Some(&[position]))?;
        let value = found.into_iter().find(|(at, _)| *at == position).map(|(_, value)| value);
        value.ok_or_else(|| SqlError::internal("a generated column without expression"))?
    } else {
        conversion_of(names, &table, position, data_type, using)?
    };
    let value = checked_value(names, value, declared.domain)?;
    let mut row = RowSlot::new(table.clone(), clock);
    let mut each = |stored: StoredRow<'_>| {
        let mut values = stored.to_values()?;
        values[position] = value.evaluate(&row.frame(stored))?.into_value();
        Ok(values)
    };
    look.catalog.set_type(look.transaction, name, column, declared, &mut each)?;
    // The default and the checks are expressions of the new type now.
    let table = table_of(look, name)?;
    column_default(names, &table, position)?;
    let id = table.columns[position].id;
    for check in table.checks.iter().filter(|check| check.columns.contains(&id)) {
        let condition = check_of(names, &table, &check.expression, 0)?;
        if !check.not_valid {
            let mut row = RowSlot::new(table.clone(), Some(look.clock));
            let mut holds = |stored: StoredRow<'_>| condition.truth(&row.frame(stored));
            look.catalog.check_again(look.transaction, name, &check.name, &mut holds)?;
        }
    }
    Ok(())
}
