//! The settings of a session: SET, SHOW and RESET.

pub(crate) mod foreign;
pub(crate) mod setting_table;
pub(crate) mod variables;
