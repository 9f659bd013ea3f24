//! What `SqlDatabase::verify()` finds: each break is made in the trees, without SQL, and
//! named by table and key.

use quickbeam::{Durability, Environment, Options};
use quickbeam_sql::catalog::Relation;
use quickbeam_sql::{SqlDatabase, Value};

const TABLES: &str = "
    CREATE TABLE p (id INT PRIMARY KEY, name TEXT NOT NULL, UNIQUE (name));
    CREATE TABLE c (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, p INT REFERENCES p, n INT CHECK (n > 0), t TEXT);
    CREATE INDEX c_n ON c (n DESC, t);
    CREATE INDEX c_t ON c USING HASH (t);
    CREATE TABLE loose (a INT, b NUMERIC(6,2) NOT NULL);
    CREATE INDEX loose_a ON loose (a);
    CREATE TABLE hashed (k TEXT, v INT, PRIMARY KEY (k) USING HASH);
    CREATE TABLE words (id INT PRIMARY KEY, v TSVECTOR);
    CREATE INDEX words_v ON words USING gin (v);
    INSERT INTO words VALUES (1, 'a b'), (2, 'a'), (3, NULL);
    CREATE SEQUENCE s;
    CREATE VIEW v AS SELECT p.name, c.n FROM p JOIN c ON c.p = p.id;
    INSERT INTO p VALUES (1, 'one'), (2, 'two'), (3, 'three');
    INSERT INTO c (p, n, t) VALUES (1, 5, 'x'), (2, 6, NULL), (NULL, NULL, 'y'), (2, 7, 'x');
    INSERT INTO loose VALUES (1, 1.25), (NULL, 2.5), (1, 3);
    INSERT INTO hashed VALUES ('a', 1), ('b', 2);
    ALTER TABLE c ADD COLUMN later DATE DEFAULT '2020-01-01';
    INSERT INTO c (p, n, t) VALUES (3, 8, 'z')";

fn database() -> (Environment, SqlDatabase) {
    let options = Options::new().durability(Durability::InMemory);
    let environment = Environment::open_in_memory(options).unwrap();
    let database = SqlDatabase::attach(&environment).unwrap();
    database.connect().execute_script(TABLES).unwrap();
    (environment, database)
}

/// The tree of a table's rows, or of an index.
fn tree(database: &SqlDatabase, name: &str) -> String {
    match database.connect().catalog_snapshot().unwrap().relation(name).unwrap() {
        Relation::Table(table) => format!("sql.{}.{}", table.id.0, table.generation),
        Relation::Index(_, index) => format!("sql.{}", index.id.0),
        other => panic!("{other:?} has no tree"),
    }
}

type Record = (Vec<u8>, Vec<u8>);

fn records(environment: &Environment, tree: &str) -> Vec<Record> {
    let reader = environment.begin_read().unwrap();
    let mut cursor = reader.open_database(tree).unwrap().cursor(&reader).unwrap();
    let (mut all, mut more) = (Vec::new(), cursor.first().unwrap());
    while more {
        all.push((cursor.key().to_vec(), cursor.value().to_vec()));
        more = cursor.next().unwrap();
    }
    all
}

/// Breaks a tree, given its records; what is then complained about.
fn complaints(name: &str, break_it: impl Fn(&mut Vec<Record>)) -> Vec<String> {
    let (environment, database) = database();
    let tree = tree(&database, name);
    let before = records(&environment, &tree);
    let mut after = before.clone();
    break_it(&mut after);
    let transaction = environment.begin().unwrap();
    let open = transaction.open_database(&tree).unwrap();
    for (key, _) in &before {
        open.delete(&transaction, key).unwrap();
    }
    for (key, value) in &after {
        open.put(&transaction, key, value).unwrap();
    }
    transaction.commit().unwrap();
    database.verify().unwrap().complaints
}

#[test]
fn sound_tables_have_no_complaints() {
    let (_environment, database) = database();
    let verified = database.verify().unwrap();
    assert_eq!(verified.complaints, Vec::<String>::new());
    assert_eq!((verified.tables, verified.rows, verified.entries), (5, 16, 3 + 2 * 5 + 3 + 3));
    let connection = database.connect();
    connection
        .execute_script("DROP VIEW v; DROP TABLE c; ALTER TABLE loose DROP COLUMN a")
        .unwrap();
    connection.execute("UPDATE p SET name = name || 'x', id = id + 10", &[]).unwrap();
    let verified = database.verify().unwrap();
    assert_eq!((verified.complaints, verified.tables, verified.rows), (Vec::new(), 4, 11));
}

