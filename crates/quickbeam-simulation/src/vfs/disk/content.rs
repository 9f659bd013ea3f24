//! The content of a file: 4 KiB chunks, shared between copies until one of them is written.

use std::sync::Arc;
use std::sync::OnceLock;

/// Bytes in a chunk.
pub const CHUNK: usize = 4096;

type Chunk = Arc<[u8; CHUNK]>;

fn zeros() -> Chunk {
    static ZEROS: OnceLock<Chunk> = OnceLock::new();
    ZEROS.get_or_init(|| Arc::new([0; CHUNK])).clone()
}

/// Bytes with a length. A chunk that was never written takes no space and reads as zeros.
#[derive(Clone, Default, Debug)]
pub struct Content {
    chunks: Vec<Option<Chunk>>,
    length: u64,
}

/// Splits a range of bytes at chunk boundaries: (chunk, offset in chunk, offset in range, length).
fn pieces(offset: u64, length: usize) -> impl Iterator<Item = (usize, usize, usize, usize)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset as usize + done;
        let take = (CHUNK - at % CHUNK).min(length - done);
        let piece = (at / CHUNK, at % CHUNK, done, take);
        done += take;
        (take > 0).then_some(piece)
    })
}

impl Content {
    /// Returns the length in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns the bytes of space in use.
    pub fn room(&self) -> u64 {
        self.chunks.iter().flatten().count() as u64 * CHUNK as u64
    }

    /// Returns the additional bytes of space that writing that range would need.
    pub fn more_room(&self, offset: u64, length: usize) -> u64 {
        let missing = |chunk: &usize| !matches!(self.chunks.get(*chunk), Some(Some(_)));
        let chunks = pieces(offset, length).map(|(chunk, ..)| chunk);
        chunks.filter(missing).count() as u64 * CHUNK as u64
    }

    /// Copies bytes out; bytes past the end read as zeros.
    pub fn read(&self, buffer: &mut [u8], offset: u64) {
        for (chunk, inside, at, take) in pieces(offset, buffer.len()) {
            match self.chunks.get(chunk) {
                Some(Some(bytes)) => {
                    buffer[at..at + take].copy_from_slice(&bytes[inside..inside + take]);
                }
                _ => buffer[at..at + take].fill(0),
            }
        }
    }

    /// Writes bytes without changing the length.
    pub fn write(&mut self, bytes: &[u8], offset: u64) {
        for (chunk, inside, at, take) in pieces(offset, bytes.len()) {
            if self.chunks.len() <= chunk {
                self.chunks.resize(chunk + 1, None);
            }
            let part = &bytes[at..at + take];
            let slot = &mut self.chunks[chunk];
            if take == CHUNK {
                let whole: &[u8; CHUNK] = part.first_chunk().unwrap_or(&[0; CHUNK]);
                *slot = Some(if *whole == [0; CHUNK] { zeros() } else { Arc::new(*whole) });
                continue;
            }
            Arc::make_mut(slot.get_or_insert_with(zeros))[inside..inside + take]
                .copy_from_slice(part);
        }
    }

    /// Grows the content to at least `length` bytes.
    pub fn grow(&mut self, length: u64) {
        self.length = self.length.max(length);
    }

    /// Truncates or grows the content; truncated bytes are lost.
    pub fn set_length(&mut self, length: u64) {
        if length < self.length {
            let keep = (length as usize).div_ceil(CHUNK);
            self.chunks.truncate(keep);
            let inside = length as usize % CHUNK;
            if inside > 0
                && let Some(Some(last)) = self.chunks.get_mut(keep - 1)
            {
                Arc::make_mut(last)[inside..].fill(0);
            }
        }
        self.length = length;
    }

    /// Allocates space for all bytes up to `length`.
    pub fn allocate(&mut self, length: u64) {
        let chunks = (length as usize).div_ceil(CHUNK);
        if self.chunks.len() < chunks {
            self.chunks.resize(chunks, None);
        }
        for chunk in &mut self.chunks[..chunks] {
            chunk.get_or_insert_with(zeros);
        }
        self.grow(length);
    }

    /// Takes over the chunks of `other`, up to this content's own length.
    pub fn revert(&mut self, other: &Content) {
        let room = self.chunks.len();
        self.chunks.clone_from(&other.chunks);
        self.chunks.resize(room, None);
    }

    /// Flips one bit.
    pub fn flip(&mut self, offset: u64, bit: u8) {
        let mut byte = [0];
        self.read(&mut byte, offset);
        self.write(&[byte[0] ^ (1 << bit)], offset);
    }
}
