//! Generated FROM: tables, views, subqueries, and all kinds of joins.

use proptest::prelude::*;

use super::query::{Condition, Named, Relation, Scope, condition};
use super::schema::{Family, Pick, choose, pick};
use super::select::{Query, Written, query};

#[derive(Clone, Debug)]
pub enum Source {
    Relation(Pick),
    Derived(Box<Query>),
}

#[derive(Clone, Debug)]
pub struct Join {
    kind: Pick,
    source: Source,
    form: Pick,
    pairs: Vec<(Pick, Pick)>,
    condition: Condition,
}

impl Join {
    fn word(&self, number: usize) -> &'static str {
        match self.kind % 9 {
            3 | 4 => "LEFT JOIN",
            5 => "RIGHT JOIN",
            6 => "FULL JOIN",
            // Three tables without a condition would be too many rows.
            7 if number == 1 => "CROSS JOIN",
            _ => "JOIN",
        }
    }

    pub fn is_outer(&self) -> bool {
        (3..7).contains(&(self.kind % 9))
    }
}

/// What FROM has come to.
pub struct From {
    pub text: String,
    /// By which names all columns can be called.
    pub columns: Vec<Named>,
    /// The columns of `*`.
    pub star: Vec<(String, Family)>,
    /// The columns of USING already stood first: SQLite leaves them in their places.
    pub is_star_alike: bool,
    /// How many joins there are.
    pub joins: usize,
    /// ON may have subqueries: there is no outer join.
    pub subqueries: bool,
}

impl Source {
    pub fn written(&self, relations: &[Relation], alias: &str) -> (String, Vec<(String, Family)>) {
        match self {
            Source::Relation(pick) => {
                let relation = choose(relations, *pick).expect("there are tables");
                (format!("{} {alias}", relation.name), relation.columns.clone())
            }
            Source::Derived(query) => {
                let Written { text, columns, .. } = query.written(relations);
                (format!("({text}) {alias}"), columns)
            }
        }
    }
}

/// The columns that can be named: `*` of a join may have two of a name.
pub fn under(alias: &str, columns: &[(String, Family)]) -> Vec<Named> {
    let is_one = |name: &String| columns.iter().filter(|it| it.0 == *name).count() == 1;
    let named = |(name, family): &(String, Family)| Named {
        text: format!("{alias}.{name}"),
        name: name.clone(),
        family: *family,
    };
    columns.iter().filter(|it| is_one(&it.0)).map(named).collect()
}

impl From {
    pub fn join(&mut self, join: &Join, number: usize, relations: &[Relation]) {
        let alias = format!("x{number}");
        let (source, columns) = join.source.written(relations, &alias);
        let right = under(&alias, &columns);
        let kind = join.word(number);
        if kind == "CROSS JOIN" {
            let word = if self.joins == 1 && join.form % 2 == 1 { "," } else { " CROSS JOIN" };
            self.text = format!("{}{word} {source}", self.text);
            self.add(right, &columns);
            return;
        }
        // Names that stand for one column on either side.
        let common: Vec<(String, Family)> = columns
            .iter()
            .filter_map(|(name, family)| {
                let mut both = columns.iter().filter(|it| it.0 == *name);
                let mut left = self.star.iter().filter(|it| it.0 == *name);
                let (found, other) = (left.next()?, left.next());
                let is_like =
                    both.nth(1).is_none() && other.is_none() && found.1.broad() == family.broad();
                let family = if found.1 == *family { *family } else { family.broad() };
                is_like.then(|| (name.clone(), family))
            })
            .collect();
        let is_anywhere = |name: &String| self.star.iter().any(|it| it.0 == *name);
        let natural = columns.iter().filter(|it| is_anywhere(&it.0)).count() == common.len();
        match join.form % 8 {
            6 if !common.is_empty() => {
                let one = choose(&common, join.kind / 16).expect("not empty").clone();
                self.text = format!("{} {kind} {source} USING ({})", self.text, one.0);
                self.merge(&[one], right, &columns);
            }
            7 if natural && !common.is_empty() => {
                self.text = format!("{} NATURAL {kind} {source}", self.text);
                self.merge(&common, right, &columns);
            }
            _ => {
                let on = self.on(join, &self.beside(&columns), &right, relations);
                self.text = format!("{} {kind} {source} ON {on}", self.text);
                self.add(right, &columns);
            }
        }
    }

