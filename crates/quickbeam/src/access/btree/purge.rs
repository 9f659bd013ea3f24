//! Purging: removes tombstones that no snapshot needs.

use super::Tree;
use crate::buffer::Pool;
use crate::error::Result;

/// Removes dead records from the leaf for `key`, and joins it with a neighbour when little is left.
pub fn purge_leaf(pool: &Pool, stripe: usize, tree: Tree, key: &[u8]) -> Result<()> {
    let change_guard = pool.enter(stripe);
    loop {
        let leaf = tree.leaf(pool, key)?;
        if !leaf.page.has_tombstones() && leaf.validate() {
            return Ok(());
        }
        let Some(latched) = leaf.upgrade() else { continue };
        let page = latched.write(&change_guard)?;
        page.remove_dead(|version| pool.transactions.is_visible_to_all(version));
        let sparse = super::is_sparse(page);
        drop(latched);
        return if sparse { tree.merge(pool, &change_guard, key) } else { Ok(()) };
    }
}
