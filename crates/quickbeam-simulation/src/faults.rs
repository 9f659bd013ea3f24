//! What goes wrong in a world, and when. All of it is drawn before the run, so that it can be made less.

use crate::disk::Loss;

/// What is going on in the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Anything.
    Any,
    /// A client is in a commit.
    Commit,
    /// A checkpoint runs.
    Checkpoint,
    /// An environment is being opened.
    Recovery,
}

/// The end of all calls.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// In which phase.
    pub phase: Phase,
    /// After that many calls in it.
    pub after: u32,
}

/// What the restart after a cut finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// The process died; the disk has everything that it was told.
    Process,
    /// The power was lost.
    Power(Loss),
}

/// Calls that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// Opening or making a file.
    Open,
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// Flushing a file.
    Flush,
    /// Setting a length or room aside.
    Length,
    /// Names: rename, remove, list, make a folder, flush one.
    Name,
}

impl CallKind {
    /// Whether the call changes what is stored.
    pub fn changes(self) -> bool {
        !matches!(self, CallKind::Open | CallKind::Read)
    }
}

/// Which files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Every file.
    Any,
    /// The data file.
    Data,
    /// Log segments.
    Log,
}

/// Calls that fail.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// Which calls.
    pub kind: CallKind,
    /// Of which files.
    pub target: Target,
    /// After that many of them.
    pub after: u32,
    /// How many fail.
    pub times: u32,
}

/// A time without room.
#[derive(Clone, Copy, Debug)]
pub struct Full {
    /// After that many writes.
    pub after: u32,
    /// With that many bytes of room left.
    pub slack: u64,
    /// Room comes back after that many calls were refused.
    pub refusals: u32,
}
