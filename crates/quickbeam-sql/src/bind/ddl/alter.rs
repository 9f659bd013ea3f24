//! ALTER TABLE.

use smol_str::SmolStr;
use sqlparser::ast::{
    self, AlterColumnOperation, AlterTableOperation, Ident, Statement, TableConstraint,
};

use super::super::{Binder, fold};
use super::constraints::{Constraints, timing_of};
use super::storage_parameters::check_parameters;
use super::table::Defined;
use super::table_outline::{ConstraintPlace, Outline};
use super::{CatalogChange, TableChange};
use crate::bind::rights::Right;
use crate::catalog::{IndexConstraint, NewIdentity, Relation, SequenceChanges, TriggerState};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{Clock, Frame};
use crate::parse::{VIEW_TYPE, action_of, identity_options};
use crate::schema::errors::no_row_security;
use crate::types::Value;

fn cascades(behavior: Option<ast::DropBehavior>) -> bool {
    behavior == Some(ast::DropBehavior::Cascade)
}

/// Refuses what is no change of a materialized view.
fn check_materialized(name: &str, operation: &AlterTableOperation) -> Result<()> {
    let action = match operation {
        AlterTableOperation::SetOptionsParens { .. } | AlterTableOperation::OwnerTo { .. } => {
            return Ok(());
        }
        AlterTableOperation::AddColumn { .. } => "ADD COLUMN".to_owned(),
        AlterTableOperation::DropColumn { .. } => "DROP COLUMN".to_owned(),
        AlterTableOperation::AddConstraint { .. } => "ADD CONSTRAINT".to_owned(),
        AlterTableOperation::DropConstraint { .. } => "DROP CONSTRAINT".to_owned(),
        AlterTableOperation::AlterColumn { op, .. } => {
            let op = op.to_string();
            let words = op.split(' ').take_while(|word| word.chars().all(char::is_uppercase));
            format!("ALTER COLUMN ... {}", words.collect::<Vec<_>>().join(" "))
        }
        other => other.to_string(),
    };
    let message = format!("ALTER action {action} cannot be performed on relation \"{name}\"");
    let detail = "This operation is not supported for materialized views.";
    Err(SqlError::new(SqlState::WrongObjectType, message).with_detail(detail))
}

/// Returns whether ALTER TABLE does this to a view, too.
fn is_of_view(operations: &[AlterTableOperation]) -> bool {
    use ast::AlterColumnOperation::{DropDefault, SetDefault};
    operations.iter().all(|operation| match operation {
        AlterTableOperation::AlterColumn { op, .. } => {
            matches!(op, SetDefault { .. } | DropDefault)
        }
        _ => false,
    })
}

