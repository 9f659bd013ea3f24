//! Files are grouped so that a reader finds a way in: no folder is crowded, and no files use each
//! other in a ring of more than two.
//!
//! A file uses another if it imports or names something that the other defines; a name that is
//! re-exported counts as its definition. A module may use the file of a module around it: that file
//! declares what its parts share.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::Path;

use super::layers::module_of;
use crate::source::Source;
use crate::{expect_none, tree};

/// Most files in a folder of `src`, `tests`, `examples` or `benches`, without its subfolders.
const FILES: usize = 12;
/// Rings that are what the code does: operators that hold operators, which build them.
const OPERATORS: &str = "crates/quickbeam-sql/src/execute/";

/// The folders below `folder` with more than `FILES` files, as paths from `root`.
fn crowded(root: &Path, folder: &Path, found: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let paths = entries.flatten().map(|entry| entry.path());
    let (folders, files): (Vec<_>, Vec<_>) = paths.partition(|path| path.is_dir());
    if files.len() > FILES {
        let name = folder.strip_prefix(root).unwrap_or(folder).to_string_lossy();
        found.push(format!("{name}: {} files, at most {FILES}", files.len()));
    }
    for folder in folders {
        crowded(root, &folder, found);
    }
}

type Module = Vec<String>;

/// The files of one crate by module, with what each uses.
struct Graph<'s> {
    files: BTreeMap<Module, &'s Source>,
}

impl<'s> Graph<'s> {
    fn new(sources: &[&'s Source]) -> Graph<'s> {
        Graph { files: sources.iter().map(|source| (module_of(source), *source)).collect() }
    }

    /// A path of a file as a path from the root of the crate, if it is one of this crate.
    fn find_from_root(&self, path: &[String], module: &[String]) -> Option<Module> {
        let first = path.first()?.as_str();
        let ups = path.iter().take_while(|part| *part == "super").count();
        let inner = |rest: &[String]| [module, rest].concat();
        match first {
            "crate" => Some(path[1..].to_vec()),
            "self" => Some(inner(&path[1..])),
            "super" => Some([&module[..module.len().checked_sub(ups)?], &path[ups..]].concat()),
            _ => self.files.contains_key(&inner(&path[..1])).then(|| inner(path)),
        }
    }

    /// The module whose file defines what a path from the root points to.
    fn definition(&self, path: &[String], depth: usize) -> Option<Module> {
        let length = (0..=path.len()).rev().find(|n| self.files.contains_key(&path[..*n]))?;
        let (module, rest) = path.split_at(length);
        let (source, Some(name)) = (self.files.get(module)?, rest.first()) else {
            return Some(module.to_vec());
        };
        if depth > 8 || source.items.contains(name) {
            return Some(module.to_vec());
        }
        for import in source.imports.iter().filter(|import| import.is_public) {
            let Some(target) = self.find_from_root(&import.path, module) else { continue };
            if import.name == *name {
                return self.definition(&[&target, &rest[1..]].concat(), depth + 1);
            }
            if import.name == "*" {
                let named = [&target[..target.len() - 1], rest].concat();
                let found = self.definition(&named, depth + 1);
                let defines = |module: &Module| self.files[module].items.contains(name);
                if found.as_ref().is_some_and(defines) {
                    return found;
                }
            }
        }
        Some(module.to_vec())
    }

    fn uses(&self, module: &Module) -> BTreeSet<Module> {
        let source = self.files[module];
        let is_root_of_parts = ["/mod.rs", "/lib.rs", "/main.rs"];
        let re_exports = is_root_of_parts.iter().any(|end| source.path.ends_with(end));
        let imports = source.imports.iter().filter(|import| !(import.is_public && re_exports));
        imports
            .map(|import| (import.path.clone(), import.line))
            .chain(source.paths())
            .filter(|(_, line)| !source.is_test_line(*line))
            .filter_map(|(path, _)| self.definition(&self.find_from_root(&path, module)?, 0))
            .filter(|used| !module.starts_with(used))
            .collect()
    }

    /// The groups of files that reach each other, of more than two.
    fn rings(&self) -> Vec<Vec<&'s str>> {
        let uses: HashMap<&Module, BTreeSet<Module>> =
            self.files.keys().map(|module| (module, self.uses(module))).collect();
        let reach: BTreeMap<&Module, BTreeSet<&Module>> =
            self.files.keys().map(|module| (module, reachable(module, &uses))).collect();
        let mut rings = BTreeSet::new();
        for (module, reached) in &reach {
            let back = reached.iter().filter(|other| reach[**other].contains(module));
            let ring: Vec<&str> = back.map(|other| self.files[*other].path.as_str()).collect();
            if ring.len() > 2 {
                rings.insert(ring);
            }
        }
        rings.into_iter().collect()
    }
}

fn reachable<'g>(
    start: &Module,
    uses: &'g HashMap<&Module, BTreeSet<Module>>,
) -> BTreeSet<&'g Module> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&Module> = uses[start].iter().collect();
    while let Some(module) = next.pop() {
        if reached.insert(module) {
            next.extend(&uses[module]);
        }
    }
    reached
}

