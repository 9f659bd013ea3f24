//! Names of the files in an environment's directory. `docs/format.md` describes their content.

/// Name of the data file in an environment's directory.
pub const DATA_FILE: &str = "data.quickbeam";
/// Name of the lock file.
pub const LOCK_FILE: &str = "lock.quickbeam";
/// Name of the folder of log segments.
pub const LOG_DIRECTORY: &str = "log";
/// Name of the UNIX socket on which the process that has the environment open may serve it. It is
/// the one that PostgreSQL's clients look for, so the directory is their host.
pub const SOCKET_FILE: &str = ".s.PGSQL.5432";
