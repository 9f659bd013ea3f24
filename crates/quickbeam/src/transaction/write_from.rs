//! Writes of a long value from a source, without holding it in memory.
//!
//! Above: `Database::put_from`. Below: overflow chains, redo, and the record's write.
//!
//! The source is copied to the pages of a chain, and the chain to the redo buffer, which goes to
//! the log in fragments as that of any large transaction. So a source that fails leaves no part of
//! an operation in the log. If the log fails within the value, the transaction can only be aborted.

use std::io::Read;
use std::sync::Arc;

use super::write::WriteOp;
use super::{State, Transaction};
use crate::access::btree::Tree;
use crate::access::overflow::{ChainReader, ChainWriter, VALUE_LIMIT, encode_pointer};
use crate::error::{Error, Result, TooLong};
use crate::mvcc::{DeferredTask, TransactionRecord};
use crate::page::PageId;

impl Transaction {
    /// Writes a record whose value is the next `length` bytes of `source`, too long for a leaf.
    pub(super) fn write_from(
        &self,
        tree: Tree,
        key: &[u8],
        length: u64,
        source: &mut dyn Read,
    ) -> Result<()> {
        self.check_write(key, None)?;
        if length > VALUE_LIMIT as u64 {
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            return Err(Error::ValueTooLong(Box::new(TooLong { length, limit: VALUE_LIMIT })));
        }
        self.with_writer(|state, writer| {
            self.spill_redo(state, writer)?;
            let first = self.write_chain_from(writer, tree, length, source)?;
            let start = state.redo.position();
            if let Err(error) = self.log_long_value(state, writer, tree, key, (first, length)) {
                state.redo.abandon_put(start);
                writer.deferred.push(DeferredTask::FreeChain(first));
                return Err(error);
            }
            let op = WriteOp::Put(&[]);
            self.write_long_record(state, writer, tree, key, op, (first, length))
                .inspect_err(|_| state.redo.roll_back_to(start))
                .map(|_| ())
        })
    }

    /// Copies the source to a new chain and returns its first page.
    fn write_chain_from(
        &self,
        writer: &TransactionRecord,
        tree: Tree,
        length: u64,
        source: &mut dyn Read,
    ) -> Result<PageId> {
        let mut chain = ChainWriter::new(&self.engine().pool, self.slot, tree.id);
        let mut part = vec![0; chain.page_room()];
        let mut left = length;
        let mut copy = || {
            while left > 0 {
                let wanted = (part.len() as u64).min(left) as usize;
                let read = source.read_exact(&mut part[..wanted]);
                read.map_err(|error| Error::io("reading the source of a value", error))?;
                let is_first = chain.first() == 0;
                chain.push(&part[..wanted], |page| {
                    if is_first {
                        writer.new_chains.lock().push(page);
                    }
                })?;
                left -= wanted as u64;
            }
            Ok(())
        };
        let copied = copy();
        let first = chain.first();
        if copied.is_err() && first != 0 {
            writer.deferred.push(DeferredTask::FreeChain(first));
        }
        copied.map(|()| first)
    }

    /// Appends the put of a chain's value to the redo buffer, if the environment has a log.
    fn log_long_value(
        &self,
        state: &mut State,
        writer: &Arc<TransactionRecord>,
        tree: Tree,
        key: &[u8],
        (first, length): (PageId, u64),
    ) -> Result<()> {
        let engine = self.engine();
        if engine.log.is_none() {
            return Ok(());
        }
        let mut chain = ChainReader::new(&engine.pool, &encode_pointer(first, length))?;
        let mut part = vec![0; engine.pool.page_size];
        let mut done = 0;
        state.redo.begin_put(tree.id, key, length);
        while done < length {
            let read = chain.read_at(&engine.pool, done, &mut part)?;
            state.redo.put_part(&part[..read]);
            done += read as u64;
            self.spill_redo(state, writer)?;
        }
        Ok(())
    }
}
