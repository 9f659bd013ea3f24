//! SEARCH and CYCLE of a recursive query: columns that order its rows, or end its cycles.
//!
//! As in PostgreSQL, the terms of the query become derived tables with these columns in addition. A
//! row of a search has the list of the rows on its way (depth first), or its depth and itself
//! (breadth first). A row of a cycle clause has the list of the rows on its way, and a mark if it
//! is among them itself; the recursive term reads rows without the mark only.

use std::borrow::Cow;
use std::iter::Peekable;
use std::slice::Iter;
use std::sync::Arc;

use smol_str::SmolStr;
use sqlparser::ast::{
    self, BinaryOperator, Cte, Expr as Ast, Ident, SelectItem, SetExpr, TableAliasColumnDef,
    TableFactor,
};

use super::{Sight, column_of, derived_table, named_item, query_of, quoted, select_of};
use crate::bind::{Binder, Scope, fold};
use crate::error::{Result, SqlError, SqlState};
use crate::parse::{CycleClause, Traversal, count_table_names, traversal};

/// The derived table of a term.
const TERM: &str = "*term*";

#[cold]
fn fault(state: SqlState, message: impl Into<String>, position: usize) -> SqlError {
    SqlError::new(state, message.into()).at(position)
}

/// Returns the queries of WITH. Those of WITH RECURSIVE may read later ones: each comes after those
/// that it reads, unless they read each other.
pub(in crate::bind) fn in_order_of_reading(with: &ast::With) -> Cow<'_, [Cte]> {
    let written = Cow::Borrowed(with.cte_tables.as_slice());
    if !with.recursive || with.cte_tables.len() < 2 {
        return written;
    }
    // A query with its clauses, which are entries after it.
    let mut groups: Vec<(&Cte, Vec<&Cte>)> = Vec::new();
    for common in &with.cte_tables {
        match groups.last_mut() {
            Some((_, clauses)) if traversal(common).is_some() => clauses.push(common),
            _ => groups.push((common, Vec::new())),
        }
    }
    let names: Vec<SmolStr> = groups.iter().map(|(it, _)| fold(&it.alias.name)).collect();
    let reads = |number: usize| -> Vec<usize> {
        let text = groups.get(number).map(|(it, _)| it.query.to_string()).unwrap_or_default();
        let is_read = |(other, name): &(usize, &SmolStr)| {
            *other != number && count_table_names(&text, name) > 0
        };
        names.iter().enumerate().filter(is_read).map(|(other, _)| other).collect()
    };
    let reads: Vec<Vec<usize>> = (0..groups.len()).map(reads).collect();
    if reads.iter().enumerate().all(|(number, read)| read.iter().all(|other| *other < number)) {
        return written;
    }
    let mut order: Vec<usize> = Vec::new();
    while order.len() < groups.len() {
        let is_next = |number: &usize| {
            !order.contains(number)
                && reads.get(*number).is_none_or(|read| read.iter().all(|it| order.contains(it)))
        };
        match (0..groups.len()).find(is_next) {
            Some(number) => order.push(number),
            None => return written,
        }
    }
    let ordered = order.into_iter().filter_map(|number| groups.get(number));
    let entries = ordered.flat_map(|(it, clauses)| std::iter::once(it).chain(clauses));
    Cow::Owned(entries.map(|it| (*it).clone()).collect())
}

