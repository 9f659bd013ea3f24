//! The settings of a session: SET, SHOW and RESET.

pub(crate) mod foreign;
mod routine_settings;
pub(crate) mod setting_table;
pub(crate) mod variables;

pub(in crate::session) use routine_settings::SettingsGuard;
