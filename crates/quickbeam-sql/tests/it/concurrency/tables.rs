//! Tables through the lower half: changes of rows, constraints, changes of the definition, all of
//! it rolled back too.

use crate::common::{
    begin, column, delete, foreign, insert, int, integers, key, memory, numbers, rows, update,
};
use quickbeam::Isolation;
use quickbeam_sql::catalog::{
    Added, DropBehavior, ForeignKeyAction, Method, NewCheck, NewIdentity, NewIndex, NewTable,
    NewView, SequenceChanges, SequenceOptions,
};
use quickbeam_sql::{DataType, SqlError, Value};

fn code<T: std::fmt::Debug>(result: Result<T, SqlError>) -> &'static str {
    result.unwrap_err().code()
}

#[test]
fn an_index_of_many_rows_is_made_of_full_leaves() {
    let (environment, catalog) = memory();
    let transaction = environment.begin().unwrap();
    catalog.create_table(&transaction, &integers("t", &["id", "a", "b"], &["id"])).unwrap();
    let rows: Vec<Vec<Value>> = (0..20_000)
        .map(|n| vec![int(n), int(n.wrapping_mul(7_919) % 20_011), int(n % 7)])
        .collect();
    let rows: Vec<&[Value]> = rows.iter().map(Vec::as_slice).collect();
    insert(&catalog, &transaction, "t", &rows).unwrap();
    transaction.commit().unwrap();
    for (column, unique, method) in [
        ("a", true, Method::Hash),
        ("a", false, Method::Hash),
        ("b", false, Method::Hash),
        ("a", false, Method::Range),
    ] {
        let transaction = environment.begin().unwrap();
        let columns = vec![(column.into(), false, None)];
        let index = NewIndex { table: "t".into(), columns, unique, method, ..NewIndex::default() };
        let name = catalog.create_index(&transaction, &index).unwrap();
        transaction.commit().unwrap();
        let report = environment.verify().unwrap();
        assert_eq!(report.complaints, Vec::<String>::new());
        assert!(report.leaf_fill > 0.75, "{column} {method:?}: {}", report.leaf_fill);
        let transaction = environment.begin().unwrap();
        catalog.drop_index(&transaction, &name, false).unwrap();
        transaction.commit().unwrap();
    }
    let transaction = environment.begin().unwrap();
    for method in [Method::Hash, Method::Range] {
        let columns = vec![("b".into(), false, None)];
        let index =
            NewIndex { table: "t".into(), columns, unique: true, method, ..NewIndex::default() };
        let savepoint = transaction.savepoint().unwrap();
        let error = catalog.create_index(&transaction, &index).unwrap_err();
        assert_eq!((error.code(), error.constraint()), ("23505", Some("t_b_idx")));
        assert!(error.detail().is_some_and(|detail| detail.ends_with(") is duplicated.")));
        transaction.rollback_to(savepoint).unwrap();
    }
}

