//! The hash access method: records found by the hash value of their key.
//!
//! Above: transactions and the data store, which put hash values before keys. Below: the tree. A hash database is a tree
//! whose keys begin with hash values, so its leaves are buckets, each for a range of hash values; they split where the
//! range is halved, as buckets of extendible hashing do. The tree's inner pages are the directory of the buckets as it
//! is stored. A [`BucketDirectory`] is the same in memory, as an array: it leads to the bucket in one step.
//!
//! - HASH-1: a stored key is the hash value of the key, or of the key's group ([`hashed_part`]), big-endian, and the key. Keys of the same hash value lie next to
//!   each other and are told apart as any keys are: no choice of keys makes the tree anything but a tree.
//! - HASH-2: what a directory says is a guess. The leaf that it names counts only if it says itself that it is for the
//!   stored key (BTREE-1); otherwise the walk from the root tells, and the directory learns it. So it is neither
//!   logged nor stored, needs no latch, and is empty after opening.
//! - HASH-3: a directory has at most [`SLOTS_PER_PAGE`] slots for each page of the environment, of four bytes each.
//!
//! Sources: Fagin, Nievergelt, Pippenger, Strong, "Extendible Hashing" (1979); Litwin, "Trie Hashing" (1981), for buckets
//! kept as the leaves of a tree over hash values. `docs/adr` says why it is this way.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::options::AccessMethod;
pub use crate::page::HASH_BYTES;
use crate::page::PageId;

/// Most slots of a directory for each page that there is.
const SLOTS_PER_PAGE: u64 = 4;

/// Bits of the hash value that a new directory goes by, and that the largest one does.
const FIRST_BITS: u32 = 4;
const LAST_BITS: u32 = 28;

/// Stored keys up to this length are made without asking for memory.
const SHORT: usize = 64;

/// Odd numbers without a pattern: what the hash function multiplies by. They are part of the file format.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
const FINISHER: u64 = 0xd6e8_feb8_6659_fd93;

/// The hash value of a key. Part of the file format.
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

/// The part of a key that its hash value is of. Part of the file format.
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

/// Makes the key of a group the bounds of the stored keys of its records: from the first, up to and without the second; false when they
/// go up to the last of all. And their hash value.
pub fn group_bounds(group: &mut Vec<u8>, end: &mut Vec<u8>) -> (u32, bool) {
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

/// Runs `work` with the key as it is stored (HASH-1), and its hash value.
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
    work(stored, hash)
}

/// Whether a stored key begins with the hash value that it should (HASH-1).
pub fn is_stored(method: AccessMethod, stored: &[u8]) -> bool {
    split_stored(stored).is_some_and(|(hash, key)| hash == hash_of(hashed_part(method, key)))
}

/// The hash value that a stored key begins with, and the key; `None` when it is too short to be one.
pub fn split_stored(stored: &[u8]) -> Option<(u32, &[u8])> {
    stored.split_first_chunk().map(|(hash, key)| (u32::from_be_bytes(*hash), key))
}

/// For the first bits of hash values, the bucket last found for them.
pub struct BucketDirectory {
    /// How many bits count now.
    bits: AtomicU32,
    /// Slots changed since that number grew.
    learned: AtomicU32,
    /// For each number of bits that there has been, the slots. Those of smaller ones are not used any more.
    sizes: [OnceLock<Box<[AtomicU32]>>; (LAST_BITS - FIRST_BITS + 1) as usize],
}

impl fmt::Debug for BucketDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BucketDirectory").field("bits", &self.bits).finish_non_exhaustive()
    }
}

impl BucketDirectory {
    /// One that knows nothing yet.
    pub fn new() -> BucketDirectory {
        BucketDirectory {
            bits: AtomicU32::new(FIRST_BITS),
            learned: AtomicU32::new(0),
            sizes: [const { OnceLock::new() }; (LAST_BITS - FIRST_BITS + 1) as usize],
        }
    }

    /// The slots, and the one of them for that hash value.
    #[inline]
    fn slot(&self, bits: u32, hash: u32) -> Option<&AtomicU32> {
        let slots = self.sizes.get((bits - FIRST_BITS) as usize)?.get()?;
        slots.get((hash >> (u32::BITS - bits)) as usize)
    }

    /// The leaf that records of that hash value may be in; 0 when it is not known.
    #[inline]
    pub fn leaf_for(&self, hash: u32) -> PageId {
        let slot = self.slot(self.bits.load(Ordering::Acquire), hash);
        slot.map_or(0, |slot| PageId::from(slot.load(Ordering::Relaxed)))
    }

