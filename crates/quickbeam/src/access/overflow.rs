//! Long values: a chain of overflow pages, and a pointer to its first page in the record.
//!
//! Above: transactions and the data store. Below: the buffer pool.
//!
//! - CHAIN-1: a chain is written before the record that points to it and never changes. It is freed
//!   when no snapshot can see a record that points to it.
//!
//! Writing takes the change guard once per page, and freeing once per [`chain_slice`], so that a
//! long value does not delay a checkpoint.

use crate::buffer::{ChangeGuard, Pool};
use crate::error::{Error, Result};
use crate::page::{HEADER_BYTES, OVERFLOW, Page, PageId, PageKind, RecordBatch};

/// Maximum length of a value in bytes: 4 GiB less 64 KiB.
pub const VALUE_LIMIT: usize = (4 << 30) - (64 << 10);

/// Bytes of a pointer to a chain.
pub const POINTER_BYTES: usize = 16;

/// Encodes the pointer that a record holds.
pub fn encode_pointer(first: PageId, length: u64) -> [u8; POINTER_BYTES] {
    let mut pointer = [0; POINTER_BYTES];
    pointer[..8].copy_from_slice(&first.to_le_bytes());
    pointer[8..].copy_from_slice(&length.to_le_bytes());
    pointer
}

/// Decodes a record's pointer. Returns the first page and the value's length, or `None` if the
/// pointer is invalid.
pub fn decode_pointer(pointer: &[u8]) -> Option<(PageId, usize)> {
    let first = u64::from_le_bytes(*pointer.first_chunk()?);
    let length = u64::from_le_bytes(*pointer.get(8..)?.first_chunk()?);
    Some((first, usize::try_from(length).ok().filter(|&length| length <= VALUE_LIMIT)?))
}

/// Copies a record's pointer. What is no pointer becomes one that is refused.
pub fn pointer_of(value: &[u8]) -> [u8; POINTER_BYTES] {
    value.try_into().unwrap_or([u8::MAX; POINTER_BYTES])
}

/// A chain that is being written, page after page.
pub struct ChainWriter<'p> {
    pool: &'p Pool,
    stripe: usize,
    tree: u32,
    first: PageId,
    last: PageId,
}

