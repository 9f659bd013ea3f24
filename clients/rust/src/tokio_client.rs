//! tokio-postgres: types in binary, prepared statements, pipelining, COPY in both formats, portals,
//! transactions, notifications, cancellation, errors.

use std::time::Duration;

use anyhow::{Result, ensure};
use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};
use futures_util::{SinkExt, StreamExt, TryStreamExt, pin_mut, stream};
use postgres_types::{FromSql, ToSql, Type};
use rust_decimal::Decimal;
use tokio_postgres::binary_copy::{BinaryCopyInWriter, BinaryCopyOutStream};
use tokio_postgres::error::SqlState;
use tokio_postgres::{AsyncMessage, Client, NoTls};

use crate::given;

#[derive(Debug, PartialEq, ToSql, FromSql)]
#[postgres(name = "tk_mood")]
enum Mood {
    #[postgres(name = "sad")]
    Sad,
    #[postgres(name = "ok")]
    Fine,
}

async fn connect(notify: tokio::sync::mpsc::UnboundedSender<AsyncMessage>) -> Result<Client> {
    let mut config = tokio_postgres::Config::new();
    config.host(given("PGHOST")).port(given("PGPORT").parse()?).user(given("PGUSER"));
    config.password(given("PGPASSWORD")).dbname(given("PGDATABASE"));
    let (client, mut connection) = config.connect(NoTls).await?;
    tokio::spawn(async move {
        let mut messages = stream::poll_fn(move |context| connection.poll_message(context));
        while let Some(Ok(message)) = messages.next().await {
            notify.send(message).ok();
        }
    });
    Ok(client)
}

pub async fn run() -> Result<()> {
    let (sender, mut messages) = tokio::sync::mpsc::unbounded_channel();
    let mut client = connect(sender).await?;
    client
        .batch_execute(
            "DROP TABLE IF EXISTS tk; DROP TYPE IF EXISTS tk_mood; \
             CREATE TYPE tk_mood AS ENUM ('sad', 'ok'); \
             CREATE TABLE tk (id int PRIMARY KEY, name text, n numeric(12,3), day date, at timestamp, \
             zoned timestamptz, raw bytea, list text[], note jsonb, mood tk_mood, ref uuid, big bigint, \
             small smallint, real8 float8, ok bool)",
        )
        .await?;
    types(&client).await?;
    pipelines(&client).await?;
    copies(&client).await?;
    transactions(&mut client).await?;
    errors(&client).await?;
    client.batch_execute("LISTEN tk_news; NOTIFY tk_news, 'hello'").await?;
    let news = loop {
        match tokio::time::timeout(Duration::from_secs(10), messages.recv()).await? {
            Some(AsyncMessage::Notification(news)) => break news,
            Some(_) => {}
            None => anyhow::bail!("the connection ended"),
        }
    };
    ensure!(news.channel() == "tk_news" && news.payload() == "hello");
    cancel(&client).await
}

async fn types(client: &Client) -> Result<()> {
    let insert = client
        .prepare("INSERT INTO tk VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)")
        .await?;
    ensure!(insert.params()[2] == Type::NUMERIC && insert.params()[7] == Type::TEXT_ARRAY);
    let (n, day) =
        (Decimal::new(-1_234_500, 3), NaiveDate::from_ymd_opt(2026, 2, 3).unwrap_or_default());
    let at: NaiveDateTime = day.and_hms_micro_opt(4, 5, 6, 789_012).unwrap_or_default();
    let zoned: DateTime<Utc> = at.and_utc();
    let (raw, list) = (vec![0u8, 1, 255], vec![Some("a".to_owned()), None]);
    let (note, reference) = (serde_json::json!({"a": [1, null]}), uuid::Uuid::new_v4());
    let values: [&(dyn ToSql + Sync); 15] = [
        &1,
        &"Ä",
        &n,
        &day,
        &at,
        &zoned,
        &raw,
        &list,
        &note,
        &Mood::Fine,
        &reference,
        &(1i64 << 40),
        &-3i16,
        &0.1f64,
        &true,
    ];
    ensure!(client.execute(&insert, &values).await? == 1);
    let row = client.query_one("SELECT * FROM tk WHERE id = $1", &[&1]).await?;
    ensure!(row.get::<_, &str>("name") == "Ä" && row.get::<_, Decimal>("n") == n);
    ensure!(row.get::<_, NaiveDate>("day") == day && row.get::<_, NaiveDateTime>("at") == at);
    ensure!(row.get::<_, DateTime<Utc>>("zoned") == zoned && row.get::<_, Vec<u8>>("raw") == raw);
    ensure!(row.get::<_, Vec<Option<String>>>("list") == list);
    ensure!(
        row.get::<_, serde_json::Value>("note") == note && row.get::<_, Mood>("mood") == Mood::Fine
    );
    ensure!(row.get::<_, uuid::Uuid>("ref") == reference && row.get::<_, i64>("big") == 1 << 40);
    ensure!(
        row.get::<_, i16>("small") == -3
            && row.get::<_, f64>("real8") == 0.1
            && row.get::<_, bool>("ok")
    );
    let range = client.query("SELECT $1::int4range::text", &[&"[1,3)"]).await;
    ensure!(range.is_err(), "a text is no range in the binary format");
    let any =
        client.query_one("SELECT $1 = ANY($2::int[]), unnest($2::int[])", &[&7, &vec![7]]).await?;
    ensure!(any.get::<_, bool>(0) && any.get::<_, i32>(1) == 7);
    Ok(())
}

