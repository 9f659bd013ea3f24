//! Checks of the code: its layers, its invariants, its size, its names, and where it is unsafe.

mod booleans;
mod invariants;
mod layers;
mod names;
mod seam;
mod sizes;
mod structure;
mod unsafety;