    /// Notes that records of that hash value are in `leaf`. `pages` is how many there are of all kinds.
    #[cold]
    pub fn learn(&self, hash: u32, leaf: PageId, pages: u64) {
        // A page past this number is found by walking.
        let Ok(leaf) = u32::try_from(leaf) else { return };
        let bits = self.bits.load(Ordering::Acquire);
        if self.slot(bits, hash).is_none() {
            self.make(bits, |_| 0);
        }
        if let Some(slot) = self.slot(bits, hash) {
            slot.store(leaf, Ordering::Relaxed);
        }
        // Slots that change again and again are for more than one leaf each.
        let slots = 1u32 << bits;
        let learned = self.learned.fetch_add(1, Ordering::Relaxed);
        if learned >= slots * 2
            && bits < LAST_BITS
            && u64::from(slots) * 2 <= pages * SLOTS_PER_PAGE
        {
            self.make(bits + 1, |at| self.leaf_for((at as u32) << (u32::BITS - bits - 1)) as u32);
            self.learned.store(0, Ordering::Relaxed);
            self.bits.fetch_max(bits + 1, Ordering::Release);
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
    fn hash_values_are_those_of_the_file_format() {
        assert_eq!(hash_of(b""), 0);
        assert_eq!(hash_of(b"a"), 0x6cb5_304e);
        assert_eq!(hash_of(b"12345678"), 0x22a8_940e);
        assert_eq!(hash_of(b"The quick brown fox"), 0xfa95_3a2f);
    }

    /// Keys as tables have them: of each kind as many as there are slots fill at least half of the slots; so many
    /// thrown at random would fill 63 of 100.
    #[test]
    #[cfg_attr(miri, ignore = "numbers alone, and many of them")]
    fn hash_values_of_keys_that_count_up_are_spread() {
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
    fn a_stored_key_is_taken_apart() {
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
    fn a_group_is_what_the_hash_value_is_of() {
        let prefix = AccessMethod::HashPrefix;
        assert_eq!(hashed_part(AccessMethod::Hash, b"\0\x01ab"), b"\0\x01ab");
        assert_eq!(hashed_part(prefix, b"\0\x01ab"), b"a");
        assert_eq!(hashed_part(prefix, b"\0\0ab"), b"");
        for short in [&b""[..], b"\0", b"\0\x03ab"] {
            assert_eq!(hashed_part(prefix, short), short);
        }
        let (mut low, mut high) = (b"\0\x02a\xff".to_vec(), vec![1]);
        let (hash, is_bounded) = group_bounds(&mut low, &mut high);
        assert!(is_bounded && hash == hash_of(b"a\xff"));
        let begin = [&hash.to_be_bytes()[..], b"\0\x02"].concat();
        assert_eq!((low, high), ([&begin[..], b"a\xff"].concat(), [&begin[..], b"b"].concat()));
    }

    #[test]
    #[cfg_attr(miri, ignore = "tens of thousands of keys: too much for an interpreter")]
    fn a_directory_grows_to_what_it_is_used_for_and_no_further() {
        // 512 leaves, each for as many hash values as the others.
        let leaf_of = |hash: u32| PageId::from(hash >> 23) + 1;
        let directory = BucketDirectory::new();
        assert_eq!(directory.leaf_for(0), 0);
        let mut wrong = 0;
        for n in 0..1 << 16 {
            let hash = hash_of(&u32::to_be_bytes(n));
            if directory.leaf_for(hash) != leaf_of(hash) {
                wrong += u32::from(n >= 1 << 15);
                directory.learn(hash, leaf_of(hash), 1000);
            }
        }
        assert_eq!(wrong, 0, "it knows every leaf by now");
        // With so many slots as are allowed it goes on, with guesses that are often wrong.
        let directory = BucketDirectory::new();
        for n in 0..1 << 14 {
            let hash = hash_of(&u32::to_be_bytes(n));
            directory.learn(hash, leaf_of(hash), 40);
            assert_eq!(directory.leaf_for(hash), leaf_of(hash));
        }
        assert!(directory.sizes[4].get().is_none(), "256 slots are more than 40 pages allow");
        directory.learn(5, PageId::MAX, 40);
        assert_ne!(directory.leaf_for(5), PageId::MAX);
    }
}
