// The status page in a browser: what it shows while statements run and one session waits for
// another. The arguments are the page's address, the browser, and a file for a picture, if any.
const assert = require('assert');
const { chromium } = require('playwright-core');
const { Client } = require('pg');

const [address, browser, picture] = process.argv.slice(2);

async function connect(application) {
  const client = new Client({ application_name: application });
  await client.connect();
  return client;
}

/** Runs short statements until it is told to stop. */
async function work(place, stopped) {
  const client = await connect('load ' + place);
  for (let round = 0; !stopped.now; round++) {
    const id = (place * 131 + round) % 500;
    await client.query('UPDATE accounts SET balance = balance + $1 WHERE id = $2', [round % 7, id]);
    await client.query('SELECT balance FROM accounts WHERE id = $1', [id]);
    if (round % 50 === 0) await client.query('SELECT branch, sum(balance) FROM accounts GROUP BY branch');
  }
  await client.end();
}

async function rows(page, id) {
  return page.$$eval(`#${id} tr`, (all) =>
    all.map((row) => [...row.cells].map((cell) => cell.textContent)));
}

async function main() {
  const first = await connect('setup');
  await first.query('DROP TABLE IF EXISTS accounts');
  await first.query('CREATE TABLE accounts (id int PRIMARY KEY, branch int, balance bigint)');
  await first.query('INSERT INTO accounts SELECT i, i % 10, 0 FROM generate_series(0, 999) g(i)');
  await assert.rejects(first.query('SELECT 1 / 0'));
  const stopped = { now: false };
  const working = [0, 1, 2].map((place) => work(place, stopped));
  const holder = await connect('holder');
  const waiter = await connect('waiter');
  await holder.query('BEGIN');
  await holder.query('UPDATE accounts SET balance = 1 WHERE id = 900');
  const waiting = waiter.query('UPDATE accounts SET balance = 2 WHERE id = 900');

  const engine = await chromium.launch({ executablePath: browser, args: ['--no-sandbox'] });
  const page = await engine.newPage({ viewport: { width: 1180, height: 1000 } });
  const foreign = [], problems = [];
  page.on('request', (request) => request.url().startsWith(address) || foreign.push(request.url()));
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('console', (message) => message.type() === 'error' && problems.push(message.text()));
  await page.goto(address);
  // A rate needs two answers of the server.
  await page.waitForFunction(() => /^[\d,.]+$/.test(
    [...document.querySelectorAll('#figures div')].find((it) => it.textContent.includes('Statements per second'))
      ?.querySelector('b').textContent ?? ''));
  await page.waitForTimeout(2500);
  const figures = Object.fromEntries(await page.$$eval('#figures div', (all) =>
    all.map((box) => [box.lastChild.textContent, box.firstChild.textContent])));
  for (const name of ['Sessions', 'Statements per second', 'Mean statement',
    '50 % of statements within', '95 % of statements within', '99 % of statements within', 'Waits for locks', 'Commits per second', 'Log flushes per second',
    'Open transactions', 'Oldest transaction', 'Cache', 'Cache hits', 'Checkpoints']) {
    assert(figures[name], `${name} is shown: ${JSON.stringify(figures)}`);
  }
  assert(Number(figures['Statements per second'].replaceAll(',', '')) > 10, figures['Statements per second']);
  assert.match(figures['99 % of statements within'], /s$/);
  const broken = Object.entries(figures).filter(([, value]) => /NaN|undefined|null/.test(value));
  assert.deepStrictEqual(broken, []);
  assert.strictEqual(figures['Waits for locks'], '1');
  const sessions = await rows(page, 'sessions');
  const numbered = (application) => sessions.find((row) => row[2] === application)[0];
  assert.deepStrictEqual(sessions.filter((row) => row[2].startsWith('load')).length, 3);
  const [held, waits] = ['holder', 'waiter'].map(numbered);
  const transaction = (await rows(page, 'transactions')).find((row) => row[0] === waits);
  assert.strictEqual(transaction[6], held);
  assert.match(transaction[7], /balance = 2/);
  const lock = (await rows(page, 'locks')).find((row) => row[4] === 'no');
  assert.deepStrictEqual([lock[0], lock[1], lock[7]], [waits, 'transaction', held]);
  assert((await rows(page, 'statements')).some((row) => /^UPDATE accounts/.test(row[7])));
  assert((await rows(page, 'failures')).some((row) => row[0] === '22012'));
  if (picture) await page.screenshot({ path: picture });
  assert.deepStrictEqual([foreign, problems], [[], []]);
  await engine.close();
  await holder.query('ROLLBACK');
  await waiting;
  stopped.now = true;
  await Promise.all(working);
  await Promise.all([first, holder, waiter].map((client) => client.end()));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
