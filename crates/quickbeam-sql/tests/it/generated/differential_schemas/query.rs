//! Generated queries, as trees of choices that are made when the text is written, against the
//! tables that are there then.
//!
//! Expressions keep to what both dialects agree on: no division, no overflow, no text where a
//! number is meant.

use proptest::prelude::*;

use super::schema::{Family, Pick, choose, pick};

/// A table or a view.
#[derive(Clone, Debug)]
pub struct Relation {
    pub name: String,
    pub columns: Vec<(String, Family)>,
}

/// A column that expressions can name.
#[derive(Clone, Debug)]
pub struct Named {
    pub text: String,
    pub name: String,
    pub family: Family,
}

impl Relation {
    fn under(&self, alias: &str) -> impl Iterator<Item = Named> {
        self.columns.iter().map(move |(name, family)| Named {
            text: format!("{alias}.{name}"),
            name: name.clone(),
            family: *family,
        })
    }
}

/// What can be named where an expression stands, and what it may be.
#[derive(Clone, Debug, Copy)]
pub struct Scope<'s> {
    pub relations: &'s [Relation],
    pub columns: &'s [Named],
    /// How many subqueries it stands in.
    pub depth: usize,
    pub subqueries: bool,
    /// A value made from others is about as large as they are: it may be stored, over and over.
    pub steady: bool,
}

impl Scope<'_> {
    fn column(&self, pick: Pick, family: Family) -> Option<&Named> {
        let fitting: Vec<&Named> =
            self.columns.iter().filter(|it| it.family.fits(family)).collect();
        choose(&fitting, pick).copied()
    }

    pub fn any(&self, pick: Pick) -> (&str, Family) {
        choose(self.columns, pick).map_or(("(0 + 1)", Family::Whole), |it| (&it.text, it.family))
    }
}

#[derive(Clone, Debug)]
pub enum Expr {
    Column(Pick),
    Constant(Pick),
    Combined(Pick, Box<Expr>, Box<Expr>),
    Case(Box<Condition>, Box<Expr>, Box<Expr>),
    Subquery(Box<Lookup>),
    /// A number, and nothing added to it, unless the row is in [`TRAP`]: then that fails.
    Trapped(Pick, Box<Expr>),
}

/// A table of whole numbers `k` with divisors `n`, which are 1 when answers are compared. With 0
/// for some of them a query fails in the middle of its rows, which SQLite's would not: it divides
/// by zero to NULL.
pub const TRAP: &str = "trap";

impl Expr {
    pub fn text(&self, scope: &Scope<'_>, family: Family) -> String {
        match self {
            Expr::Column(pick) => match scope.column(*pick, family) {
                Some(column) => column.text.clone(),
                None => family.constant(*pick),
            },
            Expr::Constant(pick) => family.constant(*pick),
            Expr::Combined(pick, a, b) => {
                let (a, b) = (a.text(scope, family), b.text(scope, family));
                match (family, pick % 5) {
                    (_, 0) => format!("COALESCE({a}, {b})"),
                    (_, 4) => format!("NULLIF({a}, {b})"),
                    (Family::Whole | Family::Number, 1) if scope.steady => format!("({a} + 2)"),
                    // Integers, of whatever kind the columns are: a SMALLINT is soon full.
                    (Family::Whole | Family::Number, 1) => format!("(0 + {a} + {b})"),
                    (Family::Whole | Family::Number, 2) if scope.steady => format!("abs({a})"),
                    (Family::Whole | Family::Number, 2) => format!("(0 + {a} - {b})"),
                    (Family::Whole | Family::Number, _) if scope.steady => format!("({a} - 1)"),
                    (Family::Whole | Family::Number, _) => {
                        format!("((0 + {a}) * {})", pick % 3 + 2)
                    }
                    (Family::Boolean, 1) => format!("({a} = {b})"),
                    (Family::Boolean, 2) => format!("({a} AND {b})"),
                    (Family::Boolean, _) => format!("(NOT {a})"),
                    (Family::Text, 1) if !scope.steady => format!("({a} || {b})"),
                    (Family::Text, 2) => format!("lower({a})"),
                    (Family::Text, 3) => format!("upper({a})"),
                    _ => format!("(CASE WHEN {a} < {b} THEN {a} ELSE {b} END)"),
                }
            }
            Expr::Case(when, a, b) => {
                let (a, b) = (a.text(scope, family), b.text(scope, family));
                format!("(CASE WHEN {} THEN {a} ELSE {b} END)", when.text(scope))
            }
            Expr::Subquery(lookup) if scope.subqueries => {
                let (from, column) = lookup.text(scope, Some(family));
                match (column, family) {
                    (Some(_), Family::Boolean) | (None, _) => family.constant(0),
                    (Some(column), _) => {
                        let of = ["max", "min"][usize::from(lookup.column / 16 % 2)];
                        format!("(SELECT {of}({column}) {from})")
                    }
                }
            }
            Expr::Subquery(lookup) => family.constant(lookup.column),
            Expr::Trapped(pick, value) => {
                let value = value.text(scope, family);
                let column = scope.column(*pick, Family::Whole).filter(|_| scope.subqueries);
                match column {
                    Some(Named { text, .. }) if family.is_number() && text.contains('.') => {
                        let divisor = format!("SELECT n FROM {TRAP} WHERE {TRAP}.k = {text}");
                        format!("({value} + COALESCE(0 / ({divisor}), 0))")
                    }
                    _ => value,
                }
            }
        }
    }
}

