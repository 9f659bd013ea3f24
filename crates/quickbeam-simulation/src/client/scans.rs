//! Cursor reads: parts of a B+tree in key order, and all of a hash database.

use quickbeam::{AccessMethod, Error, Isolation, Transaction};

use super::checks::Checks;
use super::{Client, Step};
use crate::model::{Answer, Question, Records, Value};

impl Client {
    /// Reads all records of a hash database, in its own order.
    fn pass(&mut self, transaction: &Transaction, checks: &mut Checks, name: &str) -> Step<()> {
        let Some(database) = self.open_database(transaction, checks, name)? else { return Ok(()) };
        let mut cursor = match database.cursor(transaction) {
            Ok(cursor) => cursor,
            Err(Error::NoSuchDatabase { .. }) => return Ok(()),
            Err(error) => return Err(self.judge(&error)),
        };
        let per_call = checks.isolation == Isolation::ReadCommitted && !checks.read_only;
        let forward = self.random.chance(60);
        let mut all = Records::new();
        let begun = self.newest();
        loop {
            let before = self.newest();
            let found = if forward { cursor.next() } else { cursor.prev() };
            match found {
                Ok(true) => {}
                Ok(false) => break,
                Err(Error::NoSuchDatabase { .. }) if per_call => return Ok(()),
                Err(error) => return Err(self.judge(&error)),
            }
            let (key, value) = (cursor.key().to_vec(), Value::from(cursor.value()));
            if per_call {
                let answer = Answer::Record(key.clone(), value.clone());
                self.check(checks, name, Question::Get(key.clone()), answer, before);
            }
            if all.insert(key, value).is_some() {
                self.violation(format!("{name:?}: a cursor came to a record twice"));
            }
        }
        if !per_call {
            self.check(checks, name, Question::All, Answer::Records(all), begun);
        }
        self.vfs.core().probe("passes over a hash database");
        Ok(())
    }

    /// Deletes all records of a range.
    pub(super) fn clear_range(
        &mut self,
        transaction: &Transaction,
        checks: &mut Checks,
        name: &str,
    ) -> Step<()> {
        // Under read committed isolation the records to be deleted may be others by then.
        if self.plan.method_of(name) != AccessMethod::BTree
            || checks.isolation == Isolation::ReadCommitted
            || checks.read_only
        {
            return Ok(());
        }
        let Some(database) = self.open_database(transaction, checks, name)? else { return Ok(()) };
        let (one, other) = (self.key(), self.key());
        let (low, high) = if one < other { (one, other) } else { (other, one) };
        let before = self.newest();
        let mut keys = Vec::new();
        for record in database.range(transaction, &low[..]..&high[..]) {
            match record {
                Ok((key, _)) => keys.push(key),
                Err(Error::NoSuchDatabase { .. }) => return Ok(()),
                Err(error) => return Err(self.judge(&error)),
            }
        }
        match database.clear_range(transaction, &low[..]..&high[..]) {
            Ok(count) if count == keys.len() as u64 => {}
            Ok(count) => {
                let seen = keys.len();
                self.violation(format!("{name:?}: clearing {seen} records deleted {count}"));
            }
            Err(Error::NoSuchDatabase { .. }) => return Ok(()),
            Err(error) => return Err(self.judge(&error)),
        }
        for key in keys {
            self.note(checks, name, &key, None, before);
        }
        self.vfs.core().probe("cleared ranges");
        Ok(())
    }

    /// Reads some records with a cursor, and changes some of them.
    pub(super) fn scan(
        &mut self,
        transaction: &Transaction,
        checks: &mut Checks,
        name: &str,
    ) -> Step<()> {
        if self.plan.method_of(name) != AccessMethod::BTree {
            return self.pass(transaction, checks, name);
        }
        let Some(database) = self.open_database(transaction, checks, name)? else { return Ok(()) };
        let mut cursor = match database.cursor(transaction) {
            Ok(cursor) => cursor,
            Err(Error::NoSuchDatabase { .. }) => return Ok(()),
            Err(error) => return Err(self.judge(&error)),
        };
        let start = self.key();
        let forward = self.random.chance(60);
        let whole = self.random.chance(30);
        let mut question = match (forward, whole) {
            (true, true) => Question::AtOrAfter(Vec::new()),
            (true, false) => Question::AtOrAfter(start),
            (false, true) => Question::Before(None),
            (false, false) => Question::AtOrBefore(start),
        };
        for _ in 0..self.random.pick(&[1, 5, 40]) {
            let asked = question.clone();
            let answer = self.ask(checks, name, asked.clone(), || {
                let found = match &asked {
                    Question::AtOrAfter(key) if key.is_empty() => cursor.first(),
                    Question::AtOrAfter(key) => cursor.seek(key),
                    Question::AtOrBefore(key) => cursor.seek_at_or_before(key),
                    Question::Before(None) => cursor.last(),
                    _ if forward => cursor.next(),
                    _ => cursor.prev(),
                }?;
                Ok(if found {
                    Answer::Record(cursor.key().to_vec(), cursor.value().into())
                } else {
                    Answer::Nothing
                })
            })?;
            let Answer::Record(key, _) = answer else { return Ok(()) };
            if !checks.read_only && self.random.chance(6) {
                let before = self.newest();
                let new = self.random.chance(60).then(|| self.draw_value());
                let done = match &new {
                    Some(value) => cursor.put(value).map(|()| true),
                    None => cursor.delete(),
                };
                match done {
                    Ok(true) => self.note(checks, name, &key, new, before),
                    Ok(false) | Err(Error::NoSuchDatabase { .. }) => {}
                    Err(error) => return Err(self.judge(&error)),
                }
            }
            question = if forward { Question::After(key) } else { Question::Before(Some(key)) };
        }
        Ok(())
    }
}
