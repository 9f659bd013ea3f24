//! Files and functions stay short enough to be read at one sitting.

use crate::source::Source;
use crate::{expect_none, note, tree};

/// A file with more lines is questioned, in a note.
const FILE_WARNING: usize = 500;
/// A file with more lines fails.
const FILE_LIMIT: usize = 800;
/// A function of the engine or of SQL with more lines fails.
const FUNCTION_LIMIT: usize = 120;

fn long_files(sources: &[Source], limit: usize) -> Vec<String> {
    sources
        .iter()
        .map(|source| (&source.path, source.text.lines().count()))
        .filter(|(_, lines)| *lines > limit)
        .map(|(path, lines)| format!("{path}: {lines} lines, more than {limit}: split it"))
        .collect()
}

fn long_functions(sources: &[&Source]) -> Vec<String> {
    let mut problems = Vec::new();
    for source in sources {
        for function in &source.functions {
            let lines = function.last_line + 1 - function.first_line;
            if lines > FUNCTION_LIMIT && !source.is_test_line(function.first_line) {
                problems.push(format!(
                    "{}:{}: fn {} has {lines} lines, more than {FUNCTION_LIMIT}: split it",
                    source.path, function.first_line, function.name
                ));
            }
        }
    }
    problems
}

#[test]
fn files_are_short() {
    let sources = tree::all();
    long_files(sources, FILE_WARNING).iter().for_each(|line| note(line));
    expect_none(&long_files(sources, FILE_LIMIT));
}

#[test]
fn functions_of_the_engine_and_of_sql_are_short() {
    for folder in ["crates/quickbeam/", "crates/quickbeam-sql/"] {
        expect_none(&long_functions(&tree::product(tree::all(), folder)));
    }
}

#[test]
fn a_long_file_is_caught() {
    let at_limit = Source::parse("at.rs", &"//\n".repeat(FILE_LIMIT)).expect("Rust");
    let over = Source::parse("over.rs", &"//\n".repeat(FILE_LIMIT + 1)).expect("Rust");
    let problems = long_files(&[at_limit, over], FILE_LIMIT);
    assert_eq!(problems, ["over.rs: 801 lines, more than 800: split it"]);
}

#[test]
fn long_function_is_caught_despite_strings_and_comments() {
    let function = |name: &str, lines: usize| {
        format!("fn {name}() {{\n{}}}\n", "    let _ = (\"}\", '{'); // }}}\n".repeat(lines - 2))
    };
    let text = format!(
        "{}struct S;\nimpl S {{\n{}}}\n#[cfg(test)]\nmod tests {{\n{}}}\n",
        function("at_limit", FUNCTION_LIMIT),
        function("over", FUNCTION_LIMIT + 1),
        function("in_tests", FUNCTION_LIMIT + 1),
    );
    let problems = long_functions(&[&Source::parse("a.rs", &text).expect("Rust")]);
    assert_eq!(problems, ["a.rs:123: fn over has 121 lines, more than 120: split it"]);
}
