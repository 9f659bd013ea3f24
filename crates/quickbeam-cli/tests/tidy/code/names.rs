//! Names say one thing each: a type's name is defined once in its crate. The name of a test fits a
//! line of a report.

use std::collections::BTreeMap;
use std::fs;

use crate::source::Source;
use crate::{expect_none, tree};

/// Names of types that a crate defines more than once: a change or a source as it is bound, and as
/// it is carried out.
const SHARED: [(&str, &str); 2] =
    [("quickbeam-sql", "CatalogChange"), ("quickbeam-sql", "InsertSource")];
/// Most characters in the name of a test.
const CHARACTERS: usize = 60;
/// Folders whose tests are not all renamed yet.
const TESTS_NOT_YET: [&str; 0] = [];

/// The types that the files of one crate define more than once, with where.
fn repeated_types(sources: &[&Source]) -> Vec<String> {
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for source in sources {
        for (name, line) in source.types.iter().filter(|(_, line)| !source.is_test_line(*line)) {
            places.entry(name).or_default().push(format!("{}:{line}", source.path));
        }
    }
    let repeated = places.into_iter().filter(|(_, places)| places.len() > 1);
    repeated.map(|(name, places)| format!("{name}: {}", places.join(", "))).collect()
}

fn long_tests(source: &Source) -> Vec<String> {
    let long = source.tests.iter().filter(|(name, _)| name.len() > CHARACTERS);
    long.map(|(name, line)| {
        format!(
            "{}:{line}: {name} has {} characters, at most {CHARACTERS}",
            source.path,
            name.len()
        )
    })
    .collect()
}

#[test]
fn types_have_names_of_their_own() {
    let mut problems = Vec::new();
    for entry in fs::read_dir(tree::root().join("crates")).expect("there are crates").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let repeated = repeated_types(&tree::product(tree::all(), &format!("crates/{name}/")));
        let is_shared = |line: &String| {
            SHARED.iter().any(|(of, shared)| *of == name && line.starts_with(&format!("{shared}:")))
        };
        problems.extend(repeated.into_iter().filter(|line| !is_shared(line)));
    }
    expect_none(&problems);
}

#[test]
fn tests_have_short_names() {
    let is_held =
        |source: &&Source| !TESTS_NOT_YET.iter().any(|folder| source.path.starts_with(folder));
    let held = tree::all().iter().filter(is_held);
    expect_none(&held.flat_map(long_tests).collect::<Vec<_>>());
}

#[test]
fn repeated_type_is_caught() {
    let parse = |path: &str, text| Source::parse(path, text).expect("a sample is Rust");
    let sources = [
        parse("a.rs", "struct Page; enum Slot {}\n#[cfg(test)]\nmod tests { struct Log; }"),
        parse("b.rs", "pub trait Page {} type Log = u8; impl X for Y { type Slot = u8; }"),
    ];
    let sources: Vec<&Source> = sources.iter().collect();
    assert_eq!(repeated_types(&sources), ["Page: a.rs:1, b.rs:1"]);
}

#[test]
fn long_test_name_is_caught_in_a_macro_too() {
    let long = "x".repeat(CHARACTERS + 1);
    let text = format!(
        "#[test]\nfn {long}() {{}}\nfn {long}y() {{}}\nproptest! {{ #[test]\nfn {long}z() {{}} }}"
    );
    let source = Source::parse("a.rs", &text).expect("a sample is Rust");
    assert_eq!(long_tests(&source).len(), 2, "{:?}", source.tests);
}
