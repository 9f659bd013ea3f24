//! Random mutations of kept inputs, and a runner that reports the failing input.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use quickbeam_testing::Random;

/// Numbers that trigger boundary conditions: limits and their neighbors.
const TELLING: [u64; 12] =
    [0, 1, 7, 8, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, u32::MAX as u64, u64::MAX];

/// Mutates a kept input in up to eight positions; it may also be cut, extended or combined with
/// another.
pub fn make(kept: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = kept[random.below(kept.len())].clone();
    for _ in 0..1 + random.below(8) {
        let at = random.below(bytes.len() + 1);
        let left = bytes.len() - at;
        match random.below(9) {
            0..=2 if left > 0 => bytes[at] ^= 1 << random.below(8),
            3 if left > 0 => bytes[at] = random.next() as u8,
            4 | 5 => {
                let number = TELLING[random.below(TELLING.len())].to_le_bytes();
                let length = [1, 2, 4, 8][random.below(4)].min(left);
                bytes[at..at + length].copy_from_slice(&number[..length]);
            }
            6 => {
                let other = &kept[random.below(kept.len())];
                let from = random.below(other.len() + 1);
                let length = random.below(64).min(left).min(other.len() - from);
                bytes[at..at + length].copy_from_slice(&other[from..from + length]);
            }
            7 => {
                let more: Vec<u8> = (0..random.below(9)).map(|_| random.next() as u8).collect();
                bytes.splice(at..at, more);
            }
            _ => drop(bytes.drain(at..at + random.below(9).min(left))),
        }
    }
    bytes
}

/// Runs an input. If it panics, stores the input in a file and names the file in the error. `told`
/// returns panics of other threads.
pub fn read(
    run: impl Fn(&[u8]),
    bytes: &[u8],
    told: impl FnOnce() -> Option<String>,
) -> Result<(), String> {
    let caught = catch_unwind(AssertUnwindSafe(|| run(bytes))).err().map(|what| words(&*what));
    let Some(what) = caught.or_else(told) else { return Ok(()) };
    let number = bytes.iter().fold(7u64, |n, b| n.wrapping_mul(31).wrapping_add(u64::from(*b)));
    let place: PathBuf = std::env::temp_dir().join(format!("quickbeam-fuzz-{number:016x}"));
    let kept = match std::fs::write(&place, bytes) {
        Ok(()) => place.display().to_string(),
        Err(error) => format!("nowhere ({error})"),
    };
    Err(format!("{what}; the input is in {kept}"))
}

fn words(panic: &dyn Any) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "a panic".into())
}
