//! Salvage: everything readable of a damaged environment or data store, into a new one, with a report of what is missing.
//!
//! Above: the user. Below: images and records of the damaged directory, read here and never written; and an
//! environment or data store, the new one.
//!
//! Trees are not walked: every leaf that the mapping knows is read, and says itself which keys it is for. So a damaged
//! inner page loses nothing, and a damaged leaf leaves a gap between its neighbours' fences, which is what the report
//! names. The log is then applied across its gaps.
//!
//! - SALV-1: nothing in the damaged directory is written, made or removed.
//! - SALV-2: whatever is not in the new place and was in the old one is named: by page, by range of keys, by key or by
//!   range of the log. Where content may be older than it should be, a doubt says so.

mod images;
mod target;
mod wal;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use crate::access::btree::Tree;
use crate::access::hash::{HASH_BYTES, is_stored, split_stored};
use crate::access::overflow::decode_pointer;
use crate::blocks::{DATA_FILE, Location};
use crate::checkpoint::{Identity, MetaPages, Root, StoreKind};
use crate::environment::{CATALOG_TREE, LOCK_FILE, LOG_DIRECTORY};
use crate::error::{Error, Result};
use crate::options::{AccessMethod, Options};
use crate::page::{HEADER_BYTES, OVERFLOW, Page, PageId, PageKind};
use crate::transaction::decode_catalog_record;
use crate::vfs::{OpenMode, OsVfs, Vfs};
use crate::wal::Operation;
use images::Images;
use target::SalvageTarget;
use wal::SalvagedLog;

/// A page that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LostPage {
    /// Its number.
    pub page: u64,
    /// The block of the data file in which it was to be.
    pub block: u64,
    /// What it held, as far as is known.
    pub held: String,
    /// What is wrong with it.
    pub detail: String,
}

/// What is said of pages of which nothing is known.
const UNKNOWN: &str = "not known";

impl LostPage {
    fn new(page: PageId, location: Location, held: &str, detail: String) -> LostPage {
        LostPage { page, block: location.block(), held: held.into(), detail }
    }
}

/// A range of keys whose records are lost, but for those that the log brought back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LostRange {
    /// The database.
    pub database: String,
    /// The first key of the range, printable; of a hash database, the first hash value.
    pub from: String,
    /// The first key, or hash value, behind it; none at the end of the database.
    pub to: Option<String>,
}

/// A record whose long value is lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LostValue {
    /// The database.
    pub database: String,
    /// The record's key, printable.
    pub key: String,
    /// What is wrong with the value.
    pub detail: String,
}

/// A part of the log that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LostLog {
    /// The segment in which it begins.
    pub file: String,
    /// Log position at which it begins; both are zero where a whole segment is meant.
    pub from: u64,
    /// Log position behind it.
    pub to: u64,
    /// What is wrong with it.
    pub detail: String,
}

/// A database of the new place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SalvagedDatabase {
    /// Its name.
    pub name: String,
    /// Records in it.
    pub records: u64,
}

/// What was given back, and what is missing.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct SalvageReport {
    /// Which root it was found by.
    pub root: String,
    /// The databases of the new place.
    pub databases: Vec<SalvagedDatabase>,
    /// Page images read.
    pub pages: u64,
    /// Commits taken from the log.
    pub commits: u64,
    /// Pages that could not be read.
    pub lost_pages: Vec<LostPage>,
    /// Ranges of keys that are lost.
    pub lost_ranges: Vec<LostRange>,
    /// Long values that are lost.
    pub lost_values: Vec<LostValue>,
    /// Parts of the log that are lost.
    pub lost_log: Vec<LostLog>,
    /// What may be older than it was, or under another name.
    pub doubts: Vec<String>,
}

impl SalvageReport {
    /// Whether nothing is missing and nothing in doubt.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.lost_pages.is_empty()
            && self.lost_ranges.is_empty()
            && self.lost_values.is_empty()
            && self.lost_log.is_empty()
            && self.doubts.is_empty()
    }
}

/// Brings what is readable of the environment or data store in `from` into a new one in `into`. Of `options` the cache
/// size counts. What is missing is in the report, and no error; errors are about the new place, or about a directory that
/// holds nothing to salvage.
pub fn salvage(
    from: impl AsRef<Path>,
    into: impl AsRef<Path>,
    options: &Options,
) -> Result<SalvageReport> {
    salvage_in(Arc::new(OsVfs::new()), from.as_ref(), into.as_ref(), options)
}

