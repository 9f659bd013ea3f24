//! From a parsed statement to a program: the context of compilation, and the statistics that plans
//! depend on.

pub(crate) mod create_as;
pub(crate) mod prepare;
pub(crate) mod statistics;
