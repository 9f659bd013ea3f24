//! Triggers.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use super::objects::{ConstraintTiming, ObjectId};

/// When a trigger fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TriggerTiming {
    /// BEFORE.
    Before,
    /// AFTER.
    After,
    /// INSTEAD OF.
    InsteadOf,
}

impl TriggerTiming {
    /// Returns the words of a definition.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            TriggerTiming::Before => "BEFORE",
            TriggerTiming::After => "AFTER",
            TriggerTiming::InsteadOf => "INSTEAD OF",
        }
    }
}

/// Which rows a transition table has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransitionSide {
    /// OLD TABLE: those before the change.
    Old,
    /// NEW TABLE: those after it.
    New,
}

/// What a trigger fires for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TriggerEvent {
    /// INSERT.
    Insert,
    /// DELETE.
    Delete,
    /// UPDATE.
    Update,
    /// TRUNCATE.
    Truncate,
}

impl TriggerEvent {
    /// All events, in the order of a definition.
    pub const ALL: [TriggerEvent; 4] =
        [TriggerEvent::Insert, TriggerEvent::Delete, TriggerEvent::Update, TriggerEvent::Truncate];

    /// Returns the word of a definition.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            TriggerEvent::Insert => "INSERT",
            TriggerEvent::Delete => "DELETE",
            TriggerEvent::Update => "UPDATE",
            TriggerEvent::Truncate => "TRUNCATE",
        }
    }

    /// Returns the bit in `pg_trigger.tgtype`.
    #[must_use]
    pub fn bit(self) -> i16 {
        match self {
            TriggerEvent::Insert => 4,
            TriggerEvent::Delete => 8,
            TriggerEvent::Update => 16,
            TriggerEvent::Truncate => 32,
        }
    }
}

/// How often a trigger fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TriggerLevel {
    /// FOR EACH ROW.
    Row,
    /// FOR EACH STATEMENT.
    Statement,
}

impl TriggerLevel {
    /// Returns the word of a definition.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            TriggerLevel::Row => "ROW",
            TriggerLevel::Statement => "STATEMENT",
        }
    }
}

/// Whether a trigger fires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TriggerState {
    /// ENABLE.
    #[default]
    Enabled,
    /// DISABLE.
    Disabled,
    /// ENABLE REPLICA: it fires in a session that applies the changes of another server.
    Replica,
    /// ENABLE ALWAYS.
    Always,
}

impl TriggerState {
    /// Returns the letter in `pg_trigger.tgenabled`.
    #[must_use]
    pub fn letter(self) -> &'static str {
        match self {
            TriggerState::Enabled => "O",
            TriggerState::Disabled => "D",
            TriggerState::Replica => "R",
            TriggerState::Always => "A",
        }
    }

    /// Returns whether such a trigger fires in a session that does or does not apply the changes of
    /// another server.
    #[must_use]
    pub fn fires(self, is_replica: bool) -> bool {
        match self {
            TriggerState::Enabled => !is_replica,
            TriggerState::Disabled => false,
            TriggerState::Replica => is_replica,
            TriggerState::Always => true,
        }
    }

    fn is_default(&self) -> bool {
        *self == TriggerState::default()
    }
}

/// A trigger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trigger {
    /// Its number.
    pub id: ObjectId,
    /// Its name.
    pub name: SmolStr,
    /// Its table or view.
    pub relation: ObjectId,
    /// Its function.
    pub routine: ObjectId,
    /// When it fires.
    pub timing: TriggerTiming,
    /// What it fires for.
    pub events: Vec<TriggerEvent>,
    /// How often it fires.
    pub level: TriggerLevel,
    /// Numbers of the columns of UPDATE OF.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<u16>,
    /// The text of WHEN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Arc<str>>,
    /// Numbers of the columns that WHEN reads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<u16>,
    /// What its function is called with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<Arc<str>>,
    /// Whether it fires.
    #[serde(default, skip_serializing_if = "TriggerState::is_default")]
    pub state: TriggerState,
    /// When it fires, if it is a constraint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constraint: Option<ConstraintTiming>,
    /// The name of the transition table of the rows before the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_table: Option<SmolStr>,
    /// The name of the transition table of the rows after the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_table: Option<SmolStr>,
}

impl Trigger {
    /// Whether it depends on the column of that number.
    #[must_use]
    pub fn depends_on(&self, column: u16) -> bool {
        self.columns.contains(&column) || self.reads.contains(&column)
    }

    /// Whether it reads transition tables.
    #[must_use]
    pub fn has_transitions(&self) -> bool {
        self.old_table.is_some() || self.new_table.is_some()
    }

    /// Returns `pg_trigger.tgtype`.
    #[must_use]
    pub fn kind_bits(&self) -> i16 {
        let row = i16::from(self.level == TriggerLevel::Row);
        let timing = match self.timing {
            TriggerTiming::Before => 2,
            TriggerTiming::After => 0,
            TriggerTiming::InsteadOf => 64,
        };
        self.events.iter().fold(row | timing, |bits, event| bits | event.bit())
    }

    /// Whether it fires for an event; for an UPDATE of the columns of these numbers, if they are
    /// given.
    pub(super) fn is_for(&self, event: TriggerEvent, columns: Option<&[u16]>) -> bool {
        let is_of = || match columns {
            Some(columns) if event == TriggerEvent::Update && !self.columns.is_empty() => {
                self.columns.iter().any(|column| columns.contains(column))
            }
            _ => true,
        };
        self.state != TriggerState::Disabled && self.events.contains(&event) && is_of()
    }
}
