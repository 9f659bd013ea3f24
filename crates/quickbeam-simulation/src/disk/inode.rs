//! One file: what programs see of it, what the medium has, and what is on the way.

use std::sync::Arc;

use super::content::Content;
use super::{Loss, Medium};
use crate::random::Random;

#[derive(Clone, Debug)]
enum Change {
    Write { offset: u64, bytes: Arc<[u8]> },
    Length(u64),
    Allocate(u64),
}

/// A change that the medium may or may not have.
#[derive(Clone, Debug)]
struct Pending {
    change: Change,
    /// Its bytes were flushed; the length that it gave the file was not.
    flushed: bool,
    /// It made the file longer or shorter.
    resizes: bool,
}

/// A file without its name.
#[derive(Clone, Default, Debug)]
pub struct Inode {
    /// What a program reads.
    pub seen: Content,
    /// What certainly is on the medium.
    pub durable: Content,
    pending: Vec<Pending>,
    /// A flush failed: what is seen is more than the medium and the pending changes make.
    diverged: bool,
}

impl Inode {
    fn push(&mut self, change: Change, resizes: bool) {
        self.pending.push(Pending { change, flushed: false, resizes });
    }

    /// Writes, growing the file when needed.
    pub fn write(&mut self, bytes: &[u8], offset: u64) {
        let end = offset + bytes.len() as u64;
        let resizes = end > self.seen.length();
        self.seen.write(bytes, offset);
        self.seen.grow(end);
        self.push(Change::Write { offset, bytes: bytes.into() }, resizes);
    }

    /// Cuts or grows the file.
    pub fn set_length(&mut self, length: u64) {
        let resizes = length != self.seen.length();
        self.seen.set_length(length);
        self.push(Change::Length(length), resizes);
    }

    /// Takes room up to `length`.
    pub fn allocate(&mut self, length: u64) {
        let resizes = length > self.seen.length();
        self.seen.allocate(length);
        self.push(Change::Allocate(length), resizes);
    }

    /// Makes what was written durable; the length only if `length` says so or it did not change.
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

    /// A flush that fails: what was to be flushed is on the medium in part, and nobody will write the rest. `forgotten`:
    /// nor does a program see it any more.
    pub fn fail_flush(&mut self, random: &mut Random, medium: Medium, forgotten: bool) {
        self.durable = self.resolve(random, Loss::Any, medium);
        self.pending.clear();
        self.diverged = true;
        if forgotten {
            self.seen.revert(&self.durable);
        }
    }

    /// A write that was durable when it returned, on a file whose room was durable before; `whole` says whether it was
    /// cut off.
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

    /// The medium after a loss of power.
    pub fn lose_power(&mut self, random: &mut Random, loss: Loss, medium: Medium) {
        self.durable = self.resolve(random, loss, medium);
        self.seen = self.durable.clone();
        self.pending.clear();
        self.diverged = false;
    }

    /// What the medium may hold, with that part of the pending changes lost.
    fn resolve(&self, random: &mut Random, loss: Loss, medium: Medium) -> Content {
        let mut content = self.durable.clone();
        let count = self.pending.len();
        let single = random.below(count);
        let cut = random.below(count + 1);
        for (at, pending) in self.pending.iter().enumerate() {
            // Per change: does it survive, and if so, each of its parts with which chance.
            let (kept, parts) = match loss {
                Loss::Everything => (false, 0),
                Loss::Nothing => (true, 100),
                Loss::Any => (random.chance(70), random.pick(&[100, 100, 80, 50, 10])),
                Loss::Whole => (random.chance(50), 100),
                Loss::Tail => (at <= cut, if at == cut { 50 } else { 100 }),
                Loss::AllButOne => (at != single, 100),
                Loss::OnlyOne => (at == single, 100),
            };
            // The new length can be there without the data, and the data cannot be seen without it.
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

/// Writes those sectors of a write that survive, up to the content's length.
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
