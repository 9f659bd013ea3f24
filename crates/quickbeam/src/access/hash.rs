//! The hash access method: finds records by the hash value of their key.
//!
//! Above: transactions and the data store, which put the hash value before the key. Below: the
//! tree. A hash database is a tree whose keys begin with hash values. Its leaves are buckets, each
//! for a range of hash values, and they split where the range is halved, as in extendible hashing.
//! The tree's inner pages store the directory of the buckets. A [`BucketDirectory`] is the same
//! directory in memory, as an array: it leads to the bucket in one step.
//!
//! - HASH-1: a stored key is a big-endian hash value followed by the key. The hash value is
//!   computed from the key, or from the key's bucket prefix ([`hashed_part`]). Keys with equal hash
//!   values are neighbors and are ordered as in any tree, so no choice of keys breaks the tree.
//! - HASH-2: an entry of a directory is a hint. The leaf that it names is used only if its fences
//!   cover the stored key (BTREE-1). Otherwise the descent from the root finds the leaf, and the
//!   directory learns it. So the directory is neither logged nor stored, needs no latch, and is
//!   empty after opening.
//! - HASH-3: a directory has at most [`SLOTS_PER_PAGE`] slots for each page of the environment, of
//!   four bytes each.
//!
//! Sources: Fagin, Nievergelt, Pippenger, Strong, "Extendible Hashing" (1979); Litwin, "Trie
//! Hashing" (1981), for buckets kept as the leaves of a tree over hash values. `docs/adr` records
//! the decision.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::options::AccessMethod;
pub use crate::page::HASH_BYTES;
use crate::page::PageId;

/// Maximum number of directory slots per page of the environment.
const SLOTS_PER_PAGE: u64 = 4;

/// Hash bits that index a new directory, and the largest directory.
const FIRST_BITS: u32 = 4;
const LAST_BITS: u32 = 28;

/// Maximum length of a stored key that is built without an allocation.
const SHORT: usize = 64;

/// Odd multipliers of the hash function, without a pattern. They are part of the file format.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
const FINISHER: u64 = 0xd6e8_feb8_6659_fd93;

/// Returns the hash value of a key. The function is part of the file format.
#[inline]
pub fn hash_of(key: &[u8]) -> u32 {
    let mut hash = (key.len() as u64).wrapping_mul(FINISHER);
    let mix = |hash: u64, word: u64| {
        let product = (hash ^ word).wrapping_mul(MULTIPLIER);
        product ^ product >> 32
    };
    let (words, rest) = key.as_chunks::<8>();
    for word in words {
        hash = mix(hash, u64::from_le_bytes(*word));
    }
    if !rest.is_empty() {
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        hash = mix(hash, u64::from_le_bytes(word));
    }
    (hash.wrapping_mul(FINISHER) >> 32) as u32
}

/// Returns the part of a key that is hashed. The rule is part of the file format.
#[inline]
pub fn hashed_part(method: AccessMethod, key: &[u8]) -> &[u8] {
    if method != AccessMethod::HashPrefix {
        return key;
    }
    let part = key.split_first_chunk().and_then(|(length, rest)| {
        let length = usize::from(u16::from_be_bytes(*length));
        rest.get(..length)
    });
    part.unwrap_or(key)
}

/// Computes the bounds of a bucket prefix's stored keys. Replaces `group`, the bucket prefix, by
/// the inclusive lower bound, and sets `end` to the exclusive upper bound. Returns the hash value,
/// and false if there is no upper bound.
pub fn hash_prefix_bounds(group: &mut Vec<u8>, end: &mut Vec<u8>) -> (u32, bool) {
    let hash = hash_of(hashed_part(AccessMethod::HashPrefix, group));
    group.splice(0..0, hash.to_be_bytes());
    end.clear();
    end.extend_from_slice(group);
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return (hash, true);
        }
    }
    (hash, false)
}

/// Runs `work` with the stored key (HASH-1) and its hash value.
#[inline]
pub fn with_stored<T>(method: AccessMethod, key: &[u8], work: impl FnOnce(&[u8], u32) -> T) -> T {
    let hash = hash_of(hashed_part(method, key));
    let length = HASH_BYTES + key.len();
    let mut short = [0; SHORT];
    let mut long;
    let stored = match short.get_mut(..length) {
        Some(stored) => stored,
        None => {
            long = vec![0; length];
            &mut long
        }
    };
    stored[..HASH_BYTES].copy_from_slice(&hash.to_be_bytes());
    stored[HASH_BYTES..].copy_from_slice(key);
    invariant!(HASH_1, is_stored(method, stored), "a stored key has another hash value");
    work(stored, hash)
}

