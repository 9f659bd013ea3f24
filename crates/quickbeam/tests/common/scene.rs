//! An environment on a device that can be made full or broken, with a model of what it must hold.

use std::cell::RefCell;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use quickbeam::{Database, Environment, Options, Result};

use super::faulty::FaultyVfs;
use super::{Random, Records, assert_same, contents, open_files, place, records, small_options};

/// An environment in a world that can be made to fail, what it must hold, and the world under it.
pub struct Scene {
    pub memory: Arc<FaultyVfs>,
    pub vfs: Arc<FaultyVfs>,
    pub environment: Environment,
    pub database: Database,
    pub model: RefCell<Records>,
}

/// Room for few pages, so that most of what is written has to leave memory soon.
pub fn options() -> Options {
    small_options().cache_size(4096 * 80).checkpoint_bytes(1 << 20)
}

impl Scene {
    pub fn new(options: &Options) -> Scene {
        let memory = FaultyVfs::in_memory();
        let vfs = FaultyVfs::new(memory.clone());
        let environment =
            Environment::open_in(vfs.clone(), Some(place()), options.clone()).unwrap();
        let database = environment.create_database("data").unwrap();
        Scene { memory, vfs, environment, database, model: RefCell::default() }
    }

    pub fn open_again(&mut self, options: &Options) {
        let elsewhere = Environment::open_in_memory(options.clone()).unwrap();
        std::mem::replace(&mut self.environment, elsewhere).close().unwrap();
        let opened = Environment::open_in(self.vfs.clone(), Some(place()), options.clone());
        self.environment = opened.unwrap();
        self.database = self.environment.open_database("data").unwrap();
    }

    /// A transaction of a few changes; they are in the model if it was committed.
    pub fn change(&self, random: &mut Random) -> Result<()> {
        let mut model = self.model.borrow().clone();
        let transaction = self.environment.begin()?;
        for _ in 0..1 + random.below(6) {
            let key = format!("{:04}", random.below(300)).into_bytes();
            if random.chance(15) {
                self.database.delete(&transaction, &key)?;
                model.remove(&key);
            } else {
                let longest = [50, 800, 20_000][random.below(3)];
                let value = vec![random.next() as u8; random.below(longest)];
                self.database.put(&transaction, &key, &value)?;
                model.insert(key, value);
            }
        }
        transaction.commit()?;
        *self.model.borrow_mut() = model;
        Ok(())
    }

    /// What is read is what was committed.
    pub fn check_reads(&self, what: &str) {
        let reader = self.environment.begin_read().unwrap();
        let model = self.model.borrow();
        assert_same(&records(&self.database, &reader).unwrap(), &model, what);
    }

    /// Checks that the files after a crash at this moment hold what was committed.
    pub fn check_crash(&self, what: &str) {
        let files = self.memory.files(place());
        let copy = open_files(&files, &options());
        let copy = copy.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_same(&contents(&copy).unwrap()["data"], &self.model.borrow(), what);
        super::assert_sound(&copy);
    }
}

/// A file system in memory, mounted for a test; `None` where that is not permitted.
pub struct Mounted(tempfile::TempDir);

impl Mounted {
    pub fn new(options: &str) -> Option<Mounted> {
        let directory = tempfile::tempdir().unwrap();
        let mount = ["-t", "tmpfs", "-o", options, "tmpfs"];
        let mounted = Command::new("mount").args(mount).arg(directory.path()).output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Mounted(directory));
        }
        println!("skipped: mounting is not permitted");
        None
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn remount(&self, options: &str) {
        let status = Command::new("mount").args(["-o", options]).arg(self.0.path()).status();
        assert!(status.unwrap().success());
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}
