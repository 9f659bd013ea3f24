//! What is kept: after a crash, after opening again, and what verification finds of damage.

mod collations;
mod crash;
mod reopen;
mod spilling;
mod verify;
