//! Finite automata of regular languages.

pub(super) mod alphabet;
pub(super) mod dfa;
pub(super) mod nfa;
