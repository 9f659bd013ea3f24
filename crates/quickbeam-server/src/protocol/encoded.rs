//! Binary formats of types whose values are bytes: times with zones, network addresses, bit
//! strings, ranges, multiranges, rows, and the vectors and queries of full-text search.

use std::net::IpAddr;

use bytes::{BufMut, BytesMut};
use quickbeam_sql::types::encoded::bits::BitString;
use quickbeam_sql::types::encoded::multirange::Multirange;
use quickbeam_sql::types::encoded::{Address, RangeBound, RangeValue, ZonedTime, enum_label};
use quickbeam_sql::types::{RowRef, TextSettings};
use quickbeam_sql::{EncodedKind, Value};

use super::failure::Failure;
use super::text_search::{put_query, put_vector, read_query, read_vector, take, take_number};
use super::types::{WireFormat, binary_parameter, put_binary, put_value, wire_type};

/// The families of addresses in the binary format.
const V4: u8 = 2;
const V6: u8 = 3;

/// Bits of the first byte of a binary range.
const EMPTY: u8 = 1;
const LOWER_INCLUSIVE: u8 = 2;
const UPPER_INCLUSIVE: u8 = 4;
const LOWER_INFINITE: u8 = 8;
const UPPER_INFINITE: u8 = 16;

/// Appends a value of that kind.
pub fn put_encoded(out: &mut BytesMut, kind: EncodedKind, bytes: &[u8]) {
    match kind {
        EncodedKind::TimeTz => {
            if let Some(time) = ZonedTime::read(bytes) {
                out.put_i64(time.micros);
                out.put_i32(-time.east);
            }
        }
        EncodedKind::Inet | EncodedKind::Cidr => {
            if let Some(address) = Address::read(bytes) {
                put_address(out, address, kind == EncodedKind::Cidr);
            }
        }
        EncodedKind::Enum => out.put_slice(enum_label(bytes).unwrap_or_default().as_bytes()),
        EncodedKind::Record => {
            if let Some(row) = RowRef::read(bytes) {
                put_row(out, row);
            }
        }
        // A number of six bytes, or a key of other length.
        EncodedKind::Tid => out.put_slice(bytes.get(1..).unwrap_or_default()),
        EncodedKind::Bit | EncodedKind::Varbit => {
            let bits = BitString::read(bytes).unwrap_or_default();
            out.put_i32(bits.bits.len() as i32);
            out.put_slice(&bits.to_bytes());
        }
        EncodedKind::TsVector => put_vector(out, bytes),
        EncodedKind::TsQuery => put_query(out, bytes),
        kind if kind.is_multirange() => {
            let ranges = Multirange::read(bytes, kind).unwrap_or_default().ranges;
            out.put_u32(ranges.len() as u32);
            for range in ranges {
                put_sized(out, |out| put_range(out, &range));
            }
        }
        kind if kind.is_range() => {
            put_range(out, &RangeValue::read(bytes, kind).unwrap_or(RangeValue::Empty));
        }
        _ => out.put_slice(bytes),
    }
}

/// Appends a row: the type and the value of each field.
fn put_row(out: &mut BytesMut, row: RowRef<'_>) {
    out.put_i32(row.len() as i32);
    for field in row.fields() {
        out.put_u32(wire_type(field.data_type()).oid);
        put_value(out, field.value, WireFormat::Binary, &TextSettings::DEFAULT);
    }
}

/// Appends the length of what a function appends, and that.
fn put_sized(out: &mut BytesMut, put: impl FnOnce(&mut BytesMut)) {
    let at = out.len();
    out.put_i32(0);
    put(out);
    let length = (out.len() - at - 4) as i32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

fn put_address(out: &mut BytesMut, address: Address, is_network: bool) {
    out.put_u8(if address.ip.is_ipv4() { V4 } else { V6 });
    out.put_u8(address.bits);
    out.put_u8(is_network.into());
    match address.ip {
        IpAddr::V4(ip) => {
            out.put_u8(4);
            out.put_slice(&ip.octets());
        }
        IpAddr::V6(ip) => {
            out.put_u8(16);
            out.put_slice(&ip.octets());
        }
    }
}

fn put_range(out: &mut BytesMut, range: &RangeValue) {
    let Some((lower, upper)) = range.bounds() else { return out.put_u8(EMPTY) };
    let flags = |bound: Option<&RangeBound>, infinite: u8, inclusive: u8| match bound {
        None => infinite,
        Some(bound) if bound.is_inclusive => inclusive,
        Some(_) => 0,
    };
    out.put_u8(
        flags(lower, LOWER_INFINITE, LOWER_INCLUSIVE)
            | flags(upper, UPPER_INFINITE, UPPER_INCLUSIVE),
    );
    for bound in [lower, upper].into_iter().flatten() {
        put_sized(out, |out| put_binary(out, bound.value.as_ref()));
    }
}

fn take_sized<'b>(bytes: &mut &'b [u8]) -> Option<&'b [u8]> {
    let length = usize::try_from(take_number(bytes)?).ok()?;
    take(bytes, length)
}

