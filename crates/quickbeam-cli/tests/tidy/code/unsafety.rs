//! `unsafe` is a place: only the files that UNSAFE.md lists use it, and each use says why it is
//! sound.

use std::fs;

use crate::source::{Source, Token};
use crate::text::documents;
use crate::{expect_none, tree};

/// A comment may stand this many lines above the `unsafe` it is for: room for an attribute or the
/// start of a statement between the two.
const REACH: usize = 3;

/// Files with `unsafe` that `listed` lacks, and listed files without any.
fn unlisted_files(sources: &[Source], listed: &[String]) -> Vec<String> {
    let mut problems = Vec::new();
    for source in sources {
        let line = unsafe_tokens(source).next().map(|(_, token)| token.line);
        let is_listed = listed.contains(&source.path);
        match line {
            Some(line) if !is_listed => problems.push(format!(
                "{}:{line}: `unsafe` in a file UNSAFE.md does not list",
                source.path
            )),
            None if is_listed => problems
                .push(format!("UNSAFE.md lists {}, which has no `unsafe` in it", source.path)),
            _ => {}
        }
    }
    for path in listed.iter().filter(|path| path.ends_with(".rs")) {
        if !sources.iter().any(|source| source.path == **path) {
            problems.push(format!("UNSAFE.md lists {path}, which does not exist"));
        }
    }
    problems
}

/// Blocks and impls that are `unsafe` without a SAFETY comment.
fn unexplained(source: &Source) -> Vec<String> {
    unsafe_tokens(source)
        .filter(|(next, _)| matches!(next.text.as_str(), "{" | "impl"))
        .filter(|(_, token)| !has_safety_comment(source, token.line))
        .map(|(_, token)| {
            format!("{}:{}: `unsafe` without a `// SAFETY:` comment above", source.path, token.line)
        })
        .collect()
}

/// Each `unsafe` with the token after it, which tells a block from an impl or a function.
fn unsafe_tokens(source: &Source) -> impl Iterator<Item = (&Token, &Token)> {
    let pairs = source.tokens.windows(2);
    pairs.filter(|pair| pair[0].text == "unsafe").map(|pair| (&pair[1], &pair[0]))
}

/// Whether the line itself, one of the lines just above it, or a comment that reaches into these
/// says SAFETY.
fn has_safety_comment(source: &Source, line: usize) -> bool {
    let is_comment = |line: usize| source.line(line).trim_start().starts_with("//");
    let mut first = line.saturating_sub(REACH).max(1);
    while first > 1 && is_comment(first) && is_comment(first - 1) {
        first -= 1;
    }
    (first..=line).any(|line| {
        source.line(line).split_once("//").is_some_and(|(_, comment)| comment.contains("SAFETY:"))
    })
}

/// The Rust files that UNSAFE.md names in backticks.
fn listed_files() -> Vec<String> {
    let text = fs::read_to_string(tree::root().join("UNSAFE.md")).unwrap_or_default();
    let spans = documents::code_spans(&text);
    spans.into_iter().map(|(span, _)| span).filter(|span| span.ends_with(".rs")).collect()
}

#[test]
fn unsafe_code_is_listed() {
    expect_none(&unlisted_files(tree::all(), &listed_files()));
}

#[test]
fn unsafe_code_is_explained() {
    expect_none(&tree::all().iter().flat_map(unexplained).collect::<Vec<_>>());
}

#[test]
fn unlisted_file_and_outdated_list_are_caught() {
    let parse = |path, text| Source::parse(path, text).expect("Rust");
    let sources = [
        parse("listed.rs", "fn f() { unsafe { g() } }"),
        parse("unlisted.rs", "macro_rules! m { () => { unsafe { g() } } }"),
        parse("safe.rs", "// unsafe\nconst S: &str = \"unsafe\";"),
        parse("was_unsafe.rs", "fn f() {}"),
    ];
    let listed = ["listed.rs", "was_unsafe.rs", "gone.rs"].map(str::to_owned);
    assert_eq!(
        unlisted_files(&sources, &listed),
        [
            "unlisted.rs:1: `unsafe` in a file UNSAFE.md does not list",
            "UNSAFE.md lists was_unsafe.rs, which has no `unsafe` in it",
            "UNSAFE.md lists gone.rs, which does not exist",
        ]
    );
}

#[test]
fn unsafe_without_a_reason_is_caught() {
    let text = "fn f() {\n    unsafe { g() }\n}\nunsafe impl Send for S {}\n";
    let problems = unexplained(&Source::parse("a.rs", text).expect("Rust"));
    assert_eq!(
        problems,
        [
            "a.rs:2: `unsafe` without a `// SAFETY:` comment above",
            "a.rs:4: `unsafe` without a `// SAFETY:` comment above",
        ]
    );
}

#[test]
fn a_reason_may_be_long_and_stand_above_the_statement() {
    let text = "fn f() {\n    // SAFETY: one\n    // two\n    // three\n    // four\n    #[allow(x)]\n    \
                let a =\n        unsafe { g() };\n}\nunsafe fn h() {}\n";
    assert!(unexplained(&Source::parse("a.rs", text).expect("Rust")).is_empty());
}
