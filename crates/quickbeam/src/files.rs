//! Names of the files in an environment's directory. `docs/format.md` describes their content.

/// Name of the data file in an environment's directory.
pub const DATA_FILE: &str = "data.quickbeam";
/// Name of the lock file.
pub const LOCK_FILE: &str = "lock.quickbeam";
/// Name of the folder of log segments.
pub const LOG_DIRECTORY: &str = "log";
