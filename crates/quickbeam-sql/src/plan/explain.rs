//! EXPLAIN: a plan as text, one line a step.

use std::fmt::Write;

use super::{
    AccessPath, Action, HashJoin, HashJoinKind, InvertedPath, Join, KeyRangeExpr, Plan, PlanNode,
    QueryPlan, TableAccess,
};
use crate::bind::{
    FunctionCall, SlotShape, Source, SubqueryKind, TableFunction, TableFunctionKind,
};
use crate::catalog::text::quoted;
use crate::catalog::{KeyColumn, TriggerEvent};
use crate::expression::{Expr, Truth};
use crate::types::{CollateStep, LetterForm, Value};

/// Row counts of the nodes, in the order in which [`explain`] writes them; for EXPLAIN ANALYZE.
pub type Counts = [u64];

/// The plan as lines.
pub fn explain(plan: &Plan, counts: Option<&Counts>) -> Vec<String> {
    let slots = &plan.slots;
    let mut writer =
        Writer { slots, lines: Vec::new(), counts, next: 0, vectorized: false, workers: [None; 2] };
    writer.action(&plan.action, 0);
    writer.line(0, format!("Execution: {}", plan.mode_reason));
    writer.lines
}

struct Writer<'w> {
    slots: &'w [SlotShape],
    lines: Vec<String>,
    counts: Option<&'w Counts>,
    next: usize,
    /// The next node is vectorized.
    vectorized: bool,
    /// The workers planned for it, and for the inner rows of a join.
    workers: [Option<usize>; 2],
}

