//! The engine's tests, in one program: it links once. `cargo test -p quickbeam --test it -- api::`
//! runs the modules of one folder.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod access;
mod api;
mod durability;
mod isolation;
mod small_environments;
