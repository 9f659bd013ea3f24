//! Properties of values as bytes and of exact numbers, over generated ones.

use std::cmp::Ordering;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use crate::common::column;
use proptest::prelude::*;
use quickbeam_sql::catalog::{Added, DropBehavior, NewTable, Table};
use quickbeam_sql::table::{KeyBound, KeyPart, KeyRange, KeySpec, StoredRow, prefix_end};
use quickbeam_sql::types::{
    CastContext, TextSettings, compare_as, convert, format_value, parse_value,
};
use quickbeam_sql::{
    Array, DataType, ElementType, EncodedKind, Interval, IntervalFields, Numeric, PreciseType,
    TimeKind, Value, ValueRef,
};

const PLAIN: &TextSettings = &TextSettings::DEFAULT;

const TYPES: [DataType; 28] = [
    DataType::Boolean,
    DataType::SmallInt,
    DataType::Integer,
    DataType::BigInt,
    DataType::Real,
    DataType::Double,
    DataType::Numeric(None),
    DataType::Text,
    DataType::Varchar(Some(4)),
    DataType::Char(4),
    DataType::Bytea,
    DataType::Date,
    DataType::Time,
    DataType::Timestamp,
    DataType::TimestampTz,
    DataType::Uuid,
    DataType::Interval,
    DataType::OID,
    EncodedKind::TimeTz.data_type(),
    EncodedKind::Inet.data_type(),
    EncodedKind::Varbit.data_type(),
    EncodedKind::Int4Range.data_type(),
    EncodedKind::NumRange.data_type(),
    EncodedKind::NumMultirange.data_type(),
    EncodedKind::TsVector.data_type(),
    EncodedKind::TsQuery.data_type(),
    DataType::Precise(PreciseType::new(TimeKind::Timestamp, 3)),
    PreciseType::interval(IntervalFields::DayToMinute, None),
];

/// Types of array elements.
const ELEMENTS: [DataType; 12] = [
    DataType::Integer,
    DataType::Double,
    DataType::Numeric(None),
    DataType::Text,
    DataType::Bytea,
    DataType::Timestamp,
    DataType::Interval,
    DataType::Json,
    DataType::Jsonb,
    EncodedKind::Inet.data_type(),
    EncodedKind::NumRange.data_type(),
    EncodedKind::TsQuery.data_type(),
];

fn numeric() -> impl Strategy<Value = Numeric> {
    let mantissa = prop_oneof![
        -20..20_i128,
        any::<i64>().prop_map(i128::from),
        -10_i128.pow(38) + 1..10_i128.pow(38),
        (0..38_u32, -9..9_i128).prop_map(|(power, digit)| digit * 10_i128.pow(power)),
    ];
    (mantissa, 0..=38_u8).prop_map(|(mantissa, scale)| Numeric::new(mantissa, scale).unwrap())
}

/// Numbers of any length: digits, then zeros or a point.
fn long_numeric() -> impl Strategy<Value = Value> {
    let exponent = prop_oneof![
        -140..140_i32,
        Just(0),
        -9_000..9_000_i32,
        prop::sample::select(vec![125, 126, 127, -125, -126, -127, -128]),
    ];
    let text = ("-?[1-9][0-9]{0,2}(0{0,40}[0-9]{0,40}|9{30,60})", exponent);
    text.prop_map(|(digits, exponent)| {
        parse_value(&format!("{digits}e{exponent}"), DataType::Numeric(None), PLAIN).unwrap()
    })
}