/// As [`salvage`], where the files of both are those of `vfs`.
pub fn salvage_in(
    vfs: Arc<dyn Vfs>,
    from: &Path,
    into: &Path,
    options: &Options,
) -> Result<SalvageReport> {
    let mut report = SalvageReport::default();
    check_places(&*vfs, from, into)?;
    let mut source = Source::open(&vfs, from, &mut report)?;
    let mut survey = source.survey(&vfs, from, &mut report)?;
    if source.doubtful && survey.lost {
        // The root was an older one, and what made up for it is gone too: better look at every block.
        let mut lost_pages = std::mem::take(&mut report.lost_pages);
        lost_pages.retain(|page| page.held != UNKNOWN);
        report = SalvageReport { lost_pages, ..SalvageReport::default() };
        source = source.without_root(&mut report);
        survey = source.survey(&vfs, from, &mut report)?;
    }
    if source.root.is_none() && source.images.mapping.is_empty() && survey.log.is_none() {
        let detail =
            "its data file holds no root and no page, and there is no log: nothing to salvage";
        return Err(Error::NotAnEnvironment { path: from.into(), detail: detail.into() });
    }
    let Survey { log, names, .. } = survey;
    let names = source.name_trees(&names, &mut report);
    let mut target = SalvageTarget::create(vfs, into, options, &source.shape(), &names)?;
    for (&tree, (name, method)) in &names {
        source.copy_tree((tree, *method), name, &mut target, &mut report)?;
    }
    if let Some(log) = &log {
        source.replay(log, &mut report, |operation| target.apply(operation))?;
    }
    report.databases = target.finish()?;
    Ok(report)
}

fn check_places(vfs: &dyn Vfs, from: &Path, into: &Path) -> Result<()> {
    if !vfs.exists(&from.join(DATA_FILE)) {
        let detail = "it has no data file".to_owned();
        return Err(Error::NotAnEnvironment { path: from.into(), detail });
    }
    if vfs.exists(&into.join(DATA_FILE)) {
        return Err(Error::misuse(format!(
            "{} holds an environment already; name a new directory to salvage into",
            into.display()
        )));
    }
    // Somebody who has it open would change it meanwhile. The lock is let go of when the file is.
    if let Ok(lock) = vfs.open(&from.join(LOCK_FILE), OpenMode::Read)
        && !lock.try_lock().unwrap_or(true)
    {
        return Err(Error::Locked { path: from.into() });
    }
    Ok(())
}

/// Databases by name: number of the tree, and how its records are found.
type Names = BTreeMap<Vec<u8>, (u32, AccessMethod)>;

/// Trees to give back by number: name, and how their records are found.
type Trees = BTreeMap<u32, (String, AccessMethod)>;

/// Does to the names what an operation on the catalog does.
fn note_name(names: &mut Names, operation: Operation<'_>) {
    match operation {
        Operation::Put { tree: CATALOG_TREE, key, value } => {
            if let Some(tree) = decode_catalog_record(value) {
                names.insert(key.to_vec(), tree);
            }
        }
        Operation::Delete { tree: CATALOG_TREE, key } => {
            names.remove(key);
        }
        _ => {}
    }
}

/// A leaf, and the keys that it is for.
struct Leaf {
    page: PageId,
    sequence: u64,
    lower: Vec<u8>,
    upper: Option<Vec<u8>>,
    /// What its keys look like.
    method: AccessMethod,
}

/// What new places are made after.
struct Shape {
    kind: StoreKind,
    page_size: usize,
    log_segment_size: Option<u64>,
}

/// What was found before anything is copied.
struct Survey {
    log: Option<SalvagedLog>,
    names: Names,
    /// Some of it is lost.
    lost: bool,
}

/// The damaged place.
struct Source {
    images: Images,
    root: Option<(Identity, Root)>,
    /// There may have been a newer root.
    doubtful: bool,
    /// Trees that the directory names.
    trees: Vec<Tree>,
    leaves: HashMap<u32, Vec<Leaf>>,
    /// Records carry version words: an environment, not a data store.
    versioned: bool,
}

