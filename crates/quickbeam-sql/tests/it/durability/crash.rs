//! A process in which four threads run the transactions of TPC-B through SQL is killed, over and
//! over, in one and the same directory. Each time the balances of branches, tellers and accounts
//! agree with the history, every transaction that was acknowledged is in it once, and nothing is
//! half there.
//!
//! `QUICKBEAM_CRASH_ROUNDS` sets how many times each kind of environment is killed;
//! `QUICKBEAM_SEED` repeats the waits, not the moments.

#[path = "../../../../quickbeam/tests/common/kill.rs"]
mod kill;

use std::path::Path;

use kill::{
    Acknowledgements, THREADS, assert_kept, busy_options, draw_wait, orders, run_and_kill,
    work_until_killed,
};
use quickbeam::Durability;
use quickbeam_sql::{Connection, SqlDatabase, Statement, params};
use quickbeam_testing::{Random, first_seed, rounds};

const BRANCHES: i64 = 4;
const TELLERS: i64 = 40;
const ACCOUNTS: i64 = 2_000;

const TABLES: &str = "
    CREATE TABLE branches (id BIGINT PRIMARY KEY, balance BIGINT NOT NULL, filler CHAR(84));
    CREATE TABLE tellers (id BIGINT PRIMARY KEY, branch BIGINT NOT NULL REFERENCES branches, balance BIGINT NOT NULL);
    CREATE TABLE accounts (id BIGINT, branch BIGINT NOT NULL, balance BIGINT NOT NULL, filler CHAR(84), PRIMARY KEY (id) USING HASH);
    CREATE TABLE history (teller BIGINT NOT NULL, branch BIGINT NOT NULL, account BIGINT NOT NULL, delta BIGINT NOT NULL,
        thread BIGINT NOT NULL, counter BIGINT NOT NULL, at TIMESTAMP DEFAULT now(), UNIQUE (thread, counter));
    CREATE INDEX history_branch ON history (branch);";

/// A number below `end`.
fn draw(random: &mut Random, end: i64) -> i64 {
    random.below(end as usize) as i64
}

fn open(directory: &Path, durability: Durability) -> SqlDatabase {
    SqlDatabase::open(directory.join("environment"), busy_options(durability)).unwrap()
}

fn set_up(directory: &Path, durability: Durability) {
    let database = open(directory, durability);
    let connection = database.connect();
    connection.execute_script(TABLES).unwrap();
    connection.begin().unwrap();
    for id in 0..BRANCHES {
        connection.execute("INSERT INTO branches VALUES ($1, 0, '')", params![id]).unwrap();
    }
    for id in 0..TELLERS {
        let row = params![id, id % BRANCHES];
        connection.execute("INSERT INTO tellers VALUES ($1, $2, 0)", row).unwrap();
    }
    for id in 0..ACCOUNTS {
        let row = params![id, id % BRANCHES];
        connection.execute("INSERT INTO accounts VALUES ($1, $2, 0, '')", row).unwrap();
    }
    connection.commit().unwrap();
    close(database, connection);
}

fn close(database: SqlDatabase, connection: Connection) {
    let environment = database.environment().clone();
    drop((connection, database));
    environment.close().unwrap();
}

fn number(connection: &Connection, query: &str) -> i64 {
    let mut rows = connection.query(query, &[]).unwrap();
    rows.next().unwrap().unwrap().get(0).unwrap()
}

fn counter_of(connection: &Connection, thread: u64) -> u64 {
    let query = format!("SELECT coalesce(max(counter), 0) FROM history WHERE thread = {thread}");
    number(connection, &query) as u64
}

/// The statements of the transaction.
struct Transfer<'c> {
    account: Statement<'c>,
    balance: Statement<'c>,
    teller: Statement<'c>,
    branch: Statement<'c>,
    history: Statement<'c>,
}

