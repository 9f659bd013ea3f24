//! Moments of the engine that a simulated world looks at, and faults that its tests plant.
//!
//! Both are nothing in a default build: the functions are empty and inlined. The feature `simulation` lets a thread
//! name an observer, which hears of each moment on that thread and may give way there. The feature `canaries` lets a
//! test plant one fault in the engine, to prove that the simulation would see it.

/// Where the engine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// Between two steps, where another thread may come in between.
    Between,
    /// A transaction has its place in the order: its commit timestamp.
    Committed(u64),
    /// A checkpoint has begun.
    CheckpointBegins,
    /// A checkpoint has ended, well or not.
    CheckpointEnds,
}

/// A fault that can be planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Canary {
    /// The log is not flushed.
    LogNotFlushed = 1,
    /// A commit in sixteen leaves no record in the log.
    RecordDropped,
    /// An abort leaves the transaction's first change.
    UndoLost,
    /// A changed page is written over the image that a checkpoint refers to.
    BlockReusedEarly,
    /// The folder of a new segment is not flushed.
    FolderNotFlushed,
    /// Opening takes the older root.
    RootStale,
    /// The data file is not flushed before the root that refers to it.
    DataNotFlushed,
    /// A snapshot includes the commit after it.
    SnapshotWrong,
    /// A record changed by an unfinished transaction can be changed.
    LockNotHonoured,
    /// A serializable transaction is not validated.
    NotValidated,
    /// Acknowledging goes on after a failed flush.
    FailureForgotten,
    /// Chains of replaced values are never freed.
    ChainLeaked,
    /// The log of commits that wait for nothing is not written in the background.
    BackgroundIdle,
    /// Segments that records were stored in are not flushed with those that were written to.
    StoredNotFlushed,
    /// What was read without a latch is used unvalidated.
    ReadNotValidated,
    /// A dropped tree is freed while unfinished transactions have changes in it.
    TreeFreedEarly,
    /// A serializable transaction is not validated again inside the commit's critical section.
    NotValidatedAtCommit,
    /// Versions are merged although a snapshot tells them apart.
    VersionMergedEarly,
    /// Closing an environment that failed in the background reports nothing.
    CloseSilent,
    /// Recovery brings pieces together by the transaction's number alone.
    PiecesMixed,
}

impl Canary {
    /// Every one.
    pub const ALL: [Canary; 20] = [
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

    /// From now on `observer` hears of the moments on the calling thread; with `None`, nobody does.
    pub fn observe(observer: Option<Observer>) {
        OBSERVER.with(|own| *own.borrow_mut() = observer);
    }

    pub fn tell(moment: Probe) {
        // A thread that ends has no observer any more.
        let observer = OBSERVER.try_with(|own| own.borrow().clone()).ok().flatten();
        if let Some(observer) = observer {
            observer(moment);
        }
    }
}

#[cfg(feature = "simulation")]
pub use observed::observe;

/// Tells the thread's observer.
#[inline(always)]
pub(crate) fn probe(moment: Probe) {
    #[cfg(feature = "simulation")]
    observed::tell(moment);
    #[cfg(not(feature = "simulation"))]
    let _ = moment;
}

#[cfg(feature = "canaries")]
static PLANTED: std::sync::atomic::AtomicU8 = std::sync::atomic::AtomicU8::new(0);

/// Plants a fault in every environment of the process, or takes it out again.
#[cfg(feature = "canaries")]
pub fn plant(canary: Option<Canary>) {
    let number = canary.map_or(0, |canary| canary as u8);
    PLANTED.store(number, std::sync::atomic::Ordering::SeqCst);
}

/// Whether that fault is planted.
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
