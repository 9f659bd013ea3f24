//! What the documents name exists: functions and files in backticks, identifiers in the glossary.
//! And the README stays a front page: short, with code on its first screen.
//!
//! A function is named as `function()`, `Type::function()` or `module::function()`, with or
//! without arguments; a system call or a function of another library is written without
//! parentheses. Fenced blocks of code are not checked: they are drawings and examples.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

use crate::source::Source;
use crate::{expect_none, tree};

/// A name that ends like this is the name of a file of this repository.
const FILE_ENDINGS: [&str; 5] = [".rs", ".md", ".toml", ".sh", ".txt"];
/// Where the path of a file may start, besides the root and the document's own folder.
const STARTS: [&str; 4] = [
    "crates/quickbeam",
    "crates/quickbeam/src",
    "crates/quickbeam-sql",
    "crates/quickbeam-sql/src",
];

/// The functions of the product, each with the names it may be qualified by: its type, its trait,
/// the modules and the crate it is in.
fn functions<'s>(sources: &[&'s Source]) -> HashMap<&'s str, HashSet<String>> {
    let mut functions: HashMap<&str, HashSet<String>> = HashMap::new();
    for source in sources {
        let modules =
            source.path.trim_end_matches(".rs").split('/').map(|part| part.replace('-', "_"));
        let modules: Vec<String> = modules.collect();
        for function in &source.functions {
            if !source.is_test_line(function.first_line) {
                let qualifiers = functions.entry(&function.name).or_default();
                qualifiers.extend(modules.iter().chain(&function.owners).cloned());
            }
        }
    }
    functions
}

/// The path in `Type::function(arguments)`, or none if the span does not name a function.
fn named_function(span: &str) -> Option<Vec<&str>> {
    let (path, _) = span.strip_suffix(')')?.split_once('(')?;
    let parts: Vec<&str> = path.split("::").collect();
    let is_name = |part: &&str| {
        !part.is_empty()
            && !part.starts_with(|c: char| c.is_ascii_digit())
            && part.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    // A capital at the end is a tuple variant such as `Some(x)`.
    let is_function = parts.last()?.starts_with(|c: char| c.is_lowercase() || c == '_');
    (parts.iter().all(is_name) && is_function).then_some(parts)
}

fn missing_functions(
    name: &str,
    text: &str,
    functions: &HashMap<&str, HashSet<String>>,
) -> Vec<String> {
    let mut problems = Vec::new();
    for (span, line) in code_spans(text) {
        let Some(path) = named_function(&span) else {
            continue;
        };
        let qualifier = path.len().checked_sub(2).map(|index| path[index]);
        let problem = match (functions.get(path[path.len() - 1]), qualifier) {
            (None, _) => "there is no such function (one of another library goes without `()`)",
            (Some(known), Some(qualifier)) if !known.contains(qualifier) => {
                "the function exists, but not in that type or module"
            }
            _ => continue,
        };
        problems.push(format!("{name}:{line}: `{span}`: {problem}"));
    }
    problems
}

fn missing_files(name: &str, text: &str, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut problems = Vec::new();
    for (span, line) in code_spans(text) {
        let is_path = span.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
        let is_ours = FILE_ENDINGS.iter().any(|ending| span.ends_with(ending) && span != *ending)
            || span.starts_with("crates/")
            || span.starts_with("docs/");
        if !is_path || !is_ours {
            continue;
        }
        let starts = ["", folder].into_iter().chain(STARTS);
        if !starts.map(|start| join(start, &span)).any(|path| exists(&path)) {
            problems.push(format!("{name}:{line}: `{span}`: there is no such file"));
        }
    }
    problems
}

fn join(start: &str, path: &str) -> String {
    if start.is_empty() { path.to_owned() } else { format!("{start}/{path}") }
}

/// The inline code of a Markdown text with its line, without fenced blocks. A span does not reach
/// past the end of its paragraph, so one stray backtick spoils one paragraph at most.
pub fn code_spans(text: &str) -> Vec<(String, usize)> {
    let mut spans = Vec::new();
    let mut open: Option<(usize, String, usize)> = None;
    let mut in_fence = false;
    for (index, line) in text.lines().enumerate() {
        let is_fence = line.trim_start().starts_with("```");
        if is_fence || in_fence || line.trim().is_empty() {
            in_fence ^= is_fence;
            open = None;
            continue;
        }
        let mut rest = line;
        while !rest.is_empty() {
            let ticks = rest.len() - rest.trim_start_matches('`').len();
            if ticks > 0 {
                open = match open.take() {
                    None => Some((ticks, String::new(), index + 1)),
                    Some((width, span, line)) if width == ticks => {
                        spans.push((span.trim().to_owned(), line));
                        None
                    }
                    Some((width, span, line)) => Some((width, span + &rest[..ticks], line)),
                };
                rest = &rest[ticks..];
            } else {
                let end = rest.find('`').unwrap_or(rest.len());
                if let Some((_, span, _)) = &mut open {
                    span.push_str(&rest[..end]);
                }
                rest = &rest[end..];
            }
        }
        if let Some((_, span, _)) = &mut open {
            span.push(' ');
        }
    }
    spans
}

/// The README has at most this many lines of at most this many columns.
const README_LINES: usize = 120;
const README_COLUMNS: usize = 100;
/// The README's first Rust code begins at this line or before it.
const README_CODE: usize = 30;

/// The documents that describe the code, by their path from the root. Decision records in
/// `docs/adr` describe the code of their day and are left out.
pub fn documents(root: &Path) -> Vec<(String, String)> {
    let mut names: Vec<String> =
        ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md", "SECURITY.md", "UNSAFE.md"]
            .map(str::to_owned)
            .into();
    markdown_files(root, "docs", &mut names);
    names.sort();
    let read = |name: String| fs::read_to_string(root.join(&name)).ok().map(|text| (name, text));
    names.into_iter().filter_map(read).collect()
}

/// Adds the Markdown files in `folder` and the folders below it.
fn markdown_files(root: &Path, folder: &str, names: &mut Vec<String>) {
    for entry in fs::read_dir(root.join(folder)).into_iter().flatten().flatten() {
        let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() && name != "docs/adr" {
            markdown_files(root, &name, names);
        } else if name.ends_with(".md") {
            names.push(name);
        }
    }
}

/// Identifiers in the last column of the glossary's tables that no product source contains.
fn missing_identifiers(name: &str, text: &str, sources: &[&Source]) -> Vec<String> {
    let tokens = sources.iter().flat_map(|source| &source.tokens);
    let known: HashSet<&str> = tokens.map(|token| token.text.as_str()).collect();
    let mut problems = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let Some((_, column)) = line.trim_end_matches([' ', '|']).rsplit_once('|') else {
            continue;
        };
        for (span, _) in code_spans(column) {
            let is_file = names_a_file(&span);
            let parts = span.split(|c: char| !c.is_alphanumeric() && c != '_');
            let gone = parts.filter(|part| !part.is_empty() && !known.contains(part));
            let gone: Vec<&str> = gone.collect();
            if !is_file && !gone.is_empty() {
                problems.push(format!("{name}:{}: no code contains {gone:?}", index + 1));
            }
        }
    }
    problems
}

