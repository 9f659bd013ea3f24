//! Encoding of values. Values need no order, so a value is encoded like the last field of a key.

use super::key::{DecodeKey, EncodeKey};
use crate::error::Result;

/// A type, or its borrowed form, that can be encoded as a value. Every key type is a value type.
pub trait EncodeValue {
    /// Appends the value.
    fn encode(&self, bytes: &mut Vec<u8>) -> Result<()>;
}

/// A type that can be decoded from a value.
pub trait DecodeValue: Sized {
    /// Decodes what [`EncodeValue::encode`] wrote. Returns `None` if the bytes are not an encoding.
    fn decode(bytes: &[u8]) -> Option<Self>;
}

impl<T: EncodeKey + ?Sized> EncodeValue for T {
    fn encode(&self, bytes: &mut Vec<u8>) -> Result<()> {
        self.encode_last(bytes);
        Ok(())
    }
}

impl<T: DecodeKey> DecodeValue for T {
    fn decode(mut bytes: &[u8]) -> Option<Self> {
        let value = T::decode_last(&mut bytes)?;
        bytes.is_empty().then_some(value)
    }
}

/// A value of any serde type, in the [postcard](https://docs.rs/postcard) format. Feature
/// `postcard`.
#[cfg(feature = "postcard")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Postcard<T>(pub T);

#[cfg(feature = "postcard")]
impl<T: serde::Serialize> EncodeValue for Postcard<T> {
    fn encode(&self, bytes: &mut Vec<u8>) -> Result<()> {
        let done = postcard::to_extend(&self.0, std::mem::take(bytes));
        *bytes = done.map_err(|error| {
            let name = std::any::type_name::<T>();
            crate::Error::misuse(format!("a value of {name} cannot be encoded: {error}"))
        })?;
        Ok(())
    }
}

#[cfg(feature = "postcard")]
impl<T: serde::de::DeserializeOwned> DecodeValue for Postcard<T> {
    fn decode(bytes: &[u8]) -> Option<Self> {
        let (value, rest) = postcard::take_from_bytes(bytes).ok()?;
        rest.is_empty().then_some(Postcard(value))
    }
}
