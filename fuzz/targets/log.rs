//! libFuzzer's entry point for one target: see `crates/quickbeam-fuzz/src/lib.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quickbeam_fuzz::targets::log(bytes));
