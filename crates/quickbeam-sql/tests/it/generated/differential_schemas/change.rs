//! Generated changes, and the statements of a case as text.
//!
//! A column of a key is changed by a distance that no two values have, so that rows never collide
//! half-way, which would come out as the order is.

use proptest::prelude::*;

use super::query::{Condition, Expr, Named, Relation, Scope, condition, expr};
use super::schema::{Cell, Column, Family, MOST_COLUMNS, Pick, Table, cell, choose, names, pick};
use super::select::{Query, query};

type Sets = Vec<(Pick, Expr)>;

#[derive(Clone, Debug)]
enum Conflict {
    Fail,
    Nothing,
    /// Names a key, if there is one.
    NothingAt(Pick),
    Update(Pick, Sets, Option<Condition>),
}

#[derive(Clone, Debug)]
enum Change {
    Insert {
        rows: Vec<Vec<Cell>>,
        conflict: Conflict,
        columns: Option<Pick>,
    },
    InsertSelect {
        from: Pick,
        values: Vec<Expr>,
        filter: Option<Condition>,
        whole: bool,
        nothing: bool,
    },
    Update {
        sets: Sets,
        filter: Option<Condition>,
    },
    UpdateFrom {
        other: Pick,
        link: (Pick, Pick),
        set: (Pick, Pick),
        filter: Option<Condition>,
    },
    Delete {
        filter: Condition,
    },
}

#[derive(Clone, Debug)]
pub struct Changing {
    table: Pick,
    change: Change,
    returning: Option<Vec<Pick>>,
}

#[derive(Clone, Debug)]
pub enum Statement {
    Query(Query),
    Change(Changing),
    /// A transaction with a savepoint: what comes before and after it, whether it is gone back to,
    /// and whether the transaction commits.
    Transaction {
        before: Vec<Changing>,
        inside: Vec<Statement>,
        back: bool,
        after: Vec<Changing>,
        commit: bool,
    },
}

/// What is done with the answer.
#[derive(Clone, Debug, Copy, PartialEq, Eq)]
pub enum Step {
    Query { ordered: bool },
    Change,
    Control,
}

/// Writes statements for tables.
pub struct Writer<'s> {
    pub tables: &'s [Table],
    pub relations: Vec<Relation>,
    /// How many changes of keys there have been.
    shifts: u32,
    /// How many times all rows of a table have been inserted again.
    copies: u32,
}

