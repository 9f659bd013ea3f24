//! `quickbeam sql`: SQL statements, from a person, from files or from a pipe.
//!
//! [`shell`] executes statements and reports; [`script`] reads them from files and pipes, [`editor`] from a person; [`splitter`] finds where they end, [`words`] what they are.
//! [`command`] has what begins with a backslash, [`describe`] what tables and other objects look like, [`show`] how answers are written, [`copy`] what COPY reads and writes.

mod command;
mod copy;
mod describe;
mod editor;
mod script;
mod shell;
mod show;
mod splitter;
mod words;

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use anyhow::Context;
use quickbeam::Options;
use quickbeam_sql::Database;

use crate::{Outcome, place};
use shell::{Flow, Shell};
use show::Format;

const INPUT: &str = "\
Statements come from -c and -f; without these from a person, if standard input is a terminal, and from standard input otherwise. A statement ends
with a semicolon. `\\?` lists the commands that are not SQL.";

/// Which environment, and what to do there.
#[derive(clap::Args)]
#[command(after_help = INPUT)]
pub struct Arguments {
    /// Directory of the environment
    #[arg(required_unless_present = "memory", conflicts_with = "memory")]
    directory: Option<PathBuf>,
    /// An environment in memory, gone at the end
    #[arg(long)]
    memory: bool,
    /// Make the environment if there is none
    #[arg(long)]
    create: bool,
    /// Read only, also where nothing can be written: read-only media, a full device. Nothing in the directory is changed
    #[arg(long, conflicts_with_all = ["create", "memory"])]
    read_only: bool,
    /// Execute these statements, then end (may be given several times)
    #[arg(short, long = "command", value_name = "STATEMENTS")]
    commands: Vec<OsString>,
    /// Execute the statements of this file, then end; after those of -c (may be given several times; - is standard input)
    #[arg(short, long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// How answers are written
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Go on after an error; the exit code tells that there was one
    #[arg(long)]
    keep_going: bool,
    /// Write answers only, not what each statement did
    #[arg(short, long)]
    quiet: bool,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let (database, name) = open(arguments)?;
    let environment = database.environment().clone();
    let is_script = !arguments.commands.is_empty() || !arguments.files.is_empty();
    let is_interactive = !is_script && std::io::stdin().is_terminal();
    let mut shell = Shell::new(&database, arguments.format, is_interactive)?;
    shell.keeps_going = arguments.keep_going;
    shell.is_quiet = arguments.quiet;
    let ended =
        if is_interactive { editor::run(&mut shell) } else { scripts(&mut shell, arguments) };
    let rolled_back = shell.end_transaction();
    let failed = shell.has_failed();
    drop(shell);
    drop(database);
    let closed = environment.close().with_context(|| format!("cannot close {name}"));
    ended?;
    rolled_back?;
    closed?;
    Ok(if failed && !is_interactive { Outcome::ProblemFound } else { Outcome::Done })
}

fn open(arguments: &Arguments) -> anyhow::Result<(Database, String)> {
    let Some(directory) = arguments.directory.as_ref().filter(|_| !arguments.memory) else {
        return Ok((Database::memory(Options::default())?, "the environment in memory".to_owned()));
    };
    let environment = if arguments.create {
        let options = Options { create: true, ..Options::default() };
        quickbeam::Environment::open(directory, options)
            .with_context(|| format!("cannot open {}", directory.display()))?
    } else if arguments.read_only {
        place::open_environment_read_only(directory)?
    } else {
        place::open_environment(directory)?
    };
    let database = Database::over(&environment)
        .with_context(|| format!("cannot open the tables of {}", directory.display()))?;
    Ok((database, directory.display().to_string()))
}

fn scripts(shell: &mut Shell, arguments: &Arguments) -> anyhow::Result<()> {
    for text in &arguments.commands {
        if script::text(shell, text)? != Flow::On {
            return Ok(());
        }
    }
    for file in &arguments.files {
        let flow = if file.as_os_str() == "-" {
            script::standard(shell)?
        } else {
            script::file(shell, file)?
        };
        if flow != Flow::On {
            return Ok(());
        }
    }
    if arguments.commands.is_empty() && arguments.files.is_empty() {
        script::standard(shell)?;
    }
    Ok(())
}

/// Says something on standard error; nowhere is left to report that this cannot be written.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
