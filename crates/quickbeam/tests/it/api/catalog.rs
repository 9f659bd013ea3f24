//! Named databases: made, renamed, emptied and dropped in transactions, beside others that use
//! them, and across crashes. A crash is a copy of the files while the environment is open.

use std::collections::BTreeMap;

use crate::common::{
    Random, Records, contents, environment_in_world, fill, open_files, place, small_options,
};
use quickbeam::{Environment, Error, Result, Savepoint, Transaction};

fn names(environment: &Environment) -> Vec<String> {
    environment.databases().unwrap()
}

#[test]
fn catalog_calls_change_the_names() {
    let (_, environment) = environment_in_world();
    let a = environment.create_database("a").unwrap();
    assert_eq!(a.name(), "a");
    assert!(matches!(environment.create_database("a"), Err(Error::DatabaseExists { .. })));
    assert!(matches!(environment.open_database("b"), Err(Error::NoSuchDatabase { .. })));
    assert!(matches!(environment.drop_database("b"), Err(Error::NoSuchDatabase { .. })));
    assert!(matches!(environment.clear_database("b"), Err(Error::NoSuchDatabase { .. })));
    assert!(matches!(environment.rename_database("b", "c"), Err(Error::NoSuchDatabase { .. })));
    environment.open_or_create_database("b").unwrap();
    environment.open_or_create_database("b").unwrap();
    assert!(matches!(environment.rename_database("a", "b"), Err(Error::DatabaseExists { .. })));
    assert!(matches!(environment.rename_database("a", "a"), Err(Error::DatabaseExists { .. })));
    fill(&environment, &a, 10, 10);
    environment.rename_database("a", "c").unwrap();
    assert_eq!(names(&environment), ["b", "c"]);
    let c = environment.open_database("c").unwrap();
    let reader = environment.begin_read().unwrap();
    assert_eq!(crate::common::records(&c, &reader).unwrap().len(), 10);
    assert!(
        matches!(a.get(&reader, b"x"), Err(Error::NoSuchDatabase { .. })),
        "it has another name"
    );
    drop(reader);
    environment.clear_database("c").unwrap();
    let reader = environment.begin_read().unwrap();
    assert!(
        crate::common::records(&c, &reader).unwrap().is_empty(),
        "the handle means the emptied one"
    );
    drop(reader);
    environment.drop_database("c").unwrap();
    assert_eq!(names(&environment), ["b"]);
    let again = environment.create_database("c").unwrap();
    fill(&environment, &again, 1, 1);
    let reader = environment.begin_read().unwrap();
    assert_eq!(crate::common::records(&c, &reader).unwrap().len(), 1, "a handle goes by its name");
    drop(reader);
    crate::common::assert_sound(&environment);
}

#[test]
fn database_names_of_any_text_are_listed_in_order() {
    let (vfs, environment) = environment_in_world();
    let longest = "é".repeat(127);
    for name in ["z", " ", "a/b", "\0", longest.as_str(), "ö"] {
        environment.create_database(name).unwrap();
    }
    let mut expected = ["z", " ", "a/b", "\0", longest.as_str(), "ö"];
    expected.sort_unstable();
    assert_eq!(names(&environment), expected);
    let copy = open_files(&vfs.files(place()), &small_options()).unwrap();
    assert_eq!(names(&copy), expected);
}