/// Several statements are under way at once.
async fn pipelines(client: &Client) -> Result<()> {
    let work = (0..50).map(|n| async move {
        let row = client.query_one("SELECT $1::int * 2, pg_typeof($1)::text", &[&n]).await?;
        ensure!(row.get::<_, i32>(0) == n * 2 && row.get::<_, &str>(1) == "integer");
        Ok(())
    });
    futures_util::future::try_join_all(work).await?;
    let simple = client.simple_query("SELECT 1; SELECT 2 AS b").await?;
    ensure!(simple.len() >= 4, "{}", simple.len());
    Ok(())
}

async fn copies(client: &Client) -> Result<()> {
    let sink = client.copy_in("COPY tk (id, name, day) FROM STDIN (FORMAT binary)").await?;
    let writer = BinaryCopyInWriter::new(sink, &[Type::INT4, Type::TEXT, Type::DATE]);
    pin_mut!(writer);
    for id in 2..1000 {
        let day = NaiveDate::from_num_days_from_ce_opt(738_000 + id).unwrap_or_default();
        writer.as_mut().write(&[&id, &format!("name {id}"), &day]).await?;
    }
    ensure!(writer.finish().await? == 998);
    let rows = client
        .copy_out("COPY (SELECT id, name FROM tk ORDER BY id) TO STDOUT (FORMAT binary)")
        .await?;
    let rows: Vec<_> =
        BinaryCopyOutStream::new(rows, &[Type::INT4, Type::TEXT]).try_collect().await?;
    ensure!(rows.len() == 999 && rows[998].get::<&str>(1) == "name 999");
    let sink = client.copy_in("COPY tk (id, name) FROM STDIN (FORMAT csv)").await?;
    pin_mut!(sink);
    sink.send(&b"1000,\"a,b\"\n1001,c\n"[..]).await?;
    ensure!(sink.finish().await? == 2);
    Ok(())
}

async fn transactions(client: &mut Client) -> Result<()> {
    let mut outer = client.build_transaction().read_only(false).start().await?;
    outer.execute("UPDATE tk SET ok = false", &[]).await?;
    let inner = outer.savepoint("step").await?;
    inner.execute("DELETE FROM tk", &[]).await?;
    inner.rollback().await?;
    let portal = outer.bind("SELECT id FROM tk ORDER BY id", &[]).await?;
    let mut seen = 0;
    loop {
        let rows = outer.query_portal(&portal, 100).await?;
        seen += rows.len();
        if rows.len() < 100 {
            break;
        }
    }
    ensure!(seen == 1001, "{seen} rows");
    outer.rollback().await?;
    let row = client.query_one("SELECT count(*) FROM tk WHERE ok", &[]).await?;
    ensure!(row.get::<_, i64>(0) == 1);
    Ok(())
}

async fn errors(client: &Client) -> Result<()> {
    let error = client.execute("INSERT INTO tk (id) VALUES (1)", &[]).await.err();
    let error = error.as_ref().and_then(|error| error.as_db_error());
    ensure!(error.is_some_and(
        |e| *e.code() == SqlState::UNIQUE_VIOLATION && e.constraint() == Some("tk_pkey")
    ));
    let error = client.query("SELECT nothing FROM tk", &[]).await.err();
    ensure!(error.is_some_and(|error| error.code() == Some(&SqlState::UNDEFINED_COLUMN)));
    Ok(())
}

async fn cancel(client: &Client) -> Result<()> {
    let token = client.cancel_token();
    let slow = client.query("SELECT pg_sleep(30)", &[]);
    let stop = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        token.cancel_query(NoTls).await
    };
    let (slow, stop) = tokio::join!(slow, stop);
    stop?;
    ensure!(slow.err().is_some_and(|error| error.code() == Some(&SqlState::QUERY_CANCELED)));
    Ok(())
}