#[test]
fn rows_are_inserted_changed_and_removed_with_their_entries() {
    let (environment, catalog) = memory();
    let transaction = environment.begin().unwrap();
    let mut new = integers("t", &["id", "a", "b"], &["id"]);
    new.uniques.push(key(&["a"]));
    catalog.create_table(&transaction, &new).unwrap();
    let index = NewIndex {
        table: "t".into(),
        columns: vec![("b".into(), true, None)],
        ..NewIndex::default()
    };
    insert(&catalog, &transaction, "t", &[&[int(1), int(10), int(5)]]).unwrap();
    assert_eq!(catalog.create_index(&transaction, &index).unwrap(), "t_b_idx");
    let more: [&[Value]; 3] = [
        &[int(3), Value::Null, int(5)],
        &[int(2), Value::Null, Value::Null],
        &[int(-1), int(20), int(7)],
    ];
    insert(&catalog, &transaction, "t", &more).unwrap();
    let error = insert(
        &catalog,
        &transaction,
        "t",
        &[&[int(9), int(30), int(1)], &[int(10), int(20), int(1)]],
    );
    let error = error.unwrap_err();
    assert_eq!((error.code(), error.constraint()), ("23505", Some("t_a_key")));
    assert_eq!(error.detail(), Some("Key (a)=(20) already exists."));
    let error = insert(&catalog, &transaction, "t", &[&[int(2), int(31), int(1)]]).unwrap_err();
    assert_eq!((error.code(), error.constraint()), ("23505", Some("t_pkey")));
    let null = insert(&catalog, &transaction, "t", &[&[Value::Null, int(31), int(1)]]);
    assert_eq!(code(null), "23502");
    assert!(update(&catalog, &transaction, "t", 3, 0, int(4)).unwrap());
    assert!(update(&catalog, &transaction, "t", 4, 2, Value::Null).unwrap());
    assert_eq!(code(update(&catalog, &transaction, "t", 4, 1, int(10))), "23505");
    assert_eq!(code(update(&catalog, &transaction, "t", 4, 0, int(1))), "23505");
    assert!(delete(&catalog, &transaction, "t", 2).unwrap());
    assert!(!delete(&catalog, &transaction, "t", 2).unwrap());
    let expected = vec![
        vec![Some(-1), Some(20), Some(7)],
        vec![Some(1), Some(10), Some(5)],
        vec![Some(4), None, None],
    ];
    assert_eq!(numbers(&rows(&catalog, &transaction, "t")), expected);
    transaction.commit().unwrap();
    let reader = environment.begin_read().unwrap();
    assert_eq!(numbers(&rows(&catalog, &reader, "t")), expected);
}

#[test]
fn a_table_without_primary_key_keeps_the_order_of_insertion() {
    let (environment, catalog) = memory();
    let transaction = environment.begin().unwrap();
    catalog.create_table(&transaction, &integers("t", &["a"], &[])).unwrap();
    for value in [5, 3, 5, 1] {
        insert(&catalog, &transaction, "t", &[&[int(value)]]).unwrap();
    }
    transaction.commit().unwrap();
    // As after the environment was opened again: row ids go on after the last one.
    let catalog = quickbeam_sql::catalog::Catalog::open(&environment).unwrap();
    let transaction = environment.begin().unwrap();
    insert(&catalog, &transaction, "t", &[&[int(2)]]).unwrap();
    let found: Vec<_> = numbers(&rows(&catalog, &transaction, "t")).concat();
    assert_eq!(found, [5, 3, 5, 1, 2].map(Some));
}

#[test]
fn two_catalogs_of_an_environment_do_not_get_in_each_others_way() {
    let (environment, first) = memory();
    let second = quickbeam_sql::catalog::Catalog::open(&environment).unwrap();
    let transaction = environment.begin().unwrap();
    first.create_table(&transaction, &integers("t", &["a"], &[])).unwrap();
    transaction.commit().unwrap();
    for round in 0..4 {
        for (catalog, other) in [(&first, &second), (&second, &first)] {
            let transaction = environment.begin().unwrap();
            for _ in 0..3 {
                insert(catalog, &transaction, "t", &[&[int(round)]]).unwrap();
            }
            let name = format!("c{round}_{}", std::ptr::eq(&**catalog, &*first));
            let added = column(&name, DataType::Integer);
            catalog.add_column(&transaction, "t", &added, Added::Same(Value::Null)).unwrap();
            transaction.commit().unwrap();
            let transaction = environment.begin().unwrap();
            let table = other.snapshot(&transaction).unwrap().table_named("t").unwrap();
            assert!(table.column(&name).is_some());
            other.drop_column(&transaction, "t", &name, (DropBehavior::Restrict, &[])).unwrap();
            transaction.commit().unwrap();
        }
    }
    assert_eq!(rows(&first, &environment.begin_read().unwrap(), "t").len(), 24);
}

