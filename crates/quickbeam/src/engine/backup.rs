//! Hot backup: copies the last checkpoint and the log after it into another directory.
//!
//! Above: the environment's handles. Below: checkpoint, log and files. Transactions go on. The next
//! checkpoint waits for the end of the copy, so the log grows until then.
//!
//! - BACKUP-1: the copied data file gets its name last, when the file, the log and both directories
//!   are durable. A crash leaves a whole backup, or a directory that no environment opens.
//! - BACKUP-2: a backup has every commit that was acknowledged before it began. It has those of one
//!   moment during the copy: the end of the copied log.
//! - BACKUP-3: a failure of the target is the backup's error only: the environment goes on.
//!   Only an [`Engine`] can be marked as failed, and the writing functions have none. (by type)

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use super::Engine;
use crate::blocks::Location;
use crate::buffer::Pool;
use crate::checkpoint::page_map::{DIRECTORY_PAGES, MAPPING_PAGES};
use crate::checkpoint::{CheckpointKind, Locations, MetaPages, Root};
use crate::error::{Damage, DamagedPlace, Error, Result};
use crate::files::{DATA_FILE, LOG_DIRECTORY};
use crate::page::{PageId, Scratch, image_checksum, read_image};
use crate::vfs::{File, OpenMode, OsVfs, Vfs};
use crate::wal::{Log, number_of};

/// Name of the data file while it is copied. It exists before the first copied segment does, and
/// marks the segments beside it as an unfinished backup's.
const UNFINISHED: &str = "backup.new";

/// Bytes of adjoining page images that are read at a time.
const RUN: usize = 1 << 20;

/// What [`Environment::backup_to`](crate::Environment::backup_to) copied.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct BackupReport {
    /// Page images, each read and checked.
    pub pages: u64,
    /// Bytes of these images.
    pub bytes: u64,
    /// Bytes of the log after the checkpoint.
    pub log_bytes: u64,
}

impl Engine {
    /// Writes a checkpoint, then copies it and the log after it into `directory`.
    pub fn backup_to(&self, directory: &Path) -> Result<BackupReport> {
        self.check_open()?;
        self.check_failed()?;
        if self.is_read_only {
            return Err(Error::ReadOnlyEnvironment);
        }
        // The files of an environment in memory are of no use to another process.
        let target: Arc<dyn Vfs> = match &self.path {
            Some(_) => self.vfs.clone(),
            None => Arc::new(OsVfs::new()),
        };
        let backup = Backup { target: &*target, directory };
        backup.check_target()?;
        self.checkpoint(CheckpointKind::Busy)?;
        self.checkpointer.inspect(|checkpoint| {
            self.check_failed()?;
            // Check again: another backup may have used the directory while this one waited.
            backup.check_target()?;
            backup.clear()?;
            let written = backup.write(&self.pool, self.log.as_ref(), checkpoint);
            if written.is_err() {
                // Remove what is useless. The error to report is the first one, and the next
                // backup removes what is left.
                backup.clear().ok();
            }
            written
        })
    }
}

/// The target of a backup.
struct Backup<'a> {
    target: &'a dyn Vfs,
    directory: &'a Path,
}

