//! The catalog: what tables, indexes, constraints, views and sequences there are.
//!
//! Above: storage and the planner. Below: types.

mod definition;
mod schema;

pub use definition::{
    NewCheck, NewColumn, NewForeignKey, NewIdentity, NewIndex, NewKey, NewTable, SequenceOptions,
};
pub use schema::{
    Check, Column, ForeignKey, ForeignKeyAction, Identity, Index, KeyColumn, Method, ObjectId,
    PrimaryKey, Reference, Relation, Sequence, Table, View,
};

/// Trees of the engine whose names start like this belong to SQL; everything else is a key/value database.
pub const TREE_PREFIX: &str = "sql.";
