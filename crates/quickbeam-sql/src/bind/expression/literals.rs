//! Literals and parameters.

use sqlparser::ast::Value as Literal;

use crate::bind::{Binder, PARAMETERS, Typed};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{Arithmetic, Expr, Function, NumberKind, TextPosition};
use crate::types::encoded::bits::BitString;
use crate::types::{self as values, DataType, EncodedKind, Value};

/// Returns the text of a quoted literal. The parser has already unescaped `E'…'`.
pub(in crate::bind) fn quoted(literal: &Literal) -> Option<&str> {
    match literal {
        Literal::SingleQuotedString(text)
        | Literal::EscapedStringLiteral(text)
        | Literal::UnicodeStringLiteral(text) => Some(text),
        Literal::DollarQuotedString(text) => Some(&text.value),
        _ => None,
    }
}

/// Reads a number: an integer if it is one, otherwise NUMERIC.
fn number(digits: &str) -> Result<(Value, DataType)> {
    if let Ok(value) = digits.parse::<i32>() {
        return Ok((Value::Integer(value), DataType::Integer));
    }
    if let Ok(value) = digits.parse::<i64>() {
        return Ok((Value::BigInt(value), DataType::BigInt));
    }
    let numeric = DataType::Numeric(None);
    Ok((values::parse_value(digits, numeric, &values::TextSettings::DEFAULT)?, numeric))
}

/// Returns what a word such as `today` stands for as a literal of a date or time, or `None` for
/// any other literal or type. The words mean the transaction's time.
pub(in crate::bind) fn clock_word(value: &Typed, to: DataType) -> Option<Expr> {
    let is_moment =
        matches!(to, DataType::Date | DataType::Time | DataType::Timestamp | DataType::TimestampTz);
    let (None, Expr::Constant(Value::Text(text)), true) = (value.data_type, &value.expr, is_moment)
    else {
        return None;
    };
    let position = TextPosition(value.position);
    let text = text.trim().to_ascii_lowercase();
    let (word, time) = match text.split_once(' ') {
        None => (&*text, None),
        Some((word, time)) => (word, Some(time.trim())),
    };
    let days = match word {
        "now" if time.is_none() => {
            let now = Expr::Call(Function::NOW, Vec::new(), position);
            return Some(match to {
                DataType::TimestampTz => now,
                to => now.cast(Some(DataType::TimestampTz), to, position),
            });
        }
        _ if to == DataType::Time => return None,
        "today" => 0,
        "tomorrow" => 1,
        "yesterday" => -1,
        _ => return None,
    };
    let today = Expr::Call(Function::CURRENT_DATE, Vec::new(), position);
    let days = Box::new([today, Expr::Constant(Value::Integer(days))]);
    let mut day = Expr::Arithmetic(Arithmetic::Add, NumberKind::Days, days, position);
    let mut from = DataType::Date;
    if let Some(time) = time {
        // A time with a zone would need the day in that zone.
        let plain = &values::TextSettings::DEFAULT;
        let time = values::parse_value(time, DataType::Time, plain).ok()?;
        let sum = Box::new([day, Expr::Constant(time)]);
        day = Expr::Arithmetic(Arithmetic::Add, NumberKind::DayTime, sum, position);
        from = DataType::Timestamp;
    }
    Some(if to == from { day } else { day.cast(Some(from), to, position) })
}

/// Binds the literal of a bit string.
fn bits(digits: &str, base: &str, position: u32) -> Result<Typed> {
    let bits = BitString::parse(&format!("{base}{digits}"));
    let bits = bits.map_err(|error| error.at(position as usize))?;
    let value = Expr::Constant(bits.value(EncodedKind::Bit));
    Ok(Typed::new(value, EncodedKind::Bit.data_type(), position))
}

impl Binder<'_> {
    /// Binds a literal or a parameter.
    pub(in crate::bind) fn literal(&mut self, literal: &Literal, position: u32) -> Result<Typed> {
        let known = |value, data_type| Ok(Typed::new(Expr::Constant(value), data_type, position));
        if let Some(text) = quoted(literal) {
            let text = values::checked_text(text).map_err(|error| error.at(position as usize))?;
            let expr = Expr::Constant(Value::text(text));
            return Ok(Typed { expr, data_type: None, position });
        }
        match literal {
            Literal::NationalStringLiteral(text) => {
                let text = values::checked_text(text);
                let text = text.map_err(|error| error.at(position as usize))?;
                known(Value::text(text), DataType::BPCHAR)
            }
            Literal::Null => {
                Ok(Typed { expr: Expr::Constant(Value::Null), data_type: None, position })
            }
            Literal::Boolean(value) => known(Value::Boolean(*value), DataType::Boolean),
            Literal::Number(digits, _) => {
                let read = number(digits).map_err(|error| error.at(position as usize));
                read.and_then(|(value, data_type)| known(value, data_type))
            }
            Literal::Placeholder(name) => self.parameter(name, position),
            Literal::SingleQuotedByteStringLiteral(digits) => bits(digits, "", position),
            Literal::HexStringLiteral(digits) => bits(digits, "x", position),
            other => {
                Err(SqlError::unsupported(format!("the literal {other}")).at(position as usize))
            }
        }
    }

    fn parameter(&mut self, name: &str, position: u32) -> Result<Typed> {
        let number = if name == "?" {
            Some(self.parameters.len() + 1)
        } else {
            name.strip_prefix('$').and_then(|digits| digits.parse::<usize>().ok())
        };
        let Some(number) = number.filter(|number| (1..=PARAMETERS).contains(number)) else {
            let message = format!("there is no parameter {name}");
            return Err(SqlError::new(SqlState::UndefinedParameter, message).at(position as usize));
        };
        if self.parameters.len() < number {
            self.parameters.resize(number, None);
        }
        let data_type = self.parameters[number - 1];
        Ok(Typed { expr: Expr::Parameter(number - 1), data_type, position })
    }
}
