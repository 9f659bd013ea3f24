//! The faults of a simulation and their times. All are drawn before the run, so that a failing plan
//! can be reduced.

use crate::vfs::disk::Loss;

/// The engine's current activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Any activity.
    Any,
    /// A client is committing.
    Commit,
    /// A checkpoint is running.
    Checkpoint,
    /// An environment is being opened.
    Recovery,
}

/// A cut: the point after which all calls fail.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// The phase of the cut.
    pub phase: Phase,
    /// Number of calls in that phase before the cut.
    pub after: u32,
}

/// The kind of restart after a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// The process died; the disk has all completed calls.
    Process,
    /// Power was lost.
    Power(Loss),
}

/// Calls that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// Opening or creating a file.
    Open,
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// Flushing a file.
    Flush,
    /// Setting a length or allocating space.
    Length,
    /// Names: renaming, removing and listing, and creating or flushing a directory.
    Name,
}

impl CallKind {
    /// Returns whether the call changes stored data.
    pub fn changes(self) -> bool {
        !matches!(self, CallKind::Open | CallKind::Read)
    }
}

/// The files that a fault affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Every file.
    Any,
    /// The data file.
    Data,
    /// Log segments.
    Log,
}

/// A fault: calls that fail.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The kind of call.
    pub kind: CallKind,
    /// The affected files.
    pub target: Target,
    /// Number of matching calls before the first failure.
    pub after: u32,
    /// Number of calls that fail.
    pub times: u32,
}

/// A period with a full device.
#[derive(Clone, Copy, Debug)]
pub struct Full {
    /// Number of writes before it begins.
    pub after: u32,
    /// Bytes of space left when it begins.
    pub slack: u64,
    /// Number of refused calls after which space is free again.
    pub refusals: u32,
}
