//! Locks of a database against the writes of other transactions.

use std::sync::Barrier;
use std::time::Duration;

use crate::common::{begin, memory_environment, put};
use quickbeam::query_layer::{DatabaseExt, TransactionExt, WriteLock};
use quickbeam::{Error, Isolation, Transaction, TransactionOptions};

const LEVELS: [Isolation; 3] =
    [Isolation::Serializable, Isolation::Snapshot, Isolation::ReadCommitted];

fn begin_impatient(environment: &quickbeam::Environment, isolation: Isolation) -> Transaction {
    let transaction = begin(environment, isolation);
    transaction.set_lock_timeout(Duration::ZERO);
    transaction
}

#[test]
fn lock_excludes_every_kind_of_write_but_no_read() {
    for isolation in LEVELS {
        let (environment, database) = memory_environment();
        let neighbour = environment.create_database("neighbour").unwrap();
        put(&environment, &database, b"a", b"1");
        let holder = begin(&environment, isolation);
        database.lock_writes(&holder, WriteLock::Exclusive).unwrap();
        let other = begin_impatient(&environment, isolation);
        let timed_out = |error: Error| assert!(matches!(error, Error::LockTimeout { .. }));
        timed_out(database.put(&other, b"b", b"2").unwrap_err());
        timed_out(database.put_if_absent(&other, b"b", b"2").unwrap_err());
        timed_out(database.delete(&other, b"a").unwrap_err());
        timed_out(database.get_for_update(&other, b"a", &mut Vec::new()).unwrap_err());
        timed_out(database.append(&other, &[(b"b", b"2"), (b"c", b"3")]).unwrap_err());
        timed_out(database.clear_range::<&[u8]>(&other, ..).unwrap_err());
        timed_out(database.lock_writes(&other, WriteLock::Shared).unwrap_err());
        let append = |_: &[u8], new: &mut Vec<u8>| {
            new.push(b'2');
            true
        };
        timed_out(database.update(&other, b"a", append).unwrap_err());
        assert_eq!(database.get(&other, b"a").unwrap().as_deref(), Some(&b"1"[..]));
        neighbour.put(&other, b"b", b"2").unwrap();
        database.put(&holder, b"b", b"2").unwrap();
        holder.commit().unwrap();
        let next = begin_impatient(&environment, isolation);
        database.put(&next, b"c", b"3").unwrap();
        next.commit().unwrap();
        // A lock ends with its transaction, also by a rollback.
        let holder = begin(&environment, isolation);
        database.lock_writes(&holder, WriteLock::Shared).unwrap();
        holder.abort().unwrap();
        let next = begin_impatient(&environment, isolation);
        database.put(&next, b"c", b"4").unwrap();
        next.commit().unwrap();
    }
}

#[test]
fn lock_waits_for_writers_which_go_on() {
    let (environment, database) = memory_environment();
    let writer = begin_impatient(&environment, Isolation::Snapshot);
    database.put(&writer, b"a", b"1").unwrap();
    let reader = begin(&environment, Isolation::Snapshot);
    assert_eq!(database.get(&reader, b"a").unwrap(), None);
    let waiting = Barrier::new(2);
    std::thread::scope(|scope| {
        let locked = scope.spawn(|| {
            let holder = begin(&environment, Isolation::Snapshot);
            waiting.wait();
            database.lock_writes(&holder, WriteLock::Exclusive)?;
            assert_eq!(database.get(&holder, b"b").unwrap(), None, "the snapshot is from before");
            holder.renew_snapshot();
            assert_eq!(database.get(&holder, b"b").unwrap().as_deref(), Some(&b"2"[..]));
            holder.commit()
        });
        waiting.wait();
        // Until the request shows: it excludes those that have written nothing yet.
        loop {
            let other = begin_impatient(&environment, Isolation::Snapshot);
            if database.put(&other, b"c", b"3").is_err() {
                break;
            }
            other.abort().unwrap();
        }
        database.put(&writer, b"b", b"2").unwrap();
        database.lock_writes(&writer, WriteLock::Exclusive).unwrap();
        writer.commit().unwrap();
        locked.join().unwrap().unwrap();
    });
}

