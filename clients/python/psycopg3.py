"""psycopg 3: types in both formats, pipelines, COPY, server cursors, notifications, errors."""

import datetime
import decimal
import uuid

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

with psycopg.connect(autocommit=True) as connection:
    connection.execute("DROP TABLE IF EXISTS p3")
    connection.execute(
        "CREATE TABLE p3 (id int PRIMARY KEY, name text, price numeric(8,2), day date,"
        " moment timestamptz, key uuid, tags text[], body jsonb, raw bytea, ok bool, f float8)"
    )
    moment = datetime.datetime(2026, 2, 3, 4, 5, 6, 789, tzinfo=datetime.timezone.utc)
    row = (
        1, "Ä", decimal.Decimal("12.50"), datetime.date(2024, 2, 29), moment, uuid.UUID(int=7),
        ["a", None, 'b"'], psycopg.types.json.Jsonb({"a": [1, None]}), b"\x00\xff", True, 0.1,
    )
    places = ", ".join(["%s"] * len(row))
    connection.execute(f"INSERT INTO p3 VALUES ({places})", row)
    for binary in (False, True):
        cursor = connection.cursor(binary=binary)
        found = cursor.execute("SELECT * FROM p3 WHERE id = %s", (1,)).fetchone()
        expected = row[:7] + ({"a": [1, None]},) + row[8:]
        assert found == expected, (binary, found)

    # Declared types: a small number is a smallint to this driver.
    assert connection.execute("SELECT %s + 1", (1,)).fetchone() == (2,)
    assert connection.execute("SELECT %s::int8", (2**40,)).fetchone() == (2**40,)
    assert connection.execute("SELECT name FROM p3 WHERE id = ANY(%s)", ([1, 2],)).fetchall() == [("Ä",)]

    # A statement that is prepared by its fifth execution.
    for number in range(12):
        found = connection.execute("SELECT id FROM p3 WHERE id = %s", (number,)).fetchall()
        assert found == ([(1,)] if number == 1 else [])

    with connection.pipeline():
        connection.execute("INSERT INTO p3 (id) VALUES (2)")
        answer = connection.execute("SELECT count(*) FROM p3")
        assert answer.fetchone() == (2,)

    try:
        connection.execute("INSERT INTO p3 (id) VALUES (1)")
        raise AssertionError("no error")
    except psycopg.errors.UniqueViolation as error:
        assert error.diag.constraint_name == "p3_pkey", error.diag.constraint_name

    with connection.transaction():
        connection.execute("INSERT INTO p3 (id) VALUES (3)")
        try:
            with connection.transaction():
                connection.execute("INSERT INTO p3 (id) VALUES (1)")
        except psycopg.errors.UniqueViolation:
            pass
    assert connection.execute("SELECT count(*) FROM p3").fetchone() == (3,)

    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO p3 (id, name) VALUES (%s, %s)", [(i, str(i)) for i in range(10, 30)])
        assert cursor.rowcount == 20, cursor.rowcount

    for options in ("", " (FORMAT binary)"):
        connection.execute("DROP TABLE IF EXISTS p3_copy")
        connection.execute("CREATE TABLE p3_copy (a int, b text, c date)")
        with connection.cursor() as cursor:
            with cursor.copy(f"COPY p3_copy FROM STDIN{options}") as copy:
                if options:
                    copy.set_types(["int4", "text", "date"])
                for number in range(1000):
                    copy.write_row((number, None if number % 7 else "x\ty", datetime.date(2024, 1, 1)))
            with cursor.copy(f"COPY (SELECT * FROM p3_copy ORDER BY a) TO STDOUT{options}") as copy:
                copy.set_types(["int4", "text", "date"])
                rows = list(copy.rows())
        assert len(rows) == 1000 and rows[7] == (7, "x\ty", datetime.date(2024, 1, 1)), rows[7]

    with connection.transaction():
        with connection.cursor("named", row_factory=dict_row) as cursor:
            cursor.itersize = 7
            cursor.execute("SELECT id FROM p3 WHERE id >= %s ORDER BY id", (10,))
            assert [one["id"] for one in cursor] == list(range(10, 30))
    with connection.cursor("held", withhold=True) as cursor:
        cursor.execute("SELECT g FROM generate_series(1, 5) g")
        assert cursor.fetchmany(3) == [(1,), (2,), (3,)]

    connection.execute("LISTEN p3")
    with psycopg.connect(autocommit=True) as other:
        other.execute("NOTIFY p3, 'hello'")
    heard = next(connection.notifies(timeout=60))
    assert (heard.channel, heard.payload) == ("p3", "hello")

    notices = []
    connection.add_notice_handler(lambda notice: notices.append(notice.message_primary))
    connection.execute("DROP TABLE IF EXISTS nothing")
    assert notices == ['table "nothing" does not exist, skipping'], notices

    found = connection.execute(sql.SQL("SELECT {} FROM {}").format(sql.Identifier("id"), sql.Identifier("p3")))
    assert found.description[0].type_code == 23
    info = psycopg.types.TypeInfo.fetch(connection, "hstore")
    assert info is None
    info = psycopg.types.TypeInfo.fetch(connection, "uuid")
    assert info.oid == 2950 and info.array_oid == 2951
