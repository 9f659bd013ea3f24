//! UTF-8 text that is stored as bytes.
//!
//! Above: rows, arrays and spilled values, which read each text column through this module. This is
//! the crate's only module with unsafe code. Most texts are short and ASCII, and the check of the
//! standard library takes such a text byte by byte.
#![allow(unsafe_code)]

/// Returns the bytes as text, or `None` if they are not UTF-8.
#[inline]
pub fn text_from_utf8(bytes: &[u8]) -> Option<&str> {
    if is_ascii(bytes) {
        // SAFETY: each byte is less than 128, so it is a character of UTF-8 by itself.
        return Some(unsafe { std::str::from_utf8_unchecked(bytes) });
    }
    std::str::from_utf8(bytes).ok()
}

/// Returns whether each byte is less than 128. Eight bytes at a time; the last words may overlap.
#[inline]
fn is_ascii(bytes: &[u8]) -> bool {
    const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
    let all = if let Some(last) = bytes.last_chunk::<8>() {
        let words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        words.fold(u64::from_le_bytes(*last), |all, word| all | word)
    } else if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        u64::from(u32::from_le_bytes(*first) | u32::from_le_bytes(*last))
    } else {
        bytes.iter().fold(0, |all, byte| all | u64::from(*byte))
    };
    all & HIGH_BITS == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_byte_of_each_length_is_checked() {
        for length in 0..40 {
            let mut bytes = vec![b'a'; length];
            assert_eq!(text_from_utf8(&bytes), std::str::from_utf8(&bytes).ok());
            for at in 0..length {
                bytes[at] = 0xff;
                assert_eq!(text_from_utf8(&bytes), None, "byte {at} of {length}");
                bytes[at] = b'a';
            }
        }
    }

    proptest! {
        #[test]
        fn answers_are_those_of_the_standard_library(
            text in "\\PC{0,30}",
            damage in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
        ) {
            let mut bytes = text.into_bytes();
            if let (Some((at, byte)), false) = (damage, bytes.is_empty()) {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            prop_assert_eq!(text_from_utf8(&bytes), std::str::from_utf8(&bytes).ok());
        }
    }
}
