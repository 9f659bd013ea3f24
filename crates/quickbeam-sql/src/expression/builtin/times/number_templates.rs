//! Number templates: `to_char` and `to_number`.

use crate::error::{Result, SqlError, SqlState};
use crate::expression::builtin::{Builtin, NUMERIC, check_size, mismatch, strict, text};
use crate::types::{DataType, Numeric, Value, ValueRef};
use DataType::{BigInt, Double, Integer, Real, Text};

pub(in crate::expression::builtin) static TABLE: &[Builtin] = &[
    strict("to_char", &[Integer, Text], Text, to_char),
    strict("to_char", &[BigInt, Text], Text, to_char),
    strict("to_char", &[NUMERIC, Text], Text, to_char),
    strict("to_char", &[Real, Text], Text, to_char),
    strict("to_char", &[Double, Text], Text, to_char),
    strict("to_number", &[Text, Text], NUMERIC, to_number),
];

/// A part of a number template.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    /// `9` or `0`; true: a digit that is always shown.
    Digit(bool),
    Point,
    Group,
    /// `S`
    AnchoredSign,
    /// `MI`
    Minus,
    /// `PL`
    Plus,
    /// `SG`
    Sign,
    /// `PR`
    Brackets,
    Literal(char),
}

/// A parsed template.
struct Template {
    parts: Vec<Part>,
    fills: bool,
}

impl Template {
    fn parse(text: &str) -> Result<Template> {
        let (mut parts, mut rest, mut fills) = (Vec::new(), text, false);
        while let Some(first) = rest.chars().next() {
            let two = rest.get(..2).unwrap_or_default().to_ascii_uppercase();
            let (part, length) = match (&two[..], first) {
                ("FM", _) => {
                    fills = true;
                    rest = &rest[2..];
                    continue;
                }
                ("MI", _) => (Part::Minus, 2),
                ("PL", _) => (Part::Plus, 2),
                ("SG", _) => (Part::Sign, 2),
                ("PR", _) => (Part::Brackets, 2),
                ("EE" | "RN" | "TH", _) | (_, 'V' | 'v' | 'L' | 'l' | 'B' | 'b') => {
                    return Err(SqlError::unsupported(format!("{first} in a number template")));
                }
                (_, '9') => (Part::Digit(false), 1),
                (_, '0') => (Part::Digit(true), 1),
                (_, '.' | 'D' | 'd') => (Part::Point, 1),
                (_, ',' | 'G' | 'g') => (Part::Group, 1),
                (_, 'S' | 's') => (Part::AnchoredSign, 1),
                (_, '"') => {
                    let quoted = rest[1..].split('"').next().unwrap_or_default();
                    parts.extend(quoted.chars().map(Part::Literal));
                    rest = rest.get(quoted.len() + 2..).unwrap_or_default();
                    continue;
                }
                (_, other) => (Part::Literal(other), other.len_utf8()),
            };
            if part == Part::Point && parts.contains(&Part::Point) {
                let message = "multiple decimal points";
                return Err(SqlError::new(SqlState::SyntaxError, message));
            }
            parts.push(part);
            rest = &rest[length..];
        }
        Ok(Template { parts, fills })
    }

    /// Returns the digits before and after the point; true is a digit that is always shown.
    fn digits(&self) -> [Vec<bool>; 2] {
        let mut digits = [Vec::new(), Vec::new()];
        let mut side = 0;
        for part in &self.parts {
            match part {
                Part::Point => side = 1,
                Part::Digit(is_shown) => digits[side].push(*is_shown),
                _ => {}
            }
        }
        digits
    }
}

fn to_char(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let number = match arguments.first() {
        Some(ValueRef::Double(value)) => Numeric::from_f64(*value)?,
        Some(ValueRef::Real(value)) => Numeric::from_f32(*value)?,
        Some(value) => value.as_numeric().ok_or_else(mismatch)?,
        None => return Err(mismatch()),
    };
    let template = Template::parse(text(arguments, 1)?)?;
    let shown = template.write(number)?;
    check_size(shown.len())?;
    Ok(Value::text(shown))
}

