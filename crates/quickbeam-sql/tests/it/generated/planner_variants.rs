//! The plans of a query against one another: with each join method and access path turned off in
//! turn, the same generated queries have the same answers.

use super::differential::{case, ours, with_hash_key};
use super::sqlite;
use proptest::prelude::*;
use quickbeam::{Durability, Options};
use quickbeam_sql::SqlDatabase;

/// What is turned off at the same time.
const VARIANTS: [&[&str]; 6] = [
    &["enable_hashjoin"],
    &["enable_nestloop"],
    &["enable_indexscan"],
    &["enable_seqscan"],
    &["enable_hashjoin", "enable_indexscan"],
    &["enable_nestloop", "enable_seqscan"],
];

proptest! {
    #![proptest_config(sqlite::config(100))]

    #[test]
    fn plans_have_the_same_answers(case in case()) {
        let options = Options::new().durability(Durability::InMemory).cache_size(4 << 20);
        let connection = SqlDatabase::open_in_memory(options).unwrap().connect();
        for text in case.schema.iter().chain(&case.rows) {
            let text = if case.hashed { with_hash_key(text) } else { text.clone() };
            connection.execute(&text, &[]).unwrap();
        }
        let set = |names: &[&str], value: &str| {
            for name in names {
                connection.execute(&format!("SET {name} = {value}"), &[]).unwrap();
            }
        };
        let answer = |text: &str, ordered: bool| {
            let mut answer = ours(&connection, text);
            if let (Ok(rows), false) = (&mut answer, ordered) {
                rows.sort();
            }
            answer
        };
        for (text, ordered) in &case.statements {
            if !text.starts_with("SELECT") && !text.starts_with("WITH") {
                connection.execute(text, &[]).ok();
                continue;
            }
            let first = answer(text, *ordered);
            for variant in VARIANTS {
                set(variant, "off");
                let other = answer(text, *ordered);
                set(variant, "on");
                // A plan that filters earlier evaluates fewer values, which may overflow.
                if let (Ok(first), Ok(other)) = (&first, &other) {
                    prop_assert_eq!(first, other, "{:?}: {}", variant, text);
                }
            }
        }
    }
}
