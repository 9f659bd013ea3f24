//! Checks of the code: its layers, its size, its names, and where it is unsafe.

mod layers;
mod names;
mod seam;
mod sizes;
mod structure;
mod unsafety;
