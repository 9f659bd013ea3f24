//! The triggers that a change of a table or a view fires.

use std::collections::BTreeMap;
use std::sync::Arc;

use smol_str::SmolStr;

use super::encoding::Layouts;
use super::tables::{Column, Table};
use super::triggers::{Trigger, TriggerEvent, TriggerLevel, TriggerTiming};
use super::views::View;
use crate::types::{Collation, DataType, Value};

/// The triggers that a statement fires on one table for one event, each kind in the order in which
/// they fire.
#[derive(Clone, Debug)]
pub struct FiredTriggers {
    /// The event.
    pub event: TriggerEvent,
    /// BEFORE … FOR EACH STATEMENT.
    pub before_statement: Vec<Arc<Trigger>>,
    /// BEFORE … FOR EACH ROW.
    pub before_row: Vec<Arc<Trigger>>,
    /// AFTER … FOR EACH ROW.
    pub after_row: Arc<[Arc<Trigger>]>,
    /// AFTER … FOR EACH STATEMENT.
    pub after_statement: Vec<Arc<Trigger>>,
    /// INSTEAD OF.
    pub instead_of: Vec<Arc<Trigger>>,
    /// Positions of the columns that UPDATE sets.
    pub set: Vec<usize>,
    /// Whether one of them reads transition tables.
    pub keeps_rows: bool,
}

impl FiredTriggers {
    /// Returns the triggers of an event on a table, or `None` if there are none. `changed`:
    /// positions of the columns that UPDATE sets.
    #[must_use]
    pub fn of(
        table: &Table,
        event: TriggerEvent,
        changed: Option<&[usize]>,
    ) -> Option<Arc<FiredTriggers>> {
        if table.triggers.is_empty() {
            return None;
        }
        let number = |position: &usize| table.columns.get(*position).map(|column| column.id);
        let columns: Option<Vec<u16>> =
            changed.map(|changed| changed.iter().filter_map(number).collect());
        let find = |timing: TriggerTiming, level: TriggerLevel| -> Vec<Arc<Trigger>> {
            let of_kind = |it: &&Arc<Trigger>| it.timing == timing && it.level == level;
            let fitting = table.triggers.iter().filter(of_kind);
            fitting.filter(|it| it.is_for(event, columns.as_deref())).cloned().collect()
        };
        let mut found = FiredTriggers {
            event,
            set: changed.unwrap_or_default().to_vec(),
            keeps_rows: false,
            before_statement: find(TriggerTiming::Before, TriggerLevel::Statement),
            before_row: find(TriggerTiming::Before, TriggerLevel::Row),
            after_row: find(TriggerTiming::After, TriggerLevel::Row).into(),
            after_statement: find(TriggerTiming::After, TriggerLevel::Statement),
            instead_of: find(TriggerTiming::InsteadOf, TriggerLevel::Row),
        };
        let after = found.after_row.iter().chain(&found.after_statement);
        found.keeps_rows = after.into_iter().any(|trigger| trigger.has_transitions());
        let is_empty = found.before_statement.is_empty()
            && found.before_row.is_empty()
            && found.after_row.is_empty()
            && found.after_statement.is_empty()
            && found.instead_of.is_empty();
        (!is_empty).then(|| Arc::new(found))
    }
}

impl Table {
    /// Whether a BEFORE UPDATE trigger may change more columns than an UPDATE sets.
    #[must_use]
    pub fn changes_before_update(&self) -> bool {
        self.triggers.iter().any(|it| {
            it.timing == TriggerTiming::Before
                && it.level == TriggerLevel::Row
                && it.is_for(TriggerEvent::Update, None)
        })
    }
}

impl Table {
    /// Makes a table of the columns of a view, whose rows only INSTEAD OF triggers change.
    pub(crate) fn of_view(
        view: &View,
        types: impl Iterator<Item = (DataType, Option<Collation>)>,
        triggers: Vec<Arc<Trigger>>,
    ) -> Table {
        let column = |((at, name), (data_type, collation)): (
            (usize, &SmolStr),
            (DataType, Option<Collation>),
        )| Column {
            id: u16::try_from(at + 1).unwrap_or(u16::MAX),
            name: name.clone(),
            data_type,
            domain: None,
            collation,
            not_null: false,
            default: view.default(at).cloned(),
            generated: None,
            identity: None,
            missing: Value::Null,
        };
        let columns: Vec<Column> = view.columns.iter().enumerate().zip(types).map(column).collect();
        Table {
            id: view.id,
            schema: view.schema.clone(),
            name: view.name.clone(),
            primary_key: None,
            indexes: Vec::new(),
            checks: Vec::new(),
            foreign_keys: Vec::new(),
            referenced_by: Vec::new(),
            triggers,
            generation: 0,
            layouts: Layouts::first(&columns),
            next_column: u16::MAX,
            comments: BTreeMap::new(),
            constraint_comments: BTreeMap::new(),
            materialized: None,
            database: None,
            columns,
        }
    }

    /// Whether it stands for a view that INSTEAD OF triggers change.
    pub(crate) fn is_view(&self) -> bool {
        self.triggers.iter().any(|trigger| trigger.timing == TriggerTiming::InsteadOf)
    }
}
