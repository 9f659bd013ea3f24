//! Subqueries answered by hash, and lookups for each value of a list: what EXPLAIN says of them,
//! that parameters give the same as constants and both ways the same, and that what is kept counts.

use quickbeam::{Durability, Isolation, Options};
use quickbeam_sql::{Array, Connection, DataType, ElementType, SqlDatabase, Value};

fn database(isolation: Isolation) -> SqlDatabase {
    let options = Options::new().durability(Durability::InMemory).isolation(isolation);
    SqlDatabase::open_in_memory(options).unwrap()
}

fn filled() -> Connection {
    let c = database(Isolation::Serializable).connect();
    c.execute_script(
        "CREATE TABLE g (a INTEGER PRIMARY KEY, b INTEGER, c TEXT);
         CREATE TABLE p (x INTEGER, y INTEGER, z INTEGER, PRIMARY KEY (x, y));
         CREATE TABLE h (x INTEGER, y INTEGER, z INTEGER, PRIMARY KEY (x, y) USING HASH);
         CREATE TABLE d (x INTEGER);
         CREATE UNIQUE INDEX g_c ON g (c);
         CREATE INDEX h_z ON h USING HASH (z);
         BEGIN",
    )
    .unwrap();
    let mut insert = c.prepare("INSERT INTO g VALUES ($1, $2, $3)").unwrap();
    for n in 0..5_000 {
        let row = [Value::Integer(n), Value::Integer(n % 1_000), Value::text(format!("n{n}"))];
        insert.execute(&row).unwrap();
    }
    c.execute_script(
        "COMMIT;
         INSERT INTO p SELECT a % 50, a / 50, a FROM g;
         INSERT INTO h SELECT a % 50, a / 50, a FROM g;
         INSERT INTO d VALUES (77), (NULL), (4999), (77)",
    )
    .unwrap();
    c
}

fn plan(c: &Connection, text: &str, parameters: &[Value]) -> String {
    let lines = c.query(&format!("EXPLAIN {text}"), parameters).unwrap().collect().unwrap();
    lines.iter().map(|line| line[0].to_string()).collect::<Vec<_>>().join("\n")
}

/// The rows, in order, and the same whichever way the statement goes.
fn rows(c: &Connection, text: &str, parameters: &[Value]) -> Vec<String> {
    let answer = |way: &str| {
        c.execute(&format!("SET execution_mode = '{way}'"), &[]).unwrap();
        let rows = c.query(text, parameters).unwrap().collect().unwrap();
        let shown =
            |row: &Vec<Value>| row.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        let mut rows: Vec<String> = rows.iter().map(shown).collect();
        rows.sort();
        rows
    };
    let direct = answer("row");
    assert_eq!(direct, answer("vectorized"), "{text}");
    assert_eq!(direct, answer("auto"), "{text}");
    direct
}

