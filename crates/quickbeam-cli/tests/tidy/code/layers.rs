//! The modules of the engine, and those of SQL, depend downward only.
//!
//! `layers.txt` of the crate lists the modules of the crate's root, one layer a line, the
//! bottom first; modules on one line are of one layer. A name re-exported by the crate's root
//! counts as the module it comes from, so that `crate::Environment` is no way around the rule.

use std::collections::{BTreeSet, HashMap};
use std::fs;

use crate::source::Source;
use crate::{expect_none, tree};

/// The crates that have such a list.
const CRATES: [&str; 2] = ["crates/quickbeam/", "crates/quickbeam-sql/"];

/// The layer of each module, counted from the bottom.
fn parse_layers(text: &str) -> HashMap<&str, usize> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or("").trim());
    let layers = lines.filter(|line| !line.is_empty()).enumerate();
    layers
        .flat_map(|(layer, line)| line.split_whitespace().map(move |name| (name, layer)))
        .collect()
}

/// The modules of the crate that a file is in: `btree::leaf` for `src/btree/leaf.rs`.
pub fn module_of(source: &Source) -> Vec<String> {
    let inside = source.path.split_once("/src/").map_or("", |(_, inside)| inside);
    let inner = inside.trim_end_matches(".rs");
    let mut parts: Vec<String> = inner.split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|last| last == "mod") || parts == ["lib"] {
        parts.pop();
    }
    parts
}

/// What a path points to, seen from the crate's root, if it is inside the crate.
fn from_root(path: &[String], module: &[String]) -> Option<Vec<String>> {
    let ups = path.iter().take_while(|part| *part == "super").count();
    match path.first()?.as_str() {
        "crate" => Some(path[1..].to_vec()),
        "super" => {
            let kept = module.len().checked_sub(ups)?;
            Some([&module[..kept], &path[ups..]].concat())
        }
        _ => None,
    }
}

/// Which module each name re-exported by the crate's root comes from.
fn re_exports(root: &Source) -> HashMap<&str, &str> {
    let module = |import: &crate::source::Import| {
        let path = &import.path;
        let start = usize::from(matches!(path.first().map(String::as_str), Some("crate" | "self")));
        (path.len() > start + 1).then_some(start)
    };
    let imports = root.imports.iter();
    imports
        .filter_map(|i| module(i).map(|start| (i.name.as_str(), i.path[start].as_str())))
        .collect()
}

fn upward_uses(sources: &[&Source], layers: &HashMap<&str, usize>) -> Vec<String> {
    let root = sources.iter().find(|source| source.path.ends_with("/src/lib.rs"));
    let exported = root.map(|root| re_exports(root)).unwrap_or_default();
    let mut problems = BTreeSet::new();
    for source in sources {
        let module = module_of(source);
        let Some(own) = module.first() else { continue };
        let Some(own_layer) = layers.get(own.as_str()) else {
            problems.insert(format!("layers.txt does not list the module {own}"));
            continue;
        };
        let imports = source.imports.iter().map(|import| (import.path.clone(), import.line));
        for (path, line) in imports.chain(source.paths()) {
            let Some(target) = from_root(&path, &module) else {
                continue;
            };
            let Some(first) = target.first().map(String::as_str) else {
                continue;
            };
            let used = exported.get(first).copied().unwrap_or(first);
            let is_above = layers.get(used).is_some_and(|layer| layer > own_layer);
            if is_above && !source.is_test_line(line) {
                problems.insert(format!("{}:{line}: {own} uses {used}, above it", source.path));
            }
        }
    }
    problems.into_iter().collect()
}

/// Modules that the list names and the crate does not have.
fn stale_names(sources: &[&Source], layers: &HashMap<&str, usize>) -> Vec<String> {
    let has = |name: &str| sources.iter().any(|s| module_of(s).first().is_some_and(|m| m == name));
    let mut names: Vec<&&str> = layers.keys().filter(|name| !has(name)).collect();
    names.sort();
    names.iter().map(|name| format!("layers.txt lists {name}, which is no module")).collect()
}

#[test]
fn modules_depend_downward() {
    for folder in CRATES {
        let file = tree::root().join(folder).join("layers.txt");
        let text = fs::read_to_string(file).expect("the crate has a layers.txt");
        let layers = parse_layers(&text);
        let sources = tree::product(tree::all(), folder);
        expect_none(&[upward_uses(&sources, &layers), stale_names(&sources, &layers)].concat());
    }
}

#[test]
fn an_upward_use_is_caught_however_it_is_written() {
    let layers = parse_layers("# bottom first\nvfs error # two in one layer\npool\nbtree gone\n");
    let parse = |path: &str, text| {
        Source::parse(&format!("crates/quickbeam/src/{path}"), text).expect("Rust")
    };
    let sources = [
        parse("lib.rs", "pub use btree::Tree; mod vfs; mod pool; mod btree;"),
        parse("vfs/mod.rs", "use crate::error::Error;\nuse crate::{error, pool::Pool};"),
        parse("vfs/disk.rs", "use super::Clock;\nuse super::super::btree;"),
        parse("error.rs", "use crate::vfs;\n#[cfg(test)]\nuse crate::pool;"),
        parse("pool.rs", "use crate::vfs;\nfn f() { crate::btree::g(); }\nuse crate::Tree;"),
        parse("btree.rs", "use crate::pool;\nuse crate::Tree;"),
        parse("unlisted.rs", ""),
    ];
    let sources: Vec<&Source> = sources.iter().collect();
    let problems = [upward_uses(&sources, &layers), stale_names(&sources, &layers)].concat();
    assert_eq!(
        problems,
        [
            "crates/quickbeam/src/pool.rs:2: pool uses btree, above it",
            "crates/quickbeam/src/pool.rs:3: pool uses btree, above it",
            "crates/quickbeam/src/vfs/disk.rs:2: vfs uses btree, above it",
            "crates/quickbeam/src/vfs/mod.rs:2: vfs uses pool, above it",
            "layers.txt does not list the module unlisted",
            "layers.txt lists gone, which is no module",
        ]
    );
}
