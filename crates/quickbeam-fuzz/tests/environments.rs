//! Opens, reads and writes whole environments with changed bytes, with and without new checksums.
//!
//! Without new checksums all content read is correct, or an error. With new checksums content may
//! be wrong, but no thread panics and no call is endless. `QUICKBEAM_MUTATIONS` sets the number of
//! environments and `QUICKBEAM_SEED` the seed. The unit tests of `fuzzing` change single images in
//! far greater number.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use quickbeam_fuzz::environment::{CRASHED, Crashed, Files, Part, settle, use_it, word};
use quickbeam_testing::{Random, first_seed, number_in};

/// How long one environment may take before it counts as endless.
const PATIENCE: Duration = Duration::from_secs(60);

/// Changes a few bytes of some parts, more often near their start.
fn mutate(files: &mut Files, parts: &[Part], sealed: bool, random: &mut Random) {
    for _ in 0..1 + random.below(3) {
        let part = &parts[random.below(parts.len())];
        let bytes = &mut files.get_mut(&part.file).unwrap()[part.range.clone()];
        for _ in 0..1 + random.below(3) {
            let end = if random.below(2) == 0 { bytes.len() } else { 96 };
            let at = random.below(end.min(bytes.len()));
            match random.below(4) {
                0 => bytes[at] ^= 1 << random.below(8),
                1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
                2 => bytes[at] = random.next() as u8,
                _ => {
                    let length = random.below(12).min(bytes.len() - at);
                    let value = [0, 0xff][random.below(2)];
                    bytes[at..at + length].fill(value);
                }
            }
        }
        if sealed {
            (part.seal)(bytes);
        }
    }
}

fn run(sealed: bool, default: u64) {
    let seed = first_seed();
    println!("seed {seed}");
    run_from(seed, number_in("QUICKBEAM_MUTATIONS").unwrap_or(default), sealed);
}

fn run_from(seed: u64, count: u64, sealed: bool) {
    let Crashed { files, all, parts } = &*CRASHED;
    assert!(use_it(files, all, false), "what is not changed can be used");
    // A panic in any thread, including the engine's, ends the run and prints its seed; so does an
    // endless call.
    let round = Arc::new(AtomicU64::new(0));
    let hook = std::panic::take_hook();
    let at = round.clone();
    std::panic::set_hook(Box::new(move |panic| {
        hook(panic);
        eprintln!("QUICKBEAM_SEED={} repeats it", at.load(Ordering::SeqCst));
        std::process::abort();
    }));
    // Ends with this function, because the process may continue with other tests.
    let (done, is_done) = mpsc::channel::<()>();
    let at = round.clone();
    std::thread::spawn(move || {
        let mut last = u64::MAX;
        while is_done.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            if last == at.load(Ordering::SeqCst) {
                eprintln!("QUICKBEAM_SEED={last}: a call does not end");
                std::process::abort();
            }
            last = at.load(Ordering::SeqCst);
        }
    });
    let mut used = 0;
    for number in 0..count {
        round.store(seed + number, Ordering::SeqCst);
        let mut random = Random::new(seed + number);
        let mut changed = files.clone();
        mutate(&mut changed, parts, sealed, &mut random);
        if sealed {
            settle(&mut changed);
        }
        used += usize::from(use_it(&changed, all, sealed));
    }
    println!("{count} environments, {used} of them usable in every way");
    drop(done);
    let _ = std::panic::take_hook();
}

#[test]
fn damaged_environment_is_read_correctly_or_refused() {
    run(false, 150);
}

#[test]
fn resealed_environment_causes_no_panic() {
    run(true, 300);
}

/// A leaf with other keys than its parent leads to it for was split at a separator that the parent
/// had already; and an unused page was read as a leaf, without the checks of a leaf.
#[test]
fn resealed_environments_that_once_failed_pass() {
    for seed in [53_718_362_852, 53_718_365_131] {
        run_from(seed, 1, true);
    }
}

/// Returns the offsets of the child numbers in an inner page of 4 KiB: the leftmost, then those of
/// its records.
fn children(page: &[u8]) -> Vec<usize> {
    let number = |at: usize| word(page, at) as usize & 0xffff;
    let slots = (0..number(28)).map(|slot| number(64 + slot * 8));
    std::iter::once(48).chain(slots).collect()
}

/// Pages that are valid individually, but one refers to leaves with other keys.
#[test]
fn swapped_children_are_detected() {
    let Crashed { files, all, parts } = &*CRASHED;
    let mut noticed = 0;
    for part in parts {
        let page = &files[&part.file][part.range.clone()];
        if page.len() < 4096 || page[4] != 2 {
            continue;
        }
        for pair in children(page).windows(2) {
            let mut changed = files.clone();
            let page = &mut changed.get_mut(&part.file).unwrap()[part.range.clone()];
            let (left, right) = (word(page, pair[0]), word(page, pair[1]));
            page[pair[0]..pair[0] + 8].copy_from_slice(&right.to_le_bytes());
            page[pair[1]..pair[1] + 8].copy_from_slice(&left.to_le_bytes());
            (part.seal)(page);
            settle(&mut changed);
            noticed += usize::from(!use_it(&changed, all, true));
        }
    }
    // A page may have older images, which no location refers to.
    assert!(noticed > 10, "only {noticed} pairs of children");
}

/// This test knows the parts of the files like the engine does.
#[test]
fn seals_equal_those_of_the_engine() {
    let Crashed { files, parts, .. } = &*CRASHED;
    let mut sealed = 0;
    for part in parts {
        let bytes = &files[&part.file][part.range.clone()];
        let mut again = bytes.to_vec();
        (part.seal)(&mut again);
        sealed += usize::from(again == bytes);
    }
    // Free blocks may contain anything.
    assert!(sealed > 40, "only {sealed} parts have the checksum that this test would give them");
}
