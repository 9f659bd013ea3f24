//! Functions of texts and byte strings: formats, regular expressions and encodings.

pub(super) mod bytes;
pub(super) mod conversions;
pub(super) mod element_patterns;
pub(super) mod encoding;
pub(super) mod format;
pub(super) mod like;
pub(super) mod normalization;
pub(super) mod regular;
pub(super) mod regular_arrays;
pub(super) mod similar;
pub(super) mod text;
