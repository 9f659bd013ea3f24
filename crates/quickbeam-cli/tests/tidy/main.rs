//! Tidiness of the whole source tree, as tests.
//!
//! What a reader relies on and no compiler checks:
//!
//! - the documents name functions and files that exist
//! - files and functions are short enough to read, and folders hold few files
//! - names of types are unique in their crate
//! - `unsafe` stays where it is explained
//! - the engine touches the world through its seam alone
//! - modules depend downward, and not in rings
//! - every dependency's licence lets Quickbeam be used as promised
//!
//! Each file of `code` and `text` holds one check, a test that holds the tree to it, and tests that
//! show it failing on bad samples. A check returns the problems it found, one line each, and never
//! panics on what it reads. `source` and `tree` are what the checks read.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]

mod source;
mod tree;

mod code;
mod text;

/// Fails the calling test with every problem on a line of its own.
#[track_caller]
fn expect_none(problems: &[String]) {
    assert!(problems.is_empty(), "{} problem(s):\n  {}", problems.len(), problems.join("\n  "));
}

/// Says something that is not a failure; written past the test runner's capture, which would
/// otherwise show it only when a test fails.
fn note(text: &str) {
    use std::io::Write;
    // A note that cannot be written is no reason to fail.
    let _ = writeln!(std::io::stderr(), "note: {text}");
}