impl Binder<'_> {
    /// Returns the next query of WITH, in which the clauses after it are columns.
    pub(in crate::bind) fn next_common<'q>(
        &mut self,
        tables: &mut Peekable<Iter<'q, Cte>>,
        outer: Option<&Arc<Scope>>,
    ) -> Result<Option<Cow<'q, Cte>>> {
        let Some(common) = tables.next() else { return Ok(None) };
        let mut clauses = Vec::new();
        while let Some(clause) = tables.peek().copied().and_then(traversal) {
            clauses.push(clause);
            tables.next();
        }
        if clauses.is_empty() {
            return Ok(Some(Cow::Borrowed(common)));
        }
        self.with_traversals(common, &clauses, outer.cloned()).map(|made| Some(Cow::Owned(made)))
    }

    fn with_traversals(
        &mut self,
        common: &Cte,
        clauses: &[Traversal<'_>],
        outer: Option<Arc<Scope>>,
    ) -> Result<Cte> {
        let position = self.place_of(&common.alias.name);
        let name = fold(&common.alias.name);
        let SetExpr::SetOperation { left, op, set_quantifier, right } = &*common.query.body else {
            return Err(fault(SqlState::SyntaxError, "WITH query is not recursive", position));
        };
        let columns = self.traversed_columns(common, left, outer)?;
        for (side, term) in [("left", left), ("right", right)] {
            if !matches!(**term, SetExpr::Select(_)) {
                let message = format!(
                    "with a SEARCH or CYCLE clause, the {side} side of the UNION must be a SELECT"
                );
                return Err(fault(SqlState::SyntaxError, message, position));
            }
        }
        let mut terms = Terms {
            names: columns.iter().map(SmolStr::to_string).collect(),
            base: columns.iter().map(|column| term_column(column)).collect(),
            step: columns.iter().map(|column| term_column(column)).collect(),
            read: Vec::new(),
            stops: None,
        };
        for clause in clauses {
            self.check_traversal(clause, &columns, &terms.names)?;
            terms.add(clause);
        }
        let mut recursive = (**right).clone();
        if !terms.read_from(&mut recursive, &name) {
            let message = format!(
                "with a SEARCH or CYCLE clause, the recursive reference to WITH query \"{name}\" must be at the top level of its right-hand SELECT"
            );
            return Err(fault(SqlState::FeatureNotSupported, message, position));
        }
        let left = terms.term((**left).clone(), terms.base.clone(), columns.len())?;
        let right = terms.term(recursive, terms.step.clone(), terms.names.len())?;
        let body = SetExpr::SetOperation {
            op: *op,
            set_quantifier: *set_quantifier,
            left: Box::new(left),
            right: Box::new(right),
        };
        let query = ast::Query { body: Box::new(body), ..(*common.query).clone() };
        Ok(Cte { query: Box::new(query), ..common.clone() })
    }

    /// Returns the names of the columns of a recursive query without the clauses.
    fn traversed_columns(
        &mut self,
        common: &Cte,
        left: &SetExpr,
        outer: Option<Arc<Scope>>,
    ) -> Result<Vec<SmolStr>> {
        let base = query_of(left.clone());
        let bound = self.nested(|binder| binder.query(&base, outer))?;
        let mut names: Vec<SmolStr> =
            bound.columns.iter().map(|column| column.name.clone()).collect();
        for (name, given) in names.iter_mut().zip(&common.alias.columns) {
            *name = fold(&given.name);
        }
        Ok(names)
    }

    /// Checks the names in a clause: those of columns, and those that it adds.
    fn check_traversal(
        &self,
        clause: &Traversal<'_>,
        columns: &[SmolStr],
        taken: &[String],
    ) -> Result<()> {
        let (what, read, added): (_, &[TableAliasColumnDef], Vec<(&str, &Ident)>) = match clause {
            Traversal::DepthFirst(by, sequence) | Traversal::BreadthFirst(by, sequence) => {
                ("search", by, vec![("search sequence", sequence)])
            }
            Traversal::Cycle(cycle) => {
                let added = vec![("cycle mark", cycle.mark), ("cycle path", cycle.path)];
                ("cycle", cycle.columns, added)
            }
        };
        for (number, column) in read.iter().enumerate() {
            let name = fold(&column.name);
            let position = self.place_of(&column.name);
            if !columns.contains(&name) {
                let message = format!("{what} column \"{name}\" not in WITH query column list");
                return Err(fault(SqlState::SyntaxError, message, position));
            }
            if read.iter().take(number).any(|other| fold(&other.name) == name) {
                let message = format!("{what} column \"{name}\" specified more than once");
                return Err(fault(SqlState::DuplicateColumn, message, position));
            }
        }
        for (what, added) in &added {
            let name = fold(added);
            let is_taken = taken.iter().any(|taken| *taken == name);
            if is_taken {
                let message =
                    format!("{what} column name \"{name}\" already used in WITH query column list");
                return Err(fault(SqlState::SyntaxError, message, self.place_of(added)));
            }
        }
        if let [(_, mark), (_, path)] = &added[..]
            && fold(mark) == fold(path)
        {
            let message = "cycle mark column name and cycle path column name are the same";
            return Err(fault(SqlState::SyntaxError, message, self.place_of(path)));
        }
        Ok(())
    }
}

