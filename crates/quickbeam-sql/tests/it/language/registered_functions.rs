//! Functions in Rust that the program registers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quickbeam_sql::types::DataType::{BigInt, Integer, Text};
use quickbeam_sql::{
    Connection, Result, ScalarFunction, SqlDatabase, SqlError, SqlState, Value, ValueRef,
};

fn database() -> SqlDatabase {
    SqlDatabase::open_in_memory(Default::default()).unwrap()
}

fn one(connection: &Connection, text: &str) -> String {
    let rows = connection.query(text, &[]).unwrap().collect().unwrap();
    rows[0].iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

fn code(connection: &Connection, text: &str) -> String {
    let result = connection.query(text, &[]).and_then(|rows| rows.collect().map(drop));
    result.unwrap_err().code().to_owned()
}

fn number(value: ValueRef<'_>) -> i64 {
    value.as_i64().unwrap()
}

fn doubled() -> ScalarFunction {
    ScalarFunction::new("doubled", &[BigInt], BigInt, |values| {
        let value = number(values[0]).checked_mul(2);
        let value = value.ok_or_else(|| {
            SqlError::new(SqlState::NumericValueOutOfRange, "too large to be doubled")
        });
        Ok(Value::BigInt(value?))
    })
}

#[test]
fn registered_functions_are_called_with_the_declared_types() {
    let database = database();
    let connection = database.connect();
    assert_eq!(code(&connection, "SELECT doubled(1)"), "42883");
    database.register_function(doubled()).unwrap();
    // Connections that were there before know it, too.
    assert_eq!(one(&connection, "SELECT doubled(4), doubled(NULL) IS NULL"), "8,t");
    assert_eq!(one(&connection, "SELECT doubled(2::smallint), pg_typeof(doubled(1))"), "4,bigint");
    assert_eq!(code(&connection, "SELECT doubled('x')"), "22P02");
    assert_eq!(code(&connection, "SELECT doubled(true)"), "42883");
    assert_eq!(code(&connection, "SELECT doubled(9223372036854775807)"), "22003");
    let half = connection.query("SELECT doubled($1)", &[Value::Integer(21)]).unwrap();
    assert_eq!(half.collect().unwrap()[0][0], Value::BigInt(42));
}

#[test]
fn registered_functions_work_in_every_clause() {
    let database = database();
    database.register_function(doubled()).unwrap();
    let connection = database.connect();
    let script = "CREATE TABLE t (id INT PRIMARY KEY, d BIGINT DEFAULT doubled(21),
                      g BIGINT GENERATED ALWAYS AS (doubled(id)) STORED, CHECK (doubled(id) < 100));
                  INSERT INTO t (id) SELECT i FROM generate_series(1, 10) g(i);
                  CREATE VIEW v AS SELECT id, doubled(d) AS dd FROM t;
                  UPDATE t SET d = doubled(d) WHERE doubled(id) > 10";
    connection.execute_script(script).unwrap();
    assert_eq!(one(&connection, "SELECT sum(g), min(d), max(d) FROM t"), "110,42,84");
    assert_eq!(one(&connection, "SELECT sum(dd) FROM v GROUP BY doubled(id) / 100"), "1260");
    let ordered = "SELECT id FROM t ORDER BY doubled(-id) LIMIT 1";
    assert_eq!(one(&connection, ordered), "10");
    assert_eq!(code(&connection, "INSERT INTO t (id) VALUES (50)"), "23514");
    assert_eq!(code(&connection, "CREATE INDEX ON t (doubled(id))"), "0A000");
    assert_eq!(code(&connection, "CREATE INDEX ON t (id) WHERE doubled(id) > 3"), "0A000");
    // A program without the function reads what does not need it.
    let without = SqlDatabase::attach(database.environment()).unwrap().connect();
    assert_eq!(one(&without, "SELECT sum(g) FROM t"), "110");
    assert_eq!(code(&without, "SELECT * FROM v"), "42883");
    assert_eq!(code(&without, "INSERT INTO t (id, d) VALUES (11, 1)"), "42883");
}

