//! Salvage: copies all readable records of a damaged environment or data store to a new one, and
//! reports the losses.
//!
//! Above: the user. Below: images and log records of the damaged directory, which are only read;
//! and the new environment or data store.
//!
//! Salvage does not descend the trees. It reads every leaf in the page map, and the fences of a
//! leaf give its range of keys. So a damaged inner page loses no record, and a damaged leaf leaves
//! a gap between its neighbors' fences, which the report names. The log is then applied across its
//! gaps.
//!
//! - SALV-1: no file in the damaged directory is written, created or removed.
//! - SALV-2: the report names everything that is lost: by page, by range of keys, by key or by
//!   range of the log. If content may be outdated, the report contains a doubt.

mod images;
mod target;
mod wal;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use crate::access::btree::Tree;
use crate::access::hash::{HASH_BYTES, is_stored, split_stored};
use crate::access::overflow::decode_pointer;
use crate::blocks::Location;
use crate::catalog::{CATALOG_TREE, decode_catalog_record};
use crate::checkpoint::{Identity, MetaPages, Root, StoreKind};
use crate::engine::lock_file;
use crate::error::{Error, NoEnvironment, Result};
use crate::files::{DATA_FILE, LOCK_FILE, LOG_DIRECTORY};
use crate::invariant::CHECKS_INVARIANTS;
use crate::options::{AccessMethod, Options};
use crate::page::{HEADER_BYTES, OVERFLOW, Page, PageId, PageKind};
use crate::vfs::{OpenMode, OsVfs, Vfs};
use crate::wal::Operation;
use images::Images;
use target::SalvageTarget;
use wal::SalvagedLog;

/// A page that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LostPage {
    /// The page's number.
    pub page: u64,
    /// The block of the data file that the page belongs in.
    pub block: u64,
    /// The page's content, as far as it is known.
    pub held: String,
    /// Description of the damage.
    pub detail: String,
}

/// Description of a page whose content is unknown.
const UNKNOWN: &str = "not known";

impl LostPage {
    fn new(page: PageId, location: Location, held: &str, detail: String) -> LostPage {
        LostPage { page, block: location.block(), held: held.into(), detail }
    }
}

/// A range of keys whose records are lost, except those that the log restored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LostRange {
    /// The database.
    pub database: String,
    /// The first key of the range, printable; for a hash database, the first hash value.
    pub from: String,
    /// The first key or hash value after the range; `None` at the end of the database.
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
    /// Description of the damage.
    pub detail: String,
}

/// A part of the log that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LostLog {
    /// The segment in which it begins.
    pub file: String,
    /// Log position of its beginning. Both positions are zero if a whole segment is lost.
    pub from: u64,
    /// Log position of its end, exclusive.
    pub to: u64,
    /// Description of the damage.
    pub detail: String,
}

/// A database of the salvaged environment or data store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SalvagedDatabase {
    /// The database's name.
    pub name: String,
    /// Number of records in it.
    pub records: u64,
}

/// The result of a salvage: what was copied and what is missing.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct SalvageReport {
    /// The root that was used.
    pub root: String,
    /// The databases of the new environment or data store.
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
    /// Content that may be outdated, or under another name.
    pub doubts: Vec<String>,
}

impl SalvageReport {
    /// Returns whether nothing is missing or in doubt.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.lost_pages.is_empty()
            && self.lost_ranges.is_empty()
            && self.lost_values.is_empty()
            && self.lost_log.is_empty()
            && self.doubts.is_empty()
    }
}

/// Copies all readable records of the environment or data store in `from` to a new one in `into`.
/// Of `options`, the cache size is used. Missing content is reported, not an error. Fails if the
/// target cannot be written, or if `from` contains nothing to salvage.
pub fn salvage(
    from: impl AsRef<Path>,
    into: impl AsRef<Path>,
    options: &Options,
) -> Result<SalvageReport> {
    salvage_in(Arc::new(OsVfs::new()), from.as_ref(), into.as_ref(), options)
}

/// Like [`salvage`], with the files of `vfs`.
pub fn salvage_in(
    vfs: Arc<dyn Vfs>,
    from: &Path,
    into: &Path,
    options: &Options,
) -> Result<SalvageReport> {
    let mut report = SalvageReport::default();
    check_places(&*vfs, from, into)?;
    let before = CHECKS_INVARIANTS.then(|| files_of(&*vfs, from, into));
    let mut source = Source::open(&vfs, from, &mut report)?;
    let mut survey = source.survey(&vfs, from, &mut report)?;
    if source.doubtful && survey.lost {
        // The root was an older one, and later content is lost as well: a scan of all blocks finds
        // more.
        let mut lost_pages = std::mem::take(&mut report.lost_pages);
        lost_pages.retain(|page| page.held != UNKNOWN);
        report = SalvageReport { lost_pages, ..SalvageReport::default() };
        source = source.without_root(&mut report);
        survey = source.survey(&vfs, from, &mut report)?;
    }
    if source.root.is_none() && source.images.mapping.is_empty() && survey.log.is_none() {
        let detail =
            "its data file holds no root and no page, and there is no log: nothing to salvage";
        return Err(Error::NotAnEnvironment(Box::new(NoEnvironment {
            path: from.into(),
            detail: detail.into(),
        })));
    }
    let Survey { log, names, .. } = survey;
    let names = source.name_trees(&names, &mut report);
    let mut target = SalvageTarget::create(vfs.clone(), into, options, &source.shape(), &names)?;
    for (&tree, (name, method)) in &names {
        source.copy_tree((tree, *method), name, &mut target, &mut report)?;
    }
    if let Some(log) = &log {
        source.replay(log, &mut report, |operation| target.apply(operation))?;
    }
    report.databases = target.finish()?;
    invariant!(
        SALV_1,
        before.is_none_or(|before| before == files_of(&*vfs, from, into)),
        "salvage changed the files of {}",
        from.display()
    );
    invariant!(
        SALV_2,
        !(source.doubtful || source.images.guessed) || !report.doubts.is_empty(),
        "the report contains no doubt about an outdated root"
    );
    Ok(report)
}