#[test]
fn definitions_roll_back_with_their_transaction() {
    let (environment, catalog) = memory();
    let first = environment.begin().unwrap();
    catalog.create_table(&first, &integers("kept", &["a"], &["a"])).unwrap();
    first.commit().unwrap();
    let version = catalog.version(&environment.begin_read().unwrap()).unwrap();
    let second = environment.begin().unwrap();
    catalog.create_table(&second, &integers("gone", &["a"], &["a"])).unwrap();
    let before = second.savepoint().unwrap();
    let inside = catalog.version(&second).unwrap();
    catalog.drop_tables(&second, &["kept".into()], DropBehavior::Restrict).unwrap();
    assert!(catalog.snapshot(&second).unwrap().relation("kept").is_none());
    assert_eq!(code(insert(&catalog, &second, "kept", &[&[int(1)]])), "42P01");
    second.rollback_to(before).unwrap();
    assert_eq!(catalog.version(&second).unwrap(), inside);
    insert(&catalog, &second, "kept", &[&[int(1)]]).unwrap();
    insert(&catalog, &second, "gone", &[&[int(1)]]).unwrap();
    // No other transaction sees any of it.
    let reader = environment.begin_read().unwrap();
    assert_eq!(catalog.version(&reader).unwrap(), version);
    assert!(catalog.snapshot(&reader).unwrap().relation("gone").is_none());
    second.abort().unwrap();
    let third = environment.begin().unwrap();
    assert!(catalog.snapshot(&third).unwrap().relation("gone").is_none());
    assert_eq!(catalog.version(&third).unwrap(), version);
    assert!(rows(&catalog, &third, "kept").is_empty());
    catalog.create_table(&third, &integers("gone", &["b"], &["b"])).unwrap();
    third.commit().unwrap();
    let after = environment.begin_read().unwrap();
    assert_ne!(catalog.version(&after).unwrap(), version);
    assert!(catalog.snapshot(&after).unwrap().relation("gone_pkey").is_none());
    let table = catalog.snapshot(&after).unwrap().table_named("gone").unwrap();
    assert_eq!(table.columns[0].name, "b");
}

#[test]
fn columns_come_and_go_without_rows_being_written() {
    let (environment, catalog) = memory();
    let transaction = environment.begin().unwrap();
    catalog.create_table(&transaction, &integers("t", &["id", "a", "b"], &["id"])).unwrap();
    insert(&catalog, &transaction, "t", &[&[int(1), int(10), int(100)]]).unwrap();
    let text = column("note", DataType::Text);
    catalog.add_column(&transaction, "t", &text, Added::Same(Value::text("old"))).unwrap();
    let again = catalog.add_column(&transaction, "t", &text, Added::Same(Value::Null));
    assert_eq!(code(again), "42701");
    insert(&catalog, &transaction, "t", &[&[int(2), int(20), int(200), Value::text("new")]])
        .unwrap();
    catalog.drop_column(&transaction, "t", "a", (DropBehavior::Restrict, &[])).unwrap();
    insert(&catalog, &transaction, "t", &[&[int(3), int(300), Value::Null]]).unwrap();
    let shown = |rows: Vec<Vec<Value>>| -> Vec<String> {
        let show = |row: Vec<Value>| row.iter().map(Value::to_string).collect::<Vec<_>>().join(" ");
        rows.into_iter().map(show).collect()
    };
    assert_eq!(shown(rows(&catalog, &transaction, "t")), ["1 100 old", "2 200 new", "3 300 NULL"]);
    // An old row that is changed is one of the new form.
    assert!(update(&catalog, &transaction, "t", 1, 1, int(101)).unwrap());
    let mut strict = column("strict", DataType::Integer);
    strict.not_null = true;
    let refused = catalog.add_column(&transaction, "t", &strict, Added::Same(Value::Null));
    assert_eq!(code(refused), "23502");
    transaction.abort().unwrap();

    let transaction = environment.begin().unwrap();
    catalog.create_table(&transaction, &integers("t", &["id", "a", "b"], &["id"])).unwrap();
    insert(&catalog, &transaction, "t", &[&[int(7), int(10), int(1)], &[int(8), int(10), int(2)]])
        .unwrap();
    let mut numbered = column("n", DataType::BigInt);
    numbered.identity =
        Some(NewIdentity { always: true, is_serial: false, options: SequenceOptions::default() });
    catalog.add_column(&transaction, "t", &numbered, Added::Same(Value::Null)).unwrap();
    assert_eq!(shown(rows(&catalog, &transaction, "t")), ["7 10 1 1", "8 10 2 2"]);
    // The primary key goes with its column, and the rows stay.
    catalog.drop_column(&transaction, "t", "id", (DropBehavior::Restrict, &[])).unwrap();
    assert_eq!(shown(rows(&catalog, &transaction, "t")), ["10 1 1", "10 2 2"]);
    assert_eq!(code(catalog.add_primary_key(&transaction, "t", &key(&["a"]))), "23505");
}

