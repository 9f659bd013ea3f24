//! Functions of json and jsonb.

pub(super) mod json_changes;
pub(super) mod json_functions;
pub(super) mod path;
mod path_syntax;
