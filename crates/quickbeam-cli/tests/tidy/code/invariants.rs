//! Every numbered invariant of a head comment is checked: by `invariant!` in the code or by a type.
//!
//! A bullet such as `//! - LOG-1: …` states an invariant. If no `invariant!(LOG_1, …)` exists, its
//! bullet ends with "(by type)".

use std::collections::BTreeMap;

use crate::source::Source;
use crate::{expect_none, tree};

/// The crates whose invariants are checked.
const CRATES: [&str; 2] = ["crates/quickbeam/", "crates/quickbeam-sql/"];

/// An invariant as a head comment states it.
struct Stated {
    /// The file and the line.
    place: String,
    /// The whole bullet, on one line.
    text: String,
}

/// Returns the number that a line of a head comment states, such as `LOG-1`.
fn number_of(line: &str) -> Option<&str> {
    let (number, _) = line.strip_prefix("//! - ")?.split_once(':')?;
    let (name, digits) = number.rsplit_once('-')?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '-');
    let is_number = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit());
    (is_name && is_number).then_some(number)
}

/// Returns the stated invariants by number, and a problem for each number stated twice.
fn stated(sources: &[&Source]) -> (BTreeMap<String, Stated>, Vec<String>) {
    let mut all: BTreeMap<String, Stated> = BTreeMap::new();
    let mut problems = Vec::new();
    for source in sources {
        let mut current: Option<String> = None;
        for (index, line) in source.text.lines().enumerate() {
            let place = format!("{}:{}", source.path, index + 1);
            if let Some(number) = number_of(line) {
                let stated = Stated { place: place.clone(), text: line.to_owned() };
                if let Some(other) = all.insert(number.to_owned(), stated) {
                    problems.push(format!("{place}: {number} is stated at {}, too", other.place));
                }
                current = Some(number.to_owned());
            } else if let Some(rest) = line.strip_prefix("//!   ") {
                if let Some(stated) = current.as_ref().and_then(|number| all.get_mut(number)) {
                    stated.text.push(' ');
                    stated.text.push_str(rest);
                }
            } else {
                current = None;
            }
        }
    }
    (all, problems)
}

/// Returns the numbers that `invariant!` checks outside of tests, with the place of one check.
fn asserted(sources: &[&Source]) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for source in sources {
        for window in source.tokens.windows(4) {
            let [name, bang, open, number] = window else { continue };
            let is_check = name.text == "invariant" && bang.text == "!" && open.text == "(";
            if is_check && !source.is_test_line(number.line) {
                let place = format!("{}:{}", source.path, number.line);
                all.insert(number.text.replace('_', "-"), place);
            }
        }
    }
    all
}

/// Returns the invariants that nothing checks.
fn unchecked(sources: &[&Source]) -> Vec<String> {
    let (stated, mut problems) = stated(sources);
    let asserted = asserted(sources);
    for (number, Stated { place, text }) in &stated {
        if text.contains("(by test `") {
            problems
                .push(format!("{place}: {number} names a test instead of an assertion or a type"));
        } else if !asserted.contains_key(number) && !text.ends_with("(by type)") {
            problems.push(format!("{place}: no `invariant!` and no note checks {number}"));
        }
    }
    for (number, place) in &asserted {
        if !stated.contains_key(number) {
            problems.push(format!("{place}: no head comment states {number}"));
        }
    }
    problems
}

#[test]
fn numbered_invariants_are_checked() {
    for folder in CRATES {
        let sources = tree::product(tree::all(), folder);
        assert!(!stated(&sources).0.is_empty(), "{folder} states no invariant");
        expect_none(&unchecked(&sources));
    }
}

#[test]
fn invariant_without_a_check_is_caught() {
    let text = "//! Head.\n//!\n//! - LOG-1: asserted.\n//! - LOG-2: forgotten.\n\
                //! - LOG-3: cannot be broken (by\n//!   type)\n\
                //! - LOG-4: tested (by test\n//!   `there`)\n\
                //! - LOG-6: asserted in tests only.\n\n\
                fn f() { invariant!(LOG_1, true, \"\"); invariant!(OTHER_1, true, \"\"); }\n\
                #[cfg(test)]\nmod tests { fn g() { invariant!(LOG_6, true, \"\"); } }\n";
    let sources = [
        Source::parse("crates/a/src/lib.rs", text).expect("Rust"),
        Source::parse("crates/a/src/b.rs", "//! - LOG-1: again.\n").expect("Rust"),
    ];
    let sources: Vec<&Source> = sources.iter().collect();
    assert_eq!(
        unchecked(&sources),
        [
            "crates/a/src/b.rs:1: LOG-1 is stated at crates/a/src/lib.rs:3, too",
            "crates/a/src/lib.rs:4: no `invariant!` and no note checks LOG-2",
            "crates/a/src/lib.rs:7: LOG-4 names a test instead of an assertion or a type",
            "crates/a/src/lib.rs:9: no `invariant!` and no note checks LOG-6",
            "crates/a/src/lib.rs:11: no head comment states OTHER-1",
        ]
    );
}
