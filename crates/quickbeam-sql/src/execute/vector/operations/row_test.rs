//! Conditions that are tested on the bytes of a row.
//!
//! Above: the conditions of a scan. Below: stored rows. A comparison of a text with a constant is
//! cheaper than putting the text into a column. AND and OR stop at the first part that decides,
//! which no condition by columns does. A test has the result of its expression, NULL included. It
//! fails for a damaged row only.

use std::sync::Arc;

use crate::catalog::Table;
use crate::error::Result;
use crate::expression::{Comparison, Expr, Pattern, cut_text};
use crate::table::StoredRow;
use crate::types::{DataType, Value, ValueRef, without_blanks};

/// A condition on a row.
#[derive(Clone, Debug)]
pub enum RowTest {
    Text(RowText, TextTest),
    /// A comparison of whole numbers, or of dates.
    Numbers(Comparison, RowNumber, RowNumber),
    InNumbers(RowNumber, Vec<i64>, bool),
    And(Vec<RowTest>),
    Or(Vec<RowTest>),
    Not(Box<RowTest>),
}

/// What is asked about a text; true: negated.
#[derive(Clone, Debug)]
pub enum TextTest {
    Among(Vec<String>, bool),
    Like(Arc<Pattern>, bool),
}

/// A text of a row.
#[derive(Clone, Debug)]
pub struct RowText {
    column: usize,
    is_trimmed: bool,
    /// The first character of a part of it, and how many there are.
    part: Option<(i64, Option<i64>)>,
}

/// A whole number, or the days of a date.
#[derive(Clone, Copy, Debug)]
pub enum RowNumber {
    Column(usize),
    Constant(i64),
}

/// How expensive a condition is; the cheapest are tested first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TestCost {
    Numbers,
    Texts,
    Columns,
    Patterns,
}

/// The table whose rows are tested, and their slot.
#[derive(Clone, Copy)]
struct Tested<'t> {
    table: &'t Table,
    slot: usize,
}

impl Tested<'_> {
    fn column(self, expr: &Expr) -> Option<(usize, DataType)> {
        let at = expr.as_column().filter(|at| at.slot == self.slot)?;
        Some((at.column, self.table.columns.get(at.column)?.data_type))
    }

    fn text(self, expr: &Expr) -> Option<RowText> {
        let whole = |column| RowText { column, is_trimmed: false, part: None };
        match expr {
            Expr::Trimmed(inner) => {
                let text = self.text(inner).filter(|text| text.part.is_none())?;
                Some(RowText { is_trimmed: true, ..text })
            }
            Expr::Call(function, list, _) if matches!(function.0.name, "substring" | "substr") => {
                let is_plain = function.0.arguments.get(1) == Some(&DataType::Integer);
                let [text, bounds @ ..] = &list[..] else { return None };
                let number = |bound: &Expr| bound.as_constant()?.as_ref().as_i64();
                let (start, count) = match bounds {
                    [start] => (number(start)?, None),
                    [start, count] => (number(start)?, Some(number(count)?)),
                    _ => return None,
                };
                // A negative length is an error.
                let text = self.text(text).filter(|text| text.part.is_none());
                let is_safe = is_plain && count.is_none_or(|count| count >= 0);
                Some(RowText { part: Some((start, count)), ..text.filter(|_| is_safe)? })
            }
            // A CHAR loses its blanks when it becomes another text.
            Expr::Cast(inner, DataType::Text | DataType::Varchar(None), _) => {
                let text = self.text(inner).filter(|text| text.part.is_none())?;
                let data_type = self.table.columns.get(text.column)?.data_type;
                let is_trimmed = text.is_trimmed || matches!(data_type, DataType::Char(_));
                Some(RowText { is_trimmed, ..text })
            }
            column => {
                let (column, data_type) = self.column(column)?;
                data_type.is_text().then(|| whole(column))
            }
        }
    }

    fn number(self, expr: &Expr) -> Option<(RowNumber, bool)> {
        if let Some(value) = expr.as_constant() {
            return match value.as_ref() {
                ValueRef::Date(days) => Some((RowNumber::Constant(days.into()), true)),
                other => Some((RowNumber::Constant(other.as_i64()?), false)),
            };
        }
        let (column, data_type) = self.column(expr)?;
        let is_date = data_type == DataType::Date;
        (is_date || data_type.is_integer()).then_some((RowNumber::Column(column), is_date))
    }

    fn test(self, expr: &Expr) -> Option<RowTest> {
        let text_of = |value: &Value| match value.as_ref() {
            ValueRef::Text(text) => Some(text.to_owned()),
            _ => None,
        };
        let all = |list: &[Expr]| {
            list.iter().map(|part| self.test(part)).collect::<Option<Vec<RowTest>>>()
        };
        match expr {
            Expr::And(list) => Some(RowTest::And(all(list)?)),
            Expr::Or(list) => Some(RowTest::Or(all(list)?)),
            Expr::Not(inner) => Some(RowTest::Not(Box::new(self.test(inner)?))),
            Expr::Compare(comparison, pair) => self.comparison(*comparison, pair),
            Expr::Like(inner, pattern, negated) => {
                Some(RowTest::Text(self.text(inner)?, TextTest::Like(pattern.clone(), *negated)))
            }
            Expr::InSet(inner, set, negated) => {
                if let Some(text) = self.text(inner) {
                    let texts = set.iter().map(text_of).collect::<Option<Vec<String>>>()?;
                    return Some(RowTest::Text(text, TextTest::Among(texts, *negated)));
                }
                let (number, is_date) = self.number(inner).filter(|(_, is_date)| !is_date)?;
                let member = |value: &Value| value.as_ref().as_i64().filter(|_| !is_date);
                let mut numbers = set.iter().map(member).collect::<Option<Vec<i64>>>()?;
                numbers.sort_unstable();
                Some(RowTest::InNumbers(number, numbers, *negated))
            }
            Expr::InList(inner, list, negated) => {
                let member = |member: &Expr| text_of(member.as_constant()?);
                let texts = list.iter().map(member).collect::<Option<Vec<String>>>()?;
                Some(RowTest::Text(self.text(inner)?, TextTest::Among(texts, *negated)))
            }
            _ => None,
        }
    }

    fn comparison(self, comparison: Comparison, pair: &[Expr; 2]) -> Option<RowTest> {
        let [left, right] = pair;
        for (side, constant) in [(left, right), (right, left)] {
            if let (Some(text), Some(value)) = (self.text(side), constant.as_constant())
                && let (ValueRef::Text(known), Comparison::Equal | Comparison::NotEqual) =
                    (value.as_ref(), comparison)
            {
                let is_negated = comparison == Comparison::NotEqual;
                let test = TextTest::Among(vec![known.to_owned()], is_negated);
                return Some(RowTest::Text(text, test));
            }
        }
        let ((left, is_date), (right, is_other)) = (self.number(left)?, self.number(right)?);
        (is_date == is_other).then_some(RowTest::Numbers(comparison, left, right))
    }
}