impl Binder<'_> {
    /// ALTER TABLE.
    pub fn alter_table(&mut self, alter: &ast::AlterTable) -> Result<CatalogChange> {
        if alter.table_type == Some(VIEW_TYPE) {
            return self.alter_view(alter);
        }
        if is_of_view(&alter.operations)
            && let Some(Relation::View(_)) =
                self.names.relation(&self.relation_name(&alter.name)?)?
        {
            return self.alter_view(alter);
        }
        // No table has others under it: it is always altered alone, with ONLY or without.
        if alter.location.is_some() || alter.on_cluster.is_some() {
            return Err(SqlError::unsupported("this form of ALTER TABLE"));
        }
        if alter.if_exists {
            let name = self.relation_name(&alter.name)?;
            let is_there = match self.names.relation(&name)? {
                Some(Relation::Table(table)) => !table.is_database(),
                found => found.is_some(),
            };
            if !is_there {
                return Ok(CatalogChange::Alter(name, Vec::new(), true));
            }
        }
        let table = self.defined_table(&alter.name, Right::Owns)?;
        if table.materialized.is_some() {
            alter.operations.iter().try_for_each(|it| check_materialized(&table.name, it))?;
        }
        let mut outline = Outline::of(&table);
        let mut changes = Vec::with_capacity(alter.operations.len());
        for operation in &alter.operations {
            self.table_change(&mut outline, operation, &mut changes)?;
            outline.is_untouched = false;
        }
        Ok(CatalogChange::Alter(table.lookup_name(), changes, alter.if_exists))
    }

    fn table_change(
        &mut self,
        outline: &mut Outline,
        operation: &AlterTableOperation,
        changes: &mut Vec<TableChange>,
    ) -> Result<()> {
        match operation {
            AlterTableOperation::AddColumn {
                column_def,
                if_not_exists,
                column_position: None,
                ..
            } => self.added_column(outline, column_def, *if_not_exists, changes)?,
            AlterTableOperation::DropColumn { column_names, if_exists, drop_behavior, .. } => {
                for name in column_names {
                    let folded = fold(name);
                    if !(*if_exists && outline.column(&folded).is_none()) {
                        let at = self.known_column(outline, name)?;
                        outline.columns.remove(at);
                    }
                    let cascade = cascades(*drop_behavior);
                    changes.push(TableChange::DropColumn(folded, *if_exists, cascade));
                }
            }
            // There are no roles: everything belongs to the only user.
            AlterTableOperation::OwnerTo { .. } => {}
            AlterTableOperation::AddConstraint { constraint, not_valid } => {
                self.added_constraint(outline, constraint, *not_valid, changes)?;
            }
            AlterTableOperation::RenameConstraint { old_name, new_name } => {
                let from = self.known_constraint(outline, old_name)?;
                changes.push(TableChange::RenameConstraint(from, self.new_name(new_name)?));
            }
            AlterTableOperation::ValidateConstraint { name } => {
                changes.push(TableChange::Validate(self.known_constraint(outline, name)?));
            }
            AlterTableOperation::SetOptionsParens { options } => check_parameters(options)?,
            AlterTableOperation::EnableTrigger { name } => {
                changes.push(TableChange::Triggers(trigger_name(name), TriggerState::Enabled));
            }
            AlterTableOperation::DisableTrigger { name } => {
                changes.push(TableChange::Triggers(trigger_name(name), TriggerState::Disabled));
            }
            AlterTableOperation::EnableReplicaTrigger { name } => {
                changes.push(TableChange::Triggers(trigger_name(name), TriggerState::Replica));
            }
            AlterTableOperation::EnableAlwaysTrigger { name } => {
                changes.push(TableChange::Triggers(trigger_name(name), TriggerState::Always));
            }
            // All tables are logged.
            AlterTableOperation::SetLogged | AlterTableOperation::SetUnlogged => {}
            // No table has row security.
            AlterTableOperation::DisableRowLevelSecurity
            | AlterTableOperation::NoForceRowLevelSecurity => {}
            other @ (AlterTableOperation::EnableRowLevelSecurity
            | AlterTableOperation::ForceRowLevelSecurity) => {
                return Err(no_row_security(format!("ALTER TABLE … {other}")));
            }
            // There is no logical replication.
            AlterTableOperation::ReplicaIdentity { .. } => {}
            AlterTableOperation::DropConstraint { name, if_exists, drop_behavior } => {
                let folded =
                    if *if_exists { fold(name) } else { self.known_constraint(outline, name)? };
                let cascade = cascades(*drop_behavior);
                changes.push(TableChange::DropConstraint(folded, *if_exists, cascade));
            }
            AlterTableOperation::AlterColumn { column_name, op } => {
                changes.push(self.altered_column(outline, column_name, op)?);
            }
            other => return Err(SqlError::unsupported(format!("ALTER TABLE … {other}"))),
        }
        Ok(())
    }

    /// ADD CONSTRAINT.
    fn added_constraint(
        &mut self,
        outline: &mut Outline,
        constraint: &TableConstraint,
        not_valid: bool,
        changes: &mut Vec<TableChange>,
    ) -> Result<()> {
        if let TableConstraint::UniqueUsingIndex(key) | TableConstraint::PrimaryKeyUsingIndex(key) =
            constraint
        {
            let timing = timing_of(key.characteristics.as_ref())?;
            let is_primary = matches!(constraint, TableConstraint::PrimaryKeyUsingIndex(_));
            if is_primary {
                let place = self.place_of(&key.index_name);
                outline.take_primary_key().map_err(|error| error.at(place))?;
            }
            let name = key.name.as_ref().map(|name| self.new_name(name)).transpose()?;
            let index = fold(&key.index_name);
            let constraint = IndexConstraint { index, name, is_primary, timing };
            changes.push(TableChange::UseIndex(constraint));
            return Ok(());
        }
        let mut constraints = Constraints::default();
        let written = std::slice::from_ref(constraint);
        self.add_constraints(written, ConstraintPlace::Table, outline, &mut constraints)?;
        if not_valid && (constraints.primary_key.is_some() || !constraints.uniques.is_empty()) {
            let kind = if constraints.primary_key.is_some() { "PRIMARY KEY" } else { "UNIQUE" };
            let message = format!("{kind} constraints cannot be marked NOT VALID");
            let error = SqlError::new(SqlState::FeatureNotSupported, message);
            return Err(error.at(self.position(constraint) as usize));
        }
        constraints.checks.iter_mut().for_each(|check| check.not_valid = not_valid);
        constraints.foreign_keys.iter_mut().for_each(|key| key.not_valid = not_valid);
        constraint_changes(constraints, changes);
        Ok(())
    }

    /// ADD COLUMN, with the constraints that are written with it.
    fn added_column(
        &mut self,
        outline: &mut Outline,
        written: &ast::ColumnDef,
        if_not_exists: bool,
        changes: &mut Vec<TableChange>,
    ) -> Result<()> {
        let name = fold(&written.name);
        if if_not_exists && outline.column(&name).is_some() {
            changes.push(TableChange::Existing(name));
            return Ok(());
        }
        let Defined { mut column, default, generation, constraints: of_column } =
            self.new_column(written, outline)?;
        if let Some(generation) = &generation {
            let named = (&column.name[..], column.data_type);
            column.generated = Some(self.new_generated(generation, named, outline)?);
        }
        let missing = match default {
            None => Some(Value::Null),
            Some(default) if default.is_volatile() => None,
            Some(default) => {
                let clock = Clock::default();
                clock.set_settings(self.settings);
                let frame = Frame { clock: Some(&clock), ..Frame::of_parameters(&[]) };
                Some(default.evaluate(&frame)?.into_value())
            }
        };
        changes.push(TableChange::AddColumn(column, missing, if_not_exists));
        let mut constraints = Constraints::default();
        self.add_constraints(&of_column, ConstraintPlace::Column, outline, &mut constraints)?;
        constraint_changes(constraints, changes);
        Ok(())
    }

    /// ALTER COLUMN.
    fn altered_column(
        &mut self,
        outline: &Outline,
        column: &Ident,
        operation: &AlterColumnOperation,
    ) -> Result<TableChange> {
        let at = self.known_column(outline, column)?;
        let (name, data_type, _) = outline.columns[at].clone();
        Ok(match operation {
            AlterColumnOperation::SetNotNull => TableChange::NotNull(name, true),
            AlterColumnOperation::DropNotNull => TableChange::NotNull(name, false),
            AlterColumnOperation::DropDefault => TableChange::Default(name, None),
            AlterColumnOperation::SetDefault { value } => {
                if let Some(action) = action_of(value) {
                    return Ok(TableChange::Column(name, action));
                }
                if let Some(options) = identity_options(value)? {
                    let mut changes = SequenceChanges::default();
                    if let Some(Statement::Call(call)) = &options.alteration {
                        changes = self.sequence_changes(call)?.1;
                    }
                    return Ok(TableChange::Identity(name, options.always, changes));
                }
                let (text, _) = self.new_default(value, data_type, &name)?;
                TableChange::Default(name, Some(text))
            }
            AlterColumnOperation::SetDataType { data_type: written, using, .. } => {
                let place = self.place_of_type(written, column.span.end);
                let known = self.declared_type(written);
                let known = known.or_else(|error| self.row_type_named(written, error));
                let known = known.map_err(|error| error.at(place))?;
                if let Some(using) = using {
                    let mut binder = Binder::new(self.names, self.text.as_str());
                    binder.expression(using, &outline.scope())?;
                }
                let using = using.as_ref().map(|using| using.to_string().into());
                TableChange::Type(name, known, using)
            }
            AlterColumnOperation::AddGenerated { generated_as, sequence_options } => {
                let always = !matches!(generated_as, Some(ast::GeneratedAs::ByDefault));
                let list = sequence_options.as_deref().unwrap_or_default();
                let options = self.sequence_options(list, Some(data_type))?;
                TableChange::AddIdentity(name, NewIdentity { always, is_serial: false, options })
            }
        })
    }
}

/// The trigger that ENABLE or DISABLE TRIGGER names; `None`: ALL or USER.
fn trigger_name(name: &Ident) -> Option<SmolStr> {
    let is_all = ["ALL", "USER"].iter().any(|word| name.value.eq_ignore_ascii_case(word));
    (!is_all || name.quote_style.is_some()).then(|| fold(name))
}

fn constraint_changes(constraints: Constraints, changes: &mut Vec<TableChange>) {
    changes.extend(constraints.primary_key.map(TableChange::AddPrimaryKey));
    changes.extend(constraints.uniques.into_iter().map(TableChange::AddUnique));
    changes.extend(constraints.checks.into_iter().map(TableChange::AddCheck));
    changes.extend(constraints.foreign_keys.into_iter().map(TableChange::AddForeignKey));
}