    /// What can still be named when a side with these columns stands beside it: of names on both
    /// sides neither.
    fn beside(&self, all: &[(String, Family)]) -> Vec<Named> {
        let is_alone = |it: &&Named| !all.iter().any(|(name, _)| *name == it.name);
        let columns = self.columns.iter();
        columns.filter(|it| it.text.contains('.') || is_alone(it)).cloned().collect()
    }

    fn on(&self, join: &Join, left: &[Named], right: &[Named], relations: &[Relation]) -> String {
        let form = join.form % 8;
        let pair = |(a, b): (Pick, Pick), operator: &str| {
            let like = |left: &Named| {
                right
                    .iter()
                    .filter(|it| it.family.broad() == left.family.broad())
                    .collect::<Vec<_>>()
            };
            let lefts: Vec<&Named> = left.iter().filter(|left| !like(left).is_empty()).collect();
            let left = choose(&lefts, a)?;
            let other = like(left);
            let other = choose(&other, b)?;
            let (one, other) = (&left.text, &other.text);
            Some(if a > 127 {
                format!("{other} {operator} {one}")
            } else {
                format!("{one} {operator} {other}")
            })
        };
        let operators = match form {
            0 | 1 | 6 | 7 => &["=", "="],
            2 | 3 => &["=", "<"],
            _ => &["<=", ">"],
        };
        let mut parts: Vec<String> = (join.pairs.iter().zip(operators))
            .filter_map(|(it, operator)| pair(*it, operator))
            .collect();
        if parts.is_empty() || form == 1 || form == 5 {
            let mut all = left.to_vec();
            all.extend_from_slice(right);
            parts.push(join.condition.text(&Scope {
                relations,
                columns: &all,
                depth: 0,
                subqueries: self.subqueries,
                steady: false,
            }));
        }
        parts.join(" AND ")
    }

    /// Adds a side; all its columns are what `*` has of it.
    fn add(&mut self, right: Vec<Named>, all: &[(String, Family)]) {
        self.columns = self.beside(all);
        self.columns.extend(right);
        self.star.extend_from_slice(all);
    }

    /// Adds a side some of whose columns are one with those of that name on the left.
    fn merge(&mut self, common: &[(String, Family)], right: Vec<Named>, all: &[(String, Family)]) {
        // Of more joins SQLite finds some columns ambiguous.
        self.is_star_alike &= self.joins == 1;
        self.is_star_alike &= self.star.iter().zip(common).all(|(it, other)| it.0 == other.0);
        let is_common = |name: &String| common.iter().any(|it| it.0 == *name);
        let not_common = |list: &[(String, Family)]| {
            list.iter().filter(|it| !is_common(&it.0)).cloned().collect::<Vec<_>>()
        };
        self.star = common.iter().cloned().chain(not_common(&self.star)).collect();
        self.columns.retain(|it| it.text.contains('.') || !is_common(&it.name));
        let (same, more): (Vec<_>, Vec<_>) = right.into_iter().partition(|it| is_common(&it.name));
        self.add(more, &not_common(all));
        self.columns.extend(same);
        let merged = |(name, family): &(String, Family)| Named {
            text: name.clone(),
            name: name.clone(),
            family: *family,
        };
        self.columns.splice(0..0, common.iter().map(merged));
    }
}

pub fn source(depth: u32) -> BoxedStrategy<Source> {
    let relation = pick().prop_map(Source::Relation);
    if depth == 0 {
        return relation.boxed();
    }
    let derived = query(depth - 1).prop_map(|it| Source::Derived(Box::new(it)));
    prop_oneof![8 => relation, 1 => derived].boxed()
}

pub fn join(depth: u32) -> BoxedStrategy<Join> {
    let pair = || (pick(), pick());
    let pairs = prop_oneof![
        4 => prop::collection::vec(pair(), 1),
        1 => prop::collection::vec(pair(), 2),
    ];
    (pick(), source(depth), pick(), pairs, condition(1))
        .prop_map(|(kind, source, form, pairs, condition)| Join {
            kind,
            source,
            form,
            pairs,
            condition,
        })
        .boxed()
}
