//! The settings of functions: `CREATE FUNCTION … SET search_path = app`.
//!
//! A call has them until it returns. Then the settings have the values from before the call.

use std::sync::Arc;

use smol_str::SmolStr;

use super::known_settings::setting;
use super::setting_table::Kind;
use super::variables::unrecognized;
use crate::bind::SearchPath;
use crate::catalog::ObjectId;
use crate::compile::session_command::{Control, Settings, control_of};
use crate::error::{Result, SqlError, SqlState};
use crate::parse::RoutineSetting;
use crate::session::Session;
use crate::types::TextSettings;

/// Resets the settings of a call when it is dropped.
pub(in crate::session) struct SettingsGuard<'s> {
    session: &'s Session,
    /// The names, with the values from before the call.
    before: Vec<(SmolStr, Option<Arc<str>>)>,
    path_number: u64,
    key: PathKey,
}

/// What a path number stands for, as far as a call may change it.
#[derive(PartialEq)]
struct PathKey {
    path: SearchPath,
    role: ObjectId,
    texts: TextSettings,
}

impl Drop for SettingsGuard<'_> {
    fn drop(&mut self) {
        for (name, value) in self.before.drain(..) {
            self.session.set_variable(&name, value.as_deref());
        }
        self.session.note_settings();
        // The statements around the call keep their plans.
        if self.session.path_key() == self.key {
            self.session.path_number.set(self.path_number);
            self.session.note_plan_key();
        }
    }
}

impl Session {
    fn path_key(&self) -> PathKey {
        let path = self.search_path.borrow().clone();
        PathKey { path, role: self.role.get(), texts: self.clock.settings() }
    }

    /// Sets the settings of a function for one call.
    pub(in crate::session) fn with_settings(
        &self,
        settings: &[(SmolStr, SmolStr)],
    ) -> Result<Option<SettingsGuard<'_>>> {
        if settings.is_empty() {
            return Ok(None);
        }
        let (path_number, key) = (self.path_number.get(), self.path_key());
        let before = settings.iter().map(|(name, _)| (name.clone(), self.variable(name)));
        let guard = SettingsGuard { session: self, before: before.collect(), path_number, key };
        for (name, value) in settings {
            let value = self.checked_setting(name, value)?;
            self.set_variable(name, Some(&value));
        }
        self.note_settings();
        Ok(Some(guard))
    }

    /// Returns the settings of a function after some changes.
    pub(in crate::session) fn routine_settings(
        &self,
        before: &[(SmolStr, SmolStr)],
        changes: &[RoutineSetting],
    ) -> Result<Vec<(SmolStr, SmolStr)>> {
        let mut settings = before.to_vec();
        for change in changes {
            let Some((name, value)) = self.named_setting(change)? else {
                settings.clear();
                continue;
            };
            settings.retain(|(known, _)| *known != name);
            if let Some(value) = value {
                let checked = self.checked_setting(&name, &value)?;
                settings.push((name, checked.into()));
            } else if setting(&name).is_none() && !name.contains('.') {
                return Err(unrecognized(&name));
            }
        }
        Ok(settings)
    }

    /// Returns the name of a setting in lower case and its value, `None` for its default. Returns
    /// `None` for RESET ALL.
    pub(in crate::session) fn named_setting(
        &self,
        change: &RoutineSetting,
    ) -> Result<Option<(SmolStr, Option<String>)>> {
        let (name, value) = match change {
            RoutineSetting::ResetAll => return Ok(None),
            RoutineSetting::Reset(name) => (name.clone(), None),
            RoutineSetting::Current(name) => (name.clone(), self.show(name)?),
            RoutineSetting::Assign(text) => {
                let parsed = crate::parse::statement(text)?;
                let control = parsed.as_ref().map(control_of).transpose()?.flatten();
                let Some(Control::Assign(name, value, _)) = control else {
                    return Err(SqlError::unsupported(format!("{text} in a definition")));
                };
                (name, value)
            }
        };
        Ok(Some((name.to_lowercase().into(), value)))
    }

    /// Returns the name of a setting as SHOW ALL has it.
    pub(in crate::session) fn setting_name(&self, name: &str) -> Result<SmolStr> {
        match setting(name) {
            Some(known) => Ok(SmolStr::new_static(known.name)),
            None if name.contains('.') => Ok(name.into()),
            None => Err(unrecognized(name)),
        }
    }

    /// Checks the value that a setting has when a session begins.
    pub(in crate::session) fn check_first_setting(&self, name: &str, value: &str) -> Result<()> {
        let Some(known) = setting(name) else { return Ok(()) };
        match name {
            "transaction_isolation" => {
                let message = "SET TRANSACTION ISOLATION LEVEL must be called before any query";
                return Err(SqlError::new(SqlState::ActiveSqlTransaction, message));
            }
            "transaction_read_only" => {
                return Err(SqlError::unsupported(format!("{name} as a setting of a role")));
            }
            _ => {}
        }
        let mut settings = Settings::default();
        if settings.set(name, &value.to_lowercase())? {
            return self.check_durability(&settings);
        }
        let current = self.variable(name);
        known.checked(value, current.as_deref().unwrap_or(known.default)).map(|_| ())
    }

    /// Checks the value of a setting of a function.
    fn checked_setting(&self, name: &str, value: &str) -> Result<String> {
        let Some(known) = setting(name) else {
            let is_own = name.contains('.');
            return if is_own { Ok(value.to_owned()) } else { Err(unrecognized(name)) };
        };
        if matches!(known.kind, Kind::Engine) || matches!(name, "role" | "session_authorization") {
            return Err(SqlError::unsupported(format!("SET {name} of a function")));
        }
        let current = self.variable(name);
        known.checked(value, current.as_deref().unwrap_or(known.default))
    }
}
