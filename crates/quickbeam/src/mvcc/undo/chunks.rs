//! The undo entries of a running transaction, in chunks, of which the oldest may be in a file.
//!
//! Above: transaction records. Below: spilling. New entries go to the current chunk. A filled chunk
//! joins the older ones; if undo entries exceed their memory, the oldest chunk in memory is written
//! to the transaction's file. A rollback reads chunks back, newest first. So a transaction that
//! changes millions of records needs memory for its newest entries only.
//!
//! - CHUNK-1: entries are numbered from 0 without gaps, through the older chunks into the current
//!   one.
//! - CHUNK-2: chunks in the file precede those in memory, and lie in the file in their order.

use std::ops::Range;
use std::sync::Arc;

use crate::error::Result;
use crate::sync::atomic::{AtomicUsize, Ordering};

use super::committed::{Before, allocated, damaged};
use super::spill::{SpillFile, UndoSpill};

/// Bytes of keys, values and entries that fill a chunk.
const CHUNK_BYTES: usize = if cfg!(feature = "simulation") { 512 } else { 1 << 20 };

/// One change: the record, and its older version.
#[derive(Clone, Copy, Debug)]
pub struct UndoEntry {
    /// The tree's number.
    pub tree: u32,
    /// The record's older version.
    pub before: Before,
    /// Where the key begins in the chunk's bytes; the older value follows it.
    key_at: u32,
    key_length: u32,
    value_length: u32,
}

/// Bytes of an entry in a file, without key and value.
const ENTRY_BYTES: usize = 4 + 2 + 8 + 3 * 4;

impl UndoEntry {
    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.tree.to_le_bytes());
        bytes.extend_from_slice(&[u8::from(self.before.present), self.before.flags]);
        bytes.extend_from_slice(&self.before.version.to_le_bytes());
        for number in [self.key_at, self.key_length, self.value_length] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
    }

    fn decode(bytes: &[u8]) -> Option<UndoEntry> {
        let word = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let version = u64::from_le_bytes(*bytes.get(6..)?.first_chunk()?);
        let present = *bytes.get(4)? != 0;
        Some(UndoEntry {
            tree: word(0)?,
            before: Before { present, flags: *bytes.get(5)?, version },
            key_at: word(14)?,
            key_length: word(18)?,
            value_length: word(22)?,
        })
    }

    fn key(&self) -> Range<usize> {
        let at = self.key_at as usize;
        at..at + self.key_length as usize
    }

    fn value(&self) -> Range<usize> {
        let at = self.key().end;
        at..at + self.value_length as usize
    }
}

/// Entries with their keys and older values.
#[derive(Clone, Default)]
struct Chunk {
    entries: Vec<UndoEntry>,
    bytes: Vec<u8>,
}

impl Chunk {
    fn used(&self) -> usize {
        self.entries.len() * size_of::<UndoEntry>() + self.bytes.len()
    }

    fn allocated(&self) -> usize {
        allocated(self.bytes.capacity())
            + allocated(self.entries.capacity() * size_of::<UndoEntry>())
    }

    fn truncate(&mut self, count: usize) {
        if let Some(entry) = self.entries.get(count) {
            self.bytes.truncate(entry.key_at as usize);
            self.entries.truncate(count);
        }
    }

    fn trees(&self) -> Box<[u32]> {
        let mut trees: Vec<u32> = self.entries.iter().map(|entry| entry.tree).collect();
        trees.sort_unstable();
        trees.dedup();
        trees.into_boxed_slice()
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.entries.len() * ENTRY_BYTES + self.bytes.len());
        self.entries.iter().for_each(|entry| entry.encode(&mut bytes));
        bytes.extend_from_slice(&self.bytes);
        bytes
    }
}

/// A chunk in the transaction's file.
struct FileChunk {
    at: u64,
    /// Entries written.
    written: usize,
    /// Entries left after a rollback.
    count: usize,
    /// Bytes of keys and values.
    length: usize,
    /// The trees of the changed records.
    trees: Box<[u32]>,
}

impl FileChunk {
    fn bytes_at(&self) -> u64 {
        self.at + (self.written * ENTRY_BYTES) as u64
    }

    fn entry(&self, file: &SpillFile, number: usize) -> Result<UndoEntry> {
        let at = self.at + (number * ENTRY_BYTES) as u64;
        UndoEntry::decode(&file.read(at, ENTRY_BYTES)?).ok_or_else(damaged)
    }

