//! Groups and windows: GROUP BY, aggregates and window functions.

pub(super) mod aggregates;
pub(super) mod grouped_expressions;
pub(super) mod grouping_sets;
pub(super) mod levels;
pub(super) mod made_aggregates;
mod ordered_sets;
mod rows_of_groups;
pub(super) mod window_frames;
pub(super) mod windows;
