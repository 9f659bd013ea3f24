//! Generates the kept inputs: small ones, of every kind that the engine and the program write.

use std::path::Path;

use quickbeam::DATA_FILE;
use quickbeam::fuzzing::{page_number, read_page};

use crate::environment::{CRASHED, Edit, Files, input_of};
use crate::targets::{HEADER, SLOT};
use quickbeam_testing::Random;

/// Inputs by name.
pub type Inputs = Vec<(String, Vec<u8>)>;

/// Returns the inputs of each target.
#[must_use]
pub fn make() -> Vec<(&'static str, Inputs)> {
    let files = &CRASHED.files;
    vec![
        ("page", pages(files)),
        ("log", logs(files)),
        ("roots", roots(files)),
        ("dump", dumps()),
        ("environment", environments()),
    ]
}

/// Pages of each kind: the fullest and the emptiest, and some in between.
fn pages(files: &Files) -> Inputs {
    let data = &files[Path::new(DATA_FILE)];
    let mut inputs = Inputs::new();
    for kind in 1..=5u8 {
        let of_kind = |image: &&[u8]| image[4] == kind && is_page(image);
        let mut images: Vec<&[u8]> = data.chunks_exact(4096).skip(16).filter(of_kind).collect();
        images.sort_by_key(|image| image.iter().filter(|byte| **byte != 0).count());
        let step = images.len().div_ceil(4).max(1);
        for (number, image) in images.into_iter().rev().step_by(step).enumerate() {
            inputs.push((format!("kind-{kind}-{number}"), image.to_vec()));
        }
    }
    inputs
}

fn is_page(image: &[u8]) -> bool {
    read_page(image, page_number(image), 0).is_ok()
}

/// The log from its start, with an increasing number of records.
fn logs(files: &Files) -> Inputs {
    let logs = files.iter().filter(|(file, _)| file.extension().is_some_and(|name| name == "log"));
    let Some((_, segment)) = logs.into_iter().next() else { return Inputs::new() };
    let mut ends = vec![4096];
    let mut at = 4096;
    while at + 48 <= segment.len() && segment[at + 4] != 0 {
        let length = u32::from_le_bytes(*segment[at + 8..].first_chunk().unwrap()) as usize;
        at += (48 + length).next_multiple_of(8);
        ends.push(at);
    }
    let log = |end: usize| [&segment[..HEADER], &segment[4096..end]].concat();
    let short = ends.iter().filter(|end| **end < 4096 + (24 << 10)).enumerate();
    short.map(|(number, end)| (format!("records-{number:02}"), log(*end))).collect()
}

fn roots(files: &Files) -> Inputs {
    let data = &files[Path::new(DATA_FILE)];
    let slot = |at: usize| &data[at..at + SLOT];
    vec![
        ("both".into(), [slot(0), slot(8192)].concat()),
        ("changed-places".into(), [slot(8192), slot(0)].concat()),
        ("the-first-alone".into(), slot(0).to_vec()),
    ]
}

fn dumps() -> Inputs {
    let text = |text: &str| text.as_bytes().to_vec();
    vec![
        (
            "two-sections".into(),
            text(
                "VERSION=3\nformat=bytevalue\ndatabase=people\ntype=btree\nHEADER=END\n \
                 616c706861\n 6f6e65\n \n \nDATA=END\nVERSION=3\nformat=print\ndatabase=a\\\\b\\0a\n\
                 type=hash\nHEADER=END\n alpha\n one\\00x\n b\\\\c\n \\e4\nDATA=END\n",
            ),
        ),
        (
            "of-berkeley-db".into(),
            text(
                "VERSION=3\nformat=print\ntype=btree\ndb_pagesize=4096\nbt_minkey=2\nduplicates=0\n\
                 HEADER=END\n k\n v\nDATA=END\n",
            ),
        ),
        ("cut-short".into(), text("VERSION=3\nformat=bytevalue\ntype=btree\nHEADER=END\n 61\n")),
        ("nothing".into(), Vec::new()),
    ]
}

/// Small edits at random positions of meta pages, page map, tree pages and log, sealed and not.
fn environments() -> Inputs {
    let random = &mut Random::new(20_261_122);
    let mut inputs = vec![("unchanged".to_owned(), input_of(true, &[]))];
    for number in 0..24 {
        let edits: Vec<Edit> = (0..1 + random.below(3))
            .map(|_| Edit {
                part: random.next() as u16,
                at: random.below([64, 4096][number % 2]) as u16,
                bytes: (0..1 + random.below(8)).map(|_| random.next() as u8).collect(),
            })
            .collect();
        inputs.push((format!("changed-{number:02}"), input_of(number % 4 != 0, &edits)));
    }
    inputs
}
