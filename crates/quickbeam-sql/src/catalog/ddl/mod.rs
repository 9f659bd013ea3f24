//! Changes of the catalog: tables, columns, constraints, indexes, views and sequences.

pub(super) mod change;
pub(super) mod columns;
pub(super) mod constraints;
pub(super) mod indexes;
pub(super) mod sequences;
pub(super) mod tables;
pub(super) mod views;
