//! The page latch: an optimistic reader accepts only a single state of the page, and a latch has
//! one holder.

use std::sync::Arc;

use loom::sync::atomic::AtomicU64;
use loom::sync::atomic::Ordering::Relaxed;

use crate::{start, try_all};

/// The models, over one version of `buffer/page_entry.rs`.
macro_rules! models {
    ($name:ident, $source:ident) => {
        #[allow(dead_code)] // Each mistake has only the models that find it.
        mod $name {
            use super::*;
            use crate::engine::$source::PageEntry;

            /// A page of two words with relaxed loads and stores only, like the pool's pages.
            struct Paged {
                entry: PageEntry,
                words: [AtomicU64; 2],
            }

            fn page() -> Arc<Paged> {
                let entry = PageEntry::new();
                entry.frame.store(0, Relaxed);
                Arc::new(Paged { entry, words: [AtomicU64::new(0), AtomicU64::new(0)] })
            }

            /// Adds one to both words if the latch is free. Returns whether it was.
            fn add(page: &Paged) -> bool {
                let Some(version) = page.entry.version() else { return false };
                if !page.entry.try_latch(version) {
                    return false;
                }
                for word in &page.words {
                    word.store(word.load(Relaxed) + 1, Relaxed);
                }
                page.entry.release_changed();
                true
            }

            /// Reads both words. Returns `None` if the validation fails.
            fn read(page: &Paged) -> Option<[u64; 2]> {
                let version = page.entry.version()?;
                let words = [page.words[0].load(Relaxed), page.words[1].load(Relaxed)];
                page.entry.is_version(version).then_some(words)
            }

            /// A writer changes the page during two consecutive reads.
            pub fn readers() {
                try_all(|| {
                    let page = page();
                    let writer = {
                        let page = page.clone();
                        start(move || add(&page))
                    };
                    let reader = start(move || {
                        let first = read(&page);
                        let second = read(&page);
                        for [one, other] in first.into_iter().chain(second) {
                            assert_eq!(one, other, "a torn page was accepted");
                        }
                        if let (Some(first), Some(second)) = (first, second) {
                            assert!(first <= second, "the page went back");
                        }
                    });
                    reader.join().unwrap();
                    assert!(writer.join().unwrap());
                });
            }

            /// Two writers change the page; no change is lost.
            pub fn writers() {
                try_all(|| {
                    let page = page();
                    let writer = || {
                        let page = page.clone();
                        start(move || add(&page))
                    };
                    let (one, other) = (writer(), writer());
                    let done = u64::from(one.join().unwrap()) + u64::from(other.join().unwrap());
                    assert_eq!(read(&page), Some([done, done]), "a change was lost");
                });
            }

            /// The page moves to another frame during a read: its old frame gets another page's
            /// content.
            pub fn frames() {
                try_all(|| {
                    let moving = page();
                    let mover = {
                        let moving = moving.clone();
                        start(move || {
                            let version = moving.entry.version().unwrap();
                            assert!(moving.entry.try_latch(version));
                            moving.words[0].store(99, Relaxed);
                            moving.words[1].store(0, Relaxed);
                            moving.entry.frame.store(1, Relaxed);
                            moving.entry.release_moved();
                        })
                    };
                    let reader = start(move || {
                        let Some(version) = moving.entry.version() else { return };
                        let frame = moving.entry.frame.load(Relaxed) as usize;
                        let content = moving.words[frame].load(Relaxed);
                        if moving.entry.is_version(version) {
                            assert_eq!(content, 0, "another page's content was accepted");
                        }
                    });
                    reader.join().unwrap();
                    mover.join().unwrap();
                });
            }
        }
    };
}

models!(right, entry);
models!(change_before_held, entry_change_before_held);
models!(check_before_read, entry_check_before_read);
models!(version_without_content, entry_version_without_content);
models!(released_before_change, entry_released_before_change);
models!(taken_twice, entry_taken_twice);

#[test]
fn reader_never_accepts_a_torn_page() {
    right::readers();
}

#[test]
fn latch_is_exclusive() {
    right::writers();
}

#[test]
fn reader_never_accepts_another_page() {
    right::frames();
}

#[test]
#[should_panic = "a torn page was accepted"]
fn found_a_change_before_the_latch_is_seen_to_be_held() {
    change_before_held::readers();
}

#[test]
#[should_panic = "another page's content was accepted"]
fn found_a_move_before_the_latch_is_seen_to_be_held() {
    change_before_held::frames();
}

#[test]
#[should_panic = "a torn page was accepted"]
fn found_a_check_that_comes_before_what_it_checks() {
    check_before_read::readers();
}

#[test]
#[should_panic = "accepted"]
fn found_a_version_that_brings_no_content() {
    version_without_content::readers();
}

#[test]
#[should_panic = "accepted"]
fn found_a_release_before_the_change() {
    released_before_change::readers();
}

#[test]
#[should_panic = "a change was lost"]
fn found_a_latch_that_two_hold() {
    taken_twice::writers();
}
