//! Generated SELECT: joins, groups, set operations, order.

use proptest::prelude::*;

use super::from::{From, Join, Source, join, source, under};
use super::query::{Condition, Expr, Relation, Scope, condition, expr};
use super::schema::{Family, Pick, pick};

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

/// A query's text, the kinds of its outputs, which are called o0, o1 and so on unless they come
/// from `*`, and whether its order is total.
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
    let join = join(depth);
    let joins = prop_oneof![
        4 => prop::collection::vec(join.clone(), 0..1),
        5 => prop::collection::vec(join.clone(), 1..2),
        2 => prop::collection::vec(join, 2..3),
    ];
    let filter = prop::option::weighted(0.5, condition(2));
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
