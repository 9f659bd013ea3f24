//! The engine reaches files, clocks, threads and randomness through `vfs` and `sync` alone.
//!
//! The same rule is in crates/quickbeam/clippy.toml, where the compiler resolves names. This check
//! adds what clippy does not ban: whole modules and crates, whatever is called in them.

use std::collections::{BTreeSet, HashMap};

use crate::source::{Import, Source};
use crate::{expect_none, tree};

const ENGINE: &str = "crates/quickbeam/";
const VFS: [&str; 2] = ["crates/quickbeam/src/vfs/", "crates/quickbeam/src/sync/"];

/// A path that starts like one of these does not belong outside `vfs` and `sync`.
const BANNED: [&str; 21] = [
    "std::fs",
    "std::os::unix::fs",
    "rustix::fs",
    "std::time::Instant::now",
    "std::time::SystemTime::now",
    "std::thread::Builder",
    "std::thread::park",
    "std::thread::park_timeout",
    "std::thread::scope",
    "std::thread::sleep",
    "std::thread::spawn",
    "std::thread::yield_now",
    "std::sync::Barrier",
    "std::sync::Condvar",
    "std::sync::Mutex",
    "std::sync::RwLock",
    "parking_lot",
    "std::hash::RandomState",
    "fastrand",
    "getrandom",
    "rand",
];

/// The banned paths that a file uses outside its tests, each line once.
fn leaks(source: &Source) -> Vec<String> {
    let mut found = BTreeSet::new();
    let mut names = HashMap::new();
    let is_product = |import: &&Import| !source.is_test_line(import.line);
    for import in source.imports.iter().filter(is_product) {
        names.insert(import.name.as_str(), &import.path[..]);
        if let Some(banned) = import_of_banned(&import.path) {
            found.insert((import.line, banned));
        }
    }
    for (path, line) in source.paths() {
        // A path may begin with an imported name: `thread::sleep` after `use std::thread`.
        let full = match names.get(path[0].as_str()) {
            Some(import) => [import, &path[1..]].concat(),
            None => path,
        };
        if let Some(banned) = banned_prefix(&full) {
            found.insert((line, banned));
        }
    }
    found
        .into_iter()
        .filter(|(line, _)| !source.is_test_line(*line))
        .map(|(line, banned)| format!("{}:{line}: {banned} outside `vfs` and `sync`", source.path))
        .collect()
}

fn banned_prefix(path: &[String]) -> Option<&'static str> {
    BANNED.into_iter().find(|banned| {
        let parts: Vec<&str> = banned.split("::").collect();
        path.len() >= parts.len() && path.iter().zip(&parts).all(|(have, ban)| have == ban)
    })
}

/// As `banned_prefix`; a glob is banned too when it would bring a banned name in.
fn import_of_banned(path: &[String]) -> Option<&'static str> {
    let (last, module) = path.split_last()?;
    if last != "*" {
        return banned_prefix(path);
    }
    let module = module.join("::");
    banned_prefix(path)
        .or_else(|| BANNED.into_iter().find(|banned| banned.starts_with(&format!("{module}::"))))
}

#[test]
fn the_engine_touches_the_world_through_its_seam() {
    let is_vfs = |source: &Source| VFS.iter().any(|vfs| source.path.starts_with(vfs));
    let sources = tree::product(tree::all(), ENGINE);
    let outside = sources.into_iter().filter(|source| !is_vfs(source));
    expect_none(&outside.flat_map(leaks).collect::<Vec<_>>());
}

#[test]
fn a_leak_is_caught_however_it_is_written() {
    let leaking = [
        "use std::fs;",
        "use std::{fs::File, io};",
        "use std::thread::{self, sleep as nap};",
        "use std::time::*;",
        "use rand::Rng;",
        "fn f() { std::fs::remove_file(p); }",
        "use std::time::Instant as Clock; fn f() { assert!(Clock::now() > t); }",
        "use std::thread as t; fn f() { t::spawn(g); }",
        "fn f() { ::std::thread::park(); }",
    ];
    for text in leaking {
        let problems = leaks(&Source::parse("a.rs", text).expect("Rust"));
        assert_eq!(problems.len(), 1, "{text}: {problems:?}");
    }
}

#[test]
fn what_only_looks_like_a_leak_passes() {
    let clean = "
        use std::time::{Duration, Instant};
        use crate::vfs::{fs, thread};
        // std::fs::read
        fn f(t: Instant) { let rand = 1; g(\"std::fs\", rand); fs::open(p); thread::sleep(t); }
        #[cfg(test)]
        mod tests { use std::fs; #[test] fn t() { fs::read(p); } }
    ";
    assert!(leaks(&Source::parse("a.rs", clean).expect("Rust")).is_empty());
}
