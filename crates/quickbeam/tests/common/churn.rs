//! A load that keeps making and freeing trees with long values: databases are created, renamed,
//! emptied and dropped by four threads, beside checkpoints and in a cache of 64 pages, while all
//! threads also write to shared databases.
//!
//! Every value describes itself ([`value`], [`assert_value`]), so that a value that lost its pages
//! to another one shows whatever was committed.

use std::time::Duration;

use quickbeam::{
    AccessMethod, Database, Durability, Environment, Error, Isolation, Options, Result,
    Transaction, TransactionOptions,
};

use super::kill::Acknowledgements;
use super::{Random, contents, small_options};

/// Databases that every thread writes to.
const SHARED: [(&str, AccessMethod); 4] = [
    ("shared tree", AccessMethod::BTree),
    ("shared hash", AccessMethod::Hash),
    ("shared groups", AccessMethod::HashPrefix),
    ("shared tree 2", AccessMethod::BTree),
];
/// The database with each thread's count of commits.
const COUNTERS: &str = "counters";

/// Small in everything, so that eviction, checkpoints and new segments come all the time.
pub fn options(durability: Durability) -> Options {
    small_options()
        .durability(durability)
        .cache_size(4096 * 64)
        .checkpoint_bytes(256 << 10)
        .checkpoint_interval(Duration::from_millis(20))
        .log_write_interval(Duration::from_millis(5))
        .lock_timeout(Duration::from_millis(20))
}

/// A value of about that length that says what it has to be.
pub fn value(random: &mut Random, length: usize) -> Vec<u8> {
    let seed = random.next();
    let mut bytes = seed.to_le_bytes().to_vec();
    bytes.extend_from_slice(&(length as u64).to_le_bytes());
    let mut content = Random::new(seed);
    while bytes.len() < 16 + length {
        bytes.extend_from_slice(&content.next().to_le_bytes());
    }
    bytes.truncate(16 + length);
    bytes
}

/// Fails if the value is not one that [`value`] made.
#[track_caller]
pub fn assert_value(found: &[u8], what: &str) {
    let seed = u64::from_le_bytes(*found.first_chunk().expect("a value has a head"));
    let length = u64::from_le_bytes(*found[8..].first_chunk().expect("a value has a head"));
    assert_eq!(found.len() as u64, 16 + length, "{what}: length");
    let mut content = Random::new(seed);
    for part in found[16..].chunks(8) {
        assert_eq!(part, &content.next().to_le_bytes()[..part.len()], "{what}: content");
    }
}

fn draw_value(random: &mut Random) -> Vec<u8> {
    let longest = [20, 300, 3000, 9000, 30_000][random.below(5)];
    let length = random.below(longest);
    value(random, length)
}

fn draw_key(random: &mut Random) -> Vec<u8> {
    format!("group {:02}/key {:03}", random.below(8), random.below(120)).into_bytes()
}

