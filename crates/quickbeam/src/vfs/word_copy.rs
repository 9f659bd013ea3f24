//! Copies between atomic words and bytes, and between atomic words, in the largest moves that the
//! processor has.
//!
//! Above: pages and mapped files. Below: instructions. The compiler never joins relaxed loads of
//! neighboring words to a larger move, because the language has no such access. Copying word by
//! word takes up to twice as long (`docs/adr/0017-word-copies.md`).
//!
//! - WORD-COPY-1: a copy accesses no byte outside of the slices that it was given.
//! - WORD-COPY-2: a copy accesses each aligned word whole, as relaxed loads and stores of the words
//!   in some order would. (by type)
#![allow(unsafe_code)]

use std::sync::atomic::AtomicU64;

#[cfg(all(target_arch = "x86_64", not(miri)))]
use vectors as longest;
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
use words as longest;

/// Bytes from which vectors are used.
const VECTOR: usize = 16;

/// Copies the bytes of `words` from byte number `skip` of the first word on to `out`. Returns
/// false, with `out` unchanged, if there are fewer.
#[inline]
pub fn load_bytes(words: &[AtomicU64], skip: usize, out: &mut [u8]) -> bool {
    if (words.len() * 8).checked_sub(skip).is_none_or(|there| there < out.len()) {
        return false;
    }
    match out.len() {
        ..VECTOR => words::load(words, skip, out),
        VECTOR.. => longest::load(words, skip, out),
    }
    true
}

/// Stores `chunks` in the first words, as many as there are of both.
#[inline]
pub fn store_chunks(words: &[AtomicU64], chunks: &[[u8; 8]]) {
    let count = words.len().min(chunks.len());
    longest::store(&words[..count], &chunks[..count]);
}

/// Fills the first words of `target` with the bytes of `source`, which is other memory, from byte
/// number `skip` of its first word on: as many whole words as there are of both.
#[inline]
pub fn copy_words(target: &[AtomicU64], source: &[AtomicU64], skip: usize) {
    let count = target.len().min((source.len() * 8).saturating_sub(skip) / 8);
    if count > 0 {
        longest::copy(&target[..count], source, skip);
    }
}

/// Copies word by word. The lengths fit each other.
mod words {
    use std::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering::Relaxed;

    /// Returns eight bytes from byte number `skip` of word number `nth` on, zeros past the end.
    #[inline]
    fn eight(words: &[AtomicU64], nth: usize, skip: usize) -> u64 {
        let word = |nth: usize| words.get(nth).map_or(0, |word| word.load(Relaxed));
        let (first, shift) = (nth + skip / 8, skip % 8 * 8);
        match shift {
            0 => word(first),
            _ => word(first) >> shift | word(first + 1) << (64 - shift),
        }
    }

    #[inline]
    pub fn load(words: &[AtomicU64], skip: usize, out: &mut [u8]) {
        let (chunks, rest) = out.as_chunks_mut::<8>();
        for (nth, chunk) in chunks.iter_mut().enumerate() {
            *chunk = eight(words, nth, skip).to_le_bytes();
        }
        if !rest.is_empty() {
            let last = eight(words, chunks.len(), skip).to_le_bytes();
            rest.copy_from_slice(&last[..rest.len()]);
        }
    }

    #[cfg_attr(all(target_arch = "x86_64", not(miri)), allow(dead_code))]
    #[inline]
    pub fn store(words: &[AtomicU64], chunks: &[[u8; 8]]) {
        for (word, chunk) in words.iter().zip(chunks) {
            word.store(u64::from_le_bytes(*chunk), Relaxed);
        }
    }

    #[cfg_attr(all(target_arch = "x86_64", not(miri)), allow(dead_code))]
    #[inline]
    pub fn copy(target: &[AtomicU64], source: &[AtomicU64], skip: usize) {
        for (nth, word) in target.iter().enumerate() {
            word.store(eight(source, nth, skip), Relaxed);
        }
    }
}

