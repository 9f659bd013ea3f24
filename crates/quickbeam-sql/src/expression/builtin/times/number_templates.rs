//! Number templates: `to_char` and `to_number`.
//!
//! - TEMPLATE-1: the binder passes numbers in their own type: an integer is padded with zeros,
//!   NUMERIC is rounded half away from zero and a floating-point number to the even neighbour, as
//!   each type's output does in PostgreSQL.

use quickbeam::invariant;

use crate::error::{Result, SqlError, SqlState};
use crate::expression::builtin::times::templates::quoted_part;
use crate::expression::builtin::{
    Builtin, NUMERIC, check_size, mismatch, out_of_range, strict, text,
};
use crate::types::{CastContext, DataType, Decimal, TextSettings, Value, ValueRef, convert};
use DataType::{BigInt, Double, Integer, Real, Text};

pub(in crate::expression::builtin) static TABLE: &[Builtin] = &[
    strict("to_char", &[Integer, Text], Text, to_char),
    strict("to_char", &[BigInt, Text], Text, to_char),
    strict("to_char", &[NUMERIC, Text], Text, to_char),
    strict("to_char", &[Real, Text], Text, to_char),
    strict("to_char", &[Double, Text], Text, to_char),
];

/// The most digits that a template has on each side of the point.
const MOST_DIGITS: usize = 1000;

/// A part of a number template.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Part {
    /// `9`
    Digit,
    /// `0`
    Zero,
    Point,
    Group,
    Currency,
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
    /// `RN`; true: in lower case.
    Roman(bool),
    /// `TH`; true: in lower case.
    Ordinal(bool),
    /// `V`
    Shift,
    /// `EEEE`
    Exponent,
    /// `B`, `C` or `SP`, which have no effect
    Blank,
    /// `FM`
    Fill,
    Literal(char),
}

/// The keywords, in the order in which they are tried.
const KEYWORDS: &[(&str, Part)] = &[
    ("FM", Part::Fill),
    ("MI", Part::Minus),
    ("PL", Part::Plus),
    ("PR", Part::Brackets),
    ("SG", Part::Sign),
    ("RN", Part::Roman(false)),
    ("TH", Part::Ordinal(false)),
    ("EEEE", Part::Exponent),
    ("V", Part::Shift),
    ("L", Part::Currency),
    ("B", Part::Blank),
    ("C", Part::Blank),
    ("D", Part::Point),
    ("G", Part::Group),
    ("SP", Part::Blank),
    ("S", Part::AnchoredSign),
    (".", Part::Point),
    (",", Part::Group),
    ("9", Part::Digit),
    ("0", Part::Zero),
];

/// Where `S` writes the sign.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Anchor {
    Before,
    After,
}

/// A parsed template.
#[derive(Default)]
pub(super) struct Template {
    parts: Vec<Part>,
    /// Digits before the point, after it, and after `V`.
    pub(super) whole: usize,
    pub(super) fraction: usize,
    pub(super) shift: usize,
    /// The number of the first `0` before the point, and the digits up to the last `0`.
    first_zero: Option<usize>,
    last_zero: usize,
    pub(super) anchor: Option<Anchor>,
    /// The digits before `S`.
    before_sign: usize,
    has_shift: bool,
}

#[cold]
fn malformed(message: &str) -> SqlError {
    SqlError::new(SqlState::SyntaxError, message)
}