/// Makes the shared databases that are missing.
pub fn prepare(environment: &Environment) -> Result<()> {
    let all = SHARED.iter().copied().chain([(COUNTERS, AccessMethod::BTree)]);
    for (name, method) in all {
        match environment.create_database_with(name, method) {
            Ok(_) | Err(Error::DatabaseExists { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// How many commits of that thread are there.
pub fn counter_of(environment: &Environment, thread: u64) -> Result<u64> {
    let reader = environment.begin_read()?;
    let counters = match reader.open_database(COUNTERS) {
        Err(Error::NoSuchDatabase { .. }) => return Ok(0),
        opened => opened?,
    };
    let found = counters.get(&reader, &thread.to_be_bytes())?;
    Ok(found.map_or(0, |bytes| u64::from_be_bytes(*bytes.first_chunk().expect("eight bytes"))))
}

/// One thread of the load.
pub struct Churner<'e> {
    environment: &'e Environment,
    thread: u64,
    random: Random,
    counter: u64,
}

impl<'e> Churner<'e> {
    /// The thread goes on counting from what is there.
    pub fn new(environment: &'e Environment, thread: u64) -> Result<Churner<'e>> {
        let counter = counter_of(environment, thread)?;
        let random = Random::new(counter * 64 + thread + 1);
        Ok(Churner { environment, thread, random, counter })
    }

    /// Commits transactions until the process ends.
    pub fn work(&mut self, acknowledgements: &mut Acknowledgements) {
        loop {
            match self.transaction() {
                Ok(()) => {
                    self.counter += 1;
                    acknowledgements.note(self.counter);
                }
                Err(error) => assert!(is_expected(&error), "{error}"),
            }
            std::thread::sleep(Duration::from_micros(50));
        }
    }

    fn transaction(&mut self) -> Result<()> {
        let isolations = [Isolation::ReadCommitted, Isolation::Snapshot, Isolation::Serializable];
        let isolation = Some(isolations[self.random.below(3)]);
        let transaction =
            self.environment.begin_with(TransactionOptions::new().isolation(isolation))?;
        let operations = if self.random.chance(3) { 400 } else { 1 + self.random.below(8) };
        for _ in 0..operations {
            if self.random.chance(8) {
                self.change_catalog(&transaction)?;
            } else if self.random.chance(10) {
                let savepoint = transaction.savepoint()?;
                for _ in 0..3 {
                    self.change_record(&transaction)?;
                }
                transaction.rollback_to(savepoint)?;
            } else {
                self.change_record(&transaction)?;
            }
        }
        let counters = transaction.open_database(COUNTERS)?;
        let next = (self.counter + 1).to_be_bytes();
        counters.put(&transaction, &self.thread.to_be_bytes(), &next)?;
        transaction.commit()
    }

    /// The thread's own databases and the shared ones.
    fn draw_database(&mut self, transaction: &Transaction) -> Result<Database> {
        if self.random.chance(50) {
            let own = format!("own {} {}", self.thread, self.random.below(3));
            match transaction.open_database(&own) {
                Err(Error::NoSuchDatabase { .. }) => {}
                opened => return opened,
            }
        }
        transaction.open_database(SHARED[self.random.below(SHARED.len())].0)
    }

    fn change_record(&mut self, transaction: &Transaction) -> Result<()> {
        let database = self.draw_database(transaction)?;
        let key = draw_key(&mut self.random);
        if self.random.chance(30) {
            database.delete(transaction, &key).map(drop)
        } else {
            database.put(transaction, &key, &draw_value(&mut self.random))
        }
    }

    fn change_catalog(&mut self, transaction: &Transaction) -> Result<()> {
        let name = |number: usize| format!("own {} {number}", self.thread);
        let (from, to) = (name(self.random.below(3)), name(self.random.below(3)));
        let methods = [AccessMethod::BTree, AccessMethod::Hash, AccessMethod::HashPrefix];
        let method = methods[self.random.below(3)];
        let done = match self.random.below(5) {
            0 | 1 => transaction.create_database_with(&from, method).map(drop),
            2 => transaction.rename_database(&from, &to),
            3 => transaction.clear_database(&from),
            _ => transaction.drop_database(&from),
        };
        match done {
            Err(Error::NoSuchDatabase { .. } | Error::DatabaseExists { .. }) => Ok(()),
            done => done,
        }
    }
}

/// Conflicts with other threads, and a database that another thread dropped in between.
fn is_expected(error: &Error) -> bool {
    error.is_retryable() || matches!(error, Error::NoSuchDatabase { .. })
}

/// Reads every value of every database. Returns how many there are.
pub fn assert_readable(environment: &Environment, what: &str) -> usize {
    let all = contents(environment).unwrap_or_else(|error| panic!("{what}: {error}"));
    let mut values = 0;
    for (name, records) in all.iter().filter(|(name, _)| *name != COUNTERS) {
        for (key, value) in records {
            assert_value(value, &format!("{what}: {name}, {}", key.escape_ascii()));
            values += 1;
        }
    }
    values
}
