//! The key/value interface: each call, its errors, opening and closing.

mod catalog;
mod catalog_concurrent;
mod closing;
mod errors;
mod estimates;
mod opening;
mod range;
mod read_only;
mod scan;
mod typed;
mod update;