impl Template {
    pub(super) fn has(&self, part: Part) -> bool {
        self.parts.contains(&part)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    pub(super) fn is_roman(&self) -> bool {
        self.has(Part::Roman(false)) || self.has(Part::Roman(true))
    }

    pub(super) fn parse(text: &str) -> Result<Template> {
        let (mut template, mut rest) = (Template::default(), text);
        while let Some(first) = rest.chars().next() {
            if first == '"' {
                let (quoted, after) = quoted_part(rest);
                template.parts.extend(quoted.chars().map(Part::Literal));
                rest = after;
                continue;
            }
            // A backslash makes the quote after it a character; elsewhere it is one itself.
            if let Some(after) = rest.strip_prefix("\\\"") {
                template.parts.push(Part::Literal('"'));
                rest = after;
                continue;
            }
            // A keyword is in upper or in lower case, not in both.
            let keyword = KEYWORDS.iter().find_map(|(name, part)| {
                let lower = name.to_ascii_lowercase();
                let is_lower = rest.starts_with(&lower) && lower != *name;
                let part = match part {
                    Part::Roman(_) => Part::Roman(is_lower),
                    Part::Ordinal(_) => Part::Ordinal(is_lower),
                    other => *other,
                };
                (is_lower || rest.starts_with(name)).then_some((part, name.len()))
            });
            let (part, length) = keyword.unwrap_or((Part::Literal(first), first.len_utf8()));
            template.add(part)?;
            rest = &rest[length..];
        }
        if template.whole.max(template.fraction) + template.shift > MOST_DIGITS {
            return Err(malformed("a number template has too many digits"));
        }
        Ok(template)
    }

    fn add(&mut self, part: Part) -> Result<()> {
        let has_sign = |template: &Template| {
            [Part::Plus, Part::Minus, Part::Sign].iter().any(|sign| template.has(*sign))
        };
        if self.has(Part::Exponent) && !matches!(part, Part::Literal(_)) {
            let twice = part == Part::Exponent;
            let message = if twice {
                "cannot use \"EEEE\" twice"
            } else {
                "\"EEEE\" must be the last pattern used"
            };
            return Err(malformed(message));
        }
        let is_decimal = self.has(Part::Point);
        match part {
            Part::Digit | Part::Zero if self.has(Part::Brackets) => {
                return Err(malformed("\"9\" and \"0\" must be ahead of \"PR\""));
            }
            Part::Digit if self.has_shift => self.shift += 1,
            Part::Digit if is_decimal => self.fraction += 1,
            Part::Digit => self.whole += 1,
            Part::Zero => {
                if self.first_zero.is_none() && !is_decimal {
                    self.first_zero = Some(self.whole);
                }
                *(if is_decimal { &mut self.fraction } else { &mut self.whole }) += 1;
                self.last_zero = self.whole + self.fraction;
            }
            Part::Point if is_decimal => return Err(malformed("multiple decimal points")),
            Part::Point if self.has_shift => {
                return Err(malformed("cannot use \"V\" and decimal point together"));
            }
            Part::Shift if is_decimal => {
                return Err(malformed("cannot use \"V\" and decimal point together"));
            }
            Part::Shift => self.has_shift = true,
            Part::AnchoredSign if self.anchor.is_some() => {
                return Err(malformed("cannot use \"S\" twice"));
            }
            Part::AnchoredSign if has_sign(self) || self.has(Part::Brackets) => {
                return Err(malformed("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together"));
            }
            Part::AnchoredSign => {
                self.before_sign = self.whole;
                self.anchor = Some(if is_decimal { Anchor::After } else { Anchor::Before });
            }
            Part::Plus | Part::Minus | Part::Sign if self.anchor.is_some() => {
                return Err(malformed("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\" together"));
            }
            Part::Brackets if self.anchor.is_some() || has_sign(self) => {
                return Err(malformed("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together"));
            }
            Part::Exponent => {
                let others = [Part::Fill, Part::Blank, Part::Brackets, Part::Roman(false)];
                if others.iter().any(|other| self.has(*other))
                    || has_sign(self)
                    || self.anchor.is_some()
                    || self.has_shift
                {
                    return Err(malformed("\"EEEE\" is incompatible with other formats"));
                }
            }
            _ => {}
        }
        self.parts.push(part);
        Ok(())
    }
}

fn to_char(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let value = *arguments.first().ok_or_else(mismatch)?;
    invariant!(
        TEMPLATE_1,
        value.data_type().is_some_and(DataType::is_numeric),
        "{:?}",
        value.data_type()
    );
    let mut template = Template::parse(text(arguments, 1)?)?;
    if template.is_roman() {
        return Ok(Value::text(template.write((&roman(value)?, false))));
    }
    if template.has(Part::Exponent) {
        return Ok(Value::text(scientific(value, &template)?));
    }
    let shown = decimal(value, &mut template)?;
    let (digits, is_negative) = match shown.strip_prefix('-') {
        Some(digits) => (digits, true),
        None => (&shown[..], false),
    };
    template.check_ordinal((digits, is_negative))?;
    let shown = template.write((digits, is_negative));
    check_size(shown.len())?;
    Ok(Value::text(shown))
}

/// Returns the number in decimal form, with as many decimals as the template has.
fn decimal(value: ValueRef<'_>, template: &mut Template) -> Result<String> {
    let shift = template.shift;
    template.whole += shift;
    let float = |value: f64, digits: usize, template: &mut Template| {
        let value = value * 10_f64.powi(shift as i32);
        if !value.is_finite() {
            let name = if value.is_nan() { "NaN" } else { "Infinity" };
            return format!("{}{name}", if value < 0.0 { "-" } else { "" });
        }
        let whole = format!("{:.0}", value.abs()).len();
        template.fraction = template.fraction.min(digits.saturating_sub(whole));
        format!("{value:.*}", template.fraction)
    };
    Ok(match value {
        ValueRef::Double(value) => float(value, 15, template),
        ValueRef::Real(value) => float(value.into(), 6, template),
        value => {
            let mut number = value.as_decimal().ok_or_else(mismatch)?;
            if !number.is_finite() {
                return Ok(number.to_string());
            }
            if shift > 0 {
                let text = format!("{number}e{shift}");
                number = Decimal::parse(&text).ok_or_else(|| out_of_range("numeric"))??;
            }
            let places = template.fraction;
            let mut shown = number.round(places.min(1_000) as i64)?.to_string();
            let decimals = shown.split_once('.').map_or(0, |(_, decimals)| decimals.len());
            if decimals < places {
                shown.push_str(if decimals == 0 { "." } else { "" });
                (decimals..places).for_each(|_| shown.push('0'));
            }
            shown
        }
    })
}

/// Returns the number in scientific form.
fn scientific(value: ValueRef<'_>, template: &Template) -> Result<String> {
    let places = template.fraction;
    let shown = match value {
        ValueRef::Double(_) | ValueRef::Real(_) => {
            let value = value.as_f64().unwrap_or_default();
            if !value.is_finite() {
                return Ok(template.without_exponent());
            }
            format!("{value:.places$e}")
        }
        value => {
            let number = value.as_decimal().ok_or_else(mismatch)?;
            if !number.is_finite() {
                return Ok(template.without_exponent());
            }
            let (digits, scale) = (number.absolute().to_string(), 0_i32);
            let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
            let all = format!("{whole}{fraction}");
            let exponent = match all.find(|digit| digit != '0') {
                Some(first) => whole.len() as i32 - 1 - first as i32,
                None => scale,
            };
            // Rounding in decimal form, half away from zero, and maybe to one more digit.
            let rounded = number.absolute().round(places as i64 - i64::from(exponent))?.to_string();
            let all: String = rounded.chars().filter(char::is_ascii_digit).collect();
            let point = rounded.split('.').next().unwrap_or_default().len() as i32;
            let first = all.find(|digit| digit != '0');
            let exponent = first.map_or(0, |first| point - 1 - first as i32);
            let mut kept: String = all.chars().skip(first.unwrap_or(0)).take(places + 1).collect();
            (kept.len()..=places).for_each(|_| kept.push('0'));
            let (head, tail) = kept.split_at(1);
            let sign = if number.signum() < 0 { "-" } else { "" };
            let point = if places > 0 { "." } else { "" };
            format!("{sign}{head}{point}{tail}e{exponent}")
        }
    };
    let (number, exponent) = shown.split_once('e').unwrap_or((&shown, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let sign = if exponent < 0 { '-' } else { '+' };
    let blank = if number.starts_with('-') { "" } else { " " };
    Ok(format!("{blank}{number}e{sign}{:02}", exponent.abs()))
}

/// Returns the number in Roman numerals, or `#` if it has none. An exact number is rounded to an
/// INTEGER first, which is an error if it is none.
fn roman(value: ValueRef<'_>) -> Result<String> {
    const NUMERALS: [(i64, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    let number = match value {
        ValueRef::Double(_) | ValueRef::Real(_) => {
            value.as_f64().map(f64::round_ties_even).map(|number| number as i64)
        }
        value => {
            let context = CastContext::Explicit;
            let whole =
                convert(value.to_value(), NUMERIC, Integer, context, &TextSettings::DEFAULT);
            whole?.as_ref().as_i64()
        }
    };
    let Some(mut number @ 1..=3999) = number else { return Ok("#".repeat(15)) };
    let mut out = String::new();
    for (worth, numeral) in NUMERALS {
        while number >= worth {
            out.push_str(numeral);
            number -= worth;
        }
    }
    Ok(out)
}

/// The state of writing a number by a template.
struct TemplateWriter<'t> {
    template: &'t Template,
    out: String,
    digits: &'t [u8],
    /// The next digit.
    at: usize,
    /// Parts for digits and points that were seen.
    seen: usize,
    /// Places before the first digit of the number.
    spaces: usize,
    /// The place of the last digit that is not left out.
    last_relevant: Option<usize>,
    is_negative: bool,
    is_signed: bool,
    /// Digits were written already.
    has_begun: bool,
    anchor: Option<Anchor>,
    fills: bool,
    /// Digits of the template, counted as PostgreSQL does, to see the last one.
    count: usize,
}

impl Template {
    /// Returns what `EEEE` writes for NaN and the infinities.
    fn without_exponent(&self) -> String {
        format!(" {}.{}", "#".repeat(self.whole), "#".repeat(self.fraction + 4))
    }

    /// Checks that `TH` follows digits: NaN and Infinity have no ordinal.
    fn check_ordinal(&self, (digits, is_negative): (&str, bool)) -> Result<()> {
        let has_ordinal = self.has(Part::Ordinal(false)) || self.has(Part::Ordinal(true));
        let is_number = digits.starts_with(|first: char| first.is_ascii_digit());
        // A number that does not fit is written as `#`, which has no ordinal and is no error.
        let fits = digits.len() <= self.whole;
        if has_ordinal && !is_number && fits && !is_negative && !self.has(Part::Point) {
            let message = format!("\"{digits}\" is not a number");
            return Err(SqlError::new(SqlState::InvalidTextRepresentation, message));
        }
        Ok(())
    }

    /// Writes a number: its digits, and whether it is negative.
    fn write(&self, (digits, is_negative): (&str, bool)) -> String {
        let whole = digits.split('.').next().unwrap_or_default().len();
        let overflow;
        let mut digits = digits;
        if whole > self.whole && !self.is_roman() {
            overflow = format!("{}.{}", "#".repeat(self.whole), "#".repeat(self.fraction));
            digits = &overflow;
        }
        let fills = self.has(Part::Fill);
        let has_plus = self.has(Part::Plus) || self.has(Part::Sign);
        let has_minus = self.has(Part::Minus) || self.has(Part::Sign);
        let is_signed = match (has_plus, has_minus) {
            (true, false) => false,
            (_, true) => true,
            _ => !is_negative && fills && self.anchor.is_none(),
        };
        let is_after = self.anchor == Some(Anchor::Before) && self.whole == self.before_sign;
        let spaces = self.whole.saturating_sub(whole);
        let mut writer = TemplateWriter {
            template: self,
            out: String::new(),
            digits: digits.as_bytes(),
            at: 0,
            seen: 0,
            spaces,
            last_relevant: None,
            is_negative,
            is_signed,
            has_begun: false,
            anchor: if is_after { Some(Anchor::After) } else { self.anchor },
            fills,
            count: (self.whole + self.fraction).saturating_sub(1)
                + usize::from(!is_signed && spaces == 0),
        };
        writer.find_last_relevant();
        self.parts.iter().for_each(|part| writer.write(*part));
        writer.out
    }
}

impl TemplateWriter<'_> {
    /// Finds the last digit that `FM` keeps.
    fn find_last_relevant(&mut self) {
        if !self.fills || !self.template.has(Part::Point) {
            return;
        }
        let Some(point) = self.digits.iter().position(|digit| *digit == b'.') else { return };
        let mut decimals = self.digits.iter().skip(point + 1);
        let mut last =
            decimals.rposition(|digit| *digit != b'0').map_or(point, |at| point + 1 + at);
        if self.template.last_zero > self.spaces {
            let zero = (self.template.last_zero - self.spaces).min(self.digits.len() - 1);
            last = last.max(zero);
        }
        self.last_relevant = Some(last);
    }

    fn write(&mut self, part: Part) {
        match part {
            Part::Digit | Part::Zero | Part::Point => self.write_digit(part),
            Part::Group if self.has_begun => self.out.push(','),
            Part::Currency => self.out.push(' '),
            Part::Roman(is_lower) => {
                let mut number = String::from_utf8_lossy(self.digits).into_owned();
                if is_lower {
                    number.make_ascii_lowercase();
                }
                let width = if self.fills { 0 } else { 15 };
                self.out.push_str(&format!("{number:>width$}"));
            }
            Part::Ordinal(is_lower) => {
                let is_plain = !self.is_negative
                    && !self.template.has(Part::Point)
                    && !self.template.is_roman()
                    && self.digits.first() != Some(&b'#');
                if is_plain {
                    let ending = ordinal_ending(self.digits);
                    self.out.push_str(&if is_lower {
                        ending.to_owned()
                    } else {
                        ending.to_uppercase()
                    });
                }
            }
            Part::Sign => self.out.push(if self.is_negative { '-' } else { '+' }),
            Part::Minus if self.is_negative => self.out.push('-'),
            Part::Plus if !self.is_negative && !self.template.is_roman() => self.out.push('+'),
            Part::Minus | Part::Plus | Part::Group if !self.fills => self.out.push(' '),
            Part::Literal(character) => self.out.push(character),
            _ => {}
        }
    }

    /// Returns whether the next digit is the zero before the point that is not shown.
    fn is_hidden_zero(&self) -> bool {
        self.template.first_zero.is_none()
            && self.at == 0
            && self.digits.first() == Some(&b'0')
            && self.template.fraction > 0
    }

    fn write_sign(&mut self) {
        self.is_signed = match self.anchor {
            Some(Anchor::Before) => {
                self.out.push(if self.is_negative { '-' } else { '+' });
                true
            }
            Some(Anchor::After) => false,
            None => {
                match (self.template.has(Part::Brackets), self.is_negative) {
                    (true, true) => self.out.push('<'),
                    (true, false) if self.fills => {}
                    (false, true) => self.out.push('-'),
                    (false, false) if self.fills => {}
                    _ => self.out.push(' '),
                }
                true
            }
        };
    }

    fn write_digit(&mut self, part: Part) {
        if self.template.is_roman() {
            return;
        }
        let is_point_last =
            self.last_relevant.is_some_and(|last| self.digits.get(last) == Some(&b'.'));
        let zero = self.template.first_zero;
        if !self.is_signed
            && (self.seen >= self.spaces || zero == Some(self.seen))
            && (!self.is_hidden_zero() || is_point_last)
        {
            self.write_sign();
        }
        let is_before = self.seen < self.spaces;
        if is_before && zero.is_none_or(|zero| zero > self.seen) {
            if !self.fills {
                self.out.push(' ');
            }
        } else if is_before {
            self.out.push('0');
            self.has_begun = true;
        } else {
            match self.digits.get(self.at) {
                Some(b'.') => self.out.push('.'),
                Some(_)
                    if self.last_relevant.is_some_and(|last| self.at > last)
                        && part != Part::Zero => {}
                Some(_) if self.is_hidden_zero() => {
                    if !self.fills {
                        self.out.push(' ');
                    } else if is_point_last {
                        self.out.push('0');
                    }
                }
                Some(digit) => {
                    self.out.push(char::from(*digit));
                    self.has_begun = true;
                }
                None => {}
            }
            self.at += usize::from(self.at < self.digits.len());
        }
        let is_decimal = self.template.has(Part::Point);
        let mut end = self.count + usize::from(self.spaces > 0) + usize::from(is_decimal);
        if self.last_relevant == Some(self.at) {
            end = self.seen;
        }
        if self.seen + 1 == end {
            if self.is_signed && self.template.has(Part::Brackets) {
                match self.is_negative {
                    true => self.out.push('>'),
                    false if !self.fills => self.out.push(' '),
                    false => {}
                }
            } else if self.anchor == Some(Anchor::After) {
                self.out.push(if self.is_negative { '-' } else { '+' });
            }
        }
        self.seen += 1;
    }
}

/// Returns the ending of an ordinal number.
pub(super) fn ordinal_ending(digits: &[u8]) -> &'static str {
    match digits {
        [.., b'1', _] => "th",
        [.., b'1'] => "st",
        [.., b'2'] => "nd",
        [.., b'3'] => "rd",
        _ => "th",
    }
}
