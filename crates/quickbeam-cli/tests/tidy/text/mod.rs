//! Checks of what is written: documents, comments, licences.

pub mod documents;
mod forbidden;
mod licences;
mod spdx;
mod words;