#[test]
fn catalog_changes_are_visible_outside_after_commit() {
    for commits in [true, false] {
        let (_, environment) = environment_in_world();
        for name in ["dropped", "emptied", "renamed"] {
            let database = environment.create_database(name).unwrap();
            fill(&environment, &database, 3, 10);
        }
        let before = contents(&environment).unwrap();
        let transaction = environment.begin().unwrap();
        let made = transaction.create_database("made").unwrap();
        made.put(&transaction, b"key", b"value").unwrap();
        transaction.drop_database("dropped").unwrap();
        transaction.clear_database("emptied").unwrap();
        transaction.rename_database("renamed", "other").unwrap();
        assert_eq!(transaction.databases().unwrap(), ["emptied", "made", "other"]);
        assert!(matches!(transaction.open_database("dropped"), Err(Error::NoSuchDatabase { .. })));
        let emptied = transaction.open_database("emptied").unwrap();
        assert_eq!(emptied.get(&transaction, b"000001").unwrap(), None);
        emptied.put(&transaction, b"new", b"").unwrap();
        let other = transaction.open_database("other").unwrap();
        assert!(other.exists(&transaction, b"000001").unwrap());
        assert_eq!(contents(&environment).unwrap(), before, "others see nothing of it");
        assert!(environment.open_database("made").is_err());
        if commits {
            transaction.commit().unwrap();
            let after = contents(&environment).unwrap();
            assert_eq!(after.keys().collect::<Vec<_>>(), ["emptied", "made", "other"]);
            assert_eq!(after["emptied"].keys().collect::<Vec<_>>(), [b"new"]);
            assert_eq!(after["made"].len(), 1);
            assert_eq!(after["other"], before["renamed"]);
            let reader = environment.begin_read().unwrap();
            assert!(made.exists(&reader, b"key").unwrap(), "a handle made inside goes on");
        } else {
            transaction.abort().unwrap();
            assert_eq!(contents(&environment).unwrap(), before);
            let reader = environment.begin_read().unwrap();
            assert!(matches!(made.get(&reader, b"key"), Err(Error::NoSuchDatabase { .. })));
        }
        crate::common::assert_sound(&environment);
    }
}

#[test]
fn savepoint_rollback_undoes_catalog_changes() {
    for commits in [true, false] {
        let (vfs, environment) = environment_in_world();
        let kept = environment.create_database("kept").unwrap();
        fill(&environment, &kept, 5, 2000);
        let transaction = environment.begin().unwrap();
        let early = transaction.create_database("early").unwrap();
        early.put(&transaction, b"1", b"before").unwrap();
        let savepoint = transaction.savepoint().unwrap();
        early.put(&transaction, b"1", b"after").unwrap();
        early.put(&transaction, b"2", &[1; 9000]).unwrap();
        let late = transaction.create_database("late").unwrap();
        late.put(&transaction, b"1", &[2; 9000]).unwrap();
        transaction.drop_database("kept").unwrap();
        transaction.rename_database("early", "kept").unwrap();
        transaction.rollback_to(savepoint).unwrap();
        assert_eq!(transaction.databases().unwrap(), ["early", "kept"]);
        assert_eq!(early.get(&transaction, b"1").unwrap().unwrap(), b"before");
        assert!(!early.exists(&transaction, b"2").unwrap());
        assert!(kept.exists(&transaction, b"000001").unwrap());
        assert!(matches!(late.get(&transaction, b"1"), Err(Error::NoSuchDatabase { .. })));
        kept.put(&transaction, b"new", b"").unwrap();
        transaction.create_database("late").unwrap();
        if commits { transaction.commit() } else { transaction.abort() }.unwrap();
        crate::common::assert_sound(&environment);
        let all = contents(&environment).unwrap();
        let expected: &[&str] = if commits { &["early", "kept", "late"] } else { &["kept"] };
        assert!(all.keys().eq(expected));
        assert_eq!(all["kept"].len(), if commits { 6 } else { 5 });
        let copy = open_files(&vfs.files(place()), &small_options()).unwrap();
        assert_eq!(contents(&copy).unwrap(), all);
        crate::common::assert_sound(&copy);
    }
}

#[test]
fn space_of_dropped_databases_is_reused() {
    let (_, environment) = environment_in_world();
    let mut after_first = 0;
    for cycle in 0..12 {
        let database = environment.open_or_create_database("a").unwrap();
        fill(&environment, &database, 400, 500);
        fill(&environment, &database, 8, 30_000);
        match cycle % 3 {
            0 => environment.drop_database("a").unwrap(),
            1 => environment.clear_database("a").unwrap(),
            _ => {
                let all = |transaction: &Transaction| {
                    let mut cursor = database.cursor(transaction)?;
                    while cursor.first()? {
                        cursor.delete()?;
                    }
                    Ok(())
                };
                environment.transact(all).unwrap();
            }
        }
        environment.checkpoint().unwrap();
        environment.checkpoint().unwrap();
        let statistics = environment.statistics();
        if cycle < 3 {
            after_first = after_first.max(statistics.data_file_bytes);
        }
        assert!(
            statistics.data_file_bytes <= after_first,
            "cycle {cycle}: {} bytes, {after_first} before",
            statistics.data_file_bytes
        );
        assert!(
            statistics.data_used_bytes < 200_000,
            "{} bytes in use",
            statistics.data_used_bytes
        );
    }
    crate::common::assert_sound(&environment);
}

