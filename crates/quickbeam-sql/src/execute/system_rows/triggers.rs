//! Catalogs of triggers.

use super::{NAME, SystemSource};
use crate::catalog::system::object_oid;
use crate::catalog::{
    AclKind, BuiltinTrigger, ConstraintTiming, Privileges, Trigger, TriggerEvent, TriggerLevel,
};
use crate::types::Value;

/// The rights on a table that show its triggers.
const SHOWING: [Privileges; 6] = [
    Privileges::INSERT,
    Privileges::UPDATE,
    Privileges::DELETE,
    Privileges::TRUNCATE,
    Privileges::REFERENCES,
    Privileges::TRIGGER,
];

fn small(number: usize) -> Value {
    Value::SmallInt(i16::try_from(number).unwrap_or(i16::MAX))
}

impl SystemSource<'_> {
    pub(super) fn pg_trigger(&mut self) {
        let snapshot = self.snapshot;
        for trigger in snapshot.triggers() {
            self.add(|row| {
                row.set("oid", object_oid(trigger.id)).text("tgname", &trigger.name);
                row.set("tgrelid", object_oid(trigger.relation));
                let function = BuiltinTrigger::of(trigger.routine);
                let made = || object_oid(trigger.routine);
                row.set("tgfoid", function.map_or_else(made, BuiltinTrigger::oid));
                row.set("tgtype", Value::SmallInt(trigger.kind_bits()));
                row.text("tgenabled", trigger.state.letter());
                row.set("tgnargs", small(trigger.arguments.len()));
                let numbers: Vec<String> = trigger.columns.iter().map(u16::to_string).collect();
                row.text("tgattr", numbers.join(" "));
                let mut arguments = Vec::new();
                for argument in &trigger.arguments {
                    arguments.extend_from_slice(argument.as_bytes());
                    arguments.push(0);
                }
                row.set("tgargs", Value::bytea(arguments));
                if let Some(condition) = &trigger.condition {
                    row.text("tgqual", condition);
                }
                if let Some(timing) = trigger.constraint {
                    row.set("tgconstraint", object_oid(trigger.id));
                    row.set("tgdeferrable", timing.is_deferrable());
                    row.set("tginitdeferred", timing == ConstraintTiming::Deferred);
                }
                for (column, table) in
                    [("tgoldtable", &trigger.old_table), ("tgnewtable", &trigger.new_table)]
                {
                    if let Some(name) = table {
                        row.text(column, name);
                    }
                }
            });
        }
    }

    /// Whether `information_schema` shows a trigger.
    pub(super) fn shows_trigger(&self, trigger: &Trigger) -> bool {
        let (role, id) = (self.session.role(), trigger.relation);
        let has = |right| self.snapshot.has_any(role, id, AclKind::Table, right);
        self.snapshot.owns(role, id) || SHOWING.into_iter().any(has)
    }

    /// `information_schema.triggers`: a row for each event.
    pub(super) fn trigger_rows(&mut self) {
        let (snapshot, role) = (self.snapshot, self.session.role());
        for trigger in snapshot.triggers() {
            let Some((schema, relation)) = snapshot.relation_named(trigger.relation) else {
                continue;
            };
            if !self.shows_trigger(trigger) {
                continue;
            }
            for event in trigger.events.iter().filter(|it| **it != TriggerEvent::Truncate) {
                let is_alike = |other: &&std::sync::Arc<Trigger>| {
                    other.events.contains(event)
                        && other.timing == trigger.timing
                        && other.level == trigger.level
                };
                let alike = snapshot.triggers_of(trigger.relation);
                let order = alike.iter().filter(is_alike).position(|it| it.id == trigger.id);
                self.add(|row| {
                    for prefix in ["trigger", "event_object"] {
                        row.text(&format!("{prefix}_catalog"), NAME);
                        row.text(&format!("{prefix}_schema"), schema);
                    }
                    row.text("trigger_name", &trigger.name).text("event_object_table", relation);
                    row.text("event_manipulation", event.word());
                    let order = order.map_or(0, |order| order + 1);
                    row.set("action_order", i32::try_from(order).unwrap_or(i32::MAX));
                    if let Some(condition) = &trigger.condition
                        && snapshot.owns(role, trigger.relation)
                    {
                        row.text("action_condition", format!("({condition})"));
                    }
                    row.text("action_statement", snapshot.trigger_action(trigger));
                    let is_row = trigger.level == TriggerLevel::Row;
                    row.text("action_orientation", if is_row { "ROW" } else { "STATEMENT" });
                    row.text("action_timing", trigger.timing.words());
                    for (column, table) in [
                        ("action_reference_old_table", &trigger.old_table),
                        ("action_reference_new_table", &trigger.new_table),
                    ] {
                        if let Some(name) = table {
                            row.text(column, name);
                        }
                    }
                });
            }
        }
    }
}
