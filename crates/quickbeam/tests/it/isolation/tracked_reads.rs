//! Reads that have to hold until commit below serializable (`track_reads`), and the catalog's
//! version for those who keep definitions of their own.

use crate::common::{begin, memory_environment, put};
use quickbeam::query_layer::{ReadTracking, TransactionExt};
use quickbeam::{Error, Isolation};

const BELOW: [Isolation; 2] = [Isolation::Snapshot, Isolation::ReadCommitted];

#[test]
fn only_tracked_reads_are_validated() {
    for isolation in BELOW {
        let (environment, database) = memory_environment();
        put(&environment, &database, b"parent", b"here");
        for tracking in [ReadTracking::On, ReadTracking::Off] {
            put(&environment, &database, b"parent", b"here");
            let child = begin(&environment, isolation);
            child.track_reads(tracking);
            assert!(database.exists(&child, b"parent").unwrap());
            child.track_reads(ReadTracking::Off);
            let other = begin(&environment, isolation);
            database.delete(&other, b"parent").unwrap();
            other.commit().unwrap();
            database.put(&child, b"child", b"of parent").unwrap();
            let committed = child.commit();
            match tracking {
                ReadTracking::On => {
                    assert!(matches!(committed, Err(Error::SerializationFailure)), "{isolation:?}")
                }
                ReadTracking::Off => committed.unwrap(),
            }
        }
    }
}

#[test]
fn read_committed_keeps_tracked_reads_across_statements() {
    let (environment, database) = memory_environment();
    put(&environment, &database, b"parent", b"here");
    let child = begin(&environment, Isolation::ReadCommitted);
    child.track_reads(ReadTracking::On);
    assert!(database.exists(&child, b"parent").unwrap());
    child.track_reads(ReadTracking::Off);
    for round in 0..20_u8 {
        put(&environment, &database, b"parent", &[round]);
        // Each call sees what is newest, and what has been superseded is cleared away meanwhile.
        assert_eq!(database.get(&child, b"parent").unwrap(), Some(vec![round]));
    }
    database.put(&child, b"child", b"of parent").unwrap();
    assert!(matches!(child.commit(), Err(Error::SerializationFailure)));
}

#[test]
fn insert_into_a_tracked_scan_is_detected() {
    for isolation in BELOW {
        let (environment, database) = memory_environment();
        put(&environment, &database, b"row 1", b"");
        let scan = begin(&environment, isolation);
        scan.track_reads(ReadTracking::On);
        assert_eq!(crate::common::records(&database, &scan).unwrap().len(), 1);
        put(&environment, &database, b"row 2", b"");
        database.put(&scan, b"count", b"1").unwrap();
        assert!(matches!(scan.commit(), Err(Error::SerializationFailure)), "{isolation:?}");
    }
}

#[test]
fn catalog_version_changes_with_names_and_touch() {
    let (environment, database) = memory_environment();
    let version = || begin(&environment, Isolation::Snapshot).catalog_version();
    let first = version();
    assert!(first.is_some());
    put(&environment, &database, b"a", b"b");
    assert_eq!(version(), first);
    let old = begin(&environment, Isolation::Snapshot);
    let moving = begin(&environment, Isolation::ReadCommitted);
    let touching = begin(&environment, Isolation::Snapshot);
    touching.touch_catalog();
    assert_eq!(touching.catalog_version(), None);
    database.put(&touching, b"c", b"d").unwrap();
    touching.commit().unwrap();
    let second = version();
    assert_ne!(second, first);
    assert_eq!((old.catalog_version(), moving.catalog_version()), (first, second));
    environment.create_database("another").unwrap();
    assert_ne!(version(), second);
}
