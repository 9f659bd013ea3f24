//! Plans of queries: joins, subqueries, groups, windows and the order of rows.

pub(super) mod join;
pub(super) mod select;
pub(super) mod semi_join;
pub(super) mod subquery;
pub(super) mod tail;
pub(super) mod windows;