/// Returns whether a stored key begins with the right hash value (HASH-1).
pub fn is_stored(method: AccessMethod, stored: &[u8]) -> bool {
    split_stored(stored).is_some_and(|(hash, key)| hash == hash_of(hashed_part(method, key)))
}

/// Splits a stored key into its hash value and the key. Returns `None` if it is too short.
pub fn split_stored(stored: &[u8]) -> Option<(u32, &[u8])> {
    stored.split_first_chunk().map(|(hash, key)| (u32::from_be_bytes(*hash), key))
}

/// Maps the first bits of a hash value to the bucket last found for them.
pub struct BucketDirectory {
    /// Number of bits in use.
    bits: AtomicU32,
    /// Slots changed since the number of bits grew.
    learned: AtomicU32,
    /// The slots for each number of bits so far. Arrays for fewer bits are no longer used.
    sizes: [OnceLock<Box<[AtomicU32]>>; (LAST_BITS - FIRST_BITS + 1) as usize],
}

impl fmt::Debug for BucketDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BucketDirectory").field("bits", &self.bits).finish_non_exhaustive()
    }
}

impl BucketDirectory {
    /// Creates an empty directory.
    pub fn new() -> BucketDirectory {
        BucketDirectory {
            bits: AtomicU32::new(FIRST_BITS),
            learned: AtomicU32::new(0),
            sizes: [const { OnceLock::new() }; (LAST_BITS - FIRST_BITS + 1) as usize],
        }
    }

    /// Returns the slot for `hash` in the array for `bits`.
    #[inline]
    fn slot(&self, bits: u32, hash: u32) -> Option<&AtomicU32> {
        let slots = self.sizes.get((bits - FIRST_BITS) as usize)?.get()?;
        slots.get((hash >> (u32::BITS - bits)) as usize)
    }

    /// Returns the leaf that may hold records with that hash value, or 0 if it is unknown.
    #[inline]
    pub fn leaf_for(&self, hash: u32) -> PageId {
        let slot = self.slot(self.bits.load(Ordering::Acquire), hash);
        slot.map_or(0, |slot| PageId::from(slot.load(Ordering::Relaxed)))
    }

    /// Records that records with that hash value are in `leaf`. `pages` is the number of pages of
    /// the environment.
    #[cold]
    pub fn record(&self, hash: u32, leaf: PageId, pages: u64) {
        // Leaves with larger page numbers are always found from the root.
        let Ok(leaf) = u32::try_from(leaf) else { return };
        let bits = self.bits.load(Ordering::Acquire);
        if self.slot(bits, hash).is_none() {
            self.make(bits, |_| 0);
        }
        if let Some(slot) = self.slot(bits, hash) {
            slot.store(leaf, Ordering::Relaxed);
        }
        // Slots that change repeatedly cover more than one leaf each.
        let slots = 1u32 << bits;
        let learned = self.learned.fetch_add(1, Ordering::Relaxed);
        if learned >= slots * 2
            && bits < LAST_BITS
            && u64::from(slots) * 2 <= pages * SLOTS_PER_PAGE
        {
            self.make(bits + 1, |at| self.leaf_for((at as u32) << (u32::BITS - bits - 1)) as u32);
            self.learned.store(0, Ordering::Relaxed);
            self.bits.fetch_max(bits + 1, Ordering::Release);
            let slots = self.sizes.get((bits + 1 - FIRST_BITS) as usize).and_then(OnceLock::get);
            invariant!(
                HASH_3,
                slots.is_some_and(|slots| slots.len() as u64 <= pages * SLOTS_PER_PAGE),
                "a directory for {pages} pages grew to {:?} slots",
                slots.map(|slots| slots.len())
            );
        }
    }

