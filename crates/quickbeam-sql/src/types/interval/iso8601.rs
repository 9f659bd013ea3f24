//! Intervals in the forms of ISO 8601: `P1Y2M3DT4H5M6S`, `P0001-02-03T04:05:06`, `P00010203`.

use super::units::{FieldSum, FieldUnit, IntervalFault, Read};
use super::{HOUR, MINUTE};
use crate::types::datetime::SECOND;

/// The forms of ISO 8601, after their `P`.
pub(super) struct Designated<'t> {
    rest: &'t str,
    sum: FieldSum,
}

impl<'t> Designated<'t> {
    pub(super) fn new(rest: &'t str) -> Designated<'t> {
        Designated { rest, sum: FieldSum::default() }
    }

    /// Takes a number, and the digits that it begins with.
    fn number(&mut self) -> Read<(i64, f64, usize)> {
        if !self.rest.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.') {
            return Err(IntervalFault::Format);
        }
        let unsigned = self.rest.strip_prefix('-').unwrap_or(self.rest);
        let digits = unsigned.bytes().take_while(u8::is_ascii_digit).count();
        let mut end = self.rest.len() - unsigned.len() + digits;
        if let Some(fraction) = self.rest.get(end..).and_then(|rest| rest.strip_prefix('.')) {
            end += 1 + fraction.bytes().take_while(u8::is_ascii_digit).count();
        }
        let exponent = self.rest.get(end..).and_then(|rest| rest.strip_prefix(['e', 'E']));
        if let Some(exponent) = exponent {
            let unsigned = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
            let digits = unsigned.bytes().take_while(u8::is_ascii_digit).count();
            end += if digits > 0 { 1 + exponent.len() - unsigned.len() + digits } else { 0 };
        }
        let (number, rest) = self.rest.split_at(end);
        let number: f64 = number.parse().map_err(|_| IntervalFault::Format)?;
        self.rest = rest;
        if number.abs() > 1e15 {
            return Err(IntervalFault::Overflow);
        }
        Ok((number.trunc() as i64, number - number.trunc(), digits))
    }

    fn letter(&mut self) -> Option<char> {
        let next = self.rest.chars().next()?;
        self.rest = self.rest.get(next.len_utf8()..).unwrap_or_default();
        Some(next)
    }

    /// Reads the part before `T`, and that after it.
    pub(super) fn read(mut self) -> Read<FieldSum> {
        let mut has_field = false;
        while !self.rest.is_empty() {
            if self.rest.starts_with('T') {
                self.letter();
                return self.time();
            }
            let (whole, fraction, digits) = self.number()?;
            let letter = self.letter();
            let unit = match letter {
                Some('Y') => FieldUnit::Year,
                Some('M') => FieldUnit::Month,
                Some('W') => FieldUnit::Week,
                Some('D') => FieldUnit::Day,
                None | Some('T') if digits == 8 && !has_field => {
                    self.sum.add_years(whole / 10_000, 0.0, 1)?;
                    self.sum.add_months(whole / 100 % 100)?;
                    self.sum.add_units(whole % 100, fraction, FieldUnit::Day)?;
                    return if letter.is_none() { Ok(self.sum) } else { self.time() };
                }
                None | Some('T' | '-') if !has_field => {
                    return self.moment(whole, fraction, letter);
                }
                _ => return Err(IntervalFault::Format),
            };
            self.sum.add_units(whole, fraction, unit)?;
            has_field = true;
        }
        Ok(self.sum)
    }

    /// Reads `0001-02-03` from the months on, and a time.
    fn moment(mut self, years: i64, fraction: f64, letter: Option<char>) -> Read<FieldSum> {
        self.sum.add_years(years, fraction, 1)?;
        let mut letter = letter;
        for unit in [FieldUnit::Month, FieldUnit::Day] {
            match letter {
                None => return Ok(self.sum),
                Some('T') => return self.time(),
                Some('-') => {}
                Some(_) => return Err(IntervalFault::Format),
            }
            let (whole, fraction, _) = self.number()?;
            self.sum.add_units(whole, fraction, unit)?;
            letter = self.letter();
        }
        match letter {
            None => Ok(self.sum),
            Some('T') => self.time(),
            Some(_) => Err(IntervalFault::Format),
        }
    }

    /// Reads the part after `T`.
    fn time(mut self) -> Read<FieldSum> {
        let mut has_field = false;
        while !self.rest.is_empty() {
            if self.rest.starts_with('T') {
                self.letter();
                has_field = false;
                continue;
            }
            let (whole, fraction, digits) = self.number()?;
            let letter = self.letter();
            let unit = match letter {
                Some('H') => FieldUnit::Hour,
                Some('M') => FieldUnit::Minute,
                Some('S') => FieldUnit::Second,
                None if digits == 6 && !has_field => {
                    self.sum.add_micros(whole / 10_000, 0.0, HOUR)?;
                    self.sum.add_micros(whole / 100 % 100, 0.0, MINUTE)?;
                    self.sum.add_micros(whole % 100, fraction, SECOND)?;
                    return Ok(self.sum);
                }
                None | Some(':') if !has_field => {
                    self.sum.add_micros(whole, fraction, HOUR)?;
                    let mut letter = letter;
                    for unit in [FieldUnit::Minute, FieldUnit::Second] {
                        match letter {
                            None => return Ok(self.sum),
                            Some(':') => {}
                            Some(_) => return Err(IntervalFault::Format),
                        }
                        let (whole, fraction, _) = self.number()?;
                        self.sum.add_units(whole, fraction, unit)?;
                        letter = self.letter();
                    }
                    return if letter.is_none() {
                        Ok(self.sum)
                    } else {
                        Err(IntervalFault::Format)
                    };
                }
                _ => return Err(IntervalFault::Format),
            };
            self.sum.add_units(whole, fraction, unit)?;
            has_field = true;
        }
        Ok(self.sum)
    }
}
