// knex: schema builder, queries, transactions, a migration.
const assert = require('node:assert');
const knex = require('knex')({ client: 'pg', connection: {
  host: process.env.PGHOST, port: Number(process.env.PGPORT), user: process.env.PGUSER,
  password: process.env.PGPASSWORD, database: process.env.PGDATABASE,
}, pool: { min: 0, max: 3 } });

const migration = {
  getMigrations: async () => ['first'],
  getMigrationName: (name) => name,
  getMigration: async () => ({
    up: (k) => k.schema.createTable('kx_item', (table) => {
      table.increments('id');
      table.string('name', 40).notNullable().unique();
      table.integer('parent').references('kx_item.id').onDelete('CASCADE').index();
      table.decimal('price', 8, 2).defaultTo(0);
      table.jsonb('extra');
      table.timestamps(true, true);
    }),
    down: (k) => k.schema.dropTable('kx_item'),
  }),
};

async function main() {
  for (const name of ['kx_item', 'knex_migrations', 'knex_migrations_lock']) await knex.schema.dropTableIfExists(name);
  await knex.migrate.latest({ migrationSource: migration });
  assert.ok(await knex.schema.hasTable('kx_item'));
  assert.ok(await knex.schema.hasColumn('kx_item', 'price'));
  const [{ id }] = await knex('kx_item').insert({ name: 'a', price: 1.5, extra: { x: 1 } }).returning('id');
  await knex('kx_item').insert([{ name: 'b', parent: id }, { name: 'c', parent: id }]);
  await knex('kx_item').insert({ name: 'a', price: 3 }).onConflict('name').merge(['price']);
  const rows = await knex('kx_item as i').join('kx_item as p', 'p.id', 'i.parent').select('i.name', 'p.price').orderBy('i.name');
  assert.deepStrictEqual(rows, [{ name: 'b', price: '3.00' }, { name: 'c', price: '3.00' }]);
  await assert.rejects(knex.transaction(async (t) => { await t('kx_item').del(); throw new Error('no'); }), /no/);
  assert.strictEqual((await knex('kx_item').count('* as n').first()).n, '3');
  const columns = await knex('kx_item').columnInfo();
  assert.strictEqual(columns.name.maxLength, 40);
  await knex.schema.alterTable('kx_item', (table) => { table.renameColumn('price', 'cost'); table.boolean('sold').notNullable().defaultTo(false); });
  assert.strictEqual((await knex('kx_item').where({ name: 'a' }).first()).sold, false);
  await knex.migrate.rollback({ migrationSource: migration });
  assert.ok(!(await knex.schema.hasTable('kx_item')));
  await knex.destroy();
}

main().catch((error) => { console.error(error); process.exit(1); });
