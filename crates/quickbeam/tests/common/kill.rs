//! Processes that are killed while they commit: how one is started and ended, and how its threads
//! tell what was acknowledged to them, so that it can be looked for afterwards. Tests of other
//! crates include this file.
//!
//! The process is the test program itself with one test alone, which does nothing unless [`orders`]
//! has some.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use quickbeam::{Durability, Options};

use quickbeam_testing::Random;

/// Set in the process to be killed: directory, and durability, of its environment.
const VICTIM: &str = "QUICKBEAM_CRASH_VICTIM";
const DURABILITY: &str = "QUICKBEAM_CRASH_DURABILITY";

/// Threads that commit in the process.
pub const THREADS: u64 = 4;

/// In the process that is to be killed: where it works, and how durable its commits are.
pub fn orders() -> Option<(PathBuf, Durability)> {
    let directory = std::env::var_os(VICTIM).map(PathBuf::from)?;
    Some((directory, std::env::var(DURABILITY).unwrap().parse().unwrap()))
}

/// Small everything, so that evictions, segment changes and checkpoints come soon.
pub fn busy_options(durability: Durability) -> Options {
    // Without a log checkpoints come by time only.
    let interval = if durability == Durability::InMemory { 30 } else { 300 };
    Options::new()
        .durability(durability)
        .page_size(4096)
        .cache_size(4096 * 128)
        .log_segment_size(256 << 10)
        .log_buffer(128 << 10)
        .checkpoint_bytes(384 << 10)
        .checkpoint_interval(Duration::from_millis(interval))
        .log_write_interval(Duration::from_millis(5))
}

/// Runs `work` in all threads of the process that is to be killed, each with its number.
pub fn work_until_killed(work: impl Fn(u64) + Sync) {
    let work = &work;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || work(thread));
        }
    });
}

/// How long the next one lives, in milliseconds at most; now and then so soon that it is still
/// opening, or recovering.
pub fn draw_wait(random: &mut Random, soon: usize, late: usize) -> Duration {
    let longest = if random.chance(25) { soon } else { late };
    Duration::from_millis(random.below(longest) as u64)
}

/// Runs the test of that name as the victim for that long; what an earlier one acknowledged is
/// forgotten.
pub fn run_and_kill(directory: &Path, test: &str, durability: Durability, wait: Duration) {
    for thread in 0..THREADS {
        let _ = std::fs::remove_file(acknowledgements(directory, thread));
    }
    let log = File::create(directory.join("victim.log")).unwrap();
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(VICTIM, directory)
        .env(DURABILITY, durability.to_string())
        .stdout(Stdio::from(log.try_clone().unwrap()))
        .stderr(Stdio::from(log))
        .spawn()
        .unwrap();
    std::thread::sleep(wait);
    let ended = victim.try_wait().unwrap();
    victim.kill().unwrap();
    victim.wait().unwrap();
    if let Some(status) = ended {
        let said = std::fs::read_to_string(directory.join("victim.log")).unwrap();
        panic!("the victim ended by itself with {status}: {said}");
    }
}

fn acknowledgements(directory: &Path, thread: u64) -> PathBuf {
    directory.join(format!("acknowledged.{thread}"))
}

/// The numbers of the transactions acknowledged to a thread of the victim, in a file.
pub struct Acknowledgements(File);

impl Acknowledgements {
    pub fn of(directory: &Path, thread: u64) -> Acknowledgements {
        let path = acknowledgements(directory, thread);
        Acknowledgements(File::options().create(true).append(true).open(path).unwrap())
    }

    /// The thread's transaction of that number was acknowledged.
    pub fn note(&mut self, counter: u64) {
        // One write call: it is there whole or not at all, whenever the process ends.
        self.0.write_all(&counter.to_be_bytes()).unwrap();
    }
}

/// Checks that the newest surviving transaction of a thread is not older than the newest one
/// acknowledged to it. One more may have survived: the process ended before the acknowledgement.
pub fn assert_kept(directory: &Path, thread: u64, last: u64, what: &str) {
    let bytes = std::fs::read(acknowledgements(directory, thread)).unwrap_or_default();
    let told = bytes.as_chunks().0.last().map_or(0, |bytes| u64::from_be_bytes(*bytes));
    assert!(last >= told, "{what}: thread {thread} was told {told}, {last} are there");
    assert!(told == 0 || last <= told + 1, "{what}: thread {thread}: {last}, told {told}");
}