#[test]
fn the_primary_key_can_be_another_one() {
    let (environment, catalog) = memory();
    let transaction = environment.begin().unwrap();
    let mut new = integers("t", &["a", "b"], &["a"]);
    new.uniques.push(key(&["b"]));
    catalog.create_table(&transaction, &new).unwrap();
    insert(&catalog, &transaction, "t", &[&[int(1), int(9)], &[int(2), int(8)]]).unwrap();
    let two = catalog.add_primary_key(&transaction, "t", &key(&["b"]));
    assert_eq!(code(two), "42P16");
    catalog.drop_constraint(&transaction, "t", "t_pkey", false).unwrap();
    insert(&catalog, &transaction, "t", &[&[int(2), int(7)]]).unwrap();
    catalog.add_primary_key(&transaction, "t", &key(&["b"])).unwrap();
    let expected = [[2, 7], [2, 8], [1, 9]].map(|row| row.map(Some).to_vec());
    assert_eq!(numbers(&rows(&catalog, &transaction, "t")), expected);
    assert!(update(&catalog, &transaction, "t", 7, 0, int(5)).unwrap());
    catalog.set_not_null(&transaction, "t", "a", true).unwrap();
    assert_eq!(code(insert(&catalog, &transaction, "t", &[&[Value::Null, int(3)]])), "23502");
    assert_eq!(code(catalog.set_not_null(&transaction, "t", "b", false)), "42P16");
}

fn family(on: ForeignKeyAction) -> [NewTable; 2] {
    let mut child = integers("child", &["id", "parent"], &["id"]);
    child.foreign_keys.push(foreign(&["parent"], "parent", on));
    [integers("parent", &["id", "x"], &["id"]), child]
}

#[test]
fn foreign_keys_hold_and_their_actions_follow() {
    use ForeignKeyAction::{Cascade, NoAction, Restrict, SetDefault, SetNull};
    for (action, deleted, updated) in [
        (NoAction, Err("23503"), Err("23503")),
        (Restrict, Err("23503"), Err("23503")),
        (Cascade, Ok(vec![]), Ok(vec![Some(5), Some(5)])),
        (SetNull, Ok(vec![None, None]), Ok(vec![None, None])),
        (SetDefault, Ok(vec![Some(0), Some(0)]), Ok(vec![Some(0), Some(0)])),
    ] {
        for indexed in [false, true] {
            let (environment, catalog) = memory();
            let transaction = environment.begin().unwrap();
            for table in family(action) {
                catalog.create_table(&transaction, &table).unwrap();
            }
            if indexed {
                let columns = vec![("parent".into(), false, None)];
                let index = NewIndex { table: "child".into(), columns, ..NewIndex::default() };
                catalog.create_index(&transaction, &index).unwrap();
            }
            insert(&catalog, &transaction, "parent", &[&[int(0), int(0)], &[int(1), int(0)]])
                .unwrap();
            let children: [&[Value]; 2] = [&[int(10), int(1)], &[int(11), int(1)]];
            insert(&catalog, &transaction, "child", &children).unwrap();
            insert(&catalog, &transaction, "child", &[&[int(12), Value::Null]]).unwrap();
            let orphan = insert(&catalog, &transaction, "child", &[&[int(13), int(9)]]);
            let orphan = orphan.unwrap_err();
            assert_eq!((orphan.code(), orphan.constraint()), ("23503", Some("child_parent_fkey")));
            assert_eq!(code(update(&catalog, &transaction, "child", 10, 1, int(9))), "23503");
            let parents = || -> Vec<Option<i64>> {
                let mut all = numbers(&rows(&catalog, &transaction, "child"));
                all.retain(|row| row[0] != Some(12));
                all.into_iter().map(|row| row[1]).collect()
            };
            // Rows without references to them, and columns outside of keys, change freely.
            assert!(update(&catalog, &transaction, "parent", 1, 1, int(77)).unwrap());
            let before = transaction.savepoint().unwrap();
            let done = delete(&catalog, &transaction, "parent", 1).map_err(|error| error.code());
            assert_eq!(done.map(|_| parents()), deleted, "{action:?}");
            if deleted.is_err() {
                assert_eq!(parents(), [Some(1), Some(1)]);
            }
            transaction.rollback_to(before).unwrap();
            let done = update(&catalog, &transaction, "parent", 1, 0, int(5));
            assert_eq!(
                done.map_err(|error| error.code()).map(|_| parents()),
                updated,
                "{action:?}"
            );
        }
    }
}