/// Reads a value of that kind; `None` if the bytes are not in its format.
pub fn read_encoded(mut bytes: &[u8], kind: EncodedKind) -> Result<Option<Value>, Failure> {
    Ok(match kind {
        // Labels are read by their type, and there are no parameters of a row type.
        EncodedKind::Enum | EncodedKind::Record => None,
        EncodedKind::TimeTz => read_time(bytes).map(ZonedTime::value),
        EncodedKind::Inet | EncodedKind::Cidr => read_address(bytes)
            .filter(|address| kind == EncodedKind::Inet || address.network() == *address)
            .map(|address| address.value(kind)),
        EncodedKind::Tid => match bytes.len() {
            0 => None,
            6 => Some(Value::Encoded(kind.into(), [&[0], bytes].concat().into())),
            _ => Some(Value::Encoded(kind.into(), [&[1], bytes].concat().into())),
        },
        EncodedKind::Macaddr
        | EncodedKind::Macaddr8
        | EncodedKind::Xid8
        | EncodedKind::PgLsn
        | EncodedKind::Cid => {
            let is_whole = bytes.len() == kind.wire_size() as usize;
            is_whole.then(|| Value::Encoded(kind.into(), bytes.into()))
        }
        EncodedKind::Bit | EncodedKind::Varbit => read_bits(&mut bytes).map(|it| it.value(kind)),
        EncodedKind::TsVector => read_vector(bytes),
        EncodedKind::TsQuery => read_query(bytes),
        kind if kind.is_multirange() => {
            let Some(count) = take_number(&mut bytes) else { return Ok(None) };
            let mut ranges = Vec::new();
            for _ in 0..count {
                let Some(range) = take_sized(&mut bytes) else { return Ok(None) };
                let Some(range) = read_range(range, kind)? else { return Ok(None) };
                ranges.push(range);
            }
            Some(Multirange::of(ranges).value(kind))
        }
        kind => read_range(bytes, kind)?.map(|range| range.value(kind)),
    })
}

fn read_time(bytes: &[u8]) -> Option<ZonedTime> {
    let (micros, west) = bytes.split_first_chunk::<8>()?;
    let micros = i64::from_be_bytes(*micros);
    let east = i32::from_be_bytes(west.try_into().ok()?).checked_neg()?;
    let is_time = (0..=86_400_000_000).contains(&micros) && east.abs() < 16 * 3600;
    is_time.then_some(ZonedTime { micros, east })
}

fn read_address(bytes: &[u8]) -> Option<Address> {
    let ip: IpAddr = match bytes {
        [V4, _, _, 4, ip @ ..] => <[u8; 4]>::try_from(ip).ok()?.into(),
        [V6, _, _, 16, ip @ ..] => <[u8; 16]>::try_from(ip).ok()?.into(),
        _ => return None,
    };
    let address = Address { ip, bits: *bytes.get(1)? };
    (address.bits <= address.width()).then_some(address)
}

fn read_bits(bytes: &mut &[u8]) -> Option<BitString> {
    let length = usize::try_from(take_number(bytes)?).ok()?;
    (bytes.len() == length.div_ceil(8)).then(|| BitString::of_bytes(bytes, length))
}

