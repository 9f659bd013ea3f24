//! CREATE, ALTER and DROP TRIGGER.

use std::sync::Arc;

use smol_str::SmolStr;

use super::call::{CallTransaction, Invocation, TransactionEnd};
use super::triggers::{NEW, OLD};
use super::{CompiledRoutine, Routine, RoutineResult};
use crate::bind::{Binder, Names};
use crate::catalog::rights::{denied, not_owner};
use crate::catalog::{
    AclKind, BuiltinTrigger, ObjectId, Privileges, Relation, Table, TransitionSide, Trigger,
    TriggerEvent, TriggerLevel, TriggerState, TriggerTiming,
};
use crate::compile::CompileContext;
use crate::ddl::no_trigger;
use crate::error::{Result, SqlError, SqlState};
use crate::parse::{CreateTrigger, Name, TriggerStatement};
use crate::schema::errors::{no_column, no_relation};
use crate::session::Session;
use crate::session::events::NoticeLevel;
use crate::types::DataType;

#[cold]
fn invalid(message: &str) -> SqlError {
    SqlError::new(SqlState::InvalidObjectDefinition, message)
}

#[cold]
fn wrong_kind(name: &str, kind: &str, detail: &str) -> SqlError {
    SqlError::new(SqlState::WrongObjectType, format!("\"{name}\" is a {kind}")).with_detail(detail)
}

/// Checks that triggers of a definition can be those of a table, or of a view.
fn check_form(create: &CreateTrigger, name: &str, is_view: bool) -> Result<()> {
    let is_row = create.level == TriggerLevel::Row;
    let is_instead = create.timing == TriggerTiming::InsteadOf;
    if is_instead && !is_view {
        let detail = "Tables cannot have INSTEAD OF triggers.";
        return Err(wrong_kind(name, "table", detail));
    }
    if is_view && is_row && !is_instead {
        let detail = "Views cannot have row-level BEFORE or AFTER triggers.";
        return Err(wrong_kind(name, "view", detail));
    }
    if is_view && create.events.contains(&TriggerEvent::Truncate) {
        return Err(wrong_kind(name, "view", "Views cannot have TRUNCATE triggers."));
    }
    let refused = |message| Err(SqlError::new(SqlState::FeatureNotSupported, message));
    if is_instead && !is_row {
        return refused("INSTEAD OF triggers must be FOR EACH ROW");
    }
    if is_instead && create.condition.is_some() {
        return refused("INSTEAD OF triggers cannot have WHEN conditions");
    }
    if is_instead && !create.columns.is_empty() {
        return refused("INSTEAD OF triggers cannot have column lists");
    }
    if is_row && create.events.contains(&TriggerEvent::Truncate) {
        return refused("TRUNCATE FOR EACH ROW triggers are not supported");
    }
    Ok(())
}

/// Checks that a trigger of that definition can have its transition tables.
fn check_transitions(create: &CreateTrigger, name: &str, is_view: bool) -> Result<()> {
    let mut given: Vec<&(TransitionSide, SmolStr)> = Vec::new();
    for transition in &create.transitions {
        let (side, wanted) = match transition.0 {
            TransitionSide::Old => ("OLD", TriggerEvent::Delete),
            TransitionSide::New => ("NEW", TriggerEvent::Insert),
        };
        let refused = |message| Err(SqlError::new(SqlState::FeatureNotSupported, message));
        if is_view {
            let detail = "Triggers on views cannot have transition tables.";
            return Err(wrong_kind(name, "view", detail));
        }
        if create.timing != TriggerTiming::After {
            let message = "transition table name can only be specified for an AFTER trigger";
            return Err(invalid(message));
        }
        if create.events.contains(&TriggerEvent::Truncate) {
            return refused("TRUNCATE triggers with transition tables are not supported");
        }
        let [event] = create.events[..] else {
            let message =
                "transition tables cannot be specified for triggers with more than one event";
            return refused(message);
        };
        if !create.columns.is_empty() {
            let message = "transition tables cannot be specified for triggers with column lists";
            return refused(message);
        }
        if event != wanted && event != TriggerEvent::Update {
            let article = if wanted == TriggerEvent::Insert { "an" } else { "a" };
            let word = wanted.word();
            return Err(invalid(&format!(
                "{side} TABLE can only be specified for {article} {word} or UPDATE trigger"
            )));
        }
        if given.iter().any(|known| known.0 == transition.0) {
            return Err(invalid(&format!("{side} TABLE cannot be specified multiple times")));
        }
        if given.iter().any(|known| known.1 == transition.1) {
            return Err(invalid("OLD TABLE name and NEW TABLE name cannot be the same"));
        }
        given.push(transition);
    }
    Ok(())
}

