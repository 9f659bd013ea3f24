//! Indexes whose sort keys another version of the collation library made: they are not read, rows
//! with entries in them are not changed, and REINDEX builds them again.

use quickbeam::{Durability, Environment, Options};
use quickbeam_sql::{Connection, SqlDatabase};

const TABLES: &str = "
    CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
    CREATE TABLE p (id INT PRIMARY KEY, name TEXT COLLATE ci UNIQUE, note TEXT);
    CREATE TABLE c (id INT PRIMARY KEY, name TEXT COLLATE ci REFERENCES p (name));
    CREATE INDEX c_name ON c (name);
    INSERT INTO p VALUES (1, 'One', 'x'), (2, 'two', 'y'), (3, 'Three', 'z');
    INSERT INTO c VALUES (1, 'ONE'), (2, NULL)";

/// Opens a database whose indexes say that another version of the library made their keys.
fn with_old_indexes() -> (Environment, SqlDatabase) {
    let options = Options::new().durability(Durability::InMemory);
    let environment = Environment::open_in_memory(options).unwrap();
    let database = SqlDatabase::attach(&environment).unwrap();
    database.connect().execute_script(TABLES).unwrap();
    drop(database);
    let transaction = environment.begin().unwrap();
    let catalog = transaction.open_database("sql.catalog").unwrap();
    let mut cursor = catalog.cursor(&transaction).unwrap();
    let (mut records, mut more) = (Vec::new(), cursor.first().unwrap());
    while more {
        records.push((cursor.key().to_vec(), cursor.value().to_vec()));
        more = cursor.next().unwrap();
    }
    drop(cursor);
    let mut changed = 0;
    for (key, value) in records {
        let Ok(text) = String::from_utf8(value) else { continue };
        if let Some((before, after)) = text.split_once("\"collation_version\":\"icu4x-") {
            let rest = after.split_once('"').unwrap().1;
            let old = format!("{before}\"collation_version\":\"icu4x-1.0\"{rest}");
            catalog.put(&transaction, &key, old.as_bytes()).unwrap();
            changed += 1;
        }
    }
    transaction.commit().unwrap();
    assert_eq!(changed, 2, "tables have an index of a collation");
    let database = SqlDatabase::attach(&environment).unwrap();
    (environment, database)
}

fn ask(connection: &Connection, text: &str) -> String {
    let rows = match connection.query(text, &[]).and_then(|rows| rows.collect()) {
        Ok(rows) => rows,
        Err(error) => return format!("error {}: {}", error.code(), error.message()),
    };
    let line = |row: &Vec<_>| row.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    rows.iter().map(line).collect::<Vec<_>>().join("; ")
}

#[test]
fn an_index_of_another_version_is_not_used() {
    let (_environment, database) = with_old_indexes();
    let c = database.connect();
    c.execute_script("SET enable_seqscan = off").unwrap();
    for query in ["SELECT id FROM p WHERE name = 'ONE'", "SELECT id FROM p ORDER BY name LIMIT 1"] {
        let plan = ask(&c, &format!("EXPLAIN {query}"));
        assert!(!plan.contains("p_name_key"), "{plan}");
        assert!(!ask(&c, query).is_empty(), "{query}");
    }
    let refused = "error 55000: index \"p_name_key\" has the order of another version";
    for text in [
        "INSERT INTO p VALUES (4, 'four', 'w')",
        "UPDATE p SET name = 'eins' WHERE id = 2",
        "DELETE FROM p WHERE id = 2",
        "UPDATE c SET name = 'two' WHERE id = 2",
    ] {
        let found = ask(&c, text);
        assert!(found.contains("another version of the collation library"), "{text}: {found}");
    }
    assert!(ask(&c, "INSERT INTO p VALUES (4, 'four', 'w')").starts_with(refused));
    assert_eq!(ask(&c, "UPDATE p SET note = 'q' WHERE id = 2 RETURNING note"), "q");
    let complaints = database.verify().unwrap().complaints;
    assert_eq!(complaints.len(), 2, "{complaints:?}");
    assert!(complaints.iter().all(|it| it.contains("of the collation library")), "{complaints:?}");
}

#[test]
fn reindex_builds_an_index_of_another_version() {
    let (environment, database) = with_old_indexes();
    let c = database.connect();
    c.execute_script("REINDEX INDEX p_name_key; REINDEX TABLE c").unwrap();
    let plan = ask(&c, "EXPLAIN SELECT id FROM p WHERE name = 'ONE'");
    assert!(plan.contains("p_name_key"), "{plan}");
    assert_eq!(ask(&c, "INSERT INTO p VALUES (4, 'FOUR', 'w')"), "");
    assert!(ask(&c, "INSERT INTO p VALUES (5, 'four', 'w')").starts_with("error 23505"));
    assert_eq!(ask(&c, "UPDATE c SET name = 'two' WHERE id = 2"), "");
    assert!(database.verify().unwrap().complaints.is_empty());
    drop((c, database));
    let database = SqlDatabase::attach(&environment).unwrap();
    assert_eq!(ask(&database.connect(), "SELECT id FROM p WHERE name = 'ONE'"), "1");
}

#[test]
fn a_table_written_again_has_new_sort_keys() {
    let (_environment, database) = with_old_indexes();
    let c = database.connect();
    c.execute_script("ALTER TABLE p ALTER COLUMN note TYPE varchar(10)").unwrap();
    assert_eq!(ask(&c, "INSERT INTO p VALUES (4, 'FOUR', 'w')"), "");
    let complaints = database.verify().unwrap().complaints;
    assert!(complaints.iter().all(|it| it.contains("\"c\"")), "{complaints:?}");
}
