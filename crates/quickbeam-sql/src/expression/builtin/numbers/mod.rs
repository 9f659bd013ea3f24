//! Functions of integers, exact numbers and floating-point numbers.

pub(super) mod bits;
pub(super) mod double;
pub(super) mod integer;
pub(super) mod numeric;
pub(super) mod trigonometry;