#[test]
fn each_value_of_a_list_is_looked_up() {
    let c = filled();
    let number = |n: i32| Value::Integer(n);
    for (text, parameters, lines, found) in [
        (
            "SELECT a FROM g WHERE a IN (77, 4999, 77, 9999)",
            vec![],
            &["Nested Loop", "IN-List (4 values)", "Primary Key Lookup on g", "Key: (values[0])"][..],
            vec!["4999", "77"],
        ),
        (
            "SELECT a FROM g WHERE a IN ($1, $2)",
            vec![number(4), Value::Null],
            &["IN-List (2 values)", "Primary Key Lookup on g"],
            vec!["4"],
        ),
        (
            "SELECT a FROM g WHERE (a = $1 OR a = $2 OR a = 3) AND b > 3",
            vec![number(4), number(4)],
            &["IN-List (3 values)", "Primary Key Lookup on g", "Filter: (g.b > 3)"],
            vec!["4"],
        ),
        (
            "SELECT count(*), sum(b) FROM g WHERE a IN (1, 2, 3, 4, 5, 6)",
            vec![],
            &["IN-List (6 values)", "Primary Key Lookup on g"],
            vec!["6 21"],
        ),
        (
            "SELECT a FROM g WHERE c IN ('n8', $1, 'none')",
            vec![Value::text("n9")],
            &["IN-List (3 values)", "Index Scan using g_c on g", "Range: c = values[0]"],
            vec!["8", "9"],
        ),
        (
            "SELECT z FROM p WHERE x = 7 AND y IN (3, 4)",
            vec![],
            &["IN-List (2 values)", "Primary Key Lookup on p", "Key: (7, values[0])"],
            vec!["157", "207"],
        ),
        (
            "SELECT count(*) FROM p WHERE x IN (7, 9, 77)",
            vec![],
            &["IN-List (3 values)", "Primary Key Scan on p", "Range: x = values[0]"],
            vec!["200"],
        ),
        (
            "SELECT z FROM h WHERE x IN (7, 8) AND y = 3",
            vec![],
            &["IN-List (2 values)", "Primary Key Hash Lookup on h"],
            vec!["157", "158"],
        ),
        (
            "SELECT x FROM h WHERE z IN (1, 2)",
            vec![],
            &["IN-List (2 values)", "Index Hash Lookup using h_z on h"],
            vec!["1", "2"],
        ),
    ] {
        let plan = plan(&c, text, &parameters);
        for line in lines {
            assert!(plan.contains(line), "{text}: no {line} in\n{plan}");
        }
        assert!(!plan.contains("Seq Scan"), "{text}\n{plan}");
        assert_eq!(rows(&c, text, &parameters), found, "{text}");
    }
    // One value alone is what it was: no loop.
    let one = plan(&c, "SELECT a FROM g WHERE a = 77", &[]);
    assert!(one.starts_with("Primary Key Lookup on g"), "{one}");
    // Most of a table is read as a whole.
    let list: Vec<String> = (0..2_000).map(|n| n.to_string()).collect();
    let text = format!("SELECT count(*) FROM g WHERE a IN ({})", list.join(", "));
    let whole = plan(&c, &text, &[]);
    assert!(whole.contains("Seq Scan on g"), "{whole}");
    assert_eq!(rows(&c, &text, &[]), ["2000"]);
    for text in ["UPDATE g SET b = 0 WHERE a IN (1, 2)", "DELETE FROM g WHERE a = 1 OR a = 2"] {
        let change = plan(&c, text, &[]);
        assert!(change.contains("IN-List (2 values)"), "{change}");
        assert_eq!(c.execute(text, &[]).unwrap(), 2);
    }
    let locked = plan(&c, "SELECT a FROM g WHERE a IN (3, 4) FOR UPDATE", &[]);
    assert!(locked.contains("Lock Rows") && locked.contains("IN-List"), "{locked}");
}

#[test]
fn a_prepared_list_takes_other_values_each_time() {
    let c = filled();
    let mut statement = c.prepare("SELECT a FROM g WHERE a IN ($1, $2, $3)").unwrap();
    for (values, count) in [([1, 2, 3], 3), ([5, 5, 5], 1), ([9, -1, 9], 1), ([4_999, 0, 7], 3)] {
        let rows = statement.query(&values.map(Value::Integer)).unwrap().collect().unwrap();
        assert_eq!(rows.len(), count, "{values:?}");
    }
}

#[test]
fn rows_that_another_changed_are_looked_at_again() {
    let database = database(Isolation::ReadCommitted);
    let (a, b) = (database.connect(), database.connect());
    a.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)", &[]).unwrap();
    a.execute("INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)", &[]).unwrap();
    a.execute("BEGIN", &[]).unwrap();
    a.execute("UPDATE t SET n = n + 1 WHERE id = 2", &[]).unwrap();
    std::thread::scope(|scope| {
        let other =
            scope.spawn(move || b.execute("UPDATE t SET n = n + 10 WHERE id IN (1, 2)", &[]));
        std::thread::sleep(std::time::Duration::from_millis(100));
        a.execute("COMMIT", &[]).unwrap();
        assert_eq!(other.join().unwrap().unwrap(), 2);
    });
    assert_eq!(rows(&a, "SELECT id, n FROM t", &[]), ["1 10", "2 11", "3 0"]);
}