impl Template {
    fn write(&self, number: Numeric) -> Result<String> {
        let [whole, fraction] = self.digits();
        let rounded = number.round(i32::try_from(fraction.len()).unwrap_or(38).min(38))?;
        let is_negative = rounded.signum() < 0;
        let magnitude = rounded.absolute().to_string();
        let (digits, decimals) = magnitude.split_once('.').unwrap_or((&magnitude, ""));
        let digits = digits.trim_start_matches('0');
        let overflows = digits.len() > whole.len();
        let first_zero = whole.iter().position(|is_shown| *is_shown).unwrap_or(whole.len());
        let mut first_shown = first_zero.min(whole.len().saturating_sub(digits.len()));
        if first_shown == whole.len() && fraction.is_empty() {
            // A zero without a fraction shows its last digit.
            first_shown = whole.len().saturating_sub(1);
        }
        // Without padding, trailing zeros of the fraction go, unless the template has a 0 there.
        let last_shown = match self.fills {
            false => fraction.len(),
            true => {
                let nonzero = decimals.trim_end_matches('0').len();
                let zero = fraction.iter().rposition(|is_shown| *is_shown).map_or(0, |at| at + 1);
                nonzero.max(zero)
            }
        };
        // `PL` shows a plus sign only: a minus sign keeps its own place.
        let has_own_sign = self.parts.iter().any(|part| {
            matches!(part, Part::AnchoredSign | Part::Minus | Part::Sign | Part::Brackets)
        });
        let has_leading_sign = self.parts.iter().position(|part| *part == Part::AnchoredSign)
            < self.parts.iter().position(|part| matches!(part, Part::Digit(_)))
            && self.parts.contains(&Part::AnchoredSign);
        let brackets = self.parts.contains(&Part::Brackets);
        let sign = match (has_own_sign, is_negative) {
            (false, true) => "-",
            (false, false) if self.fills => "",
            (false, false) => " ",
            (true, true) if brackets => "<",
            (true, false) if brackets && !self.fills => " ",
            (true, _) if has_leading_sign => {
                if is_negative {
                    "-"
                } else {
                    "+"
                }
            }
            _ => "",
        };
        let mut out = String::new();
        let (mut at, mut after_point, mut is_signed) = (0, 0, false);
        let mut in_fraction = false;
        for part in &self.parts {
            let starts = matches!(part, Part::Point)
                || matches!(part, Part::Digit(_)) && !in_fraction && at >= first_shown;
            if starts && !std::mem::replace(&mut is_signed, true) {
                out.push_str(sign);
            }
            match part {
                Part::Point => {
                    in_fraction = true;
                    out.push('.');
                }
                Part::Digit(_) if in_fraction => {
                    if after_point < last_shown {
                        let digit =
                            decimals.as_bytes().get(after_point).map_or('0', |d| char::from(*d));
                        out.push(if overflows { '#' } else { digit });
                    }
                    after_point += 1;
                }
                Part::Digit(_) => {
                    if at >= first_shown {
                        let skipped = whole.len().saturating_sub(digits.len());
                        let digit =
                            at.checked_sub(skipped).and_then(|at| digits.as_bytes().get(at));
                        out.push(match digit {
                            _ if overflows => '#',
                            Some(digit) => char::from(*digit),
                            None => '0',
                        });
                    } else if !self.fills {
                        out.push(' ');
                    }
                    at += 1;
                }
                Part::Group if at > first_shown => out.push(','),
                Part::Group if !self.fills => out.push(' '),
                Part::Group => {}
                Part::AnchoredSign if has_leading_sign => {}
                Part::AnchoredSign | Part::Sign => out.push(if is_negative { '-' } else { '+' }),
                Part::Minus if is_negative => out.push('-'),
                Part::Plus if !is_negative => out.push('+'),
                Part::Minus | Part::Plus if !self.fills => out.push(' '),
                Part::Minus | Part::Plus => {}
                Part::Brackets if is_negative => out.push('>'),
                Part::Brackets if !self.fills => out.push(' '),
                Part::Brackets => {}
                Part::Literal(character) => out.push(*character),
            }
        }
        Ok(out)
    }
}

fn to_number(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (text, template) = (text(arguments, 0)?, Template::parse(text(arguments, 1)?)?);
    let [whole, fraction] = template.digits();
    let (mut digits, mut in_fraction, mut is_negative) = (String::new(), false, false);
    let mut counts = [0, 0];
    for character in text.chars() {
        match character {
            '-' | '<' => is_negative = true,
            '.' if !in_fraction => {
                in_fraction = true;
                digits.push('.');
            }
            '0'..='9' => {
                let side = usize::from(in_fraction);
                let most = if in_fraction { fraction.len() } else { whole.len() };
                if counts[side] < most {
                    digits.push(character);
                    counts[side] += 1;
                }
            }
            _ => {}
        }
    }
    let number = Numeric::parse(digits.trim_end_matches('.')).ok_or_else(|| {
        let message = format!("invalid input syntax for type numeric: \"{text}\"");
        SqlError::new(SqlState::InvalidTextRepresentation, message)
    })?;
    Ok(Value::Numeric(if is_negative { number.negate() } else { number }))
}
