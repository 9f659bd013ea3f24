//! ALTER ROLE … SET and ALTER DATABASE … SET: the settings with which sessions begin.
//!
//! Of several values of a setting, that of the role in the database comes first, then that of the
//! role, then that of the database, last that of all roles.

use smol_str::SmolStr;

use super::{AccessChange, insufficient};
use crate::catalog::rights::{no_role, not_owner};
use crate::catalog::{
    ALL_ROLES, CatalogSnapshot, DATABASE_ID, ObjectId, SettingPlace, change_setting,
};
use crate::error::{Result, SqlError, SqlState};
use crate::parse::{RoleName, RoutineSetting, SettingsChange};
use crate::session::Session;
use crate::session::events::NoticeLevel;
use crate::session::settings::variables::SettingScope;

impl CatalogSnapshot {
    /// Returns the settings with which sessions of a role begin.
    fn first_settings(&self, role: ObjectId) -> Vec<(SmolStr, SmolStr)> {
        let mut all = Vec::new();
        for id in [ALL_ROLES, role] {
            let Some(settings) = self.settings.get(&id) else { continue };
            for place in [SettingPlace::Everywhere, SettingPlace::Database] {
                for (name, value) in settings.of(place) {
                    change_setting(&mut all, name, Some(value.clone()));
                }
            }
        }
        all
    }
}

impl AccessChange<'_> {
    /// ALTER ROLE … SET or RESET, and ALTER DATABASE.
    pub fn change_settings(&self, statement: &SettingsChange) -> Result<()> {
        let role = statement.role.as_ref().map(|role| self.role_with_settings(role)).transpose()?;
        if let Some(name) = statement.database.as_ref().filter(|name| **name != *"quickbeam") {
            let message = format!("database \"{name}\" does not exist");
            return Err(SqlError::new(SqlState::InvalidCatalogName, message));
        }
        let place = match &statement.database {
            Some(name) if role.is_none() && !self.before().owns(self.user, DATABASE_ID) => {
                return Err(not_owner("database", name));
            }
            Some(_) => SettingPlace::Database,
            None if role.is_none() && !self.is_superuser() => {
                return Err(insufficient("must be superuser to alter settings globally"));
            }
            None => SettingPlace::Everywhere,
        };
        let id = role.unwrap_or(ALL_ROLES);
        let mut settings = self.before().settings.get(&id).cloned().unwrap_or_default();
        let list = settings.of_mut(place);
        match self.session.first_setting(&statement.change, self.is_superuser())? {
            None => list.clear(),
            Some((name, value)) => change_setting(list, &name, value),
        }
        self.edit.put_settings(id, settings)
    }

    /// Returns a role whose settings the user may change.
    fn role_with_settings(&self, role: &RoleName) -> Result<ObjectId> {
        let id = self.role(role)?;
        self.check_alterable(id)?;
        let before = self.before();
        if before.is_superuser(id) && !self.is_superuser() {
            return Err(insufficient("must be superuser to alter superusers"));
        }
        let may = |it: &_| before.role(*it).is_some_and(|role| role.create_role);
        if !self.is_superuser() && id != self.user && !may(&self.user) {
            return Err(insufficient("permission denied"));
        }
        Ok(id)
    }
}

impl Session {
    /// Returns the name of a setting and its new value, `None` to take it back. Returns `None` for
    /// RESET ALL.
    fn first_setting(
        &self,
        change: &RoutineSetting,
        is_superuser: bool,
    ) -> Result<Option<(SmolStr, Option<SmolStr>)>> {
        let Some((name, value)) = self.named_setting(change)? else { return Ok(None) };
        let shown = self.setting_name(&name)?;
        if shown.contains('.') && !is_superuser {
            let message = format!("permission denied to set parameter \"{shown}\"");
            return Err(insufficient(message));
        }
        if let Some(value) = &value {
            if matches!(&name[..], "role" | "session_authorization") {
                self.note_unusable_role(&name, value)?;
            } else {
                self.check_first_setting(&name, value)?;
            }
        }
        Ok(Some((shown, value.map(SmolStr::from))))
    }

    /// Leaves a notice if the role that a setting names cannot be taken now.
    fn note_unusable_role(&self, setting: &str, role: &str) -> Result<()> {
        let Err(error) = self.check_role_setting(setting, role) else { return Ok(()) };
        let (state, message) = match error.state() {
            SqlState::InvalidParameterValue => (SqlState::UndefinedObject, no_role(role)),
            SqlState::InsufficientPrivilege => {
                let what = setting.replace('_', " ");
                let message = format!("permission will be denied to set {what} \"{role}\"");
                (SqlState::InsufficientPrivilege, insufficient(message))
            }
            _ => return Err(error),
        };
        self.notice(NoticeLevel::Notice, state, || message.message().to_owned());
        Ok(())
    }

    /// Gives a new session the settings of its role. A setting whose value is no longer taken
    /// leaves a warning.
    pub(super) fn take_first_settings(&self, role: ObjectId) -> Result<()> {
        let settings = self.with_snapshot(|snapshot| Ok(snapshot.first_settings(role)))?;
        for (name, value) in settings {
            if let Err(error) = self.assign(&name, Some(&value), SettingScope::Session) {
                let message = || error.message().to_owned();
                self.notice(NoticeLevel::Warning, error.state(), message);
            }
        }
        self.keep_settings();
        Ok(())
    }
}
