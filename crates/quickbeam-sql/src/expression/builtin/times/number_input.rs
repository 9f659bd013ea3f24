//! `to_number`: reads a text along a number template, as PostgreSQL does.

use super::number_templates::{Anchor, Part, Template};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::builtin::{Builtin, NUMERIC, mismatch, strict, text};
use crate::types::{DataType, Decimal, Value, ValueRef};

pub(in crate::expression::builtin) static TABLE: &[Builtin] =
    &[strict("to_number", &[DataType::Text, DataType::Text], NUMERIC, to_number)];

/// The characters that a part of the template which has no digit does not skip.
const DATA: &str = "0123456789.,+-";

/// The state of reading.
struct Input<'t> {
    template: &'t Template,
    rest: &'t str,
    sign: Option<char>,
    digits: String,
    whole: usize,
    fraction: usize,
    has_point: bool,
}

impl Input<'_> {
    fn next(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn advance(&mut self) {
        let mut characters = self.rest.chars();
        characters.next();
        self.rest = characters.as_str();
    }

    fn accept(&mut self, wanted: char) -> bool {
        let found = self.next() == Some(wanted);
        if found {
            self.advance();
        }
        found
    }

    fn skip_others(&mut self, count: usize) {
        for _ in 0..count {
            if self.next().is_some_and(|next| !DATA.contains(next)) {
                self.advance();
            }
        }
    }

    /// Reads the sign before the first digit.
    fn leading_sign(&mut self) {
        if self.template.anchor == Some(Anchor::Before) {
            let sign = ['-', '+'].into_iter().find(|sign| self.accept(*sign));
            self.sign = sign.or(self.sign);
        } else if self.accept('-') || self.template.has(Part::Brackets) && self.accept('<') {
            self.sign = Some('-');
        } else if self.accept('+') {
            self.sign = Some('+');
        }
    }

    /// Reads a digit or the point. The caller advances over the last character.
    fn number_part(&mut self, part: Part) {
        self.accept(' ');
        let is_digit_part = matches!(part, Part::Digit | Part::Zero);
        if self.rest.is_empty() {
            return;
        }
        if self.sign.is_none() && is_digit_part && self.whole + self.fraction == 0 {
            self.leading_sign();
        }
        let Some(next) = self.next() else { return };
        let mut is_read = false;
        if next.is_ascii_digit() {
            if self.has_point && self.fraction == self.template.fraction {
                return;
            }
            self.digits.push(next);
            *(if self.has_point { &mut self.fraction } else { &mut self.whole }) += 1;
            is_read = true;
        } else if next == '.' && self.template.has(Part::Point) && !self.has_point {
            self.digits.push('.');
            (self.has_point, is_read) = (true, true);
        }
        if self.sign.is_none() && self.whole + self.fraction > 0 {
            self.trailing_sign(is_read);
        }
    }

    /// Reads the sign after the last digit, which the template does not place exactly.
    fn trailing_sign(&mut self, is_read: bool) {
        let signs = |next: Option<char>| next.filter(|next| matches!(next, '-' | '+'));
        let has = |part| self.template.has(part);
        if self.template.anchor.is_some() {
            let after = self.rest.chars().nth(1);
            if let Some(sign) = signs(after).filter(|_| is_read) {
                self.advance();
                self.sign = Some(sign);
            }
        } else if !is_read && (has(Part::Plus) || has(Part::Minus) || has(Part::Sign)) {
            self.sign = signs(self.next());
        }
    }

    /// Reads what a part of the template stands for. Returns whether to go on after the next
    /// character.
    fn part(&mut self, part: Part) -> bool {
        let sign = |input: &Self, known: &str| input.next().filter(|next| known.contains(*next));
        let known = match part {
            Part::Digit | Part::Zero | Part::Point => {
                self.number_part(part);
                return true;
            }
            Part::Group => return !self.template.has(Part::Fill) && self.next() == Some(','),
            Part::Minus => "-",
            Part::Plus => "+",
            Part::Sign => "+-",
            Part::Currency => {
                self.skip_others(1);
                return false;
            }
            Part::Ordinal(_) => {
                if self.sign != Some('-') && !self.template.has(Part::Point) {
                    self.skip_others(2);
                }
                return false;
            }
            Part::Literal(_) => return true,
            _ => return false,
        };
        match sign(self, known) {
            Some(found) => self.sign = Some(found),
            None => self.skip_others(1),
        }
        sign(self, known).is_some() && self.sign.is_some()
    }
}

/// The error for more digits than the template has.
#[cold]
fn too_long(precision: usize, scale: usize) -> SqlError {
    let message = "numeric field overflow";
    let detail = format!(
        "A field with precision {precision}, scale {scale} must round to an absolute value less than 10^{}.",
        precision - scale
    );
    SqlError::new(SqlState::NumericValueOutOfRange, message).with_detail(detail)
}

fn to_number(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (text, template) = (text(arguments, 0)?, Template::parse(text(arguments, 1)?)?);
    if template.is_roman() || template.has(Part::Exponent) {
        let name = if template.is_roman() { "RN" } else { "EEEE" };
        return Err(SqlError::unsupported(format!("\"{name}\" for input")));
    }
    if template.is_empty() {
        return Ok(Value::Null);
    }
    let mut input = Input {
        template: &template,
        rest: text,
        sign: None,
        digits: String::new(),
        whole: 0,
        fraction: 0,
        has_point: false,
    };
    for part in template.parts() {
        if input.rest.is_empty() {
            break;
        }
        if input.part(*part) {
            input.advance();
        }
    }
    let sign = input.sign.unwrap_or(' ');
    let digits = format!("{sign}{}", input.digits.trim_end_matches('.'));
    let number = Decimal::parse(digits.trim_start()).ok_or_else(|| {
        let message = format!("invalid input syntax for type numeric: \"{digits}\"");
        SqlError::new(SqlState::InvalidTextRepresentation, message)
    })??;
    if input.whole > template.whole + template.shift && number.signum() != 0 {
        let precision = template.whole + template.shift + input.fraction;
        return Err(too_long(precision, input.fraction));
    }
    if !template.has(Part::Shift) {
        return Ok(Value::from(number));
    }
    // `V` multiplies by a power of ten with 16 decimals, for the digits after it.
    let power = match template.shift {
        0 => format!("1.{}", "0".repeat(16)),
        shift if shift <= 16 => {
            format!("0.{}1{}", "0".repeat(shift - 1), "0".repeat(16 - shift))
        }
        _ => format!("0.{}", "0".repeat(16)),
    };
    let power = Decimal::parse(&power).ok_or_else(mismatch)??;
    Ok(Value::from(number.checked_mul(&power)?))
}
