//! Runs in a process of their own: to measure the memory of one engine alone, or to end without
//! closing the database.
//!
//! The child is this program again, called as `bench child TASK`; its answer is the last line of
//! its standard output.

use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::recovery;
use super::trial::Trial;

/// What a child does.
#[derive(Debug, Serialize, Deserialize)]
pub enum Task {
    /// One engine's run of the larger-than-cache preset.
    Larger(Trial),
    /// Writes a log tail of that length in bytes and ends without closing.
    WriteTail(Trial, u64),
    /// Opens the database, timed.
    OpenTimed(Trial, recovery::Passes),
    /// Random keys and YCSB, each step for that number of seconds; a line for each result.
    Ycsb(Trial, u64),
}

/// Runs `task` in a child and returns its answer.
pub fn spawn<T: DeserializeOwned>(task: &Task) -> Result<T> {
    let program = env::current_exe().context("find this program")?;
    let output = Command::new(program)
        .args(["bench", "child", &serde_json::to_string(task)?])
        .stderr(Stdio::inherit())
        .output()
        .context("start a child process")?;
    if !output.status.success() {
        bail!("the child process ended with {}", output.status);
    }
    let text = String::from_utf8(output.stdout)?;
    let answer = text.lines().last().context("the child process did not answer")?;
    serde_json::from_str(answer).context("the child process did not answer as expected")
}

/// Runs `task` in a child that answers line by line. A child that says nothing for `limit` is
/// killed.
pub fn stream<T: DeserializeOwned>(
    task: &Task,
    limit: Duration,
    mut take: impl FnMut(T),
) -> Result<()> {
    let mut command = Command::new(env::current_exe().context("find this program")?);
    command.args(["bench", "child", &serde_json::to_string(task)?]);
    read_lines(&mut command, limit, |line| {
        take(serde_json::from_str(line).context("an answer of the child process")?);
        Ok(())
    })
}

/// Runs a program and takes each line that it writes. A program that says nothing for `limit`, or
/// something that cannot be taken, is killed.
pub fn read_lines(
    command: &mut Command,
    limit: Duration,
    mut take: impl FnMut(&str) -> Result<()>,
) -> Result<()> {
    let mut child = command.stdout(Stdio::piped()).spawn().context("start a child process")?;
    let output = child.stdout.take().context("no output of the child process")?;
    let (sender, lines) = mpsc::channel();
    let reader = thread::spawn(move || {
        BufReader::new(output).lines().map_while(Result::ok).try_for_each(|l| sender.send(l).ok())
    });
    let outcome = loop {
        match lines.recv_timeout(limit) {
            Ok(line) => {
                if let Err(error) = take(&line) {
                    break Err(error);
                }
            }
            Err(RecvTimeoutError::Disconnected) => break Ok(()),
            Err(RecvTimeoutError::Timeout) => {
                break Err(anyhow!("a step took longer than {} seconds", limit.as_secs()));
            }
        }
    };
    if outcome.is_err() {
        child.kill().context("end the child process")?;
    }
    let status = child.wait()?;
    drop(lines);
    reader.join().map_err(|_| anyhow!("the reader of a child process failed"))?;
    outcome?;
    ensure!(status.success(), "the child process ended with {status}");
    Ok(())
}
