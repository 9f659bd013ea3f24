//! Which conditions use an index that is more than one on columns.

mod collated;
mod computed;
mod inverted;
