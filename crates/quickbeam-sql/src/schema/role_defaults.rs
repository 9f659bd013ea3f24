//! What a role has from the beginning: the settings of its sessions, and the rights on its objects.

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use super::ObjectId;
use super::roles::{AclItem, AclKind};

/// The number under which the settings of all roles are kept.
pub const ALL_ROLES: ObjectId = ObjectId(u32::MAX - 2);

/// Settings with their values, in the order in which they were set.
pub type SettingList = Vec<(SmolStr, SmolStr)>;

/// Where the sessions are that have a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingPlace {
    /// In every database.
    Everywhere,
    /// In the database: IN DATABASE, or ALTER DATABASE.
    Database,
}

/// The settings with which sessions of a role, or of all roles, begin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoleSettings {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    everywhere: SettingList,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    in_database: SettingList,
}

impl RoleSettings {
    /// Returns the settings of a place.
    #[must_use]
    pub fn of(&self, place: SettingPlace) -> &SettingList {
        match place {
            SettingPlace::Everywhere => &self.everywhere,
            SettingPlace::Database => &self.in_database,
        }
    }

    /// Returns the settings of a place, to be changed.
    pub fn of_mut(&mut self, place: SettingPlace) -> &mut SettingList {
        match place {
            SettingPlace::Everywhere => &mut self.everywhere,
            SettingPlace::Database => &mut self.in_database,
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.everywhere.is_empty() && self.in_database.is_empty()
    }
}

/// Gives a setting a value, or takes it off the list.
pub fn change_setting(list: &mut SettingList, name: &str, value: Option<SmolStr>) {
    let at = list.iter().position(|(known, _)| known == name);
    match (at.and_then(|at| list.get_mut(at)), value) {
        (Some(known), Some(value)) => known.1 = value,
        (None, Some(value)) => list.push((name.into(), value)),
        (_, None) => list.retain(|(known, _)| known != name),
    }
}

/// The rights with which new objects of one kind begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DefaultAcl {
    /// Its number.
    pub id: ObjectId,
    /// The kind of the objects.
    pub kind: AclKind,
    /// The schema; its rights are added to those of all schemas. `None`: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<ObjectId>,
    /// The rights, in PostgreSQL's order.
    pub items: Vec<AclItem>,
}

/// The rights with which new objects of a role begin, where they are not the built-in ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DefaultRights {
    /// By kind and schema, each once.
    pub entries: Vec<DefaultAcl>,
}
