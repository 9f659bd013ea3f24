//! Times single SQL statements beside the engine's own calls, and the Wisconsin queries of a file.
//!
//! `cargo bench -p quickbeam-bench --bench statements -- [wisconsin.sql [--explain]]`

#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]

use std::time::Instant;

use quickbeam::{Durability, Options};
use quickbeam_sql::{Connection, Result, SqlDatabase, params};

fn time(name: &str, times: u32, mut work: impl FnMut(u32) -> Result<()>) -> Result<()> {
    for n in 0..times / 10 {
        work(n)?;
    }
    let start = Instant::now();
    for n in 0..times {
        work(n)?;
    }
    println!("{name:44} {:9.3} us", start.elapsed().as_secs_f64() * 1e6 / f64::from(times));
    Ok(())
}

fn key(n: u32) -> i64 {
    i64::from(n.wrapping_mul(2_654_435_761) % 100_000)
}

fn points(c: &Connection) -> Result<()> {
    c.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT, s TEXT)", &[])?;
    let environment = c.database().environment().clone();
    let pairs = environment.create_database("pairs")?;
    let mut insert = c.prepare("INSERT INTO t VALUES ($1, $2, 'some text of a row')")?;
    c.begin()?;
    for n in 0..100_000i64 {
        insert.execute(params![n, n])?;
    }
    c.commit()?;
    environment
        .transact(|t| (0..100_000i64).try_for_each(|n| pairs.put(t, &n.to_be_bytes(), &[7; 50])))?;
    let mut value = Vec::new();
    let transaction = environment.begin_read()?;
    time("engine get", 200_000, |n| {
        Ok(pairs.get_into(&transaction, &key(n).to_be_bytes(), &mut value).map(|_| ())?)
    })?;
    drop(transaction);
    time("engine begin_read, get", 200_000, |n| {
        let transaction = environment.begin_read()?;
        Ok(pairs.get_into(&transaction, &key(n).to_be_bytes(), &mut value).map(|_| ())?)
    })?;
    let mut select = c.prepare("SELECT v FROM t WHERE id = $1")?;
    let mut sum = 0;
    time("SELECT by key, autocommit", 200_000, |n| {
        let mut rows = select.query(params![key(n)])?;
        if let Some(row) = rows.next()? {
            sum += row.get::<i64>(0)?;
        }
        Ok(())
    })?;
    c.begin()?;
    time("SELECT by key, in a transaction", 200_000, |n| {
        let mut rows = select.query(params![key(n)])?;
        if let Some(row) = rows.next()? {
            sum += row.get::<i64>(0)?;
        }
        Ok(())
    })?;
    c.commit()?;
    time("engine begin, put, commit", 100_000, |n| {
        let transaction = environment.begin()?;
        pairs.put(&transaction, &key(n).to_be_bytes(), &[8; 50])?;
        Ok(transaction.commit()?)
    })?;
    let mut update = c.prepare("UPDATE t SET v = v + 1 WHERE id = $1")?;
    time("UPDATE by key, autocommit", 100_000, |n| update.execute(params![key(n)]).map(|_| ()))?;
    let transaction = environment.begin()?;
    time("engine put, in a transaction", 50_000, |n| {
        Ok(pairs.put(&transaction, &key(n).to_be_bytes(), &[9; 50])?)
    })?;
    transaction.commit()?;
    c.begin()?;
    time("UPDATE by key, in a transaction", 50_000, |n| {
        update.execute(params![key(n)]).map(|_| ())
    })?;
    c.commit()?;
    println!("{sum}");
    Ok(())
}

fn letters(mut n: u32) -> String {
    let mut text = [b'A'; 7];
    for place in text.iter_mut().rev() {
        *place = b'A' + (n % 26) as u8;
        n /= 26;
    }
    String::from_utf8_lossy(&text).into_owned() + &"x".repeat(45)
}

fn load(c: &Connection, table: &str, n: u32, generator: u32, prime: u32) -> Result<()> {
    let mut insert = c.prepare(&format!(
        "INSERT INTO {table} VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15,$16)"
    ))?;
    let (mut seed, mut unique2) = (generator, 0u32);
    c.begin()?;
    while unique2 < n {
        seed = (u64::from(seed) * u64::from(generator) % u64::from(prime)) as u32;
        if seed > n {
            continue;
        }
        let u1 = seed - 1;
        let four =
            ["AAAA", "HHHH", "OOOO", "VVVV"][unique2 as usize % 4].to_owned() + &"x".repeat(48);
        let i = |v: u32| v as i32;
        insert.execute(params![
            i(u1),
            i(unique2),
            i(u1 % 2),
            i(u1 % 4),
            i(u1 % 10),
            i(u1 % 20),
            i(u1 % 100),
            i(u1 % 10),
            i(u1 % 5),
            i(u1 % 2),
            i(u1),
            i(u1 % 100 * 2),
            i(u1 % 100 * 2 + 1),
            letters(u1),
            letters(unique2),
            four
        ])?;
        unique2 += 1;
    }
    c.commit()
}