type All = BTreeMap<String, Records>;

/// One random change of the catalog or of a record, made in the model as well.
fn change(random: &mut Random, transaction: &Transaction, all: &mut All) -> Result<()> {
    let name = |random: &mut Random| format!("database {}", random.below(5));
    let (one, other) = (name(random), name(random));
    let known = all.contains_key(&one);
    match random.below(12) {
        0..2 => {
            let made = transaction.create_database(&one);
            assert_eq!(made.is_ok(), !known);
            all.entry(one).or_default();
        }
        2 => {
            assert_eq!(transaction.drop_database(&one).is_ok(), known);
            all.remove(&one);
        }
        3 => {
            let renamed = transaction.rename_database(&one, &other);
            assert_eq!(renamed.is_ok(), known && !all.contains_key(&other), "{renamed:?}");
            if renamed.is_ok() {
                let records = all.remove(&one).unwrap();
                all.insert(other, records);
            }
        }
        4 => {
            assert_eq!(transaction.clear_database(&one).is_ok(), known);
            all.entry(one).and_modify(Records::clear);
        }
        _ => {
            let Ok(database) = transaction.open_database(&one) else {
                assert!(!known);
                return Ok(());
            };
            let key = vec![random.below(30) as u8; 1 + random.below(40)];
            let value = vec![random.next() as u8; [10, 200, 5000][random.below(3)]];
            database.put(transaction, &key, &value)?;
            all.get_mut(&one).unwrap().insert(key, value);
        }
    }
    Ok(())
}

/// Random changes in random transactions; a copy of the files at any commit, opened, is what was
/// committed.
#[test]
fn random_catalog_changes_survive_crashes() {
    let first = crate::common::first_seed();
    println!("first seed {first}");
    for seed in first..first + 25 {
        let mut random = Random::new(seed);
        let (mut vfs, mut environment) = environment_in_world();
        let mut committed = All::new();
        for _ in 0..40 {
            let transaction = environment.begin().unwrap();
            let mut all = committed.clone();
            let mut saved: Option<(Savepoint, All)> = None;
            for _ in 0..random.below(12) {
                if random.chance(10) {
                    saved = Some((transaction.savepoint().unwrap(), all.clone()));
                } else if random.chance(10) && saved.is_some() {
                    let (savepoint, then) = saved.clone().unwrap();
                    transaction.rollback_to(savepoint).unwrap();
                    all = then;
                } else {
                    change(&mut random, &transaction, &mut all).unwrap();
                }
            }
            if random.chance(80) {
                transaction.commit().unwrap();
                committed = all;
            } else {
                transaction.abort().unwrap();
            }
            assert_eq!(contents(&environment).unwrap(), committed, "seed {seed}");
            match random.below(10) {
                0 => environment.checkpoint().unwrap(),
                1 => {
                    environment.close().unwrap();
                    environment =
                        Environment::open_in(vfs.clone(), Some(place()), small_options()).unwrap();
                }
                2..5 => {
                    // A transaction that never ends, and the crash.
                    let open = environment.begin().unwrap();
                    let mut lost = committed.clone();
                    for _ in 0..4 {
                        change(&mut random, &open, &mut lost).unwrap();
                    }
                    if random.chance(50) {
                        environment.checkpoint().unwrap();
                    }
                    let files = vfs.files(place());
                    drop(open);
                    vfs = crate::common::world_with(&files, place());
                    environment =
                        Environment::open_in(vfs.clone(), Some(place()), small_options()).unwrap();
                }
                _ => {}
            }
            let mut report = environment.verify().unwrap();
            // A dropped database counts until the thread that frees it has come to its end.
            for _ in 0..1000 {
                if report.databases == committed.len() {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(1));
                report = environment.verify().unwrap();
            }
            assert_eq!(report.complaints, Vec::<String>::new(), "seed {seed}");
            assert_eq!(report.databases, committed.len(), "seed {seed}");
        }
    }
}
