//! All rows of a source, read by several threads: batches in the order of one thread.
//!
//! Above: steps that keep their input. Below: the workers, the source.

use super::super::row::{Context, Morsel};
use super::column::Vector;
use super::parallel::{MorselQueue, MorselWork, share};
use super::source::{ColumnBatch, VectorSource};
use crate::error::Result;
use crate::plan::WorkerPlan;

/// What one thread has read: batches, with the numbers of their morsels.
struct Collector {
    source: VectorSource,
    batches: Vec<(u32, ColumnBatch)>,
    bytes: usize,
}

/// All rows of a source.
pub struct SharedRows {
    pub batches: Vec<ColumnBatch>,
    /// The workers that helped.
    pub launched: u64,
}

/// Reads a source with workers. Returns `None` if this thread has to do it alone; the source is
/// where it was then (PARALLEL-1).
pub fn collect(
    source: &mut VectorSource,
    plan: WorkerPlan,
    context: &mut Context<'_>,
) -> Result<Option<SharedRows>> {
    let queue = source.queue(plan, context)?;
    let copy = || Some(Collector { source: source.fork()?, batches: Vec::new(), bytes: 0 });
    let Some(works) = share(queue, copy, context)? else { return Ok(None) };
    let launched = works.len() as u64 - 1;
    let mut batches = Vec::new();
    for work in works {
        source.add_counts(&work.source);
        batches.extend(work.batches);
    }
    batches.sort_by_key(|(morsel, _)| *morsel);
    let batches = batches.into_iter().map(|(_, batch)| batch).collect();
    Ok(Some(SharedRows { batches, launched }))
}

impl MorselWork for Collector {
    fn work_on(
        &mut self,
        number: u32,
        morsel: &Morsel,
        queue: &MorselQueue,
        context: &mut Context<'_>,
    ) -> Result<()> {
        self.source.begin_morsel(morsel)?;
        while let Some(columns) = self.source.next(context)?
            && !queue.is_stopped()
        {
            self.bytes += columns.vectors.iter().map(Vector::bytes).sum::<usize>();
            if self.bytes > context.limits.memory.get() {
                return Err(context.limits.out_of_memory());
            }
            self.batches.push((number, columns));
        }
        Ok(())
    }
}
