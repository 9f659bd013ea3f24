// node-postgres: types, parameters, prepared statements, transactions, errors, notifications.
const assert = require('node:assert');
const { Client, Pool } = require('pg');

async function main() {
  const client = new Client();
  await client.connect();
  await client.query('DROP TABLE IF EXISTS np');
  await client.query('CREATE TABLE np (id int PRIMARY KEY, name text, n numeric(8,2), t timestamptz, a int[], j jsonb, b bytea, big bigint)');
  const moment = new Date(Date.UTC(2026, 1, 3, 4, 5, 6, 789));
  await client.query('INSERT INTO np VALUES ($1, $2, $3, $4, $5, $6, $7, $8)',
    [1, 'Ä', '12.50', moment, [1, null, 3], { a: [1] }, Buffer.from([0, 255]), '9007199254740993']);
  const { rows: [row], fields } = await client.query('SELECT * FROM np WHERE id = $1', [1]);
  assert.deepStrictEqual(row, { id: 1, name: 'Ä', n: '12.50', t: moment, a: [1, null, 3], j: { a: [1] },
    b: Buffer.from([0, 255]), big: '9007199254740993' });
  assert.ok(fields[1].tableID > 0 && fields[1].columnID === 2);
  for (let number = 0; number < 3; number += 1) {
    const found = await client.query({ name: 'by id', text: 'SELECT name FROM np WHERE id = $1', values: [number], rowMode: 'array' });
    assert.strictEqual(found.rowCount, number === 1 ? 1 : 0);
  }
  await assert.rejects(client.query('INSERT INTO np (id) VALUES ($1)', [1]), (error) => error.code === '23505' && error.constraint === 'np_pkey');
  await client.query('BEGIN');
  await client.query('DELETE FROM np');
  await client.query('ROLLBACK');
  const several = await client.query('SELECT 1 AS a; SELECT 2 AS b');
  assert.deepStrictEqual(several.map((one) => one.rows[0]), [{ a: 1 }, { b: 2 }]);
  const heard = new Promise((resolve) => client.on('notification', resolve));
  await client.query('LISTEN np');
  const pool = new Pool({ max: 3 });
  const counts = await Promise.all(Array.from({ length: 12 }, (_, number) => pool.query('SELECT $1::int AS n', [number])));
  assert.deepStrictEqual(counts.map((one) => one.rows[0].n), Array.from({ length: 12 }, (_, number) => number));
  await pool.query("NOTIFY np, 'hello'");
  assert.strictEqual((await heard).payload, 'hello');
  await pool.end();
  await client.end();
}

main().catch((error) => { console.error(error); process.exit(1); });
