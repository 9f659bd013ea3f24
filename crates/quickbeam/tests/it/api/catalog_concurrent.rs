//! Changes of named databases beside transactions that use them, at every isolation level. No
//! transaction reads or writes the old tree of a name, and a dropped tree is never touched again.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{
    Records, begin, contents, environment_in_world, fill, open_files, place, small_options,
};
use quickbeam::{Error, Isolation, Result, Transaction};

#[test]
fn second_change_of_a_database_name_conflicts() {
    let (_, environment) = environment_in_world();
    environment.create_database("a").unwrap();
    type Change = fn(&Transaction) -> Result<()>;
    let changes: [Change; 3] = [
        |transaction| transaction.drop_database("a"),
        |transaction| transaction.rename_database("a", "b"),
        |transaction| transaction.clear_database("a"),
    ];
    for change in changes {
        let late = environment.begin().unwrap();
        environment.clear_database("a").unwrap();
        let refused = change(&late);
        assert!(matches!(refused, Err(Error::WriteConflict)), "{refused:?}");
    }
    let one = environment.begin().unwrap();
    environment.create_database("new").unwrap();
    assert!(matches!(one.create_database("new"), Err(Error::WriteConflict)));
}

#[test]
fn writer_of_a_dropped_database_fails_at_commit() {
    for isolation in [Isolation::Serializable, Isolation::Snapshot, Isolation::ReadCommitted] {
        for drop_it in [true, false] {
            let (vfs, environment) = environment_in_world();
            let database = environment.create_database("a").unwrap();
            fill(&environment, &database, 3, 10);
            let writer = begin(&environment, isolation);
            database.put(&writer, b"late", &[3; 9000]).unwrap();
            if drop_it { environment.drop_database("a") } else { environment.clear_database("a") }
                .unwrap();
            let refused = writer.commit();
            let clear = match isolation {
                Isolation::ReadCommitted => matches!(refused, Err(Error::NoSuchDatabase { .. })),
                _ => matches!(refused, Err(Error::SerializationFailure)),
            };
            assert!(clear, "{isolation:?}: {refused:?}");
            let all = contents(&environment).unwrap();
            assert_eq!(all.get("a").cloned(), (!drop_it).then(Records::new));
            crate::common::assert_sound(&environment);
            let copy = open_files(&vfs.files(place()), &small_options()).unwrap();
            assert_eq!(contents(&copy).unwrap(), all);
        }
    }
}

/// A transaction that read a database through a handle has read that the name means it.
#[test]
fn drop_and_rename_are_serializable_with_use() {
    for rename in [true, false] {
        let (_, environment) = environment_in_world();
        let a = environment.create_database("a").unwrap();
        let b = environment.create_database("b").unwrap();
        fill(&environment, &a, 3, 10);
        let user = begin(&environment, Isolation::Serializable);
        assert!(a.exists(&user, b"000001").unwrap());
        b.put(&user, b"result", b"a is there").unwrap();
        let changer = begin(&environment, Isolation::Serializable);
        assert!(!b.exists(&changer, b"result").unwrap());
        if rename { changer.rename_database("a", "c") } else { changer.drop_database("a") }
            .unwrap();
        let results = [changer.commit(), user.commit()];
        // Neither saw what the other did: they did not run one after the other.
        let [Ok(()), Err(Error::SerializationFailure)] = results else {
            panic!("rename {rename}: {results:?}");
        };
    }
}

/// A tree written under two names: both have to mean it at the commit.
#[test]
fn each_name_of_a_renamed_database_is_validated() {
    let (_, environment) = environment_in_world();
    let a = environment.create_database("a").unwrap();
    let rename = |from: &str, to: &str| {
        environment.transact(|transaction| transaction.rename_database(from, to)).unwrap();
    };
    let writer = begin(&environment, Isolation::ReadCommitted);
    a.put(&writer, b"under a", b"").unwrap();
    rename("a", "b");
    let b = writer.open_database("b").unwrap();
    b.put(&writer, b"under b", b"").unwrap();
    rename("b", "a");
    let refused = writer.commit();
    let Err(Error::NoSuchDatabase { name }) = &refused else { panic!("{refused:?}") };
    assert_eq!(name, "b");
    assert_eq!(contents(&environment).unwrap()["a"], Records::new());
}