#[test]
fn volatile_functions_are_called_for_each_row() {
    let database = database();
    let calls = Arc::new(AtomicU64::new(0));
    let count = |name: &str, calls: &Arc<AtomicU64>| {
        let calls = calls.clone();
        ScalarFunction::new(name, &[Integer], BigInt, move |_| {
            Ok(Value::BigInt(calls.fetch_add(1, Ordering::SeqCst) as i64))
        })
    };
    database.register_function(count("tick", &calls).volatile()).unwrap();
    let connection = database.connect();
    let distinct = "SELECT count(DISTINCT tick(1)) FROM generate_series(1, 5)";
    assert_eq!(one(&connection, distinct), "5");
    assert_eq!(calls.load(Ordering::SeqCst), 5);
    let refused = "CREATE TABLE t (a INT, b BIGINT GENERATED ALWAYS AS (tick(a)) STORED)";
    assert_eq!(code(&connection, refused), "42P17");
    database.register_function(count("once", &calls)).unwrap();
    let same = "SELECT count(DISTINCT once(1)) FROM generate_series(1, 5)";
    assert_eq!(one(&connection, same), "1");
}

#[test]
fn nulls_reach_functions_that_take_them() {
    let database = database();
    let count = ScalarFunction::new("nulls", &[Integer, Text], Integer, |values| {
        Ok(Value::Integer(values.iter().filter(|value| value.is_null()).count() as i32))
    });
    database.register_function(count.takes_nulls()).unwrap();
    let connection = database.connect();
    assert_eq!(
        one(&connection, "SELECT nulls(NULL, 'a'), nulls(NULL, NULL), nulls(1, '')"),
        "1,2,0"
    );
}

#[test]
fn overloads_are_chosen_among_registered_functions() {
    let database = database();
    let named = |arguments: &[quickbeam_sql::DataType], name: &'static str| {
        ScalarFunction::new("kind", arguments, Text, move |_| Ok(Value::text(name)))
    };
    database.register_function(named(&[BigInt], "number")).unwrap();
    database.register_function(named(&[Text], "text")).unwrap();
    database.register_function(named(&[Text, Text], "two")).unwrap();
    let connection = database.connect();
    let query = "SELECT kind(1), kind('a'), kind('a', 'b'), kind(2::smallint)";
    assert_eq!(one(&connection, query), "number,text,two,number");
    let duplicate = |function| database.register_function(function).unwrap_err().code().to_owned();
    assert_eq!(duplicate(named(&[Text], "again")), "42723");
    let lower = ScalarFunction::new("lower", &[Text], Text, |_| Ok(Value::Null));
    assert_eq!(duplicate(lower), "42723");
    let sum = ScalarFunction::new("sum", &[Text], Text, |_| Ok(Value::Null));
    assert_eq!(duplicate(sum), "42723");
    // A further overload of a function of the catalog is a new function.
    let own = ScalarFunction::new("lower", &[Integer, Integer], Integer, |values| {
        Ok(Value::Integer(number(values[0]).min(number(values[1])) as i32))
    });
    database.register_function(own).unwrap();
    assert_eq!(one(&connection, "SELECT lower(3, 2), lower('A')"), "2,a");
}

#[test]
fn results_of_another_type_are_refused() {
    let database = database();
    let wrong = ScalarFunction::new("wrong", &[], Integer, |_| Ok(Value::text("1")));
    database.register_function(wrong).unwrap();
    let body = |_: &[ValueRef<'_>]| -> Result<Value> { Ok(Value::text("a\0b")) };
    database.register_function(ScalarFunction::new("zero", &[], Text, body)).unwrap();
    let connection = database.connect();
    assert_eq!(code(&connection, "SELECT wrong()"), "42804");
    assert_eq!(code(&connection, "SELECT zero()"), "22021");
}
