//! Operations on columns: arithmetic of integers and NUMERIC, and calls of functions. Also tests of
//! rows before they are put into columns.

pub mod calls;
pub mod decimal;
pub mod integers;
pub mod row_test;