#[test]
fn subqueries_are_answered_by_hash() {
    let c = filled();
    for (text, line, found) in [
        (
            "SELECT count(*) FROM g WHERE a NOT IN (SELECT b FROM g)",
            "Hashed Subquery (ANY)",
            "4000",
        ),
        (
            "SELECT count(*) FROM g WHERE a <> ALL (SELECT b FROM g)",
            "Hashed Subquery (ALL)",
            "4000",
        ),
        ("SELECT count(*) FROM g WHERE a = ANY (SELECT b FROM g)", "Hashed Subquery (ANY)", "1000"),
        ("SELECT count(*) FROM g WHERE a > ALL (SELECT b FROM g)", "Hashed Subquery (ALL)", "4000"),
        (
            "SELECT count(*) FROM g WHERE a IN (SELECT x FROM d) OR b = 5",
            "Hashed Subquery (ANY)",
            "7",
        ),
        ("SELECT count(*) FROM g WHERE a NOT IN (SELECT x FROM d)", "Hashed Subquery (ANY)", "0"),
        (
            "SELECT count(*) FROM g x WHERE NOT EXISTS (SELECT 1 FROM g y WHERE y.b = x.a + 1)",
            "Hash Right Anti Join",
            "4001",
        ),
        (
            "SELECT count(*) FROM g x WHERE EXISTS (SELECT * FROM g y WHERE x.a = y.b AND y.a > 10)",
            "Hash Right Semi Join",
            "1000",
        ),
        (
            "SELECT count(*) FROM g x WHERE x.b = 8 OR EXISTS (SELECT * FROM g y WHERE x.a = y.b)",
            "Hashed Subquery (EXISTS)",
            "1004",
        ),
        (
            "SELECT count(*) FROM g x WHERE x.a IN (SELECT y.b FROM g y WHERE y.b = x.b)",
            "Hashed Subquery (ANY)",
            "1000",
        ),
    ] {
        let plan = plan(&c, text, &[]);
        assert!(plan.contains(line), "{text}: no {line} in\n{plan}");
        assert_eq!(rows(&c, text, &[]), [found], "{text}");
    }
    // One row asks: the subquery ends with the first row that decides. So it does where each row
    // looks up what it asks for.
    let one = plan(&c, "SELECT a FROM g WHERE a = 7 AND b IN (SELECT b FROM g)", &[]);
    assert!(!one.contains("by hash"), "{one}");
    let few = "SELECT count(*) FROM d WHERE EXISTS (SELECT 1 FROM g WHERE g.a = d.x)";
    let plan = plan(
        &c,
        "SELECT a FROM g x WHERE a = 7 AND EXISTS (SELECT 1 FROM g y WHERE y.a = x.b)",
        &[],
    );
    assert!(plan.contains("Primary Key Lookup on g y") && !plan.contains("by hash"), "{plan}");
    assert_eq!(rows(&c, few, &[]), ["3"]);
}