    /// Reads the whole chunk.
    fn read(&self, file: &SpillFile) -> Result<Chunk> {
        let all = file.read(self.at, self.written * ENTRY_BYTES + self.length)?;
        let (entries, bytes) =
            all.split_at_checked(self.written * ENTRY_BYTES).ok_or_else(damaged)?;
        let entries: Option<Vec<UndoEntry>> =
            entries.chunks_exact(ENTRY_BYTES).map(UndoEntry::decode).collect();
        let mut chunk = Chunk { entries: entries.ok_or_else(damaged)?, bytes: bytes.to_vec() };
        chunk.truncate(self.count);
        Ok(chunk)
    }
}

enum Place {
    Memory(Chunk),
    File(FileChunk),
}

struct OlderChunk {
    /// The number of its first entry.
    first: usize,
    place: Place,
}

/// Counts the bytes of one transaction's older chunks in memory, also in the sum for all.
#[derive(Default)]
struct ChunkBytes {
    own: usize,
    all: Option<Arc<AtomicUsize>>,
}

impl ChunkBytes {
    fn set(&mut self, own: usize) {
        if let Some(all) = &self.all {
            // Added before the subtraction, so that the sum never underflows.
            all.fetch_add(own, Ordering::Relaxed);
            all.fetch_sub(self.own, Ordering::Relaxed);
        }
        self.own = own;
    }
}

impl Drop for ChunkBytes {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// The undo entries of a transaction.
#[derive(Default)]
pub struct UndoChunks {
    current: Chunk,
    /// The number of the current chunk's first entry.
    first: usize,
    older: Vec<OlderChunk>,
    /// How many of the older chunks are in the file.
    spilled: usize,
    file: Option<SpillFile>,
    older_bytes: ChunkBytes,
}

impl UndoChunks {
    /// Returns the number of entries.
    #[inline]
    pub fn count(&self) -> usize {
        self.first + self.current.entries.len()
    }

    /// Returns whether the current chunk is full: [`roll`](Self::roll) makes room.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.current.used() >= CHUNK_BYTES
    }

    /// Appends an entry, whose older value `fill` appends to the key.
    #[inline]
    pub fn push(&mut self, tree: u32, key: &[u8], before: Before, fill: impl FnOnce(&mut Vec<u8>)) {
        let Chunk { entries, bytes } = &mut self.current;
        let key_at = bytes.len();
        bytes.extend_from_slice(key);
        fill(bytes);
        let value_length = (bytes.len() - key_at - key.len()) as u32;
        let key_length = key.len() as u32;
        entries.push(UndoEntry { tree, before, key_at: key_at as u32, key_length, value_length });
    }

    /// Begins another chunk. Writes the oldest ones to the file if undo entries exceed their
    /// memory.
    #[cold]
    pub fn roll(&mut self, spill: &UndoSpill) {
        let next = Chunk {
            entries: Vec::with_capacity(self.current.entries.len()),
            bytes: Vec::with_capacity(self.current.bytes.len()),
        };
        let (first, mut chunk) = (self.first, std::mem::replace(&mut self.current, next));
        chunk.entries.shrink_to_fit();
        chunk.bytes.shrink_to_fit();
        self.first += chunk.entries.len();
        invariant!(
            CHUNK_1,
            self.older.last().is_none_or(|last| last.first < first) && first < self.first,
            "a chunk begins at entry {first}"
        );
        self.older_bytes.all.get_or_insert_with(|| spill.chunk_bytes.clone());
        self.older_bytes.set(self.older_bytes.own + chunk.allocated());
        self.older.push(OlderChunk { first, place: Place::Memory(chunk) });
        while self.spilled < self.older.len() && spill.is_exceeded(0) {
            if self.spill_oldest(spill).is_none() {
                return;
            }
        }
    }

    /// Writes the oldest chunk in memory to the file. Returns `None` if that failed.
    fn spill_oldest(&mut self, spill: &UndoSpill) -> Option<()> {
        let end = match self.spilled.checked_sub(1).and_then(|last| self.older.get(last)) {
            Some(OlderChunk { place: Place::File(last), .. }) => {
                last.bytes_at() + last.length as u64
            }
            _ => 0,
        };
        if self.file.is_none() {
            self.file = spill.create_file();
        }
        let file = self.file.as_ref()?;
        let older = self.older.get_mut(self.spilled)?;
        let Place::Memory(chunk) = &older.place else { return None };
        invariant!(CHUNK_2, chunk.used() > 0, "entry {} is spilled twice", older.first);
        spill.count_failure(file.write(&chunk.encode(), end))?;
        let (written, freed) = (chunk.entries.len(), chunk.allocated());
        let (length, trees) = (chunk.bytes.len(), chunk.trees());
        older.place = Place::File(FileChunk { at: end, written, count: written, length, trees });
        self.spilled += 1;
        self.older_bytes.set(self.older_bytes.own.saturating_sub(freed));
        Some(())
    }

