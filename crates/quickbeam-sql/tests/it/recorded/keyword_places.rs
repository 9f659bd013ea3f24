//! Key words as names: which words PostgreSQL 15 refuses where,
//! `tests/postgresql/keyword_places.tsv`.
//!
//! A line has a statement with the place `W`, the categories of the words that PostgreSQL refuses
//! there with 42601, and words that differ from their category: `+` refused, `-` taken. A word
//! after `?` is not compared. The categories are those of `pg_get_keywords`.

use std::collections::HashMap;

use quickbeam::{Durability, Options};
use quickbeam_sql::{Connection, SqlDatabase};

use super::text_of;

/// Words that are names of anything, except some as labels without AS.
const UNRESERVED: [&str; 24] = [
    "abort",
    "action",
    "at",
    "day",
    "filter",
    "global",
    "hour",
    "mode",
    "over",
    "partition",
    "recursive",
    "rows",
    "set",
    "type",
    "value",
    "within",
    "without",
    "year",
    "name",
    "view",
    "operator",
    "match",
    "exclude",
    "cluster",
];

const OBJECTS: &str = "
    CREATE TABLE base (a int CONSTRAINT base_k PRIMARY KEY);
    CREATE TYPE en AS ENUM ('q');
    CREATE TYPE comp AS (x int);
    CREATE DOMAIN dom AS int;
    CREATE FUNCTION fun() RETURNS int LANGUAGE sql AS 'select 1';
    CREATE FUNCTION trg() RETURNS trigger LANGUAGE plpgsql AS 'begin return new; end'";

/// Returns whether the statement has a syntax error.
fn is_refused(connection: &Connection, statement: &str) -> bool {
    connection.execute_script("BEGIN").unwrap();
    let outcome = connection.execute_script(statement);
    connection.execute_script("ROLLBACK; DEALLOCATE ALL").unwrap();
    outcome.is_err_and(|error| error.code() == "42601")
}

/// Returns the statement with a word at its place.
fn with_word(statement: &str, word: &str) -> String {
    let mut parts = statement.split('W').peekable();
    let mut text = String::new();
    while let Some(part) = parts.next() {
        text.push_str(part);
        if parts.peek().is_some() {
            text.push_str(word);
        }
    }
    text
}

#[test]
fn key_words_are_names_where_postgresql_takes_them() {
    let options = Options::new().durability(Durability::InMemory);
    let connection = SqlDatabase::open_in_memory(options).unwrap().connect();
    connection.execute_script(OBJECTS).unwrap();
    let query = "SELECT word, catcode::text FROM pg_get_keywords()";
    let settings = connection.text_settings();
    let words: Vec<(String, String)> = connection
        .query(query, &[])
        .unwrap()
        .collect()
        .unwrap()
        .iter()
        .map(|row| (text_of(&row[0], &settings), text_of(&row[1], &settings).to_uppercase()))
        .filter(|(word, category)| category != "U" || UNRESERVED.contains(&word.as_str()))
        .collect();
    let mut wrong = Vec::new();
    for line in include_str!("../../postgresql/keyword_places.tsv").lines() {
        let mut fields = line.split('\t');
        let (statement, categories) = (fields.next().unwrap(), fields.next().unwrap());
        let marks = fields.next().unwrap_or_default().split_whitespace();
        let marks: HashMap<&str, char> =
            marks.map(|word| (&word[1..], word.chars().next().unwrap())).collect();
        for (word, category) in &words {
            let is_wanted = match marks.get(word.as_str()) {
                Some('?') => continue,
                Some(mark) => *mark == '+',
                None => categories.contains(category.as_str()),
            };
            let statement = with_word(statement, word);
            if is_refused(&connection, &statement) != is_wanted {
                wrong.push(format!("{statement}: {}", if is_wanted { "taken" } else { "refused" }));
            }
        }
    }
    assert!(wrong.is_empty(), "{} words\n{}", wrong.len(), wrong.join("\n"));
}
