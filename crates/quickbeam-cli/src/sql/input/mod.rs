//! What the shell reads: lines, scripts, statements, and backslash commands of other shells.

pub(super) mod editor;
pub(super) mod foreign;
pub(super) mod lines;
pub(super) mod script;
pub(super) mod splitter;
pub(super) mod sqlite_tables;
pub(super) mod words;
