//! Generated SELECT: joins, groups, set operations, order.

use proptest::prelude::*;

use super::query::{Condition, Expr, Named, Relation, Scope, condition, expr};
use super::schema::{Family, Pick, choose, pick};

#[derive(Clone, Debug)]
enum Source {
    Relation(Pick),
    Derived(Box<Query>),
}

#[derive(Clone, Debug)]
struct Join {
    kind: Pick,
    source: Source,
    form: Pick,
    pairs: Vec<(Pick, Pick)>,
    condition: Condition,
}

#[derive(Clone, Debug)]
struct Aggregate {
    kind: Pick,
    family: Pick,
    of: Expr,
    filter: Option<Condition>,
}

#[derive(Clone, Debug)]
enum Shape {
    Star,
    Outputs { distinct: bool, outputs: Vec<(Pick, Expr)> },
    Groups { keys: Vec<(Pick, Pick)>, aggregates: Vec<Aggregate>, having: Option<(Pick, Pick)> },
}

#[derive(Clone, Debug)]
struct Select {
    source: Source,
    joins: Vec<Join>,
    filter: Option<Condition>,
    shape: Shape,
}

#[derive(Clone, Debug)]
struct Order {
    /// The output that comes first, and whether the others follow upwards.
    first: Pick,
    up: bool,
    directions: Vec<Pick>,
    by_name: bool,
    limit: Option<(Pick, Option<Pick>)>,
}

#[derive(Clone, Debug)]
pub struct Query {
    first: Select,
    more: Vec<(Pick, Select)>,
    order: Option<Order>,
}

/// A query's text, the kinds of its outputs, which are called o0, o1 and so on unless they come from `*`, and whether its order is total.
pub struct Written {
    pub text: String,
    pub columns: Vec<(String, Family)>,
    pub ordered: bool,
}

impl Query {
    pub fn written(&self, relations: &[Relation]) -> Written {
        let (mut text, columns, is_star) = self.first.written(relations, None);
        let families: Vec<Family> = columns.iter().map(|it| it.1).collect();
        let mut before = 2;
        for (operation, select) in &self.more {
            // INTERSECT binds more strongly than the others, which SQLite does not know.
            let operation = if before == 3 { operation % 4 } else { operation % 3 };
            before = operation;
            let word = ["UNION ALL", "UNION", "EXCEPT", "INTERSECT"][usize::from(operation)];
            text = format!("{text} {word} {}", select.written(relations, Some(&families)).0);
        }
        if let Some(order) = &self.order {
            text += &order.text(columns.len(), is_star);
        }
        Written { text, columns, ordered: self.order.is_some() }
    }
}

impl Order {
    /// By all outputs.
    fn text(&self, count: usize, is_star: bool) -> String {
        let term = |step: usize| {
            let step = if self.up { step } else { count - step };
            let at = (usize::from(self.first) + step) % count;
            let direction =
                ["ASC NULLS LAST", "DESC NULLS FIRST", "ASC NULLS FIRST", "DESC NULLS LAST"]
                    [usize::from(self.directions[at % self.directions.len()] % 4)];
            if self.by_name && !is_star {
                format!("o{at} {direction}")
            } else {
                format!("{} {direction}", at + 1)
            }
        };
        let terms: Vec<String> = (0..count).map(term).collect();
        let limit = self.limit.map_or(String::new(), |(limit, offset)| {
            let offset = offset.map_or(String::new(), |offset| format!(" OFFSET {}", offset % 8));
            format!(" LIMIT {}{offset}", limit % 20)
        });
        format!(" ORDER BY {}{limit}", terms.join(", "))
    }
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

    fn is_outer(&self) -> bool {
        (3..7).contains(&(self.kind % 9))
    }
}

/// What FROM has come to.
struct From {
    text: String,
    /// By which names all columns can be called.
    columns: Vec<Named>,
    /// The columns of `*`.
    star: Vec<(String, Family)>,
    /// The columns of USING already stood first: SQLite leaves them in their places.
    is_star_alike: bool,
    /// How many joins there are.
    joins: usize,
    /// ON may have subqueries: there is no outer join.
    subqueries: bool,
}

