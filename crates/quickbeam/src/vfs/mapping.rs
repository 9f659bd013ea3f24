//! Memory that the operating system maps, accessed as atomic words: the memory of the cache and of
//! mapped files.
//!
//! Above: the buffer pool's frames and [`OsVfs`](super::OsVfs)'s files. Below: system calls.
//!
//! - MAPPING-1: a mapping's memory is accessed through [`Mapping::words`] only. (by type)
#![allow(unsafe_code)]

use std::io;
use std::sync::atomic::AtomicU64;

use super::word_copy::store_chunks;
use memmap2::{MmapAsRawDesc, MmapOptions, MmapRaw};

/// Asks the processor to fetch the cache line where a value begins, without waiting for it. Does
/// nothing where the processor has no such instruction in stable Rust.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    // SAFETY: the instruction needs SSE, which every x86-64 processor has. It reads nothing into a
    // register and never faults, whatever the address. Exercised by the tests below.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast::<i8>());
    }
    // SAFETY: `prfm` reads nothing into a register and never faults, whatever the address. The
    // instruction changes no flag and does not touch the stack. Exercised by the tests below.
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    unsafe {
        std::arch::asm!(
            "prfm pldl1keep, [{address}]",
            address = in(reg) std::ptr::from_ref(value),
            options(nostack, preserves_flags, readonly)
        );
    }
    #[cfg(any(not(any(target_arch = "x86_64", target_arch = "aarch64")), miri))]
    let _ = value;
}

/// A range of mapped memory, aligned to a page of the operating system.
pub struct Mapping {
    /// Owns the memory; only `words` below accesses it.
    memory: MmapRaw,
}

impl Mapping {
    /// Creates a zeroed mapping that is private to this process. Memory that was not accessed yet
    /// costs nothing.
    pub fn anonymous(bytes: usize) -> io::Result<Mapping> {
        Ok(Mapping { memory: MmapOptions::new().len(bytes).map_anon()?.into() })
    }

    /// Maps `bytes` of a file from `offset` on, a multiple of the operating system's page size. The
    /// file must contain the range. Access beyond the end of a file that was truncated later ends
    /// the process; it never reaches other memory.
    pub fn of_file(file: impl MmapAsRawDesc, offset: u64, bytes: usize) -> io::Result<Mapping> {
        Ok(Mapping { memory: MmapOptions::new().offset(offset).len(bytes).map_raw(file)? })
    }

    /// Advises the operating system how the memory will be used. Nothing depends on its effect.
    pub fn advise(&self, advice: memmap2::Advice) -> io::Result<()> {
        self.memory.advise(advice)
    }

    /// Makes the operating system allocate the memory of that range now, in whole pages, so that
    /// the first access need not wait. Fails if an access would end the process. Does nothing if
    /// the system does not support it.
    pub fn populate(&self, from: usize, bytes: usize) -> io::Result<()> {
        #[cfg(all(target_os = "linux", not(miri)))]
        match self.memory.advise_range(memmap2::Advice::PopulateWrite, from, bytes) {
            // Linux before 5.14.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
            done => return done,
        }
        #[cfg(any(not(target_os = "linux"), miri))]
        let _ = (from, bytes);
        Ok(())
    }

    /// Returns all of the memory.
    pub fn words(&self) -> &[AtomicU64] {
        let length = self.memory.len() / 8;
        // SAFETY: the mapping is page-aligned, readable, writable, initialized (with zeros or a
        // file's content) and lives as long as `self`. Any bit pattern is a valid AtomicU64.
        // `memory` is private and never exposed as bytes, so this process accesses it only through
        // such atomics, in this mapping or another of the same file. A change by another process in
        // a mapped file appears as another value of an atomic. Exercised by the tests below, and by
        // every engine test through the arena.
        unsafe { std::slice::from_raw_parts(self.memory.as_mut_ptr().cast::<AtomicU64>(), length) }
    }

    /// Stores `bytes` at `offset`, both multiples of eight. Returns false, storing nothing, if the
    /// range is not inside.
    pub fn store(&self, bytes: &[u8], offset: u64) -> bool {
        let (values, odd) = bytes.as_chunks::<8>();
        let start = usize::try_from(offset / 8).unwrap_or(usize::MAX);
        let words = self.words().get(start..).and_then(|words| words.get(..values.len()));
        let Some(words) = words.filter(|_| odd.is_empty() && offset.is_multiple_of(8)) else {
            return false;
        };
        store_chunks(words, values);
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn prefetch_changes_no_word() {
        let mapping = Mapping::anonymous(4096).unwrap();
        assert!(mapping.store(&[7; 24], 512));
        mapping.words().iter().for_each(prefetch);
        let set = mapping.words().iter().filter(|word| word.load(Ordering::Relaxed) != 0).count();
        assert_eq!(set, 3);
    }

    #[test]
    fn mapping_stores_only_inside_its_bounds() {
        let mapping = Mapping::anonymous(4096).unwrap();
        assert!(mapping.words().iter().all(|word| word.load(Ordering::Relaxed) == 0));
        assert!(mapping.store(&[7; 24], 4096 - 24));
        for (bytes, offset) in [(16, 4088), (8, 4096), (8, u64::MAX - 7), (8, 4), (7, 8)] {
            assert!(!mapping.store(&[9; 16][..bytes], offset), "{bytes} bytes at {offset}");
        }
        let set = mapping.words().iter().filter(|word| word.load(Ordering::Relaxed) != 0).count();
        assert_eq!(set, 3);
    }

    #[cfg(not(miri))]
    #[test]
    fn file_reads_bytes_stored_in_its_mapping() {
        use std::os::unix::fs::FileExt;

        let file = tempfile::tempfile().unwrap();
        file.set_len(16384).unwrap();
        let mapping = Mapping::of_file(&file, 8192, 8192).unwrap();
        assert!(mapping.store(b"sixteen letters.", 4088));
        let mut back = [0; 16];
        file.read_exact_at(&mut back, 8192 + 4088).unwrap();
        assert_eq!(&back, b"sixteen letters.");
    }
}
