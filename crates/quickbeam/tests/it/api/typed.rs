//! Typed databases over environments: look-ups by borrowed keys, ranges in the order of keys, and
//! bytes that are no encoding of the type.

use crate::common::memory_environment;
use quickbeam::Error;
use quickbeam::typed::{Postcard, TypedDatabase};
use serde::{Deserialize, Serialize};

#[test]
fn typed_records_are_in_key_order() {
    let (environment, bytes) = memory_environment();
    let temperatures: TypedDatabase<i32, f64> = bytes.typed();
    let days = [300, -40, 0, i32::MAX, 7, -1, i32::MIN];
    environment
        .transact(|t| days.iter().try_for_each(|day| temperatures.put(t, day, &f64::from(*day))))
        .unwrap();
    let reader = environment.begin_read().unwrap();
    let mut sorted = days;
    sorted.sort_unstable();
    let found: Vec<(i32, f64)> = temperatures.iter(&reader).map(Result::unwrap).collect();
    assert_eq!(found, sorted.map(|day| (day, f64::from(day))));
    let found: Vec<i32> =
        temperatures.range(&reader, -40..=7).rev().map(|record| record.unwrap().0).collect();
    assert_eq!(found, [7, 0, -1, -40]);
    assert_eq!(temperatures.get(&reader, &7).unwrap(), Some(7.0));
    assert!(!temperatures.exists(&reader, &8).unwrap());
}

#[test]
fn owned_keys_are_found_by_borrowed_ones() {
    let (environment, bytes) = memory_environment();
    let names: TypedDatabase<String, String> = bytes.typed();
    environment.transact(|t| names.put(t, "apple", "red")).unwrap();
    let transaction = environment.begin().unwrap();
    assert_eq!(names.get(&transaction, "apple").unwrap().as_deref(), Some("red"));
    assert!(names.delete(&transaction, "apple").unwrap());
    assert!(!names.delete(&transaction, "apple").unwrap());
}

#[test]
fn bytes_of_another_type_are_a_decode_error() {
    let (environment, bytes) = memory_environment();
    environment
        .transact(|t| {
            bytes.put(t, b"\xff\xfe", b"12").and_then(|()| bytes.put(t, b"12345678", b""))
        })
        .unwrap();
    let reader = environment.begin_read().unwrap();
    let numbers: TypedDatabase<u64, u64> = bytes.typed();
    assert!(matches!(numbers.get(&reader, &0x3132_3334_3536_3738), Err(Error::Decode { .. })));
    let texts: TypedDatabase<String, String> = bytes.typed();
    assert!(matches!(texts.iter(&reader).last(), Some(Err(Error::Decode { .. }))));
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Order {
    items: Vec<(String, u32)>,
    paid: Option<bool>,
}

#[test]
fn any_serde_type_can_be_a_value() {
    let (environment, bytes) = memory_environment();
    let orders: TypedDatabase<u64, Postcard<Order>> = bytes.typed();
    let order = Order { items: vec![("apple".into(), 3), (String::new(), 0)], paid: Some(true) };
    environment.transact(|t| orders.put(t, &1, &Postcard(order.clone()))).unwrap();
    let reader = environment.begin_read().unwrap();
    assert_eq!(orders.get(&reader, &1).unwrap(), Some(Postcard(order)));
    drop(reader);
    environment.transact(|t| bytes.put(t, &2u64.to_be_bytes(), b"\xff\xff")).unwrap();
    let reader = environment.begin_read().unwrap();
    assert!(matches!(orders.get(&reader, &2), Err(Error::Decode { .. })));
}
