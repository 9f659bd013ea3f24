//! The parts of temporary files that undo entries use. No model has files.

use crate::engine::error::Result;

/// A temporary file, of which there is none.
pub enum TemporaryFile {}

impl TemporaryFile {
    pub fn write_at(&self, _: &[u8], _: u64) -> Result<()> {
        match *self {}
    }

    pub fn read_at(&self, _: &mut [u8], _: u64) -> Result<()> {
        match *self {}
    }
}

/// Creates temporary files. The models have none.
pub enum TemporaryFiles {}

impl TemporaryFiles {
    pub fn create(&self) -> Result<TemporaryFile> {
        match *self {}
    }
}