/// Values of a type, many of them close to each other, some at the ends.
fn value(data_type: DataType) -> BoxedStrategy<Value> {
    let days = prop_oneof![-3..3_i32, -1_000_000..1_000_000, Just(i32::MAX), Just(i32::MIN)];
    let moments = prop_oneof![-3..3_i64, -(1 << 55)..(1_i64 << 55), Just(i64::MAX), Just(i64::MIN)];
    let bytes =
        prop::collection::vec(prop_oneof![Just(0_u8), Just(1), Just(255), any::<u8>()], 0..6);
    match data_type {
        DataType::Boolean => any::<bool>().prop_map(Value::Boolean).boxed(),
        DataType::SmallInt => any::<i16>().prop_map(Value::SmallInt).boxed(),
        DataType::Integer => prop_oneof![-3..3_i32, any::<i32>()].prop_map(Value::Integer).boxed(),
        DataType::BigInt => prop_oneof![-3..3_i64, any::<i64>()].prop_map(Value::BigInt).boxed(),
        DataType::Real => {
            let all = prop::num::f32::ANY;
            prop_oneof![all, Just(0.0), Just(-0.0)].prop_map(Value::Real).boxed()
        }
        DataType::Double => {
            let all = prop::num::f64::ANY;
            prop_oneof![all, Just(0.0), Just(-0.0)].prop_map(Value::Double).boxed()
        }
        DataType::Numeric(_) | DataType::WideNumeric(_) => {
            let special = vec![Numeric::NAN, Numeric::INFINITY, Numeric::NEGATIVE_INFINITY];
            prop_oneof![6 => numeric(), 1 => prop::sample::select(special)]
                .prop_map(Value::Numeric)
                .boxed()
                .prop_union(long_numeric().boxed())
                .boxed()
        }
        DataType::Text => "[\u{1}ab \u{7f}é]{0,5}".prop_map(Value::text).boxed(),
        DataType::Varchar(_) => "[ab ]{0,4}".prop_map(Value::text).boxed(),
        DataType::Char(_) => "[ab ]{0,4}"
            .prop_map(move |text| {
                convert(
                    Value::text(text),
                    DataType::Text,
                    data_type,
                    CastContext::Assignment,
                    PLAIN,
                )
                .unwrap()
            })
            .boxed(),
        DataType::Bytea => bytes.prop_map(Value::bytea).boxed(),
        DataType::Date => days.prop_map(Value::Date).boxed(),
        DataType::Time => (0..86_400_000_000_i64).prop_map(Value::Time).boxed(),
        DataType::Timestamp => moments.prop_map(Value::Timestamp).boxed(),
        DataType::TimestampTz => moments.prop_map(Value::TimestampTz).boxed(),
        DataType::Uuid => any::<[u8; 16]>().prop_map(Value::Uuid).boxed(),
        DataType::System(known) if known.is_number() => any::<u32>().prop_map(Value::Oid).boxed(),
        DataType::System(known) if known.is_text() => "[a-z]".prop_map(Value::text).boxed(),
        DataType::System(_) => "[0-9] [0-9]{1,4}"
            .prop_map(move |text| parse_value(&text, data_type, PLAIN).unwrap())
            .boxed(),
        DataType::Interval => {
            let small = (-3..3_i32, -70..70_i32, -4..4_i64);
            let small = small
                .prop_map(|(months, days, quarters)| (months, days, quarters * 21_600_000_000));
            prop_oneof![small, any::<(i32, i32, i64)>()]
                .prop_map(|(months, days, micros)| {
                    // The least number of microseconds has no text.
                    let micros = micros.max(-i64::MAX);
                    Value::Interval(Interval { months, days, micros })
                })
                .boxed()
        }
        DataType::Json | DataType::Jsonb => {
            let texts = vec!["1", "1.50", "null", "\"a b\"", "[1, {\"a\": 2}]", "{}", "[]", "true"];
            let read = move |text: &'static str| parse_value(text, data_type, PLAIN).unwrap();
            prop::sample::select(texts).prop_map(read).boxed()
        }
        DataType::Encoded(encoded) => {
            let texts: &[&'static str] = match encoded.kind() {
                EncodedKind::TimeTz => &["10:00+02", "08:00+00", "08:00:00.000001", "24:00-12:30"],
                EncodedKind::Inet => &["10.0.0.1", "10.0.0.1/8", "10.0.0.0/16", "::1", "1::/16"],
                EncodedKind::Varbit => &["", "0", "1", "00000000", "000000001", "10101010101"],
                EncodedKind::Int4Range => &["empty", "[1,2)", "[1,)", "(,)", "[-1,2)", "[2,3)"],
                EncodedKind::NumRange => &["empty", "[1.0,2]", "[1,2.00]", "(1,2]", "(,-1.5)"],
                EncodedKind::TsVector => &["", "a", "a:1", "a:1A,2", "b c:3", "ab:2 b"],
                EncodedKind::TsQuery => &["", "a", "a:A", "a:*", "!a", "a & b | c", "a <2> b"],
                _ => &["{}", "{[1,2]}", "{[1.0,2]}", "{[1,2],(3,)}", "{(,)}"],
            };
            let read = move |text: &'static str| parse_value(text, data_type, PLAIN).unwrap();
            prop::sample::select(texts).prop_map(read).boxed()
        }
        DataType::Precise(precise) => value(precise.plain())
            .prop_map(move |plain| precise.adjust(plain.clone()).unwrap_or(Value::Null))
            .boxed(),
        DataType::Array(element) => prop::collection::vec(or_null(element.data_type()), 0..5)
            .prop_map(move |values| {
                let values = values.iter().map(Value::as_ref);
                Value::Array(Array::new(element, values).unwrap())
            })
            .boxed(),
    }
}