impl Writer<'_> {
    pub fn new(tables: &[Table]) -> Writer<'_> {
        let columns = |table: &Table| {
            let columns = table.columns.iter().enumerate();
            columns.map(|(at, column)| (format!("c{at}"), column.kind.family())).collect()
        };
        let relation =
            |table: &Table| Relation { name: table.name.clone(), columns: columns(table) };
        Writer { tables, relations: tables.iter().map(relation).collect(), shifts: 0, copies: 0 }
    }

    pub fn write(&mut self, statement: &Statement, out: &mut Vec<(String, Step)>) {
        match statement {
            Statement::Query(query) => {
                let written = query.written(&self.relations);
                out.push((written.text, Step::Query { ordered: written.ordered }));
            }
            Statement::Change(change) => out.push((self.change(change), Step::Change)),
            Statement::Transaction { before, inside, back, after, commit } => {
                let control = |text: &str| (text.to_owned(), Step::Control);
                out.push(control("BEGIN"));
                before.iter().for_each(|it| out.push((self.change(it), Step::Change)));
                out.push(control("SAVEPOINT s"));
                inside.iter().for_each(|it| self.write(it, out));
                out.push(control(if *back {
                    "ROLLBACK TO SAVEPOINT s"
                } else {
                    "RELEASE SAVEPOINT s"
                }));
                after.iter().for_each(|it| out.push((self.change(it), Step::Change)));
                out.push(control(if *commit { "COMMIT" } else { "ROLLBACK" }));
            }
        }
    }

    /// The distance by which keys are moved next.
    fn shift(&mut self) -> Option<i32> {
        let shift = (self.shifts < 4).then_some(1000 << self.shifts);
        self.shifts += 1;
        shift
    }

    fn change(&mut self, Changing { table, change, returning }: &Changing) -> String {
        let table = choose(self.tables, *table).expect("there are tables");
        let text = match change {
            Change::Insert { rows, conflict, columns } => {
                self.insert(table, rows, conflict, *columns)
            }
            Change::InsertSelect { from, values, filter, whole, nothing } => {
                self.insert_select(table, *from, values, filter.as_ref(), *whole, *nothing)
            }
            Change::Update { sets, filter } => {
                let columns = named(table, &table.name);
                let scope = self.scope(&columns);
                let filter = filter
                    .as_ref()
                    .map_or(String::new(), |it| format!(" WHERE {}", it.text(&scope)));
                let sets = self.sets(table, &columns, sets);
                format!("UPDATE {} SET {sets}{filter}", table.name)
            }
            Change::UpdateFrom { other, link, set, filter } => {
                self.update_from(table, *other, *link, *set, filter.as_ref())
            }
            Change::Delete { filter } => {
                let columns = named(table, &table.name);
                format!("DELETE FROM {} WHERE {}", table.name, filter.text(&self.scope(&columns)))
            }
        };
        let column = |pick: &Pick| format!("c{}", usize::from(*pick) % table.columns.len());
        match returning.as_deref() {
            None => text,
            // `*` has the columns of FROM too; SQLite does not say them.
            Some([]) if matches!(change, Change::UpdateFrom { .. }) => {
                let all: Vec<usize> = (0..table.columns.len()).collect();
                format!("{text} RETURNING {}", names(&all))
            }
            Some([]) => format!("{text} RETURNING *"),
            Some(picks) => format!(
                "{text} RETURNING {}",
                picks.iter().map(column).collect::<Vec<_>>().join(", ")
            ),
        }
    }

    fn scope<'s>(&'s self, columns: &'s [Named]) -> Scope<'s> {
        Scope { relations: &self.relations, columns, depth: 0, subqueries: true, steady: true }
    }

    fn insert(
        &mut self,
        table: &Table,
        rows: &[Vec<Cell>],
        conflict: &Conflict,
        columns: Option<Pick>,
    ) -> String {
        let text = match columns {
            // All but one column.
            Some(pick) if table.columns.len() > 1 => {
                table.insert(rows, Some(usize::from(pick) % table.columns.len()))
            }
            _ => table.insert(rows, None),
        };
        let targets = table.targets();
        let target = |pick: Pick| choose(&targets, pick).map(|it| names(it.as_slice()));
        let end = match conflict {
            Conflict::Fail => String::new(),
            Conflict::Nothing => " ON CONFLICT DO NOTHING".to_owned(),
            Conflict::NothingAt(pick) => {
                target(*pick).map_or(String::new(), |it| format!(" ON CONFLICT ({it}) DO NOTHING"))
            }
            Conflict::Update(pick, sets, filter) => match target(*pick) {
                None => String::new(),
                Some(target) => {
                    let mut columns = named(table, &table.name);
                    columns.extend(named(table, "excluded"));
                    let filter = filter.as_ref().map_or(String::new(), |it| {
                        format!(
                            " WHERE {}",
                            it.text(&Scope { subqueries: false, ..self.scope(&columns) })
                        )
                    });
                    let sets = self.sets(table, &columns, sets);
                    format!(" ON CONFLICT ({target}) DO UPDATE SET {sets}{filter}")
                }
            },
        };
        text + &end
    }

    /// Values for columns, without subqueries: SQLite's would see what the statement has already
    /// changed.
    fn sets(&mut self, table: &Table, columns: &[Named], sets: &Sets) -> String {
        let mut done = Vec::new();
        let mut texts = Vec::new();
        for (pick, expr) in sets {
            let at = usize::from(*pick) % table.columns.len();
            if done.contains(&at) {
                continue;
            }
            done.push(at);
            let column = &table.columns[at];
            let value = if column.unique {
                let shift = if column.is_wide() { self.shift() } else { None };
                let own = format!("{}.c{at}", table.name);
                shift.map_or(own.clone(), |shift| format!("{own} + {shift}"))
            } else {
                let scope = Scope { subqueries: false, ..self.scope(columns) };
                expr.text(&scope, column.kind.family())
            };
            texts.push(format!("c{at} = {value}"));
        }
        texts.join(", ")
    }

    fn insert_select(
        &mut self,
        table: &Table,
        from: Pick,
        values: &[Expr],
        filter: Option<&Condition>,
        whole: bool,
        nothing: bool,
    ) -> String {
        let source = choose(self.tables, from).expect("there are tables");
        let shift = self.shift();
        let whole = whole && self.copies < 2;
        self.copies += u32::from(whole);
        let columns = named(source, "x0");
        let scope = self.scope(&columns);
        let value = |(column, expr): (&Column, &Expr)| {
            let family = column.kind.family();
            if !column.unique {
                return expr.text(&scope, family);
            }
            // From a key, so that most values are different.
            let fitting =
                (source.columns.iter().enumerate()).filter(|(_, it)| it.kind.family().fits(family));
            let best = fitting.clone().find(|it| it.1.unique).or(fitting.clone().next());
            match (best, shift) {
                (None, _) => expr.text(&scope, family),
                (Some((at, _)), Some(shift)) if column.is_wide() => format!("x0.c{at} + {shift}"),
                (Some((at, _)), Some(shift)) if family == Family::Text => {
                    format!("x0.c{at} || 'q{shift}'")
                }
                (Some((at, _)), _) => format!("x0.c{at}"),
            }
        };
        let values: Vec<String> = table.columns.iter().zip(values).map(value).collect();
        let filter = filter.map_or("TRUE".to_owned(), |it| it.text(&scope));
        let all = |count: usize| {
            let terms: Vec<String> = (1..=count).map(|at| format!("{at} NULLS FIRST")).collect();
            terms.join(", ")
        };
        let rows = if whole {
            source.name.clone()
        } else {
            format!(
                "(SELECT * FROM {} ORDER BY {} LIMIT 6)",
                source.name,
                all(source.columns.len())
            )
        };
        let end = if nothing {
            // Which of two rows comes first decides.
            format!(" ORDER BY {} ON CONFLICT DO NOTHING", all(values.len()))
        } else {
            String::new()
        };
        format!(
            "INSERT INTO {} SELECT {} FROM {rows} x0 WHERE {filter}{end}",
            table.name,
            values.join(", ")
        )
    }

    fn update_from(
        &mut self,
        table: &Table,
        other: Pick,
        link: (Pick, Pick),
        set: (Pick, Pick),
        filter: Option<&Condition>,
    ) -> String {
        let other = choose(self.tables, other).expect("there are tables");
        let own = named(table, &table.name);
        let find = |wanted: Family, like: bool, pick: Pick| {
            let fits = |column: &&(usize, &Column)| {
                let family = column.1.kind.family();
                if like { family.broad() == wanted.broad() } else { family.fits(wanted) }
            };
            let all: Vec<(usize, &Column)> = other.columns.iter().enumerate().collect();
            let fitting: Vec<&(usize, &Column)> = all.iter().filter(fits).collect();
            choose(&fitting, pick).map(|it| it.0)
        };
        let linked = choose(&own, link.0).expect("there are columns");
        let by = find(linked.family, true, link.1);
        let settable: Vec<usize> = (0..table.columns.len())
            .filter(|at| {
                !table.columns[*at].unique && table.columns[*at].kind.family() != Family::Boolean
            })
            .collect();
        let target = choose(&settable, set.0).copied();
        let value = target.and_then(|at| find(table.columns[at].kind.family(), false, set.1));
        let filter =
            filter.map_or(String::new(), |it| format!(" AND {}", it.text(&self.scope(&own))));
        match (by, target, value) {
            (Some(by), Some(target), Some(value)) => format!(
                "UPDATE {0} SET c{target} = s.m FROM (SELECT y.c{by} AS k, max(y.c{value}) AS m FROM {1} y GROUP BY y.c{by}) s WHERE s.k = {2}{filter}",
                table.name, other.name, linked.text
            ),
            _ => format!("DELETE FROM {} WHERE {} IS NULL{filter}", table.name, linked.text),
        }
    }
}

