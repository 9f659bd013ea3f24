//! Copies source files of the engine into this crate, unchanged and with one planted mistake each.
//!
//! A file's child modules are inserted in it; its tests and inner attributes are removed. A mistake
//! replaces one fragment of text by another. If the fragment does not occur exactly once, the tests
//! of this crate do not compile, so the list below must follow the engine.

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The engine's source directory, relative to this crate.
const ENGINE: &str = "../quickbeam/src";

/// Unchanged modules: name in this crate, file.
const MODULES: [(&str, &str); 8] = [
    ("blocks", "blocks/mod.rs"),
    ("error", "error/mod.rs"),
    ("files", "files.rs"),
    ("entry", "buffer/page_entry.rs"),
    ("quiesce", "buffer/quiesce.rs"),
    ("group_commit", "wal/group_commit.rs"),
    ("versions", "mvcc/mod.rs"),
    ("event", "sync/event.rs"),
];

/// A module with a mistake: name in this crate, module, affected file, replaced text, replacement.
type Mistake = (&'static str, &'static str, &'static str, &'static str, &'static str);

const MISTAKES: [Mistake; 20] = [
    (
        "entry_change_before_held",
        "entry",
        "buffer/page_entry.rs",
        "        fence(Ordering::Release);\n        taken",
        "        taken",
    ),
    (
        "entry_check_before_read",
        "entry",
        "buffer/page_entry.rs",
        "        fence(Ordering::Acquire);\n",
        "",
    ),
    (
        "entry_version_without_content",
        "entry",
        "buffer/page_entry.rs",
        "let word = self.latch.load(Ordering::Acquire);",
        "let word = self.latch.load(Ordering::Relaxed);",
    ),
    (
        "entry_released_before_change",
        "entry",
        "buffer/page_entry.rs",
        "(CONTENT - 1)).wrapping_add(1);\n        self.latch.store(version, Ordering::Release);",
        "(CONTENT - 1)).wrapping_add(1);\n        self.latch.store(version, Ordering::Relaxed);",
    ),
    (
        "entry_taken_twice",
        "entry",
        "buffer/page_entry.rs",
        "            .compare_exchange(version, version | HELD, Ordering::Acquire, Ordering::Relaxed)\n            .is_ok();",
        "            .fetch_or(HELD, Ordering::Acquire) & !HELD == version;",
    ),
    (
        "quiesce_not_rechecked",
        "quiesce",
        "buffer/quiesce.rs",
        "count.fetch_add(1, Ordering::SeqCst);\n            if !self.closed.load(Ordering::SeqCst) {",
        "count.fetch_add(1, Ordering::AcqRel);\n            if !self.closed.load(Ordering::Acquire) {",
    ),
    (
        "quiesce_own_stripe_left_before_change",
        "quiesce",
        "buffer/quiesce.rs",
        "count.store(count.load(Ordering::Relaxed) - 1, Ordering::Release);",
        "count.store(count.load(Ordering::Relaxed) - 1, Ordering::Relaxed);",
    ),
    (
        "quiesce_left_before_change",
        "quiesce",
        "buffer/quiesce.rs",
        "count.fetch_sub(1, Ordering::Release);",
        "count.fetch_sub(1, Ordering::Relaxed);",
    ),
    (
        "group_commit_generation_too_late",
        "group_commit",
        "wal/group_commit.rs",
        "            let seen = self.next_leader_event.generation();\n            drop(state);",
        "            drop(state);\n            let seen = self.next_leader_event.generation();",
    ),
    (
        "group_commit_end_not_notified",
        "group_commit",
        "wal/group_commit.rs",
        "        ended.notify();\n",
        "",
    ),
    (
        "group_commit_flush_forgotten",
        "group_commit",
        "wal/group_commit.rs",
        "        state.flush_wanted |= flush;\n",
        "",
    ),
    (
        "versions_snapshot_of_the_claim",
        "versions",
        "mvcc/snapshots.rs",
        "Ok((slot, self.refresh(slot, newest)))",
        "Ok((slot, self.slots[slot].snapshot.load(Ordering::SeqCst) - 1))",
    ),
    (
        "versions_newest_after_slots",
        "versions",
        "mvcc/snapshots.rs",
        "        let newest = newest.load(Ordering::SeqCst);\n        self.retired.fetch_max(newest, Ordering::SeqCst);\n",
        "        let mut oldest = u64::MAX;\n        self.for_marked(|slot| match self.slots[slot].snapshot.load(Ordering::SeqCst) {\n            FREE => {}\n            snapshot => oldest = oldest.min(snapshot - 1),\n        });\n        let newest = newest.load(Ordering::SeqCst);\n        self.retired.fetch_max(newest, Ordering::SeqCst);\n        if oldest >= newest {\n            return newest;\n        }\n",
    ),
    (
        "versions_unmarked_without_a_second_look",
        "versions",
        "mvcc/snapshots.rs",
        "            if is_taken(slot) {\n                self.marks[group].fetch_or(bit, Ordering::SeqCst);\n            } else if left == 0 {",
        "            if left == 0 {",
    ),
    (
        "versions_expiry_not_ordered",
        "versions",
        "mvcc/snapshots.rs",
        "        fence(Ordering::Acquire);\n",
        "",
    ),
    (
        "versions_pinned_without_comparing",
        "versions",
        "mvcc/snapshots.rs",
        "        let is_unchanged =\n            word.compare_exchange(own, pinned, Ordering::SeqCst, Ordering::Relaxed).is_ok();\n",
        "        word.store(pinned, Ordering::SeqCst);\n        let is_unchanged = true;\n",
    ),
    (
        "versions_state_before_waiting",
        "versions",
        "mvcc/transaction_table.rs",
        "other.waited_for.store(true, Ordering::SeqCst);\n            fence(Ordering::SeqCst);\n            if other.state() != TransactionState::Active {\n                return Ok(());\n            }",
        "if other.state() != TransactionState::Active {\n                return Ok(());\n            }\n            other.waited_for.store(true, Ordering::SeqCst);",
    ),
    (
        "versions_waiting_not_ordered",
        "versions",
        "mvcc/transaction_table.rs",
        "            fence(Ordering::SeqCst);\n",
        "",
    ),
    (
        "event_counted_too_late",
        "event",
        "sync/event.rs",
        "            let mut waiters = self.waiters.lock();\n            self.generation.fetch_add(1, Ordering::SeqCst);\n            std::mem::take(&mut *waiters)",
        "            let taken = std::mem::take(&mut *self.waiters.lock());\n            self.generation.fetch_add(1, Ordering::SeqCst);\n            taken",
    ),
    (
        "event_nobody_woken",
        "event",
        "sync/event.rs",
        "            thread.unpark();\n",
        "            let _ = thread;\n",
    ),
];

fn main() -> Result<()> {
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={ENGINE}");
    let mut code = String::new();
    let mut all: Vec<(&str, &str, Option<Mistake>)> =
        MODULES.iter().map(|&(name, file)| (name, file, None)).collect();
    for mistake in MISTAKES {
        let file =
            MODULES.iter().find(|(name, _)| *name == mistake.1).ok_or("an unknown module")?;
        all.push((mistake.0, file.1, Some(mistake)));
    }
    for (name, file, mistake) in all {
        let mut found = 0;
        let body = source(Path::new(file), mistake, &mut found)?;
        writeln!(
            code,
            "#[allow(dead_code, unexpected_cfgs, unused_imports, unused_variables, clippy::all)]\npub mod {name} {{\n{body}}}"
        )?;
        if mistake.is_some() && found != 1 {
            writeln!(
                code,
                "compile_error!(\"{name}: what is to be replaced is there {found} times\");"
            )?;
        }
    }
    fs::write(out.join("engine.rs"), code)?;
    Ok(())
}

/// Returns the text of a module's file with its child modules.
fn source(file: &Path, mistake: Option<Mistake>, found: &mut usize) -> Result<String> {
    let mut text = fs::read_to_string(Path::new(ENGINE).join(file))?;
    if let Some((_, _, place, from, to)) = mistake
        && Path::new(place) == file
    {
        *found = text.matches(from).count();
        text = text.replace(from, to);
    }
    if let Some(tests) = text.find("#[cfg(test)]\nmod tests {") {
        text.truncate(tests);
    }
    let mut body = String::new();
    for line in text.lines() {
        let trimmed = line.trim_start();
        if trimmed.starts_with("//") || trimmed.starts_with("#![") {
            continue;
        }
        let declared = line.strip_suffix(';').and_then(|line| line.split_once("mod "));
        match declared.filter(|(visibility, _)| ["", "pub(super) "].contains(visibility)) {
            Some((visibility, child)) => {
                let folder = file.parent().unwrap_or(Path::new(""));
                let mut child_file = folder.join(format!("{child}.rs"));
                if !Path::new(ENGINE).join(&child_file).exists() {
                    child_file = folder.join(child).join("mod.rs");
                }
                let child_body = source(&child_file, mistake, found)?;
                writeln!(body, "{visibility}mod {child} {{\n{child_body}}}")?;
            }
            None => writeln!(body, "{line}")?,
        }
    }
    Ok(body)
}