impl Writer<'_> {
    fn line(&mut self, depth: usize, text: String) {
        let arrow = if depth == 0 { "" } else { "-> " };
        self.lines.push(format!("{}{arrow}{text}", "  ".repeat(depth)));
    }

    fn detail(&mut self, depth: usize, text: String) {
        self.lines.push(format!("{}     {text}", "  ".repeat(depth)));
    }

    fn action(&mut self, action: &Action, depth: usize) {
        match action {
            Action::Query(query) => self.query(query, depth),
            Action::Insert(insert) => {
                self.line(depth, format!("Insert into {}", insert.table.name));
                match &insert.query {
                    Some((query, ..)) => self.query(query, depth + 1),
                    None => self.line(depth + 1, format!("Values: {} rows", insert.rows.len())),
                }
            }
            Action::Change(change) => {
                let what = if change.assignments.is_some() { "Update" } else { "Delete from" };
                self.line(depth, format!("{what} {}", change.table.name));
                self.node(&change.root, depth + 1);
            }
            Action::Instead(instead) => {
                let what = match instead.event {
                    TriggerEvent::Insert => "Insert into",
                    TriggerEvent::Update => "Update",
                    _ => "Delete from",
                };
                self.line(depth, format!("{what} {}, by triggers", instead.table.name));
                self.query(&instead.query, depth + 1);
            }
            Action::Merge(merge) => {
                self.line(depth, format!("Merge on {}", merge.table.name));
                self.node(&merge.root, depth + 1);
            }
            Action::ChangingWith(with) => {
                for part in &with.parts {
                    let name = self.slots.get(part.slot).map_or("", |slot| slot.name.as_str());
                    let name = format!("CTE {name}");
                    self.line(depth, name);
                    self.action(&part.action, depth + 1);
                }
                self.action(&with.main, depth);
            }
        }
    }

    fn query(&mut self, query: &QueryPlan, depth: usize) {
        self.node(&query.root, depth);
    }

    /// Returns what EXPLAIN ANALYZE adds to a node's line.
    fn counted(&mut self) -> String {
        let number = self.next;
        self.next += 1;
        match self.counts.and_then(|counts| counts.get(number)) {
            Some(rows) => format!(" (actual rows={rows})"),
            None => String::new(),
        }
    }

    fn condition(&mut self, depth: usize, name: &str, condition: Option<&Expr>) {
        if let Some(condition) = condition {
            let text = format!("{name}: {}", self.text(condition));
            self.detail(depth, text);
        }
    }

    fn hash_join(&mut self, join: &HashJoin, depth: usize, counted: &str) {
        let kind = match join.kind {
            HashJoinKind::Inner => "Hash Join",
            HashJoinKind::Left => "Hash Left Join",
            HashJoinKind::Full => "Hash Full Join",
            HashJoinKind::RightSemi => "Hash Right Semi Join",
            HashJoinKind::RightAnti => "Hash Right Anti Join",
        };
        self.line(depth, format!("{kind}{counted}"));
        self.write_workers(depth);
        let pairs = join.outer_keys.iter().zip(&join.inner_keys);
        let pairs = pairs.map(|(a, b)| format!("{} = {}", self.text(a), self.text(b)));
        let pairs = pairs.collect::<Vec<_>>().join(" AND ");
        self.detail(depth, format!("Hash Cond: {pairs}"));
        self.condition(depth, "Join Filter", join.condition.as_ref());
        self.node(&join.outer, depth + 1);
        self.node(&join.inner, depth + 1);
        if let Some(check) = &join.check {
            self.node(check, depth + 1);
        }
    }

    fn node(&mut self, node: &PlanNode, depth: usize) {
        if let PlanNode::Vectorized(batch) = node {
            self.vectorized = true;
            self.workers = [batch.workers, batch.build_workers].map(|it| Some(it?.workers));
            return self.node(&batch.step, depth);
        }
        let vectorized = if std::mem::take(&mut self.vectorized) { " (vectorized)" } else { "" };
        let counted = format!("{vectorized}{}", self.counted());
        match node {
            PlanNode::SingleRow => self.line(depth, format!("Result{counted}")),
            PlanNode::Table(access) => self.access(access, depth, &counted),
            PlanNode::Values { rows, once, .. } => {
                let (name, what) = if *once { ("IN-List", "values") } else { ("Values", "rows") };
                self.line(depth, format!("{name} ({} {what}){counted}", rows.len()))
            }
            PlanNode::Filter { input, condition } => {
                self.line(depth, format!("Filter{counted}"));
                self.condition(depth, "Filter", Some(condition));
                self.node(input, depth + 1);
            }
            PlanNode::NestedLoop { outer, inner, join, condition, guard, .. } => {
                let kind =
                    if *join == Join::Left { "Nested Loop Left Join" } else { "Nested Loop" };
                self.line(depth, format!("{kind}{counted}"));
                self.condition(depth, "Join Filter", condition.as_ref());
                if let Some(guard) = guard {
                    let text = format!("Hash Join beyond {} outer rows", guard.most);
                    self.detail(depth, text);
                }
                self.node(outer, depth + 1);
                self.node(inner, depth + 1);
            }
            PlanNode::HashJoin(join) => self.hash_join(join, depth, &counted),
            PlanNode::Subquery { .. } => self.subquery(node, depth, &counted),
            PlanNode::Group { .. } => self.aggregate(node, depth, &counted),
            PlanNode::Distinct { input, .. } => {
                self.line(depth, format!("Hash Distinct{counted}"));
                self.node(input, depth + 1);
            }
            PlanNode::Sort { input, keys, most, .. } => {
                let kind = if most.is_some() { "Top-N Sort" } else { "Sort" };
                self.line(depth, format!("{kind}{counted}"));
                let keys: Vec<String> = keys
                    .iter()
                    .map(|key| {
                        format!(
                            "{}{}",
                            self.text(&key.expr),
                            if key.descending { " DESC" } else { "" }
                        )
                    })
                    .collect();
                self.detail(depth, format!("Sort Key: {}", keys.join(", ")));
                self.node(input, depth + 1);
            }
            PlanNode::WindowAgg(window) => {
                self.line(depth, format!("WindowAgg{counted}"));
                self.node(&window.input, depth + 1);
            }
            PlanNode::Limit { input, .. } => {
                self.line(depth, format!("Limit{counted}"));
                self.node(input, depth + 1);
            }
            PlanNode::SubqueryScan { query, slot } => {
                let name = self.slots.get(*slot).map_or("", |shape| &shape.name).to_owned();
                self.line(depth, format!("Subquery Scan on {name}{counted}"));
                self.query(query, depth + 1);
            }
            PlanNode::SetOperation { kind, all, sides, .. } => {
                let all = if *all { " all" } else { "" };
                self.line(depth, format!("{kind:?}{all}{counted}"));
                sides.iter().for_each(|side| self.query(side, depth + 1));
            }
            PlanNode::With { tables, input } => {
                self.line(depth, format!("With{counted}"));
                for (slot, query) in tables {
                    let name = self.slots.get(*slot).map_or("", |shape| &shape.name).to_owned();
                    self.detail(depth, format!("CTE {name}"));
                    self.query(query, depth + 1);
                }
                self.node(input, depth + 1);
            }
            PlanNode::RecursiveUnion(union) => {
                let all = if union.all { " all" } else { "" };
                self.line(depth, format!("Recursive Union{all}{counted}"));
                self.query(&union.base, depth + 1);
                self.query(&union.step, depth + 1);
            }
            PlanNode::StoredScan(stored) => {
                let name = self.slots.get(stored.from).map_or("", |shape| &shape.name);
                self.line(depth, format!("CTE Scan on {name}{counted}"));
            }
            PlanNode::FunctionScan(function) => {
                let name = self.slots.get(function.slot).map_or("", |shape| &shape.name);
                self.line(depth, format!("{}{counted}", function_scan(function, name)));
            }
            PlanNode::Vectorized(_) => {}
            PlanNode::LockRows { input, .. } => {
                self.line(depth, format!("Lock Rows{counted}"));
                self.node(input, depth + 1);
            }
        }
    }

    /// Writes an aggregation.
    fn aggregate(&mut self, node: &PlanNode, depth: usize, counted: &str) {
        let PlanNode::Group { input, keys, sets, aggregates, .. } = node else { return };
        let name = if keys.is_empty() && sets.is_empty() { "Aggregate" } else { "Hash Aggregate" };
        self.line(depth, format!("{name}{counted}"));
        self.write_workers(depth);
        if !sets.is_empty() {
            let set = |set: &Vec<usize>| {
                let keys = set.iter().filter_map(|key| keys.get(*key));
                let keys: Vec<String> = keys.map(|key| self.text(key)).collect();
                format!("({})", keys.join(", "))
            };
            let sets: Vec<String> = sets.iter().map(set).collect();
            self.detail(depth, format!("Grouping Sets: {}", sets.join(", ")));
        } else if !keys.is_empty() {
            let keys: Vec<String> = keys.iter().map(|key| self.text(key)).collect();
            self.detail(depth, format!("Group Key: {}", keys.join(", ")));
        }
        let names: Vec<String> = aggregates.iter().map(|a| a.kind.name().to_owned()).collect();
        if !names.is_empty() {
            self.detail(depth, format!("Aggregates: {}", names.join(", ")));
        }
        self.node(input, depth + 1);
    }

    /// Writes the workers of the step, if the plan has some: those planned, and those started.
    fn write_workers(&mut self, depth: usize) {
        for (planned, what) in std::mem::take(&mut self.workers).into_iter().zip(["", "Build "]) {
            let Some(planned) = planned else { continue };
            self.detail(depth, format!("{what}Workers Planned: {planned}"));
            let launched = self.counts.and_then(|counts| counts.get(self.next).copied());
            self.next += 1;
            if let Some(launched) = launched {
                self.detail(depth, format!("{what}Workers Launched: {launched}"));
            }
        }
    }

    /// Writes a subquery of an expression.
    fn subquery(&mut self, node: &PlanNode, depth: usize, counted: &str) {
        let PlanNode::Subquery { input, query, kind, once, hash, .. } = node else { return };
        let kind = match kind {
            SubqueryKind::Scalar => "scalar",
            SubqueryKind::Row => "row",
            SubqueryKind::Array(_) => "array",
            SubqueryKind::Exists => "EXISTS",
            SubqueryKind::Any(..) => "ANY",
            SubqueryKind::All(..) => "ALL",
        };
        let (name, once) = match (hash, once) {
            (Some(_), _) => ("Hashed Subquery", ""),
            (None, true) => ("Subquery", ", evaluated once"),
            (None, false) => ("Subquery", ""),
        };
        self.line(depth, format!("{name} ({kind}){once}{counted}"));
        if let Some(keys) = hash.as_ref().map(|hash| &hash.keys).filter(|keys| !keys.is_empty()) {
            let first = query.outputs.len().saturating_sub(keys.len());
            let pairs = keys.iter().zip(query.outputs.iter().skip(first));
            let pairs = pairs.map(|(a, b)| format!("{} = {}", self.text(a), self.text(b)));
            let pairs = pairs.collect::<Vec<_>>().join(" AND ");
            self.detail(depth, format!("Hash Cond: {pairs}"));
        }
        self.node(input, depth + 1);
        self.query(query, depth + 1);
    }

    fn access(&mut self, access: &TableAccess, depth: usize, counted: &str) {
        let table = &access.table.name;
        let alias = self.slots.get(access.slot).map_or("", |shape| &shape.name);
        let name = if alias == table { table.to_string() } else { format!("{table} {alias}") };
        let order = if access.backward { " backward" } else { "" };
        let rows = access.rows.max(1.0).round();
        if let AccessPath::Inverted(path) = &access.path {
            self.inverted(access, path, depth, &format!("{name} (rows={rows}){counted}"));
            return;
        }
        let (text, range) = match &access.path {
            AccessPath::All => (format!("Seq Scan{order} on {name}"), None),
            AccessPath::Key(values) => {
                let values: Vec<String> = values.iter().map(|value| self.text(value)).collect();
                let by = if access.table.access_method().is_ordered() { "" } else { "Hash " };
                (
                    format!("Primary Key {by}Lookup on {name}"),
                    Some(format!("Key: ({})", values.join(", "))),
                )
            }
            AccessPath::KeyRange(range) => {
                let columns =
                    access.table.primary_key.as_ref().map_or(&[][..], |key| &key.columns[..]);
                let columns = columns.iter().filter_map(|column| access.table.columns.get(*column));
                let columns: Vec<&str> = columns.map(|column| &column.name[..]).collect();
                let range = self.range(range, &columns);
                (format!("Primary Key Scan{order} on {name}"), Some(range))
            }
            AccessPath::Index(number, range) => {
                let index = access.table.indexes.get(*number);
                let key = |column: &KeyColumn| {
                    index.map_or("", |index| index.key_name(&access.table, column.position))
                };
                let columns: Vec<&str> =
                    index.iter().flat_map(|index| &index.columns).map(key).collect();
                let index_name = index.map_or("", |index| &index.name);
                let range = self.range(range, &columns);
                let is_hash = index.is_some_and(|index| !index.access_method().is_ordered());
                let way = if is_hash { "Index Hash Lookup" } else { "Index Scan" };
                (format!("{way}{order} using {index_name} on {name}"), Some(range))
            }
            AccessPath::Inverted(_) => (String::new(), None),
            AccessPath::Cursor(cursor) => {
                (format!("Cursor Row of {name}"), Some(format!("Cursor: {}", self.text(cursor))))
            }
        };
        self.line(depth, format!("{text} (rows={rows}){counted}"));
        if let Some(range) = range.filter(|range| !range.is_empty()) {
            self.detail(depth, range);
        }
        self.condition(depth, "Filter", access.filter.as_ref());
    }

    /// As PostgreSQL shows a scan of a bitmap. The conditions of the index are checked again.
    fn inverted(&mut self, access: &TableAccess, path: &InvertedPath, depth: usize, on: &str) {
        self.line(depth, format!("Bitmap Heap Scan on {on}"));
        let conditions: Vec<&Expr> = path.conditions.iter().map(|it| &it.condition).collect();
        let text = Expr::all(conditions.iter().copied().cloned().collect());
        self.condition(depth, "Recheck Cond", text.as_ref());
        let mut others = Vec::new();
        if let Some(filter) = &access.filter {
            filter.clone().into_conjuncts(&mut others);
        }
        others.retain(|conjunct| !conditions.contains(&conjunct));
        self.condition(depth, "Filter", Expr::all(others).as_ref());
        let name = |index: usize| access.table.indexes.get(index).map_or("", |it| &it.name);
        if let Some(index) = path.only_index() {
            self.line(depth + 1, format!("Bitmap Index Scan on {}", name(index)));
            self.condition(depth + 1, "Index Cond", text.as_ref());
            return;
        }
        self.line(depth + 1, "BitmapOr".to_owned());
        for part in path.parts() {
            self.line(depth + 2, format!("Bitmap Index Scan on {}", name(part.index)));
            self.condition(depth + 2, "Index Cond", Some(&part.condition));
        }
    }

    fn range(&self, range: &KeyRangeExpr, columns: &[&str]) -> String {
        let name = |nth: usize| columns.get(nth).copied().unwrap_or_default();
        let mut parts: Vec<String> = Vec::new();
        for (nth, value) in range.equal.iter().enumerate() {
            parts.push(format!("{} = {}", name(nth), self.text(value)));
        }
        let next = name(range.equal.len());
        if let Some((value, inclusive)) = &range.lower {
            parts.push(format!(
                "{next} {} {}",
                if *inclusive { ">=" } else { ">" },
                self.text(value)
            ));
        }
        if let Some((value, inclusive)) = &range.upper {
            parts.push(format!(
                "{next} {} {}",
                if *inclusive { "<=" } else { "<" },
                self.text(value)
            ));
        }
        if parts.is_empty() { String::new() } else { format!("Range: {}", parts.join(" AND ")) }
    }

    fn list(&self, list: &[Expr], between: &str) -> String {
        let parts: Vec<String> = list.iter().map(|part| self.text(part)).collect();
        parts.join(between)
    }

    /// An expression, about as it was written.
    fn text(&self, expr: &Expr) -> String {
        let not = |negated: &bool| if *negated { "NOT " } else { "" };
        match expr {
            Expr::Constant(value @ (Value::Text(_) | Value::Date(_) | Value::Timestamp(_))) => {
                format!("'{value}'")
            }
            Expr::Constant(value) => value.to_string(),
            Expr::Parameter(number) => format!("${}", number + 1),
            Expr::Column(column) => {
                let shape = self.slots.get(column.slot);
                let name = shape.and_then(|shape| match &shape.source {
                    Source::Table(table) => {
                        table.columns.get(column.column).map(|c| c.name.clone())
                    }
                    Source::Query(columns) => columns.get(column.column).map(|c| c.name.clone()),
                    Source::Computed => None,
                });
                let slot = shape.map_or("", |shape| &shape.name);
                match name {
                    Some(name) => format!("{slot}.{name}"),
                    None => format!("{slot}[{}]", column.column),
                }
            }
            Expr::Cast(inner, data_type, _) | Expr::Assign(inner, data_type, _) => {
                format!("{}::{data_type}", self.text(inner))
            }
            Expr::Trimmed(inner) | Expr::Collate(inner, CollateStep::Text) => self.text(inner),
            Expr::Collate(inner, CollateStep::Letters(form, _)) => {
                let name = match form {
                    LetterForm::Lower => "lower",
                    LetterForm::Upper => "upper",
                    LetterForm::Title => "initcap",
                };
                format!("{name}({})", self.text(inner))
            }
            Expr::Collate(inner, CollateStep::Named(of) | CollateStep::Key(of)) => {
                format!("({} COLLATE {})", self.text(inner), quoted(of.name()))
            }
            Expr::Domain(inner, domain) => format!("{}::{}", self.text(inner), domain.name),
            Expr::Fold(inner, fold) => format!("{}({})", fold.name, self.text(inner)),
            Expr::Compare(comparison, pair) => {
                format!("({} {} {})", self.text(&pair[0]), comparison.symbol(), self.text(&pair[1]))
            }
            Expr::Distinct(pair, negated) => {
                format!(
                    "({} IS {}DISTINCT FROM {})",
                    self.text(&pair[0]),
                    not(negated),
                    self.text(&pair[1])
                )
            }
            Expr::And(list) => format!("({})", self.list(list, " AND ")),
            Expr::Or(list) => format!("({})", self.list(list, " OR ")),
            Expr::Not(inner) => format!("(NOT {})", self.text(inner)),
            Expr::IsNull(inner, negated) => {
                format!("({} IS {}NULL)", self.text(inner), not(negated))
            }
            Expr::IsTruth(inner, truth, negated) => {
                let truth = match truth {
                    Truth::True => "TRUE",
                    Truth::False => "FALSE",
                    Truth::Unknown => "UNKNOWN",
                };
                format!("({} IS {}{truth})", self.text(inner), not(negated))
            }
            Expr::Arithmetic(operator, _, pair, _) => {
                format!("({} {} {})", self.text(&pair[0]), operator.symbol(), self.text(&pair[1]))
            }
            Expr::Negate(inner, _) => format!("(- {})", self.text(inner)),
            Expr::InList(inner, list, negated) => {
                format!("({} {}IN ({}))", self.text(inner), not(negated), self.list(list, ", "))
            }
            Expr::InSet(inner, set, negated) => {
                format!("({} {}IN ({} values))", self.text(inner), not(negated), set.len())
            }
            Expr::Like(inner, pattern, negated) => {
                let like = if pattern.is_insensitive() { "ILIKE" } else { "LIKE" };
                let quoted = pattern.to_string().replace('\'', "''");
                format!("({} {}{like} '{quoted}')", self.text(inner), not(negated))
            }
            Expr::LikeAny(pair, _, _, negated) => {
                format!("({} {}LIKE {})", self.text(&pair[0]), not(negated), self.text(&pair[1]))
            }
            Expr::CompareElements(comparison, pair, is_any) => {
                let quantifier = if *is_any { "ANY" } else { "ALL" };
                let [value, array] = &**pair;
                let (value, array) = (self.text(value), self.text(array));
                format!("({value} {} {quantifier} ({array}))", comparison.symbol())
            }
            Expr::Row(shape, list) => {
                let fields = list.get(..shape.width()).unwrap_or(list);
                format!("ROW({})", self.list(fields, ", "))
            }
            Expr::Array(_, list, _) => format!("ARRAY[{}]", self.list(list, ", ")),
            Expr::Case(..) => "CASE … END".to_owned(),
            Expr::CurrentValue(None) => "lastval()".to_owned(),
            Expr::CurrentValue(Some(sequence)) => format!("currval({sequence})"),
            Expr::SetValue(sequence, _) => format!("setval({sequence}, …)"),
            Expr::NextValue(sequence, _) => format!("nextval({sequence})"),
            Expr::Call(function, list, _) => {
                let mut text = String::new();
                // Writing to a string does not fail.
                let _ = write!(text, "{function:?}({})", self.list(list, ", "));
                text
            }
        }
    }
}

/// Returns the words of a function scan. `of_value` is the name of an expression that is no call.
fn function_scan(function: &TableFunction, of_value: &str) -> String {
    let name = |call: &FunctionCall| match call.kind {
        TableFunctionKind::GenerateSeries(_) => "generate_series",
        TableFunctionKind::Rows(function) => function.name,
        TableFunctionKind::Value => match &call.arguments[..] {
            [Expr::Call(function, ..)] => function.0.name,
            _ => of_value,
        },
        TableFunctionKind::Routine(_, name) => name,
        TableFunctionKind::JsonRecords(function) => function.name,
        TableFunctionKind::Catalog(table) => table.name,
        TableFunctionKind::Sequence(_) => "sequence",
        TableFunctionKind::Transition(_) => "transition table",
    };
    let names: Vec<&str> = function.calls.iter().map(name).collect();
    let is_catalog = |call: &FunctionCall| matches!(call.kind, TableFunctionKind::Catalog(_));
    let what = if function.calls.iter().any(is_catalog) { "Catalog" } else { "Function" };
    format!("{what} Scan on {}", names.join(", "))
}