/// Returns a text without parentheses around all of it.
fn without_parentheses(text: &str) -> &str {
    let Some(inner) = text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) else {
        return text;
    };
    let (mut depth, mut is_quoted) = (0_i32, false);
    for c in inner.chars() {
        match c {
            '\'' => is_quoted = !is_quoted,
            '(' if !is_quoted => depth += 1,
            ')' if !is_quoted => depth -= 1,
            _ => {}
        }
        if depth < 0 {
            return text;
        }
    }
    without_parentheses(inner.trim())
}

/// Returns the text of a condition with NEW and OLD in lower case, as definitions show them.
fn condition_text(text: &str) -> String {
    let mut written = without_parentheses(text.trim()).to_owned();
    for (upper, lower) in [("NEW", "new"), ("OLD", "old")] {
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '"' || c == '\'';
        let places: Vec<usize> = written.match_indices(upper).map(|(at, _)| at).collect();
        for at in places {
            let before = written[..at].chars().next_back();
            let after = written[at + upper.len()..].chars().next();
            let is_quoted = written[..at].matches('\'').count() % 2 == 1;
            if !before.is_some_and(is_part) && !after.is_some_and(is_part) && !is_quoted {
                written.replace_range(at..at + upper.len(), lower);
            }
        }
    }
    written
}

impl Session {
    /// Executes a statement about triggers.
    pub(super) fn change_trigger(
        &self,
        statement: &TriggerStatement,
        look: &CompileContext<'_>,
    ) -> Result<()> {
        match statement {
            TriggerStatement::Create(create) => self.create_trigger(create, look),
            TriggerStatement::Rename(name, relation, to) => {
                let (relation, shown) = known_relation(relation, look)?;
                let (id, _) = relation.protected();
                if look.role.is_some_and(|role| !look.snapshot.owns(role, id)) {
                    return Err(not_owner(relation.word(), &shown));
                }
                let found = look.snapshot.trigger_named(id, name);
                let trigger = found.ok_or_else(|| no_trigger(&shown, name))?;
                look.catalog.rename_trigger(look.transaction, trigger, to)
            }
            TriggerStatement::Drop(name, relation, if_exists) => {
                self.drop_trigger(name, relation, *if_exists, look)
            }
        }
    }

    fn drop_trigger(
        &self,
        name: &SmolStr,
        relation: &Name,
        if_exists: bool,
        look: &CompileContext<'_>,
    ) -> Result<()> {
        let skip = |text: String| {
            self.notice(NoticeLevel::Notice, SqlState::SuccessfulCompletion, || text);
            Ok(())
        };
        let (found, shown) = match known_relation(relation, look) {
            Err(error) if if_exists && error.state() == SqlState::UndefinedTable => {
                return skip(format!("relation \"{}\" does not exist, skipping", relation.1));
            }
            found => found?,
        };
        let (id, _) = found.protected();
        let Some(trigger) = look.snapshot.trigger_named(id, name) else {
            if if_exists {
                let text =
                    format!("trigger \"{name}\" for relation \"{shown}\" does not exist, skipping");
                return skip(text);
            }
            return Err(no_trigger(&shown, name));
        };
        if look.role.is_some_and(|role| !look.snapshot.owns(role, id)) {
            return Err(not_owner("relation", &shown));
        }
        look.catalog.drop_trigger(look.transaction, trigger)
    }

    fn create_trigger(&self, create: &CreateTrigger, look: &CompileContext<'_>) -> Result<()> {
        let (relation, shown) = known_relation(&create.relation, look)?;
        let (id, kind) = relation.protected();
        let table = match &relation {
            Relation::Table(table) if table.materialized.is_none() => Some(table),
            Relation::View(_) => None,
            other => {
                let message = format!("relation \"{shown}\" cannot have triggers");
                let detail = format!("This operation is not supported for {}s.", other.word());
                let error = SqlError::new(SqlState::WrongObjectType, message);
                return Err(error.with_detail(detail));
            }
        };
        if table.is_some_and(|table| table.is_database()) {
            return Err(SqlError::unsupported("a trigger of a key/value database"));
        }
        check_form(create, &shown, table.is_none())?;
        if let Some(role) = look.role
            && !look.snapshot.rights(role, id, kind).has(Privileges::TRIGGER)
        {
            return Err(denied(relation.word(), &shown));
        }
        let routine = self.trigger_function(&create.function, look)?;
        let mut trigger = Trigger {
            id: ObjectId(0),
            name: create.name.clone(),
            relation: id,
            routine: routine.id,
            timing: create.timing,
            events: create.events.clone(),
            level: create.level,
            columns: Vec::new(),
            condition: None,
            reads: Vec::new(),
            arguments: create.arguments.clone(),
            state: TriggerState::Enabled,
            constraint: create.constraint,
            old_table: None,
            new_table: None,
        };
        check_transitions(create, &shown, table.is_none())?;
        for (side, name) in &create.transitions {
            let place = match side {
                TransitionSide::Old => &mut trigger.old_table,
                TransitionSide::New => &mut trigger.new_table,
            };
            *place = Some(name.clone());
        }
        trigger.events.sort_unstable();
        if let Some(table) = table {
            trigger.columns = columns_of(&create.columns, table)?;
            if let Some(place) = &create.condition {
                let text = create.text.get(place.clone()).unwrap_or_default();
                trigger.reads = self.check_condition(create, table, text, look)?;
                trigger.condition = Some(condition_text(text).into());
            }
        }
        look.catalog.create_trigger(look.transaction, trigger, create.replace)
    }