fn or_null(data_type: DataType) -> BoxedStrategy<Value> {
    prop_oneof![1 => Just(Value::Null), 5 => value(data_type)].boxed()
}

fn part() -> impl Strategy<Value = KeyPart> {
    (prop::sample::select(&TYPES[..]), any::<bool>(), any::<bool>()).prop_map(
        |(data_type, descending, nulls_first)| KeyPart {
            position: 0,
            data_type,
            descending,
            nulls_first,
            nullable: true,
            raw: false,
            collation: None,
        },
    )
}

/// A key's columns, and two keys of them.
fn keys() -> impl Strategy<Value = (KeySpec, Vec<Value>, Vec<Value>)> {
    prop::collection::vec(part(), 1..4).prop_flat_map(|parts| {
        let one: Vec<_> = parts.iter().map(|part| or_null(part.data_type)).collect();
        // The second key often begins as the first does.
        let same = prop::collection::vec(prop::bool::weighted(0.6), parts.len());
        (Just(KeySpec { parts, grouped: false }), one.clone(), one, same).prop_map(
            |(spec, a, b, same)| {
                let pairs = a.iter().zip(b).zip(same);
                let b = pairs.map(|((a, b), same)| if same { a.clone() } else { b }).collect();
                (spec, a, b)
            },
        )
    })
}

fn encode(spec: &KeySpec, values: &[Value]) -> Vec<u8> {
    let mut out = Vec::new();
    spec.encode(&mut out, values.iter().map(Value::as_ref)).unwrap();
    out
}

