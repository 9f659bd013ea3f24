//! The views `quickbeam_stat_…`, and what PostgreSQL's views say of the same.

use std::time::Duration;

use crate::common::{connect_as, serve};
use postgres::Client;
use quickbeam_server::ServerOptions;

fn text(client: &mut Client, query: &str) -> String {
    let rows = client.simple_query(query).unwrap();
    let mut lines = Vec::new();
    for row in &rows {
        if let postgres::SimpleQueryMessage::Row(row) = row {
            let fields: Vec<&str> =
                (0..row.len()).map(|at| row.get(at).unwrap_or("NULL")).collect();
            lines.push(fields.join("|"));
        }
    }
    lines.join("\n")
}

/// Repeats a query until it answers so.
fn until(client: &mut Client, query: &str, wanted: &str) {
    for _ in 0..2_000 {
        if text(client, query) == wanted {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{query}: {}", text(client, query));
}

fn number_of(client: &mut Client) -> i32 {
    client.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0)
}

#[test]
fn who_waits_for_whom_is_shown() {
    let (_, server) = serve(ServerOptions::new());
    let mut watching = connect_as(&server, "anna", "").unwrap();
    let mut holder = connect_as(&server, "anna", "").unwrap();
    let mut waiter = connect_as(&server, "anna", "").unwrap();
    let numbers = [number_of(&mut holder), number_of(&mut waiter)];
    holder.batch_execute("CREATE TABLE t (id INT PRIMARY KEY, x INT)").unwrap();
    holder.batch_execute("INSERT INTO t VALUES (1, 0); BEGIN").unwrap();
    holder.batch_execute("UPDATE t SET x = 1 WHERE id = 1").unwrap();
    let waiting = std::thread::spawn(move || {
        waiter.batch_execute("UPDATE t SET x = 2 WHERE id = 1").unwrap();
        waiter.batch_execute("BEGIN; SELECT pg_advisory_xact_lock(5)").unwrap();
        waiter.batch_execute("COMMIT").unwrap();
    });
    let [holds, waits] = numbers;
    let blocked = "SELECT pid, blocked_by, wait_event_type, wait_event, wait_start <= now() \
        FROM quickbeam_stat_activity WHERE wait_event IS NOT NULL";
    until(&mut watching, blocked, &format!("{waits}|{{{holds}}}|Lock|transactionid|t"));
    let event = "SELECT pid, wait_event_type, wait_event FROM pg_stat_activity \
        WHERE wait_event IS NOT NULL";
    assert_eq!(text(&mut watching, event), format!("{waits}|Lock|transactionid"));
    let pids = format!("SELECT pg_blocking_pids({waits}), pg_blocking_pids({holds})");
    assert_eq!(text(&mut watching, &pids), format!("{{{holds}}}|{{}}"));
    let locks = "SELECT locktype, pid, mode, granted, waitstart IS NOT NULL FROM pg_locks \
        ORDER BY granted DESC, pid";
    assert_eq!(
        text(&mut watching, locks),
        format!(
            "transactionid|{holds}|ExclusiveLock|t|f\ntransactionid|{waits}|ExclusiveLock|t|f\n\
             transactionid|{waits}|ShareLock|f|t"
        )
    );
    let same = "SELECT h.pid = w.blocked_by[1], h.lock = w.lock, h.changes, w.mode, w.usename \
        FROM quickbeam_stat_locks h, quickbeam_stat_locks w \
        WHERE h.granted AND NOT w.granted AND h.lock = w.lock";
    assert_eq!(text(&mut watching, same), "t|t|1|ShareLock|anna");
    let open = "SELECT pid, changes, waits_for IS NOT NULL, blocked_by, state, undo_bytes > 0, \
        snapshot_start >= xact_start, query FROM quickbeam_stat_transactions \
        WHERE writer IS NOT NULL ORDER BY pid";
    assert_eq!(
        text(&mut watching, open),
        format!(
            "{holds}|1|f|NULL|idle in transaction|t|t|UPDATE t SET x = 1 WHERE id = 1\n\
             {waits}|0|t|{{{holds}}}|active|t|t|UPDATE t SET x = 2 WHERE id = 1"
        )
    );
    // The wait for an advisory lock is shown the same way.
    holder.batch_execute("SELECT pg_advisory_lock(5); COMMIT").unwrap();
    until(&mut watching, blocked, &format!("{waits}|{{{holds}}}|Lock|advisory|t"));
    let advisory = "SELECT lock, pid, granted, blocked_by, wait_start IS NOT NULL \
        FROM quickbeam_stat_locks WHERE locktype = 'advisory' ORDER BY granted DESC";
    let shown = format!("5|{holds}|t|NULL|f\n5|{waits}|f|{{{holds}}}|t");
    assert_eq!(text(&mut watching, advisory), shown);
    holder.batch_execute("SELECT pg_advisory_unlock(5)").unwrap();
    waiting.join().unwrap();
    assert_eq!(text(&mut watching, blocked), "");
}

#[test]
fn statements_are_counted_where_the_server_is_told_to() {
    let counted = "SELECT query, calls, failures, rows, total_exec_time >= max_exec_time, \
        min_exec_time <= mean_exec_time, first_call <= last_call FROM quickbeam_stat_statements \
        WHERE query LIKE '%FROM t%' OR query LIKE '%INTO t %' ORDER BY query";
    let (_, off) = serve(ServerOptions::new());
    let mut client = connect_as(&off, "anna", "").unwrap();
    client.batch_execute("CREATE TABLE t (id INT PRIMARY KEY, x INT)").unwrap();
    client.batch_execute("INSERT INTO t VALUES (1, 2)").unwrap();
    assert_eq!(text(&mut client, counted), "");
    let (_, server) = serve(ServerOptions::new().track_statements(100));
    let mut client = connect_as(&server, "anna", "").unwrap();
    client.batch_execute("CREATE TABLE t (id INT PRIMARY KEY, x INT)").unwrap();
    client.batch_execute("INSERT INTO t VALUES (1, 2)").unwrap();
    client.batch_execute("INSERT INTO t VALUES (3, 4), (5, 6)").unwrap();
    assert!(client.batch_execute("INSERT INTO t VALUES (1, 7)").is_err());
    for id in 1..=5i32 {
        client.query("SELECT x FROM t WHERE id = $1", &[&id]).unwrap();
    }
    client.batch_execute("CREATE ROLE visitor LOGIN PASSWORD 'a secret'").unwrap();
    let shown = "INSERT INTO t VALUES ($1, $2)|2|1|1|t|t|t\n\
        INSERT INTO t VALUES ($1, $2), ($3, $4)|1|0|2|t|t|t\n\
        SELECT x FROM t WHERE id = $1|5|0|3|t|t|t";
    assert_eq!(text(&mut client, counted), shown);
    let secrets = "SELECT count(*) FROM quickbeam_stat_statements WHERE query LIKE '%a secret%'";
    assert_eq!(text(&mut client, secrets), "0");
}

#[test]
fn statements_of_others_are_hidden_without_pg_monitor() {
    let (database, server) = serve(ServerOptions::new().track_statements(100));
    let roles = "CREATE ROLE visitor LOGIN; CREATE ROLE keeper LOGIN; CREATE ROLE reader LOGIN; \
        GRANT pg_monitor TO keeper; GRANT pg_read_all_stats TO reader";
    database.connect().execute_script(roles).unwrap();
    let mut other = connect_as(&server, "anna", "").unwrap();
    other.batch_execute("BEGIN; SELECT 'of anna'").unwrap();
    let number = number_of(&mut other);
    let queries = [
        format!(
            "SELECT query LIKE '%anna%', state, application_name IS NOT NULL \
            FROM quickbeam_stat_activity WHERE pid = {number}"
        ),
        format!(
            "SELECT query LIKE '%anna%', state, xact_start IS NOT NULL \
            FROM pg_stat_activity WHERE pid = {number}"
        ),
        format!(
            "SELECT query LIKE '%anna%', state, xact_start IS NOT NULL \
            FROM quickbeam_stat_transactions WHERE pid = {number}"
        ),
        "SELECT bool_or(query LIKE '%anna%'), NULL, bool_and(query_id IS NOT NULL) \
            FROM quickbeam_stat_statements WHERE usename = 'anna'"
            .to_owned(),
    ];
    other.batch_execute("SELECT 'still of anna'").unwrap();
    let mut visitor = connect_as(&server, "visitor", "").unwrap();
    let hidden = ["f|NULL|f", "f|NULL|f", "f|NULL|t", "f|NULL|f"];
    for (query, hidden) in queries.iter().zip(hidden) {
        assert_eq!(text(&mut visitor, query), hidden, "{query}");
    }
    for user in ["keeper", "reader", "anna"] {
        let mut client = connect_as(&server, user, "").unwrap();
        let state = "t|idle in transaction|t";
        // The counted texts have no constants.
        for (query, shown) in queries.iter().zip([state, state, state, "f|NULL|t"]) {
            assert_eq!(text(&mut client, query), shown, "{user}: {query}");
        }
    }
    let own = "SELECT count(*) FROM quickbeam_stat_activity WHERE state = 'active'";
    assert_eq!(text(&mut visitor, own), "1");
}

#[test]
fn predefined_roles_are_granted_and_never_changed() {
    let (_, server) = serve(ServerOptions::new());
    let mut client = connect_as(&server, "anna", "").unwrap();
    client.batch_execute("CREATE ROLE visitor; GRANT pg_monitor TO visitor").unwrap();
    let has = "SELECT pg_has_role('visitor', 'pg_read_all_stats', 'USAGE'), \
        pg_has_role('visitor', 3373, 'MEMBER'), 'pg_monitor'::regrole::oid";
    assert_eq!(text(&mut client, has), "t|t|3373");
    let members = "SELECT roleid::regrole, member::regrole FROM pg_auth_members ORDER BY 1";
    let expected = "pg_monitor|visitor\npg_read_all_settings|pg_monitor\n\
        pg_read_all_stats|pg_monitor\npg_stat_scan_tables|pg_monitor";
    assert_eq!(text(&mut client, members), expected);
    for (statement, code) in [
        ("ALTER ROLE pg_monitor LOGIN", "42939"),
        ("ALTER ROLE pg_monitor RENAME TO m", "42939"),
        ("ALTER ROLE pg_monitor SET work_mem = '1MB'", "42939"),
        ("DROP ROLE pg_monitor", "2BP01"),
        ("CREATE ROLE pg_monitor", "42939"),
        ("GRANT visitor TO pg_monitor", "0LP01"),
    ] {
        let error = client.batch_execute(statement).unwrap_err();
        assert_eq!(error.code().unwrap().code(), code, "{statement}");
    }
    client.batch_execute("REVOKE pg_monitor FROM visitor; DROP ROLE visitor").unwrap();
}
