//! Shared by the program's tests: runs the program and checks its output.

#![allow(dead_code)]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// Returns a command that runs the program with piped input and output.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quickbeam"));
    command.args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the command with this input and waits for its end.
pub fn finish(mut command: Command, input: impl AsRef<[u8]>) -> Output {
    let mut program = command.spawn().expect("the program starts");
    // A program that exits before reading its input closes the pipe, which is no failure.
    let _ = program.stdin.take().expect("it has an input").write_all(input.as_ref());
    program.wait_with_output().expect("the program ends")
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is UTF-8")
}

/// Returns standard output of a run that must succeed with empty standard error.
#[track_caller]
pub fn done(output: &Output) -> String {
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    text(&output.stdout)
}

pub fn path(path: &Path) -> String {
    path.to_str().expect("a path of this test is UTF-8").to_owned()
}

pub fn folder() -> TempDir {
    TempDir::new().expect("there is room for a temporary folder")
}