    /// Calls `use_entry` with entry `number`, its key and its older value. Returns `None` if there
    /// is no such entry.
    #[inline]
    pub fn with<T>(
        &self,
        number: usize,
        use_entry: impl FnOnce(&UndoEntry, &[u8], &[u8]) -> T,
    ) -> Result<Option<T>> {
        let Some(at) = number.checked_sub(self.first) else {
            return self.with_older(number, use_entry);
        };
        Ok(used_in(&self.current, at, use_entry))
    }

    #[cold]
    fn with_older<T>(
        &self,
        number: usize,
        use_entry: impl FnOnce(&UndoEntry, &[u8], &[u8]) -> T,
    ) -> Result<Option<T>> {
        let at = self.older.partition_point(|older| older.first <= number);
        let Some(older) = at.checked_sub(1).and_then(|at| self.older.get(at)) else {
            return Ok(None);
        };
        let number = number - older.first;
        match (&older.place, &self.file) {
            (Place::Memory(chunk), _) => Ok(used_in(chunk, number, use_entry)),
            (Place::File(chunk), Some(file)) if number < chunk.count => {
                let entry = chunk.entry(file, number)?;
                let length = (entry.key_length + entry.value_length) as usize;
                let bytes = file.read(chunk.bytes_at() + u64::from(entry.key_at), length)?;
                let (key, value) =
                    bytes.split_at_checked(entry.key_length as usize).ok_or_else(damaged)?;
                Ok(Some(use_entry(&entry, key, value)))
            }
            (Place::File(_), _) => Ok(None),
        }
    }

    /// Returns whether a record of that tree was changed.
    pub fn has_changed(&self, tree: u32) -> bool {
        let is_in = |chunk: &Chunk| chunk.entries.iter().any(|entry| entry.tree == tree);
        is_in(&self.current)
            || self.older.iter().any(|older| match &older.place {
                Place::Memory(chunk) => is_in(chunk),
                Place::File(chunk) => chunk.trees.contains(&tree),
            })
    }

    /// Calls `visit` with each entry in `range` and its older value, in order.
    pub fn visit(
        &self,
        range: Range<usize>,
        mut visit: impl FnMut(&UndoEntry, &[u8]),
    ) -> Result<()> {
        let mut visit_chunk = |first: usize, chunk: &Chunk| {
            let numbered = (first..).zip(&chunk.entries);
            for (_, entry) in numbered.filter(|(number, _)| range.contains(number)) {
                visit(entry, chunk.bytes.get(entry.value()).unwrap_or_default());
            }
        };
        for older in &self.older {
            match (&older.place, &self.file) {
                (Place::Memory(chunk), _) => visit_chunk(older.first, chunk),
                (Place::File(chunk), Some(file)) => {
                    let numbers = older.first..older.first + chunk.count;
                    if numbers.start < range.end && range.start < numbers.end {
                        visit_chunk(older.first, &chunk.read(file)?);
                    }
                }
                (Place::File(_), None) => return Err(damaged()),
            }
        }
        visit_chunk(self.first, &self.current);
        Ok(())
    }

    /// Makes the newest older chunk the current one while the current one is empty. Reads a chunk
    /// that is in the file. Returns the number of the current chunk's first entry.
    pub fn take_back(&mut self) -> Result<usize> {
        while self.current.entries.is_empty()
            && let Some(older) = self.older.last_mut()
        {
            self.current = match (&mut older.place, &self.file) {
                (Place::Memory(chunk), _) => {
                    self.older_bytes.set(self.older_bytes.own.saturating_sub(chunk.allocated()));
                    std::mem::take(chunk)
                }
                (Place::File(chunk), Some(file)) => chunk.read(file)?,
                (Place::File(_), None) => return Err(damaged()),
            };
            self.first = older.first;
            self.older.pop();
            self.spilled = self.spilled.min(self.older.len());
        }
        Ok(self.first)
    }

    /// Removes the entries from `number` on.
    pub fn truncate(&mut self, number: usize) {
        while number < self.first
            && let Some(OlderChunk { first, place }) = self.older.pop()
        {
            (self.current, self.first) = match place {
                Place::Memory(chunk) => {
                    self.older_bytes.set(self.older_bytes.own.saturating_sub(chunk.allocated()));
                    (chunk, first)
                }
                // Stays in the file, without its last entries.
                Place::File(mut chunk) if first < number => {
                    chunk.count = chunk.count.min(number - first);
                    let end = first + chunk.count;
                    self.older.push(OlderChunk { first, place: Place::File(chunk) });
                    (Chunk::default(), end)
                }
                Place::File(_) => (Chunk::default(), first),
            };
            self.spilled = self.spilled.min(self.older.len());
        }
        self.current.truncate(number.saturating_sub(self.first));
    }

    /// Returns the bytes of memory in use.
    pub fn allocated(&self) -> usize {
        self.current.allocated()
            + self.older_bytes.own
            + allocated(self.older.capacity() * size_of::<OlderChunk>())
    }

