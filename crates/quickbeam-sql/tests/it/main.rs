//! The tests of SQL, one program with a module for each subject.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, clippy::disallowed_types)]

mod common;

mod concurrency;
mod durability;
mod generated;
mod language;
mod planning;
mod recorded;
