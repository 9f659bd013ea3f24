//! Comments and documents are plain English: no line and no sentence is too long, and none of the
//! words that readers have stumbled over comes back.

use std::fs;

use super::documents;
use crate::{expect_none, tree};

/// Lines of comments and documents have at most this many columns, except tables and links.
const COLUMNS: usize = 100;
/// Sentences of comments and documents have at most this number of words.
const WORDS: usize = 35;
/// Words with a plainer alternative: `behind` is "after" or "following", `told` is "determined" or
/// "distinct", `nobody` is "no transaction" or "no caller".
const BANNED: [&str; 19] = [
    "anew",
    "alike",
    "of late",
    "behind",
    "so many",
    "that many",
    "stands on",
    "stood on",
    "told",
    "wished",
    "mended",
    "in vain",
    "foretold",
    "lets go of",
    "goes by",
    "whoever",
    "nobody",
    "somebody",
    "hitherto",
];

/// The banned words in a line, outside of code in backticks.
fn banned(line: &str) -> Vec<&'static str> {
    let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("``");
    let words: String = prose
        .chars()
        .map(|c| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { ' ' })
        .collect();
    let words = format!(" {} ", words.split_whitespace().collect::<Vec<_>>().join(" "));
    BANNED.into_iter().filter(|word| words.contains(&format!(" {word} "))).collect()
}

/// Whether a line may be longer: a row of a table, or one with a link.
fn may_be_long(text: &str) -> bool {
    text.starts_with('|') || text.contains("://")
}

/// The problems of the lines of a Rust file that are comments and nothing else.
fn in_comments(path: &str, text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let mut paragraph = String::new();
    let mut in_fence = false;
    for (index, line) in text.lines().chain([""]).enumerate() {
        let comment = line.trim_start().strip_prefix("//");
        let prose = comment.map(|text| text.trim_start_matches(['/', '!']).trim_start());
        let is_fence = prose.is_some_and(|prose| prose.starts_with("```"));
        in_fence = prose.is_some() && in_fence ^ is_fence;
        let prose = prose.filter(|_| !is_fence && !in_fence);
        if prose.is_none_or(|prose| prose.is_empty() || starts_item(prose)) {
            problems.extend(long_sentences(&paragraph).map(|s| format!("{path}:{index}: {s}")));
            paragraph.clear();
        }
        let Some(prose) = prose else { continue };
        check_line(path, index + 1, line, prose, &mut problems);
        if !prose.starts_with(['|', '#']) {
            paragraph.push_str(prose);
            paragraph.push(' ');
        }
    }
    problems
}

fn check_line(path: &str, number: usize, line: &str, prose: &str, problems: &mut Vec<String>) {
    let columns = line.chars().count();
    if columns > COLUMNS && !may_be_long(prose) {
        problems.push(format!("{path}:{number}: {columns} columns, at most {COLUMNS}"));
    }
    let words = banned(prose).into_iter();
    problems.extend(words.map(|word| format!("{path}:{number}: say it without `{word}`")));
}

/// The problems of a Markdown text, outside of fenced code.
fn in_markdown(name: &str, text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let mut paragraph = String::new();
    let mut in_fence = false;
    for (index, line) in text.lines().chain([""]).enumerate() {
        let prose = line.trim_start();
        let is_fence = prose.starts_with("```");
        in_fence ^= is_fence;
        let is_prose =
            !is_fence && !in_fence && !prose.is_empty() && !prose.starts_with(['|', '#']);
        if !is_prose || starts_item(prose) {
            problems.extend(long_sentences(&paragraph).map(|s| format!("{name}:{index}: {s}")));
            paragraph.clear();
        }
        if is_prose {
            paragraph.push_str(prose);
            paragraph.push(' ');
        }
        if !is_fence && !in_fence {
            check_line(name, index + 1, line, prose, &mut problems);
        }
    }
    problems
}

fn starts_item(prose: &str) -> bool {
    let after_number = prose.trim_start_matches(|c: char| c.is_ascii_digit());
    prose.starts_with("- ")
        || prose.starts_with("* ")
        || (after_number.len() < prose.len() && after_number.starts_with(". "))
}

fn long_sentences(paragraph: &str) -> impl Iterator<Item = String> {
    let sentences = paragraph.split_inclusive(' ').fold(vec![String::new()], |mut all, word| {
        if let Some(last) = all.last_mut() {
            last.push_str(word);
        }
        if word.trim_end().ends_with(['.', '?', '!', ':', ';']) {
            all.push(String::new());
        }
        all
    });
    sentences.into_iter().filter_map(|sentence| {
        let is_word = |word: &&str| word.contains(|c: char| c.is_ascii_alphanumeric());
        let words = sentence.split_whitespace().filter(is_word).count();
        let start: String = sentence.chars().take(40).collect();
        (words > WORDS).then(|| format!("a sentence of {words} words, at most {WORDS}: {start}…"))
    })
}

#[test]
fn comments_are_plain() {
    let sources = tree::all();
    let problems = sources.iter().flat_map(|source| in_comments(&source.path, &source.text));
    expect_none(&problems.collect::<Vec<_>>());
}

#[test]
fn documents_are_plain() {
    let root = tree::root();
    let mut texts = documents::documents(&root);
    let name = "CHANGELOG.md".to_owned();
    texts.extend(fs::read_to_string(root.join(&name)).ok().map(|text| (name, text)));
    let problems = texts.iter().flat_map(|(name, text)| in_markdown(name, text));
    expect_none(&problems.collect::<Vec<_>>());
}

#[test]
fn banned_words_and_long_lines_in_comments_are_caught() {
    let long = "x".repeat(COLUMNS);
    let text = format!("/// It is Made\n/// Anew, so  many times.\n//! {long}\nlet told = 1;\n");
    assert_eq!(in_comments("a.rs", &text).len(), 3);
    let allowed =
        format!("/// `nobody`, a foothold\n/// ```\n/// {long} anew\n/// ```\n// | {long}\n");
    assert_eq!(in_comments("a.rs", &allowed), Vec::<String>::new());
    let sentence = format!("/// {}\n/// {}\nfn f() {{}}\n", "at ".repeat(20), "at ".repeat(20));
    assert_eq!(in_comments("a.rs", &sentence).len(), 1);
    assert_eq!(in_comments("a.rs", &sentence.replace("\n/// ", "\n///\n/// ")).len(), 0);
}

#[test]
fn long_sentences_and_banned_words_in_markdown_are_caught() {
    let long = "at ".repeat(20);
    let text = format!("{long}\n{long}\n\nIt waits behind it.\n");
    assert_eq!(in_markdown("a.md", &text).len(), 2);
    let allowed = format!("{long}.\n{long}\n- {long}\n\n```\nnobody {long}{long}{long}\n```\n");
    assert_eq!(in_markdown("a.md", &allowed), Vec::<String>::new());
}
