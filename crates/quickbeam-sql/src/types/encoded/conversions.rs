//! Text forms and casts of the types whose values are bytes.

use quickbeam::invariant;

use super::bits::BitString;
use super::multirange::Multirange;
use super::network::{self, format_hardware};
use super::range::{ReadValue, WriteValue};
use super::text_search::{TextQuery, TextVector, TextVectorRef};
use super::{
    Address, EncodedKind as K, EncodedType, RangeValue, ZonedTime, enums, record, tuple_id,
    zoned_time,
};
use crate::error::{Result, SqlError};
use crate::types::adjust::rounded_to;
use crate::types::collation::{Collation, sort_key};
use crate::types::{RowRef, TextSettings, Value};

/// Reads a value of that type.
pub(crate) fn parse(
    encoded: EncodedType,
    text: &str,
    settings: &TextSettings,
    read: ReadValue,
) -> Result<Value> {
    match encoded.kind {
        K::TimeTz => zoned_time::parse(text, settings).map(ZonedTime::value),
        K::Enum => enums::parse(encoded, text).map(|bytes| Value::encoded(K::Enum, &bytes)),
        K::Record => record::parse(encoded, text, settings, read),
        K::Tid => tuple_id::parse(text),
        K::Xid8 => Ok(tuple_id::parse_transaction(text)),
        K::Cid => Ok(tuple_id::parse_command(text)),
        K::PgLsn => tuple_id::parse_log_position(text),
        K::TsVector => TextVector::parse(text).map(|it| it.value()),
        K::TsQuery => TextQuery::parse(text).map(|it| it.value()),
        K::Collated => match Collation::of_key_type(encoded) {
            Some(collation) => collation.key(text),
            None => Err(SqlError::internal("a sort key of no collation")),
        },
        kind @ (K::Inet | K::Cidr) => Address::parse(text, kind).map(|it| it.value(kind)),
        kind @ (K::Macaddr | K::Macaddr8) => network::parse_hardware(text, kind),
        kind @ (K::Bit | K::Varbit) => BitString::parse(text).map(|it| it.value(kind)),
        kind if kind.is_multirange() => {
            Ok(Multirange::parse(text, kind, settings, read)?.value(kind))
        }
        kind => Ok(RangeValue::parse(text, kind, settings, read)?.value(kind)),
    }
}

/// Appends a value as text.
pub(crate) fn format(
    out: &mut String,
    encoded: EncodedType,
    bytes: &[u8],
    settings: &TextSettings,
    write: WriteValue,
) {
    let (kind, before) = (encoded.kind, out.len());
    // Bytes of no value are shown as nothing.
    let shown = match kind {
        K::TimeTz => ZonedTime::read(bytes).map(|time| time.format(out)),
        K::Enum => enums::label(bytes).map(|label| out.push_str(label)),
        K::Record => RowRef::read(bytes).map(|row| record::format(row, out, settings, write)),
        K::Tid => tuple_id::format(out, bytes),
        K::PgLsn => tuple_id::format_log_position(out, bytes),
        K::Xid8 | K::Cid => tuple_id::number(bytes).map(|it| out.push_str(&it.to_string())),
        K::Inet | K::Cidr => Address::read(bytes).map(|it| it.format(out, kind == K::Cidr)),
        K::Macaddr | K::Macaddr8 => {
            format_hardware(out, bytes);
            Some(())
        }
        K::Bit | K::Varbit => BitString::read(bytes).map(|bits| bits.format(out)),
        K::TsVector => TextVectorRef::read(bytes).map(|it| it.format(out)),
        K::TsQuery => TextQuery::read(bytes).map(|it| it.format(out)),
        K::Collated => sort_key::text(bytes).map(|text| out.push_str(text)),
        kind if kind.is_multirange() => {
            Multirange::read(bytes, kind).map(|it| it.format(out, settings, write))
        }
        kind => RangeValue::read(bytes, kind).map(|it| it.format(out, settings, write)),
    };
    invariant!(ENC_2, shown.is_some() || out.len() == before, "damaged bytes of {kind:?}");
}

