//! jsonpath: evaluation, and the functions and operators of it.
//!
//! - PATH-3: in lax mode arrays are opened for accessors and operators that want their elements,
//!   and what is not there is no item. In strict mode both are errors.
//! - PATH-4: an error inside a predicate makes it unknown. Only an unknown variable, and what is
//!   not supported, is an error everywhere.

use quickbeam::invariant;
use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::rc::Rc;
use std::sync::Arc;

use super::path_items::Item;
use super::path_times::PathTime;
use crate::error::{Result, SqlError, SqlState};
use crate::expression::builtin::strings::regular::compile;
use crate::expression::builtin::{
    Builtin, OfSession, OfValues, invalid, mismatch, stable, strict, text,
};
use crate::expression::regex::{RegexGrammar, RegexOptions, RegularExpression};
use crate::types::json::Json;
use crate::types::json::path_syntax::{
    Accessor, ItemMethod, JsonPath, Node, PathComparison, PathRegex,
};
use crate::types::{DataType, Decimal, TextSettings, Value, ValueRef, parse_value};
use DataType::{Boolean, Jsonb as B, Text};

/// What becomes of errors of the steps of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathErrors {
    /// The answer is NULL, or the items before the error.
    Silent,
    /// The function fails.
    Raised,
}

const EXISTS: OfValues = |v| exists(v, PathErrors::Raised, None);
const MATCH: OfValues = |v| matches(v, PathErrors::Raised, None);
const ALL: OfValues = |v| all(v, None);
const FIRST: OfValues = |v| first(v, None);
const EXISTS_TZ: OfSession = |f, v| exists(v, PathErrors::Raised, Some(f.settings()));
const MATCH_TZ: OfSession = |f, v| matches(v, PathErrors::Raised, Some(f.settings()));
const ALL_TZ: OfSession = |f, v| all(v, Some(f.settings()));
const FIRST_TZ: OfSession = |f, v| first(v, Some(f.settings()));

pub(in crate::expression::builtin) static TABLE: &[Builtin] = &[
    strict("@?", &[B, Text], Boolean, |v| exists(v, PathErrors::Silent, None)),
    strict("@@", &[B, Text], Boolean, |v| matches(v, PathErrors::Silent, None)),
    strict("jsonb_path_exists", &[B, Text], Boolean, EXISTS),
    strict("jsonb_path_exists", &[B, Text, B], Boolean, EXISTS),
    strict("jsonb_path_exists", &[B, Text, B, Boolean], Boolean, EXISTS),
    strict("jsonb_path_match", &[B, Text], Boolean, MATCH),
    strict("jsonb_path_match", &[B, Text, B], Boolean, MATCH),
    strict("jsonb_path_match", &[B, Text, B, Boolean], Boolean, MATCH),
    strict("jsonb_path_query_array", &[B, Text], B, ALL),
    strict("jsonb_path_query_array", &[B, Text, B], B, ALL),
    strict("jsonb_path_query_array", &[B, Text, B, Boolean], B, ALL),
    strict("jsonb_path_query_first", &[B, Text], B, FIRST),
    strict("jsonb_path_query_first", &[B, Text, B], B, FIRST),
    strict("jsonb_path_query_first", &[B, Text, B, Boolean], B, FIRST),
    // Comparisons of times with and without a zone depend on the session.
    stable("jsonb_path_exists_tz", &[B, Text], Boolean, EXISTS_TZ),
    stable("jsonb_path_exists_tz", &[B, Text, B], Boolean, EXISTS_TZ),
    stable("jsonb_path_exists_tz", &[B, Text, B, Boolean], Boolean, EXISTS_TZ),
    stable("jsonb_path_match_tz", &[B, Text], Boolean, MATCH_TZ),
    stable("jsonb_path_match_tz", &[B, Text, B], Boolean, MATCH_TZ),
    stable("jsonb_path_match_tz", &[B, Text, B, Boolean], Boolean, MATCH_TZ),
    stable("jsonb_path_query_array_tz", &[B, Text], B, ALL_TZ),
    stable("jsonb_path_query_array_tz", &[B, Text, B], B, ALL_TZ),
    stable("jsonb_path_query_array_tz", &[B, Text, B, Boolean], B, ALL_TZ),
    stable("jsonb_path_query_first_tz", &[B, Text], B, FIRST_TZ),
    stable("jsonb_path_query_first_tz", &[B, Text, B], B, FIRST_TZ),
    stable("jsonb_path_query_first_tz", &[B, Text, B, Boolean], B, FIRST_TZ),
];