/// The two terms of a recursive query while clauses add columns.
struct Terms {
    /// The columns of the query.
    names: Vec<String>,
    /// Their values in the first term, and in the recursive one.
    base: Vec<Ast>,
    step: Vec<Ast>,
    /// The added columns, which the recursive term reads of the rows before.
    read: Vec<String>,
    /// The mark that ends a cycle, with its column.
    stops: Option<(String, Ast)>,
}

fn is_plain_star(options: &ast::WildcardAdditionalOptions) -> bool {
    options.opt_exclude.is_none() && options.opt_except.is_none()
}

fn star_of(name: &str, options: &ast::WildcardAdditionalOptions) -> SelectItem {
    let table = ast::SelectItemQualifiedWildcardKind::ObjectName(vec![quoted(name)].into());
    let wildcard_token = ast::helpers::attached_token::AttachedToken::empty();
    SelectItem::QualifiedWildcard(
        table,
        ast::WildcardAdditionalOptions { wildcard_token, ..options.clone() },
    )
}

/// Returns the names of the items of FROM, unless an item has none or joins merge columns.
fn names_of(from: &[ast::TableWithJoins]) -> Option<Vec<SmolStr>> {
    let mut names = Vec::new();
    for item in from {
        names.push(name_of(&item.relation)?);
        for join in &item.joins {
            use ast::JoinOperator as Join;
            let (Join::Join(constraint)
            | Join::Inner(constraint)
            | Join::Left(constraint)
            | Join::LeftOuter(constraint)
            | Join::CrossJoin(constraint)) = &join.join_operator
            else {
                return None;
            };
            if matches!(constraint, ast::JoinConstraint::Using(_) | ast::JoinConstraint::Natural) {
                return None;
            }
            names.push(name_of(&join.relation)?);
        }
    }
    Some(names)
}

fn name_of(factor: &TableFactor) -> Option<SmolStr> {
    match factor {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. } => Some(fold(&alias.name)),
        TableFactor::Table { name, args: None, .. } => name.0.last()?.as_ident().map(fold),
        _ => None,
    }
}

fn term_column(name: &str) -> Ast {
    column_of(TERM, name)
}