impl RowText {
    #[inline]
    fn of(&self, row: StoredRow<'_>, test: &TextTest) -> Result<Option<bool>> {
        let ValueRef::Text(mut text) = row.get(self.column)? else { return Ok(None) };
        if self.is_trimmed {
            text = without_blanks(text);
        }
        if let Some((start, count)) = self.part {
            text = cut_text(text, start, count)?;
        }
        Ok(Some(match test {
            TextTest::Among(texts, is_negated) => {
                texts.iter().any(|known| known == text) != *is_negated
            }
            TextTest::Like(pattern, is_negated) => pattern.matches(text) != *is_negated,
        }))
    }
}

impl RowNumber {
    #[inline]
    fn of(self, row: StoredRow<'_>) -> Result<Option<i64>> {
        Ok(match self {
            RowNumber::Constant(number) => Some(number),
            RowNumber::Column(column) => match row.get(column)? {
                ValueRef::Date(days) => Some(days.into()),
                other => other.as_i64(),
            },
        })
    }
}

impl RowTest {
    /// Makes the test of a condition on the rows of a table. Returns `None` if a part of it is not
    /// one of the simple conditions here.
    pub fn new(condition: &Expr, table: &Table, slot: usize) -> Option<RowTest> {
        Tested { table, slot }.test(condition)
    }

    /// Returns how expensive the test is.
    pub fn cost(&self) -> TestCost {
        let greatest =
            |list: &[RowTest]| list.iter().map(RowTest::cost).max().unwrap_or(TestCost::Numbers);
        match self {
            RowTest::Numbers(..) | RowTest::InNumbers(..) => TestCost::Numbers,
            RowTest::Text(_, TextTest::Among(..)) => TestCost::Texts,
            RowTest::Text(_, TextTest::Like(..)) => TestCost::Patterns,
            RowTest::And(list) | RowTest::Or(list) => greatest(list),
            RowTest::Not(inner) => inner.cost(),
        }
    }

    /// Returns whether the condition holds for a row; `None` stands for NULL.
    pub fn holds(&self, row: StoredRow<'_>) -> Result<Option<bool>> {
        match self {
            RowTest::Text(text, test) => text.of(row, test),
            RowTest::Numbers(comparison, left, right) => {
                let (left, right) = (left.of(row)?, right.of(row)?);
                Ok(left.zip(right).map(|(left, right)| comparison.holds(left.cmp(&right))))
            }
            RowTest::InNumbers(number, numbers, is_negated) => {
                let is_in = |number: i64| numbers.binary_search(&number).is_ok() != *is_negated;
                Ok(number.of(row)?.map(is_in))
            }
            RowTest::And(list) => all_hold(list, row),
            RowTest::Or(list) => any_holds(list, row),
            RowTest::Not(inner) => Ok(inner.holds(row)?.map(|holds| !holds)),
        }
    }
}

/// Tests until one is false. Returns `None` if none is, and one is NULL.
fn all_hold(list: &[RowTest], row: StoredRow<'_>) -> Result<Option<bool>> {
    let mut result = Some(true);
    for part in list {
        match part.holds(row)? {
            Some(true) => {}
            Some(false) => return Ok(Some(false)),
            None => result = None,
        }
    }
    Ok(result)
}

/// Tests until one is true. Returns `None` if none is, and one is NULL.
fn any_holds(list: &[RowTest], row: StoredRow<'_>) -> Result<Option<bool>> {
    let mut result = Some(false);
    for part in list {
        match part.holds(row)? {
            Some(true) => return Ok(Some(true)),
            Some(false) => {}
            None => result = None,
        }
    }
    Ok(result)
}
