//! Scripts: several statements in one text. What is said of an error is said of the whole text.

use quickbeam::Options;
use quickbeam_sql::{Connection, SqlDatabase, SqlError};

fn connect() -> Connection {
    SqlDatabase::open_in_memory(Options::default()).unwrap().connect()
}

/// The part of the script, from the place of the error on, with PostgreSQL's number of that place.
fn place<'t>(error: &SqlError, script: &'t str) -> (&'t str, usize) {
    let position = error.position().unwrap_or_else(|| panic!("no place: {error}"));
    (&script[position..], error.character_position(script).unwrap())
}

#[test]
fn an_errors_place_is_counted_in_the_whole_script() {
    // Statements are written in ways that they would not have if they were printed again.
    let before = "create  table t (a int,\n  größe text) ;-- ä comment\n\n/* one;\n more */ insert into t\tvalues(1,'ä;''') ;\n";
    for (statement, from, code) in [
        ("select a,\n   größe, nothing from t", "nothing", "42703"),
        ("update t set   größe='x'   where  wrong = 1", "wrong", "42703"),
        ("delete from t\nwhere 'ß' = größe and missing is null", "missing", "42703"),
        ("insert into t (a, strange) values (1, 2)", "strange", "42703"),
        ("select   abs(größe)   from t", "abs", "42883"),
        ("select 'é' from   nowhere", "nowhere", "42P01"),
        ("select 'ä' frm t where", "t where", "42601"),
        ("selec 1", "selec", "42601"),
    ] {
        let script = format!("{before}{statement}; select 1;");
        let error = connect().execute_script(&script).unwrap_err();
        assert_eq!(error.code(), code, "{script}: {error}");
        let (found, number) = place(&error, &script);
        let rest = &script[before.len() + statement.find(from).unwrap()..];
        assert_eq!(found, rest, "{script}: {error}");
        let characters = script[..script.len() - rest.len()].chars().count();
        assert_eq!(number, characters + 1, "{script}: {error}");
    }
}

fn count(connection: &quickbeam_sql::Connection, query: &str) -> usize {
    connection.query(query, &[]).unwrap().collect().unwrap().len()
}

#[test]
fn script_keeps_statements_before_an_error_but_must_parse() {
    let connection = connect();
    let error = connection
        .execute_script(
            "create table t (a int); insert into t values (1); select b from t; drop table t",
        )
        .unwrap_err();
    assert_eq!((error.code(), error.position()), ("42703", Some(57)));
    assert_eq!(count(&connection, "select * from t"), 1);
    let error = connection.execute_script("drop table t; select (").unwrap_err();
    assert_eq!((error.code(), error.position()), ("42601", Some(22)));
    assert_eq!(count(&connection, "select * from t"), 1);
}

#[test]
fn statement_parsed_as_something_else_runs_as_written() {
    let connection = connect();
    connection
        .execute_script(
            "create sequence s start 7 increment 2; select nextval('s');
             alter sequence s restart with 40; create table t (n bigint);
             insert into t select nextval('s')",
        )
        .unwrap();
    assert_eq!(count(&connection, "select * from t where n = 40"), 1);
}

#[test]
fn a_long_script_on_one_line_is_executed() {
    let connection = connect();
    let script = format!("create table t (a int);{}", "insert into t values (1);".repeat(5_000));
    connection.execute_script(&script).unwrap();
    assert_eq!(count(&connection, "select * from t"), 5_000);
}
