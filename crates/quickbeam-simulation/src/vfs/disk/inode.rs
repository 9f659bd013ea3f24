//! One file: the content that programs see, the content on the medium, and the pending changes.

use std::sync::Arc;

use super::content::Content;
use super::{Loss, Medium};
use quickbeam_testing::Random;

#[derive(Clone, Debug)]
enum Change {
    Write { offset: u64, bytes: Arc<[u8]> },
    Length(u64),
    Allocate(u64),
}

/// A change that may or may not be on the medium.
#[derive(Clone, Debug)]
struct Pending {
    change: Change,
    /// Its bytes were flushed; the length that it gave the file was not.
    flushed: bool,
    /// It changed the file's length.
    resizes: bool,
}

/// A file without its name.
#[derive(Clone, Default, Debug)]
pub struct Inode {
    /// The content that programs read.
    pub seen: Content,
    /// The content that is certainly on the medium.
    pub durable: Content,
    pending: Vec<Pending>,
    /// A flush failed: `seen` contains more than the medium and the pending changes.
    diverged: bool,
}

impl Inode {
    fn push(&mut self, change: Change, resizes: bool) {
        self.pending.push(Pending { change, flushed: false, resizes });
    }

    /// Writes bytes, growing the file if needed.
    pub fn write(&mut self, bytes: &[u8], offset: u64) {
        let end = offset + bytes.len() as u64;
        let resizes = end > self.seen.length();
        self.seen.write(bytes, offset);
        self.seen.grow(end);
        self.push(Change::Write { offset, bytes: bytes.into() }, resizes);
    }

    /// Truncates or grows the file.
    pub fn set_length(&mut self, length: u64) {
        let resizes = length != self.seen.length();
        self.seen.set_length(length);
        self.push(Change::Length(length), resizes);
    }

    /// Allocates space up to `length`.
    pub fn allocate(&mut self, length: u64) {
        let resizes = length > self.seen.length();
        self.seen.allocate(length);
        self.push(Change::Allocate(length), resizes);
    }

    /// Makes written bytes durable. The length becomes durable only if `length` is set or it is
    /// unchanged.
    pub fn flush(&mut self, length: bool) {
        if !length && self.pending.iter().any(|pending| pending.resizes) {
            for pending in &mut self.pending {
                pending.flushed = true;
            }
            return;
        }
        if self.diverged {
            self.durable = self.resolve(&mut Random::new(0), Loss::Nothing, Medium::default());
        } else {
            self.durable = self.seen.clone();
        }
        self.pending.clear();
    }

    /// Fails a flush: part of the data to be flushed is on the medium, and the rest is never
    /// written. If `forgotten` is set, programs no longer see the rest.
    pub fn fail_flush(&mut self, random: &mut Random, medium: Medium, forgotten: bool) {
        self.durable = self.resolve(random, Loss::Any, medium);
        self.pending.clear();
        self.diverged = true;
        if forgotten {
            self.seen.revert(&self.durable);
        }
    }

    /// Makes a direct write to space that was already durable, so the write is durable when it
    /// returns.
    pub fn write_through(&mut self, bytes: &[u8], offset: u64) {
        let end = offset + bytes.len() as u64;
        if end > self.durable.length() || end > self.seen.length() {
            self.write(bytes, offset);
            self.flush(false);
            return;
        }
        self.seen.write(bytes, offset);
        self.durable.write(bytes, offset);
    }

    /// Sets the state of the medium after a power loss.
    pub fn lose_power(&mut self, random: &mut Random, loss: Loss, medium: Medium) {
        self.durable = self.resolve(random, loss, medium);
        self.seen = self.durable.clone();
        self.pending.clear();
        self.diverged = false;
    }

    /// Returns a possible content of the medium, after losing part of the pending changes.
    fn resolve(&self, random: &mut Random, loss: Loss, medium: Medium) -> Content {
        let mut content = self.durable.clone();
        let count = self.pending.len();
        let single = random.below(count);
        let cut = random.below(count + 1);
        for (at, pending) in self.pending.iter().enumerate() {
            // For each change: whether it survives, and the percentage of its sectors that do.
            let (kept, parts) = match loss {
                Loss::Everything => (false, 0),
                Loss::Nothing => (true, 100),
                Loss::Any => (random.chance(70), random.pick(&[100, 100, 80, 50, 10])),
                Loss::Whole => (random.chance(50), 100),
                Loss::Tail => (at <= cut, if at == cut { 50 } else { 100 }),
                Loss::AllButOne => (at != single, 100),
                Loss::OnlyOne => (at == single, 100),
            };
            // The new length may survive without the data, but the data is not visible without the
            // length.
            let resized = kept && (loss != Loss::Any || random.chance(70));
            let parts = if pending.flushed { 100 } else { parts };
            let kept = kept || pending.flushed;
            match &pending.change {
                Change::Length(length) => {
                    if resized {
                        content.set_length(*length);
                    }
                }
                Change::Allocate(length) => {
                    if resized {
                        content.grow(*length);
                    }
                }
                Change::Write { offset, bytes } => {
                    if resized {
                        content.grow(offset + bytes.len() as u64);
                    }
                    if kept {
                        write_parts(&mut content, random, bytes, *offset, parts, medium.grain);
                    }
                }
            }
        }
        content
    }
}

/// Writes the surviving sectors of a write, up to the content's length.
fn write_parts(
    content: &mut Content,
    random: &mut Random,
    bytes: &[u8],
    offset: u64,
    percent: usize,
    grain: usize,
) {
    let mut at = 0;
    while at < bytes.len() {
        let start = offset + at as u64;
        let take = (grain - start as usize % grain).min(bytes.len() - at);
        let there = content.length().saturating_sub(start).min(take as u64) as usize;
        if there > 0 && (percent == 100 || random.chance(percent)) {
            content.write(&bytes[at..at + there], start);
        }
        at += take;
    }
}
