"""psycopg 2: types, cursors with a name, COPY, autocommit, errors, savepoints, notices."""

import datetime
import decimal
import io

import psycopg2
import psycopg2.extras
from psycopg2 import errors, extensions

connection = psycopg2.connect("")
cursor = connection.cursor()
cursor.execute("DROP TABLE IF EXISTS p2")
cursor.execute("CREATE TABLE p2 (id serial PRIMARY KEY, name varchar(20), n numeric, d date, t timestamp, a int[], j json)")
cursor.execute(
    "INSERT INTO p2 (name, n, d, t, a, j) VALUES (%s, %s, %s, %s, %s, %s) RETURNING id",
    ("it's", decimal.Decimal("1.50"), datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 1, 2, 3),
     [1, None, 3], psycopg2.extras.Json({"a": 1})),
)
assert cursor.fetchone() == (1,)
connection.commit()
cursor.execute("SELECT name, n, d, t, a, j FROM p2")
found = cursor.fetchone()
assert found == ("it's", decimal.Decimal("1.50"), datetime.date(2024, 2, 29),
                 datetime.datetime(2024, 2, 29, 1, 2, 3), [1, None, 3], {"a": 1}), found
assert cursor.description[0].type_code == 1043 and cursor.description[0].table_oid, cursor.description[0]

cursor.execute("SAVEPOINT s")
try:
    cursor.execute("INSERT INTO p2 (id) VALUES (1)")
    raise AssertionError("no error")
except errors.UniqueViolation as error:
    assert error.diag.constraint_name == "p2_pkey"
try:
    cursor.execute("SELECT 1")
    raise AssertionError("no error")
except errors.InFailedSqlTransaction:
    pass
cursor.execute("ROLLBACK TO s")
cursor.execute("SELECT 1")
connection.rollback()

psycopg2.extras.execute_values(cursor, "INSERT INTO p2 (name) VALUES %s", [(str(i),) for i in range(50)])
connection.commit()
with connection.cursor("server_side") as named:
    named.itersize = 9
    named.execute("SELECT name FROM p2 WHERE n IS NULL ORDER BY id")
    assert [row[0] for row in named] == [str(i) for i in range(50)]
connection.commit()

buffer = io.StringIO("x\t\\N\ny\t2024-01-01\n")
cursor.copy_expert("COPY p2 (name, d) FROM STDIN", buffer)
out = io.StringIO()
cursor.copy_expert("COPY (SELECT name, d FROM p2 WHERE name IN ('x', 'y') ORDER BY name) TO STDOUT CSV HEADER", out)
assert out.getvalue() == "name,d\nx,\ny,2024-01-01\n", out.getvalue()
connection.commit()

cursor.execute("DROP TABLE IF EXISTS nothing")
assert connection.notices[-1] == 'NOTICE:  table "nothing" does not exist, skipping\n', connection.notices
connection.commit()
connection.set_session(isolation_level="SERIALIZABLE", readonly=True)
cursor.execute("SELECT current_setting('transaction_isolation'), current_setting('transaction_read_only')")
assert cursor.fetchone() == ("serializable", "on")
try:
    cursor.execute("DELETE FROM p2")
    raise AssertionError("no error")
except errors.ReadOnlySqlTransaction:
    connection.rollback()
connection.set_session(isolation_level="DEFAULT", readonly=False)
connection.reset()
connection.set_isolation_level(extensions.ISOLATION_LEVEL_AUTOCOMMIT)
cursor.execute("LISTEN p2")
cursor.execute("NOTIFY p2, 'self'")
connection.poll()
assert [(one.channel, one.payload) for one in connection.notifies] == [("p2", "self")]
assert connection.server_version // 10000 == 15
assert cursor.mogrify("%s", ("ä",)) == "'ä'".encode()