    fn make(&self, bits: u32, leaf_at: impl Fn(usize) -> u32) {
        if let Some(size) = self.sizes.get((bits - FIRST_BITS) as usize) {
            size.get_or_init(|| (0..1 << bits).map(|at| AtomicU32::new(leaf_at(at))).collect());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_values_equal_the_file_formats() {
        assert_eq!(hash_of(b""), 0);
        assert_eq!(hash_of(b"a"), 0x6cb5_304e);
        assert_eq!(hash_of(b"12345678"), 0x22a8_940e);
        assert_eq!(hash_of(b"The quick brown fox"), 0xfa95_3a2f);
    }

    /// As many keys of each kind as there are slots fill at least half of the slots; random keys
    /// would fill 63 of 100.
    #[test]
    #[cfg_attr(miri, ignore = "numbers alone, and many of them")]
    fn hash_values_of_consecutive_keys_are_spread() {
        const COUNT: u32 = 1 << 14;
        let kinds: [fn(u32) -> Vec<u8>; 7] = [
            |n| n.to_be_bytes().to_vec(),
            |n| n.to_le_bytes().to_vec(),
            |n| u64::from(n).to_be_bytes().to_vec(),
            |n| (u64::from(n) << 20).to_be_bytes().to_vec(),
            |n| format!("{n:010}").into_bytes(),
            |n| format!("a longer key with its number, {n}, in the middle of it").into_bytes(),
            |n| [(n / 128).to_be_bytes(), (n % 128).to_be_bytes()].concat(),
        ];
        for (kind, key_of) in kinds.iter().enumerate() {
            for shift in [0, 9, 18] {
                let mut seen = vec![false; COUNT as usize];
                for n in 0..COUNT {
                    seen[((hash_of(&key_of(n)) << shift) >> 18) as usize] = true;
                }
                let filled = seen.iter().filter(|seen| **seen).count() as u32;
                assert!(filled >= COUNT / 2, "kind {kind}, bits from {shift}: {filled} of {COUNT}");
            }
        }
    }

    #[test]
    fn stored_key_splits_into_hash_and_key() {
        for length in [0, 1, 59, 60, 61, 500] {
            let key = vec![7; length];
            for method in [AccessMethod::Hash, AccessMethod::HashPrefix] {
                with_stored(method, &key, |stored, hash| {
                    assert_eq!(split_stored(stored), Some((hash, &key[..])));
                    assert!(is_stored(method, stored));
                });
            }
        }
        assert_eq!(split_stored(b"abc"), None);
    }

    #[test]
    fn hash_prefix_is_the_hashed_part() {
        let prefix = AccessMethod::HashPrefix;
        assert_eq!(hashed_part(AccessMethod::Hash, b"\0\x01ab"), b"\0\x01ab");
        assert_eq!(hashed_part(prefix, b"\0\x01ab"), b"a");
        assert_eq!(hashed_part(prefix, b"\0\0ab"), b"");
        for short in [&b""[..], b"\0", b"\0\x03ab"] {
            assert_eq!(hashed_part(prefix, short), short);
        }
        let (mut low, mut high) = (b"\0\x02a\xff".to_vec(), vec![1]);
        let (hash, is_bounded) = hash_prefix_bounds(&mut low, &mut high);
        assert!(is_bounded && hash == hash_of(b"a\xff"));
        let begin = [&hash.to_be_bytes()[..], b"\0\x02"].concat();
        assert_eq!((low, high), ([&begin[..], b"a\xff"].concat(), [&begin[..], b"b"].concat()));
    }

    #[test]
    #[cfg_attr(miri, ignore = "tens of thousands of keys: too much for an interpreter")]
    fn directory_grows_to_its_use_and_no_further() {
        // 512 leaves, each for an equal range of hash values.
        let leaf_of = |hash: u32| PageId::from(hash >> 23) + 1;
        let directory = BucketDirectory::new();
        assert_eq!(directory.leaf_for(0), 0);
        let mut wrong = 0;
        for n in 0..1 << 16 {
            let hash = hash_of(&u32::to_be_bytes(n));
            if directory.leaf_for(hash) != leaf_of(hash) {
                wrong += u32::from(n >= 1 << 15);
                directory.record(hash, leaf_of(hash), 1000);
            }
        }
        assert_eq!(wrong, 0, "it knows every leaf by now");
        // At the maximum number of slots the directory still works, with hints that are often
        // wrong.
        let directory = BucketDirectory::new();
        for n in 0..1 << 14 {
            let hash = hash_of(&u32::to_be_bytes(n));
            directory.record(hash, leaf_of(hash), 40);
            assert_eq!(directory.leaf_for(hash), leaf_of(hash));
        }
        assert!(directory.sizes[4].get().is_none(), "256 slots are more than 40 pages allow");
        directory.record(5, PageId::MAX, 40);
        assert_ne!(directory.leaf_for(5), PageId::MAX);
    }
}