impl Source {
    fn open(vfs: &Arc<dyn Vfs>, from: &Path, report: &mut SalvageReport) -> Result<Source> {
        let path = from.join(DATA_FILE);
        let file = vfs.open(&path, OpenMode::Read);
        let file = file.map_err(|error| Error::on_file("opening", &path, error))?;
        let roots = MetaPages.readable(&*file);
        let page_size = roots.first().map(|(identity, _)| identity.page_size as usize);
        // Where no page tells, the log may still have everything: the new place is made as by default.
        let page_size = page_size
            .or_else(|| Images::guess_page_size(&file))
            .unwrap_or_else(|| Options::default().page_size);
        let mut source = Source {
            images: Images::new(file.clone(), page_size),
            root: roots.first().cloned(),
            doubtful: roots.len() < 2,
            trees: Vec::new(),
            leaves: HashMap::new(),
            versioned: true,
        };
        for (identity, root) in roots {
            let mut images = Images::new(file.clone(), identity.page_size as usize);
            match images.load(&root, report) {
                Ok(trees) => {
                    report.root = format!("root number {}", root.sequence);
                    if source.doubtful {
                        report.doubts.push(
                            "the newest root cannot be read, or it is not known whether this is it: \
                             the log has to make up for what a newer one led to"
                                .into(),
                        );
                    }
                    return Ok(Source { images, root: Some((identity, root)), trees, ..source });
                }
                Err(lost) => {
                    source.doubtful = true;
                    report.lost_pages.push(lost);
                }
            }
        }
        Ok(source.without_root(report))
    }

    /// The same place, with every block looked at instead of what a root leads to.
    fn without_root(self, report: &mut SalvageReport) -> Source {
        let mut images = self.images.without_mapping();
        images.guess(|_| true);
        report.root = "none; every block was looked at".into();
        report.doubts.push(
            "no root leads to all there is: records may be older than they were, and deleted ones \
             may be back"
                .into(),
        );
        // Where the log was at the lost checkpoint is not known: all of it is read.
        let root = self.root.map(|(identity, _)| (identity, Root::default()));
        let (trees, leaves) = (Vec::new(), HashMap::new());
        Source { images, root, trees, leaves, doubtful: false, versioned: true }
    }

    /// Finds the leaves, the log, and the names as they are at its end.
    fn survey(
        &mut self,
        vfs: &Arc<dyn Vfs>,
        from: &Path,
        report: &mut SalvageReport,
    ) -> Result<Survey> {
        self.read_leaves(report);
        let log = self.open_log(vfs, from, report);
        let mut names = self.names(report);
        // What is found wrong on the way is told by the second reading.
        let mut unheard = SalvageReport::default();
        if let Some(log) = &log {
            self.replay(log, &mut unheard, |operation| {
                note_name(&mut names, operation);
                Ok(())
            })?;
        }
        let lost = !report.lost_pages.is_empty() || !unheard.lost_log.is_empty();
        Ok(Survey { log, names, lost })
    }

    fn shape(&self) -> Shape {
        let identity = self.root.as_ref().map(|(identity, _)| identity);
        let by_pages = if self.versioned { StoreKind::Transactional } else { StoreKind::Plain };
        Shape {
            kind: identity.map_or(by_pages, |identity| identity.kind),
            page_size: self.images.page_size,
            log_segment_size: identity.map(|identity| identity.log_segment_size),
        }
    }

    /// Finds the leaves of every tree, and the pages that cannot be read.
    fn read_leaves(&mut self, report: &mut SalvageReport) {
        let mut pages: Vec<PageId> = self.images.mapping.keys().copied().collect();
        pages.sort_unstable();
        for page in pages {
            let read = self.images.read(page, |content| {
                content.is_leaf().then(|| {
                    let leaf = Leaf {
                        page,
                        sequence: content.sequence(),
                        lower: content.lower_fence_bytes(),
                        upper: content.upper_fence_bytes(),
                        method: method_of(content),
                    };
                    (content.tree(), content.is_versioned(), leaf)
                })
            });
            match read {
                Ok(leaf) => {
                    report.pages += 1;
                    if let Some((tree, versioned, leaf)) = leaf {
                        self.versioned = versioned;
                        self.leaves.entry(tree).or_default().push(leaf);
                    }
                }
                Err(detail) => {
                    let location = self.images.mapping.get(&page).copied().unwrap_or_default();
                    report.lost_pages.push(LostPage::new(page, location, UNKNOWN, detail));
                }
            }
        }
        for leaves in self.leaves.values_mut() {
            leaves.sort_by(|one, other| one.lower.cmp(&other.lower));
        }
    }

