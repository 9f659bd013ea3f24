//! Which conditions use an index that is more than one on columns.

mod computed;
mod inverted;
