//! Plans follow how rows are distributed over the values of keys and indexes, and how many there
//! are now.

use quickbeam::{Durability, Options};
use quickbeam_sql::{Connection, SqlDatabase, Value};

fn database() -> SqlDatabase {
    let options = Options::new().durability(Durability::InMemory).cache_size(32 << 20);
    SqlDatabase::open_in_memory(options).unwrap()
}

const TABLES: &str = "
    CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER NOT NULL);
    CREATE TABLE lines (id INTEGER PRIMARY KEY, order_id INTEGER, state INTEGER NOT NULL);
    CREATE INDEX orders_customer ON orders (customer);
    CREATE INDEX lines_state ON lines (state);";

/// 4,000 orders of 400 customers; three lines each, of three states; and as many lines that belong
/// to no order.
fn fill(connection: &Connection) {
    let digits = "(VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9))";
    connection
        .execute_script(&format!(
            "INSERT INTO orders SELECT n, n % 400 FROM (
                 SELECT a.d + 10 * b.d + 100 * c.d + 1000 * e.d AS n
                 FROM {digits} a(d), {digits} b(d), {digits} c(d), (VALUES (0), (1), (2), (3)) e(d)) s;
             INSERT INTO lines SELECT o.id * 3 + x.d, o.id, x.d FROM orders o, {digits} x(d) WHERE x.d < 3;
             INSERT INTO lines SELECT 100000 + id, NULL, state FROM lines;"
        ))
        .unwrap();
}

