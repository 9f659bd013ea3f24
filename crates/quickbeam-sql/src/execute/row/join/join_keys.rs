//! Keys of the rows of a hash join.

use crate::error::Result;
use crate::execute::hash::join_index::{JoinIndex, NONE};
use crate::execute::hash::key_table::append;
use crate::execute::row::Context;
use crate::expression::Expr;

/// Keys of the inner rows, and the rows of each key.
#[derive(Debug, Default)]
pub struct JoinKeys {
    pub chains: JoinIndex,
    pub bytes: Vec<u8>,
}

/// The key of a row.
pub enum JoinKey {
    /// A part of it is NULL, which matches nothing.
    Null,
    Number(i64),
    /// The key is in [`JoinKeys::bytes`].
    Bytes,
}

impl JoinKeys {
    /// Makes the key of the current rows.
    #[inline]
    pub fn make(&mut self, keys: &[Expr], context: &Context<'_>) -> Result<JoinKey> {
        if let [Expr::Column(at)] = keys
            && let Some(number) = context.slots.get(at.slot).and_then(|slot| slot.number(at.column))
        {
            return Ok(JoinKey::Number(number));
        }
        self.make_bytes(keys, context)
    }

    fn make_bytes(&mut self, keys: &[Expr], context: &Context<'_>) -> Result<JoinKey> {
        self.bytes.clear();
        let frame = context.frame();
        for part in keys {
            let value = part.evaluate(&frame)?;
            match value.as_ref().as_i64() {
                _ if value.is_null() => return Ok(JoinKey::Null),
                Some(number) if keys.len() == 1 => return Ok(JoinKey::Number(number)),
                _ => append(value.as_ref(), &mut self.bytes),
            }
        }
        Ok(JoinKey::Bytes)
    }

    /// The first row of a key.
    #[inline]
    pub fn first(&self, key: &JoinKey) -> u32 {
        match key {
            JoinKey::Null => NONE,
            JoinKey::Number(number) => self.chains.first_of_number(*number),
            JoinKey::Bytes => self.chains.first_of_bytes(&self.bytes),
        }
    }

    /// Adds a row.
    pub fn add(&mut self, key: &JoinKey) {
        match key {
            JoinKey::Null => self.chains.add_without_key(),
            JoinKey::Number(number) => self.chains.add_number(*number),
            JoinKey::Bytes => self.chains.add_bytes(&self.bytes),
        }
    }

    /// Returns the bytes of a key, by which partitions are chosen.
    pub fn partition_key(&mut self, key: &JoinKey) -> &[u8] {
        if let JoinKey::Number(number) = key {
            self.bytes.clear();
            self.bytes.extend_from_slice(&number.to_le_bytes());
        }
        &self.bytes
    }
}
