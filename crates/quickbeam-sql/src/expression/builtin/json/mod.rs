//! Functions of json and jsonb.

pub(super) mod json_changes;
mod json_elements;
pub(super) mod json_functions;
mod json_records;
pub(super) mod path;
mod path_items;
mod path_times;

pub use json_elements::{JsonStep, assign_member, assigned_json};
pub use json_records::{JsonRecords, POPULATE};
