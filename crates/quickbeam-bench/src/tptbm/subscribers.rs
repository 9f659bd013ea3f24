//! The table of subscribers: its rows, the operations on it, and what it must hold after them.
//!
//! As in TimesTen's program: the key is a pair of numbers below `--key`; reads and updates choose
//! both at random; insertions go on above, deletions from the beginning, each thread in rows of its
//! own. An update writes a text that depends on the key alone, so the content to be expected can
//! be computed whatever the order of the threads was.

use std::collections::HashSet;
use std::fmt::Write;

use anyhow::{Result, ensure};

use crate::sql::retry::{settled, transaction};
use crate::sql::{Access, Prepared, SqlConnection, Value};

/// Rows in a transaction that populates.
const POPULATE_ROWS: usize = 256;

/// `last_calling_party` of a new row.
const NOBODY: &str = "0000000000";

/// Definition of the table; `index` is written after its primary key, `options` at the end.
pub fn definition(index: &str, options: &str) -> String {
    format!(
        "CREATE TABLE vpn_users (vpn_id INTEGER NOT NULL, vpn_nb INTEGER NOT NULL, directory_nb CHAR(10) NOT NULL, \
         last_calling_party CHAR(10) NOT NULL, descr CHAR(100) NOT NULL, PRIMARY KEY (vpn_id, vpn_nb){index}){options}"
    )
}

/// The procedure of `--plsql`: the statements of `--multiop` in one call.
pub const PROCEDURE: &str = "CREATE OR REPLACE FUNCTION multiop(i int, n int, directory char, caller char, description char, \
    r1 int, s1 int, r2 int, s2 int, r3 int, s3 int, u int, v int, party char) RETURNS int LANGUAGE plpgsql AS $$ \
    DECLARE found_rows int; changed int; d char(10); l char(10); t char(100); BEGIN \
    INSERT INTO vpn_users VALUES (i, n, directory, caller, description); \
    SELECT directory_nb, last_calling_party, descr INTO d, l, t FROM vpn_users WHERE vpn_id = r1 AND vpn_nb = s1; \
    SELECT directory_nb, last_calling_party, descr INTO d, l, t FROM vpn_users WHERE vpn_id = r2 AND vpn_nb = s2; \
    SELECT directory_nb, last_calling_party, descr INTO d, l, t FROM vpn_users WHERE vpn_id = r3 AND vpn_nb = s3; \
    UPDATE vpn_users SET last_calling_party = party WHERE vpn_id = u AND vpn_nb = v; \
    GET DIAGNOSTICS changed = ROW_COUNT; RETURN changed; END $$";

/// The key of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// `vpn_id`.
    pub id: i32,
    /// `vpn_nb`.
    pub number: i32,
}

/// The texts of rows, written into the same memory again and again.
#[derive(Default)]
pub struct Texts {
    directory: String,
    description: String,
    party: String,
}

impl Texts {
    fn directory(&mut self, key: Key) -> &str {
        self.directory.clear();
        // Writing to a string does not fail.
        let _ = write!(self.directory, "55{}{}", key.id, key.number);
        pad(&mut self.directory, 10)
    }

    fn description(&mut self, key: Key) -> &str {
        self.description.clear();
        let Key { id, number } = key;
        let _ = write!(
            self.description,
            "<place holder for description of VPN {id} extension {number}>"
        );
        pad(&mut self.description, 100)
    }

    fn party(&mut self, key: Key) -> &str {
        self.party.clear();
        let _ = write!(self.party, "{}x{}", key.id, key.number);
        pad(&mut self.party, 10)
    }
}

fn pad(text: &mut String, length: usize) -> &str {
    while text.len() < length {
        text.push(' ');
    }
    text
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Read a row.
    Read(Key),
    /// Change a row.
    Update(Key),
    /// Add a row.
    Insert(Key),
    /// Remove a row.
    Delete(Key),
}

/// The statements of a connection.
pub struct TptbmStatements {
    read: Prepared,
    update: Prepared,
    insert: Prepared,
    delete: Prepared,
    texts: Texts,
}

impl TptbmStatements {
    /// Prepares them.
    pub fn prepare(connection: &mut dyn SqlConnection) -> Result<TptbmStatements> {
        Ok(TptbmStatements {
            read: connection.prepare(
                "SELECT directory_nb, last_calling_party, descr FROM vpn_users WHERE vpn_id = $1 AND vpn_nb = $2",
            )?,
            update: connection.prepare(
                "UPDATE vpn_users SET last_calling_party = $1 WHERE vpn_id = $2 AND vpn_nb = $3",
            )?,
            insert: connection.prepare("INSERT INTO vpn_users VALUES ($1, $2, $3, $4, $5)")?,
            delete: connection
                .prepare("DELETE FROM vpn_users WHERE vpn_id = $1 AND vpn_nb = $2")?,
            texts: Texts::default(),
        })
    }