/// A query in the FROM of a subquery, which reads the row around the subquery, though nothing else
/// of the subquery may do so.
#[derive(Clone, Debug)]
struct Within {
    form: Pick,
    /// The column of its own relation, and the one outside.
    own: Pick,
    outer: Pick,
}

impl Within {
    /// Its text and its columns; none: nothing outside can be named.
    fn text(&self, scope: &Scope<'_>, relation: &Relation) -> Option<(String, Vec<Family>)> {
        // A name that USING made would mean a column inside.
        let named: Vec<&Named> = scope.columns.iter().filter(|it| it.text.contains('.')).collect();
        let Named { text: outer, family, .. } = choose(&named, self.outer)?;
        let alias = format!("z{}", scope.depth);
        let columns: Vec<Named> = relation.under(&alias).collect();
        let like: Vec<&Named> = columns.iter().filter(|it| it.family == *family).collect();
        let from = format!("FROM {} {alias}", relation.name);
        let any = choose(&columns, self.own)?;
        let of_outer = vec![*family];
        let Some(own) = choose(&like, self.own).map(|it| &it.text) else {
            return Some(match self.form % 3 {
                0 => (format!("SELECT {outer} AS d0"), of_outer),
                1 => (format!("WITH q AS (SELECT {outer} AS d0) SELECT * FROM q"), of_outer),
                _ => {
                    let text = format!("SELECT {outer} AS d0, {} AS d1 {from}", any.text);
                    (text, vec![*family, any.family])
                }
            });
        };
        let text = match self.form % 10 {
            0 => format!("SELECT {outer} AS d0"),
            1 => format!("SELECT {own} AS d0 {from} WHERE {own} = {outer}"),
            2 => format!("SELECT {outer} AS d0 UNION SELECT {own} {from}"),
            3 => format!("SELECT {own} AS d0 {from} UNION ALL SELECT {outer}"),
            4 => format!("SELECT {own} AS d0 {from} WHERE {own} >= {outer} GROUP BY {own}"),
            // There is no least truth value.
            5 if *family != Family::Boolean => {
                format!("SELECT min({own}) AS d0 {from} WHERE {own} <> {outer}")
            }
            6 => {
                let order = format!("ORDER BY {own} DESC NULLS LAST LIMIT 2");
                format!("SELECT {own} AS d0 {from} WHERE {own} <> {outer} {order}")
            }
            7 => format!("WITH q(d0) AS (VALUES ({outer}), ({outer})) SELECT * FROM q"),
            8 => format!(
                "WITH q AS (SELECT {own} AS d0 {from} WHERE {own} = {outer}) SELECT * FROM q"
            ),
            _ => format!("SELECT DISTINCT {outer} AS d0 {from}"),
        };
        Some((text, of_outer))
    }
}

/// FROM and WHERE of a subquery in an expression, and which column it reads.
#[derive(Clone, Debug)]
pub struct Lookup {
    relation: Pick,
    /// Read in the place of the relation.
    within: Option<Within>,
    pub column: Pick,
    /// Columns inside and outside that are equal.
    link: Option<(Pick, Pick)>,
    filter: Option<Condition>,
    /// The filter names columns outside too.
    reaches: bool,
}

