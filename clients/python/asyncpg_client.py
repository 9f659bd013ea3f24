"""asyncpg: everything in binary, pools with their reset, cursors, COPY of records, types."""

import asyncio
import datetime
import decimal
import os
import uuid

import asyncpg


async def main():
    connection = await asyncpg.connect(database=os.environ["PGDATABASE"])
    await connection.execute("DROP TABLE IF EXISTS ap")
    await connection.execute(
        "CREATE TABLE ap (id bigint PRIMARY KEY, name text, n numeric(10,3), d date, t timestamptz,"
        " u uuid, a int[], j jsonb, i interval, r real, b bytea)"
    )
    moment = datetime.datetime(2026, 2, 3, 4, 5, 6, 789, tzinfo=datetime.timezone.utc)
    row = (1, "Ä", decimal.Decimal("-12.500"), datetime.date(1999, 12, 31), moment, uuid.UUID(int=9),
           [1, None, 3], '{"a": 1}', datetime.timedelta(days=2, hours=3), 0.5, b"\x00\x01")
    places = ", ".join(f"${number + 1}" for number in range(len(row)))
    await connection.execute(f"INSERT INTO ap VALUES ({places})", *row)
    found = await connection.fetchrow("SELECT * FROM ap WHERE id = $1", 1)
    assert tuple(found) == row, tuple(found)

    rows = [(number, str(number)) for number in range(2, 500)]
    assert await connection.copy_records_to_table("ap", records=rows, columns=["id", "name"]) == "COPY 498"
    await connection.executemany("UPDATE ap SET name = $2 WHERE id = $1", [(2, "two"), (3, "three")])
    async with connection.transaction():
        numbers = [one["id"] async for one in connection.cursor("SELECT id FROM ap ORDER BY id", prefetch=50)]
        assert numbers == list(range(1, 500))
        cursor = await connection.cursor("SELECT name FROM ap ORDER BY id")
        await cursor.forward(1)
        assert (await cursor.fetchrow())["name"] == "two"
    try:
        async with connection.transaction(isolation="serializable"):
            await connection.execute("INSERT INTO ap (id) VALUES (1)")
        raise AssertionError("no error")
    except asyncpg.UniqueViolationError as error:
        assert error.constraint_name == "ap_pkey"
    statement = await connection.prepare("SELECT id, name FROM ap WHERE id = any($1::bigint[]) ORDER BY id")
    assert [one["id"] for one in await statement.fetch([2, 3])] == [2, 3]
    assert [one.name for one in statement.get_attributes()] == ["id", "name"]
    heard = asyncio.get_running_loop().create_future()
    await connection.add_listener("ap", lambda _, pid, channel, payload: heard.set_result(payload))
    await connection.execute("SELECT pg_notify('ap', 'hello')")
    assert await asyncio.wait_for(heard, 60) == "hello"
    try:
        await connection.fetch("SELECT count(*) FROM ap a, ap b, ap c, ap d", timeout=0.2)
        raise AssertionError("no timeout")
    except asyncio.TimeoutError:
        pass
    assert await connection.fetchval("SELECT 1") == 1
    await connection.close()

    async with asyncpg.create_pool(database=os.environ["PGDATABASE"], min_size=2, max_size=4) as pool:
        async def one(number):
            async with pool.acquire() as lent:
                await lent.execute("SET search_path = public")
                return await lent.fetchval("SELECT $1::int", number)

        assert await asyncio.gather(*(one(number) for number in range(20))) == list(range(20))


asyncio.run(main())