/// Copies in SSE2 vectors and with the string instruction of x86-64. The lengths fit each other.
///
/// An aligned word lies within one cache line and is part of a single access of it, also where a
/// vector begins inside a word or the string instruction moves whole lines. So each word is
/// accessed whole (WORD-COPY-2).
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod vectors {
    use std::arch::asm;
    use std::arch::x86_64::__m128i;
    use std::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering::Relaxed;

    use super::VECTOR;

    /// Words of a vector.
    const VECTOR_WORDS: usize = VECTOR / 8;

    /// Bytes from which the string instruction, which takes a while to begin, is faster.
    const STRING_LEAST: usize = 768;

    #[inline]
    pub fn load(words: &[AtomicU64], skip: usize, out: &mut [u8]) {
        let length = out.len();
        invariant!(
            WORD_COPY_1,
            length >= VECTOR && skip + length <= words.len() * 8,
            "{length} bytes from byte {skip} of {} words",
            words.len()
        );
        // SAFETY: `load_bytes` has compared the lengths: the words contain all bytes from `skip` to
        // `skip + length`, so those of each vector below, too. Exercised by the tests below.
        unsafe {
            let from = words.as_ptr().cast::<u8>().add(skip);
            if length >= STRING_LEAST {
                move_string(from, out.as_mut_ptr(), length / 8);
            } else {
                let vectors = out.as_chunks_mut::<VECTOR>().0;
                for (nth, vector) in vectors.iter_mut().enumerate() {
                    *vector = load_vector(from.add(nth * VECTOR));
                }
            }
            if !length.is_multiple_of(VECTOR) {
                // The last vector overlaps the one before it.
                let last = length - VECTOR;
                out[last..].copy_from_slice(&load_vector(from.add(last)));
            }
        }
    }

    #[inline]
    pub fn store(words: &[AtomicU64], chunks: &[[u8; 8]]) {
        let bytes = chunks.as_flattened();
        // SAFETY: both slices have the same length (`store_chunks`), and atomics may be changed
        // through a shared reference. Exercised by the tests below.
        unsafe {
            let to = words.as_ptr().cast_mut().cast::<u8>();
            if bytes.len() >= STRING_LEAST {
                return move_string(bytes.as_ptr(), to, chunks.len());
            }
            let vectors = bytes.as_chunks::<VECTOR>().0;
            for (nth, vector) in vectors.iter().enumerate() {
                store_vector(to.add(nth * VECTOR), *vector);
            }
        }
        if !chunks.len().is_multiple_of(VECTOR_WORDS)
            && let (Some(word), Some(chunk)) = (words.last(), chunks.last())
        {
            word.store(u64::from_le_bytes(*chunk), Relaxed);
        }
    }

    #[inline]
    pub fn copy(target: &[AtomicU64], source: &[AtomicU64], skip: usize) {
        let bytes = target.len() * 8;
        invariant!(
            WORD_COPY_1,
            skip + bytes <= source.len() * 8,
            "{bytes} bytes from byte {skip} of {} words",
            source.len()
        );
        // SAFETY: `copy_words` has compared the lengths. Exercised by the tests below.
        unsafe {
            let from = source.as_ptr().cast::<u8>().add(skip);
            let to = target.as_ptr().cast_mut().cast::<u8>();
            if bytes >= STRING_LEAST {
                return move_string(from, to, target.len());
            }
            for at in (0..bytes / VECTOR).map(|nth| nth * VECTOR) {
                store_vector(to.add(at), load_vector(from.add(at)));
            }
        }
        if !target.len().is_multiple_of(VECTOR_WORDS)
            && let Some(last) = target.last()
        {
            let mut word = [0; 8];
            super::words::load(source, skip + bytes - 8, &mut word);
            last.store(u64::from_le_bytes(word), Relaxed);
        }
    }

    /// Returns the vector at `from`.
    ///
    /// # Safety
    ///
    /// The vector's bytes lie within a slice of atomics.
    #[inline(always)]
    unsafe fn load_vector(from: *const u8) -> [u8; VECTOR] {
        let vector: __m128i;
        // SAFETY: by the contract above. Other threads may change the words meanwhile, because they
        // are atomics. The instruction needs SSE2, which every x86-64 processor has, and no
        // alignment. `__m128i` and the array have the same size, and every bit pattern is valid in
        // both. Exercised by the tests below.
        unsafe {
            asm!(
                "movdqu {vector}, [{from}]",
                from = in(reg) from,
                vector = out(xmm_reg) vector,
                options(nostack, preserves_flags, readonly)
            );
            std::mem::transmute::<__m128i, [u8; VECTOR]>(vector)
        }
    }

    /// Stores a vector at `to`.
    ///
    /// # Safety
    ///
    /// The vector's bytes lie within a slice of atomics, from a word's start on.
    #[inline(always)]
    unsafe fn store_vector(to: *mut u8, vector: [u8; VECTOR]) {
        // SAFETY: by the contract above, as for `load_vector`. Exercised by the tests below.
        unsafe {
            asm!(
                "movdqu [{to}], {vector}",
                to = in(reg) to,
                vector = in(xmm_reg) std::mem::transmute::<[u8; VECTOR], __m128i>(vector),
                options(nostack, preserves_flags)
            );
        }
    }

    /// Moves words, each by one access of it, so that a process that dies meanwhile has moved whole
    /// words.
    ///
    /// # Safety
    ///
    /// `from` may be read and `to` written for `words` words. What other threads may access
    /// meanwhile lies within slices of atomics, and what is written there begins with a word.
    #[inline(always)]
    unsafe fn move_string(from: *const u8, to: *mut u8, words: usize) {
        // SAFETY: by the contract above. The direction flag is clear on entry of an `asm!` block,
        // and the instruction changes no flag. Exercised by the tests below.
        unsafe {
            asm!(
                "rep movsq",
                inout("rcx") words => _,
                inout("rsi") from => _,
                inout("rdi") to => _,
                options(nostack, preserves_flags)
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    /// Words whose bytes are all different from their neighbors'.
    fn numbered(count: usize) -> Vec<AtomicU64> {
        let word = |nth: usize| std::array::from_fn(|byte| ((nth * 8 + byte) % 251) as u8);
        (0..count).map(|nth| AtomicU64::new(u64::from_le_bytes(word(nth)))).collect()
    }

    fn nines(count: usize) -> Vec<AtomicU64> {
        (0..count).map(|_| AtomicU64::new(9)).collect()
    }

    fn bytes_of(words: &[AtomicU64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.load(Relaxed).to_le_bytes()).collect()
    }

    /// Lengths around the changes from words to vectors and to the string instruction.
    fn lengths() -> impl Iterator<Item = usize> {
        (0..70).chain(760..790).chain([1600])
    }

    #[test]
    fn loaded_bytes_are_those_of_the_words() {
        let words = numbered(300);
        let bytes = bytes_of(&words);
        for length in lengths() {
            for skip in 0..17 {
                // A byte on either side shows a copy that writes too much.
                let mut out = vec![255; length + 2];
                assert!(load_bytes(&words, skip, &mut out[1..=length]));
                assert_eq!(&out[1..=length], &bytes[skip..skip + length], "{length} from {skip}");
                assert_eq!((out[0], out[length + 1]), (255, 255), "{length} from {skip}");
            }
        }
    }

    #[test]
    fn load_past_the_last_word_changes_nothing() {
        let words = numbered(100);
        for (skip, length) in [(0, 801), (1, 800), (7, 794), (799, 2), (801, 0), (usize::MAX, 1)] {
            let mut out = vec![255; length];
            assert!(!load_bytes(&words, skip, &mut out), "{length} from {skip}");
            assert!(out.iter().all(|byte| *byte == 255));
        }
        assert!(load_bytes(&words, 799, &mut [0]) && load_bytes(&words, 800, &mut []));
    }

    #[test]
    fn stored_words_are_the_given_ones() {
        for count in (0..40).chain(90..100).chain([200]) {
            let chunks: Vec<[u8; 8]> = bytes_of(&numbered(count)).as_chunks().0.to_vec();
            for surplus in [0, 3] {
                let target = nines(count + surplus);
                store_chunks(&target, &chunks);
                assert_eq!(&bytes_of(&target)[..count * 8], chunks.as_flattened(), "{count}");
                assert!(target[count..].iter().all(|word| word.load(Relaxed) == 9));
            }
            let target = nines(count / 2);
            store_chunks(&target, &chunks);
            assert_eq!(bytes_of(&target), chunks[..count / 2].as_flattened(), "{count}");
        }
    }

    #[test]
    fn copied_words_are_those_of_the_source() {
        let source = numbered(201);
        let bytes = bytes_of(&source);
        for count in (0..40).chain(90..100).chain([199]) {
            for skip in 0..17 {
                let target = nines(count + 3);
                copy_words(&target[..count], &source, skip);
                let copied = &bytes_of(&target)[..count * 8];
                assert_eq!(copied, &bytes[skip..skip + count * 8], "{count} from {skip}");
                assert!(target[count..].iter().all(|word| word.load(Relaxed) == 9));
            }
        }
        // The source's last whole word from byte 5 on is its last but one.
        let target = nines(201);
        copy_words(&target, &source, 5);
        assert_eq!(&bytes_of(&target)[..1600], &bytes[5..1605]);
        assert_eq!(target[200].load(Relaxed), 9);
        copy_words(&target, &[], 3);
    }

    /// A reader beside a writer sees whole words.
    #[test]
    fn copies_beside_a_writer_have_whole_words() {
        let words: Vec<AtomicU64> = (0..128).map(|_| AtomicU64::new(0)).collect();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 0..2000u64 {
                    let chunk = [(round % 256) as u8; 8];
                    store_chunks(&words, &vec![chunk; if round % 2 == 0 { 128 } else { 20 }]);
                }
            });
            let mut out = vec![0; 1024];
            for round in 0..2000 {
                let length = if round % 2 == 0 { 1024 } else { 160 };
                assert!(load_bytes(&words, 0, &mut out[..length]));
                for word in out[..length].as_chunks::<8>().0 {
                    assert!(word.iter().all(|byte| *byte == word[0]), "{word:?}");
                }
            }
        });
    }
}