impl Lookup {
    /// Its FROM and WHERE, and its column of that family, if it has one.
    fn text(&self, scope: &Scope<'_>, family: Option<Family>) -> (String, Option<String>) {
        let relation = choose(scope.relations, self.relation).expect("there are tables");
        let alias = format!("y{}", scope.depth);
        let within = self.within.as_ref().and_then(|within| within.text(scope, relation));
        let (source, mut columns): (String, Vec<Named>) = match within {
            None => (format!("{} {alias}", relation.name), relation.under(&alias).collect()),
            Some((text, families)) => {
                let named = |(at, family): (usize, &Family)| (format!("d{at}"), *family);
                let columns = families.iter().enumerate().map(named).collect();
                let made = Relation { name: String::new(), columns };
                (format!("({text}) {alias}"), made.under(&alias).collect())
            }
        };
        let mut conditions = Vec::new();
        if let Some((inside, outside)) = self.link {
            let outer = scope.any(outside);
            let fitting: Vec<&Named> =
                columns.iter().filter(|it| it.family.broad() == outer.1.broad()).collect();
            let inner = choose(&fitting, inside);
            let inner = inner.filter(|_| outer.0.contains('.'));
            conditions.extend(inner.map(|inner| format!("{} = {}", inner.text, outer.0)));
        }
        let inside = Scope { columns: &columns, depth: scope.depth + 1, ..*scope };
        let column = match family {
            Some(family) => inside.column(self.column, family).map(|it| it.text.clone()),
            None => choose(inside.columns, self.column).map(|it| it.text.clone()),
        };
        if self.reaches {
            // A name that USING made would mean a column inside.
            columns.extend(scope.columns.iter().filter(|it| it.text.contains('.')).cloned());
        }
        let inside = Scope { columns: &columns, depth: scope.depth + 1, ..*scope };
        conditions.extend(self.filter.iter().map(|filter| filter.text(&inside)));
        let filter = if conditions.is_empty() { "" } else { " WHERE " };
        (format!("FROM {source}{filter}{}", conditions.join(" AND ")), column)
    }
}

#[derive(Clone, Debug)]
pub enum Condition {
    /// A column and a constant.
    Plain(Pick, Pick, Pick),
    /// A column and something of its kind.
    Compare(Pick, Pick, Expr),
    Null(Pick, bool),
    Between(Pick, Pick, Pick, bool),
    In(Pick, Vec<Pick>, bool),
    InQuery(Pick, Box<Lookup>, bool),
    Exists(Box<Lookup>, bool),
    Like(Pick, String, bool),
    Truth(Pick, Pick),
    Distinct(Pick, Expr, bool),
    /// It holds, or fails for a row of [`TRAP`].
    Trap(Pick),
    Both(Box<Condition>, Box<Condition>),
    Either(Box<Condition>, Box<Condition>),
    Not(Box<Condition>),
}

fn operator(pick: Pick) -> &'static str {
    ["=", "<", ">=", "<>", "<=", ">", "<>"][usize::from(pick % 7)]
}

impl Condition {
    pub fn text(&self, scope: &Scope<'_>) -> String {
        let not = |not: bool| if not { "NOT " } else { "" };
        match self {
            Condition::Plain(column, pick, value) => {
                let (text, family) = scope.any(*column);
                format!("{text} {} {}", operator(*pick), family.literal(*value, pick % 3 == 0))
            }
            Condition::Compare(column, pick, other) => {
                let (text, family) = scope.any(*column);
                let family = if pick % 2 == 0 { family } else { family.broad() };
                format!("{text} {} {}", operator(*pick), other.text(scope, family))
            }
            Condition::Null(column, is_not) => {
                format!("{} IS {}NULL", scope.any(*column).0, not(*is_not))
            }
            Condition::Between(column, a, b, is_not) => {
                let (text, family) = scope.any(*column);
                let (a, b) = (family.literal(*a, false), family.literal(*b, true));
                format!("{text} {}BETWEEN {a} AND {b}", not(*is_not))
            }
            Condition::In(column, list, is_not) => {
                let (text, family) = scope.any(*column);
                let list: Vec<String> =
                    list.iter().map(|it| family.literal(*it, it % 3 == 0)).collect();
                format!("{text} {}IN ({})", not(*is_not), list.join(", "))
            }
            Condition::InQuery(column, lookup, is_not) if scope.subqueries => {
                let (text, family) = scope.any(*column);
                match lookup.text(scope, Some(family.broad())) {
                    (from, Some(column)) => {
                        format!("{text} {}IN (SELECT {column} {from})", not(*is_not))
                    }
                    (_, None) => format!("{text} IS NOT NULL"),
                }
            }
            Condition::Exists(lookup, is_not) if scope.subqueries => {
                format!("{}EXISTS (SELECT 1 {})", not(*is_not), lookup.text(scope, None).0)
            }
            Condition::InQuery(_, lookup, is_not) | Condition::Exists(lookup, is_not) => {
                format!("{} IS {}NULL", scope.any(lookup.column).0, not(*is_not))
            }
            Condition::Like(column, pattern, is_not) => match scope.column(*column, Family::Text) {
                Some(column) => format!("{} {}LIKE '{pattern}'", column.text, not(*is_not)),
                None => Condition::Plain(*column, 3, 1).text(scope),
            },
            Condition::Truth(column, form) => match scope.column(*column, Family::Boolean) {
                Some(Named { text, .. }) => match form % 4 {
                    0 => text.clone(),
                    1 => format!("NOT {text}"),
                    2 => format!("{text} IS TRUE"),
                    _ => format!("{text} IS NOT FALSE"),
                },
                None => Condition::Plain(*column, 2, *form).text(scope),
            },
            Condition::Distinct(column, other, is_not) => {
                let (text, family) = scope.any(*column);
                format!("{text} IS {}DISTINCT FROM {}", not(*is_not), other.text(scope, family))
            }
            Condition::Trap(column) => {
                match scope.column(*column, Family::Whole).filter(|_| scope.subqueries) {
                    Some(Named { text, .. }) if text.contains('.') => {
                        let divisor = format!("SELECT n FROM {TRAP} WHERE {TRAP}.k = {text}");
                        format!("COALESCE(0 / ({divisor}), 0) = 0")
                    }
                    _ => Condition::Null(*column, true).text(scope),
                }
            }
            Condition::Both(a, b) => format!("({} AND {})", a.text(scope), b.text(scope)),
            Condition::Either(a, b) => format!("({} OR {})", a.text(scope), b.text(scope)),
            Condition::Not(a) => format!("(NOT ({}))", a.text(scope)),
        }
    }
}

