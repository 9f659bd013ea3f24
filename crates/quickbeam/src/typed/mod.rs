//! Typed keys and values: a thin layer over [`Database`] that encodes and decodes.
//!
//! Above: the user. Below: the byte interface, through which the same database can be used too. The
//! types are not stored: each opener of a database states them.
//!
//! Encoded keys sort like the keys, field by field ([`EncodeKey`]). Decoding invalid bytes returns
//! [`Error::Decode`], never a panic or another value. For the types of this module:
//!
//! - TYPED-1: the encoding of a negative number sorts before that of every other number; no byte
//!   string before another field contains the terminator.
//! - TYPED-2: a decoded byte string encodes to the bytes that it was decoded from.

mod key;
mod value;

use std::borrow::Borrow;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

use crate::error::{Error, Result};
use crate::transaction::{Database, Range, ReadTransaction, Transaction};

pub use key::{DecodeKey, EncodeKey};
#[cfg(feature = "postcard")]
pub use value::Postcard;
pub use value::{DecodeValue, EncodeValue};

/// A database whose keys are of type `K` and whose values are of type `V`.
///
/// Lookups take borrowed keys, as the standard library's maps do: `&str` if `K` is `String`.
///
/// ```
/// use quickbeam::typed::TypedDatabase;
/// # fn main() -> quickbeam::Result<()> {
/// # let environment = quickbeam::Environment::open_in_memory(quickbeam::Options::default())?;
/// let orders: TypedDatabase<(String, u32), u64> = environment.create_database("orders")?.typed();
/// let transaction = environment.begin()?;
/// for (customer, number, total) in [("alice", 2, 70), ("alice", 10, 5), ("bob", 1, 30)] {
///     orders.put(&transaction, &(customer.to_owned(), number), &total)?;
/// }
/// let of_alice = ("alice".to_owned(), 0)..=("alice".to_owned(), u32::MAX);
/// let mut numbers = Vec::new();
/// for order in orders.range(&transaction, of_alice) {
///     let ((_customer, number), _total) = order?;
///     numbers.push(number);
/// }
/// assert_eq!(numbers, [2, 10]);
/// # Ok(())
/// # }
/// ```
pub struct TypedDatabase<K, V> {
    database: Database,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K, V> Clone for TypedDatabase<K, V> {
    fn clone(&self) -> Self {
        TypedDatabase { database: self.database.clone(), types: PhantomData }
    }
}

impl Database {
    /// Returns the same database with typed keys and values.
    #[must_use]
    pub fn typed<K, V>(&self) -> TypedDatabase<K, V> {
        TypedDatabase { database: self.clone(), types: PhantomData }
    }
}

fn encode_key<Q: EncodeKey + ?Sized>(key: &Q) -> Vec<u8> {
    let mut bytes = Vec::new();
    key.encode_last(&mut bytes);
    bytes
}

/// Returns the error for bytes that do not encode a `T`.
#[cold]
fn wrong_type<T>() -> Error {
    Error::Decode { what: std::any::type_name::<T>().into() }
}

fn decode_key<K: DecodeKey>(mut bytes: &[u8]) -> Result<K> {
    let key = K::decode_last(&mut bytes);
    key.filter(|_| bytes.is_empty()).ok_or_else(|| wrong_type::<K>())
}

fn decode_value<V: DecodeValue>(bytes: &[u8]) -> Result<V> {
    V::decode(bytes).ok_or_else(|| wrong_type::<V>())
}

impl<K, V> TypedDatabase<K, V> {
    /// Returns the untyped database.
    #[must_use]
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// Returns the value of `key`, or `None` if there is no record.
    pub fn get<Q>(&self, transaction: &impl ReadTransaction, key: &Q) -> Result<Option<V>>
    where
        K: Borrow<Q>,
        Q: EncodeKey + ?Sized,
        V: DecodeValue,
    {
        let value = self.database.get(transaction, &encode_key(key))?;
        value.map(|bytes| decode_value(&bytes)).transpose()
    }

    /// Returns whether there is a record with the key.
    pub fn exists<Q>(&self, transaction: &impl ReadTransaction, key: &Q) -> Result<bool>
    where
        K: Borrow<Q>,
        Q: EncodeKey + ?Sized,
    {
        self.database.exists(transaction, &encode_key(key))
    }

    /// Inserts a record or replaces its value.
    pub fn put<Q, W>(&self, transaction: &Transaction, key: &Q, value: &W) -> Result<()>
    where
        K: Borrow<Q>,
        Q: EncodeKey + ?Sized,
        V: Borrow<W>,
        W: EncodeValue + ?Sized,
    {
        let mut bytes = Vec::new();
        value.encode(&mut bytes)?;
        self.database.put(transaction, &encode_key(key), &bytes)
    }

    /// Deletes a record. Returns false if there is none.
    pub fn delete<Q>(&self, transaction: &Transaction, key: &Q) -> Result<bool>
    where
        K: Borrow<Q>,
        Q: EncodeKey + ?Sized,
    {
        self.database.delete(transaction, &encode_key(key))
    }

    /// Returns the records whose keys lie in `bounds`, in key order; `rev()` reverses the order.
    pub fn range<'t, Q>(
        &self,
        transaction: &'t impl ReadTransaction,
        bounds: impl RangeBounds<Q>,
    ) -> TypedRange<'t, K, V>
    where
        K: Borrow<Q>,
        Q: EncodeKey,
    {
        let encode = |bound: Bound<&Q>| bound.map(|key| encode_key(key));
        let bounds = (encode(bounds.start_bound()), encode(bounds.end_bound()));
        let range = self.database.range::<Vec<u8>>(transaction, bounds);
        TypedRange { range, types: PhantomData }
    }

    /// Returns all records in key order.
    #[must_use]
    pub fn iter<'t>(&self, transaction: &'t impl ReadTransaction) -> TypedRange<'t, K, V> {
        TypedRange { range: self.database.iter(transaction), types: PhantomData }
    }
}

/// An iterator over records, from [`TypedDatabase::range`] or [`TypedDatabase::iter`].
pub struct TypedRange<'t, K, V> {
    range: Range<'t>,
    types: PhantomData<fn() -> (K, V)>,
}

fn decode_record<K: DecodeKey, V: DecodeValue>(
    record: Result<crate::transaction::Record>,
) -> Result<(K, V)> {
    let (key, value) = record?;
    Ok((decode_key(&key)?, decode_value(&value)?))
}

impl<K: DecodeKey, V: DecodeValue> Iterator for TypedRange<'_, K, V> {
    type Item = Result<(K, V)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.range.next().map(decode_record)
    }
}

impl<K: DecodeKey, V: DecodeValue> DoubleEndedIterator for TypedRange<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.range.next_back().map(decode_record)
    }
}