#[test]
fn chain_of_rows_of_one_table_may_have_any_length() {
    let (environment, catalog) = memory();
    let transaction = environment.begin().unwrap();
    let mut new = integers("t", &["id", "next"], &["id"]);
    new.foreign_keys.push(foreign(&["next"], "t", ForeignKeyAction::Cascade));
    catalog.create_table(&transaction, &new).unwrap();
    let columns = vec![("next".into(), false, None)];
    let index = NewIndex { table: "t".into(), columns, ..NewIndex::default() };
    catalog.create_index(&transaction, &index).unwrap();
    insert(&catalog, &transaction, "t", &[&[int(0), int(0)]]).unwrap();
    for id in 1..5_000 {
        insert(&catalog, &transaction, "t", &[&[int(id), int(id - 1)]]).unwrap();
    }
    assert!(delete(&catalog, &transaction, "t", 0).unwrap());
    assert!(rows(&catalog, &transaction, "t").is_empty());
}

#[test]
fn what_others_depend_on_is_not_dropped_by_itself() {
    let (environment, catalog) = memory();
    let transaction = environment.begin().unwrap();
    for table in family(ForeignKeyAction::NoAction) {
        catalog.create_table(&transaction, &table).unwrap();
    }
    let id = catalog.snapshot(&transaction).unwrap().table_named("parent").unwrap().id;
    let view = NewView {
        name: "v".into(),
        columns: vec!["id".into()],
        query: "SELECT id FROM parent".into(),
        ..NewView::default()
    };
    catalog.create_view(&transaction, &view, vec![id]).unwrap();
    let refused = |drop: &dyn Fn() -> Result<(), SqlError>| {
        let before = transaction.savepoint().unwrap();
        let code = drop().unwrap_err().code();
        transaction.rollback_to(before).unwrap();
        code
    };
    let drop_parent = |cascade| catalog.drop_tables(&transaction, &["parent".into()], cascade);
    assert_eq!(refused(&|| drop_parent(DropBehavior::Restrict)), "2BP01");
    assert_eq!(
        refused(&|| catalog.drop_constraint(&transaction, "parent", "parent_pkey", false)),
        "2BP01"
    );
    assert_eq!(
        refused(&|| catalog.drop_column(
            &transaction,
            "parent",
            "id",
            (DropBehavior::Restrict, &[])
        )),
        "2BP01"
    );
    assert_eq!(
        refused(&|| catalog.truncate(&transaction, &["parent".into()], false, false)),
        "0A000"
    );
    assert_eq!(
        refused(&|| catalog.create_table(&transaction, &integers("v", &["a"], &[])).map(|_| ())),
        "42P07"
    );
    drop_parent(DropBehavior::Cascade).unwrap();
    assert!(catalog.snapshot(&transaction).unwrap().relation("v").is_none());
    insert(&catalog, &transaction, "child", &[&[int(1), int(99)]]).unwrap();
    catalog.drop_tables(&transaction, &["child".into()], DropBehavior::Restrict).unwrap();
    transaction.commit().unwrap();
    let left: Vec<String> = environment.databases().unwrap();
    assert_eq!(left, ["sql.catalog", "sql.sequences"]);
}

