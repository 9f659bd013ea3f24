//! Encoding of keys. Encoded keys sort like the keys.
//!
//! | type | bytes |
//! |---|---|
//! | `u8` to `u128` | big-endian |
//! | `i8` to `i128` | big-endian, the sign bit flipped |
//! | `f32`, `f64` | big-endian; all bits flipped if negative, else the sign bit (`total_cmp`) |
//! | `bool` | 0 or 1 |
//! | `[u8; N]` | the bytes |
//! | `str`, `[u8]`, `String`, `Vec<u8>`, last field | the bytes |
//! | the same, before another field | the bytes, each 0 as 0 255; then 0 0 |
//! | tuples | field after field |
//!
//! The escape of 0 keeps the order: the terminator 0 0 sorts before any continuation of a longer
//! field.

/// A type, or its borrowed form, that can be encoded as a key.
///
/// An implementation writes its fields in order with their `encode`, the last one with
/// `encode_last`.
pub trait EncodeKey {
    /// Appends the key in a self-delimiting form, so that another field can follow.
    fn encode(&self, bytes: &mut Vec<u8>);

    /// Appends the key as the last field.
    fn encode_last(&self, bytes: &mut Vec<u8>) {
        self.encode(bytes);
    }
}

/// A type that can be decoded from a key.
pub trait DecodeKey: Sized {
    /// Decodes what [`EncodeKey::encode`] wrote and removes it from the front of `bytes`. Returns
    /// `None` if the bytes are not an encoding.
    fn decode(bytes: &mut &[u8]) -> Option<Self>;

    /// Decodes what [`EncodeKey::encode_last`] wrote.
    fn decode_last(bytes: &mut &[u8]) -> Option<Self> {
        Self::decode(bytes)
    }
}

impl<T: EncodeKey + ?Sized> EncodeKey for &T {
    fn encode(&self, bytes: &mut Vec<u8>) {
        T::encode(self, bytes);
    }

    fn encode_last(&self, bytes: &mut Vec<u8>) {
        T::encode_last(self, bytes);
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (front, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*front)
}

macro_rules! integer_keys {
    ($($unsigned:ty, $signed:ty;)*) => {$(
        impl EncodeKey for $unsigned {
            fn encode(&self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_be_bytes());
            }
        }

        impl DecodeKey for $unsigned {
            fn decode(bytes: &mut &[u8]) -> Option<Self> {
                take(bytes).map(<$unsigned>::from_be_bytes)
            }
        }

        impl EncodeKey for $signed {
            fn encode(&self, bytes: &mut Vec<u8>) {
                let bits = (self ^ <$signed>::MIN).cast_unsigned();
                invariant!(TYPED_1, bits.leading_ones() == 0 || *self >= 0, "{self} is {bits:#x}");
                bits.encode(bytes);
            }
        }

        impl DecodeKey for $signed {
            fn decode(bytes: &mut &[u8]) -> Option<Self> {
                Some(<$unsigned>::decode(bytes)?.cast_signed() ^ <$signed>::MIN)
            }
        }
    )*};
}

integer_keys! {
    u8, i8;
    u16, i16;
    u32, i32;
    u64, i64;
    u128, i128;
}

macro_rules! float_keys {
    ($($float:ty, $bits:ty;)*) => {$(
        impl EncodeKey for $float {
            fn encode(&self, bytes: &mut Vec<u8>) {
                const SIGN: $bits = 1 << (<$bits>::BITS - 1);
                let bits = self.to_bits();
                let flips = if bits & SIGN == 0 { SIGN } else { <$bits>::MAX };
                invariant!(
                    TYPED_1,
                    (bits ^ flips) & SIGN == !bits & SIGN,
                    "{self} is {:#x}",
                    bits ^ flips
                );
                (bits ^ flips).encode(bytes);
            }
        }

        impl DecodeKey for $float {
            fn decode(bytes: &mut &[u8]) -> Option<Self> {
                const SIGN: $bits = 1 << (<$bits>::BITS - 1);
                let bits = <$bits>::decode(bytes)?;
                let flips = if bits & SIGN == 0 { <$bits>::MAX } else { SIGN };
                Some(<$float>::from_bits(bits ^ flips))
            }
        }
    )*};
}

float_keys! {
    f32, u32;
    f64, u64;
}

impl EncodeKey for bool {
    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.push(u8::from(*self));
    }
}

impl DecodeKey for bool {
    fn decode(bytes: &mut &[u8]) -> Option<bool> {
        match u8::decode(bytes)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl<const N: usize> EncodeKey for [u8; N] {
    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self);
    }
}

impl<const N: usize> DecodeKey for [u8; N] {
    fn decode(bytes: &mut &[u8]) -> Option<[u8; N]> {
        take(bytes)
    }
}

impl EncodeKey for [u8] {
    fn encode(&self, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        for &byte in self {
            bytes.push(byte);
            if byte == 0 {
                bytes.push(u8::MAX);
            }
        }
        invariant!(
            TYPED_1,
            !bytes[start..].windows(2).any(|pair| pair == [0, 0]),
            "the key field {self:?} contains a terminator"
        );
        bytes.extend_from_slice(&[0, 0]);
    }

    fn encode_last(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self);
    }
}

