//! What no finished file holds: marks of unfinished work, ignored tests, a file without a head.

use crate::source::Source;
use crate::{expect_none, tree};

/// Macros that stand for work not done or remain from a search for a fault.
const MACROS: [&str; 3] = ["todo", "unimplemented", "dbg"];
/// Marks of unfinished work, in comments or anywhere else. Written in two halves, so that this
/// file does not hold them.
const MARKS: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];

fn unfinished(source: &Source) -> Vec<String> {
    let mut problems = Vec::new();
    let mut report = |line: usize, what: &str| {
        problems.push(format!("{}:{line}: {what}", source.path));
    };
    for pair in source.tokens.windows(2) {
        if pair[1].text == "!" && MACROS.contains(&pair[0].text.as_str()) {
            report(pair[0].line, &format!("{}! is not for finished code", pair[0].text));
        }
    }
    for three in source.tokens.windows(3) {
        if three[0].text == "#" && three[1].text == "[" && three[2].text == "ignore" {
            report(three[0].line, "an ignored test tests nothing: repair it or remove it");
        }
    }
    for (index, line) in source.text.lines().enumerate() {
        for mark in MARKS.iter().filter(|mark| line.contains(**mark)) {
            report(index + 1, &format!("{mark}: do it now or file an issue"));
        }
    }
    problems
}

fn headless<'s>(sources: impl Iterator<Item = &'s Source>) -> Vec<String> {
    let has_head = |text: &str| text.trim_start().starts_with("//!");
    sources
        .filter(|source| !has_head(&source.text))
        .map(|source| format!("{}: no head comment (`//!`) that says what it is for", source.path))
        .collect()
}

#[test]
fn nothing_is_unfinished() {
    expect_none(&tree::all().iter().flat_map(unfinished).collect::<Vec<_>>());
}

#[test]
fn every_file_has_a_head() {
    let is_source = |source: &&Source| source.path.split('/').nth(2) == Some("src");
    expect_none(&headless(tree::all().iter().filter(is_source)));
}

#[test]
fn unfinished_work_is_caught() {
    let text = format!(
        "//! {} later\nfn f() {{ todo!() }}\nfn g() {{ dbg!(1); unimplemented!() }}\n\
         #[test]\n#[ignore = \"slow\"]\nfn h() {{}}\n",
        MARKS[0]
    );
    let problems = unfinished(&Source::parse("a.rs", &text).expect("Rust"));
    let lines: Vec<&str> = problems.iter().filter_map(|p| p.split(": ").next()).collect();
    assert_eq!(lines, ["a.rs:2", "a.rs:3", "a.rs:3", "a.rs:5", "a.rs:1"]);
}

#[test]
fn names_that_only_look_unfinished_pass() {
    let text = "fn todo() -> bool { let ignore = \"todo!()\"; todo() != ignore.is_empty() }";
    assert!(unfinished(&Source::parse("a.rs", text).expect("Rust")).is_empty());
}

#[test]
fn a_file_without_a_head_is_caught() {
    let parse = |path, text| Source::parse(path, text).expect("Rust");
    let sources = [parse("good.rs", "\n//! Head.\n"), parse("bad.rs", "// Not a head.\nfn f() {}")];
    assert_eq!(
        headless(sources.iter()),
        ["bad.rs: no head comment (`//!`) that says what it is for"]
    );
}
