//! The 32 queries of Appendix I of DeWitt's paper, with the answer that each must give.
//!
//! Where the printed text cannot be run it is followed as closely as SQL allows: a result relation
//! for each shape instead of one TMP; TENKTUP2 added to the relations of queries 11, 14 and 17; the
//! tuple of queries 26 and 29 gets a unique2 of its own. Constants follow the number of tuples.
//! Statements that restore the state are not timed.

use super::answers::{Shape, WisconsinAnswer, grouped};
use super::relations::{NUMBERS, Tuple, column};
use crate::sql::Value;

/// Which indexes there are while a query runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexes {
    /// None.
    None,
    /// The clustered one on unique2 and the other one on unique1.
    Both,
}

/// What is done with a query's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// It is read by the caller.
    Screen(Shape),
    /// It is inserted into this relation.
    Relation(&'static str, Shape),
    /// There is none: one tuple of TENKTUP1 changes.
    Change,
}

/// One query.
#[derive(Clone, Debug)]
pub struct Query {
    /// Its number in the paper.
    pub number: u8,
    /// What it is, in the paper's words.
    pub name: &'static str,
    /// The indexes it is run with.
    pub indexes: Indexes,
    /// Where its answer goes.
    pub target: Target,
    /// Its text, with the insertion into the result relation.
    pub text: String,
    /// What comes before each run.
    pub before: Option<String>,
    /// What comes after each run.
    pub after: Option<String>,
    /// Its answer; of a change, what TENKTUP1 holds after it.
    pub answer: WisconsinAnswer,
}

/// The result relations with their columns.
pub fn result_relations() -> Vec<(&'static str, String)> {
    let columns = |shape: Shape| {
        let mut list = Vec::new();
        for side in ["a", "b", "c"].into_iter().take(shape.times) {
            let number = (1..=shape.numbers).map(|n| format!("{side}{n} INTEGER"));
            let text = (1..=shape.texts).map(|n| format!("{side}{} CHAR(52)", shape.numbers + n));
            list.extend(number.chain(text));
        }
        list.join(", ")
    };
    let wide = [("TMP", 1), ("TMP2", 2), ("TMP3", 3)];
    let mut relations: Vec<(&str, String)> =
        wide.into_iter().map(|(name, times)| (name, columns(Shape::tuples(times)))).collect();
    relations.push(("TMPP6", columns(SIX)));
    relations.push(("TMPP14", columns(FOURTEEN)));
    relations.push(("TMPA", "a BIGINT".to_owned()));
    relations
}

const SIX: Shape = Shape { numbers: 5, texts: 1, times: 1 };
const FOURTEEN: Shape = Shape { numbers: 11, texts: 3, times: 1 };
const ONE: Shape = Shape { numbers: 1, texts: 0, times: 1 };

/// The names of all columns, in order.
const COLUMNS: [&str; 16] = [
    "unique1",
    "unique2",
    "two",
    "four",
    "ten",
    "twenty",
    "onePercent",
    "tenPercent",
    "twentyPercent",
    "fiftyPercent",
    "unique3",
    "evenOnePercent",
    "oddOnePercent",
    "stringu1",
    "stringu2",
    "string4",
];

/// The relations that the queries are about.
pub struct Relations {
    /// TENKTUP1 and TENKTUP2, which have the same content.
    pub large: Vec<Tuple>,
    /// ONEKTUP: a tenth.
    pub small: Vec<Tuple>,
}

/// The rows of a join.
#[derive(Clone, Copy)]
enum Joined {
    /// A tuple of the large relation, twice.
    Pairs,
    /// The tuple of the small relation with the same key, then the pair.
    Triples,
}

impl Relations {
    /// Tuples of TENKTUP1.
    fn n(&self) -> i32 {
        self.large.len() as i32
    }

    /// The tuple that queries 26 and 29 insert.
    fn new_tuple(&self) -> Tuple {
        let text =
            |a: &str, b: &str, c: &str| format!("{a}{}{b}{}{c}", "x".repeat(25), "x".repeat(24));
        let key = self.n() + 1;
        Tuple {
            numbers: [key, key, 0, 2, 0, 10, 50, 688, 1950, 4950, 9950, 1, 100],
            texts: [text("M", "G", "C"), text("G", "C", "A"), text("O", "O", "O")],
        }
    }