    /// Runs one operation; returns how many rows it found.
    pub fn run(
        &mut self,
        connection: &mut dyn SqlConnection,
        operation: Operation,
    ) -> crate::engine::OpResult<u64> {
        let (Operation::Read(key)
        | Operation::Update(key)
        | Operation::Insert(key)
        | Operation::Delete(key)) = operation;
        let (id, number) = (Value::Integer(key.id), Value::Integer(key.number));
        match operation {
            Operation::Read(_) => {
                let (mut rows, mut bytes) = (0, 0);
                connection.query(self.read, &[id, number], &mut |row| {
                    rows += 1;
                    // Every column is taken out, as an application would.
                    bytes += (0..3)
                        .filter_map(|column| row.text(column))
                        .map(<[u8]>::len)
                        .sum::<usize>();
                })?;
                std::hint::black_box(bytes);
                Ok(rows)
            }
            Operation::Update(_) => {
                let party = Value::Text(self.texts.party(key));
                connection.execute(self.update, &[party, id, number])
            }
            Operation::Insert(_) => {
                self.texts.directory(key);
                self.texts.description(key);
                let texts = &self.texts;
                let (directory, description) = (&texts.directory, &texts.description);
                let party = Value::Text(NOBODY);
                let texts = [Value::Text(directory), party, Value::Text(description)];
                connection.execute(self.insert, &[id, number, texts[0], texts[1], texts[2]])
            }
            Operation::Delete(_) => connection.execute(self.delete, &[id, number]),
        }
    }
}

/// A call of the procedure: its statement, and the parameters of one call.
pub struct Procedure {
    call: Prepared,
    texts: Texts,
}

impl Procedure {
    /// Prepares the call.
    pub fn prepare(connection: &mut dyn SqlConnection) -> Result<Procedure> {
        let places: Vec<String> = (1..=14).map(|place| format!("${place}")).collect();
        let call = connection.prepare(&format!("SELECT multiop({})", places.join(", ")))?;
        Ok(Procedure { call, texts: Texts::default() })
    }

    /// Calls it; returns how many rows its update found.
    pub fn call(
        &mut self,
        connection: &mut dyn SqlConnection,
        insert: Key,
        reads: [Key; 3],
        update: Key,
    ) -> crate::engine::OpResult<u64> {
        self.texts.directory(insert);
        self.texts.description(insert);
        self.texts.party(update);
        let numbers = |key: Key| [Value::Integer(key.id), Value::Integer(key.number)];
        let mut parameters = numbers(insert).to_vec();
        parameters
            .extend([&self.texts.directory, NOBODY, &self.texts.description].map(Value::Text));
        reads.into_iter().for_each(|key| parameters.extend(numbers(key)));
        parameters.extend(numbers(update));
        parameters.push(Value::Text(&self.texts.party));
        let mut changed = 0;
        connection.query(self.call, &parameters, &mut |row| {
            changed = row.integer(0).unwrap_or(-1) as u64;
        })?;
        Ok(changed)
    }
}

/// All keys below `key`, in order.
pub fn keys(key: u32) -> impl Iterator<Item = Key> {
    let key = key as i32;
    (0..key).flat_map(move |id| (0..key).map(move |number| Key { id, number }))
}

/// Adds up to `rows` rows one by one, some hundred in each transaction, until `enough` says so;
/// returns how many were added.
pub fn populate(
    connection: &mut dyn SqlConnection,
    key: u32,
    mut enough: impl FnMut() -> bool,
) -> Result<u64> {
    let mut statements = TptbmStatements::prepare(connection)?;
    let mut rows = 0;
    let mut keys = keys(key);
    loop {
        let batch: Vec<Key> = keys.by_ref().take(POPULATE_ROWS).collect();
        if batch.is_empty() || enough() {
            return Ok(rows);
        }
        transaction(connection, Access::Write, |c| {
            batch.iter().try_for_each(|&key| statements.run(c, Operation::Insert(key)).map(|_| ()))
        })?;
        rows += batch.len() as u64;
    }
}

/// Adds all rows in the engine's fastest way.
pub fn load(connection: &mut dyn SqlConnection, key: u32) -> Result<()> {
    connection.load("vpn_users", 5, &mut |add| {
        let mut texts = Texts::default();
        keys(key).try_for_each(|key| {
            texts.directory(key);
            texts.description(key);
            let (id, number) = (Value::Integer(key.id), Value::Integer(key.number));
            let [directory, party, description] =
                [&texts.directory, NOBODY, &texts.description].map(Value::Text);
            add(&[id, number, directory, party, description])
        })
    })
}

/// What must be in the table.
#[derive(Clone, Debug, Default)]
pub struct SubscriberContent {
    /// The table was filled with all keys below this, or with the first `first` rows of them.
    pub key: u32,
    /// See `key`.
    pub first: Option<u64>,
    /// Rows added since then.
    pub inserted: HashSet<Key>,
    /// Rows removed since then.
    pub deleted: HashSet<Key>,
    /// Rows changed since then, whether or not they were removed later.
    pub updated: HashSet<Key>,
}