/// Converts between types of bytes. Returns `None` if there is no such cast.
pub(crate) fn convert(
    from: EncodedType,
    bytes: &[u8],
    to: EncodedType,
    is_explicit: bool,
) -> Option<Result<Value>> {
    let same = || Value::encoded(to.kind, bytes);
    Some(match (from.kind, to.kind) {
        (_, K::Bit | K::Varbit) => {
            BitString::read(bytes)?.fit(to, is_explicit).map(|bits| bits.value(to.kind))
        }
        (K::Inet | K::Cidr, K::Cidr) => Ok(Address::read(bytes)?.network().value(K::Cidr)),
        (K::Cidr, K::Inet) => Ok(same()),
        (K::TimeTz, K::TimeTz) if to.length() > 0 => {
            let time = ZonedTime::read(bytes)?;
            let micros = rounded_to(time.micros, (to.length() - 1) as u8)?;
            Ok(ZonedTime { micros, ..time }.value())
        }
        (K::Macaddr | K::Macaddr8, K::Macaddr | K::Macaddr8) => {
            network::convert_hardware(bytes, to.kind)
        }
        // A value of a variable may be of another type, which PostgreSQL converts by its label.
        (K::Enum, K::Enum) if to.definition().is_some() => {
            enums::parse(to, enums::label(bytes)?).map(|bytes| Value::encoded(K::Enum, &bytes))
        }
        (a, b) if a == b => Ok(same()),
        (a, b) if a.is_range() && a.multirange() == b => {
            Ok(Multirange::of(vec![RangeValue::read(bytes, a)?]).value(b))
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::*;
    use crate::types::encoded::{EncodedKind, of_ordering_key, ordering_key};
    use crate::types::parse_value;

    fn read(kind: EncodedKind, text: &str) -> Value {
        parse(EncodedType::new(kind, 0), text, &TextSettings::DEFAULT, parse_value).unwrap()
    }

    #[test]
    fn values_sort_as_in_postgresql() {
        // Each list is in PostgreSQL's order.
        let lists: &[(EncodedKind, &[&str])] = &[
            (K::TimeTz, &["03:05:06+02", "04:05:06+02", "03:05:06+01", "05:05:06+02", "23:00-12"]),
            (
                K::Inet,
                &["10.0.0.0/8", "10.1.2.3/8", "10.0.0.0/16", "10.1.0.0/16", "10.1.2.3", "::1"],
            ),
            (K::Varbit, &["", "0", "00", "01", "1", "10", "100000000", "1000000001", "101", "11"]),
            (K::Int4Range, &["empty", "(,1)", "(,)", "[1,2)", "[1,3)", "[1,)", "[2,3)"]),
            (
                K::NumRange,
                &["(,-1.5]", "[-2.5,0)", "[-2,0)", "(-2,0)", "[0.5,1)", "[0.50,1]", "[10,11)"],
            ),
            (K::TsVector, &["", "a", "b", "b:2", "b:1A", "b:1", "a b", "a:1,2"]),
            (K::TsQuery, &["", "a", "!b", "a <2> b", "a <-> b", "a | b", "a & b"]),
            (K::Int4Multirange, &["{}", "{[1,2)}", "{[1,2),[5,6)}", "{[1,3)}", "{[2,3)}"]),
        ];
        for (kind, texts) in lists {
            for pair in texts.windows(2) {
                let (a, b) = (read(*kind, pair[0]), read(*kind, pair[1]));
                assert_eq!(a.compare(&b), Some(Ordering::Less), "{} < {}", pair[0], pair[1]);
            }
        }
        let equal = |kind, a, b| assert_eq!(read(kind, a), read(kind, b), "{a} = {b}");
        equal(K::NumRange, "[1.0,2)", "[1,2.00)");
        equal(K::NumMultirange, "{[1.0,2)}", "{[1,2.00)}");
        assert_eq!(read(K::NumRange, "[1.0,2)").to_string(), "[1.0,2)");
        assert_eq!(read(K::Bit, "101"), read(K::Varbit, "101"));
        equal(K::TsQuery, "a:AB & b", "a & b:*");
        assert_eq!(read(K::TsQuery, "a:AB & b:*").to_string(), "'a':AB & 'b':*");
    }

    #[test]
    fn keys_give_the_values_back() {
        for (kind, text) in [
            (K::NumRange, "[-1.5,2]"),
            (K::NumMultirange, "{(,1.5],[10,)}"),
            (K::Inet, "10.1.2.3/8"),
            (K::TsRange, "empty"),
            (K::TsVector, "'a':1A,2 'b'"),
            (K::TsQuery, "( 'a' | 'b' ) <2> 'c' & !'d'"),
        ] {
            let Value::Encoded(_, bytes) = read(kind, text) else { unreachable!() };
            let found = of_ordering_key(kind, &ordering_key(kind, &bytes)).unwrap();
            assert_eq!(Value::encoded(kind, &found).to_string(), text);
        }
    }

    #[test]
    fn damaged_bytes_are_shown_as_nothing() {
        for kind in EncodedKind::ALL {
            for bytes in [&[][..], &[1], &[1, 1, 2], &[7; 3], &[255; 40], &[0, 0, 0]] {
                let value = Value::encoded(kind, bytes);
                let _ = value.to_string();
                let _ = value.compare(&value);
            }
        }
    }
}