#[test]
fn constraints_are_added_only_if_the_rows_keep_to_them() {
    let (environment, catalog) = memory();
    let transaction = environment.begin().unwrap();
    for mut table in family(ForeignKeyAction::NoAction) {
        table.foreign_keys.clear();
        catalog.create_table(&transaction, &table).unwrap();
    }
    insert(&catalog, &transaction, "child", &[&[int(1), int(7)], &[int(2), int(7)]]).unwrap();
    let refused = |add: &mut dyn FnMut() -> Result<(), SqlError>| {
        let before = transaction.savepoint().unwrap();
        let code = add().unwrap_err().code();
        transaction.rollback_to(before).unwrap();
        code
    };
    let reference = foreign(&["parent"], "parent", ForeignKeyAction::NoAction);
    assert_eq!(
        refused(&mut || catalog.add_foreign_key(&transaction, "child", &reference)),
        "23503"
    );
    assert_eq!(
        refused(&mut || catalog.add_unique(&transaction, "child", &key(&["parent"]))),
        "23505"
    );
    let check = NewCheck {
        name: None,
        expression: "parent < 7".into(),
        columns: vec!["parent".into()],
        not_valid: false,
        no_inherit: false,
    };
    let mut below =
        |row: quickbeam_sql::table::StoredRow<'_>| Ok(Some(row.get(1)?.as_i64() < Some(7)));
    assert_eq!(
        refused(&mut || catalog.add_check(&transaction, "child", &check, &mut below)),
        "23514"
    );
    insert(&catalog, &transaction, "parent", &[&[int(7), int(0)]]).unwrap();
    catalog.add_foreign_key(&transaction, "child", &reference).unwrap();
    assert_eq!(code(delete(&catalog, &transaction, "parent", 7)), "23503");
    catalog.drop_constraint(&transaction, "child", "child_parent_fkey", false).unwrap();
    assert!(delete(&catalog, &transaction, "parent", 7).unwrap());
}

#[test]
fn sequences_count_whatever_becomes_of_transactions() {
    let (environment, catalog) = memory();
    let transaction = environment.begin().unwrap();
    let options = SequenceOptions {
        start: Some(3),
        increment: Some(-2),
        minimum: Some(-2),
        maximum: Some(3),
        ..SequenceOptions::default()
    };
    catalog.create_sequence(&transaction, "s", &options).unwrap();
    let named = |transaction: &quickbeam::Transaction| {
        catalog.snapshot(transaction).unwrap().sequence_named("s").unwrap()
    };
    let first = named(&transaction);
    assert_eq!(catalog.next_value(&transaction, &first).unwrap(), 3);
    transaction.commit().unwrap();
    let aborted = environment.begin().unwrap();
    assert_eq!(catalog.next_value(&aborted, &first).unwrap(), 1);
    // Begun again in this transaction only.
    let restart = SequenceChanges { restart: Some(None), ..SequenceChanges::default() };
    catalog.alter_sequence(&aborted, "s", &restart).unwrap();
    assert_eq!(catalog.next_value(&aborted, &named(&aborted)).unwrap(), 3);
    aborted.abort().unwrap();
    let last = environment.begin().unwrap();
    assert_eq!(catalog.next_value(&last, &named(&last)).unwrap(), -1);
    assert_eq!(code(catalog.next_value(&last, &first)), "2200H");
    catalog.set_value(&last, &first, 3, true).unwrap();
    assert_eq!(catalog.next_value(&last, &first).unwrap(), 1);
    assert_eq!(code(catalog.set_value(&last, &first, 4, true)), "22003");
    catalog.drop_sequences(&last, &["s".into()], DropBehavior::Restrict).unwrap();
    last.commit().unwrap();
    drop(quickbeam_sql::catalog::Catalog::open(&environment).unwrap());
    let values = environment.open_database("sql.sequences").unwrap();
    let reader = environment.begin_read().unwrap();
    assert!(!values.cursor(&reader).unwrap().first().unwrap());
}

