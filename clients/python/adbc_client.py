"""ADBC with Arrow tables: ingestion by COPY, reads in batches, parameters, metadata."""
import os

import adbc_driver_postgresql.dbapi as adbc
import pyarrow


def check(what, ok):
    if not ok:
        raise SystemExit(f"{what}")


environment = {name: os.environ[f"PG{name.upper()}"] for name in ("host", "port", "user", "password")}
address = "postgresql://{user}:{password}@{host}:{port}/any".format(**environment)
with adbc.connect(address) as connection, connection.cursor() as cursor:
    cursor.execute("DROP TABLE IF EXISTS adbc_item")
    rows = pyarrow.table({
        "id": pyarrow.array(range(5_000), pyarrow.int64()),
        "name": pyarrow.array([f"name {at}" if at % 7 else None for at in range(5_000)]),
        "price": pyarrow.array([at / 4 for at in range(5_000)], pyarrow.float64()),
    })
    check("rows ingested", cursor.adbc_ingest("adbc_item", rows, mode="create") == 5_000)
    connection.commit()
    cursor.execute("SELECT id, name, price FROM adbc_item ORDER BY id")
    found = cursor.fetch_arrow_table()
    check("the table read back", found.equals(rows.cast(found.schema)))
    cursor.execute("SELECT count(*), sum(price) FROM adbc_item WHERE id < $1", (100,))
    check("parameters", cursor.fetchone() == (100, 99 * 100 / 8))
    cursor.execute("SELECT true, 7::smallint, 'x'::bytea, DATE '2024-02-29', NULL::int")
    values = cursor.fetch_arrow_table().to_pylist()[0].values()
    check("types", [str(value) for value in values] == ["True", "7", "b'x'", "2024-02-29", "None"])
    check("schema", connection.adbc_get_table_schema("adbc_item").names == ["id", "name", "price"])
    cursor.execute("DELETE FROM adbc_item WHERE id = 0")
    connection.rollback()
    cursor.execute("SELECT count(*) FROM adbc_item")
    check("rollback", cursor.fetchone() == (5_000,))
    try:
        cursor.execute("SELECT nothing")
        check("an error", False)
    except adbc.Error as error:
        check("its state", error.sqlstate == "42703")