impl Source {
    fn written(&self, relations: &[Relation], alias: &str) -> (String, Vec<(String, Family)>) {
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
fn under(alias: &str, columns: &[(String, Family)]) -> Vec<Named> {
    let is_one = |name: &String| columns.iter().filter(|it| it.0 == *name).count() == 1;
    let named = |(name, family): &(String, Family)| Named {
        text: format!("{alias}.{name}"),
        name: name.clone(),
        family: *family,
    };
    columns.iter().filter(|it| is_one(&it.0)).map(named).collect()
}

impl From {
    fn join(&mut self, join: &Join, number: usize, relations: &[Relation]) {
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
            form => {
                let on = self.on(form, join, &right, relations);
                self.text = format!("{} {kind} {source} ON {on}", self.text);
                self.add(right, &columns);
            }
        }
    }

    /// What can still be named when that stands beside it: of names on both sides neither.
    fn beside(&self, right: &[Named]) -> Vec<Named> {
        let is_there = |it: &&Named| !right.iter().any(|other| other.name == it.name);
        let columns = self.columns.iter();
        columns.filter(|it| it.text.contains('.') || is_there(it)).cloned().collect()
    }

    fn on(&self, form: Pick, join: &Join, right: &[Named], relations: &[Relation]) -> String {
        let left = self.beside(right);
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
            let mut all = left.clone();
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
        self.columns = self.beside(&right);
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

impl Select {
    /// Its text, its outputs, and whether they are `*`.
    fn written(
        &self,
        relations: &[Relation],
        wanted: Option<&[Family]>,
    ) -> (String, Vec<(String, Family)>, bool) {
        let (text, star) = self.source.written(relations, "x0");
        let mut from = From {
            text,
            columns: under("x0", &star),
            star,
            is_star_alike: true,
            joins: self.joins.len(),
            subqueries: !self.joins.iter().any(Join::is_outer),
        };
        for (number, join) in self.joins.iter().enumerate() {
            from.join(join, number + 1, relations);
        }
        let scope =
            Scope { relations, columns: &from.columns, depth: 0, subqueries: true, steady: false };
        let plain = Scope { subqueries: false, ..scope };
        let filter =
            self.filter.as_ref().map_or(String::new(), |it| format!(" WHERE {}", it.text(&scope)));
        let end = format!(" FROM {}{filter}", from.text);
        let mut outputs: Vec<(String, Family)> = Vec::new();
        let (mut word, mut rest) = ("", String::new());
        match (&self.shape, wanted) {
            (Shape::Star, None) if from.is_star_alike => {
                return (format!("SELECT *{end}"), from.star, true);
            }
            (Shape::Star, None) => {
                outputs.extend(from.columns.iter().map(|it| (it.text.clone(), it.family)));
            }
            (Shape::Outputs { distinct, outputs: drawn }, None) => {
                word = if *distinct { "DISTINCT " } else { "" };
                for (pick, expr) in drawn {
                    let family = scope.any(*pick).1;
                    outputs.push((expr.text(&scope, family), family));
                }
            }
            (Shape::Groups { keys, aggregates, having }, None) => {
                outputs.extend(keys.iter().map(|(column, form)| group_key(&scope, *column, *form)));
                if !keys.is_empty() {
                    let keys: Vec<&str> = outputs.iter().map(|it| it.0.as_str()).collect();
                    rest = format!(" GROUP BY {}", keys.join(", "));
                }
                outputs.extend(aggregates.iter().map(|it| it.text(&plain)));
                if let Some((form, value)) = having {
                    rest += &match (keys.is_empty(), form % 3) {
                        (true, _) | (_, 0) => format!(" HAVING count(*) > {}", value % 3),
                        (_, 1) => format!(" HAVING {} IS NOT NULL", outputs[0].0),
                        _ => {
                            let key = &outputs[0].0;
                            format!(" HAVING count({key}) <= {} OR {key} IS NULL", value % 4)
                        }
                    };
                }
            }
            (shape, Some(wanted)) => {
                for (at, family) in wanted.iter().enumerate() {
                    let drawn = match shape {
                        Shape::Outputs { outputs, .. } => outputs.get(at).map(|it| it.1.clone()),
                        _ => None,
                    };
                    let drawn = drawn.unwrap_or(Expr::Column(at as Pick));
                    outputs.push((drawn.text(&scope, *family), *family));
                }
            }
        }
        let named = outputs.iter().enumerate().map(|(at, it)| format!("{} AS o{at}", it.0));
        let list = named.collect::<Vec<_>>().join(", ");
        let columns = outputs.iter().enumerate().map(|(at, it)| (format!("o{at}"), it.1)).collect();
        (format!("SELECT {word}{list}{end}{rest}"), columns, false)
    }
}

/// Something to group by, with a column in it: a constant would mean a position.
fn group_key(scope: &Scope<'_>, column: Pick, form: Pick) -> (String, Family) {
    let (text, family) = scope.any(column);
    match (form % 8, family) {
        (0, _) => (format!("({text} IS NULL)"), Family::Boolean),
        (1, _) => (format!("COALESCE({text}, {})", family.literal(form, false)), family),
        (2, Family::Whole | Family::Number) => (format!("(0 + {text} + 1)"), family),
        (2, Family::Text | Family::Char) => (format!("lower({text})"), Family::Text),
        _ => (text.to_owned(), family),
    }
}

impl Aggregate {
    fn text(&self, scope: &Scope<'_>) -> (String, Family) {
        let family = scope.any(self.family).1;
        let of = self.of.text(scope, family);
        let (text, family) = match (self.kind % 8, family) {
            (0, _) => ("count(*)".to_owned(), Family::Whole),
            (1, Family::Whole | Family::Number) => (format!("sum(DISTINCT {of})"), Family::Number),
            (1 | 2, _) => (format!("count(DISTINCT {of})"), Family::Whole),
            (3, _) | (_, Family::Boolean) => (format!("count({of})"), Family::Whole),
            (4 | 5, Family::Whole | Family::Number) => (format!("sum({of})"), Family::Number),
            (6, _) => (format!("min({of})"), family),
            _ => (format!("max({of})"), family),
        };
        let filter = self
            .filter
            .as_ref()
            .map_or(String::new(), |it| format!(" FILTER (WHERE {})", it.text(scope)));
        (text + &filter, family)
    }
}

fn source(depth: u32) -> BoxedStrategy<Source> {
    let relation = pick().prop_map(Source::Relation);
    if depth == 0 {
        return relation.boxed();
    }
    let derived = query(depth - 1).prop_map(|it| Source::Derived(Box::new(it)));
    prop_oneof![8 => relation, 1 => derived].boxed()
}

fn shape() -> BoxedStrategy<Shape> {
    let outputs = prop::collection::vec((pick(), expr(2)), 1..5);
    let aggregate = (pick(), pick(), expr(1), prop::option::weighted(0.2, condition(1)))
        .prop_map(|(kind, family, of, filter)| Aggregate { kind, family, of, filter });
    let keys = prop::collection::vec((pick(), pick()), 0..3);
    let having = prop::option::weighted(0.2, (pick(), pick()));
    prop_oneof![
        1 => Just(Shape::Star),
        4 => (prop::bool::weighted(0.3), outputs).prop_map(|(distinct, outputs)| Shape::Outputs { distinct, outputs }),
        3 => (keys, prop::collection::vec(aggregate, 1..4), having)
            .prop_map(|(keys, aggregates, having)| Shape::Groups { keys, aggregates, having }),
    ]
    .boxed()
}

fn select(depth: u32) -> BoxedStrategy<Select> {
    let pairs = prop::collection::vec((pick(), pick()), 1..3);
    let join = (pick(), source(depth), pick(), pairs, condition(1)).prop_map(
        |(kind, source, form, pairs, condition)| Join { kind, source, form, pairs, condition },
    );
    let joins = prop_oneof![
        4 => prop::collection::vec(join.clone(), 0..1),
        5 => prop::collection::vec(join.clone(), 1..2),
        2 => prop::collection::vec(join, 2..3),
    ];
    let filter = prop::option::weighted(0.6, condition(2));
    (source(depth), joins, filter, shape())
        .prop_map(|(source, joins, filter, shape)| Select { source, joins, filter, shape })
        .boxed()
}

pub fn query(depth: u32) -> BoxedStrategy<Query> {
    let limit = prop::option::of((pick(), prop::option::weighted(0.3, pick())));
    let order = (pick(), any::<bool>(), prop::collection::vec(pick(), 1..4), any::<bool>(), limit)
        .prop_map(|(first, up, directions, by_name, limit)| Order {
            first,
            up,
            directions,
            by_name,
            limit,
        });
    let select = select(depth);
    let more = prop_oneof![
        6 => Just(Vec::new()),
        1 => prop::collection::vec((pick(), select.clone()), 1..3),
    ];
    (select, more, prop::option::weighted(0.4, order))
        .prop_map(|(first, more, order)| Query { first, more, order })
        .boxed()
}