    fn open_log(
        &self,
        vfs: &Arc<dyn Vfs>,
        from: &Path,
        report: &mut SalvageReport,
    ) -> Option<SalvagedLog> {
        if let Some((identity, root)) = &self.root
            && (root.clean || identity.kind == StoreKind::Plain)
        {
            return None;
        }
        let identity = self.root.as_ref().map(|(i, _)| (i.environment, i.log_segment_size));
        SalvagedLog::open(vfs.clone(), &from.join(LOG_DIRECTORY), identity, report)
    }

    fn replay(
        &self,
        log: &SalvagedLog,
        report: &mut SalvageReport,
        apply: impl FnMut(Operation<'_>) -> Result<()>,
    ) -> Result<()> {
        let root = self.root.as_ref().map(|(_, root)| root.clone()).unwrap_or_default();
        log.replay((root.log_start, root.log_position), root.incarnation, report, apply)
    }

    /// The names in the catalog's leaves.
    fn names(&self, report: &mut SalvageReport) -> Names {
        let mut names = BTreeMap::new();
        for leaf in self.leaves_of(CATALOG_TREE) {
            if self.images.guessed {
                names.retain(|name: &Vec<u8>, _| !is_within(name, leaf));
            }
            let read = self.images.read(leaf.page, |page| {
                for position in (0..page.count()).filter(|&at| !page.record(at).is_tombstone()) {
                    let record = page.record(position);
                    let mut value = Vec::new();
                    page.append_to(record.value_offset, record.value_length, &mut value);
                    if let Some(tree) = decode_catalog_record(&value) {
                        names.insert(page.key(position), tree);
                    }
                }
            });
            if let Err(detail) = read {
                report.doubts.push(format!("page {} of the catalog: {detail}", leaf.page));
            }
        }
        names
    }

    /// The trees to give back, each with its name. Nameless ones only where the catalog has lost names.
    fn name_trees(&self, names: &Names, report: &mut SalvageReport) -> Trees {
        let named = names
            .iter()
            .map(|(name, &(tree, method))| (tree, (String::from_utf8_lossy(name).into(), method)));
        let mut named: Trees = named.collect();
        let gaps = self.gaps(CATALOG_TREE);
        for (from, to) in &gaps {
            let lost =
                lost_range("the names of databases", AccessMethod::BTree, from, to.as_deref());
            report.lost_ranges.push(lost);
        }
        if !gaps.is_empty() {
            let others: BTreeSet<u32> = self.leaves.keys().copied().collect();
            for tree in others.into_iter().filter(|tree| *tree != CATALOG_TREE) {
                named.entry(tree).or_insert_with(|| {
                    let name = format!("salvaged {tree}");
                    // All leaves of a tree are alike; of one without records that is not known for sure.
                    let methods = self.leaves_of(tree).into_iter().map(|leaf| leaf.method);
                    let method = methods.max_by_key(|method| *method as u8).unwrap_or_default();
                    report.doubts.push(format!(
                        "a database whose name is lost, or that had been dropped, is {name:?}"
                    ));
                    (name, method)
                });
            }
        }
        named
    }

    /// The leaves of a tree, in the order of their keys; where places were guessed, the image written first comes first.
    fn leaves_of(&self, tree: u32) -> Vec<&Leaf> {
        let mut leaves: Vec<&Leaf> = self.leaves.get(&tree).into_iter().flatten().collect();
        if self.images.guessed {
            leaves.sort_by_key(|leaf| leaf.sequence);
        }
        leaves
    }

    /// The ranges of keys for which a tree has no leaf.
    fn gaps(&self, tree: u32) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        let leaves = self.leaves.get(&tree).map(Vec::as_slice).unwrap_or_default();
        let is_known = self.trees.iter().any(|known| known.id == tree);
        if leaves.is_empty() && !is_known && tree != CATALOG_TREE {
            // Made after the checkpoint: all that there is of it is in the log.
            return Vec::new();
        }
        let mut gaps = Vec::new();
        let mut reached = Some(Vec::new());
        for leaf in leaves {
            let Some(end) = &reached else { break };
            if leaf.lower > *end {
                gaps.push((end.clone(), Some(leaf.lower.clone())));
            }
            reached = leaf.upper.as_ref().map(|upper| upper.max(end).clone());
        }
        gaps.extend(reached.map(|end| (end, None)));
        gaps
    }