#[test]
fn snapshot_reads_a_dropped_database() {
    let (_, environment) = environment_in_world();
    let database = environment.create_database("a").unwrap();
    fill(&environment, &database, 300, 300);
    let reader = environment.begin_read().unwrap();
    let before = crate::common::records(&database, &reader).unwrap();
    let mut cursor = database.cursor(&reader).unwrap();
    assert!(cursor.first().unwrap());
    environment.drop_database("a").unwrap();
    let other = environment.create_database("a").unwrap();
    fill(&environment, &other, 100, 1000);
    environment.checkpoint().unwrap();
    let mut count = 1;
    while cursor.next().unwrap() {
        count += 1;
    }
    assert_eq!(count, 300);
    assert_eq!(crate::common::records(&database, &reader).unwrap(), before);
    assert_eq!(reader.databases().unwrap(), ["a"]);
    drop(cursor);
    drop(reader);
    crate::common::assert_sound(&environment);
}

/// Each call of a read committed transaction sees the names as they are then; nothing freed is ever
/// touched.
#[test]
fn read_committed_does_not_use_a_freed_tree() {
    for write in [true, false] {
        let (_, environment) = environment_in_world();
        let old = environment.create_database("old").unwrap();
        fill(&environment, &old, 3, 10);
        let transaction = begin(&environment, Isolation::ReadCommitted);
        assert!(old.exists(&transaction, b"000001").unwrap());
        let mut cursor = old.cursor(&transaction).unwrap();
        assert!(cursor.first().unwrap());
        environment.drop_database("old").unwrap();
        // One more call, and the transaction's snapshot no longer holds the tree.
        let _ = old.exists(&transaction, b"000001");
        environment.checkpoint().unwrap();
        let new = environment.create_database("new").unwrap();
        fill(&environment, &new, 3, 20);
        let expected = contents(&environment).unwrap();
        let found = old.get(&transaction, b"000001");
        assert!(matches!(found, Err(Error::NoSuchDatabase { .. })), "{found:?}");
        let moved = cursor.next();
        assert!(!matches!(moved, Ok(true) | Err(Error::Corruption { .. })), "{moved:?}");
        if write {
            let refused = old.put(&transaction, b"wrong", b"");
            assert!(matches!(refused, Err(Error::NoSuchDatabase { .. })), "{refused:?}");
        }
        drop(cursor);
        drop(transaction);
        assert_eq!(contents(&environment).unwrap(), expected);
        crate::common::assert_sound(&environment);
    }
}

