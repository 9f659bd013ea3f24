//! Estimates of how much there is, and where, near enough for planning; and exact counts.

use quickbeam::query_layer::DatabaseExt;
use quickbeam::{AccessMethod, Environment, Error, Isolation, Options, TransactionOptions};

#[test]
fn sampled_keys_are_near_the_requested_quantile() {
    let environment = Environment::open_in_memory(Options::default()).unwrap();
    let database = environment.create_database("records").unwrap();
    let empty = environment.begin_read().unwrap();
    assert_eq!(database.sample_key(&empty, 0.5).unwrap(), None);
    for n in 0..50_000u32 {
        environment.transact(|t| database.put(t, &n.to_be_bytes(), b"value")).unwrap();
    }
    let reader = environment.begin_read().unwrap();
    for way in [-1.0, 0.0, 0.1, 0.37, 0.5, 0.81, 1.0, 2.0] {
        let key = database.sample_key(&reader, way).unwrap().unwrap();
        let number = u32::from_be_bytes(key.as_slice().try_into().unwrap());
        let expected = 50_000.0 * way.clamp(0.0, 1.0);
        assert!((f64::from(number) - expected).abs() < 5_000.0, "{way}: {number}");
        let before = database.estimate_before(&reader, &key).unwrap();
        assert!((before - way.clamp(0.0, 1.0)).abs() < 0.02, "{way}: {before}");
    }
}

#[test]
fn sampled_keys_of_a_hash_database_exist() {
    let environment = Environment::open_in_memory(Options::default()).unwrap();
    for method in [AccessMethod::Hash, AccessMethod::HashPrefix] {
        let name = format!("{method:?}");
        let database = environment.create_database_with(&name, method).unwrap();
        let key = |n: u32| [&[0, 4][..], &n.to_be_bytes(), b"rest"].concat();
        for n in 0..20_000 {
            environment.transact(|t| database.put(t, &key(n), b"value")).unwrap();
        }
        let reader = environment.begin_read().unwrap();
        let mut samples: Vec<Vec<u8>> = (0..50)
            .map(|n| database.sample_key(&reader, f64::from(n) / 50.0).unwrap().unwrap())
            .collect();
        assert!(samples.iter().all(|key| database.get(&reader, key).unwrap().is_some()));
        samples.sort();
        samples.dedup();
        assert_eq!(samples.len(), 50);
    }
}

#[test]
fn sampled_leaf_fill_is_close_to_the_verified_fill() {
    let environment = Environment::open_in_memory(Options::default()).unwrap();
    // More small trees than leaves are sampled, and the large ones after them.
    for n in 0..100 {
        let small = environment.create_database(&format!("small {n}")).unwrap();
        environment.transact(|t| small.put(t, b"key", b"value")).unwrap();
    }
    let check = || {
        let (said, counted) = (environment.statistics().leaf_fill, environment.verify().unwrap());
        let counted = counted.leaf_fill;
        assert!((said - counted).abs() < 0.05, "statistics: {said}, verification: {counted}");
        counted
    };
    assert!(check() < 0.05);
    let large = environment.create_database("large").unwrap();
    let records = (0..60_000u32).map(|n| (n.to_be_bytes(), [7; 100]));
    environment.transact(|t| large.bulk_load(t, records.clone())).unwrap();
    assert!(check() > 0.85);
    let scattered = environment.create_database("scattered").unwrap();
    for n in 0..20_000u32 {
        let key = n.wrapping_mul(0x9e37_79b9).to_be_bytes();
        environment.transact(|t| scattered.put(t, &key, &[7; 100])).unwrap();
    }
    check();
}

#[test]
fn count_is_exact_in_every_snapshot() {
    for method in [AccessMethod::BTree, AccessMethod::Hash] {
        let environment = Environment::open_in_memory(Options::default()).unwrap();
        let database = environment.create_database_with("records", method).unwrap();
        let empty = environment.begin_read().unwrap();
        let long = vec![7; 20_000];
        for n in 0..5_000_u32 {
            let value = if n % 100 == 0 { &long[..] } else { b"short" };
            environment.transact(|t| database.put(t, &n.to_be_bytes(), value)).unwrap();
        }
        let full = environment.begin_read().unwrap();
        let transaction = environment.begin().unwrap();
        for n in 0..1_000_u32 {
            database.delete(&transaction, &(n * 5).to_be_bytes()).unwrap();
        }
        database.put(&transaction, b"another", b"").unwrap();
        database.put(&transaction, &1_u32.to_be_bytes(), b"changed").unwrap();
        assert_eq!(database.count(&transaction).unwrap(), 4_001);
        assert_eq!(database.count(&full).unwrap(), 5_000);
        transaction.commit().unwrap();
        assert_eq!(database.count(&full).unwrap(), 5_000);
        assert_eq!(database.count(&empty).unwrap(), 0);
        assert_eq!(database.count(&environment.begin_read().unwrap()).unwrap(), 4_001);
    }
}

#[test]
fn count_must_still_hold_when_a_serializable_commit_succeeds() {
    let environment = Environment::open_in_memory(Options::default()).unwrap();
    let database = environment.create_database("records").unwrap();
    let options = TransactionOptions::new().isolation(Isolation::Serializable);
    let counting = environment.begin_with(options).unwrap();
    assert_eq!(database.count(&counting).unwrap(), 0);
    environment.transact(|t| database.put(t, b"new", b"")).unwrap();
    database.put(&counting, b"total", b"0").unwrap();
    assert!(matches!(counting.commit(), Err(Error::SerializationFailure)));
}
