//! The Data Store: the same trees for one owner, without transactions and log. `sync` is atomic.
//!
//! `cargo run -p quickbeam --example data_store`

#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]

use std::error::Error;

use quickbeam::{DataStore, Options};

fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let mut store = DataStore::open(directory.path(), Options::default())?;
    let words = store.open_or_create_database("words")?;
    store.put(words, b"apple", b"a fruit")?;
    store.put(words, b"beam", b"a ray of light")?;
    store.put(words, b"cask", b"a barrel")?;
    store.delete(words, b"apple")?;
    // A crash restores the state of the last completed sync.
    store.sync()?;

    let mut cursor = store.cursor(words)?;
    let mut found = cursor.last()?;
    while found {
        let (key, value) = (cursor.key(), cursor.value());
        println!("{}: {}", String::from_utf8_lossy(key), String::from_utf8_lossy(value));
        found = cursor.prev()?;
    }
    store.close()?;

    let mut store = DataStore::open(directory.path(), Options::default())?;
    let words = store.open_database("words")?;
    assert!(!store.exists(words, b"apple")?);
    assert_eq!(store.get(words, b"cask")?.as_deref(), Some(&b"a barrel"[..]));
    Ok(())
}
