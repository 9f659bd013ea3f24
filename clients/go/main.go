// pgx and lib/pq: types in binary and text, prepared statements, COPY, batches, notifications.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/lib/pq"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func check(ok bool, what ...any) {
	if !ok {
		panic(fmt.Sprintln(what...))
	}
}

func withPgx() {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, "sslmode=disable")
	must(err)
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, `DROP TABLE IF EXISTS px;
		CREATE TABLE px (id bigint PRIMARY KEY, name text, t timestamptz, a int[], j jsonb, n numeric(8,2), b bytea)`)
	must(err)
	moment := time.Date(2026, 2, 3, 4, 5, 6, 789000, time.UTC)
	_, err = conn.Exec(ctx, "INSERT INTO px VALUES ($1, $2, $3, $4, $5, $6, $7)", 1, "Ä", moment, []int32{1, 2}, map[string]int{"a": 1}, "12.5", []byte{0, 255})
	must(err)
	var name, number string
	var found time.Time
	var list []int32
	var body map[string]int
	row := conn.QueryRow(ctx, "SELECT name, t, a, j, n::text FROM px WHERE id = $1", 1)
	must(row.Scan(&name, &found, &list, &body, &number))
	check(name == "Ä" && found.Equal(moment) && len(list) == 2 && body["a"] == 1 && number == "12.50", name, found, list, body, number)
	rows := [][]any{}
	for i := 2; i < 500; i++ {
		rows = append(rows, []any{int64(i), fmt.Sprint(i), moment})
	}
	count, err := conn.CopyFrom(ctx, pgx.Identifier{"px"}, []string{"id", "name", "t"}, pgx.CopyFromRows(rows))
	must(err)
	check(count == 498, count)
	batch := &pgx.Batch{}
	for i := 0; i < 10; i++ {
		batch.Queue("UPDATE px SET name = $2 WHERE id = $1", i, "batch")
	}
	must(conn.SendBatch(ctx, batch).Close())
	ids, err := conn.Query(ctx, "SELECT id FROM px WHERE name = 'batch' ORDER BY id")
	must(err)
	all, err := pgx.CollectRows(ids, pgx.RowTo[int64])
	must(err)
	check(len(all) == 9, all)
	_, err = conn.Exec(ctx, "INSERT INTO px (id) VALUES ($1)", 1)
	var failure *pgconn.PgError
	check(errors.As(err, &failure) && failure.Code == "23505" && failure.ConstraintName == "px_pkey", err)
	must(pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "DELETE FROM px WHERE id > 100")
		return err
	}))
	_, err = conn.Exec(ctx, "LISTEN px")
	must(err)
	pool, err := pgxpool.New(ctx, "sslmode=disable pool_max_conns=3")
	must(err)
	defer pool.Close()
	_, err = pool.Exec(ctx, "SELECT pg_notify('px', 'hello')")
	must(err)
	heard, err := conn.WaitForNotification(ctx)
	must(err)
	check(heard.Payload == "hello", heard)
	limited, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	_, err = pool.Exec(limited, "SELECT count(*) FROM px a, px b, px c, px d, px e")
	check(err != nil, "no timeout")
	must(pool.QueryRow(ctx, "SELECT name FROM px WHERE id = $1", pgx.QueryExecModeSimpleProtocol, 1).Scan(&name))
	check(name == "batch", name)
}

func withPq() {
	db, err := sql.Open("postgres", "sslmode=disable")
	must(err)
	defer db.Close()
	_, err = db.Exec("DROP TABLE IF EXISTS lp")
	must(err)
	_, err = db.Exec("CREATE TABLE lp (id serial PRIMARY KEY, name text, list text[])")
	must(err)
	var id int
	must(db.QueryRow("INSERT INTO lp (name, list) VALUES ($1, $2) RETURNING id", "a", pq.Array([]string{"x", "y"})).Scan(&id))
	var list []string
	must(db.QueryRow("SELECT list FROM lp WHERE id = $1", id).Scan(pq.Array(&list)))
	check(len(list) == 2 && list[1] == "y", list)
	tx, err := db.Begin()
	must(err)
	copying, err := tx.Prepare(pq.CopyIn("lp", "name"))
	must(err)
	for i := 0; i < 100; i++ {
		_, err = copying.Exec(fmt.Sprint(i))
		must(err)
	}
	_, err = copying.Exec()
	must(err)
	must(copying.Close())
	must(tx.Commit())
	var count int
	must(db.QueryRow("SELECT count(*) FROM lp").Scan(&count))
	check(count == 101, count)
	_, err = db.Exec("INSERT INTO lp (id) VALUES ($1)", id)
	var failure *pq.Error
	check(errors.As(err, &failure) && failure.Code == "23505", err)
	listener := pq.NewListener("sslmode=disable", time.Second, time.Minute, nil)
	must(listener.Listen("lp"))
	_, err = db.Exec("NOTIFY lp, 'hello'")
	must(err)
	heard := <-listener.Notify
	check(heard.Extra == "hello", heard)
	must(listener.Close())
}

func main() {
	switch os.Args[1] {
	case "pgx":
		withPgx()
	case "pq":
		withPq()
	}
}