fn order(part: &KeyPart, a: &Value, b: &Value) -> Ordering {
    match (a.is_null(), b.is_null()) {
        (true, true) => Ordering::Equal,
        (true, false) if part.nulls_first => Ordering::Less,
        (true, false) => Ordering::Greater,
        (false, true) => order(part, b, a).reverse(),
        (false, false) => {
            let order = compare_as(part.data_type, a.as_ref(), b.as_ref()).unwrap();
            if part.descending { order.reverse() } else { order }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn arrays_survive_their_text(
        (element, value) in prop::sample::select(&ELEMENTS[..]).prop_flat_map(|data_type| {
            let element = ElementType::new(data_type).unwrap();
            (Just(element), value(DataType::Array(element)))
        })
    ) {
        let mut text = String::new();
        format_value(&mut text, value.as_ref(), PLAIN);
        prop_assert_eq!(parse_value(&text, DataType::Array(element), PLAIN).unwrap(), value);
    }

    /// KEY-1.
    #[test]
    fn keys_sort_as_their_values((spec, a, b) in keys()) {
        let parts = spec.parts.iter().zip(a.iter().zip(&b));
        let expected = parts.map(|(part, (a, b))| order(part, a, b)).find(|o| o.is_ne());
        let expected = expected.unwrap_or(Ordering::Equal);
        prop_assert_eq!(encode(&spec, &a).cmp(&encode(&spec, &b)), expected);
    }

    #[test]
    fn keys_are_read_back((spec, a, _) in keys()) {
        let bytes = encode(&spec, &a);
        let mut rest = &bytes[..];
        for (part, value) in spec.parts.iter().zip(&a) {
            let found = part.decode(&mut rest).unwrap();
            prop_assert_eq!(order(part, &found, value), Ordering::Equal, "{:?}", found);
        }
        prop_assert!(rest.is_empty());
    }

    /// KEY-2, and ranges made of it.
    #[test]
    fn ranges_hold_what_they_say(
        (spec, a, b) in keys(),
        equal in 0..3_usize,
        inclusive in any::<[bool; 2]>(),
        bounded in any::<[bool; 2]>(),
        pick in any::<prop::sample::Index>(),
    ) {
        let equal = equal.min(spec.parts.len() - 1);
        let bound = |at: usize, from: &'_ [Value]| {
            let value = from[equal].clone();
            (bounded[at] && !value.is_null()).then_some((value, inclusive[at]))
        };
        let (lower, upper) = (bound(0, &a), bound(1, &b));
        let as_bound = |bound: &'_ Option<(Value, bool)>| bound.clone();
        let (low, high) = (as_bound(&lower), as_bound(&upper));
        fn shown(bound: &Option<(Value, bool)>) -> Option<KeyBound<'_>> {
            bound.as_ref().map(|(value, inclusive)| KeyBound { value: value.as_ref(), inclusive: *inclusive })
        }
        let mut range = KeyRange::default();
        let first: Vec<ValueRef<'_>> = a[..equal].iter().map(Value::as_ref).collect();
        spec.range(&mut range, &first, shown(&low), shown(&high)).unwrap();
        // Keys near by: mixtures of the two.
        let from_a = pick.index(spec.parts.len() + 1);
        for probe in [a.clone(), b.clone(), [&a[..from_a], &b[from_a..]].concat(), [&b[..from_a], &a[from_a..]].concat()] {
            let key = encode(&spec, &probe);
            let is_in = key >= range.low && range.high.as_ref().is_none_or(|high| key < *high);
            let part = &spec.parts[equal];
            let begins = spec.parts.iter().zip(probe.iter().zip(&a)).take(equal)
                .all(|(part, (probe, a))| order(part, probe, a).is_eq());
            let compare = |value: &Value| {
                compare_as(part.data_type, probe[equal].as_ref(), value.as_ref())
            };
            let above = lower.as_ref().is_none_or(|(value, inclusive)| {
                compare(value).is_some_and(|o| o.is_gt() || *inclusive && o.is_eq())
            });
            let below = upper.as_ref().is_none_or(|(value, inclusive)| {
                compare(value).is_some_and(|o| o.is_lt() || *inclusive && o.is_eq())
            });
            let nothing = (lower.is_some() || upper.is_some()) && probe[equal].is_null();
            prop_assert_eq!(is_in, begins && above && below && !nothing, "{:?} in {:?}", probe, range);
        }
    }

    #[test]
    fn the_end_of_a_prefix_is_behind_all_that_begin_so(prefix in prop::collection::vec(250..=255_u8, 0..4), rest in any::<Vec<u8>>(), other in any::<Vec<u8>>()) {
        let mut end = prefix.clone();
        let whole = [&prefix[..], &rest].concat();
        if prefix_end(&mut end) {
            prop_assert!(whole < end);
            prop_assert!(other.starts_with(&prefix) || other < prefix || other >= end);
        } else {
            prop_assert!(end.is_empty() && prefix.iter().all(|byte| *byte == 255));
        }
    }

    /// VALUE-1.
    #[test]
    fn what_is_equal_hashes_alike(data_type in prop::sample::select(&TYPES[..]), seed in any::<u64>()) {
        let mut runner = proptest::test_runner::TestRunner::new_with_rng(
            ProptestConfig::default(),
            proptest::test_runner::TestRng::from_seed(proptest::test_runner::RngAlgorithm::XorShift, &[seed.to_le_bytes(), (seed ^ 1).to_le_bytes()].concat()),
        );
        let draw = |runner: &mut proptest::test_runner::TestRunner| {
            or_null(data_type).new_tree(runner).unwrap().current()
        };
        let (a, b) = (draw(&mut runner), draw(&mut runner));
        let hash = |value: &Value| {
            let mut hasher = DefaultHasher::new();
            value.hash(&mut hasher);
            hasher.finish()
        };
        prop_assert_eq!(a == b, a.cmp(&b).is_eq());
        prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
        if a == b {
            prop_assert_eq!(hash(&a), hash(&b));
        }
        prop_assert_eq!(hash(&a), hash(&a.as_ref().to_value()));
    }

    #[test]
    fn values_are_read_back_from_their_text((data_type, value) in prop::sample::select(&TYPES[..]).prop_flat_map(|t| (Just(t), value(t)))) {
        let mut text = String::new();
        format_value(&mut text, value.as_ref(), PLAIN);
        let found = parse_value(&text, data_type, PLAIN).unwrap();
        prop_assert_eq!(found, value, "{}", text);
    }

    /// A number and its parts: exact, or an error; checked against integers.
    #[test]
    fn exact_numbers_compute_exactly(a in -10_i64.pow(12)..10_i64.pow(12), b in -10_i64.pow(12)..10_i64.pow(12), scale_a in 0..7_u8, scale_b in 0..7_u8) {
        let (x, y) = (Numeric::new(a.into(), scale_a).unwrap(), Numeric::new(b.into(), scale_b).unwrap());
        let wide = |n: i64, scale: u8| i128::from(n) * 10_i128.pow(u32::from(6 - scale));
        let (p, q) = (wide(a, scale_a), wide(b, scale_b));
        prop_assert_eq!(x.checked_add(y).unwrap(), Numeric::new(p + q, 6).unwrap());
        prop_assert_eq!(x.checked_sub(y).unwrap(), Numeric::new(p - q, 6).unwrap());
        prop_assert_eq!(x.checked_mul(y).unwrap(), Numeric::new(p * q, 12).unwrap());
        prop_assert_eq!(x.cmp(&y), p.cmp(&q));
        prop_assert_eq!(x.floor().unwrap(), Numeric::new(p.div_euclid(1_000_000), 0).unwrap());
        if q != 0 {
            prop_assert_eq!(x.checked_rem(y).unwrap(), Numeric::new(p % q, 6).unwrap());
            // The quotient is off by less than one in its last place.
            let quotient = x.checked_div(y).unwrap();
            let back = quotient.checked_mul(y).unwrap().checked_sub(x).unwrap().absolute();
            let one = Numeric::new(1, quotient.scale()).unwrap();
            prop_assert!(back <= one.checked_mul(y).unwrap().absolute(), "{} / {} = {}", x, y, quotient);
        }
        let shown = x.to_string();
        prop_assert_eq!(Numeric::parse(&shown).unwrap().scale(), x.scale());
    }

    #[test]
    fn numbers_at_the_ends_are_errors_or_numbers(a in numeric(), b in numeric(), scale in -40..40_i32) {
        let results = [a.checked_add(b), a.checked_sub(b), a.checked_mul(b), a.checked_div(b), a.checked_rem(b), a.round(scale), a.ceil()];
        for result in results {
            match result {
                Ok(n) => prop_assert!(n.mantissa().abs() < 10_i128.pow(38) && n.scale() <= 38),
                Err(error) => prop_assert!(["22003", "22012"].contains(&error.code())),
            }
        }
        let float = a.to_f64();
        let error = (float - a.to_string().parse::<f64>().unwrap()).abs();
        prop_assert!(error <= float.abs() * f64::EPSILON);
    }
}

