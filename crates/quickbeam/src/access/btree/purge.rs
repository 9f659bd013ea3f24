//! Purging: removes tombstones that no snapshot needs.

use super::Tree;
use crate::buffer::Pool;
use crate::error::Result;

/// Removes dead records from the leaf for `key`, and joins it with a neighbour when little is left.
pub fn purge_leaf(pool: &Pool, lane: usize, tree: Tree, key: &[u8]) -> Result<()> {
    let pass = pool.enter(lane);
    loop {
        let leaf = tree.leaf(pool, key)?;
        if !leaf.page.has_tombstones() && leaf.validate() {
            return Ok(());
        }
        let Some(latched) = leaf.upgrade() else { continue };
        let page = latched.write(&pass)?;
        page.remove_dead(|version| pool.registry.is_visible_to_all(version));
        let sparse = super::is_sparse(page);
        drop(latched);
        return if sparse { tree.merge(pool, &pass, key) } else { Ok(()) };
    }
}
