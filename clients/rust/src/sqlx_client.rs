//! sqlx: pools, types, derived rows, transactions and savepoints, migrations, listeners, COPY.

use std::time::Duration;

use anyhow::{Result, ensure};
use chrono::{DateTime, NaiveDate, Utc};
use futures_util::TryStreamExt;
use rust_decimal::Decimal;
use sqlx::migrate::Migrator;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use sqlx::{Acquire, PgPool, Row};

use crate::given;

#[derive(Debug, PartialEq, sqlx::Type)]
#[sqlx(type_name = "sx_mood", rename_all = "lowercase")]
enum Mood {
    Sad,
    Ok,
}

#[derive(sqlx::FromRow)]
struct Item {
    id: i64,
    name: String,
    price: Option<Decimal>,
    day: NaiveDate,
    at: DateTime<Utc>,
    tags: Vec<String>,
    note: sqlx::types::Json<Vec<i32>>,
    mood: Mood,
}

pub async fn run() -> Result<()> {
    let options = PgConnectOptions::new()
        .host(&given("PGHOST"))
        .port(given("PGPORT").parse()?)
        .username(&given("PGUSER"))
        .password(&given("PGPASSWORD"))
        .database(&given("PGDATABASE"))
        .application_name("sqlx client");
    let pool = PgPoolOptions::new().max_connections(4).connect_with(options).await?;
    sqlx::raw_sql(
        "DROP TABLE IF EXISTS sx_item, sx_migrated, _sqlx_migrations; DROP TYPE IF EXISTS sx_mood; \
         CREATE TYPE sx_mood AS ENUM ('sad', 'ok'); \
         CREATE TABLE sx_item (id bigserial PRIMARY KEY, name varchar(30) NOT NULL UNIQUE, \
         price numeric(10,2), day date NOT NULL, at timestamptz NOT NULL DEFAULT now(), \
         tags text[] NOT NULL, note jsonb NOT NULL, mood sx_mood NOT NULL)",
    )
    .execute(&pool)
    .await?;
    rows(&pool).await?;
    transactions(&pool).await?;
    migrations(&pool).await?;
    listeners(&pool).await?;
    copies(&pool).await?;
    pool.close().await;
    Ok(())
}

async fn rows(pool: &PgPool) -> Result<()> {
    let day = NaiveDate::from_ymd_opt(2026, 5, 6).unwrap_or_default();
    for n in 0..20i32 {
        let id: i64 = sqlx::query_scalar(
            "INSERT INTO sx_item (name, price, day, tags, note, mood) VALUES ($1, $2, $3, $4, $5, $6) RETURNING id",
        )
        .bind(format!("item {n}"))
        .bind((n % 3 > 0).then(|| Decimal::new(i64::from(n) * 105, 2)))
        .bind(day)
        .bind(vec![format!("t{n}")])
        .bind(sqlx::types::Json(vec![n, n + 1]))
        .bind(if n % 2 == 0 { Mood::Ok } else { Mood::Sad })
        .fetch_one(pool)
        .await?;
        ensure!(id == i64::from(n) + 1);
    }
    let items: Vec<Item> = sqlx::query_as("SELECT * FROM sx_item WHERE id = ANY($1) ORDER BY id")
        .bind(vec![2i64, 3])
        .fetch_all(pool)
        .await?;
    ensure!(
        items.len() == 2
            && items[0].id == 2
            && items[0].name == "item 1"
            && items[0].mood == Mood::Sad
    );
    ensure!(
        items[0].price == Some(Decimal::new(105, 2))
            && items[1].day == day
            && items[1].tags == ["t2"]
    );
    ensure!(items[1].note.0 == [2, 3] && items[1].at <= Utc::now() + chrono::Duration::hours(1));
    let mut stream = sqlx::query("SELECT n FROM generate_series(1, 1000) n").fetch(pool);
    let mut sum = 0i64;
    while let Some(row) = stream.try_next().await? {
        sum += i64::from(row.get::<i32, _>("n"));
    }
    ensure!(sum == 500_500);
    let error = sqlx::query("INSERT INTO sx_item (name, day, tags, note, mood) VALUES ('item 1', now(), '{}', '[]', 'ok')")
        .execute(pool)
        .await
        .err();
    let error = error.as_ref().and_then(|error| error.as_database_error());
    ensure!(
        error
            .is_some_and(|e| e.is_unique_violation() && e.constraint() == Some("sx_item_name_key"))
    );
    Ok(())
}

async fn transactions(pool: &PgPool) -> Result<()> {
    let mut outer = pool.begin().await?;
    sqlx::query("DELETE FROM sx_item WHERE id > 10").execute(&mut *outer).await?;
    let mut inner = outer.begin().await?;
    sqlx::query("DELETE FROM sx_item").execute(&mut *inner).await?;
    inner.rollback().await?;
    let left: i64 =
        sqlx::query_scalar("SELECT count(*) FROM sx_item").fetch_one(&mut *outer).await?;
    ensure!(left == 10, "{left}");
    outer.commit().await?;
    Ok(())
}

async fn migrations(pool: &PgPool) -> Result<()> {
    let folder = std::env::temp_dir().join(format!("sqlx-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("1_first.sql"), "CREATE TABLE sx_migrated (id int PRIMARY KEY);")?;
    std::fs::write(
        folder.join("2_second.sql"),
        "ALTER TABLE sx_migrated ADD COLUMN name text; INSERT INTO sx_migrated VALUES (1, 'a');",
    )?;
    for _ in 0..2 {
        Migrator::new(folder.as_path()).await?.run(pool).await?;
    }
    std::fs::remove_dir_all(&folder)?;
    let name: String = sqlx::query_scalar("SELECT name FROM sx_migrated").fetch_one(pool).await?;
    ensure!(name == "a");
    Ok(())
}

async fn listeners(pool: &PgPool) -> Result<()> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.listen("sx_news").await?;
    sqlx::query("SELECT pg_notify('sx_news', $1)").bind("hello").execute(pool).await?;
    let news = tokio::time::timeout(Duration::from_secs(10), listener.recv()).await??;
    ensure!(news.payload() == "hello");
    Ok(())
}

async fn copies(pool: &PgPool) -> Result<()> {
    let mut connection = pool.acquire().await?;
    let mut sink = connection.copy_in_raw("COPY sx_migrated FROM STDIN (FORMAT csv)").await?;
    sink.send(&b"2,b\n3,c\n"[..]).await?;
    ensure!(sink.finish().await? == 2);
    let parts: Vec<_> =
        connection.copy_out_raw("COPY sx_migrated TO STDOUT").await?.try_collect().await?;
    ensure!(parts.concat() == b"1\ta\n2\tb\n3\tc\n");
    Ok(())
}