/// A table with a column of each type, in that order, and another with some columns added and
/// dropped.
fn tables() -> (Table, Table) {
    let (environment, catalog) = crate::common::memory();
    let transaction = environment.begin().unwrap();
    let columns = TYPES.iter().enumerate().map(|(at, t)| column(&format!("c{at}"), *t)).collect();
    let new = NewTable { name: "t".into(), columns, ..NewTable::default() };
    catalog.create_table(&transaction, &new).unwrap();
    let table = || (*catalog.snapshot(&transaction).unwrap().table_named("t").unwrap()).clone();
    let first = table();
    catalog.drop_column(&transaction, "t", "c3", (DropBehavior::Restrict, &[])).unwrap();
    catalog.drop_column(&transaction, "t", "c7", (DropBehavior::Restrict, &[])).unwrap();
    let added = column("added", DataType::Text);
    catalog.add_column(&transaction, "t", &added, Added::Same(Value::text("missing"))).unwrap();
    (first, table())
}

#[test]
fn rows_are_read_back_in_every_layout() {
    let (old, new) = tables();
    let columns: Vec<_> = TYPES.iter().map(|t| or_null(*t)).collect();
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(1_000));
    runner
        .run(&(columns.clone(), columns, 0..TYPES.len()), |(values, others, changed)| {
            let mut row = Vec::new();
            old.encode_values(&mut row, &values).unwrap();
            prop_assert_eq!(&StoredRow::new(&old, &row).unwrap().to_values().unwrap(), &values);
            // Read by the table as it is later.
            let mut expected = values.clone();
            expected.remove(7);
            expected.remove(3);
            expected.push(Value::text("missing"));
            let later = StoredRow::new(&new, &row).unwrap();
            prop_assert_eq!(later.to_values().unwrap(), expected);
            prop_assert!(!new.set_in_place(&mut row.clone(), 0, ValueRef::Null).unwrap());
            // Changing one column in place gives the same bytes as encoding the row.
            let mut patched = row.clone();
            let value = others[changed].as_ref();
            let done = old.set_in_place(&mut patched, changed, value).unwrap();
            let is_long = |value: &Value| matches!(value, Value::LongNumeric(_));
            let is_moved = is_long(&values[changed]) || is_long(&others[changed]);
            prop_assert_eq!(done, TYPES[changed].fixed_width().is_some() && !is_moved);
            if done {
                let mut values = values;
                values[changed] = others[changed].clone();
                let mut again = Vec::new();
                old.encode_values(&mut again, &values).unwrap();
                prop_assert_eq!(patched, again);
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn damaged_rows_and_keys_are_errors() {
    let (old, new) = tables();
    let columns: Vec<_> = TYPES.iter().map(|t| or_null(*t)).collect();
    let hits = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6);
    let strategy = (columns, hits, any::<prop::sample::Index>(), part());
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(5_000));
    runner
        .run(&strategy, |(values, hits, cut, part)| {
            let mut row = Vec::new();
            old.encode_values(&mut row, &values).unwrap();
            for (at, byte) in hits {
                let length = row.len();
                row[at.index(length)] = byte;
            }
            row.truncate(cut.index(row.len() * 2));
            for table in [&old, &new] {
                let read = StoredRow::new(table, &row).and_then(|row| row.to_values());
                prop_assert!(read.map_or_else(|error| error.code() == "XX001", |_| true));
            }
            let read = part.decode(&mut &row[..]);
            prop_assert!(read.map_or_else(|error| error.code() == "XX001", |_| true));
            Ok(())
        })
        .unwrap();
}