#[test]
fn shared_locks_go_together_and_their_holders_wait() {
    let (environment, database) = memory_environment();
    let one = begin_impatient(&environment, Isolation::ReadCommitted);
    let two = begin_impatient(&environment, Isolation::ReadCommitted);
    database.lock_writes(&one, WriteLock::Shared).unwrap();
    database.lock_writes(&two, WriteLock::Shared).unwrap();
    assert!(database.put(&one, b"a", b"1").is_err());
    assert!(database.lock_writes(&one, WriteLock::Exclusive).is_err());
    two.commit().unwrap();
    // The request that timed out is gone; the shared lock is not.
    database.put(&one, b"a", b"1").unwrap();
    database.lock_writes(&one, WriteLock::Exclusive).unwrap();
    one.commit().unwrap();
}

#[test]
fn withdrawn_request_excludes_nothing() {
    let (environment, database) = memory_environment();
    let writer = begin(&environment, Isolation::Snapshot);
    database.put(&writer, b"a", b"1").unwrap();
    let impatient = begin_impatient(&environment, Isolation::Snapshot);
    let refused = database.lock_writes(&impatient, WriteLock::Exclusive);
    assert!(matches!(refused, Err(Error::LockTimeout { .. })), "{refused:?}");
    let other = begin_impatient(&environment, Isolation::Snapshot);
    database.put(&other, b"b", b"2").unwrap();
    other.commit().unwrap();
    writer.commit().unwrap();
    impatient.abort().unwrap();
}

#[test]
fn writers_of_two_databases_that_lock_each_other_deadlock() {
    let (environment, database) = memory_environment();
    let neighbour = environment.create_database("neighbour").unwrap();
    let (one, two) =
        (begin(&environment, Isolation::Snapshot), begin(&environment, Isolation::Snapshot));
    database.put(&one, b"a", b"1").unwrap();
    neighbour.put(&two, b"a", b"1").unwrap();
    let end = |locked: quickbeam::Result<()>, transaction: Transaction| match locked {
        Ok(()) => transaction.commit().map(|()| true).unwrap(),
        Err(Error::Deadlock) => transaction.abort().map(|()| false).unwrap(),
        Err(error) => panic!("{error}"),
    };
    std::thread::scope(|scope| {
        let (database, neighbour, end) = (&database, &neighbour, &end);
        let first =
            scope.spawn(move || end(neighbour.lock_writes(&one, WriteLock::Exclusive), one));
        let second =
            scope.spawn(move || end(database.lock_writes(&two, WriteLock::Exclusive), two));
        assert!(first.join().unwrap() != second.join().unwrap());
    });
}

/// Each thread reads a sum and writes it back larger. Only the lock keeps it from losing what
/// another one adds, because read committed transactions do not notice.
#[test]
fn lock_orders_read_committed_transactions() {
    let (environment, database) = memory_environment();
    put(&environment, &database, b"sum", &0u64.to_le_bytes());
    const ROUNDS: u64 = 200;
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let (environment, database) = (&environment, &database);
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let transaction = begin(environment, Isolation::ReadCommitted);
                    database.lock_writes(&transaction, WriteLock::Exclusive).unwrap();
                    let sum = database.get(&transaction, b"sum").unwrap().unwrap();
                    let sum = u64::from_le_bytes(sum.try_into().unwrap()) + 1;
                    std::thread::yield_now();
                    database.put(&transaction, b"sum", &sum.to_le_bytes()).unwrap();
                    transaction.commit().unwrap();
                    // Writers that take no lock come between.
                    let options = TransactionOptions::new();
                    let other = environment.begin_with(options).unwrap();
                    database.put(&other, &[thread, round as u8], b"").unwrap();
                    other.commit().unwrap();
                }
            });
        }
    });
    let reader = environment.begin_read().unwrap();
    let sum = database.get(&reader, b"sum").unwrap().unwrap();
    assert_eq!(u64::from_le_bytes(sum.try_into().unwrap()), 4 * ROUNDS);
}