    fn insertion(&self, tuple: &Tuple) -> String {
        let numbers = tuple.numbers.iter().map(i32::to_string);
        let texts = tuple.texts.iter().map(|text| Value::Text(text).to_string());
        let values: Vec<String> = numbers.chain(texts).collect();
        format!("INSERT INTO TENKTUP1 VALUES ({})", values.join(", "))
    }

    fn alone<'t>(&'t self, keep: impl Fn(&Tuple) -> bool + 't) -> WisconsinAnswer {
        WisconsinAnswer::of_tuples(self.large.iter().filter(move |t| keep(t)).map(|t| vec![t]))
    }

    /// Returns the rows of a join on `key` whose large tuple is kept.
    fn joined(&self, key: usize, joined: Joined, keep: impl Fn(&Tuple) -> bool) -> WisconsinAnswer {
        let mut by_key = vec![None; self.large.len()];
        for tuple in &self.small {
            by_key[tuple.numbers[key] as usize] = Some(tuple);
        }
        let rows = self.large.iter().filter(|tuple| keep(tuple)).filter_map(|tuple| {
            let pair = vec![tuple, tuple];
            match joined {
                Joined::Pairs => Some(pair),
                Joined::Triples => {
                    by_key[tuple.numbers[key] as usize].map(|s| [vec![s], pair].concat())
                }
            }
        });
        WisconsinAnswer::of_tuples(rows)
    }

    /// What TENKTUP1 holds after a change of one tuple.
    fn changed(&self, change: impl FnOnce(&mut Vec<Tuple>)) -> WisconsinAnswer {
        let mut tuples = self.large.clone();
        change(&mut tuples);
        WisconsinAnswer::of_tuples(tuples.iter().map(|tuple| vec![tuple]))
    }

    /// Every query, in the paper's order.
    pub fn queries(&self) -> Vec<Query> {
        let mut list = Vec::new();
        self.selections(&mut list);
        self.joins(&mut list);
        self.projections(&mut list);
        self.aggregates(&mut list);
        self.changes(&mut list);
        list.sort_by_key(|query| query.number);
        list
    }

    fn selections(&self, list: &mut Vec<Query>) {
        let n = self.n();
        let from = if n >= 10_000 { 792 } else { n * 792 / 10_000 };
        let (one, ten) = ((0, n / 100), (from, n / 10));
        for (number, indexes, name, key, (from, count)) in [
            (1, Indexes::None, "1% selection", "unique2", one),
            (2, Indexes::None, "10% selection", "unique2", ten),
            (3, Indexes::Both, "1% selection, clustered", "unique2", one),
            (4, Indexes::Both, "10% selection, clustered", "unique2", ten),
            (5, Indexes::Both, "1% selection, non-clustered", "unique1", one),
            (6, Indexes::Both, "10% selection, non-clustered", "unique1", ten),
            (8, Indexes::Both, "1% selection to screen, clustered", "unique2", one),
        ] {
            let to = from + count - 1;
            let select = format!("SELECT * FROM TENKTUP1 WHERE {key} BETWEEN {from} AND {to}");
            let column = if key == "unique1" { column::UNIQUE1 } else { column::UNIQUE2 };
            let answer = self.alone(|t| (from..=to).contains(&t.numbers[column]));
            let shape = Shape::tuples(1);
            list.push(match number {
                8 => Query::new(number, name, indexes, Target::Screen(shape), select, answer),
                _ => Query::into("TMP", shape, number, name, indexes, select, answer),
            });
        }
        let key = if n > 2001 { 2001 } else { n / 5 };
        list.push(Query::new(
            7,
            "single tuple selection to screen, clustered",
            Indexes::Both,
            Target::Screen(Shape::tuples(1)),
            format!("SELECT * FROM TENKTUP1 WHERE unique2 = {key}"),
            self.alone(|tuple| tuple.numbers[column::UNIQUE2] == key),
        ));
    }

    fn joins(&self, list: &mut Vec<Query>) {
        let tenth = self.n() / 10;
        for (first, indexes, key, column, how) in [
            (9, Indexes::None, "unique2", column::UNIQUE2, ""),
            (12, Indexes::Both, "unique2", column::UNIQUE2, ", clustered"),
            (15, Indexes::Both, "unique1", column::UNIQUE1, ", non-clustered"),
        ] {
            // The paper restricts another relation's, or another column's, tuples in each of them.
            let (select_b, select_three) = match first {
                15 => ("TENKTUP1.unique2", "TENKTUP1.unique1"),
                _ => ("TENKTUP2.unique2", "TENKTUP1.unique2"),
            };
            let below = |column: usize| move |t: &Tuple| t.numbers[column] < tenth;
            let names = match how {
                "" => ["joinAselB", "joinABprime", "joinCselAselB"],
                ", clustered" => {
                    ["joinAselB, clustered", "joinABprime, clustered", "joinCselAselB, clustered"]
                }
                _ => [
                    "joinAselB, non-clustered",
                    "joinABprime, non-clustered",
                    "joinCselAselB, non-clustered",
                ],
            };
            list.push(Query::into(
                "TMP2",
                Shape::tuples(2),
                first,
                names[0],
                indexes,
                format!(
                    "SELECT * FROM TENKTUP1, TENKTUP2 WHERE (TENKTUP1.{key} = TENKTUP2.{key}) \
                     AND ({select_b} < {tenth})"
                ),
                self.joined(column, Joined::Pairs, below(column::UNIQUE2)),
            ));
            list.push(Query::into(
                "TMP2",
                Shape::tuples(2),
                first + 1,
                names[1],
                indexes,
                format!("SELECT * FROM TENKTUP1, BPRIME WHERE (TENKTUP1.{key} = BPRIME.{key})"),
                // BPRIME holds the first tenth of TENKTUP2, by unique2.
                self.joined(column, Joined::Pairs, below(column::UNIQUE2)),
            ));
            list.push(Query::into(
                "TMP3",
                Shape::tuples(3),
                first + 2,
                names[2],
                indexes,
                format!(
                    "SELECT * FROM ONEKTUP, TENKTUP1, TENKTUP2 WHERE (ONEKTUP.{key} = TENKTUP1.{key}) \
                     AND (TENKTUP1.{key} = TENKTUP2.{key}) AND ({select_three} < {tenth})"
                ),
                self.joined(column, Joined::Triples, below(column)),
            ));
        }
    }

    fn projections(&self, list: &mut Vec<Query>) {
        for (number, name, into, shape, columns) in [
            (18, "projection, 1%", "TMPP6", SIX, &[2, 3, 4, 5, 6, 15][..]),
            (
                19,
                "projection, 100%",
                "TMPP14",
                FOURTEEN,
                &[2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15][..],
            ),
        ] {
            let names: Vec<&str> = columns.iter().map(|&column| COLUMNS[column]).collect();
            let select = format!("SELECT DISTINCT {} FROM TENKTUP1", names.join(", "));
            let answer = WisconsinAnswer::distinct(&self.large, columns);
            list.push(Query::into(into, shape, number, name, Indexes::None, select, answer));
        }
    }

    fn aggregates(&self, list: &mut Vec<Query>) {
        let least = self.large.iter().map(|t| i64::from(t.numbers[column::UNIQUE2])).min();
        let minimum = WisconsinAnswer::of_numbers(least);
        let minima = grouped(&self.large, i64::min);
        let sums = grouped(&self.large, |a, b| a + b);
        for (first, indexes) in [(20, Indexes::None), (23, Indexes::Both)] {
            for (number, name, function, answer) in [
                (first, "minimum aggregate", "MIN(TENKTUP1.unique2)", minimum),
                (first + 1, "minimum aggregate, 100 partitions", "MIN(TENKTUP1.unique3)", minima),
                (first + 2, "sum aggregate, 100 partitions", "SUM(TENKTUP1.unique3)", sums),
            ] {
                let mut select = format!("SELECT {function} FROM TENKTUP1");
                if number != first {
                    select.push_str(" GROUP BY TENKTUP1.onePercent");
                }
                list.push(Query::into("TMPA", ONE, number, name, indexes, select, answer));
            }
        }
    }

    fn changes(&self, list: &mut Vec<Query>) {
        let (new, new_tuple) = (self.n() + 1, self.new_tuple());
        let some = (i64::from(self.n()) * 1491 / 10_000) as i32;
        let insertion = self.insertion(&new_tuple);
        let deletion = format!("DELETE FROM TENKTUP1 WHERE unique1 = {new}");
        let set = |key: &str, to: i32, from: i32| {
            format!("UPDATE TENKTUP1 SET {key} = {to} WHERE {key} = {from}")
        };
        let key_changed = |key: usize| {
            self.changed(|tuples| {
                let changed = tuples.iter_mut().find(|tuple| tuple.numbers[key] == some);
                changed.into_iter().for_each(|tuple| tuple.numbers[key] = new);
            })
        };
        for (first, indexes) in [(26, Indexes::None), (29, Indexes::Both)] {
            let change =
                |number, name, text: String, before, after: Option<String>, answer| Query {
                    before,
                    after,
                    ..Query::new(number, name, indexes, Target::Change, text, answer)
                };
            let inserted = self.changed(|tuples| tuples.push(new_tuple.clone()));
            let (insertion, deletion) = (insertion.clone(), deletion.clone());
            let undone = Some(deletion.clone());
            list.push(change(first, "insert 1 tuple", insertion.clone(), None, undone, inserted));
            let before = Some(insertion);
            let as_it_was = self.changed(|_| ());
            list.push(change(first + 1, "delete 1 tuple", deletion, before, None, as_it_was));
            let undone = Some(set("unique2", some, new));
            let (text, answer) = (set("unique2", new, some), key_changed(column::UNIQUE2));
            list.push(change(first + 2, "update key attribute", text, None, undone, answer));
        }
        list.push(Query {
            after: Some(set("unique1", some, new)),
            ..Query::new(
                32,
                "update indexed non-key attribute",
                Indexes::Both,
                Target::Change,
                set("unique1", new, some),
                key_changed(column::UNIQUE1),
            )
        });
    }
}

