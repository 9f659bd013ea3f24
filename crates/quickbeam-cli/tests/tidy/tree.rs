//! The files of the workspace, found and parsed.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::source::Source;

/// The root of the workspace.
pub fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the workspace has a root")
}

/// Every Rust file under `crates`, parsed, in the order of their paths. Parsed once for all checks.
pub fn all() -> &'static [Source] {
    static ALL: OnceLock<Vec<Source>> = OnceLock::new();
    ALL.get_or_init(parse_all)
}

fn parse_all() -> Vec<Source> {
    let root = root();
    let mut paths = Vec::new();
    rust_files(&root.join("crates"), &mut paths);
    paths.sort();
    assert!(!paths.is_empty(), "no Rust file under {}", root.display());
    paths
        .iter()
        .map(|path| {
            let text = fs::read_to_string(path).expect("a source file is UTF-8 text");
            let name = path.strip_prefix(&root).expect("found under the root");
            Source::parse(&name.to_string_lossy(), &text).expect("a source file is Rust")
        })
        .collect()
}

/// The files under `folder` that are shipped: no tests, benches or examples, and no file which is
/// declared as a module of tests. Single items of tests inside them remain: see
/// `Source::is_test_line`.
pub fn product<'s>(sources: &'s [Source], folder: &str) -> Vec<&'s Source> {
    let tests: HashSet<String> = sources.iter().flat_map(test_module_paths).collect();
    let is_test = |path: &str| {
        tests.iter().any(|module| {
            path.strip_prefix(module.as_str())
                .is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        })
    };
    let is_shipped = |path: &str| path.split('/').nth(2) == Some("src") && !is_test(path);
    sources
        .iter()
        .filter(|source| source.path.starts_with(folder) && is_shipped(&source.path))
        .collect()
}

/// Where the modules that `source` declares for tests lie, without `.rs`.
fn test_module_paths(source: &Source) -> Vec<String> {
    let stem = source.path.trim_end_matches(".rs");
    let folder = match stem.rsplit_once('/') {
        Some((folder, "lib" | "main" | "mod")) => folder,
        _ => stem,
    };
    source.test_modules.iter().map(|name| format!("{folder}/{name}")).collect()
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).expect("a folder of sources can be read");
    for entry in entries {
        let path = entry.expect("a folder of sources can be read").path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn modules_of_tests_are_not_product() {
    let parse = |path, text| Source::parse(path, text).expect("a sample is Rust");
    let sources = vec![
        parse("crates/a/src/lib.rs", "#[cfg(test)] mod model; mod page;"),
        parse("crates/a/src/model.rs", "fn f() {}"),
        parse("crates/a/src/model/deep.rs", "fn f() {}"),
        parse("crates/a/src/page.rs", "#[cfg(all(test, unix))]\nmod tests;\nfn shipped() {}"),
        parse("crates/a/src/page/tests.rs", "fn f() {}"),
        parse("crates/a/tests/outside.rs", "fn f() {}"),
        parse("crates/b/src/lib.rs", "fn f() {}"),
    ];
    let product = product(&sources, "crates/a/");
    let paths: Vec<&str> = product.iter().map(|source| source.path.as_str()).collect();
    assert_eq!(paths, ["crates/a/src/lib.rs", "crates/a/src/page.rs"]);
    assert!(product[1].is_test_line(2) && !product[1].is_test_line(3));
}

#[test]
fn items_of_tests_are_known_by_line() {
    let text = "#[cfg(any(test, feature = \"x\"))]\nfn both() {}\n\
                #[cfg(test)]\nmod tests {\n    fn f() {}\n}\nfn g() {}\n";
    let source = Source::parse("crates/a/src/lib.rs", text).expect("a sample is Rust");
    let lines: Vec<usize> = (1..=7).filter(|line| source.is_test_line(*line)).collect();
    assert_eq!(lines, [3, 4, 5, 6]);
}
