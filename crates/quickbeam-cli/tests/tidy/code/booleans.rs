//! No call passes `true` or `false` among other arguments: an enum or a named field says what it
//! means. A function with one parameter, such as a setter, is exempt.

use crate::source::{Source, Token};
use crate::{expect_none, tree};

const CRATES: [&str; 5] = [
    "crates/quickbeam/",
    "crates/quickbeam-sql/",
    "crates/quickbeam-server/",
    "crates/quickbeam-cli/",
    "crates/quickbeam-bench/",
];

/// A function with a boolean among several parameters.
struct Taker {
    name: String,
    /// The types whose function it is; none for a function of a module.
    owners: Vec<String>,
    has_self: bool,
    parameters: usize,
    /// The positions of the booleans.
    booleans: Vec<usize>,
}

/// Returns the parts between the bracket at `open` and the one that closes it, split at commas.
/// Commas in angle brackets separate parts only if `splits_generics`.
fn parts(tokens: &[Token], open: usize, splits_generics: bool) -> Vec<&[Token]> {
    let (mut depth, mut angles, mut start) = (0, 0, open + 1);
    let mut found = Vec::new();
    for (index, token) in tokens.iter().enumerate().skip(open) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => {
                depth -= 1;
                if depth == 0 {
                    if index > start {
                        found.push(&tokens[start..index]);
                    }
                    break;
                }
            }
            "<" if !splits_generics => angles += 1,
            ">" if !splits_generics => angles -= 1,
            "," if depth == 1 && angles <= 0 => {
                found.push(&tokens[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    found
}

/// Returns the bracket that opens the parameters of the function whose name is at `name`.
fn parameters_of(tokens: &[Token], name: usize) -> Option<usize> {
    let mut angles = 0;
    for (index, token) in tokens.iter().enumerate().skip(name + 1) {
        match token.text.as_str() {
            "<" => angles += 1,
            ">" => angles -= 1,
            "(" if angles <= 0 => return Some(index),
            "{" | ";" => return None,
            _ => {}
        }
    }
    None
}

fn is_boolean(parameter: &[Token]) -> bool {
    matches!(parameter, [.., colon, kind] if colon.text == ":" && kind.text == "bool")
}

fn takers(source: &Source) -> Vec<Taker> {
    let mut found = Vec::new();
    for (index, window) in source.tokens.windows(2).enumerate() {
        let [keyword, name] = window else { continue };
        if keyword.text != "fn" {
            continue;
        }
        let Some(open) = parameters_of(&source.tokens, index + 1) else { continue };
        let mut all = parts(&source.tokens, open, false);
        let is_self = |part: &[Token]| part.last().is_some_and(|token| token.text == "self");
        let has_self = all.first().is_some_and(|first| is_self(first));
        if has_self {
            all.remove(0);
        }
        let numbered = all.iter().enumerate();
        let booleans: Vec<usize> =
            numbered.filter(|(_, part)| is_boolean(part)).map(|(number, _)| number).collect();
        if booleans.is_empty() || all.len() < 2 {
            continue;
        }
        let is_this = |function: &&crate::source::Function| {
            let lines = function.first_line..=function.last_line;
            function.name == name.text && lines.contains(&name.line)
        };
        let function = source.functions.iter().find(is_this);
        let owners = function.map(|function| function.owners.clone()).unwrap_or_default();
        let (name, parameters) = (name.text.clone(), all.len());
        found.push(Taker { name, owners, has_self, parameters, booleans });
    }
    found
}

/// Whether the call of the name at `at` may be one of the function.
fn may_call(tokens: &[Token], at: usize, taker: &Taker) -> bool {
    let before = |back: usize| {
        at.checked_sub(back).and_then(|index| tokens.get(index)).map_or("", |token| &token.text)
    };
    match (taker.has_self, taker.owners.is_empty()) {
        (true, _) => before(1) == ".",
        (false, true) => before(1) != "." && before(1) != "fn",
        (false, false) => {
            before(1) == "::"
                && (before(2) == "Self" || taker.owners.iter().any(|it| it == before(2)))
        }
    }
}

fn unnamed_booleans(sources: &[&Source]) -> Vec<String> {
    let takers: Vec<Taker> = sources.iter().flat_map(|source| takers(source)).collect();
    let mut problems = Vec::new();
    for source in sources {
        for (at, window) in source.tokens.windows(2).enumerate() {
            let [name, open] = window else { continue };
            if open.text != "(" || source.is_test_line(name.line) {
                continue;
            }
            let candidates = takers.iter().filter(|taker| taker.name == name.text);
            let mut called =
                candidates.filter(|taker| may_call(&source.tokens, at, taker)).peekable();
            if called.peek().is_none() {
                continue;
            }
            let arguments = parts(&source.tokens, at + 1, true);
            let is_literal = |number: &usize| {
                let argument = arguments.get(*number);
                matches!(argument, Some([one]) if one.text == "true" || one.text == "false")
            };
            let passes = |taker: &Taker| {
                arguments.len() == taker.parameters && taker.booleans.iter().any(is_literal)
            };
            if called.any(passes) {
                problems.push(format!(
                    "{}:{}: {} is called with a boolean that nothing names",
                    source.path, name.line, name.text
                ));
            }
        }
    }
    problems
}

#[test]
fn booleans_among_arguments_are_named() {
    let of_crate = |folder: &&str| unnamed_booleans(&tree::product(tree::all(), folder));
    let problems: Vec<String> = CRATES.iter().flat_map(of_crate).collect();
    expect_none(&problems);
}

#[test]
fn a_boolean_that_nothing_names_is_caught() {
    let text = "struct S;\nimpl S {\nfn set(&mut self, on: bool) {}\n\
                fn put(&self, key: &[(u8, u8)], now: bool) {}\n\
                fn of(text: &str, strict: bool) -> S { S }\n}\n\
                fn free<T: Into<u8>>(a: Vec<(T, T)>, b: bool, c: u8) {}\n\
                fn g(mut s: S) {\n\
                s.set(true);\ns.put(&[(1, 2)], true);\nS::of(\"\", false);\n\
                free(vec![(1, 2)], false, 3);\nT::of(\"\", true);\nlet on = true;\n\
                s.put(&[], on);\n}\n";
    let source = Source::parse("crates/a/src/lib.rs", text).expect("Rust");
    let places = [(10, "put"), (11, "of"), (12, "free")].map(|(line, name)| {
        format!("crates/a/src/lib.rs:{line}: {name} is called with a boolean that nothing names")
    });
    assert_eq!(unnamed_booleans(&[&source]), places);
}
