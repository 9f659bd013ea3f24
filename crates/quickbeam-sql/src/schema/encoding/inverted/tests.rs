//! Tests of the keys of values, and of conditions on them.

use super::*;
use crate::schema::InvertedOperator;
use crate::types::{ElementType, EncodedType, TextSettings, Value, parse_value};

fn value(text: &str, data_type: DataType) -> Value {
    parse_value(text, data_type, &TextSettings::DEFAULT).unwrap()
}

fn encoded(text: &str, kind: EncodedKind) -> Value {
    value(text, DataType::Encoded(EncodedType::new(kind, 0)))
}

fn keys(class: OperatorClass, value: &Value) -> Vec<Vec<u8>> {
    keys_of(class, value.as_ref()).unwrap()
}

fn words(text: &str) -> Vec<Vec<u8>> {
    keys(OperatorClass::TextVector, &encoded(text, EncodedKind::TsVector))
}

fn condition(query: &str) -> Option<KeyCondition> {
    let query = encoded(query, EncodedKind::TsQuery);
    let (class, operator) = (OperatorClass::TextVector, InvertedOperator::Matches);
    condition_on_keys(class, operator, query.as_ref()).unwrap()
}

fn key(text: &str) -> KeyCondition {
    KeyCondition::Key([text.as_bytes(), &[0, 0]].concat())
}

#[test]
fn each_key_is_there_once_and_in_order() {
    assert_eq!(words("b:1,2 a c:3A a"), [b"a\0\0", b"b\0\0", b"c\0\0"]);
    let integers = DataType::Array(ElementType::INTEGER);
    let found = keys(OperatorClass::Array, &value("{{2,1},{NULL,2}}", integers));
    assert_eq!(found, [[0x80, 0, 0, 1], [0x80, 0, 0, 2]]);
    let document = value(r#"{"a": ["a", 1.0, 1.00], "b": {"a": "a"}}"#, DataType::Jsonb);
    let found = keys(OperatorClass::Jsonb, &document);
    assert_eq!(found.len(), 4, "{found:?}");
    assert_eq!(found[0], b"ka\0\0");
    assert_eq!(keys(OperatorClass::JsonbPath, &document).len(), 3);
    assert!(keys(OperatorClass::Jsonb, &Value::Null).is_empty());
}

#[test]
fn queries_ask_for_the_words_that_a_document_needs() {
    assert_eq!(condition("a"), Some(key("a")));
    assert_eq!(condition("a & b"), Some(KeyCondition::All(vec![key("a"), key("b")])));
    assert_eq!(condition("a <-> b:A"), Some(KeyCondition::All(vec![key("a"), key("b")])));
    assert_eq!(condition("a | b"), Some(KeyCondition::Any(vec![key("a"), key("b")])));
    assert_eq!(condition("a & !b"), Some(key("a")));
    assert_eq!(condition("ab:*"), Some(KeyCondition::Prefix(b"ab".to_vec())));
    assert_eq!(condition(""), Some(KeyCondition::never()));
    for query in ["!a", "a | !b", "!(a & b)", "!!a"] {
        assert_eq!(condition(query), None, "{query}");
    }
}

fn levels_of(condition: &KeyCondition) -> usize {
    match condition {
        KeyCondition::All(list) | KeyCondition::Any(list) => {
            1 + list.iter().map(levels_of).max().unwrap_or(0)
        }
        KeyCondition::Key(_) | KeyCondition::Prefix(_) => 1,
    }
}

#[test]
fn deep_queries_become_flat_conditions() {
    let chain = |operator: &str| format!("a{}", format!(" {operator} b").repeat(5_000));
    for (operator, count) in [("&", 5_001), ("<->", 5_001), ("|", 5_001)] {
        match condition(&chain(operator)) {
            Some(KeyCondition::All(list) | KeyCondition::Any(list)) => {
                assert_eq!(list.len(), count, "{operator}");
            }
            other => panic!("{operator}: {other:?}"),
        }
    }
    let nested = format!("{}a{}", "(".repeat(2_000), " & b | c)".repeat(2_000));
    let levels = condition(&nested).map_or(0, |condition| levels_of(&condition));
    assert!((2..100).contains(&levels), "{levels}");
}

#[test]
fn long_keys_are_shortened_and_stay_different() {
    let (one, other) = ("x".repeat(300), format!("{}y", "x".repeat(299)));
    let found = words(&format!("{one} {other}"));
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|key| key.len() < LONGEST + 20), "{found:?}");
    for (query, count) in [(one.clone(), 1), (format!("{other}:*"), 2), ("x:*".to_owned(), 2)] {
        let matching = |wanted: &KeyCondition, key: &[u8]| match wanted {
            KeyCondition::Key(wanted) => wanted == key,
            KeyCondition::Prefix(wanted) => key.starts_with(wanted),
            _ => false,
        };
        let condition = condition(&query).unwrap();
        let matches = found.iter().filter(|key| matching(&condition, key));
        assert_eq!(matches.count(), count, "{query}");
    }
}

#[test]
fn estimates_follow_the_form_of_a_condition() {
    let of = |query: &str| {
        let mut count = |range: &crate::schema::encoding::KeyRange| {
            Ok::<f64, ()>(f64::from(range.low[0] - b'a' + 1))
        };
        condition(query).unwrap().estimate(&mut count).unwrap()
    };
    assert_eq!((of("c"), of("c & b"), of("c | b"), of("(a | b) & d")), (3.0, 2.0, 5.0, 3.0));
}