#[test]
fn damage_of_rows_and_indexes_is_named_by_table_and_key() {
    type Break = fn(&mut Vec<Record>);
    let cases: [(&str, Break, &[&str]); 14] = [
        // A row without its entry, in an index of each kind.
        (
            "p_name_key",
            |all| drop(all.remove(0)),
            &[
                "table \"p\", (id)=(1): index \"p_name_key\" has no entry of the row",
                "table \"p\", index \"p_name_key\": 2 entries of 3 rows",
            ],
        ),
        ("c_t", |all| drop(all.remove(0)), &["index \"c_t\" has no entry of the row"]),
        (
            "loose_a",
            |all| drop(all.remove(0)),
            &["table \"loose\", row 1: index \"loose_a\" has no entry of the row"],
        ),
        // An entry without its row, which leaves a foreign key without its own.
        (
            "p",
            |all| drop(all.remove(2)),
            &[
                "table \"c\", (id)=(5): foreign key \"c_p_fkey\": (p)=(3) is not in the table \"p\"",
                "an entry without its row",
            ],
        ),
        (
            "loose",
            |all| drop(all.remove(1)),
            &["table \"loose\", index \"loose_a\", row 2: an entry without its row"],
        ),
        // An entry that leads to another row.
        (
            "p_name_key",
            |all| {
                let other = all[1].1.clone();
                all[0].1 = other
            },
            &[
                "(id)=(1): index \"p_name_key\" has no entry",
                "an entry that is not that of its row",
            ],
        ),
        // Rows that stand under another key, or no key.
        (
            "p",
            |all| {
                let other = all[1].1.clone();
                all[0].1 = other
            },
            &["table \"p\", (id)=(2): the row stands under another key than its own"],
        ),
        (
            "hashed",
            |all| {
                let other = all[1].1.clone();
                all[0].1 = other
            },
            &["table \"hashed\", (k)=(", "the row stands under another key"],
        ),
        (
            "loose",
            |all| all[0].0 = b"short".to_vec(),
            &["table \"loose\", key \\x73686f7274: the key of the row is no row number"],
        ),
        // Rows that cannot be read.
        ("p", |all| all[0].1.truncate(3), &["table \"p\", (id)=(1): the row cannot be read"]),
        ("c", |all| all[4].1 = Vec::new(), &["table \"c\", (id)=(5): the row cannot be read"]),
        // Entries that cannot be read.
        (
            "loose_a",
            |all| all[0].1 = vec![9],
            &[
                "table \"loose\", index \"loose_a\", entry \\x",
                "an entry of an index cannot be read",
            ],
        ),
        (
            "c_n",
            |all| all.push((vec![1, 2, 3], vec![0, 1, 0])),
            &[
                "table \"c\", index \"c_n\", key \\x0203: an entry without its row",
                "6 entries of 5 rows",
            ],
        ),
        (
            "c_n",
            Vec::clear,
            &[
                "table \"c\", (id)=(1): index \"c_n\" has no entry",
                "index \"c_n\": 0 entries of 5 rows",
            ],
        ),
    ];
    for (name, break_it, expected) in cases {
        let found = complaints(name, break_it);
        for part in expected {
            assert!(found.iter().any(|it| it.contains(part)), "{name}: {part:?} in {found:#?}");
        }
    }
}

#[test]
fn damage_of_an_inverted_index_is_named_by_row() {
    type Break = fn(&mut Vec<Record>);
    let entry =
        "table \"words\", index \"words_v\", (id)=(1): an entry that is not that of its row";
    let cases: [(Break, &[&str]); 5] = [
        // The entries are those of `a` in rows 1 and 2, and of `b` in row 1.
        (
            |all| drop(all.remove(2)),
            &["(id)=(1): index \"words_v\" has no entry of the row", "2 entries of 3 keys"],
        ),
        (|all| all[0].0[0] = b'c', &["(id)=(1): index \"words_v\" has no entry", entry]),
        (|all| all[2].1[1] = 1, &["(id)=(1): index \"words_v\" has no entry"]),
        (
            |all| {
                let (mut key, value) = all[0].clone();
                key[0] = b'x';
                all.push((key, value));
            },
            &[entry, "4 entries of 3 keys"],
        ),
        (Vec::clear, &["(id)=(2): index \"words_v\" has no entry", "0 entries of 3 keys"]),
    ];
    for (break_it, expected) in cases {
        let found = complaints("words_v", break_it);
        for part in expected {
            assert!(found.iter().any(|it| it.contains(part)), "{part:?} in {found:#?}");
        }
    }
}

