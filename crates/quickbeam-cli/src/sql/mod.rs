//! `quickbeam sql`: an SQL shell for terminals, script files and pipes.
//!
//! - [`shell`] executes statements and reports their results.
//! - [`script`] reads statements from files and pipes, [`editor`] from a terminal.
//! - [`splitter`] finds the end of a statement, [`words`] its keywords.
//! - [`foreign`] translates the statements of other programs' dumps, [`sqlite_tables`] table
//!   definitions of sqlite3.
//! - [`command`] implements the backslash commands, [`describe`] the `\d` family, [`syntax`] the
//!   texts of `\h`, [`variables`] those of `\set`.
//! - [`session`] runs statements in this process, or in the one that has the environment open.
//! - [`show`] writes results as [`settings`] says, [`copy`] connects COPY to files and pipes.

mod command;
mod copy;
mod describe;
mod input;
mod session;
mod settings;
mod shell;
mod show;
mod syntax;
mod variables;

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use anyhow::Context;
use quickbeam_sql::SqlDatabase;
use quickbeam_sql::catalog::BOOTSTRAP_NAME;

use crate::{Outcome, place};
use session::Session;
use shell::{Flow, Shell};
use show::Format;

const INPUT: &str = "\
Statements come from -c and -f; without these from a person, if standard input is a terminal, and from standard input otherwise. A statement ends
with a semicolon. `\\?` lists the commands that are not SQL.";

/// The arguments of `quickbeam sql`.
#[derive(clap::Args)]
#[command(after_help = INPUT)]
pub struct SqlArguments {
    /// Directory of the environment
    #[arg(required_unless_present = "memory", conflicts_with = "memory")]
    directory: Option<PathBuf>,
    /// Use an environment in memory, which is discarded at the end
    #[arg(long)]
    memory: bool,
    /// Create the environment if it does not exist
    #[arg(long)]
    create: bool,
    /// Open the environment read-only, without writing to its directory. This works on read-only
    /// media and on a full device
    #[arg(long, conflicts_with_all = ["create", "memory"])]
    read_only: bool,
    /// Execute these statements, then exit (may be repeated)
    #[arg(short, long = "command", value_name = "STATEMENTS")]
    commands: Vec<OsString>,
    /// Execute the statements of this file after those of -c, then exit (may be repeated; - reads
    /// standard input)
    #[arg(short, long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Output format of results
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Continue after an error; the exit code is still 1
    #[arg(long)]
    keep_going: bool,
    /// Read dumps of pg_dump and sqlite3: skip statements without a counterpart, such as SET and
    /// PRAGMA, report and count them, and continue after errors
    #[arg(long)]
    lenient: bool,
    /// Set a variable, as \set does (may be repeated)
    #[arg(short = 'v', long = "set", value_name = "NAME=VALUE", value_parser = variable)]
    variables: Vec<(String, String)>,
    /// Write results only, no command tags
    #[arg(short, long)]
    quiet: bool,
    /// Page size in bytes of an environment that --create or --memory creates
    #[arg(long, value_name = "BYTES")]
    page_size: Option<usize>,
    #[command(flatten)]
    opening: place::Opening,
}

pub fn run(arguments: &SqlArguments) -> anyhow::Result<Outcome> {
    let (session, name) = open(arguments)?;
    let environment = match &session {
        Session::Direct(connection) => Some(connection.database().environment().clone()),
        Session::Remote(_) => None,
    };
    let is_script = !arguments.commands.is_empty() || !arguments.files.is_empty();
    let is_interactive = !is_script && std::io::stdin().is_terminal();
    let mut shell = Shell::new(session, &name, arguments.format, is_interactive)?;
    shell.keeps_going = arguments.keep_going || arguments.lenient;
    shell.is_lenient = arguments.lenient;
    shell.is_quiet = arguments.quiet;
    for (name, value) in &arguments.variables {
        shell.variables.set(name, value.clone());
    }
    let ended = if is_interactive {
        input::editor::run(&mut shell)
    } else {
        scripts(&mut shell, arguments)
    };
    shell.report_skipped();
    let rolled_back = shell.end_transaction();
    let failed = shell.has_failed();
    drop(shell);
    let closed = environment.map_or(Ok(()), quickbeam::Environment::close);
    let closed = closed.with_context(|| format!("cannot close {name}"));
    ended?;
    rolled_back?;
    closed?;
    Ok(if failed && !is_interactive { Outcome::ProblemFound } else { Outcome::Done })
}

/// Opens the environment, or connects to the process that has it open.
fn open(arguments: &SqlArguments) -> anyhow::Result<(Session, String)> {
    let mut options = arguments.opening.options()?;
    options.page_size = arguments.page_size.unwrap_or(options.page_size);
    let Some(directory) = arguments.directory.as_ref().filter(|_| !arguments.memory) else {
        let database = SqlDatabase::open_in_memory(options.create(true))?;
        let name = "the environment in memory".to_owned();
        return Ok((Session::Direct(Box::new(database.connect_as(BOOTSTRAP_NAME)?)), name));
    };
    let name = directory.display().to_string();
    let opened = if arguments.create {
        quickbeam::Environment::open(directory, options.create(true))
            .with_context(|| format!("cannot open {name}"))
    } else if arguments.read_only {
        place::open_environment_read_only(directory, &arguments.opening)
    } else {
        place::open_environment(directory, &arguments.opening)
    };
    let environment = match opened {
        Ok(environment) => environment,
        Err(error) => {
            let client = crate::served::connect(directory, error)?;
            return Ok((Session::Remote(client.into()), name));
        }
    };
    let database = SqlDatabase::attach(&environment)
        .with_context(|| format!("cannot open the tables of {name}"))?;
    Ok((Session::Direct(Box::new(database.connect_as(BOOTSTRAP_NAME)?)), name))
}

/// Parses a variable of the command line.
fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if name.chars().all(|c| c.is_alphanumeric() || c == '_') => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("a variable is NAME=VALUE".to_owned()),
    }
}

fn scripts(shell: &mut Shell, arguments: &SqlArguments) -> anyhow::Result<()> {
    for text in &arguments.commands {
        if input::script::text(shell, text)? != Flow::On {
            return Ok(());
        }
    }
    for file in &arguments.files {
        let flow = if file.as_os_str() == "-" {
            input::script::standard(shell)?
        } else {
            input::script::file(shell, file)?
        };
        if flow != Flow::On {
            return Ok(());
        }
    }
    if arguments.commands.is_empty() && arguments.files.is_empty() {
        input::script::standard(shell)?;
    }
    Ok(())
}

/// Writes a message to standard error. A failure to do so cannot be reported and is ignored.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
