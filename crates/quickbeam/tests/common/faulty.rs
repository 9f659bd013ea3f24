//! A world around another one, whose calls fail by rule, whose space is limited, and which can stop
//! as in a crash.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard};
use std::time::Duration;

use quickbeam::vfs::{Event, File, MemoryVfs, OpenMode, Task, Vfs};
use quickbeam::{LOCK_FILE, LOG_DIRECTORY};

/// The files of an environment as bytes, by their path below its directory. The lock file is left
/// out.
pub type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Copies the files of an environment out of a world in which nothing changes meanwhile.
fn files_of(vfs: &dyn Vfs, directory: &Path) -> Files {
    let mut files = Files::new();
    for folder in [directory.to_owned(), directory.join(LOG_DIRECTORY)] {
        for path in vfs.list_directory(&folder).unwrap_or_default() {
            if path.ends_with(LOCK_FILE) || path.ends_with(LOG_DIRECTORY) {
                continue;
            }
            let file = vfs.open(&path, OpenMode::Read).unwrap();
            let mut bytes = vec![0; file.length().unwrap() as usize];
            file.read_at(&mut bytes, 0).unwrap();
            files.insert(path.strip_prefix(directory).unwrap().to_owned(), bytes);
        }
    }
    files
}

/// What the engine asks of the world, as far as it can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Open(OpenMode),
    Read,
    Write { offset: u64, length: usize },
    Sync,
    SetLength(u64),
    List,
    Rename,
    Remove,
    SyncDirectory,
    CreateDirectory,
}

impl Call {
    /// Whether the call changes what is stored.
    pub fn changes(self) -> bool {
        !matches!(self, Call::Open(OpenMode::Read | OpenMode::Write) | Call::Read | Call::List)
    }
}

type Rule = dyn FnMut(Call, &Path) -> Option<io::Error> + Send;

type Pause = dyn Fn(Call, &Path) + Send + Sync;

/// Decides about calls; shared by the world and its files.
pub struct Rules {
    /// Called before each call, which waits meanwhile; others go on.
    pause: Mutex<Option<Arc<Pause>>>,
    rule: Mutex<Option<Box<Rule>>>,
    /// Bytes that all files together may have.
    limit: AtomicU64,
    lengths: Mutex<HashMap<PathBuf, u64>>,
    /// Held to read by every call that changes something, to write by who copies all files.
    still: RwLock<()>,
}

impl Rules {
    /// Leave to make the call, or the error that it is to fail with.
    fn check(&self, call: Call, path: &Path) -> io::Result<RwLockReadGuard<'_, ()>> {
        let pause = self.pause.lock().unwrap().clone();
        if let Some(pause) = pause {
            pause(call, path);
        }
        match self.rule.lock().unwrap().as_mut().and_then(|rule| rule(call, path)) {
            Some(error) => Err(error),
            None => Ok(self.still.read().unwrap()),
        }
    }

    /// Accounts for a file's growth to `length`; an error, and nothing changed, when there is no
    /// room.
    fn grow(&self, path: &Path, length: u64) -> io::Result<()> {
        let mut lengths = self.lengths.lock().unwrap();
        let have = lengths.get(path).copied().unwrap_or(0);
        if length <= have {
            return Ok(());
        }
        let used: u64 = lengths.values().sum();
        if used + length - have > self.limit.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        lengths.insert(path.to_owned(), length);
        Ok(())
    }
}

/// The world; the default is not to fail.
pub struct FaultyVfs {
    inner: Arc<dyn Vfs>,
    rules: Arc<Rules>,
}

impl FaultyVfs {
    pub fn new(inner: Arc<dyn Vfs>) -> Arc<FaultyVfs> {
        let rules = Rules {
            pause: Mutex::new(None),
            rule: Mutex::new(None),
            limit: AtomicU64::new(u64::MAX),
            lengths: Mutex::default(),
            still: RwLock::default(),
        };
        Arc::new(FaultyVfs { inner, rules: Arc::new(rules) })
    }

    /// From now on calls for which `rule` gives an error fail with it.
    pub fn set_rule(&self, rule: impl FnMut(Call, &Path) -> Option<io::Error> + Send + 'static) {
        *self.rules.rule.lock().unwrap() = Some(Box::new(rule));
    }

