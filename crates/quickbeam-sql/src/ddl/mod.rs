//! Changes of the catalog: tables, columns, constraints, indexes, views,
//! sequences and types.

mod change;
mod columns;
mod comments;
mod constraint_changes;
mod constraints;
mod indexes;
mod relations;
mod routines;
mod schemas;
mod sequences;
mod tables;
mod user_types;
mod views;

pub use change::definition_changes;
pub(crate) use change::{CatalogChange as CatalogEdit, check_name};
pub(crate) use comments::CommentTarget;
pub(crate) use relations::StoredTexts;
pub(crate) use routines::no_trigger;
pub use sequences::SequenceState;
pub(crate) use tables::depended;
pub(crate) use user_types::{
    attribute_exists, collation_exists, domain_constraint_name, no_type, relabelled_default,
    type_exists,
};
