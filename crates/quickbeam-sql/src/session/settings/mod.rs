//! The settings of a session: SET, SHOW and RESET.

pub(crate) mod foreign;
pub(crate) mod known_settings;
mod routine_settings;
pub(crate) mod setting_table;
pub(crate) mod variables;

pub(in crate::session) use routine_settings::SettingsGuard;