fn read_range(mut bytes: &[u8], kind: EncodedKind) -> Result<Option<RangeValue>, Failure> {
    let (Some(subtype), Some(flags)) = (kind.subtype(), take(&mut bytes, 1)) else {
        return Ok(None);
    };
    let flags = flags[0];
    if flags & EMPTY != 0 {
        return Ok(Some(RangeValue::Empty));
    }
    let mut bounds = [None, None];
    let masks = [(LOWER_INFINITE, LOWER_INCLUSIVE), (UPPER_INFINITE, UPPER_INCLUSIVE)];
    for (place, (infinite, inclusive)) in bounds.iter_mut().zip(masks) {
        if flags & infinite == 0 {
            let Some(value) = take_sized(&mut bytes) else { return Ok(None) };
            let value = binary_parameter(value, subtype)?;
            *place = Some(RangeBound { value, is_inclusive: flags & inclusive != 0 });
        }
    }
    let [lower, upper] = bounds;
    Ok(Some(RangeValue::of(lower, upper)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickbeam_sql::types::parse_value;

    #[test]
    fn values_are_read_back_from_their_binary_form() {
        for (kind, texts) in [
            (EncodedKind::TimeTz, &["10:00:00.5+02", "23:59:59-08:30"][..]),
            (EncodedKind::Inet, &["10.0.0.1", "10.0.0.1/8", "2001:db8::1/64"]),
            (EncodedKind::Cidr, &["10.0.0.0/8"]),
            (EncodedKind::Macaddr, &["08:00:2b:01:02:03"]),
            (EncodedKind::Macaddr8, &["08:00:2b:01:02:03:04:05"]),
            (EncodedKind::Varbit, &["", "1", "101010101"]),
            (EncodedKind::TsVector, &["", "'a':1A,3 'b' 'c d':16383C"]),
            (EncodedKind::TsQuery, &["", "'a':*A & !( 'b' <2> 'c' | 'd' )"]),
            (EncodedKind::Int4Range, &["empty", "[1,5)", "(,5)", "(,)"]),
            (EncodedKind::NumRange, &["[1.50,2]", "(1,)"]),
            (EncodedKind::TsTzMultirange, &["{}", "{[2020-01-01,2020-01-02),[2021-01-01,)}"]),
        ] {
            for text in texts {
                let value = parse_value(text, kind.data_type(), &TextSettings::DEFAULT).unwrap();
                let Value::Encoded(_, bytes) = &value else { panic!("{text}") };
                let mut out = BytesMut::new();
                put_encoded(&mut out, kind, bytes);
                let Ok(read) = read_encoded(&out, kind) else { panic!("{text}") };
                assert_eq!(read, Some(value), "{text}");
                // No part of the bytes is a value.
                for end in 0..out.len() {
                    let part = read_encoded(&out[..end], kind);
                    assert!(!matches!(part, Ok(Some(_))), "{text} {end}");
                }
            }
        }
    }

    #[test]
    fn binary_forms_are_those_of_postgresql() {
        let binary = |kind: EncodedKind, text: &str| {
            let value = parse_value(text, kind.data_type(), &TextSettings::DEFAULT).unwrap();
            let mut out = BytesMut::new();
            put_binary(&mut out, value.as_ref());
            out.to_vec()
        };
        // `SELECT inet_send('10.0.0.1/8')` and its like.
        assert_eq!(binary(EncodedKind::Inet, "10.0.0.1/8"), [2, 8, 0, 4, 10, 0, 0, 1]);
        assert_eq!(binary(EncodedKind::Cidr, "10/8"), [2, 8, 1, 4, 10, 0, 0, 0]);
        assert_eq!(binary(EncodedKind::Varbit, "101"), [0, 0, 0, 3, 0xa0]);
        let vector = [0, 0, 0, 2, 97, 0, 0, 1, 0x80, 1, 98, 0, 0, 0];
        assert_eq!(binary(EncodedKind::TsVector, "a:1B b"), vector);
        let query = [0, 0, 0, 4, 2, 4, 0, 2, 2, 1, 1, 0, 0, 98, 0, 1, 4, 1, 97, 0];
        assert_eq!(binary(EncodedKind::TsQuery, "a:*B <2> !b"), query);
        let range = [2, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 5];
        assert_eq!(binary(EncodedKind::Int4Range, "[1,5)"), range);
        assert_eq!(binary(EncodedKind::Int4Range, "empty"), [1]);
        let time = [0, 0, 0, 8, 0x61, 0xc4, 0x68, 0, 0xff, 0xff, 0xe3, 0xe0];
        assert_eq!(binary(EncodedKind::TimeTz, "10:00+02"), time);
    }
}
