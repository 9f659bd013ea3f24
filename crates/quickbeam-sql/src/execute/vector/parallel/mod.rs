//! Workers: threads that share the work of one step, morsel by morsel.
//!
//! Above: vectorized steps. Below: scans of morsels, views of the transaction's snapshot. The
//! thread of the statement works too. A morsel is a range of the keys of the table that the step
//! reads; each thread takes the next one that is left, so that all end at about the same time.
//!
//! - PARALLEL-2: all threads read the snapshot of the statement. A transaction that sees more, or
//!   whose reads are validated, has no workers.
//! - PARALLEL-3: a worker has row slots, a budget and limits of its own, and no session: what it
//!   evaluates depends on rows, constants and parameters only. (by type)
//! - PARALLEL-4: no thread goes on after the statement: the scope waits for all of them. (by type)

mod worker_session;

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use quickbeam::query_layer::TransactionExt;
use quickbeam::{ReadTransaction, Snapshot, Transaction, invariant};

use crate::error::{Result, SqlError};
use crate::execute::row::{Context, MemoryBudget, Morsel, StatementLimits};
use crate::expression::{Clock, Given, Slot};
use worker_session::WorkerSession;

/// The stack of a worker, in bytes: that of a main thread, for expressions of the same depth.
const STACK: usize = 8 << 20;

/// The morsels of a step, in the order of their keys.
pub struct MorselQueue {
    morsels: Vec<Morsel>,
    next: AtomicUsize,
    stopped: AtomicBool,
}

/// A copy of a step that works on morsels.
pub trait MorselWork: Send {
    /// Works on the morsel with that number.
    fn work_on(
        &mut self,
        number: u32,
        morsel: &Morsel,
        queue: &MorselQueue,
        context: &mut Context<'_>,
    ) -> Result<()>;
}

impl MorselQueue {
    pub fn new(morsels: Vec<Morsel>) -> MorselQueue {
        MorselQueue { morsels, next: AtomicUsize::new(0), stopped: AtomicBool::new(false) }
    }

    /// Takes the first morsel that no thread has taken.
    fn take(&self) -> Option<(u32, &Morsel)> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let morsel = self.morsels.get(number).filter(|_| !self.is_stopped())?;
        Some((u32::try_from(number).ok()?, morsel))
    }

    /// Whether a thread has failed, so that the others can stop.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

/// What one thread works with.
struct Station<W> {
    work: W,
    clock: Clock,
    limits: StatementLimits,
    slots: Vec<Slot>,
}

impl<W: MorselWork> Station<W> {
    fn new(work: W, memory: usize, context: &Context<'_>) -> Station<W> {
        let limits = StatementLimits {
            cancelled: context.limits.cancelled.clone(),
            memory: Cell::new(memory),
            deadline: Cell::new(context.limits.deadline.get()),
        };
        let slots = context.slots.iter().map(|_| Slot::default()).collect();
        Station { work, clock: context.clock.clone(), limits, slots }
    }
}

/// What all threads read.
#[derive(Clone, Copy)]
struct Shared<'s> {
    catalog: &'s crate::catalog::Catalog,
    snapshot: &'s std::sync::Arc<crate::catalog::CatalogSnapshot>,
    parameters: &'s [crate::types::Value],
    queue: &'s MorselQueue,
}

impl Shared<'_> {
    /// Works on morsels until none is left.
    fn work_off<W: MorselWork>(
        &self,
        station: &mut Station<W>,
        transaction: &Transaction,
    ) -> Result<()> {
        let (given, budget) = (Given::default(), MemoryBudget::new(1));
        let mut context = Context {
            transaction,
            catalog: self.catalog,
            snapshot: self.snapshot,
            slots: &mut station.slots,
            parameters: self.parameters,
            clock: &station.clock,
            session: &WorkerSession,
            given: &given,
            limits: &station.limits,
            budget: &budget,
        };
        while let Some((number, morsel)) = self.queue.take() {
            let done = station.work.work_on(number, morsel, self.queue, &mut context);
            if done.is_err() {
                self.queue.stopped.store(true, Ordering::Relaxed);
                return done;
            }
        }
        Ok(())
    }
}

/// Returns further views of the statement's snapshot (PARALLEL-2).
fn views(count: usize, context: &Context<'_>) -> Result<Vec<Snapshot>> {
    let mut views = Vec::with_capacity(count);
    while views.len() < count
        && let Some(view) = context.transaction.share_snapshot()?
    {
        let changes = context.transaction.change_count();
        invariant!(PARALLEL_2, changes == 0, "workers miss {changes} changes");
        views.push(view);
    }
    Ok(views)
}

/// Shares morsels among copies of a step, each on a thread of its own, the first on this one.
/// `shared` is the number of threads and the morsels, or `None` if one thread has to do the step.
/// Returns the copies that took part. Returns `None` if the step cannot be shared or copied, if
/// there are no workers, or if one failed for whatever reason but a panic.
pub fn share<W: MorselWork>(
    shared: Option<(usize, MorselQueue)>,
    fork: impl Fn() -> Option<W>,
    context: &Context<'_>,
) -> Result<Option<Vec<W>>> {
    let Some((threads, queue)) = shared else { return Ok(None) };
    let works: Option<Vec<W>> = (0..threads).map(|_| fork()).collect();
    let Some(mut works) = works else { return Ok(None) };
    let views = views(works.len().saturating_sub(1), context)?;
    works.truncate(views.len() + 1);
    if views.is_empty() {
        return Ok(None);
    }
    let memory = context.memory_of_each(works.len());
    let stations = works.into_iter().map(|work| Station::new(work, memory, context));
    let mut stations: Vec<Station<W>> = stations.collect();
    let shared = Shared {
        catalog: context.catalog,
        snapshot: context.snapshot,
        parameters: context.parameters,
        queue: &queue,
    };
    let helpers = stations.split_off(1);
    let outcomes = thread::scope(|scope| {
        let mut started = Vec::with_capacity(helpers.len());
        for (mut station, view) in helpers.into_iter().zip(views) {
            let body = move || {
                let done = shared.work_off(&mut station, view.as_transaction());
                done.map(|()| station)
            };
            let thread = thread::Builder::new().name("quickbeam-worker".to_owned());
            // Without a further thread, the others do its part.
            started.extend(thread.stack_size(STACK).spawn_scoped(scope, body));
        }
        let own = stations.pop().map(|mut station| {
            shared.work_off(&mut station, context.transaction).map(|()| station)
        });
        let joined = started.into_iter().map(|thread| {
            thread.join().map_err(|_| SqlError::internal("a worker of the statement panicked"))
        });
        own.map(Ok).into_iter().chain(joined).collect::<Result<Vec<_>>>()
    })?;
    let stations: Result<Vec<Station<W>>> = outcomes.into_iter().collect();
    Ok(stations.ok().map(|stations| stations.into_iter().map(|it| it.work).collect()))
}