#[test]
fn folders_are_not_crowded() {
    let root = tree::root();
    let mut found = Vec::new();
    for entry in fs::read_dir(root.join("crates")).expect("there are crates").flatten() {
        for part in ["src", "tests", "examples", "benches"] {
            crowded(&root, &entry.path().join(part), &mut found);
        }
    }
    expect_none(&found);
}

#[test]
fn files_do_not_use_each_other_in_rings() {
    let mut problems = Vec::new();
    for entry in fs::read_dir(tree::root().join("crates")).expect("there are crates").flatten() {
        let folder = format!("crates/{}/", entry.file_name().to_string_lossy());
        let rings = Graph::new(&tree::product(tree::all(), &folder)).rings();
        let allowed = |path: &&str| path.starts_with(OPERATORS);
        let rings = rings.iter().filter(|ring| !ring.iter().all(allowed));
        problems.extend(rings.map(|ring| format!("a ring: {}", ring.join(", "))));
    }
    expect_none(&problems);
}

#[test]
fn ring_through_a_re_export_is_caught() {
    let parse = |path: &str, text| {
        Source::parse(&format!("crates/a/src/{path}"), text).expect("a sample is Rust")
    };
    let sources = [
        parse("lib.rs", "mod page; mod log; mod pool; pub use page::Page;"),
        parse("page/mod.rs", "mod body; pub use body::*; pub struct Page;"),
        parse("page/body.rs", "use super::Page; pub struct Body(crate::log::Log);"),
        parse("log.rs", "pub struct Log; fn f() { crate::pool::take() }"),
        parse("pool.rs", "use crate::page::Body; pub fn take() {}"),
        parse("pair.rs", "use crate::other::Other; pub struct Pair;"),
        parse("other.rs", "pub struct Other(super::pair::Pair);"),
        parse(
            "above.rs",
            "use crate::log::Log;\n#[cfg(test)]\nmod tests { use crate::pair::Pair; }",
        ),
    ];
    let sources: Vec<&Source> = sources.iter().collect();
    let rings = Graph::new(&sources).rings();
    let named = ["page/body.rs", "log.rs", "pool.rs"].map(|name| format!("crates/a/src/{name}"));
    assert_eq!(rings.len(), 1, "{rings:?}");
    assert!(named.iter().all(|name| rings[0].contains(&name.as_str())), "{rings:?}");
}

#[test]
fn crowded_folder_is_caught() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let inner = directory.path().join("src/inner");
    fs::create_dir_all(&inner).expect("a folder");
    for number in 0..=FILES {
        fs::write(inner.join(format!("{number}.rs")), "").expect("a file");
    }
    let mut found = Vec::new();
    crowded(directory.path(), &directory.path().join("src"), &mut found);
    assert_eq!(found, ["src/inner: 13 files, at most 12"]);
    fs::remove_file(inner.join("0.rs")).expect("a file");
    found.clear();
    crowded(directory.path(), &directory.path().join("src"), &mut found);
    assert!(found.is_empty());
}