/// Returns the files of the damaged directory and of its log with their lengths, except those of
/// the target. For SALV-1.
fn files_of(vfs: &dyn Vfs, from: &Path, into: &Path) -> Vec<(PathBuf, Option<u64>)> {
    let directories = [from.to_owned(), from.join(LOG_DIRECTORY)];
    let names = directories.iter().filter_map(|path| vfs.list_directory(path).ok()).flatten();
    let length = |path: &Path| vfs.open(path, OpenMode::Read).ok()?.length().ok();
    let mut files: Vec<_> = names
        .filter(|path| !into.starts_with(path))
        .map(|path| (path.clone(), length(&path)))
        .collect();
    files.sort();
    files
}

fn check_places(vfs: &dyn Vfs, from: &Path, into: &Path) -> Result<()> {
    if !vfs.exists(&from.join(DATA_FILE)) {
        let detail = "it has no data file".to_owned();
        return Err(Error::NotAnEnvironment(Box::new(NoEnvironment { path: from.into(), detail })));
    }
    if vfs.exists(&into.join(DATA_FILE)) {
        return Err(Error::misuse(format!(
            "{} holds an environment already; name a new directory to salvage into",
            into.display()
        )));
    }
    // Another process that has the environment open would change it meanwhile. The lock is released
    // when the file is closed.
    if let Ok(lock) = vfs.open(&from.join(LOCK_FILE), OpenMode::Read)
        && !lock.try_lock().unwrap_or(true)
    {
        return Err(lock_file::locked(vfs, from, &*lock));
    }
    Ok(())
}

/// Databases by name: number and access method of the tree.
type Names = BTreeMap<Vec<u8>, (u32, AccessMethod)>;

/// Trees to copy by number: name and access method.
type Trees = BTreeMap<u32, (String, AccessMethod)>;

/// Applies an operation on the catalog to the names.
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

/// A leaf and its range of keys.
struct Leaf {
    page: PageId,
    sequence: u64,
    lower: Vec<u8>,
    upper: Option<Vec<u8>>,
    /// The access method that its keys match.
    method: AccessMethod,
}

/// The properties that the new environment or data store takes over.
struct Shape {
    kind: StoreKind,
    page_size: usize,
    log_segment_size: Option<u64>,
}

/// The sources found before records are copied.
struct Survey {
    log: Option<SalvagedLog>,
    names: Names,
    /// Some of the sources are lost.
    lost: bool,
}

/// The damaged environment or data store.
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
        // Without a whole page, the log may still contain all commits: the target gets the default
        // page size.
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

    /// Returns a source that scans all blocks instead of using a root.
    fn without_root(self, report: &mut SalvageReport) -> Source {
        let mut images = self.images.without_mapping();
        images.guess(|_| true);
        report.root = "none; every block was looked at".into();
        report.doubts.push(
            "no root leads to all there is: records may be older than they were, and deleted ones \
             may be back"
                .into(),
        );
        // The log position of the lost checkpoint is unknown: the whole log is read.
        let root = self.root.map(|(identity, _)| (identity, Root::default()));
        let (trees, leaves) = (Vec::new(), HashMap::new());
        Source { images, root, trees, leaves, doubtful: false, versioned: true }
    }

    /// Finds the leaves, the log, and the database names as of the log's end.
    fn survey(
        &mut self,
        vfs: &Arc<dyn Vfs>,
        from: &Path,
        report: &mut SalvageReport,
    ) -> Result<Survey> {
        self.read_leaves(report);
        let log = self.open_log(vfs, from, report);
        let mut names = self.names(report);
        // The second reading reports the damage.
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

    /// Returns the names in the catalog's leaves.
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

    /// Returns the trees to copy with their names. Includes unnamed trees only if the catalog has
    /// lost names.
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
                    // All leaves of a tree have the same method, but a leaf without records does
                    // not show it.
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

    /// Returns the leaves of a tree in key order, or in the order in which they were written if
    /// locations were guessed.
    fn leaves_of(&self, tree: u32) -> Vec<&Leaf> {
        let mut leaves: Vec<&Leaf> = self.leaves.get(&tree).into_iter().flatten().collect();
        if self.images.guessed {
            leaves.sort_by_key(|leaf| leaf.sequence);
        }
        leaves
    }

    /// Returns the ranges of keys for which a tree has no leaf.
    fn gaps(&self, tree: u32) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        let leaves = self.leaves.get(&tree).map(Vec::as_slice).unwrap_or_default();
        let is_known = self.trees.iter().any(|known| known.id == tree);
        if leaves.is_empty() && !is_known && tree != CATALOG_TREE {
            // Created after the checkpoint: all of its content is in the log.
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
            // The page was readable before: a failure now means that the device is failing.
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
                // A chain of empty pages could be endless.
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

/// Returns the access method that a leaf's first key matches.
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

/// Returns the user's key.
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