/// An error of evaluation.
enum PathError {
    /// One that a predicate turns into unknown, and that `silent` suppresses.
    Suppressible(SqlError),
    Other(SqlError),
    /// No error: further items are not wanted.
    Enough,
}

type Evaluated<T> = std::result::Result<T, PathError>;

#[cold]
fn fault<T>(state: SqlState, message: impl Into<String>) -> Evaluated<T> {
    Err(PathError::Suppressible(SqlError::new(state, message.into())))
}

struct Evaluator<'p> {
    is_strict: bool,
    /// Whether accessors of a strict path that do not fit find nothing: those after `.**`.
    ignores_structure: Cell<bool>,
    root: Item,
    /// The variables. Each is NULL for operators, which take none.
    variables: Option<&'p [(String, Item)]>,
    /// The regular expressions of the path that were compiled.
    expressions: RefCell<Vec<(*const PathRegex, Rc<RegularExpression>)>>,
    /// The settings with the zone of times without one, if the function takes it.
    zone: Option<TextSettings>,
}

/// What `@` and `last` stand for.
#[derive(Clone)]
struct Around {
    current: Item,
    /// The last subscript of the innermost array.
    last: Option<usize>,
}

/// Takes the items of a path one by one, in the order in which PostgreSQL finds them.
type Sink<'s> = &'s mut dyn FnMut(Item) -> Evaluated<()>;

