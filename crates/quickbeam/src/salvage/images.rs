//! The page images of a damaged data file: finds the whole ones and chooses one for each page.
//!
//! Above: salvage. Below: the data file, the format of the page map.
//!
//! If a root is readable, its page map is used. Pages without an entry, because a chunk of the page
//! map or both roots are lost, are found by a scan of all blocks. Of several images of one page the
//! last written one is taken. That image may be older than the last checkpoint, so the report
//! contains a doubt.

use std::collections::HashMap;
use std::sync::Arc;

use super::{LostPage, SalvageReport};
use crate::access::btree::Tree;
use crate::blocks::{Location, RESERVED_BYTES};
use crate::checkpoint::page_map::{self, DIRECTORY_PAGES, MAPPING_PAGES};
use crate::checkpoint::{PageMap, Root};
use crate::error::Damage;
use crate::page::{Page, PageId, PageKind, Scratch, image_checksum, read_image};
use crate::vfs::File;

/// The page images of a data file, read-only.
pub struct Images {
    file: Arc<dyn File>,
    pub page_size: usize,
    /// Location of each page.
    pub mapping: HashMap<PageId, Location>,
    /// Some locations were guessed.
    pub guessed: bool,
}

/// An image found by scanning all blocks.
struct SalvagedImage {
    location: Location,
    sequence: u64,
    /// Its records have version words of transactions that may not have ended.
    unsettled: bool,
}

impl Images {
    pub fn new(file: Arc<dyn File>, page_size: usize) -> Images {
        Images { file, page_size, mapping: HashMap::new(), guessed: false }
    }

    /// Returns the images of the same file, without any known location.
    pub fn without_mapping(self) -> Images {
        Images::new(self.file, self.page_size)
    }

    /// Guesses the page size of a file without a root: the size for which most bytes are whole
    /// pages. Returns `None` if no block is a whole page.
    pub fn guess_page_size(file: &Arc<dyn File>) -> Option<usize> {
        let whole = |size: usize| (Images::new(file.clone(), size).scan().len() * size, size);
        let found = [4096, 8192, 16384, 32768, 65536].map(whole);
        found.into_iter().filter(|(bytes, _)| *bytes > 0).max().map(|(_, size)| size)
    }

    /// Reads the image of `page` at `location`.
    fn read_at<T>(
        &self,
        page: Option<PageId>,
        location: Location,
        work: impl FnOnce(Page<'_>) -> T,
    ) -> Result<T, String> {
        let mut image = vec![0; self.page_size];
        let offset = location.block() * self.page_size as u64;
        self.file.read_at(&mut image, offset).map_err(|error| error.to_string())?;
        if page.is_some() && !location.matches(image_checksum(&image)) {
            return Err("another image is where this one was written".into());
        }
        let number = page.unwrap_or_else(|| {
            image.get(8..).and_then(|b| b.first_chunk()).map_or(0, |b| u64::from_le_bytes(*b))
        });
        Scratch::with(self.page_size, |scratch| {
            read_image(&image, number, scratch).map_err(Damage::into_detail)?;
            Ok(work(scratch))
        })
    }

    /// Reads a page.
    pub fn read<T>(&self, page: PageId, work: impl FnOnce(Page<'_>) -> T) -> Result<T, String> {
        let location = self.mapping.get(&page).ok_or("the page is nowhere")?;
        self.read_at(Some(page), *location, work)
    }

    /// Reads the directory and the page map of a root, and returns the trees. On error, returns the
    /// lost page of the directory.
    pub fn load(&mut self, root: &Root, report: &mut SalvageReport) -> Result<Vec<Tree>, LostPage> {
        let mut words = Vec::new();
        let mut next = root.directory;
        let mut number = DIRECTORY_PAGES;
        while next != Location::NONE {
            let read = self.read_at(Some(number), next, |page| {
                let first = crate::page::HEADER_BYTES / 8;
                words.extend((0..page.count()).map(|at| page.word(first + at)));
                Location(page.link())
            });
            next = read.map_err(|detail| LostPage::new(number, next, "the directory", detail))?;
            number += 1;
        }
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let cut = || {
            LostPage::new(
                DIRECTORY_PAGES,
                root.directory,
                "the directory",
                "it is cut short".into(),
            )
        };
        let PageMap { chunks, trees, .. } = page_map::parse(&words).ok_or_else(cut)?;
        self.load_mapping(&chunks, report);
        Ok(trees)
    }

    fn load_mapping(&mut self, chunks: &[Location], report: &mut SalvageReport) {
        let count = page_map::entries_per_page(self.page_size) as u64;
        let mut lost = Vec::new();
        for (part, &location) in chunks.iter().enumerate() {
            if location == Location::NONE {
                continue;
            }
            let number = MAPPING_PAGES + part as u64;
            let read = self.read_at(Some(number), location, |page| {
                let first = crate::page::HEADER_BYTES / 8;
                (0..count).map(|at| Location(page.word(first + at as usize))).collect::<Vec<_>>()
            });
            let pages = part as u64 * count..(part as u64 + 1) * count;
            match read {
                Ok(locations) => self
                    .mapping
                    .extend(pages.zip(locations).filter(|(_, at)| *at != Location::NONE)),
                Err(detail) => {
                    let what = format!("where pages {} to {} are", pages.start, pages.end - 1);
                    report.lost_pages.push(LostPage::new(number, location, &what, detail));
                    lost.push(pages);
                }
            }
        }
        if !lost.is_empty() {
            self.guess(|page| lost.iter().any(|pages| pages.contains(&page)));
            report.doubts.push(
                "a part of the mapping is lost: its pages were found by looking at every block, \
                 and some may be older than the last checkpoint"
                    .into(),
            );
        }
    }

    /// Finds the pages that are `wanted` by scanning all blocks.
    pub fn guess(&mut self, wanted: impl Fn(PageId) -> bool) {
        let known: std::collections::HashSet<u64> =
            self.mapping.values().map(|location| location.block()).collect();
        for (page, images) in self.scan() {
            if !wanted(page) {
                continue;
            }
            let free = images.iter().filter(|image| !known.contains(&image.location.block()));
            let best = free.max_by_key(|image| (!image.unsettled, image.sequence));
            if let Some(best) = best {
                self.mapping.insert(page, best.location);
                self.guessed = true;
            }
        }
    }

    /// Returns every whole image of a tree page or overflow page, by page.
    fn scan(&self) -> HashMap<PageId, Vec<SalvagedImage>> {
        let mut found: HashMap<PageId, Vec<SalvagedImage>> = HashMap::new();
        let blocks = self.file.length().unwrap_or(0) / self.page_size as u64;
        for block in RESERVED_BYTES / self.page_size as u64..blocks {
            let read = self.read_at(None, Location::new(block, 0), |page| {
                let tree = matches!(
                    page.kind(),
                    Some(PageKind::Leaf | PageKind::Inner | PageKind::Overflow)
                );
                let unsettled = page.is_leaf()
                    && (0..page.count()).any(|position| page.record(position).version != 0);
                tree.then(|| (page.page_id(), page.sequence(), unsettled, page.word(0) as u32))
            });
            if let Ok(Some((page, sequence, unsettled, checksum))) = read {
                let location = Location::new(block, checksum);
                found.entry(page).or_default().push(SalvagedImage {
                    location,
                    sequence,
                    unsettled,
                });
            }
        }
        found
    }
}