fn named(table: &Table, alias: &str) -> Vec<Named> {
    let columns = table.columns.iter().enumerate();
    columns
        .map(|(at, column)| Named {
            text: format!("{alias}.c{at}"),
            name: format!("c{at}"),
            family: column.kind.family(),
        })
        .collect()
}

fn changing() -> BoxedStrategy<Changing> {
    let row = prop::collection::vec(cell(), MOST_COLUMNS);
    let sets = prop::collection::vec((pick(), expr(2)), 1..4);
    let filter = || prop::option::weighted(0.8, condition(2));
    let conflict = prop_oneof![
        2 => Just(Conflict::Fail),
        1 => Just(Conflict::Nothing),
        1 => pick().prop_map(Conflict::NothingAt),
        3 => (pick(), sets.clone(), prop::option::weighted(0.3, condition(1)))
            .prop_map(|(target, sets, filter)| Conflict::Update(target, sets, filter)),
    ];
    let columns = prop::option::weighted(0.2, pick());
    let change = prop_oneof![
        4 => (prop::collection::vec(row, 1..5), conflict, columns)
            .prop_map(|(rows, conflict, columns)| Change::Insert { rows, conflict, columns }),
        2 => (pick(), prop::collection::vec(expr(2), MOST_COLUMNS), filter(), any::<bool>(), any::<bool>())
            .prop_map(|(from, values, filter, whole, nothing)| Change::InsertSelect { from, values, filter, whole, nothing }),
        4 => (sets, filter()).prop_map(|(sets, filter)| Change::Update { sets, filter }),
        2 => (pick(), (pick(), pick()), (pick(), pick()), prop::option::weighted(0.4, condition(1)))
            .prop_map(|(other, link, set, filter)| Change::UpdateFrom { other, link, set, filter }),
        1 => condition(2).prop_map(|filter| Change::Delete { filter }),
    ];
    let returning = prop::option::weighted(0.4, prop::collection::vec(pick(), 0..4));
    (pick(), change, returning)
        .prop_map(|(table, change, returning)| Changing { table, change, returning })
        .boxed()
}

pub fn statement() -> BoxedStrategy<Statement> {
    let queries = query(1).prop_map(Statement::Query).boxed();
    let changing = changing();
    let changes = changing.clone().prop_map(Statement::Change).boxed();
    let some = || prop::collection::vec(changing.clone(), 0..2);
    let inside = prop_oneof![1 => queries.clone(), 2 => changes.clone()];
    prop_oneof![
        16 => queries,
        6 => changes,
        1 => (some(), prop::collection::vec(inside, 1..4), any::<bool>(), some(), any::<bool>())
            .prop_map(|(before, inside, back, after, commit)| Statement::Transaction { before, inside, back, after, commit }),
    ]
    .boxed()
}
