//! Keys of arrays and of JSONB, over generated values.

use std::cmp::Ordering;

use proptest::prelude::*;
use quickbeam_sql::table::KeyPart;
use quickbeam_sql::types::{TextSettings, compare_as, parse_value};
use quickbeam_sql::{DataType, ElementType, Value};

const PLAIN: &TextSettings = &TextSettings::DEFAULT;

/// Texts of JSON values, many of them nearly equal.
fn json() -> impl Strategy<Value = String> {
    let scalars = vec!["null", "true", "false", "1", "1.0", "1.50", "-3e2", "10", "[]", "{}"];
    let strings = vec!["\"\"", "\"a\"", "\"a\\u0001\"", "\"ab\"", "\"é\""];
    let leaf = prop_oneof![prop::sample::select(scalars), prop::sample::select(strings)];
    leaf.prop_map(str::to_owned).prop_recursive(3, 12, 3, |inner| {
        let members = prop::collection::vec(("[ab\\\\n]{0,1}b?", inner.clone()), 0..3);
        let object = members.prop_map(|members| {
            let members = members
                .iter()
                .map(|(key, value)| format!("\"{}\":{value}", key.replace('\\', "\\\\")));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        });
        let array = prop::collection::vec(inner, 0..3);
        prop_oneof![object, array.prop_map(|list| format!("[{}]", list.join(",")))]
    })
}

fn jsonb() -> BoxedStrategy<(DataType, Value)> {
    let read = |text: String| parse_value(&text, DataType::Jsonb, PLAIN).unwrap();
    json().prop_map(move |text| (DataType::Jsonb, read(text))).boxed()
}

/// Arrays of one type, of up to two dimensions and with other lower bounds.
fn arrays(element: DataType, words: &'static [&'static str]) -> BoxedStrategy<(DataType, Value)> {
    let data_type = DataType::Array(ElementType::new(element).unwrap());
    let word = prop::sample::select(words);
    (prop::collection::vec(word, 0..4), 0..3_i32, any::<bool>())
        .prop_map(move |(words, lower, is_flat)| {
            let lower = lower - 1;
            let text = match (words.len(), is_flat) {
                (0, _) => "{}".to_owned(),
                (count, true) => {
                    let upper = lower + count as i32 - 1;
                    format!("[{lower}:{upper}]={{{}}}", words.join(","))
                }
                (_, false) => format!("{{{{{}}}}}", words.join("},{")),
            };
            (data_type, parse_value(&text, data_type, PLAIN).unwrap())
        })
        .boxed()
}

fn pairs() -> impl Strategy<Value = [(DataType, Value); 2]> {
    let integers = || arrays(DataType::Integer, &["NULL", "0", "1", "-1", "256", "-2147483648"]);
    let texts = || arrays(DataType::Text, &["NULL", "\"\"", "a", "\u{1}", "ab", "\"NULL\""]);
    let numbers = || arrays(DataType::Numeric(None), &["NULL", "1", "1.0", "-2.5", "1e30"]);
    let documents = || arrays(DataType::Jsonb, &["NULL", "1", "1.0", "[]", "\"{\\\"a\\\": 1}\""]);
    prop_oneof![
        (integers(), integers()),
        (texts(), texts()),
        (numbers(), numbers()),
        (documents(), documents()),
        (jsonb(), jsonb()),
    ]
    .prop_map(|(a, b)| [a, b])
}

fn key(part: &KeyPart, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    part.encode(&mut out, value.as_ref()).unwrap();
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    /// KEY-1.
    #[test]
    fn nested_keys_order_as_their_values(
        [(data_type, a), (_, b)] in pairs(),
        descending: bool,
    ) {
        let part = KeyPart { descending, ..KeyPart::of_type(data_type) };
        let order = compare_as(data_type, a.as_ref(), b.as_ref()).unwrap();
        let expected = if descending { order.reverse() } else { order };
        let (first, second) = (key(&part, &a), key(&part, &b));
        prop_assert_eq!(first.cmp(&second), expected, "{:?}", (&a, &b));
        prop_assert!(order == Ordering::Equal || !second.starts_with(&first));
    }
}