impl SubscriberContent {
    /// Notes an operation that was committed and found its row.
    pub fn note(&mut self, operation: Operation) {
        match operation {
            Operation::Read(_) => false,
            Operation::Update(key) => self.updated.insert(key),
            Operation::Insert(key) => self.inserted.insert(key),
            Operation::Delete(key) => self.deleted.insert(key),
        };
    }

    /// Puts rows back that were removed and removes those that were added, so that the next run
    /// finds what this one found. Rows that were changed stay so: their content is not read
    /// before they are filled again.
    pub fn restore(&self, connection: &mut dyn SqlConnection) -> Result<()> {
        let mut statements = TptbmStatements::prepare(connection)?;
        let added = self.inserted.difference(&self.deleted).copied().map(Operation::Delete);
        let removed = self.deleted.iter().filter(|key| self.loaded(**key));
        let operations: Vec<Operation> =
            added.chain(removed.copied().map(Operation::Insert)).collect();
        for batch in operations.chunks(POPULATE_ROWS) {
            transaction(connection, Access::Write, |c| {
                batch.iter().try_for_each(|&operation| statements.run(c, operation).map(|_| ()))
            })?;
        }
        Ok(())
    }

    /// Makes sure that a table which others filled has the rows that transactions will ask for.
    pub fn check_there(&self, connection: &mut dyn SqlConnection) -> Result<()> {
        let key = self.key;
        let query =
            format!("SELECT COUNT(*) FROM vpn_users WHERE vpn_id < {key} AND vpn_nb < {key}");
        let statement = connection.prepare(&query)?;
        let (mut rows, expected) = (0, u64::from(key).pow(2));
        settled(connection.query(statement, &[], &mut |row| {
            rows = row.integer(0).and_then(|rows| u64::try_from(rows).ok()).unwrap_or(0);
        }))?;
        ensure!(
            rows == expected,
            "the table at --url has {rows} of the {expected} rows of --key {key}: build it with --build --key {key}"
        );
        Ok(())
    }

    fn loaded(&self, key: Key) -> bool {
        let below = |n: i32| u32::try_from(n).is_ok_and(|n| n < self.key);
        let position = i64::from(key.id) * i64::from(self.key) + i64::from(key.number);
        below(key.id) && below(key.number) && self.first.is_none_or(|first| position < first as i64)
    }

    /// Reads the whole table and compares.
    pub fn verify(&self, connection: &mut dyn SqlConnection) -> Result<()> {
        let query = "SELECT vpn_id, vpn_nb, directory_nb, last_calling_party, descr FROM vpn_users";
        let statement = connection.prepare(query)?;
        let (mut rows, mut strangers, mut wrong) = (0, 0, 0);
        let mut texts = Texts::default();
        settled(connection.query(statement, &[], &mut |row| {
            rows += 1;
            let part = |column| row.integer(column).and_then(|n| i32::try_from(n).ok());
            let key = Key { id: part(0).unwrap_or(-1), number: part(1).unwrap_or(-1) };
            let there = self.loaded(key) || self.inserted.contains(&key);
            strangers += u32::from(!there || self.deleted.contains(&key));
            texts.directory(key);
            texts.description(key);
            texts.party(key);
            let party = if self.updated.contains(&key) { &texts.party } else { NOBODY };
            let expected = [&texts.directory, party, &texts.description];
            let same = expected.into_iter().zip(2..).all(|(text, column)| {
                row.text(column).map(<[u8]>::trim_ascii_end) == Some(text.trim_end().as_bytes())
            });
            wrong += u32::from(!same);
        }))?;
        let all = self.first.unwrap_or(u64::from(self.key).pow(2));
        let expected = all + self.inserted.len() as u64 - self.deleted.len() as u64;
        ensure!(rows == expected, "the table has {rows} rows instead of {expected}");
        ensure!(strangers == 0, "{strangers} rows should not be there");
        ensure!(wrong == 0, "{wrong} rows have another content than was written");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_fill_their_columns() {
        let mut texts = Texts::default();
        for key in [Key { id: 0, number: 0 }, Key { id: 9999, number: 9999 }] {
            assert_eq!(texts.directory(key).len(), 10);
            assert_eq!(texts.party(key).len(), 10);
            assert_eq!(texts.description(key).len(), 100);
        }
        assert_eq!(texts.directory(Key { id: 12, number: 7 }), "55127     ");
    }

    #[test]
    fn keys_are_all_pairs() {
        let all: HashSet<Key> = keys(30).collect();
        assert_eq!(all.len(), 900);
        assert!(all.iter().all(|k| (0..30).contains(&k.id) && (0..30).contains(&k.number)));
    }
}