#[test]
fn a_database_is_a_table_of_two_columns() {
    let (environment, catalog) = memory();
    let fruit = environment.create_database("fruit").unwrap();
    let transaction = begin(&environment, Isolation::Snapshot);
    fruit.put(&transaction, b"apple\0", b"red").unwrap();
    assert!(catalog.database_as_table(&transaction, "sql.catalog").unwrap().is_none());
    assert!(catalog.database_as_table(&transaction, "vegetables").unwrap().is_none());
    let handle = catalog.database_as_table(&transaction, "fruit").unwrap().unwrap();
    let snapshot = catalog.snapshot(&transaction).unwrap();
    let defaults = crate::common::Defaults(Value::Null);
    let mut statement =
        quickbeam_sql::table::TableWriter::new(&catalog, &transaction, &snapshot, &defaults);
    let row = crate::common::encode(&handle, &[Value::bytea("pear"), Value::bytea("green")]);
    statement.insert(&handle, &row).unwrap();
    assert_eq!(fruit.get(&transaction, b"pear").unwrap().unwrap(), b"green");
    assert_eq!(code(statement.insert(&handle, &row)), "23505");
    let mut found = Vec::new();
    assert!(handle.get(&transaction, b"apple\0", &mut found).unwrap());
    let changed = crate::common::encode(&handle, &[Value::bytea("apricot"), Value::bytea("red")]);
    statement.update(&handle, b"apple\0", &found, &changed, &[0]).unwrap();
    assert!(statement.delete(&handle, b"pear", &row).unwrap());
    statement.finish().unwrap();
    let mut cursor = fruit.cursor(&transaction).unwrap();
    assert!(cursor.first().unwrap());
    assert_eq!((cursor.key(), cursor.value()), (&b"apricot"[..], &b"red"[..]));
    assert!(!cursor.next().unwrap());
}

#[test]
fn a_refresh_is_seen_once_it_has_committed() {
    let database =
        quickbeam_sql::SqlDatabase::open_in_memory(quickbeam::Options::default()).unwrap();
    let (writer, reader) = (database.connect(), database.connect());
    let count = |connection: &quickbeam_sql::Connection| {
        let count = "SELECT count(*) FROM mv";
        connection.query_row(count, &[], |row| row.get::<i64>(0)).unwrap()
    };
    writer
        .execute_script(
            "CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1);
             CREATE MATERIALIZED VIEW mv AS SELECT id FROM t; CREATE UNIQUE INDEX ON mv (id);
             INSERT INTO t VALUES (2)",
        )
        .unwrap();
    for refresh in ["REFRESH MATERIALIZED VIEW mv", "REFRESH MATERIALIZED VIEW CONCURRENTLY mv"] {
        let before = count(&reader);
        reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ", &[]).unwrap();
        assert_eq!(count(&reader), before);
        writer.execute("BEGIN", &[]).unwrap();
        writer.execute(refresh, &[]).unwrap();
        assert_eq!((count(&writer), count(&reader)), (before + 1, before));
        writer.execute("COMMIT", &[]).unwrap();
        assert_eq!(count(&reader), before);
        reader.execute("COMMIT", &[]).unwrap();
        assert_eq!(count(&reader), before + 1);
        writer.execute("INSERT INTO t SELECT max(id) + 1 FROM t", &[]).unwrap();
    }
    assert!(database.verify().unwrap().complaints.is_empty());
}