    /// From now on each call first waits for `pause` to return.
    pub fn set_pause(&self, pause: impl Fn(Call, &Path) + Send + Sync + 'static) {
        *self.rules.pause.lock().unwrap() = Some(Arc::new(pause));
    }

    /// No call fails any more.
    pub fn clear_rule(&self) {
        *self.rules.rule.lock().unwrap() = None;
    }

    /// A world in memory.
    pub fn in_memory() -> Arc<FaultyVfs> {
        FaultyVfs::new(Arc::new(MemoryVfs::new()))
    }

    /// The files below `directory`, all as they were at one moment.
    pub fn files(&self, directory: &Path) -> Files {
        let _still = self.rules.still.write().unwrap();
        files_of(&*self.inner, directory)
    }

    /// After `calls` more changing calls the world stands still, as after a crash: every call
    /// fails.
    pub fn stop_after(&self, calls: usize) {
        let mut left = calls;
        self.set_rule(move |call, _| {
            if left == 0 {
                return Some(io::Error::other("the device is gone"));
            }
            left -= usize::from(call.changes());
            None
        });
    }

    /// Bytes that all files made through this world have.
    pub fn used(&self) -> u64 {
        self.rules.lengths.lock().unwrap().values().sum()
    }

    /// Sets how many bytes all files together may have.
    pub fn set_limit(&self, bytes: u64) {
        self.rules.limit.store(bytes, Ordering::SeqCst);
    }
}

struct FaultyFile {
    inner: Arc<dyn File>,
    path: PathBuf,
    rules: Arc<Rules>,
}

impl File for FaultyFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let _leave = self.rules.check(Call::Read, &self.path)?;
        self.inner.read_at(buffer, offset)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<()> {
        let _leave = self.rules.check(Call::Write { offset, length: buffer.len() }, &self.path)?;
        self.rules.grow(&self.path, offset + buffer.len() as u64)?;
        self.inner.write_at(buffer, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        let _leave = self.rules.check(Call::Sync, &self.path)?;
        self.inner.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        let _leave = self.rules.check(Call::Sync, &self.path)?;
        self.inner.sync_all()
    }

    fn length(&self) -> io::Result<u64> {
        self.inner.length()
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        let _leave = self.rules.check(Call::SetLength(length), &self.path)?;
        self.rules.grow(&self.path, length)?;
        self.inner.set_length(length)?;
        self.rules.lengths.lock().unwrap().insert(self.path.clone(), length);
        Ok(())
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.inner.try_lock()
    }
}

impl Vfs for FaultyVfs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let _leave = self.rules.check(Call::Open(mode), path)?;
        let inner = self.inner.open(path, mode)?;
        self.rules.lengths.lock().unwrap().insert(path.to_owned(), inner.length()?);
        Ok(Arc::new(FaultyFile { inner, path: path.to_owned(), rules: self.rules.clone() }))
    }

    fn exists(&self, path: &Path) -> bool {
        self.inner.exists(path)
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        let _leave = self.rules.check(Call::CreateDirectory, path)?;
        self.inner.create_directory(path)
    }

    fn list_directory(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let _leave = self.rules.check(Call::List, path)?;
        self.inner.list_directory(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        let _leave = self.rules.check(Call::SyncDirectory, path)?;
        self.inner.sync_directory(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let _leave = self.rules.check(Call::Rename, from)?;
        self.inner.rename(from, to)?;
        let mut lengths = self.rules.lengths.lock().unwrap();
        if let Some(length) = lengths.remove(from) {
            lengths.insert(to.to_owned(), length);
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let _leave = self.rules.check(Call::Remove, path)?;
        self.inner.remove(path)?;
        self.rules.lengths.lock().unwrap().remove(path);
        Ok(())
    }

    fn now(&self) -> Duration {
        self.inner.now()
    }

    fn random(&self) -> u64 {
        self.inner.random()
    }

    fn yield_now(&self) {
        self.inner.yield_now();
    }

    fn event(&self) -> Arc<dyn Event> {
        self.inner.event()
    }

    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> io::Result<Box<dyn Task>> {
        self.inner.spawn(name, body)
    }
}