/// Returns whether the bytes encode a field before another one.
fn is_encoding(encoded: &[u8], field: &[u8]) -> bool {
    let mut bytes = Vec::new();
    field.encode(&mut bytes);
    bytes == encoded
}

impl DecodeKey for Vec<u8> {
    fn decode(bytes: &mut &[u8]) -> Option<Vec<u8>> {
        let mut field = Vec::new();
        let encoded = *bytes;
        loop {
            match take(bytes)? {
                [0] => match take(bytes)? {
                    [0] => {
                        invariant!(
                            TYPED_2,
                            is_encoding(&encoded[..encoded.len() - bytes.len()], &field),
                            "{encoded:?} decodes to {field:?}"
                        );
                        return Some(field);
                    }
                    [u8::MAX] => field.push(0),
                    [_] => return None,
                },
                [byte] => field.push(byte),
            }
        }
    }

    fn decode_last(bytes: &mut &[u8]) -> Option<Vec<u8>> {
        Some(std::mem::take(bytes).to_vec())
    }
}

impl DecodeKey for String {
    fn decode(bytes: &mut &[u8]) -> Option<String> {
        String::from_utf8(Vec::decode(bytes)?).ok()
    }

    fn decode_last(bytes: &mut &[u8]) -> Option<String> {
        String::from_utf8(Vec::decode_last(bytes)?).ok()
    }
}

macro_rules! bytes_keys {
    ($($type:ty, $as_bytes:ident;)*) => {$(
        impl EncodeKey for $type {
            fn encode(&self, bytes: &mut Vec<u8>) {
                self.$as_bytes().encode(bytes);
            }

            fn encode_last(&self, bytes: &mut Vec<u8>) {
                self.$as_bytes().encode_last(bytes);
            }
        }
    )*};
}

bytes_keys! {
    str, as_bytes;
    String, as_bytes;
    Vec<u8>, as_slice;
}

macro_rules! tuple_keys {
    ($($($field:ident)* : $last:ident;)*) => {$(
        #[allow(non_snake_case)]
        impl<$($field: EncodeKey,)* $last: EncodeKey> EncodeKey for ($($field,)* $last,) {
            fn encode(&self, bytes: &mut Vec<u8>) {
                let ($($field,)* $last,) = self;
                $($field.encode(bytes);)*
                $last.encode(bytes);
            }

            fn encode_last(&self, bytes: &mut Vec<u8>) {
                let ($($field,)* $last,) = self;
                $($field.encode(bytes);)*
                $last.encode_last(bytes);
            }
        }

        impl<$($field: DecodeKey,)* $last: DecodeKey> DecodeKey for ($($field,)* $last,) {
            fn decode(bytes: &mut &[u8]) -> Option<Self> {
                Some(($($field::decode(bytes)?,)* $last::decode(bytes)?,))
            }

            fn decode_last(bytes: &mut &[u8]) -> Option<Self> {
                Some(($($field::decode(bytes)?,)* $last::decode_last(bytes)?,))
            }
        }
    )*};
}

tuple_keys! {
    : A;
    A : B;
    A B : C;
    A B C : D;
    A B C D : E;
    A B C D E : F;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(key: &impl EncodeKey) -> Vec<u8> {
        let mut bytes = Vec::new();
        key.encode_last(&mut bytes);
        bytes
    }

    fn assert_round_trip<K: EncodeKey + DecodeKey + PartialEq + std::fmt::Debug>(key: &K) {
        let bytes = encoded(key);
        let mut rest = &bytes[..];
        assert_eq!(K::decode_last(&mut rest).as_ref(), Some(key));
        assert_eq!(rest, b"");
    }

    type Tuple = (String, i64, Vec<u8>, bool, u16, Vec<u8>);

    /// Few distinct bytes, so that the first fields of keys are often equal.
    fn tuples() -> impl Strategy<Value = Tuple> {
        let text = "[\u{0}\u{1}a]{0,3}";
        let bytes = || prop::collection::vec(prop::sample::select(vec![0, 1, 254, 255]), 0..4);
        (text, -2..2i64, bytes(), any::<bool>(), 0..3u16, bytes())
    }

    proptest! {
        #[test]
        fn encoded_tuples_sort_like_tuples(left in tuples(), right in tuples()) {
            prop_assert_eq!(encoded(&left).cmp(&encoded(&right)), left.cmp(&right));
            assert_round_trip(&left);
        }

        #[test]
        fn encoded_integers_sort_like_integers(left: i128, right: i128, small: (i8, i16)) {
            prop_assert_eq!(encoded(&left).cmp(&encoded(&right)), left.cmp(&right));
            assert_round_trip(&left);
            assert_round_trip(&small);
        }

        #[test]
        fn encoded_floats_sort_in_total_order(left: u64, right: u64) {
            let (left, right) = (f64::from_bits(left), f64::from_bits(right));
            prop_assert_eq!(encoded(&left).cmp(&encoded(&right)), left.total_cmp(&right));
            let mut bytes = &encoded(&left)[..];
            prop_assert_eq!(f64::decode(&mut bytes).map(f64::to_bits), Some(left.to_bits()));
        }

        #[test]
        fn invalid_bytes_decode_to_an_error_or_round_trip(bytes: Vec<u8>) {
            let mut rest = &bytes[..];
            if let Some(key) = Tuple::decode_last(&mut rest) {
                prop_assert_eq!(encoded(&key), bytes);
            }
        }
    }
}
