//! Probes, which report moments of the engine to a simulation, and canaries, faults that its tests
//! plant.
//!
//! Both are absent from a default build: the functions are empty and inlined. With the feature
//! `simulation`, a thread can set an observer, which is called at each probe on that thread and may
//! yield there. With the feature `canaries`, a test can plant one fault in the engine, to prove
//! that the simulation detects it.

/// A moment of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// Between two steps, where another thread may run.
    Between,
    /// A transaction has its commit timestamp, and so its position in commit order.
    Committed(u64),
    /// A checkpoint has begun.
    CheckpointBegins,
    /// A checkpoint has ended, successfully or not.
    CheckpointEnds,
}

/// A fault that can be planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Canary {
    /// The log is not flushed.
    LogNotFlushed = 1,
    /// One commit in sixteen writes no record to the log.
    RecordDropped,
    /// An abort does not undo the transaction's first change.
    UndoLost,
    /// A changed page overwrites the image that a checkpoint refers to.
    BlockReusedEarly,
    /// The directory of a new segment is not flushed.
    FolderNotFlushed,
    /// Opening uses the older root.
    RootStale,
    /// The data file is not flushed before the root that refers to it.
    DataNotFlushed,
    /// A snapshot includes the next commit.
    SnapshotWrong,
    /// A record changed by an unfinished transaction can be changed.
    LockNotHonoured,
    /// A serializable transaction is not validated.
    NotValidated,
    /// Commits are acknowledged after a failed flush.
    FailureForgotten,
    /// Chains of replaced values are never freed.
    ChainLeaked,
    /// The log of commits that do not wait for it is not written in the background.
    BackgroundIdle,
    /// Segments that records were stored in through mappings are not flushed.
    StoredNotFlushed,
    /// Values read without a latch are used without validation.
    ReadNotValidated,
    /// A dropped tree is freed while unfinished transactions have changes in it.
    TreeFreedEarly,
    /// A serializable transaction is not validated again inside the commit's critical section.
    NotValidatedAtCommit,
    /// Versions are merged although a snapshot distinguishes them.
    VersionMergedEarly,
    /// Closing an environment that failed in the background reports nothing.
    CloseSilent,
    /// Recovery joins fragments by the transaction's number alone.
    PiecesMixed,
    /// A transaction uses what it read after its snapshot expired.
    ExpiryIgnored,
    /// Cursors of a transaction that can change records read ahead.
    ReadAheadOfChanges,
    /// The log lacks the last record of each leaf that a cleared range deletes.
    ClearNotLogged,
    /// Moving a page releases the block that the last checkpoint refers to.
    MovedBlockFreedEarly,
    /// A shift of records between two leaves leaves their old separator in the parent.
    SeparatorNotMoved,
    /// Changes whose undo entries are in a file are visible to every snapshot.
    SpilledForgotten,
    /// A shift divides two leaves although the new record has no space then.
    ShiftWithoutSpace,
}

impl Canary {
    /// All canaries.
    pub const ALL: [Canary; 27] = [
        Canary::LogNotFlushed,
        Canary::RecordDropped,
        Canary::UndoLost,
        Canary::BlockReusedEarly,
        Canary::FolderNotFlushed,
        Canary::RootStale,
        Canary::DataNotFlushed,
        Canary::SnapshotWrong,
        Canary::LockNotHonoured,
        Canary::NotValidated,
        Canary::FailureForgotten,
        Canary::ChainLeaked,
        Canary::BackgroundIdle,
        Canary::StoredNotFlushed,
        Canary::ReadNotValidated,
        Canary::TreeFreedEarly,
        Canary::NotValidatedAtCommit,
        Canary::VersionMergedEarly,
        Canary::CloseSilent,
        Canary::PiecesMixed,
        Canary::ExpiryIgnored,
        Canary::ReadAheadOfChanges,
        Canary::ClearNotLogged,
        Canary::MovedBlockFreedEarly,
        Canary::SeparatorNotMoved,
        Canary::SpilledForgotten,
        Canary::ShiftWithoutSpace,
    ];
}

#[cfg(feature = "simulation")]
mod observed {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::Probe;

    type Observer = Rc<dyn Fn(Probe)>;

    thread_local! {
        static OBSERVER: RefCell<Option<Observer>> = const { RefCell::new(None) };
    }

    /// Sets the observer of the calling thread's probes, or removes it if `observer` is `None`.
    pub fn observe(observer: Option<Observer>) {
        OBSERVER.with(|own| *own.borrow_mut() = observer);
    }

    pub fn tell(moment: Probe) {
        // A thread that is ending has no observer.
        let observer = OBSERVER.try_with(|own| own.borrow().clone()).ok().flatten();
        if let Some(observer) = observer {
            observer(moment);
        }
    }
}

#[cfg(feature = "simulation")]
pub use observed::observe;

/// Reports a moment to the thread's observer.
#[inline(always)]
pub(crate) fn probe(moment: Probe) {
    #[cfg(feature = "simulation")]
    observed::tell(moment);
    #[cfg(not(feature = "simulation"))]
    let _ = moment;
}

#[cfg(feature = "canaries")]
static PLANTED: std::sync::atomic::AtomicU8 = std::sync::atomic::AtomicU8::new(0);

/// Plants a fault in every environment of the process, or removes it.
#[cfg(feature = "canaries")]
pub fn plant(canary: Option<Canary>) {
    let number = canary.map_or(0, |canary| canary as u8);
    PLANTED.store(number, std::sync::atomic::Ordering::SeqCst);
}

/// Returns whether that fault is planted.
#[inline(always)]
pub(crate) fn planted(canary: Canary) -> bool {
    #[cfg(feature = "canaries")]
    return PLANTED.load(std::sync::atomic::Ordering::Relaxed) == canary as u8;
    #[cfg(not(feature = "canaries"))]
    {
        let _ = canary;
        false
    }
}