    /// Returns the function of a new trigger.
    fn trigger_function(&self, name: &Name, look: &CompileContext<'_>) -> Result<Arc<Routine>> {
        let is_system = name.0.as_ref().is_none_or(|schema| schema == "pg_catalog");
        if let Some(function) = BuiltinTrigger::named(&name.1).filter(|_| is_system) {
            return Ok(function.routine().clone());
        }
        let routine = self.known_routine("FUNCTION", name, Some(&[]), look)?;
        if let Some(role) = look.role
            && !look.snapshot.rights(role, routine.id, AclKind::Function).has(Privileges::EXECUTE)
        {
            return Err(denied("function", &routine.name));
        }
        if routine.result != RoutineResult::Trigger {
            return Err(invalid(&format!("function {} must return type trigger", routine.name)));
        }
        Ok(routine)
    }

    /// Checks a condition and returns the numbers of the columns that it reads.
    fn check_condition(
        &self,
        create: &CreateTrigger,
        table: &Table,
        text: &str,
        look: &CompileContext<'_>,
    ) -> Result<Vec<u16>> {
        let parsed = crate::parse::statement(&format!("SELECT {text}"));
        let has_query = parsed.is_ok_and(|parsed| {
            parsed.is_some_and(|it| it.to_string().to_uppercase().contains("(SELECT"))
        });
        if has_query {
            let message = "cannot use subquery in trigger WHEN condition";
            return Err(SqlError::new(SqlState::FeatureNotSupported, message));
        }
        let version = look.snapshot.version();
        let compiled = Arc::new(CompiledRoutine::of_condition(table, text, version));
        let place = CallTransaction::Lent(look.transaction);
        let mut invocation = Invocation::new(self, compiled, place, TransactionEnd::Refused);
        invocation.has_rows();
        let columns = invocation.check(0).map_err(SqlError::without_place)?;
        if let [column] = &*columns
            && column.data_type != DataType::Boolean
        {
            let message =
                format!("argument of WHEN must be type boolean, not type {}", column.data_type);
            return Err(SqlError::new(SqlState::DatatypeMismatch, message));
        }
        let used = invocation.fields_used(0)?;
        let uses = |row: usize| used.iter().any(|(variable, _)| *variable == row);
        if create.level == TriggerLevel::Statement && !used.is_empty() {
            let message = "statement trigger's WHEN condition cannot reference column values";
            return Err(invalid(message));
        }
        for (event, row, name) in
            [(TriggerEvent::Insert, OLD, "OLD"), (TriggerEvent::Delete, NEW, "NEW")]
        {
            if create.events.contains(&event) && uses(row) {
                let word = event.word();
                let message =
                    format!("{word} trigger's WHEN condition cannot reference {name} values");
                return Err(invalid(&message));
            }
        }
        let generated = |(variable, at): &(usize, usize)| {
            *variable == NEW && table.columns.get(*at).is_some_and(|it| it.generated.is_some())
        };
        if create.timing == TriggerTiming::Before && used.iter().any(generated) {
            let message = "BEFORE trigger's WHEN condition cannot reference NEW generated columns";
            return Err(invalid(message));
        }
        // A row as a whole depends on no column.
        let lower = text.to_lowercase();
        let number = |(_, at): &(usize, usize)| {
            let column = table.columns.get(*at)?;
            let name = column.name.to_lowercase();
            let is_named =
                lower.contains(&format!(".{name}")) || lower.contains(&format!(".\"{name}\""));
            is_named.then_some(column.id)
        };
        let mut reads: Vec<u16> = used.iter().filter_map(number).collect();
        reads.sort_unstable();
        reads.dedup();
        Ok(reads)
    }
}

/// Returns the numbers of the columns of UPDATE OF.
fn columns_of(names: &[SmolStr], table: &Table) -> Result<Vec<u16>> {
    let mut numbers = Vec::with_capacity(names.len());
    for name in names {
        let position = table.column(name).ok_or_else(|| no_column(&table.name, name))?;
        let number = table.columns[position].id;
        if numbers.contains(&number) {
            let message = format!("column \"{name}\" specified more than once");
            return Err(SqlError::new(SqlState::DuplicateColumn, message));
        }
        numbers.push(number);
    }
    Ok(numbers)
}

/// Returns the relation of a statement, and its name.
fn known_relation((schema, name): &Name, look: &CompileContext<'_>) -> Result<(Relation, SmolStr)> {
    let lookup = Binder::new(look, "").lookup(schema.as_deref(), name)?;
    let relation = look.relation(&lookup)?.ok_or_else(|| no_relation(&lookup))?;
    Ok((relation, name.clone()))
}