impl<'p> ChainWriter<'p> {
    /// Creates a writer of a chain that has no page yet.
    pub fn new(pool: &'p Pool, stripe: usize, tree: u32) -> ChainWriter<'p> {
        ChainWriter { pool, stripe, tree, first: 0, last: 0 }
    }

    /// Returns the bytes that a page of the chain holds.
    pub fn page_room(&self) -> usize {
        self.pool.page_size - HEADER_BYTES
    }

    /// Returns the chain's first page, or 0 if it has none.
    pub fn first(&self) -> PageId {
        self.first
    }

    /// Appends a page that holds `part`, at most [`page_room`](Self::page_room) bytes. Calls
    /// `announce` with the page before a checkpoint can begin: the checkpoint has to know who frees
    /// the page after a crash.
    pub fn push(&mut self, part: &[u8], announce: impl FnOnce(PageId)) -> Result<()> {
        let change_guard = self.pool.enter(self.stripe);
        let guard = self.pool.new_page(&change_guard, PageKind::Overflow, self.tree, 0)?;
        guard.page().store_bytes(HEADER_BYTES, part);
        guard.page().set_live_bytes(part.len());
        let page = guard.id;
        drop(guard);
        if self.first == 0 {
            self.first = page;
        } else if let Err(error) = link(self.pool, &change_guard, self.last, page) {
            // The new page is not linked yet.
            self.pool.discard(&change_guard, page)?;
            return Err(error);
        }
        self.last = page;
        announce(page);
        Ok(())
    }
}

/// Writes `value` to a new chain and returns its first page. Calls `announce` with each page, as
/// [`ChainWriter::push`] does.
pub fn write_chain(
    pool: &Pool,
    stripe: usize,
    tree: u32,
    value: &[u8],
    mut announce: impl FnMut(PageId),
) -> Result<PageId> {
    let mut chain = ChainWriter::new(pool, stripe, tree);
    for part in value.chunks(chain.page_room()) {
        chain.push(part, &mut announce)?;
    }
    Ok(chain.first())
}

fn link(pool: &Pool, change_guard: &ChangeGuard, page: PageId, next: PageId) -> Result<()> {
    pool.latch(page)?.write(change_guard)?.set_link(next);
    Ok(())
}

/// Calls `visit` with one page of a chain and returns the next page. Calls it again if the page
/// changed meanwhile.
fn visit_page(
    pool: &Pool,
    page: PageId,
    mut visit: impl FnMut(Page<'_>) -> Result<()>,
) -> Result<PageId> {
    loop {
        let guard = pool.read(page)?;
        let next = guard.page.link();
        let sound = guard.page.kind() == Some(PageKind::Overflow);
        visit(guard.page)?;
        if guard.validate() {
            return match sound {
                true => Ok(next),
                false => Err(Error::page(page, "a long value continues in another kind of page")),
            };
        }
    }
}

/// Calls `visit` with each page of a chain. Fails if the chain is broken.
fn follow(
    pool: &Pool,
    first: PageId,
    mut visit: impl FnMut(PageId, Page<'_>) -> Result<()>,
) -> Result<()> {
    let mut page = first;
    let mut steps = 0;
    while page != 0 {
        page = visit_page(pool, page, |content| visit(page, content))?;
        steps += 1;
        if steps > pool.page_count() {
            return Err(Error::page(first, "a chain of overflow pages goes round in a circle"));
        }
    }
    Ok(())
}

/// Replaces the content of `out` with the value of a chain.
pub fn read_chain(pool: &Pool, pointer: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let (first, length) = check_pointer(pool, pointer)?;
    out.resize(length, 0);
    read_chain_start(pool, first, length, out)
}

/// Decodes a pointer. Fails if it is invalid, or if its value is longer than all pages together.
pub fn check_pointer(pool: &Pool, pointer: &[u8]) -> Result<(PageId, usize)> {
    let limit = pool.page_count().saturating_mul(pool.page_size as u64);
    decode_pointer(pointer)
        .filter(|&(_, length)| length as u64 <= limit)
        .ok_or_else(|| Error::page(0, "a record has a bad overflow pointer"))
}

/// Loads the first cache lines of the chains that these records of a batch point to, so that the
/// processor fetches them at the same time instead of one after another.
pub fn prefetch_chains(pool: &Pool, batch: &RecordBatch, long: &[usize]) {
    for &record in long {
        let first = decode_pointer(batch.value(record)).map_or(0, |(first, _)| first);
        if let Some(guard) = pool.read_resident(first) {
            guard.page.fetch_slots();
        }
    }
}

/// Fills `out` with the first bytes of the value of `length` bytes in a chain.
pub fn read_chain_start(pool: &Pool, first: PageId, length: usize, out: &mut [u8]) -> Result<()> {
    let broken = |found: usize| {
        Error::page(first, format!("a value of {length} bytes has {found} in its chain"))
    };
    let (mut page, mut done) = (first, 0);
    while done < out.len() && page != 0 {
        let mut found = 0;
        let rest = &mut out[done..];
        page = visit_page(pool, page, |content| {
            found = content.payload_length().min(pool.page_size);
            let copied = found.min(rest.len());
            content.copy_to(HEADER_BYTES, &mut rest[..copied]);
            Ok(())
        })?;
        done += found;
        if found == 0 {
            break;
        }
    }
    let is_whole = done == out.len() && page == 0;
    if is_whole || (out.len() < length && done >= out.len()) { Ok(()) } else { Err(broken(done)) }
}

/// Reads a chain in parts. It remembers the page that it read last, so that reading on from there
/// visits no page twice.
#[derive(Clone, Copy, Debug)]
pub struct ChainReader {
    first: PageId,
    length: u64,
    /// A page of the chain and the offset of its first byte in the value.
    page: PageId,
    page_start: u64,
}

impl ChainReader {
    /// Creates a reader of the chain that a record's pointer leads to.
    pub fn new(pool: &Pool, pointer: &[u8]) -> Result<ChainReader> {
        let (first, length) = check_pointer(pool, pointer)?;
        Ok(ChainReader { first, length: length as u64, page: first, page_start: 0 })
    }

    /// Returns the length of the value in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Fills `out` with the bytes from `offset` on. Returns how many there were: fewer than `out`
    /// holds only at the value's end.
    pub fn read_at(&mut self, pool: &Pool, offset: u64, out: &mut [u8]) -> Result<usize> {
        let wanted = (self.length.saturating_sub(offset)).min(out.len() as u64) as usize;
        if offset < self.page_start {
            (self.page, self.page_start) = (self.first, 0);
        }
        let mut done = 0;
        while done < wanted {
            let skipped = offset + done as u64 - self.page_start;
            let rest = &mut out[done..wanted];
            let (mut found, mut copied) = (0, 0);
            let next = match self.page {
                0 => return Err(self.broken()),
                page => visit_page(pool, page, |content| {
                    found = content.payload_length().min(pool.page_size);
                    let from = skipped.min(found as u64) as usize;
                    copied = (found - from).min(rest.len());
                    content.copy_to(HEADER_BYTES + from, &mut rest[..copied]);
                    Ok(())
                })?,
            };
            if found == 0 {
                return Err(self.broken());
            }
            done += copied;
            if skipped + copied as u64 == found as u64 || copied == 0 {
                (self.page, self.page_start) = (next, self.page_start + found as u64);
            }
        }
        Ok(done)
    }

    fn broken(&self) -> Error {
        let (length, found) = (self.length, self.page_start);
        Error::page(self.first, format!("a value of {length} bytes has {found} in its chain"))
    }
}

/// Copies the bytes of a short value from `offset` on into `out`. Returns how many there were.
pub fn copy_part(value: &[u8], offset: u64, out: &mut [u8]) -> usize {
    let part = value.get(offset.min(value.len() as u64) as usize..).unwrap_or_default();
    let part = part.get(..out.len()).unwrap_or(part);
    out[..part.len()].copy_from_slice(part);
    part.len()
}

/// Returns up to `limit` pages of a chain from `first` on, and the page after them, or 0 at the
/// chain's end.
pub fn chain_slice(pool: &Pool, first: PageId, limit: usize) -> Result<(Vec<PageId>, PageId)> {
    let mut pages = Vec::new();
    let mut page = first;
    while page != 0 && pages.len() < limit {
        pages.push(page);
        page = visit_page(pool, page, |_| Ok(()))?;
    }
    Ok((pages, page))
}

/// Returns the pages of a chain.
pub fn chain_pages(pool: &Pool, first: PageId) -> Result<Vec<PageId>> {
    let mut pages = Vec::new();
    follow(pool, first, |page, _| {
        if pages.last() != Some(&page) {
            pages.push(page);
        }
        Ok(())
    })?;
    Ok(pages)
}

/// Frees pages that no record points to. Their content is not read, so this works on a failing
/// device.
pub fn free_pages(pool: &Pool, change_guard: &ChangeGuard, pages: &[PageId]) -> Result<()> {
    pages.iter().try_for_each(|&page| pool.discard(change_guard, page))
}

/// Frees all pages of a chain under one guard, for an owner that no checkpoint and no other thread
/// interrupts. Finding the pages may fail; freeing them does not.
pub fn free_chain(pool: &Pool, change_guard: &ChangeGuard, first: PageId) -> Result<()> {
    free_pages(pool, change_guard, &chain_pages(pool, first)?)
}

/// Returns the first pages of the chains that a leaf's records point to.
pub fn chains_of(leaf: Page<'_>) -> Vec<PageId> {
    let mut pointer = Vec::new();
    let mut chains = Vec::new();
    for position in 0..leaf.count() {
        let record = leaf.record(position);
        if record.flags & OVERFLOW != 0 {
            pointer.clear();
            leaf.append_to(record.value_offset, record.value_length, &mut pointer);
            chains.extend(decode_pointer(&pointer).map(|(first, _)| first));
        }
    }
    chains
}