/// Rows of the glossary that name no file, or one that defines none of the row's identifiers.
fn misplaced_identifiers(name: &str, text: &str, sources: &[&Source]) -> Vec<String> {
    let mut problems = Vec::new();
    let rows = text.lines().enumerate().filter(|(_, line)| line.starts_with("| "));
    for (index, row) in rows.filter(|(_, line)| !line.starts_with("| term |")) {
        let Some((_, column)) = row.trim_end_matches([' ', '|']).rsplit_once('|') else {
            continue;
        };
        let spans: Vec<String> = code_spans(column).into_iter().map(|(span, _)| span).collect();
        let (files, names): (Vec<&String>, Vec<&String>) =
            spans.iter().partition(|span| names_a_file(span));
        if files.is_empty() {
            problems.push(format!("{name}:{}: no file is named", index + 1));
        }
        let parts = names.iter().flat_map(|name| name.split(|c: char| !is_word(c)));
        let parts: HashSet<&str> = parts.filter(|part| !part.is_empty()).collect();
        for file in files.into_iter().filter(|file| file.ends_with(".rs") && !parts.is_empty()) {
            let end = format!("/src/{file}");
            let mut places = sources.iter().filter(|source| source.path.ends_with(&end));
            if !places.any(|source| source.defines_any(&parts)) {
                problems.push(format!("{name}:{}: {file} defines none of {names:?}", index + 1));
            }
        }
    }
    problems
}

