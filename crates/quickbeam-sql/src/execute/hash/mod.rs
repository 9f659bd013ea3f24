//! Hash tables of joins and groups, which row and vectorized execution share.

pub(crate) mod int_table;
pub(crate) mod join_index;
pub(crate) mod key_table;
pub(crate) mod packed_table;
pub(crate) mod pair_table;
