//! Random statements on a table with indexes, beside a map that says what must come of them:
//! errors, rollbacks of statements, to savepoints and of transactions, changes of the definition in
//! between.

use std::collections::BTreeMap;

use crate::common::{LEVELS, begin, column, insert, int, integers, key, memory, rows, statement};
use proptest::prelude::*;
use quickbeam_sql::catalog::{Added, DropBehavior, NewIndex};
use quickbeam_sql::table::StoredRow;
use quickbeam_sql::{DataType, Value};

/// id → (unique or NULL, plain).
type Model = BTreeMap<i32, (Option<i32>, i32)>;

#[derive(Clone, Debug)]
enum Step {
    /// Several rows in one statement.
    Insert(Vec<(i32, Option<i32>, i32)>),
    /// All rows whose plain column is that: another key, another unique value.
    Update {
        plain: i32,
        move_by: i32,
        unique: Option<i32>,
    },
    Delete(i32),
    Savepoint,
    RollbackTo,
    Commit,
    Abort,
    /// An index of the plain column comes or goes.
    ToggleIndex,
    /// A column comes and goes again, so that rows of several layouts are there.
    ChangeColumns,
}

fn step() -> impl Strategy<Value = Step> {
    let row = (-4..20_i32, prop::option::of(0..12_i32), 0..4_i32);
    prop_oneof![
        6 => prop::collection::vec(row, 1..4).prop_map(Step::Insert),
        4 => (0..4_i32, -3..4_i32, prop::option::of(0..12_i32))
            .prop_map(|(plain, move_by, unique)| Step::Update { plain, move_by, unique }),
        2 => (0..4_i32).prop_map(Step::Delete),
        1 => Just(Step::Savepoint),
        1 => Just(Step::RollbackTo),
        1 => Just(Step::Commit),
        1 => Just(Step::Abort),
        1 => Just(Step::ToggleIndex),
        1 => Just(Step::ChangeColumns),
    ]
}

fn is_free(model: &Model, id: i32, unique: Option<i32>) -> bool {
    !model.contains_key(&id) && (unique.is_none() || model.values().all(|row| row.0 != unique))
}

/// What the statement makes of the map; none: a key is there twice, and nothing changes.
fn expected(model: &Model, step: &Step) -> Option<Model> {
    let mut next = model.clone();
    match step {
        Step::Insert(rows) => {
            for &(id, unique, plain) in rows {
                if !is_free(&next, id, unique) {
                    return None;
                }
                next.insert(id, (unique, plain));
            }
        }
        Step::Update { plain, move_by, unique } => {
            let hit: Vec<i32> =
                next.iter().filter(|(_, row)| row.1 == *plain).map(|(id, _)| *id).collect();
            for id in hit {
                let old = next.remove(&id)?;
                if !is_free(&next, id + move_by, *unique) {
                    return None;
                }
                next.insert(id + move_by, (*unique, old.1));
            }
        }
        Step::Delete(plain) => next.retain(|_, row| row.1 != *plain),
        _ => {}
    }
    Some(next)
}