impl Evaluator<'_> {
    fn items(&self, node: &Node, around: &Around) -> Evaluated<Vec<Item>> {
        let mut out = Vec::new();
        self.each(node, around, &mut |item| {
            out.push(item);
            Ok(())
        })?;
        Ok(out)
    }

    /// Gives each item to the sink before the next one is looked for.
    fn each(&self, node: &Node, around: &Around, sink: Sink<'_>) -> Evaluated<()> {
        match node {
            Node::Root => sink(self.root.clone()),
            Node::Current => sink(around.current.clone()),
            Node::Last => match around.last {
                Some(last) => sink(Item::Number(Decimal::from(last as i64))),
                None => sink(Item::Number(Decimal::from(-1))),
            },
            Node::Variable(name) => {
                let Some(variables) = self.variables else { return sink(Item::Null) };
                match variables.iter().find(|(known, _)| known == name) {
                    Some((_, item)) => sink(item.clone()),
                    None => {
                        let message = format!("could not find jsonpath variable \"{name}\"");
                        Err(PathError::Other(SqlError::new(SqlState::UndefinedObject, message)))
                    }
                }
            }
            Node::Null => sink(Item::Null),
            Node::Boolean(truth) => sink(Item::Boolean(*truth)),
            Node::Number(number) => sink(Item::Number(number.clone())),
            Node::String(text) => sink(Item::String(text.as_str().into())),
            Node::Binary(operator, sides) => sink(self.calculate(*operator, sides, around)?),
            Node::Sign(sign, inner) => {
                for item in self.opened(inner, around)? {
                    match item {
                        Item::Number(number) if *sign == '-' => {
                            sink(Item::Number(number.negate()))?;
                        }
                        Item::Number(number) => sink(Item::Number(number))?,
                        _ => {
                            let message = format!(
                                "operand of unary jsonpath operator {sign} is not a numeric value"
                            );
                            return fault(SqlState::SqlJsonNumberNotFound, message);
                        }
                    }
                }
                Ok(())
            }
            Node::Access(inner, step) => {
                self.each(inner, around, &mut |item| self.step(step, item, around, sink))
            }
            predicate => {
                let truth = self.truth(predicate, around);
                let is_fault = matches!(truth, Err(PathError::Suppressible(_)));
                invariant!(PATH_4, !is_fault, "a predicate failed");
                sink(truth?.map_or(Item::Null, Item::Boolean))
            }
        }
    }

    /// Returns the items; in lax mode the elements of those that are arrays.
    fn opened(&self, node: &Node, around: &Around) -> Evaluated<Vec<Item>> {
        let items = self.items(node, around)?;
        if self.is_strict {
            return Ok(items);
        }
        let mut out = Vec::with_capacity(items.len());
        for item in items {
            match item {
                Item::Array(list) => out.extend(list.iter().cloned()),
                other => out.push(other),
            }
        }
        Ok(out)
    }

    fn calculate(
        &self,
        operator: char,
        [left, right]: &[Node; 2],
        around: &Around,
    ) -> Evaluated<Item> {
        let mut numbers = Vec::with_capacity(2);
        for (side, name) in [(left, "left"), (right, "right")] {
            match &self.opened(side, around)?[..] {
                [Item::Number(number)] => numbers.push(number.clone()),
                _ => {
                    let message = format!(
                        "{name} operand of jsonpath operator {operator} is not a single numeric value"
                    );
                    return fault(SqlState::SingletonSqlJsonItemRequired, message);
                }
            }
        }
        let [left, right] = &numbers[..] else { return Ok(Item::Null) };
        let result = match operator {
            '+' => left.checked_add(right),
            '-' => left.checked_sub(right),
            '*' => left.checked_mul(right),
            '/' => left.checked_div(right),
            _ => left.checked_rem(right),
        };
        result.map(Item::Number).map_err(PathError::Suppressible)
    }

    /// An accessor of a strict path does not fit an item.
    fn misfit(&self, state: SqlState, message: impl Into<String>) -> Evaluated<()> {
        if self.ignores_structure.get() { Ok(()) } else { fault(state, message) }
    }

    /// Applies an accessor to an item.
    fn step(&self, step: &Accessor, item: Item, around: &Around, sink: Sink<'_>) -> Evaluated<()> {
        let opens = match step {
            Accessor::Key(_) | Accessor::AnyKey | Accessor::Filter(_) => true,
            Accessor::Datetime(_) => true,
            Accessor::ItemMethod(method) => !matches!(method, ItemMethod::Type | ItemMethod::Size),
            _ => false,
        };
        if let (true, false, Item::Array(list)) = (opens, self.is_strict, &item) {
            // Only one level of arrays is opened.
            return list.iter().try_for_each(|item| self.step_inside(step, item, around, sink));
        }
        self.step_inside(step, &item, around, sink)
    }

    fn step_inside(
        &self,
        step: &Accessor,
        item: &Item,
        around: &Around,
        sink: Sink<'_>,
    ) -> Evaluated<()> {
        match (step, item) {
            (Accessor::Key(name), Item::Object(members)) => {
                match members.iter().find(|(known, _)| known == name) {
                    Some((_, value)) => sink(value.clone())?,
                    None if self.is_strict => {
                        let message = format!("JSON object does not contain key \"{name}\"");
                        return self.misfit(SqlState::SqlJsonMemberNotFound, message);
                    }
                    None => {}
                }
            }
            (Accessor::Key(_), _) if self.is_strict => {
                let message = "jsonpath member accessor can only be applied to an object";
                return self.misfit(SqlState::SqlJsonMemberNotFound, message);
            }
            (Accessor::AnyKey, Item::Object(members)) => {
                members.iter().try_for_each(|(_, value)| sink(value.clone()))?;
            }
            (Accessor::AnyKey, _) if self.is_strict => {
                let message = "jsonpath wildcard member accessor can only be applied to an object";
                return self.misfit(SqlState::SqlJsonObjectNotFound, message);
            }
            (Accessor::Key(_) | Accessor::AnyKey, _) => {}
            (Accessor::AnyElement, Item::Array(list)) => {
                list.iter().try_for_each(|item| sink(item.clone()))?;
            }
            (Accessor::AnyElement, _) if self.is_strict => {
                let message = "jsonpath wildcard array accessor can only be applied to an array";
                return self.misfit(SqlState::SqlJsonArrayNotFound, message);
            }
            (Accessor::AnyElement, item) => sink(item.clone())?,
            (Accessor::AnyLevel(from, to), item) => {
                let before = self.ignores_structure.replace(true);
                let done = levels(item, 0, (*from, *to), sink);
                self.ignores_structure.set(before);
                done?;
            }
            (Accessor::Subscripts(list), item) => self.subscripts(list, item, around, sink)?,
            (Accessor::Filter(condition), item) => {
                let inner = Around { current: item.clone(), last: around.last };
                if self.truth(condition, &inner)? == Some(true) {
                    sink(item.clone())?;
                }
            }
            (Accessor::Datetime(template), Item::String(text)) => {
                let time = PathTime::read(text, template.as_deref());
                sink(Item::Time(time.map_err(PathError::Suppressible)?))?;
            }
            (Accessor::Datetime(_), _) => {
                let message = "jsonpath item method .datetime() can only be applied to a string";
                return fault(SqlState::InvalidArgumentForSqlJsonDatetime, message);
            }
            (Accessor::ItemMethod(method), item) => self.method(*method, item, sink)?,
        }
        Ok(())
    }

    fn subscripts(
        &self,
        list: &[(Node, Option<Node>)],
        item: &Item,
        around: &Around,
        sink: Sink<'_>,
    ) -> Evaluated<()> {
        let own = [item.clone()];
        let elements: &[Item] = match item {
            Item::Array(list) => list,
            _ if self.is_strict => {
                let message = "jsonpath array accessor can only be applied to an array";
                return self.misfit(SqlState::SqlJsonArrayNotFound, message);
            }
            _ => &own,
        };
        let count = elements.len() as i64;
        let inner = Around { current: around.current.clone(), last: elements.len().checked_sub(1) };
        let place = |node: &Node| match &self.items(node, &inner)?[..] {
            [Item::Number(number)] => {
                let whole = number.truncate(0).map_err(PathError::Suppressible)?;
                whole.to_i64().filter(|it| i32::try_from(*it).is_ok()).map_or_else(
                    || {
                        let message = "jsonpath array subscript is out of integer range";
                        fault(SqlState::InvalidSqlJsonSubscript, message)
                    },
                    Ok,
                )
            }
            _ => {
                let message = "jsonpath array subscript is not a single numeric value";
                fault(SqlState::InvalidSqlJsonSubscript, message)
            }
        };
        for (first, last) in list {
            let from = place(first)?;
            let to = last.as_ref().map_or(Ok(from), place)?;
            let is_checked = self.is_strict && !self.ignores_structure.get();
            if is_checked && (from < 0 || from > to || to >= count) {
                let message = "jsonpath array subscript is out of bounds";
                return fault(SqlState::InvalidSqlJsonSubscript, message);
            }
            let (from, to) = (from.max(0), to.min(count - 1));
            for at in from..=to {
                elements.get(at as usize).map_or(Ok(()), |item| sink(item.clone()))?;
            }
        }
        Ok(())
    }

    fn method(&self, method: ItemMethod, item: &Item, sink: Sink<'_>) -> Evaluated<()> {
        let name = method.name();
        let number = match (method, item) {
            (ItemMethod::Type, item) => {
                return sink(Item::String(item.kind().into()));
            }
            (ItemMethod::Size, Item::Array(list)) => Decimal::from(list.len() as i64),
            (ItemMethod::Size, _) if self.is_strict => {
                let message = "jsonpath item method .size() can only be applied to an array";
                return self.misfit(SqlState::SqlJsonArrayNotFound, message);
            }
            (ItemMethod::Size, _) => Decimal::from(1),
            (ItemMethod::KeyValue, Item::Object(members)) => {
                for (name, value) in members.iter() {
                    let row = [
                        ("id".to_owned(), Item::Number(Decimal::from(0))),
                        ("key".to_owned(), Item::String(name.as_str().into())),
                        ("value".to_owned(), value.clone()),
                    ];
                    sink(Item::Object(row.into()))?;
                }
                return Ok(());
            }
            (ItemMethod::KeyValue, _) => {
                let message = "jsonpath item method .keyvalue() can only be applied to an object";
                return fault(SqlState::SqlJsonObjectNotFound, message);
            }
            (ItemMethod::Abs, Item::Number(number)) => number.absolute(),
            (ItemMethod::Floor, Item::Number(number)) => {
                number.floor().map_err(PathError::Suppressible)?
            }
            (ItemMethod::Ceiling, Item::Number(number)) => {
                number.ceil().map_err(PathError::Suppressible)?
            }
            (ItemMethod::Double, Item::Number(number)) => match double_of(&number.to_string()) {
                Some(_) => number.clone(),
                None => {
                    let message = "numeric argument of jsonpath item method .double() is out of range for type double precision";
                    return fault(SqlState::NonNumericSqlJsonItem, message);
                }
            },
            (ItemMethod::Double, Item::String(text)) => match double_of(text) {
                Some(number) => Decimal::from_f64(number).map_err(PathError::Suppressible)?,
                None => {
                    let message = "string argument of jsonpath item method .double() is not a valid representation of a double precision number";
                    return fault(SqlState::NonNumericSqlJsonItem, message);
                }
            },
            (ItemMethod::Double, _) => {
                let message = "jsonpath item method .double() can only be applied to a string or numeric value";
                return fault(SqlState::NonNumericSqlJsonItem, message);
            }
            _ => {
                let message = format!(
                    "jsonpath item method .{name}() can only be applied to a numeric value"
                );
                return fault(SqlState::NonNumericSqlJsonItem, message);
            }
        };
        sink(Item::Number(number))
    }

    /// Evaluates a predicate; `None` is unknown.
    fn truth(&self, node: &Node, around: &Around) -> Evaluated<Option<bool>> {
        let suppressed = |result: Evaluated<Vec<Item>>| match result {
            Ok(items) => Ok(Some(items)),
            Err(PathError::Suppressible(_)) => Ok(None),
            Err(other) => Err(other),
        };
        Ok(match node {
            Node::And(sides) => match self.truth(&sides[0], around)? {
                Some(false) => Some(false),
                left => match self.truth(&sides[1], around)? {
                    Some(true) => left,
                    right => right,
                },
            },
            Node::Or(sides) => match self.truth(&sides[0], around)? {
                Some(true) => Some(true),
                left => match self.truth(&sides[1], around)? {
                    Some(false) => left,
                    right => right,
                },
            },
            Node::Not(inner) => self.truth(inner, around)?.map(|truth| !truth),
            Node::IsUnknown(inner) => Some(self.truth(inner, around)?.is_none()),
            Node::Exists(inner) => {
                suppressed(self.items(inner, around))?.map(|items| !items.is_empty())
            }
            Node::Compare(comparison, sides) => {
                let Some(left) = suppressed(self.opened(&sides[0], around))? else {
                    return Ok(None);
                };
                let Some(right) = suppressed(self.opened(&sides[1], around))? else {
                    return Ok(None);
                };
                let mut failure = None;
                let found = self.any_pair(&left, &right, |a, b| {
                    compare(*comparison, a, b, self.zone.as_ref()).unwrap_or_else(|error| {
                        failure = Some(error);
                        None
                    })
                });
                if let Some(error) = failure {
                    return Err(PathError::Other(error));
                }
                found
            }
            Node::StartsWith(sides) => {
                let Some(left) = suppressed(self.opened(&sides[0], around))? else {
                    return Ok(None);
                };
                let Some(right) = suppressed(self.items(&sides[1], around))? else {
                    return Ok(None);
                };
                self.any_pair(&left, &right, |a, b| match (a, b) {
                    (Item::String(whole), Item::String(start)) => {
                        Some(whole.starts_with(start.as_ref()))
                    }
                    _ => None,
                })
            }
            Node::LikeRegex(inner, regex) => {
                let Some(left) = suppressed(self.opened(inner, around))? else { return Ok(None) };
                let regex = self.compiled(regex).map_err(PathError::Other)?;
                let mut failure = None;
                let found = self.any_pair(&left, &[Item::Null], |a, _| match a {
                    Item::String(text) => match regex.is_match(text) {
                        Ok(is_match) => Some(is_match),
                        Err(error) => {
                            failure = Some(error);
                            None
                        }
                    },
                    _ => None,
                });
                if let Some(error) = failure {
                    return Err(PathError::Other(error));
                }
                found
            }
            _ => None,
        })
    }

    /// Returns a regular expression, compiled once for a call.
    fn compiled(&self, regex: &PathRegex) -> Result<Rc<RegularExpression>> {
        let place = std::ptr::from_ref(regex);
        let known = self.expressions.borrow();
        if let Some((_, compiled)) = known.iter().find(|(known, _)| std::ptr::eq(*known, place)) {
            return Ok(compiled.clone());
        }
        drop(known);
        let compiled = compiled(regex)?;
        self.expressions.borrow_mut().push((place, compiled.clone()));
        Ok(compiled)
    }

    /// Returns whether the condition holds for a pair. In strict mode one pair that cannot be
    /// compared makes the result unknown.
    fn any_pair(
        &self,
        left: &[Item],
        right: &[Item],
        mut condition: impl FnMut(&Item, &Item) -> Option<bool>,
    ) -> Option<bool> {
        let (mut found, mut is_unknown) = (false, false);
        for a in left {
            for b in right {
                match condition(a, b) {
                    Some(true) if !self.is_strict => return Some(true),
                    Some(true) => found = true,
                    Some(false) => {}
                    None if self.is_strict => return None,
                    None => is_unknown = true,
                }
            }
        }
        if found {
            return Some(true);
        }
        if is_unknown { None } else { Some(false) }
    }
}

