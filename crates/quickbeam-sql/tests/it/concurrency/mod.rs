//! Several connections and threads at once: constraints, isolation and changes of definitions.

mod computed_indexes;
mod constraints;
mod merges;
mod tables;
mod transactions;