#[test]
fn changes_test_existence_by_a_hash_join() {
    let c = filled();
    for (text, line, count) in [
        (
            "UPDATE g x SET b = -1 WHERE EXISTS (SELECT FROM g y WHERE y.b = x.b AND y.a < x.a)",
            "Hash Right Semi Join",
            4000,
        ),
        (
            "DELETE FROM g x WHERE EXISTS (SELECT FROM g y WHERE y.b = x.b AND y.a < x.a)",
            "Hash Right Semi Join",
            4000,
        ),
        (
            "DELETE FROM g x WHERE NOT EXISTS (SELECT FROM g y WHERE y.b = x.b AND y.a <> x.a)",
            "Hash Right Anti Join",
            0,
        ),
        (
            "UPDATE g x SET c = 'first' FROM d WHERE d.x = x.a
             AND NOT EXISTS (SELECT FROM g y WHERE y.b = x.b AND y.a < x.a)",
            "on g x",
            1,
        ),
    ] {
        let plan = plan(&c, text, &[]);
        assert!(plan.contains(line), "{text}: no {line} in\n{plan}");
        c.execute("BEGIN", &[]).unwrap();
        assert_eq!(c.execute(text, &[]).unwrap(), count, "{text}");
        let changed = match text.starts_with("DELETE") {
            true => 5000 - rows(&c, "SELECT a FROM g", &[]).len() as u64,
            false => rows(&c, "SELECT a FROM g WHERE b = -1 OR c = 'first'", &[]).len() as u64,
        };
        assert_eq!(changed, count, "{text}");
        let kept = "SELECT count(*) FROM g WHERE a < 1000 AND b = a";
        let kept = rows(&c, kept, &[]);
        assert_eq!(kept, ["1000"], "{text}");
        c.execute("ROLLBACK", &[]).unwrap();
    }
    // One row asks: it looks for a match.
    let one =
        "DELETE FROM g x WHERE a = 7 AND EXISTS (SELECT FROM g y WHERE y.a = x.b AND y.b < 9)";
    assert!(!plan(&c, one, &[]).contains("Semi Join"));
}

#[test]
fn what_few_rows_of_a_subquery_deliver_is_looked_up() {
    let c = filled();
    c.execute_script(
        "INSERT INTO g SELECT a + 5000, b, c || 'x' FROM g;
         INSERT INTO g SELECT a + 10000, b, c || 'y' FROM g;
         CREATE TABLE e (x BIGINT, c VARCHAR(20));
         INSERT INTO e VALUES (77, 'n8'), (NULL, NULL), (5000000000, 'n8'), (77, 'none'), (19999, 'n9')",
    )
    .unwrap();
    for (text, line, found) in [
        (
            "SELECT a FROM g WHERE a IN (SELECT x FROM d)",
            "Primary Key Lookup on g",
            vec!["4999", "77"],
        ),
        (
            "SELECT a FROM g WHERE a = ANY (SELECT x FROM e)",
            "Primary Key Lookup on g",
            vec!["19999", "77"],
        ),
        (
            "SELECT a FROM g WHERE c IN (SELECT c FROM e)",
            "Index Scan using g_c on g",
            vec!["8", "9"],
        ),
        (
            "SELECT a FROM g WHERE a IN (SELECT x FROM d) AND b > 100 ORDER BY a",
            "Primary Key Lookup on g",
            vec!["4999"],
        ),
        (
            "SELECT count(*), sum(b) FROM g WHERE a IN (SELECT x FROM d UNION ALL SELECT x FROM e)",
            "Primary Key Lookup on g",
            vec!["3 2075"],
        ),
        (
            "SELECT x, (SELECT count(*) FROM g WHERE a IN (SELECT e.x FROM e WHERE e.x = d.x)) FROM d",
            "Hashed Subquery (ANY)",
            vec!["4999 0", "77 1", "77 1", "NULL 0"],
        ),
        // The rest of what is asked, or all of it, is not so.
        (
            "SELECT count(*) FROM g WHERE a NOT IN (SELECT x FROM d WHERE x > 0)",
            "Hashed Subquery (ANY)",
            vec!["19998"],
        ),
        (
            "SELECT count(*) FROM g WHERE a IN (SELECT b FROM g)",
            "Hashed Subquery (ANY)",
            vec!["1000"],
        ),
        (
            "SELECT a FROM g WHERE a IN (SELECT x FROM d) ORDER BY a LIMIT 1",
            "Hashed Subquery (ANY)",
            vec!["77"],
        ),
        (
            "SELECT a FROM g WHERE a IN (SELECT x FROM d) FOR UPDATE",
            "Hashed Subquery (ANY)",
            vec!["4999", "77"],
        ),
    ] {
        let plan = plan(&c, text, &[]);
        assert!(plan.contains(line), "{text}: no {line} in\n{plan}");
        assert_eq!(rows(&c, text, &[]), found, "{text}");
    }
}