fn wisconsin(c: &Connection, text: &str) -> Result<()> {
    let section = |name: &str| {
        let after = text.split(&format!("--@section {name}")).nth(1).unwrap_or_default();
        after.split("--@section").next().unwrap_or_default().to_owned()
    };
    let (indexes, queries) = (section("indexes"), section("queries"));
    let clustered = section("tables").replace(
        "(unique1 INTEGER NOT NULL, unique2 INTEGER NOT NULL,",
        "(unique1 INTEGER NOT NULL, unique2 INTEGER PRIMARY KEY,",
    );
    for (tables, wanted) in [
        (section("tables"), "none"),
        (clustered.clone(), "clustered"),
        (clustered, "nonclustered"),
        (section("tables"), "all"),
    ] {
        for name in [
            "tenktup1", "tenktup2", "onektup", "bprime", "tmp", "tmp2", "tmp3", "tmpp6", "tmpp14",
            "tmpa",
        ] {
            c.execute(&format!("DROP TABLE IF EXISTS {name}"), &[])?;
        }
        c.execute_script(&tables)?;
        load(c, "tenktup1", 10_000, 2_969, 10_007)?;
        load(c, "tenktup2", 10_000, 2_969, 10_007)?;
        load(c, "onektup", 1_000, 279, 1_009)?;
        c.execute_script(&section("bprime"))?;
        match wanted {
            "none" => {}
            "all" => c.execute_script(&indexes)?,
            "clustered" => {}
            _ => c.execute_script(
                &indexes.lines().filter(|l| l.contains("_u1")).collect::<Vec<_>>().join("\n"),
            )?,
        }
        for query in queries.split("--@q ").skip(1) {
            let mut words = query.split_whitespace();
            let (number, index, rows) = (
                words.next().unwrap_or_default(),
                words.next().unwrap_or_default(),
                words.next().unwrap_or_default(),
            );
            if index != wanted {
                continue;
            }
            let side =
                |mark: &str| query.lines().find_map(|l| l.strip_prefix(mark)).map(str::to_owned);
            let (before, after) = (side("--@before "), side("--@after "));
            let sql: String = query
                .lines()
                .skip(1)
                .filter(|l| !l.starts_with("--"))
                .collect::<Vec<_>>()
                .join("\n");
            let sql = sql.trim().trim_end_matches(';');
            let mut statement = c.prepare(sql)?;
            let mut times = Vec::new();
            let mut count = 0;
            for _ in 0..10 {
                for name in ["tmp", "tmp2", "tmp3", "tmpp6", "tmpp14", "tmpa"] {
                    c.execute(&format!("DELETE FROM {name}"), &[])?;
                }
                if let Some(before) = &before {
                    c.execute(before, &[])?;
                }
                let start = Instant::now();
                count = statement.execute(&[])?;
                times.push(start.elapsed().as_secs_f64() * 1e3);
                if let Some(after) = &after {
                    c.execute(after, &[])?;
                }
            }
            times.sort_by(f64::total_cmp);
            println!(
                "{number:>3} {index:13} {count:6} rows (expected {rows:>6}) {:9.4} ms",
                times[5]
            );
            if std::env::args().any(|argument| argument == "--explain") {
                for line in c.query(&format!("EXPLAIN {sql}"), &[])?.collect()? {
                    println!("        {}", line[0]);
                }
            }
        }
    }
    Ok(())
}

fn main() -> Result<()> {
    let options = Options::new().durability(Durability::InMemory).cache_size(256 << 20);
    let connection = SqlDatabase::open_in_memory(options)?.connect();
    points(&connection)?;
    // `cargo bench` adds an option of its own.
    if let Some(path) = std::env::args().skip(1).find(|argument| !argument.starts_with("--")) {
        let text = std::fs::read_to_string(path)
            .map_err(|error| quickbeam_sql::SqlError::internal(error.to_string()))?;
        wisconsin(&connection, &text)?;
    }
    Ok(())
}
