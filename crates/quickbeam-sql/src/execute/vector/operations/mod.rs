//! Operations on columns: arithmetic of integers and NUMERIC, and calls of functions.

pub mod calls;
pub mod decimal;
pub mod integers;