#[test]
fn what_a_subquery_keeps_counts() {
    let c = filled();
    let text = "SELECT count(*) FROM g WHERE a NOT IN (SELECT a FROM g)";
    c.execute("SET work_mem = '64kB'", &[]).unwrap();
    assert_eq!(c.query(text, &[]).and_then(|rows| rows.collect()).unwrap_err().code(), "53200");
    c.execute("SET work_mem = '64MB'", &[]).unwrap();
    assert_eq!(rows(&c, text, &[]), ["0"]);
    // What is kept for one row around is given up for the next.
    c.execute("SET work_mem = '512kB'", &[]).unwrap();
    let nested = "SELECT count(*) FROM g x WHERE x.a < 50 AND EXISTS
        (SELECT 1 FROM g y WHERE y.a > x.a AND y.b NOT IN (SELECT b FROM g z WHERE z.b > x.a))";
    assert_eq!(rows(&c, nested, &[]), ["50"]);
}

fn array(data_type: DataType, text: &str) -> Value {
    Value::Array(Array::parse(text, ElementType::new(data_type).unwrap()).unwrap())
}

#[test]
fn any_of_an_array_looks_rows_up_by_key() {
    let c = filled();
    let numbers = [array(DataType::Integer, "{7,3,NULL,3,9999}")];
    for text in ["SELECT b FROM g WHERE a = ANY($1)", "SELECT b FROM g WHERE a = ANY($1::int[])"] {
        let by_key = plan(&c, text, &numbers);
        assert!(by_key.contains("Primary Key Lookup on g"), "{by_key}");
        assert_eq!(rows(&c, text, &numbers), ["3", "7"]);
    }
    // A parameter without a type takes the type of the column, and its text is read as that type.
    let text = "SELECT b FROM g WHERE a = ANY($1)";
    assert_eq!(rows(&c, text, &[Value::text("{1,2}")]), ["1", "2"]);
    assert_eq!(rows(&c, text, &[Value::Null]), Vec::<String>::new());
    assert_eq!(rows(&c, text, &[array(DataType::Integer, "{}")]), Vec::<String>::new());
    let names = [array(DataType::Text, "{n5,n6,nobody}")];
    let text = "SELECT a FROM g WHERE c = ANY($1)";
    let by_index = plan(&c, text, &names);
    assert!(by_index.contains("g_c"), "{by_index}");
    assert_eq!(rows(&c, text, &names), ["5", "6"]);
    assert_eq!(rows(&c, "SELECT a FROM g WHERE c <> ALL($1) AND a < 8", &names).len(), 6);
    let text = "SELECT z FROM h WHERE x = ANY($1) AND y = 2";
    assert_eq!(rows(&c, text, &numbers), ["103", "107"]);
}

#[test]
fn arrays_are_looked_up_by_an_index() {
    let c = database(Isolation::Serializable).connect();
    c.execute_script(
        "CREATE TABLE k (a INTEGER, b TEXT[] UNIQUE);
         INSERT INTO k SELECT n, ARRAY['t' || n, NULL] FROM generate_series(1, 2000) n",
    )
    .unwrap();
    let found = |text: &str| {
        let rows = c.query(text, &[]).unwrap().collect().unwrap();
        (plan(&c, text, &[]).contains("Index Scan using k_b_key"), rows.len())
    };
    assert_eq!(found("SELECT a FROM k WHERE b = ARRAY['t7', NULL]"), (true, 1));
    assert_eq!(found("SELECT a FROM k WHERE b > ARRAY['t1998'] AND b < ARRAY['t2']"), (true, 2));
    // A list of arrays would be read as their elements.
    let list = "SELECT a FROM k WHERE b IN (ARRAY['t7', NULL], ARRAY['t8', NULL], ARRAY['t9'])";
    assert_eq!(found(list), (false, 2));
}
