//! Keeps a secondary index by hand: a second database, changed in the same transaction.
//!
//! The index's key is the city, a zero byte and the person's id; its value is empty. SQL keeps
//! indexes by itself (`quickbeam-sql`).
//!
//! `cargo run -p quickbeam --example secondary_index`

#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]

use std::error::Error;

use quickbeam::{Database, Environment, Options, ReadTransaction, Result, Transaction};

struct People {
    by_id: Database,
    by_city: Database,
}

fn index_key(city: &[u8], id: u32) -> Vec<u8> {
    [city, &[0], &id.to_be_bytes()].concat()
}

impl People {
    fn open(environment: &Environment) -> Result<People> {
        let by_id = environment.open_or_create_database("people")?;
        let by_city = environment.open_or_create_database("people.by_city")?;
        Ok(People { by_id, by_city })
    }

    /// Inserts a person, or moves one to another city.
    fn put(&self, transaction: &Transaction, id: u32, city: &str) -> Result<()> {
        if let Some(old_city) = self.by_id.get(transaction, &id.to_be_bytes())? {
            self.by_city.delete(transaction, &index_key(&old_city, id))?;
        }
        self.by_id.put(transaction, &id.to_be_bytes(), city.as_bytes())?;
        self.by_city.put(transaction, &index_key(city.as_bytes(), id), b"")
    }

    /// The ids of all people in a city, in order.
    fn in_city(&self, transaction: &impl ReadTransaction, city: &str) -> Result<Vec<u32>> {
        let prefix = [city.as_bytes(), &[0]].concat();
        let mut ids = Vec::new();
        let mut cursor = self.by_city.cursor(transaction)?;
        let mut found = cursor.seek(&prefix)?;
        while found {
            let Some(id) = cursor.key().strip_prefix(&prefix[..]) else { break };
            ids.extend(id.try_into().map(u32::from_be_bytes));
            found = cursor.next()?;
        }
        Ok(ids)
    }
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let environment = Environment::open(directory.path(), Options::default())?;
    let people = People::open(&environment)?;
    environment.transact(|transaction| {
        people.put(transaction, 1, "Lisbon")?;
        people.put(transaction, 2, "Oslo")?;
        people.put(transaction, 3, "Lisbon")
    })?;
    environment.transact(|transaction| people.put(transaction, 1, "Oslo"))?;

    let snapshot = environment.begin_read()?;
    for city in ["Lisbon", "Oslo"] {
        println!("{city}: {:?}", people.in_city(&snapshot, city)?);
    }
    assert_eq!(people.in_city(&snapshot, "Lisbon")?, [3]);
    assert_eq!(people.in_city(&snapshot, "Oslo")?, [1, 2]);
    Ok(())
}
