//! Access methods: trees, hash databases and data stores, compared with maps.

mod clear_range;
mod compaction;
mod data_store;
mod hash;
mod hash_prefix;
mod latch;
mod leaf_versions;
mod long_values;
mod model;
mod regressions;