    fn copy_tree(
        &self,
        (tree, method): (u32, AccessMethod),
        name: &str,
        target: &mut SalvageTarget,
        report: &mut SalvageReport,
    ) -> Result<()> {
        for (from, to) in self.gaps(tree) {
            report.lost_ranges.push(lost_range(name, method, &from, to.as_deref()));
        }
        for leaf in self.leaves_of(tree) {
            if self.images.guessed {
                target.clear(tree, &leaf.lower, leaf.upper.as_deref())?;
            }
            let records = self.images.read(leaf.page, |page| {
                let live = (0..page.count()).filter(|&at| !page.record(at).is_tombstone());
                let record = |position| {
                    let record = page.record(position);
                    let mut value = Vec::new();
                    page.append_to(record.value_offset, record.value_length, &mut value);
                    (page.key(position), value, record.flags & OVERFLOW != 0)
                };
                live.map(record).collect::<Vec<_>>()
            });
            // It was read a moment ago: if that fails now, the device is failing.
            let records = records.map_err(|detail| Error::page(leaf.page, detail))?;
            for (key, value, is_long) in records {
                let value = if is_long { self.long_value(&value) } else { Ok(value) };
                match value {
                    Ok(value) => target.put(tree, &key, &value)?,
                    Err(detail) => report.lost_values.push(LostValue {
                        database: name.into(),
                        key: printable(user_key(method, &key)),
                        detail,
                    }),
                }
            }
        }
        Ok(())
    }

    fn long_value(&self, pointer: &[u8]) -> std::result::Result<Vec<u8>, String> {
        let (first, length) = decode_pointer(pointer).ok_or("the record's pointer is damaged")?;
        let mut value = Vec::new();
        let mut page = first;
        while page != 0 && value.len() <= length {
            let read = self.images.read(page, |content| {
                let is_part = content.kind() == Some(PageKind::Overflow);
                let part = content.payload_length();
                content.append_to(HEADER_BYTES, part, &mut value);
                // A part of nothing would lead on for ever.
                (is_part && part > 0).then(|| content.link())
            });
            let next = read.map_err(|detail| format!("page {page}: {detail}"))?;
            page = next.ok_or_else(|| format!("page {page} is no part of a long value"))?;
        }
        if value.len() != length {
            return Err(format!("{} of {length} bytes are there", value.len()));
        }
        Ok(value)
    }
}

fn is_within(key: &[u8], leaf: &Leaf) -> bool {
    *key >= leaf.lower[..] && leaf.upper.as_ref().is_none_or(|upper| *key < upper[..])
}

fn printable(key: &[u8]) -> String {
    key.escape_ascii().to_string()
}

/// The access method that a leaf's keys look like.
fn method_of(leaf: Page<'_>) -> AccessMethod {
    let is_of = |method| leaf.count() == 0 || is_stored(method, &leaf.key(0));
    if !leaf.is_hashed() {
        AccessMethod::BTree
    } else if is_of(AccessMethod::Hash) {
        AccessMethod::Hash
    } else {
        AccessMethod::HashPrefix
    }
}

/// The key as the user knows it.
fn user_key(method: AccessMethod, stored: &[u8]) -> &[u8] {
    match method {
        AccessMethod::BTree => stored,
        AccessMethod::Hash | AccessMethod::HashPrefix => {
            split_stored(stored).map_or(stored, |(_, key)| key)
        }
    }
}

fn lost_range(database: &str, method: AccessMethod, from: &[u8], to: Option<&[u8]>) -> LostRange {
    let bound = |bound: &[u8]| match method {
        AccessMethod::BTree => printable(bound),
        AccessMethod::Hash | AccessMethod::HashPrefix => {
            let digits: String =
                bound.iter().take(HASH_BYTES).map(|b| format!("{b:02x}")).collect();
            format!("hash value {digits:0<8}")
        }
    };
    LostRange { database: database.into(), from: bound(from), to: to.map(bound) }
}