#[test]
fn values_that_constraints_forbid_are_found() {
    // Rows of a table of the same columns without the constraints.
    let (environment, database) = database();
    let connection = database.connect();
    connection
        .execute_script(
            "CREATE TABLE free (id INT PRIMARY KEY, name TEXT); INSERT INTO free VALUES (9, NULL);
             CREATE TABLE low (id INT PRIMARY KEY, n INT CHECK (n > 0)); INSERT INTO low VALUES (1, 5);
             CREATE TABLE anything (id INT PRIMARY KEY, n INT); INSERT INTO anything VALUES (1, -5);
             CREATE TABLE twice (a INT); CREATE INDEX twice_a ON twice (a); INSERT INTO twice VALUES (7), (7);
             CREATE TABLE keyed (a INT UNIQUE DEFERRABLE)",
        )
        .unwrap();
    let copy = |from: &str, to: &str| {
        let (from, to) = (tree(&database, from), tree(&database, to));
        let transaction = environment.begin().unwrap();
        for (key, value) in records(&environment, &from) {
            let open = transaction.open_database(&to).unwrap();
            open.put(&transaction, &key, &value).unwrap();
        }
        transaction.commit().unwrap();
    };
    copy("free", "p");
    copy("anything", "low");
    copy("twice", "keyed");
    copy("twice_a", "keyed_a_key");
    let found = database.verify().unwrap().complaints;
    for expected in [
        "table \"p\", (id)=(9): column \"name\" is NULL",
        "table \"p\", (id)=(9): index \"p_name_key\" has no entry of the row",
        "table \"low\", (id)=(1): CHECK constraint \"low_n_check\" does not hold",
        "table \"keyed\", index \"keyed_a_key\", row 2: another row has its values",
    ] {
        assert!(found.iter().any(|it| it == expected), "{expected:?} in {found:#?}");
    }
}

#[test]
fn missing_and_extra_trees_and_sequence_values_are_found() {
    let (environment, database) = database();
    connection_uses(&database);
    let (table, index) = (tree(&database, "hashed"), tree(&database, "c_n"));
    environment.drop_database(&table).unwrap();
    environment.drop_database(&index).unwrap();
    environment.create_database("sql.4711").unwrap();
    let transaction = environment.begin().unwrap();
    let sequences = transaction.open_database("sql.sequences").unwrap();
    let mut cursor = sequences.cursor(&transaction).unwrap();
    let mut more = cursor.first().unwrap();
    while more {
        cursor.delete().unwrap();
        more = cursor.next().unwrap();
    }
    drop(cursor);
    transaction.commit().unwrap();
    let found = database.verify().unwrap().complaints;
    for expected in [
        "database \"sql.4711\" belongs to no table and no index",
        "table \"hashed\": its tree is missing",
        "table \"c\", index \"c_n\": its tree is missing",
        "sequence \"s\": sequence \"s\" does not exist any more",
        "sequence \"c_id_seq\"",
    ] {
        assert!(found.iter().any(|it| it.contains(expected)), "{expected:?} in {found:#?}");
    }
}

/// Values are given out, so that the sequences are used.
fn connection_uses(database: &SqlDatabase) {
    let connection = database.connect();
    let rows = connection.query("SELECT nextval('s')", &[]).unwrap().collect().unwrap();
    assert_eq!(rows, [[Value::BigInt(1)]]);
}

#[test]
fn complaints_about_one_table_are_counted_beyond_a_hundred() {
    let (environment, database) = database();
    let connection = database.connect();
    connection.execute("CREATE TABLE many (id INT PRIMARY KEY, n INT)", &[]).unwrap();
    connection.execute("CREATE INDEX many_n ON many (n)", &[]).unwrap();
    for id in 0..150 {
        connection.execute("INSERT INTO many VALUES ($1, 1)", &[Value::Integer(id)]).unwrap();
    }
    let index = tree(&database, "many_n");
    let transaction = environment.begin().unwrap();
    transaction.clear_database(&index).unwrap();
    transaction.commit().unwrap();
    let found = database.verify().unwrap().complaints;
    assert_eq!(found.len(), 101);
    assert_eq!(found[100], "table \"many\": 51 complaints more");
}
