"""psqlODBC by pyodbc: types, parameters, catalog functions, transactions, DECLARE and FETCH."""

import datetime
import decimal
import os

import pyodbc


def connect(**options):
    words = {
        "DRIVER": "PostgreSQL Unicode", "SERVER": os.environ["PGHOST"], "PORT": os.environ["PGPORT"], "UID": os.environ["PGUSER"],
        "PWD": os.environ["PGPASSWORD"], "DATABASE": os.environ["PGDATABASE"], **options,
    }
    return pyodbc.connect(";".join(f"{name}={value}" for name, value in words.items()))


for options in ({}, {"UseServerSidePrepare": "0"}, {"UseDeclareFetch": "1", "Fetch": "7"}):
    connection = connect(**options)
    cursor = connection.cursor()
    cursor.execute("DROP TABLE IF EXISTS od_child")
    cursor.execute("DROP TABLE IF EXISTS od")
    cursor.execute("CREATE TABLE od (id int PRIMARY KEY, name varchar(20) NOT NULL, n numeric(8,2), d date, t timestamp, f float8, b boolean, raw bytea)")
    cursor.execute("CREATE TABLE od_child (od_id int REFERENCES od (id), note text)")
    row = (1, "Ä", decimal.Decimal("12.50"), datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 1, 2, 3), 0.5, True, b"\x00\xff")
    cursor.execute("INSERT INTO od VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    connection.commit()
    found = cursor.execute("SELECT * FROM od WHERE id = ?", 1).fetchone()
    assert tuple(found)[:6] == row[:6] and bytes(found[7]) == row[7], found
    cursor.executemany("INSERT INTO od (id, name) VALUES (?, ?)", [(number, str(number)) for number in range(2, 40)])
    assert len(cursor.execute("SELECT id FROM od ORDER BY id").fetchall()) == 39
    connection.rollback()
    assert cursor.execute("SELECT count(*) FROM od").fetchval() == 1
    try:
        cursor.execute("INSERT INTO od (id, name) VALUES (1, 'x')")
        raise AssertionError("no error")
    except pyodbc.IntegrityError as error:
        assert error.args[0] == "23505", error
    connection.rollback()
    assert [one.table_name for one in cursor.tables(table="od%", tableType="TABLE")] == ["od", "od_child"]
    columns = [(one.column_name, one.type_name, one.nullable) for one in cursor.columns(table="od")]
    assert columns[:3] == [("id", "int4", 0), ("name", "varchar", 0), ("n", "numeric", 1)], columns
    assert [one.column_name for one in cursor.primaryKeys("od")] == ["id"]
    assert "od_pkey" in [one.index_name for one in cursor.statistics("od")]
    keys = [(one.pktable_name, one.fktable_name, one.fkcolumn_name) for one in cursor.foreignKeys(foreignTable="od_child")]
    assert keys == [("od", "od_child", "od_id")], keys
    assert cursor.getTypeInfo().fetchone() is not None
    assert connection.getinfo(pyodbc.SQL_DBMS_VER).startswith("15"), connection.getinfo(pyodbc.SQL_DBMS_VER)
    connection.close()