impl<'c> Transfer<'c> {
    fn new(connection: &'c Connection) -> quickbeam_sql::Result<Transfer<'c>> {
        let prepare = |text: &str| connection.prepare(text);
        Ok(Transfer {
            account: prepare("UPDATE accounts SET balance = balance + $2 WHERE id = $1")?,
            balance: prepare("SELECT balance FROM accounts WHERE id = $1")?,
            teller: prepare("UPDATE tellers SET balance = balance + $2 WHERE id = $1")?,
            branch: prepare("UPDATE branches SET balance = balance + $2 WHERE id = $1")?,
            history: prepare(
                "INSERT INTO history (teller, branch, account, delta, thread, counter) VALUES ($1, $2, $3, $4, $5, $6)",
            )?,
        })
    }

    fn run(
        &mut self,
        connection: &Connection,
        random: &mut Random,
        (thread, counter): (u64, u64),
    ) -> quickbeam_sql::Result<()> {
        let (account, teller) = (draw(random, ACCOUNTS), draw(random, TELLERS));
        let (branch, delta) = (teller % BRANCHES, draw(random, 1_999_999) - 999_999);
        connection.begin()?;
        self.account.execute(params![account, delta])?;
        self.balance.query(params![account])?.collect()?;
        self.teller.execute(params![teller, delta])?;
        self.branch.execute(params![branch, delta])?;
        let row = params![teller, branch, account, delta, thread as i64, counter as i64];
        self.history.execute(row)?;
        connection.commit()
    }
}

/// Not a test by itself: the process that is killed.
#[test]
fn victim() {
    let Some((directory, durability)) = orders() else { return };
    let database = open(&directory, durability);
    let work = |thread: u64| {
        let connection = database.connect();
        let mut counter = counter_of(&connection, thread);
        let mut random = Random::new(counter * THREADS + thread);
        let mut transfer = Transfer::new(&connection).unwrap();
        let mut acknowledgements = Acknowledgements::of(&directory, thread);
        loop {
            match transfer.run(&connection, &mut random, (thread, counter + 1)) {
                Ok(()) => counter += 1,
                Err(error) => {
                    assert!(error.is_retryable(), "{error}");
                    if connection.in_transaction() {
                        connection.rollback().unwrap();
                    }
                    continue;
                }
            }
            acknowledgements.note(counter);
        }
    };
    work_until_killed(work);
}

/// Whether what there is hangs together.
fn check(connection: &Connection, what: &str) {
    for (table, rows) in [("branches", BRANCHES), ("tellers", TELLERS), ("accounts", ACCOUNTS)] {
        let found = number(connection, &format!("SELECT count(*) FROM {table}"));
        assert_eq!(found, rows, "{what}: rows of {table}");
    }
    // Each branch, teller and account on its own, so that two faults cannot make up for each other.
    for (table, column) in [("branches", "branch"), ("tellers", "teller"), ("accounts", "account")]
    {
        let query = format!(
            "SELECT t.id, t.balance, coalesce(h.total, 0) FROM {table} t
             LEFT JOIN (SELECT {column} AS id, sum(delta)::BIGINT AS total FROM history GROUP BY {column}) h USING (id)
             WHERE t.balance <> coalesce(h.total, 0)"
        );
        let wrong = connection.query(&query, &[]).unwrap().collect().unwrap();
        assert!(wrong.is_empty(), "{what}: {table} (id, balance, by the history): {wrong:?}");
    }
    let sums: Vec<i64> = ["branches", "tellers", "accounts"]
        .iter()
        .map(|table| number(connection, &format!("SELECT sum(balance)::BIGINT FROM {table}")))
        .collect();
    let deltas = number(connection, "SELECT coalesce(sum(delta), 0)::BIGINT FROM history");
    assert_eq!(sums, [deltas; 3], "{what}: balances of branches, tellers, accounts");
    // The indexes have the rows that the table has.
    let rows = number(connection, "SELECT count(*) FROM history");
    for filter in ["branch >= 0", "thread >= 0"] {
        let found = number(connection, &format!("SELECT count(*) FROM history WHERE {filter}"));
        assert_eq!(found, rows, "{what}: by {filter}");
    }
}

/// Kills a process again and again; `keeps`: what it acknowledged survives.
fn kill_again_and_again(durability: Durability, keeps: bool, times: usize) {
    let seed = first_seed();
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    set_up(directory, durability);
    for round in 0..rounds("QUICKBEAM_CRASH_ROUNDS", times) {
        let wait = draw_wait(&mut random, 40, 500);
        run_and_kill(directory, "durability::crash::victim", durability, wait);

        let what = format!("seed {seed}, round {round}, killed after {wait:?}");
        let database = open(directory, durability);
        let connection = database.connect();
        check(&connection, &what);
        for thread in 0..THREADS {
            let last = counter_of(&connection, thread);
            let query = format!("SELECT count(*) FROM history WHERE thread = {thread}");
            let count = number(&connection, &query) as u64;
            assert_eq!(
                count, last,
                "{what}: thread {thread}: transactions in the middle are missing"
            );
            if keeps {
                assert_kept(directory, thread, last, &what);
            }
        }
        let report = database.environment().verify().unwrap();
        assert_eq!(report.complaints, Vec::<String>::new(), "{what}");
        if random.chance(50) {
            close(database, connection);
        }
    }
    let connection = open(directory, durability).connect();
    let commits = number(&connection, "SELECT count(*) FROM history");
    println!("{durability}: {commits} commits");
    assert!(commits > 20, "only {commits} commits survived in all rounds");
}

#[test]
fn with_sync_every_acknowledged_transaction_is_there() {
    kill_again_and_again(Durability::Sync, true, 6);
}

#[test]
fn with_write_nosync_the_end_of_the_process_takes_nothing() {
    kill_again_and_again(Durability::WriteNoSync, true, 5);
}

#[test]
fn without_waiting_for_the_log_balances_still_agree() {
    kill_again_and_again(Durability::NoSync, false, 4);
}

#[test]
fn without_a_log_balances_are_those_of_a_checkpoint() {
    kill_again_and_again(Durability::InMemory, false, 5);
}