/// Compares two items; `None` for those that have no order.
fn compare(
    comparison: PathComparison,
    a: &Item,
    b: &Item,
    zone: Option<&TextSettings>,
) -> Result<Option<bool>> {
    let order = match (a, b) {
        (Item::Null, Item::Null) => Ordering::Equal,
        (Item::Null, _) | (_, Item::Null) => {
            return Ok(Some(comparison == PathComparison::NotEqual));
        }
        (Item::Boolean(a), Item::Boolean(b)) => a.cmp(b),
        (Item::Number(a), Item::Number(b)) => a.cmp(b),
        (Item::String(a), Item::String(b)) => a.cmp(b),
        (Item::Time(a), Item::Time(b)) => match a.compare(*b, zone)? {
            Some(order) => order,
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    Ok(Some(match comparison {
        PathComparison::Equal => order.is_eq(),
        PathComparison::NotEqual => order.is_ne(),
        PathComparison::Less => order.is_lt(),
        PathComparison::LessOrEqual => order.is_le(),
        PathComparison::Greater => order.is_gt(),
        PathComparison::GreaterOrEqual => order.is_ge(),
    }))
}

/// Appends the items of the levels below an item. The nesting of JSON is limited, so this is too.
fn levels(item: &Item, level: u32, range: (u32, u32), sink: Sink<'_>) -> Evaluated<()> {
    let (from, to) = range;
    let is_leaf = !matches!(item, Item::Array(_) | Item::Object(_));
    if level >= from && level <= to || from == u32::MAX && is_leaf {
        sink(item.clone())?;
    }
    if level >= to {
        return Ok(());
    }
    match item {
        Item::Array(list) => list.iter().try_for_each(|item| levels(item, level + 1, range, sink)),
        Item::Object(members) => {
            members.iter().try_for_each(|(_, item)| levels(item, level + 1, range, sink))
        }
        _ => Ok(()),
    }
}

/// Returns the number of a text in double precision, or `None` if it is none or out of range.
fn double_of(text: &str) -> Option<f64> {
    match parse_value(text, DataType::Double, &TextSettings::DEFAULT) {
        Ok(Value::Double(number)) if number.is_finite() => Some(number),
        _ => None,
    }
}

/// Compiles a regular expression with its flags.
fn compiled(regex: &PathRegex) -> Result<Rc<RegularExpression>> {
    let has = |flag: char| regex.flags.contains(flag);
    let mut options = RegexOptions { ignores_case: has('i'), ..RegexOptions::default() };
    if has('q') {
        options.grammar = RegexGrammar::Literal;
    } else {
        options.stops_at_newline = !has('s');
        options.anchors_at_lines = has('m');
    }
    compile(&regex.pattern, options)
}

/// Whether all items of a path are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    All,
    /// In lax mode the first item; in strict mode all of them, to know that none is an error.
    Any,
}

/// The items of a path.
struct FoundItems {
    items: Vec<Item>,
    /// Whether an error was suppressed after these items.
    has_failed: bool,
}

/// Evaluates the path of a call.
fn evaluate(
    arguments: &[ValueRef<'_>],
    errors: PathErrors,
    wanted: Wanted,
    zone: Option<TextSettings>,
) -> Result<FoundItems> {
    let is_operator = errors == PathErrors::Silent;
    let jsonb = |at: usize| match arguments.get(at) {
        Some(ValueRef::Jsonb(text)) => Item::of(&Json::read(text)?),
        _ => Err(mismatch()),
    };
    let path = JsonPath::parse(text(arguments, 1)?)?;
    let variables = match arguments.get(2) {
        None => Arc::from([]),
        Some(_) => match jsonb(2)? {
            Item::Object(members) => members,
            _ => return Err(invalid("\"vars\" argument is not an object")),
        },
    };
    let is_silent = is_operator || matches!(arguments.get(3), Some(ValueRef::Boolean(true)));
    let root = jsonb(0)?;
    let around = Around { current: root.clone(), last: None };
    let evaluator = Evaluator {
        is_strict: path.is_strict,
        ignores_structure: Cell::new(false),
        root,
        variables: (!is_operator).then_some(&*variables),
        expressions: RefCell::default(),
        zone,
    };
    let is_enough = wanted == Wanted::Any && !path.is_strict;
    let mut items = Vec::new();
    let mut sink = |item: Item| {
        items.push(item);
        if is_enough { Err(PathError::Enough) } else { Ok(()) }
    };
    let result = match &path.root {
        // One operand that is a number is enough, and others are no error.
        Node::Sign(_, inner) if is_enough => evaluator.opened(inner, &around).and_then(|all| {
            let mut numbers = all.into_iter().filter(|item| matches!(item, Item::Number(_)));
            numbers.try_for_each(sink)
        }),
        root => evaluator.each(root, &around, &mut sink),
    };
    match result {
        Ok(()) | Err(PathError::Enough) => Ok(FoundItems { items, has_failed: false }),
        Err(PathError::Suppressible(_)) if is_silent => Ok(FoundItems { items, has_failed: true }),
        Err(PathError::Suppressible(error) | PathError::Other(error)) => {
            let of_structure = [SqlState::SqlJsonMemberNotFound, SqlState::SqlJsonArrayNotFound];
            let is_of_strict = of_structure.contains(&error.state());
            invariant!(PATH_3, path.is_strict || !is_of_strict, "{error}");
            Err(error)
        }
    }
}

fn exists(
    arguments: &[ValueRef<'_>],
    errors: PathErrors,
    zone: Option<TextSettings>,
) -> Result<Value> {
    let found = evaluate(arguments, errors, Wanted::Any, zone)?;
    match found.has_failed {
        true => Ok(Value::Null),
        false => Ok(Value::Boolean(!found.items.is_empty())),
    }
}

fn matches(
    arguments: &[ValueRef<'_>],
    errors: PathErrors,
    zone: Option<TextSettings>,
) -> Result<Value> {
    let is_silent = errors == PathErrors::Silent;
    let is_silent = is_silent || matches!(arguments.get(3), Some(ValueRef::Boolean(true)));
    match &evaluate(arguments, errors, Wanted::All, zone)?.items[..] {
        [Item::Boolean(truth)] => Ok(Value::Boolean(*truth)),
        [Item::Null] => Ok(Value::Null),
        _ if is_silent => Ok(Value::Null),
        _ => {
            let state = SqlState::SingletonSqlJsonItemRequired;
            Err(SqlError::new(state, "single boolean result is expected"))
        }
    }
}

fn all(arguments: &[ValueRef<'_>], zone: Option<TextSettings>) -> Result<Value> {
    let items = evaluate(arguments, PathErrors::Raised, Wanted::All, zone)?.items;
    Ok(Item::Array(items.into()).value())
}

fn first(arguments: &[ValueRef<'_>], zone: Option<TextSettings>) -> Result<Value> {
    let items = evaluate(arguments, PathErrors::Raised, Wanted::All, zone)?.items;
    Ok(items.first().map_or(Value::Null, Item::value))
}

/// Returns the rows of `jsonb_path_query`.
pub(in crate::expression::builtin) fn query(arguments: &[ValueRef<'_>]) -> Result<Vec<Vec<Value>>> {
    rows_of(arguments, None)
}

/// Returns the rows of `jsonb_path_query_tz`: times without a zone are in UTC.
pub(in crate::expression::builtin) fn query_in_utc(
    arguments: &[ValueRef<'_>],
) -> Result<Vec<Vec<Value>>> {
    rows_of(arguments, Some(TextSettings::DEFAULT))
}

fn rows_of(arguments: &[ValueRef<'_>], zone: Option<TextSettings>) -> Result<Vec<Vec<Value>>> {
    let items = evaluate(arguments, PathErrors::Raised, Wanted::All, zone)?.items;
    Ok(items.iter().map(|item| vec![item.value()]).collect())
}