fn call(name: &str, arguments: Vec<Ast>) -> Ast {
    let argument = |expr| ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr));
    Ast::Function(ast::Function {
        name: vec![Ident::new(name)].into(),
        uses_odbc_syntax: false,
        parameters: ast::FunctionArguments::None,
        args: ast::FunctionArguments::List(ast::FunctionArgumentList {
            duplicate_treatment: None,
            args: arguments.into_iter().map(argument).collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

fn binary(left: Ast, op: BinaryOperator, right: Ast) -> Ast {
    Ast::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

fn big_integer(number: &str) -> Ast {
    let number = ast::Value::Number(number.to_owned(), false);
    Ast::Cast {
        kind: ast::CastKind::DoubleColon,
        expr: Box::new(Ast::Value(number.into())),
        data_type: ast::DataType::BigInt(None),
        format: None,
    }
}

/// Returns the row of these columns of a term, after the value `first`.
fn row_of(first: Option<Ast>, columns: &[TableAliasColumnDef]) -> Ast {
    let columns = columns.iter().map(|column| term_column(&fold(&column.name)));
    call("row", first.into_iter().chain(columns).collect())
}

impl Terms {
    fn add(&mut self, clause: &Traversal<'_>) {
        match clause {
            Traversal::DepthFirst(by, sequence) => self.add_way(sequence, by),
            Traversal::BreadthFirst(by, sequence) => {
                let name = fold(sequence);
                let before = Ast::CompoundFieldAccess {
                    root: Box::new(Ast::Nested(Box::new(term_column(&name)))),
                    access_chain: vec![ast::AccessExpr::Dot(Ast::Identifier(quoted("f1")))],
                };
                let depth = binary(before, BinaryOperator::Plus, big_integer("1"));
                let base = row_of(Some(big_integer("0")), by);
                self.add_column(&name, base, row_of(Some(depth), by));
            }
            Traversal::Cycle(CycleClause { columns, mark, path, marked, unmarked }) => {
                let way = term_column(&fold(path));
                let is_closed = Ast::AnyOp {
                    left: Box::new(row_of(None, columns)),
                    compare_op: BinaryOperator::Eq,
                    right: Box::new(way),
                    is_some: false,
                };
                let branch = ast::CaseWhen { condition: is_closed, result: (*marked).clone() };
                let step = Ast::Case {
                    case_token: ast::helpers::attached_token::AttachedToken::empty(),
                    end_token: ast::helpers::attached_token::AttachedToken::empty(),
                    operand: None,
                    conditions: vec![branch],
                    else_result: Some(Box::new((*unmarked).clone())),
                };
                let name = fold(mark);
                self.stops = Some((name.to_string(), (*marked).clone()));
                self.add_column(&name, (*unmarked).clone(), step);
                self.add_way(path, columns);
            }
        }
    }

    /// Adds the list of the rows on the way.
    fn add_way(&mut self, name: &Ident, columns: &[TableAliasColumnDef]) {
        let name = fold(name);
        let row = row_of(None, columns);
        let base = Ast::Array(ast::Array { elem: vec![row.clone()], named: true });
        let step = binary(term_column(&name), BinaryOperator::StringConcat, row);
        self.add_column(&name, base, step);
    }

    fn add_column(&mut self, name: &str, base: Ast, step: Ast) {
        self.names.push(name.to_owned());
        self.read.push(name.to_owned());
        self.base.push(base);
        self.step.push(step);
    }

    /// Makes the recursive term return the added columns of the rows before. Returns false if its
    /// FROM does not name the query.
    fn read_from(&self, term: &mut SetExpr, query: &str) -> bool {
        let SetExpr::Select(select) = term else { return false };
        let factors = select.from.iter().flat_map(|item| {
            std::iter::once(&item.relation).chain(item.joins.iter().map(|join| &join.relation))
        });
        let name = factors.into_iter().find_map(|factor| match factor {
            TableFactor::Table { name, alias, args: None, .. } => {
                let [part] = &name.0[..] else { return None };
                let own = part.as_ident().filter(|own| fold(own) == query)?;
                Some(alias.as_ref().map_or_else(|| fold(own), |alias| fold(&alias.name)))
            }
            _ => None,
        });
        let Some(name) = name else { return false };
        self.replace_stars(select, &name);
        let read = self.read.iter().map(|column| named_item(column_of(&name, column), column));
        select.projection.extend(read);
        if let Some((mark, marked)) = &self.stops {
            let goes_on = binary(column_of(&name, mark), BinaryOperator::NotEq, marked.clone());
            select.selection = Some(match select.selection.take() {
                None => goes_on,
                Some(condition) => {
                    binary(Ast::Nested(Box::new(condition)), BinaryOperator::And, goes_on)
                }
            });
        }
        true
    }

    /// Replaces each `*` of a recursive term by columns, without the added ones of the rows before,
    /// whose name in FROM is `name`.
    fn replace_stars(&self, select: &mut ast::Select, name: &str) {
        let own = || {
            let columns = self.names.iter().take(self.names.len() - self.read.len());
            columns.map(|column| named_item(column_of(name, column), column))
        };
        let mut items = Vec::with_capacity(select.projection.len());
        for item in std::mem::take(&mut select.projection) {
            match &item {
                SelectItem::Wildcard(options) if is_plain_star(options) => {
                    let Some(names) = names_of(&select.from) else {
                        items.push(item);
                        continue;
                    };
                    for other in names {
                        match other == name {
                            true => items.extend(own()),
                            false => items.push(star_of(&other, options)),
                        }
                    }
                }
                SelectItem::QualifiedWildcard(
                    ast::SelectItemQualifiedWildcardKind::ObjectName(table),
                    options,
                ) if is_plain_star(options)
                    && matches!(&table.0[..], [part] if part.as_ident().is_some_and(|own| fold(own) == name)) =>
                {
                    items.extend(own());
                }
                _ => items.push(item),
            }
        }
        select.projection = items;
    }

    /// Returns a term as a query of a derived table with the first `width` columns.
    fn term(&self, term: SetExpr, values: Vec<Ast>, width: usize) -> Result<SetExpr> {
        let names: Vec<&str> = self.names.iter().take(width).map(String::as_str).collect();
        let table = derived_table(query_of(term), TERM, &names, Sight::Closed);
        let items = values.into_iter().zip(&self.names);
        let items: Vec<SelectItem> = items.map(|(value, name)| named_item(value, name)).collect();
        select_of(items, vec![table])
    }
}
