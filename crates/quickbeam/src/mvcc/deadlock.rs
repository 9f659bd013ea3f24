//! The wait graph, which detects deadlocks between transactions.
//!
//! Above: the transaction table. Below: nothing. A transaction waits for one other at a time, so
//! the waits form chains. A chain that returns to its start is a deadlock, found when its last edge
//! would be added. The transaction that would close the cycle fails.

use std::collections::HashMap;
use std::time::Duration;

use crate::sync::locks::Mutex;

use super::TransactionId;
use crate::error::{Error, Result};

/// A wait for the end of another transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The transaction that is waited for.
    pub other: TransactionId,
    /// When the wait began, by the VFS's clock.
    pub began: Duration,
}

/// The edges of all waits.
#[derive(Default)]
pub struct WaitGraph(Mutex<HashMap<TransactionId, Wait>>);

/// An edge; dropping it removes it from the graph.
pub struct Edge<'a> {
    graph: &'a WaitGraph,
    from: Option<TransactionId>,
}

impl WaitGraph {
    /// Adds an edge. Fails if it closes a cycle. A transaction that has written nothing (`None`)
    /// cannot be waited for and needs no edge.
    pub fn add(
        &self,
        from: Option<TransactionId>,
        to: TransactionId,
        now: Duration,
    ) -> Result<Edge<'_>> {
        if let Some(from) = from {
            let mut edges = self.0.lock();
            let mut at = to;
            while let Some(next) = edges.get(&at) {
                if next.other == from {
                    return Err(Error::Deadlock);
                }
                at = next.other;
            }
            edges.insert(from, Wait { other: to, began: now });
        }
        Ok(Edge { graph: self, from })
    }

    /// Returns the waits of now, by the transaction that waits.
    pub fn all(&self) -> HashMap<TransactionId, Wait> {
        self.0.lock().clone()
    }
}

impl Drop for Edge<'_> {
    fn drop(&mut self) {
        if let Some(from) = self.from {
            self.graph.0.lock().remove(&from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycle_is_refused_and_edges_are_removed() {
        let graph = WaitGraph::default();
        let add = |from, to| graph.add(Some(from), to, Duration::ZERO);
        let one = add(1, 2).unwrap();
        let _two = add(2, 3).unwrap();
        assert!(matches!(add(3, 1), Err(Error::Deadlock)));
        drop(one);
        assert!(add(3, 1).is_ok());
    }
}
