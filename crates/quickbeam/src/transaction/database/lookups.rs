//! Point reads of several keys at a time.
//!
//! Above: `DatabaseExt::get_each()`. Below: point reads, and lookups whose waits for memory
//! overlap.

use super::{Database, ReadTransaction};
use crate::access::btree::{LOOKUP_GROUP, LeafHint};
use crate::error::Result;
use crate::options::AccessMethod;
use crate::transaction::DatabaseUse;

impl Database {
    /// See `query_layer::DatabaseExt::get_each`.
    pub(crate) fn get_each(
        &self,
        transaction: &impl ReadTransaction,
        keys: &[&[u8]],
        value: &mut Vec<u8>,
        visit: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        let transaction = transaction.as_transaction();
        let tree = self.tree(transaction, DatabaseUse::Read)?;
        let mut hints = [LeafHint::default(); LOOKUP_GROUP];
        let mut nth = 0;
        for group in keys.chunks(LOOKUP_GROUP) {
            let is_hinted = tree.method == AccessMethod::BTree && group.len() > 1;
            if is_hinted {
                let loaded = tree.load_records(&transaction.engine().pool, group, &mut hints);
                transaction.unless_expired(loaded)?;
            }
            for (key, hint) in group.iter().zip(&hints) {
                if is_hinted {
                    *transaction.state.borrow_mut().leaf_hints.of(tree) = *hint;
                }
                let found = self.read(transaction, tree, key, value)?;
                visit(nth, found.then_some(&value[..]));
                nth += 1;
            }
        }
        Ok(())
    }
}