/// One transaction after the other empties the database and puts one record in it: every snapshot
/// has exactly one.
#[test]
fn handles_and_snapshots_agree_while_a_database_empties() {
    let (_, environment) = environment_in_world();
    let database = environment.create_database("a").unwrap();
    fill(&environment, &database, 1, 8);
    let stop = AtomicBool::new(false);
    let renew = || {
        for round in 0..1500u64 {
            let renew = |transaction: &Transaction| {
                transaction.clear_database("a")?;
                database.put(transaction, &round.to_le_bytes(), b"only")
            };
            environment.transact(renew).unwrap();
        }
        stop.store(true, Ordering::SeqCst);
    };
    let read = || {
        while !stop.load(Ordering::SeqCst) {
            let reader = environment.begin_read().unwrap();
            let found = crate::common::records(&database, &reader).unwrap();
            assert_eq!(found.len(), 1, "{found:?}");
            let fresh = reader.open_database("a").unwrap();
            assert_eq!(crate::common::records(&fresh, &reader).unwrap(), found);
        }
    };
    // A write that was acknowledged is there, or was removed by an emptying that came after it.
    let write = || {
        while !stop.load(Ordering::SeqCst) {
            let write = |transaction: &Transaction| {
                let only = crate::common::records(&database, transaction)?;
                let (key, _) = only.first_key_value().unwrap();
                database.put(transaction, key, b"changed")
            };
            match environment.transact(write) {
                Ok(()) => {}
                Err(error) => assert!(error.is_retryable(), "{error}"),
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(renew);
        scope.spawn(read);
        scope.spawn(read);
        scope.spawn(write);
    });
    crate::common::assert_sound(&environment);
}

/// Databases made, filled, emptied record by record and dropped on all sides: the work that
/// deletions and drops leave for later is done beside each other.
#[test]
fn drop_beside_deletes_frees_each_page_once() {
    let (vfs, environment) = environment_in_world();
    let kept = environment.create_database("kept").unwrap();
    fill(&environment, &kept, 200, 100);
    let work = |thread: usize| {
        for round in 0..60 {
            let name = format!("{thread} {round}");
            let database = environment.create_database(&name).unwrap();
            fill(&environment, &database, 150, 120);
            let delete = |from: usize| {
                let delete = |transaction: &Transaction| {
                    (from..from + 50).try_for_each(|n| {
                        database.delete(transaction, format!("{n:06}").as_bytes()).map(|_| ())
                    })
                };
                environment.transact(delete).unwrap();
            };
            // While the reader is there nothing can be done; then all of it can, at once.
            let reader = environment.begin_read().unwrap();
            for from in [0, 50, 100] {
                delete(from);
            }
            environment.drop_database(&name).unwrap();
            drop(reader);
            if round % 3 == thread {
                environment.checkpoint().unwrap();
            }
        }
    };
    let work = &work;
    std::thread::scope(|scope| {
        for thread in 0..3 {
            scope.spawn(move || work(thread));
        }
    });
    fill(&environment, &kept, 200, 100);
    crate::common::assert_sound(&environment);
    assert_eq!(environment.databases().unwrap(), ["kept"]);
    let copy = open_files(&vfs.files(place()), &small_options()).unwrap();
    assert!(contents(&copy).unwrap() == contents(&environment).unwrap());
    crate::common::assert_sound(&copy);
}

#[test]
fn concurrent_catalog_changes_do_not_conflict() {
    let levels = [Isolation::Serializable, Isolation::Snapshot, Isolation::ReadCommitted];
    for (isolation, used_before) in levels.iter().flat_map(|&level| [(level, true), (level, false)])
    {
        let (_, environment) = environment_in_world();
        let database = environment.create_database("a").unwrap();
        fill(&environment, &database, 3, 10);
        let transaction = begin(&environment, isolation);
        if used_before {
            assert!(database.exists(&transaction, b"000001").unwrap());
        }
        transaction.rename_database("a", "b").unwrap();
        let renamed = transaction.open_database("b").unwrap();
        renamed.put(&transaction, b"new", b"").unwrap();
        let again = transaction.create_database("a").unwrap();
        again.put(&transaction, b"only", b"").unwrap();
        environment.create_database("unrelated").unwrap();
        let committed = transaction.commit();
        assert!(committed.is_ok(), "{isolation:?}, used before {used_before}: {committed:?}");
        let all = contents(&environment).unwrap();
        assert_eq!((all["a"].len(), all["b"].len()), (1, 4), "{isolation:?}");
    }
}

/// Below serializable, having read a database is no reason to fail when it is dropped; having
/// written to it is.
#[test]
fn reads_of_a_dropped_database_conflict_only_if_serializable() {
    for isolation in [Isolation::Snapshot, Isolation::ReadCommitted] {
        let (_, environment) = environment_in_world();
        let dropped = environment.create_database("dropped").unwrap();
        let kept = environment.create_database("kept").unwrap();
        let transaction = begin(&environment, isolation);
        assert!(!dropped.exists(&transaction, b"key").unwrap());
        kept.put(&transaction, b"key", b"value").unwrap();
        environment.drop_database("dropped").unwrap();
        let committed = transaction.commit();
        assert!(committed.is_ok(), "{isolation:?}: {committed:?}");
    }
}
