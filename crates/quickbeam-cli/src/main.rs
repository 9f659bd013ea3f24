//! The `quickbeam` program: looks into environments, moves data in and out, executes SQL, runs the benchmarks.
//!
//! One file per subcommand. Results go to standard output; everything said besides goes to
//! standard error, and so do errors: what failed, where, and how to go on.
//!
//! Exit codes: 0 done, 1 the operation failed or found a problem, 2 the command line is wrong.

mod create;
mod dump;
mod dump_format;
mod list;
mod load;
mod output;
mod place;
mod recover;
mod report;
#[cfg(feature = "sql")]
mod sql;
mod stat;
#[cfg(feature = "sql")]
mod tables;
mod verify;

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  the operation failed, or `verify` or `recover` found a problem, or a statement failed
  2  the command line is wrong";

/// Quickbeam, an embedded transactional database.
#[derive(Parser)]
#[command(name = "quickbeam", version, after_help = EXIT_CODES)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make a new, empty environment in a directory
    Create(create::Arguments),
    /// Print the names of the databases
    List(list::Arguments),
    /// Print statistics
    Stat(stat::Arguments),
    /// Check every page, the order of keys, free space and the log; tables, indexes and constraints
    Verify(verify::Arguments),
    /// Bring what is readable of a damaged environment or data store into a new one
    Recover(recover::Arguments),
    /// Write databases as text, in the format of Berkeley DB's db_dump, and tables
    Dump(dump::Arguments),
    /// Read databases and tables from such text, all of it or nothing
    Load(load::Arguments),
    /// Execute SQL statements: from a person, from files or from a pipe
    #[cfg(feature = "sql")]
    Sql(sql::Arguments),
    /// Run the benchmarks, on Quickbeam and on other engines
    Bench(quickbeam_bench::BenchArguments),
}

/// How a command that did not fail ended.
#[derive(Debug, PartialEq)]
enum Outcome {
    Done,
    ProblemFound,
}

fn main() -> ExitCode {
    let words = quickbeam_bench::with_long_options(std::env::args_os());
    match run(CommandLine::parse_from(words).command) {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::ProblemFound) => ExitCode::from(1),
        Err(error) => {
            // Nowhere is left to report that standard error cannot be written.
            let _ = writeln!(std::io::stderr(), "quickbeam: {error:#}");
            ExitCode::from(1)
        }
    }
}

fn run(command: Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Create(arguments) => create::run(&arguments),
        Command::List(arguments) => list::run(&arguments),
        Command::Stat(arguments) => stat::run(&arguments),
        Command::Verify(arguments) => verify::run(&arguments),
        Command::Recover(arguments) => recover::run(&arguments),
        Command::Dump(arguments) => dump::run(&arguments),
        Command::Load(arguments) => load::run(&arguments),
        #[cfg(feature = "sql")]
        Command::Sql(arguments) => sql::run(&arguments),
        Command::Bench(arguments) => quickbeam_bench::run(arguments).map(|()| Outcome::Done),
    }
}
