//! The tests of the server, one program with a module for each subject. What needs a process of its
//! own is beside this folder.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]

mod common;

mod audit;
mod backup;
mod clients;
mod copy;
mod local;
mod monitor;
mod portals;
mod protocol;
mod roles;
mod security;
mod views;
