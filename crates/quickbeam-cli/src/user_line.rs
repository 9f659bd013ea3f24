//! `quickbeam user-line`: a line of the file of users, from a name and a password.

use std::io::{BufRead, IsTerminal, Write};

use anyhow::Context;
use quickbeam_server::ScramVerifier;

use crate::Outcome;

/// The arguments of `quickbeam user-line`.
#[derive(clap::Args)]
pub struct UserLineArguments {
    /// Name of the user
    name: String,
}

pub fn run(arguments: &UserLineArguments) -> anyhow::Result<Outcome> {
    let mut input = std::io::stdin().lock();
    if input.is_terminal() {
        write!(std::io::stderr(), "Password (shown as you type; pipe it in to avoid that): ")?;
    }
    let mut password = String::new();
    input.read_line(&mut password).context("cannot read the password")?;
    let password = password.trim_end_matches(['\r', '\n']);
    anyhow::ensure!(!password.is_empty(), "the password is empty");
    let verifier = ScramVerifier::of_password(password).context("cannot make a verifier")?;
    let name = arguments.name.replace('"', "\"\"");
    writeln!(std::io::stdout(), "\"{name}\" \"{verifier}\"")?;
    Ok(Outcome::Done)
}