impl Backup<'_> {
    /// Returns the names in a directory, none if it does not exist.
    fn names(&self, directory: &Path) -> Result<Vec<PathBuf>> {
        match self.target.list_directory(directory) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            names => names.map_err(|error| Error::on_file("listing", directory, error)),
        }
    }

    /// Fails if the directory has anything but an unfinished backup.
    fn check_target(&self) -> Result<()> {
        let names = self.names(self.directory)?;
        let is_unfinished = names.iter().any(|name| name.ends_with(UNFINISHED));
        let is_ours = |name: &PathBuf| {
            is_unfinished && (name.ends_with(UNFINISHED) || name.ends_with(LOG_DIRECTORY))
        };
        if names.iter().all(is_ours) {
            return Ok(());
        }
        let shown = self.directory.display();
        Err(Error::misuse(format!(
            "{shown} is not empty; name a new or empty directory for the backup"
        )))
    }

    /// Removes an unfinished backup, its mark last.
    fn clear(&self) -> Result<()> {
        let mark = self.directory.join(UNFINISHED);
        if !self.target.exists(&mark) {
            return Ok(());
        }
        let log = self.directory.join(LOG_DIRECTORY);
        let segments = self.names(&log)?;
        for path in segments.iter().filter(|path| number_of(path).is_some()).chain([&mark]) {
            self.target.remove(path).map_err(|e| Error::on_file("removing", path, e))?;
        }
        self.sync(self.directory)
    }

    fn sync(&self, directory: &Path) -> Result<()> {
        let synced = self.target.sync_directory(directory);
        synced.map_err(|error| Error::on_file("flushing the folder", directory, error))
    }

    fn create_directory(&self, directory: &Path) -> Result<()> {
        let created = self.target.create_directory(directory);
        created.map_err(|error| Error::on_file("creating", directory, error))?;
        match directory.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            Some(parent) => self.sync(parent),
            None => Ok(()),
        }
    }

    /// Writes the backup. The caller keeps the checkpoint from being replaced.
    fn write(
        &self,
        pool: &Pool,
        log: Option<&Log>,
        checkpoint: &Locations<'_>,
    ) -> Result<BackupReport> {
        self.create_directory(self.directory)?;
        let (new, data) = (self.directory.join(UNFINISHED), self.directory.join(DATA_FILE));
        let on = |error| Error::on_file("writing", &new, error);
        let file = self.target.open(&new, OpenMode::Create).map_err(on)?;
        self.sync(self.directory)?;
        let images = images_of(checkpoint);
        let pages = images.len() as u64;
        let bytes = pages * pool.page_size as u64;
        self.copy_images(pool, images, (&*file, &new))?;
        let (mut log_bytes, mut log_end) = (0, None);
        if let Some(log) = log {
            let begun = log.written();
            let directory = self.directory.join(LOG_DIRECTORY);
            self.create_directory(&directory)?;
            let copied = log.copy_into(checkpoint.root.log_start, self.target, &directory)?;
            invariant!(
                BACKUP_2,
                copied.end >= begun,
                "the log was written up to {begun}, and the copy ends at {}",
                copied.end
            );
            (log_bytes, log_end) = (copied.bytes, Some(copied.end));
        }
        // Without a log the checkpoint is all there is, and the next opening looks for no records.
        let is_alone = log.is_none();
        for sequence in 1..=2 {
            // In both slots, so that each stands in for the other.
            let root = Root { sequence, clean: is_alone, ..checkpoint.root.clone() };
            MetaPages.write(&*file, checkpoint.identity, &root).map_err(on)?;
        }
        file.sync_all().map_err(on)?;
        self.sync(self.directory)?;
        invariant!(
            BACKUP_1,
            !self.target.exists(&data) && (is_alone || log_end.is_some()),
            "the backup in {} gets its data file before its log",
            self.directory.display()
        );
        self.target.rename(&new, &data).map_err(on)?;
        self.sync(self.directory)?;
        Ok(BackupReport { pages, bytes, log_bytes })
    }

    /// Copies the images to the same blocks of `file`, and checks each.
    fn copy_images(
        &self,
        pool: &Pool,
        mut images: Vec<(PageId, Location)>,
        (file, path): (&dyn File, &Path),
    ) -> Result<()> {
        images.sort_unstable_by_key(|(_, location)| location.block());
        let size = pool.page_size;
        let on = |error| Error::on_file("writing", path, error);
        let blocks = images.last().map_or(0, |(_, location)| location.block() + 1);
        // As for every data file, later writes to its blocks need no space.
        let length = (blocks * size as u64).max(crate::blocks::RESERVED_BYTES);
        file.allocate(length).map_err(on)?;
        let mut buffer = vec![0; RUN.max(size)];
        let mut rest = &images[..];
        while let Some((_, first)) = rest.first() {
            let adjoins = |(i, (_, location)): (usize, &(PageId, Location))| {
                location.block() == first.block() + i as u64
            };
            let limit = buffer.len() / size;
            let count = rest.iter().take(limit).enumerate().take_while(|&it| adjoins(it)).count();
            let (run, later) = rest.split_at(count.max(1));
            let bytes = &mut buffer[..run.len() * size];
            let offset = first.block() * size as u64;
            pool.file.read_at(bytes, offset).map_err(|error| {
                Error::io(format!("reading offset {offset} of the data file"), error)
            })?;
            for (image, &(page, location)) in bytes.chunks_exact(size).zip(run) {
                check_image(size, image, page, location)?;
            }
            file.write_at(bytes, offset).map_err(on)?;
            rest = later;
        }
        Ok(())
    }
}

/// Returns the images that a checkpoint refers to.
fn images_of(checkpoint: &Locations<'_>) -> Vec<(PageId, Location)> {
    let parts = [
        (0, checkpoint.mapping),
        (MAPPING_PAGES, checkpoint.chunks),
        (DIRECTORY_PAGES, checkpoint.directory),
    ];
    let mut images = Vec::new();
    for (first, locations) in parts {
        let numbered = (first..).zip(locations.iter().copied());
        images.extend(numbered.filter(|(_, location)| *location != Location::NONE));
    }
    images
}

/// Fails if the image is not the one that the checkpoint wrote there.
fn check_image(size: usize, image: &[u8], page: PageId, location: Location) -> Result<()> {
    let checked = if location.matches(image_checksum(image)) {
        Scratch::with(size, |content| read_image(image, page, content))
    } else {
        Err(Damage::from("another image is where this one was written"))
    };
    let place = DamagedPlace::Image { page, block: location.block() };
    checked.map_err(|damage| damage.at(DATA_FILE, place))
}