fn lookup(depth: u32) -> BoxedStrategy<Box<Lookup>> {
    let link = prop::option::of((pick(), pick()));
    let filter = prop::option::of(condition(depth));
    let within =
        (pick(), pick(), pick()).prop_map(|(form, own, outer)| Within { form, own, outer });
    let within = prop::option::weighted(0.3, within);
    (pick(), within, pick(), link, filter, prop::bool::weighted(0.3))
        .prop_map(|(relation, within, column, link, filter, reaches)| {
            Box::new(Lookup { relation, within, column, link, filter, reaches })
        })
        .boxed()
}

pub fn expr(depth: u32) -> BoxedStrategy<Expr> {
    let column = pick().prop_map(Expr::Column);
    let constant = pick().prop_map(Expr::Constant);
    if depth == 0 {
        return prop_oneof![4 => column, 1 => constant].boxed();
    }
    let inner = expr(depth - 1).prop_map(Box::new).boxed();
    prop_oneof![
        6 => column,
        1 => constant,
        3 => (pick(), inner.clone(), inner.clone()).prop_map(|(pick, a, b)| Expr::Combined(pick, a, b)),
        1 => (condition(depth - 1), inner.clone(), inner.clone()).prop_map(|(c, a, b)| Expr::Case(Box::new(c), a, b)),
        1 => (pick(), inner).prop_map(|(pick, value)| Expr::Trapped(pick, value)),
        1 => lookup(depth - 1).prop_map(Expr::Subquery),
    ]
    .boxed()
}

pub fn condition(depth: u32) -> BoxedStrategy<Condition> {
    let no = || any::<bool>();
    let simple = prop_oneof![
        5 => (pick(), pick(), pick()).prop_map(|(a, op, b)| Condition::Plain(a, op, b)),
        1 => (pick(), no()).prop_map(|(a, no)| Condition::Null(a, no)),
        2 => (pick(), pick(), pick(), prop::bool::weighted(0.2)).prop_map(|(a, b, c, no)| Condition::Between(a, b, c, no)),
        1 => (pick(), prop::collection::vec(pick(), 1..8), no()).prop_map(|(a, list, no)| Condition::In(a, list, no)),
        1 => (pick(), "[abX_%]{1,3}", no()).prop_map(|(a, pattern, no)| Condition::Like(a, pattern, no)),
        1 => (pick(), pick()).prop_map(|(a, form)| Condition::Truth(a, form)),
    ];
    if depth == 0 {
        return simple.boxed();
    }
    let inner = condition(depth - 1).prop_map(Box::new).boxed();
    let (value, lookup) = (expr(depth - 1), lookup(depth - 1));
    prop_oneof![
        5 => simple,
        3 => (pick(), pick(), value.clone()).prop_map(|(a, op, b)| Condition::Compare(a, op, b)),
        1 => (pick(), value, no()).prop_map(|(a, b, no)| Condition::Distinct(a, b, no)),
        2 => pick().prop_map(Condition::Trap),
        1 => (pick(), lookup.clone(), no()).prop_map(|(a, query, no)| Condition::InQuery(a, query, no)),
        1 => (lookup, no()).prop_map(|(query, no)| Condition::Exists(query, no)),
        2 => (inner.clone(), inner.clone()).prop_map(|(a, b)| Condition::Both(a, b)),
        2 => (inner.clone(), inner.clone()).prop_map(|(a, b)| Condition::Either(a, b)),
        1 => inner.prop_map(Condition::Not),
    ]
    .boxed()
}