    /// Returns the bytes in the file.
    pub fn file_bytes(&self) -> u64 {
        self.file.as_ref().map_or(0, SpillFile::bytes)
    }

    /// Removes all entries. Returns the bytes of memory that are kept for others.
    pub fn clear(&mut self) -> usize {
        self.current.entries.clear();
        self.current.bytes.clear();
        self.first = 0;
        self.older = Vec::new();
        self.spilled = 0;
        self.file = None;
        self.older_bytes.set(0);
        self.current.bytes.capacity()
    }
}

fn used_in<T>(
    chunk: &Chunk,
    number: usize,
    use_entry: impl FnOnce(&UndoEntry, &[u8], &[u8]) -> T,
) -> Option<T> {
    let entry = chunk.entries.get(number)?;
    Some(use_entry(entry, chunk.bytes.get(entry.key())?, chunk.bytes.get(entry.value())?))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::temporary::TemporaryFiles;
    use crate::vfs::{MemoryVfs, Vfs};

    /// An entry of the model: tree, older version, key, older value.
    type Expected = (u32, Before, Vec<u8>, Vec<u8>);

    fn entry(number: u64) -> Expected {
        let before =
            Before { present: !number.is_multiple_of(3), flags: number as u8 % 4, version: number };
        let value = vec![number as u8; (number as usize * 37) % 500];
        (number as u32 % 5, before, number.to_be_bytes().to_vec(), value)
    }

    /// Checks every entry of the chunks against the model, in every way to read it.
    fn assert_same(chunks: &UndoChunks, model: &[Expected], step: u64) {
        assert_eq!(chunks.count(), model.len(), "step {step}");
        let read = |number| {
            chunks.with(number, |entry, key, value| {
                (entry.tree, entry.before, key.to_vec(), value.to_vec())
            })
        };
        for (number, expected) in model.iter().enumerate() {
            assert_eq!(read(number).unwrap().as_ref(), Some(expected), "step {step}");
        }
        assert!(read(model.len()).unwrap().is_none());
        let range = model.len() / 3..model.len() / 2;
        let mut visited = Vec::new();
        let visit = |entry: &UndoEntry, value: &[u8]| visited.push((entry.before, value.to_vec()));
        chunks.visit(range.clone(), visit).unwrap();
        let expected: Vec<_> = model[range].iter().map(|it| (it.1, it.3.clone())).collect();
        assert_eq!(visited, expected, "step {step}");
        // The lists of trees may name more after a rollback.
        assert!(model.iter().all(|it| chunks.has_changed(it.0)));
        assert!(!chunks.has_changed(9));
    }

    fn change(chunks: &mut UndoChunks, model: &mut Vec<Expected>, spill: &UndoSpill, step: u64) {
        for number in step * 1000..step * 1000 + 1 + step % 7 * 60 {
            let (tree, before, key, value) = entry(number);
            chunks.push(tree, &key, before, |bytes| bytes.extend_from_slice(&value));
            model.push((tree, before, key, value));
            // Chunks of this test are smaller than full ones.
            if number % 11 == 0 {
                chunks.roll(spill);
            }
        }
        if step.is_multiple_of(3) {
            let left = model.len() * (step as usize * 31 % 100) / 100;
            while left < chunks.count() {
                // A rollback reads chunk by chunk, and a failed one ends within a chunk.
                let first = chunks.take_back().unwrap();
                chunks.truncate(if step.is_multiple_of(2) { left } else { first.max(left) });
            }
            model.truncate(left);
        }
    }

    #[test]
    fn entries_are_found_in_memory_and_in_the_file() {
        let vfs: Arc<dyn Vfs> = Arc::new(MemoryVfs::new());
        let files = Arc::new(TemporaryFiles::new(vfs, Path::new("/undo")));
        for memory in [0, 3000, 50_000, u64::MAX] {
            let spill = UndoSpill::new(Some(files.clone()), memory);
            let (mut chunks, mut model) = (UndoChunks::default(), Vec::new());
            for step in 1..60 {
                change(&mut chunks, &mut model, &spill, step);
                assert_same(&chunks, &model, step);
                let held = spill.chunk_bytes.load(Ordering::Relaxed);
                assert_eq!(held, chunks.older_bytes.own);
                assert!(held as u64 <= memory || chunks.spilled == chunks.older.len());
            }
            assert_eq!(spill.file_bytes() > 0, memory < u64::MAX);
            chunks.clear();
            assert_same(&chunks, &[], 60);
            assert_eq!((spill.file_bytes(), spill.failures()), (0, 0));
            assert_eq!(spill.chunk_bytes.load(Ordering::Relaxed), 0);
        }
    }
}
