//! Updates in place: reading and changing a record in one call.

use quickbeam::{Error, Transaction, Updated};

use super::checks::Checks;
use super::{Client, Step};
use crate::model::{Answer, Question, Value};

impl Client {
    /// Changes a record in one call, if it exists.
    pub(super) fn update(
        &mut self,
        transaction: &Transaction,
        checks: &mut Checks,
        name: &str,
        key: &[u8],
        value: &Value,
    ) -> Step<()> {
        let Some(database) = self.open_database(transaction, checks, name)? else { return Ok(()) };
        let before = self.newest();
        let mut seen = Value::from([]);
        let done = database.update(transaction, key, |old, new| {
            seen = old.into();
            new.extend_from_slice(value);
            true
        });
        let answer = match done {
            Ok(Updated::Changed) => Answer::Record(key.to_vec(), seen),
            Ok(Updated::Absent) => Answer::Nothing,
            Ok(_) => return self.put(transaction, checks, name, key, value),
            Err(Error::ReadOnly) if checks.read_only => return Ok(()),
            Err(error) => return Err(self.judge(&error)),
        };
        let is_changed = answer != Answer::Nothing;
        self.check(checks, name, Question::Old(key.to_vec()), answer, before);
        if is_changed {
            self.note(checks, name, key, Some(value.clone()), before);
            self.vfs.core().probe("records changed in one visit");
        }
        Ok(())
    }
}
