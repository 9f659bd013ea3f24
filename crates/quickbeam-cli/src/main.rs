//! The `quickbeam` program: inspects environments, dumps and loads data, executes SQL, and runs the
//! benchmarks.
//!
//! One file per subcommand. Results go to standard output, messages and errors to standard error.
//! An error names the failed operation, its location and a remedy.
//!
//! Exit codes: 0 done, 1 the operation failed or found a problem, 2 the command line is wrong, 3 a
//! benchmark ran without an engine that it compares with.

#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used))]

mod commands;
mod dump;
mod output;
mod place;
mod report;
#[cfg(feature = "sql")]
mod serve;
#[cfg(feature = "sql")]
mod served;
#[cfg(feature = "sql")]
mod sql;
#[cfg(feature = "sql")]
mod tables;
#[cfg(feature = "sql")]
mod user_line;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use quickbeam_bench::BenchOutcome;

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  the operation failed, a check found a problem, or a statement failed
  2  the command line is wrong
  3  a benchmark ran without an engine that it compares with
  141  the reader of standard output closed the pipe";

/// The shell's exit code of a program that SIGPIPE ended. The output is incomplete, so 0 would be
/// wrong, but the reader closed the pipe on purpose, so there is no message.
const BROKEN_PIPE: u8 = 141;

/// The exit code of a comparison that lacks an engine. What was measured is right and reported.
const PEER_MISSING: u8 = 3;

/// Quickbeam, an embedded transactional database.
#[derive(Parser)]
#[command(name = "quickbeam", version, propagate_version = true, after_help = EXIT_CODES)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Create an empty environment in a directory
    Create(crate::commands::create::CreateArguments),
    /// List the names of the databases
    List(crate::commands::list::ListArguments),
    /// Show statistics
    Stat(crate::commands::stat::StatArguments),
    /// Check pages, key order, free space and the log; tables, indexes and constraints
    Verify(crate::commands::verify::VerifyArguments),
    /// Copy an environment into a new directory as a whole, or check such a copy
    Backup(crate::commands::backup::BackupArguments),
    /// Write a checkpoint
    Checkpoint(crate::commands::checkpoint::CheckpointArguments),
    /// Give free space back: merge sparse pages, move pages from the file's end, cut the file
    Compact(crate::commands::compact::CompactArguments),
    /// Copy the readable data of a damaged environment or data store into a new one
    Recover(crate::commands::recover::RecoverArguments),
    /// Write databases and tables as text, in the format of Berkeley DB's db_dump
    Dump(dump::DumpArguments),
    /// Load databases and tables from a dump, atomically
    Load(crate::dump::load::LoadArguments),
    /// Execute SQL statements from a terminal, from files or from a pipe
    #[cfg(feature = "sql")]
    Sql(sql::SqlArguments),
    /// Serve SQL to PostgreSQL clients
    #[cfg(feature = "sql")]
    Serve(Box<serve::Arguments>),
    /// Write a line for the file of users of `serve`; the password comes from standard input
    #[cfg(feature = "sql")]
    UserLine(user_line::UserLineArguments),
    /// Run the benchmarks on Quickbeam and on other engines
    Bench(quickbeam_bench::BenchArguments),
}

/// The outcome of a command that ran to its end.
#[derive(Debug, PartialEq)]
enum Outcome {
    Done,
    ProblemFound,
    PeerMissing,
}

fn main() -> ExitCode {
    let words = quickbeam_bench::with_long_options(std::env::args_os());
    match run(CommandLine::parse_from(words).command) {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::ProblemFound) => ExitCode::from(1),
        Ok(Outcome::PeerMissing) => ExitCode::from(PEER_MISSING),
        Err(error) if is_broken_pipe(&error) => ExitCode::from(BROKEN_PIPE),
        Err(error) => {
            // A failure to write standard error cannot be reported.
            let _ = writeln!(std::io::stderr(), "quickbeam: {}", output::chain(&error));
            ExitCode::from(1)
        }
    }
}

/// Returns true if the reader of standard output closed the pipe.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let cause = cause.downcast_ref::<io::Error>();
        cause.is_some_and(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
    })
}

fn run(command: Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Create(arguments) => crate::commands::create::run(&arguments),
        Command::List(arguments) => crate::commands::list::run(&arguments),
        Command::Stat(arguments) => crate::commands::stat::run(&arguments),
        Command::Verify(arguments) => crate::commands::verify::run(&arguments),
        Command::Backup(arguments) => crate::commands::backup::run(&arguments),
        Command::Checkpoint(arguments) => crate::commands::checkpoint::run(&arguments),
        Command::Compact(arguments) => crate::commands::compact::run(&arguments),
        Command::Recover(arguments) => crate::commands::recover::run(&arguments),
        Command::Dump(arguments) => dump::run(&arguments),
        Command::Load(arguments) => crate::dump::load::run(&arguments),
        #[cfg(feature = "sql")]
        Command::Sql(arguments) => sql::run(&arguments),
        #[cfg(feature = "sql")]
        Command::Serve(arguments) => serve::run(&arguments),
        #[cfg(feature = "sql")]
        Command::UserLine(arguments) => user_line::run(&arguments),
        Command::Bench(arguments) => Ok(match quickbeam_bench::run(arguments)? {
            BenchOutcome::Whole => Outcome::Done,
            BenchOutcome::PeerMissing => Outcome::PeerMissing,
        }),
    }
}