fn ask(connection: &Connection, text: &str) -> String {
    let rows = connection.query(text, &[]).unwrap().collect().unwrap();
    let line = |row: &Vec<Value>| row.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn plan(connection: &Connection, text: &str) -> String {
    ask(connection, &format!("EXPLAIN {text}"))
}

const JOIN: &str =
    "SELECT count(*) FROM orders o JOIN lines l ON l.order_id = o.id WHERE o.customer = 7";

#[test]
fn few_rows_are_joined_through_an_index_that_is_not_unique() {
    for index in ["lines (order_id)", "lines USING HASH (order_id)", "lines (order_id, state)"] {
        let database = database();
        let connection = &database.connect();
        connection.execute_script(TABLES).unwrap();
        connection.execute(&format!("CREATE INDEX lines_order ON {index}"), &[]).unwrap();
        fill(connection);
        let customer = "SELECT id FROM orders WHERE customer = 7";
        let of_each = "SELECT (SELECT count(*) FROM lines l WHERE l.order_id = o.id)";
        for (query, expected) in [
            (JOIN.to_owned(), "30"),
            (JOIN.replace("JOIN", "LEFT JOIN"), "30"),
            (format!("SELECT count(*) FROM lines WHERE order_id IN ({customer})"), "30"),
            (
                format!("SELECT sum(n) FROM ({of_each} FROM orders o WHERE o.customer = 7) s(n)"),
                "30",
            ),
        ] {
            let plan = plan(connection, &query);
            assert!(plan.contains("lines_order"), "{index}: {query}\n{plan}");
            assert!(plan.contains("orders_customer"), "{index}: {query}\n{plan}");
            assert!(plan.contains("Execution: row"), "{index}: {query}\n{plan}");
            assert_eq!(ask(connection, &query), expected, "{index}: {query}");
        }
        // All rows of both: the index would be asked for each.
        let all = "SELECT count(*) FROM orders o JOIN lines l ON l.order_id = o.id";
        let whole = plan(connection, all);
        assert!(whole.contains("Hash Join") && !whole.contains("lines_order"), "{whole}");
        assert_eq!(ask(connection, all), "12000");
    }
}

#[test]
fn an_index_of_few_values_is_not_asked_for_each_row() {
    let database = database();
    let connection = &database.connect();
    connection.execute_script(TABLES).unwrap();
    fill(connection);
    let query = "SELECT count(*) FROM orders o JOIN lines l ON l.state = o.id WHERE o.customer < 7";
    let plan = plan(connection, query);
    assert!(plan.contains("Hash Join") && !plan.contains("lines_state"), "{plan}");
    assert_eq!(ask(connection, query), "24000");
}

/// What equals no value is no part of what a value finds.
#[test]
fn nulls_are_not_counted_as_a_value() {
    for index in ["lines (order_id)", "lines USING HASH (order_id)", "lines (order_id DESC, state)"]
    {
        let database = database();
        let connection = &database.connect();
        connection.execute_script(TABLES).unwrap();
        connection.execute(&format!("CREATE INDEX lines_order ON {index}"), &[]).unwrap();
        fill(connection);
        connection.execute("UPDATE lines SET order_id = NULL WHERE order_id > 60", &[]).unwrap();
        let query = JOIN.replace("customer = 7", "id < 20");
        let plan = plan(connection, &query);
        assert!(plan.contains("lines_order"), "{index}: {plan}");
        assert_eq!(ask(connection, &query), "60", "{index}");
    }
}

/// A hash index tells nothing about ranges, nor about its first columns.
#[test]
fn a_hash_index_says_nothing_about_what_it_does_not_find() {
    let database = database();
    let connection = &database.connect();
    connection.execute_script(TABLES).unwrap();
    connection.execute("CREATE INDEX lines_hash ON lines USING HASH (id, state)", &[]).unwrap();
    fill(connection);
    for condition in ["id + 0 > 5", "id > 5"] {
        let query = format!("SELECT count(*) FROM lines WHERE {condition}");
        let plan = plan(connection, &query);
        let rows = plan.split("rows=").last().and_then(|rows| rows.split(')').next());
        let rows: f64 = rows.unwrap().parse().unwrap();
        assert!(rows > 5_000.0, "{plan}");
    }
    connection
        .execute("CREATE INDEX orders_hash ON orders USING HASH (customer, id)", &[])
        .unwrap();
    connection.execute("DROP INDEX orders_customer", &[]).unwrap();
    let query = "SELECT count(*) FROM orders o JOIN lines l ON l.id = o.id WHERE o.customer = 7";
    let plan = plan(connection, query);
    assert!(!plan.contains("on orders o (rows=1)"), "{plan}");
}

/// What is joined is planned once, however many others are joined with it and whatever is in it.
#[test]
fn joins_within_joins_are_planned_once() {
    let database = database();
    let connection = &database.connect();
    connection.execute_script(TABLES).unwrap();
    connection.execute("INSERT INTO orders VALUES (1, 1), (2, 2), (3, 2)", &[]).unwrap();
    let joins = |n: usize| {
        format!(
            " LEFT JOIN orders a{n} ON a{n}.id = b{}.customer JOIN orders b{n} ON b{n}.id = a{n}.customer",
            n - 1
        )
    };
    let joined: String = (1..=45).map(joins).collect();
    assert_eq!(ask(connection, &format!("SELECT count(*) FROM orders b0{joined}")), "3");
    let nested = |inner: String, n: usize| {
        format!("SELECT s{n}.id FROM ({inner}) s{n} JOIN orders o{n} ON o{n}.id = s{n}.id")
    };
    let nested = (0..20).fold("SELECT id FROM orders".to_owned(), nested);
    assert_eq!(ask(connection, &format!("SELECT count(*) FROM ({nested}) s")), "3");
}

#[test]
fn what_a_parameter_finds_is_judged_by_what_a_value_finds() {
    let database = database();
    let connection = &database.connect();
    connection.execute_script(TABLES).unwrap();
    fill(connection);
    connection.execute("CREATE INDEX lines_order ON lines (order_id)", &[]).unwrap();
    let query = "SELECT count(*) FROM lines WHERE order_id = $1";
    let seven = [Value::Integer(7)];
    let explained = connection.query(&format!("EXPLAIN {query}"), &seven).unwrap().collect();
    let lines: Vec<String> = explained.unwrap().iter().map(|row| row[0].to_string()).collect();
    let plan = lines.join("\n");
    assert!(plan.contains("lines_order") && plan.contains("Execution: row"), "{plan}");
    let counted = connection.query(query, &seven).unwrap().collect().unwrap();
    assert_eq!(counted[0][0], Value::BigInt(3));
}

/// What a subquery keeps is given back when it is asked again: the budget is not for all of them
/// together.
#[test]
fn a_subquery_may_be_asked_any_number_of_times() {
    let database = database();
    let connection = &database.connect();
    connection.execute_script(TABLES).unwrap();
    connection.execute("CREATE INDEX lines_order ON lines (order_id)", &[]).unwrap();
    fill(connection);
    connection.execute("SET work_mem = '64kB'", &[]).unwrap();
    for asked in [
        "SELECT count(DISTINCT state) FROM lines WHERE order_id = o.id",
        "SELECT count(*) FROM (SELECT DISTINCT state FROM lines WHERE order_id = o.id) s",
        "SELECT count(*) FROM (SELECT state, count(*) FROM lines WHERE order_id = o.id GROUP BY state) s",
        "SELECT count(*) FROM (SELECT state FROM lines WHERE order_id = o.id ORDER BY state LIMIT 5) s",
        "SELECT count(*) FROM (SELECT state FROM lines WHERE order_id = o.id EXCEPT SELECT 9) s",
        "SELECT count(*) FROM (SELECT state FROM lines WHERE order_id = o.id UNION SELECT 0) s",
    ] {
        for way in ["row", "vectorized"] {
            connection.execute(&format!("SET execution_mode = '{way}'"), &[]).unwrap();
            for _ in 0..2 {
                let query = format!("SELECT sum(n) FROM (SELECT ({asked}) FROM orders o) s(n)");
                assert_eq!(ask(connection, &query), "12000", "{way}: {asked}");
            }
        }
    }
}

#[test]
fn what_is_joined_without_a_key_is_computed_once() {
    let database = database();
    let connection = &database.connect();
    connection.execute_script(TABLES).unwrap();
    fill(connection);
    let groups = "(SELECT state, count(*) AS n FROM lines GROUP BY state) g";
    for (join, expected) in [
        (format!("JOIN {groups} ON o.id < g.n - 7990"), "30"),
        (format!("LEFT JOIN {groups} ON o.id < g.n - 7990"), "4020"),
        (format!(", {groups}"), "12000"),
    ] {
        let query = format!("SELECT count(*) FROM orders o {join}");
        let analyzed = ask(connection, &format!("EXPLAIN ANALYZE {query}"));
        // Not once for each row: 24,000 rows of lines are read.
        assert!(analyzed.contains("actual rows=24000"), "{analyzed}");
        assert_eq!(ask(connection, &query), expected, "{query}");
    }
}

/// EXPLAIN says how a statement would be planned now, and counts what this execution did.
#[test]
fn explain_begins_anew_each_time() {
    let database = database();
    let connection = &database.connect();
    connection.execute_script(TABLES).unwrap();
    connection.execute("INSERT INTO orders VALUES (1, 1), (2, 2), (3, 2)", &[]).unwrap();
    let mut analyzed = connection.prepare("EXPLAIN ANALYZE SELECT * FROM orders").unwrap();
    for _ in 0..3 {
        let rows = analyzed.query(&[]).unwrap().collect().unwrap();
        let first = rows[0][0].to_string();
        assert!(first.contains("actual rows=3"), "{first}");
    }
    connection.execute("DELETE FROM orders", &[]).unwrap();
    connection.execute("CREATE INDEX lines_order ON lines (order_id)", &[]).unwrap();
    let before = plan(connection, JOIN);
    fill(connection);
    let grown = plan(connection, JOIN);
    assert_ne!(before, grown);
    assert_eq!(grown, plan(&database.connect(), JOIN));
}

/// Without a sample an equality keeps a twentieth of the rows.
#[test]
fn a_sample_tells_how_many_rows_a_condition_keeps() {
    let database = database();
    let connection = &database.connect();
    connection.execute_script(TABLES).unwrap();
    fill(connection);
    let rows = |condition: &str| -> f64 {
        let from = "FROM orders o JOIN lines l ON l.order_id = o.id";
        let plan = plan(connection, &format!("SELECT count(*) {from} WHERE {condition}"));
        let scan = plan.split("on orders o (rows=").nth(1).unwrap_or_else(|| panic!("{plan}"));
        scan.split(')').next().unwrap().parse().unwrap()
    };
    for (condition, share) in [
        ("o.customer % 2 = 0", 0.5),
        ("o.customer % 10 <> 3", 0.9),
        ("o.customer % 2 = 0 AND o.customer % 4 = 0", 0.25),
        ("CAST(o.customer AS TEXT) LIKE '1%'", 0.28),
    ] {
        let found = rows(condition) / 4000.0;
        assert!((share * 0.7..share * 1.4).contains(&found), "{condition}: {found}");
    }
}

#[test]
fn a_condition_on_both_keys_does_not_thin_out_the_join() {
    let database = database();
    let connection = &database.connect();
    for (table, rows) in [("small", 1000), ("one", 10_000), ("two", 10_000)] {
        connection
            .execute_script(&format!(
                "CREATE TABLE {table} (id INTEGER PRIMARY KEY, u INTEGER NOT NULL);
                 INSERT INTO {table}
                     SELECT n, n * 7 % {rows} FROM generate_series(0, {rows} - 1) n;
                 CREATE UNIQUE INDEX ON {table} (u);"
            ))
            .unwrap();
    }
    // All of the thousand values that the condition leaves are in each table, so that a lookup for
    // each row of a first join would be far more work than one scan of the range.
    let query = "SELECT count(*) FROM (SELECT * FROM small, one, two
                 WHERE small.u = one.u AND one.u = two.u AND one.u < 1000 OFFSET 0) s";
    let plan = plan(connection, query);
    assert!(plan.matches("Hash Join\n").count() == 2 && !plan.contains("Nested Loop"), "{plan}");
    assert_eq!(ask(connection, query), "1000");
}