impl Query {
    fn new(
        number: u8,
        name: &'static str,
        indexes: Indexes,
        target: Target,
        text: String,
        answer: WisconsinAnswer,
    ) -> Query {
        Query { number, name, indexes, target, text, before: None, after: None, answer }
    }

    /// A query whose answer is inserted into a relation.
    fn into(
        relation: &'static str,
        shape: Shape,
        number: u8,
        name: &'static str,
        indexes: Indexes,
        select: String,
        answer: WisconsinAnswer,
    ) -> Query {
        let text = format!("INSERT INTO {relation} {select}");
        Query::new(number, name, indexes, Target::Relation(relation, shape), text, answer)
    }
}

/// Columns of TENKTUP1.
pub const WHOLE: Shape = Shape::tuples(1);

const _: () = assert!(COLUMNS.len() == NUMBERS + super::relations::TEXTS);

#[cfg(test)]
mod tests {
    use super::super::relations::relation;
    use super::*;

    #[test]
    fn the_papers_size_has_the_papers_queries_and_numbers_of_rows() {
        let relations = Relations { large: relation(10_000), small: relation(1000) };
        let queries = relations.queries();
        assert!(queries.iter().map(|query| query.number).eq(1..=32));
        let rows: Vec<u64> = queries[..25].iter().map(|query| query.answer.rows).collect();
        assert_eq!(
            rows,
            [
                100, 1000, 100, 1000, 100, 1000, 1, 100, 1000, 1000, 1000, 1000, 1000, 1000, 1000,
                1000, 1000, 400, 10_000, 1, 100, 100, 1, 100, 100
            ]
        );
        let after: Vec<u64> = queries[25..].iter().map(|query| query.answer.rows).collect();
        assert_eq!(after, [10_001, 10_000, 10_000, 10_001, 10_000, 10_000, 10_000]);
        assert!(queries[1].text.ends_with("unique2 BETWEEN 792 AND 1791"));
        assert_eq!(queries[30].text, "UPDATE TENKTUP1 SET unique2 = 10001 WHERE unique2 = 1491");
        assert_ne!(queries[27].answer, queries[31].answer);
    }

    #[test]
    fn shapes_fit_the_result_relations() {
        for (name, columns) in result_relations() {
            let count = columns.split(',').count();
            let expected = match name {
                "TMP" => 16,
                "TMP2" => 32,
                "TMP3" => 48,
                "TMPP6" => 6,
                "TMPP14" => 14,
                _ => 1,
            };
            assert_eq!(count, expected, "{name}");
        }
    }
}