fn values(id: i32, unique: Option<i32>, plain: i32) -> [Value; 3] {
    [int(id), unique.map_or(Value::Null, int), int(plain)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn tables_do_what_the_map_does(steps in prop::collection::vec(step(), 1..40), level in 0..3_usize) {
        let (environment, catalog) = memory();
        let mut new = integers("t", &["id", "u", "p"], &["id"]);
        new.uniques.push(key(&["u"]));
        let setup = environment.begin().unwrap();
        catalog.create_table(&setup, &new).unwrap();
        setup.commit().unwrap();
        let mut transaction = begin(&environment, LEVELS[level]);
        let (mut committed, mut model) = (Model::new(), Model::new());
        let mut savepoints = Vec::new();
        for step in &steps {
            match step {
                Step::Insert(_) | Step::Update { .. } | Step::Delete(_) => {
                    let next = expected(&model, step);
                    let done = run(&catalog, &transaction, step);
                    let code = done.as_ref().err().map(|error| error.code());
                    prop_assert_eq!(code, next.is_none().then_some("23505"), "{:?}", step);
                    model = next.unwrap_or(model);
                }
                Step::Savepoint => savepoints.push((transaction.savepoint().unwrap(), model.clone())),
                Step::RollbackTo => {
                    if let Some((savepoint, then)) = savepoints.last() {
                        transaction.rollback_to(*savepoint).unwrap();
                        model = then.clone();
                    }
                }
                Step::Commit | Step::Abort => {
                    savepoints.clear();
                    let ended = std::mem::replace(&mut transaction, begin(&environment, LEVELS[level]));
                    if matches!(step, Step::Commit) {
                        ended.commit().unwrap();
                        committed = model.clone();
                    } else {
                        ended.abort().unwrap();
                        model = committed.clone();
                    }
                    transaction = begin(&environment, LEVELS[level]);
                }
                Step::ToggleIndex => {
                    let has = catalog.snapshot(&transaction).unwrap().relation("i").is_some();
                    if has {
                        catalog.drop_index(&transaction, "i", false).unwrap();
                    } else {
                        let columns = vec![("p".into(), true, None)];
                        let index = NewIndex { name: Some("i".into()), table: "t".into(), columns, ..NewIndex::default() };
                        catalog.create_index(&transaction, &index).unwrap();
                    }
                }
                Step::ChangeColumns => {
                    let added = column("x", DataType::Text);
                    catalog.add_column(&transaction, "t", &added, Added::Same(Value::text("x"))).unwrap();
                    catalog.drop_column(&transaction, "t", "x", (DropBehavior::Restrict, &[])).unwrap();
                }
            }
            let found: Vec<Vec<Value>> = rows(&catalog, &transaction, "t");
            let wanted: Vec<Vec<Value>> =
                model.iter().map(|(id, row)| values(*id, row.0, row.1).to_vec()).collect();
            prop_assert_eq!(found, wanted, "after {:?}", step);
        }
        drop(transaction);
        prop_assert_eq!(rows(&catalog, &environment.begin_read().unwrap(), "t").len(), committed.len());
        let report = environment.verify().unwrap();
        prop_assert!(report.complaints.is_empty(), "{:?}", report.complaints);
    }
}

fn run(
    catalog: &quickbeam_sql::catalog::Catalog,
    transaction: &quickbeam::Transaction,
    step: &Step,
) -> quickbeam_sql::Result<()> {
    if let Step::Insert(rows) = step {
        let rows: Vec<[Value; 3]> = rows.iter().map(|row| values(row.0, row.1, row.2)).collect();
        let rows: Vec<&[Value]> = rows.iter().map(|row| &row[..]).collect();
        return insert(catalog, transaction, "t", &rows);
    }
    statement(catalog, transaction, "t", |statement, handle| {
        let mut hit = Vec::new();
        let mut cursor = handle.database().cursor(transaction)?;
        let mut more = cursor.first()?;
        while more {
            let row = StoredRow::new(handle.table(), cursor.value())?.to_values()?;
            hit.push((cursor.key().to_vec(), cursor.value().to_vec(), row));
            more = cursor.next()?;
        }
        for (key, bytes, mut row) in hit {
            match step {
                Step::Update { plain, move_by, unique } if row[2] == int(*plain) => {
                    row[0] = int(row[0].as_ref().as_i64().unwrap() as i32 + move_by);
                    row[1] = unique.map_or(Value::Null, int);
                    let new = crate::common::encode(handle, &row);
                    statement.update(handle, &key, &bytes, &new, &[0, 1])?;
                }
                Step::Delete(plain) if row[2] == int(*plain) => {
                    assert!(statement.delete(handle, &key, &bytes)?);
                }
                _ => {}
            }
        }
        Ok(())
    })
}
