//! The page map and its directory, as pages.
//!
//! Chunk `i` of the page map holds the locations of pages `i * n` to `i * n + n - 1`. The directory
//! lists the chunks, the trees and the dead chains. It is a string of words, split over a list of
//! pages, each of which names the next page's location.

use crate::access::btree::Tree;
use crate::blocks::Location;
use crate::buffer::Pool;
use crate::error::{Error, Result};
use crate::options::AccessMethod;
use crate::page::{HEADER_BYTES, Page, PageId, PageKind, Scratch};

/// First page numbers of chunks and of directory pages, above all other page numbers.
pub const MAPPING_PAGES: PageId = 1 << 40;
pub const DIRECTORY_PAGES: PageId = 1 << 41;

/// The content of a checkpoint's directory.
#[derive(Default)]
pub struct PageMap {
    /// Location of each page.
    pub mapping: Vec<Location>,
    /// Locations of the chunks.
    pub chunks: Vec<Location>,
    /// Locations of the directory's own pages.
    pub pages: Vec<Location>,
    /// All trees.
    pub trees: Vec<Tree>,
    /// Overflow chains to free.
    pub dead_chains: Vec<PageId>,
}

/// Returns the number of locations in one chunk.
pub fn entries_per_page(page_size: usize) -> usize {
    (page_size - HEADER_BYTES) / 8
}

/// Writes chunk number `chunk` of the page map.
pub fn write_chunk(pool: &Pool, mapping: &[Location], chunk: usize) -> Result<Location> {
    let count = entries_per_page(pool.page_size);
    Scratch::with(pool.page_size, |page| {
        page.initialize(MAPPING_PAGES + chunk as u64, PageKind::PageMap, 0, 0);
        for i in 0..count {
            let location = mapping.get(chunk * count + i).copied().unwrap_or_default();
            page.set_word(HEADER_BYTES / 8 + i, location.0);
        }
        pool.write_block(page)
    })
}

/// Writes the directory and returns its pages' locations in order. Adds each location to `written`
/// as soon as its page is written.
pub fn write_directory(
    pool: &Pool,
    chunks: &[Location],
    trees: &[Tree],
    dead_chains: &[PageId],
    written: &mut Vec<Location>,
) -> Result<Vec<Location>> {
    let mut words = vec![chunks.len() as u64, trees.len() as u64, dead_chains.len() as u64];
    words.extend(chunks.iter().map(|location| location.0));
    words.extend(trees.iter().flat_map(|tree| [tree_word(tree), tree.root]));
    words.extend(dead_chains);
    let mut pages = Vec::new();
    let mut next = Location::NONE;
    // From the last page to the first, because each page names the next.
    let parts: Vec<&[u64]> = words.chunks(entries_per_page(pool.page_size)).collect();
    for (i, part) in parts.iter().enumerate().rev() {
        next = Scratch::with(pool.page_size, |page| {
            page.initialize(DIRECTORY_PAGES + i as u64, PageKind::Directory, 0, 0);
            page.set_link(next.0);
            page.set_count(part.len());
            for (at, &word) in part.iter().enumerate() {
                page.set_word(HEADER_BYTES / 8 + at, word);
            }
            pool.write_block(page)
        })?;
        written.push(next);
        pages.push(next);
    }
    pages.reverse();
    Ok(pages)
}

/// Reads the directory that begins at `first`, and the page map.
pub fn load_directory(pool: &Pool, first: Location) -> Result<PageMap> {
    if first == Location::NONE {
        // A new data file is empty.
        return Ok(PageMap::default());
    }
    let mut words = Vec::new();
    let mut pages = Vec::new();
    let mut next = first;
    while next != Location::NONE {
        let number = DIRECTORY_PAGES + pages.len() as u64;
        pages.push(next);
        next = Scratch::with(pool.page_size, |page| {
            pool.read_location(number, next, page)?;
            words.extend((0..page.count()).map(|at| page.word(HEADER_BYTES / 8 + at)));
            Ok(Location(page.link()))
        })?;
    }
    let mut directory =
        parse(&words).ok_or_else(|| Error::page(DIRECTORY_PAGES, "the directory is cut short"))?;
    directory.pages = pages;
    let count = entries_per_page(pool.page_size);
    for (i, &location) in directory.chunks.iter().enumerate() {
        if location == Location::NONE {
            // Chunks without pages take no space in the file, but they do in memory.
            if ((i + 1) * count) as u64 > pool.block_limit() {
                let detail = "the directory names more parts of the mapping than there can be";
                return Err(Error::page(DIRECTORY_PAGES, detail));
            }
            directory.mapping.resize((i + 1) * count, Location::NONE);
            continue;
        }
        Scratch::with(pool.page_size, |page: Page<'_>| {
            pool.read_location(MAPPING_PAGES + i as u64, location, page)?;
            let entries = (0..count).map(|at| Location(page.word(HEADER_BYTES / 8 + at)));
            directory.mapping.extend(entries);
            Ok(())
        })?;
    }
    Ok(directory)
}

/// Encodes a tree's number, and its access method in the upper half.
fn tree_word(tree: &Tree) -> u64 {
    let method = match tree.method {
        AccessMethod::BTree => 0,
        AccessMethod::Hash => 1,
        AccessMethod::HashPrefix => 2,
    };
    u64::from(tree.id) | method << 32
}

/// Parses the directory's words. Returns `None` if they are incomplete or invalid.
pub fn parse(words: &[u64]) -> Option<PageMap> {
    let (head, rest) = words.split_at_checked(3)?;
    let (chunks, rest) = rest.split_at_checked(usize::try_from(head[0]).ok()?)?;
    let trees = usize::try_from(head[1]).ok()?.checked_mul(2)?;
    let (trees, rest) = rest.split_at_checked(trees)?;
    let (dead, _) = rest.split_at_checked(usize::try_from(head[2]).ok()?)?;
    let tree = |pair: &[u64]| {
        let method = match pair[0] >> 32 {
            0 => AccessMethod::BTree,
            1 => AccessMethod::Hash,
            2 => AccessMethod::HashPrefix,
            _ => return None,
        };
        Some(Tree { id: pair[0] as u32, root: pair[1], method })
    };
    Some(PageMap {
        chunks: chunks.iter().map(|&word| Location(word)).collect(),
        trees: trees.chunks(2).map(tree).collect::<Option<_>>()?,
        dead_chains: dead.to_vec(),
        ..PageMap::default()
    })
}
