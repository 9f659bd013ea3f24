//! What crashes, failing devices and damaged files leave.

mod backup;
mod crash;
mod damage;
mod format;
mod full_device;
mod io_failures;
mod log_fragments;
mod log_mapped;
mod log_tail;
mod recovery;
mod salvage;

use crate::common::faulty::FaultyVfs;
use crate::common::{Files, Records, place, small_options};
use quickbeam::{Environment, Options};

/// Commits for several segments, none of which a checkpoint has made unnecessary. Returns the
/// files, the options, and the records after the last commit.
fn long_scene() -> (Files, Options, Records) {
    let options = small_options().checkpoint_bytes(1 << 30);
    let vfs = FaultyVfs::in_memory();
    let environment = Environment::open_in(vfs.clone(), Some(place()), options.clone()).unwrap();
    let database = environment.create_database("data").unwrap();
    let mut last = Records::new();
    for commit in 0..60u8 {
        let value = vec![commit; 20_000];
        environment.transact(|t| database.put(t, &[commit % 7], &value)).unwrap();
        last.insert(vec![commit % 7], value);
    }
    (vfs.files(place()), options, last)
}
