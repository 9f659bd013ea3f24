//! Rewrites of a bound query before it is planned. They change no answer.

pub(super) mod date_comparisons;
pub(super) mod equalities;
pub(super) mod needed_answers;
pub(super) mod pull_up;
mod push_down;
pub(super) mod simplify;