fn names_a_file(span: &str) -> bool {
    span.contains('/') || span.ends_with(".rs")
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// What keeps the README from being a front page.
fn readme_problems(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let count = text.lines().count();
    if count > README_LINES {
        problems.push(format!("README.md: {count} lines, more than {README_LINES}"));
    }
    for (index, line) in text.lines().enumerate() {
        if line.chars().count() > README_COLUMNS {
            problems.push(format!("README.md:{}: more than {README_COLUMNS} columns", index + 1));
        }
    }
    let code = text.lines().position(|line| line.starts_with("```rust"));
    if code.is_none_or(|index| index >= README_CODE) {
        problems.push(format!("README.md: no Rust code in the first {README_CODE} lines"));
    }
    problems
}

#[test]
fn the_architecture_is_described() {
    let documents = documents(&tree::root());
    assert!(documents.iter().any(|(name, _)| name == "ARCHITECTURE.md"), "no ARCHITECTURE.md");
}

#[test]
fn named_functions_exist() {
    let sources = tree::product(tree::all(), "crates/");
    let functions = functions(&sources);
    let documents = documents(&tree::root());
    let problems =
        documents.iter().flat_map(|(name, text)| missing_functions(name, text, &functions));
    expect_none(&problems.collect::<Vec<_>>());
}

#[test]
fn named_files_exist() {
    let root = tree::root();
    let documents = documents(&root);
    let problems = documents
        .iter()
        .flat_map(|(name, text)| missing_files(name, text, |path| root.join(path).exists()));
    expect_none(&problems.collect::<Vec<_>>());
}

#[test]
fn internals_are_covered() {
    let documents = documents(&tree::root());
    assert!(documents.iter().any(|(name, _)| name.starts_with("docs/internals/")));
}

#[test]
fn glossary_identifiers_exist() {
    let sources = tree::product(tree::all(), "crates/");
    let text = fs::read_to_string(tree::root().join("docs/glossary.md")).expect("a glossary");
    expect_none(&missing_identifiers("docs/glossary.md", &text, &sources));
    expect_none(&misplaced_identifiers("docs/glossary.md", &text, &sources));
}

#[test]
fn readme_is_a_front_page() {
    let text = fs::read_to_string(tree::root().join("README.md")).expect("a README");
    expect_none(&readme_problems(&text));
}

#[test]
fn an_identifier_that_is_gone_is_caught() {
    let code = "struct Log;\nimpl Log { fn append(&self) {} }";
    let source = Source::parse("crates/quickbeam/src/log.rs", code).expect("Rust");
    let text = "| term | meaning | in the code |\n|---|---|---|\n\
                | log | `not` here | `Log`, `Log::append()`, `src/log/` |\n\
                | other | that | `Log`, `Gone::append()` |\n";
    let problems = missing_identifiers("g.md", text, &[&source]);
    assert_eq!(problems, ["g.md:4: no code contains [\"Gone\"]"]);
}

#[test]
fn an_identifier_in_another_file_is_caught() {
    let sources = [Source::parse("crates/a/src/b/c.rs", "fn split() {}").expect("a source")];
    let sources: Vec<&Source> = sources.iter().collect();
    let problems = |column: &str| {
        misplaced_identifiers("g.md", &format!("| split | x | {column} |"), &sources).len()
    };
    assert_eq!(problems("`split()`, `b/c.rs`"), 0);
    assert_eq!(problems("`b/c.rs`"), 0);
    assert_eq!(problems("`merge()`, `b/c.rs`"), 1);
    assert_eq!(problems("`split()`, `b/d.rs`"), 1);
    assert_eq!(problems("`split()`"), 1);
}

#[test]
fn a_readme_that_is_no_front_page_is_caught() {
    assert!(readme_problems("# Name\n```rust\n```\n").is_empty());
    let long = format!("{}\n{}```rust\n", "x".repeat(101), "\n".repeat(120));
    assert_eq!(readme_problems(&long).len(), 3);
}

#[test]
fn a_function_that_is_gone_is_caught() {
    let code = "fn free() {}\nstruct Log;\nimpl Log { fn append(&self) {} }\n\
                #[cfg(test)]\nmod tests { fn only_in_tests() {} }";
    let source = Source::parse("crates/quickbeam/src/log/writer.rs", code).expect("Rust");
    let text = "Fine: `free()`, `Log::append()`, `quickbeam::log::writer::free()`, `fsync`, `Some(x)`,\n\
                `Log::append(record, position)`.\n\
                Gone: `gone()`, `Tree::append()`,\n\
                `Log::only_in_tests()`.\n\
                ```\nexample()\n```\n";
    let problems = missing_functions("docs/a.md", text, &functions(&[&source]));
    let places: Vec<&str> = problems.iter().filter_map(|p| p.split(": ").next()).collect();
    assert_eq!(places, ["docs/a.md:3", "docs/a.md:3", "docs/a.md:4"], "{problems:?}");
}

#[test]
fn a_file_that_is_gone_is_caught() {
    let text = "Fine: `crates/a.rs`, `lib.rs`, `b.md`, `log/`, `.rs`, `cargo test`.\nGone: `page/leaf.rs`\n\
                and `docs/gone`.";
    let files = ["crates/a.rs", "crates/quickbeam/src/lib.rs", "docs/b.md"];
    let problems = missing_files("docs/a.md", text, |path| files.contains(&path));
    assert_eq!(
        problems,
        [
            "docs/a.md:2: `page/leaf.rs`: there is no such file",
            "docs/a.md:3: `docs/gone`: there is no such file",
        ]
    );
}

#[test]
fn spans_are_found_across_lines_and_not_in_fences() {
    let text = "a `b` ``c ` d`` `e\nf` stray `\n\n`g`\n```rust\n`no`\n```\n`h`";
    let spans: Vec<String> = code_spans(text).into_iter().map(|(span, _)| span).collect();
    assert_eq!(spans, ["b", "c ` d", "e f", "g", "h"]);
}
