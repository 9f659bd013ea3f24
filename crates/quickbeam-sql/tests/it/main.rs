//! The tests of SQL, one program with a module for each subject.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]

mod common;

mod concurrency;
mod durability;
mod generated;
mod language;
mod planning;
mod recorded;
