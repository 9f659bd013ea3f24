//! Runs in a process of their own: to measure the memory of one engine alone, or to end without
//! closing the database.
//!
//! The child is this program again, called as `bench child TASK`; its answer is the last line of
//! its standard output.

use std::env;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::trial::Trial;
use super::{larger, recovery};

/// What a child does.
#[derive(Debug, Serialize, Deserialize)]
pub enum Task {
    /// One engine's run of the larger-than-cache preset.
    Larger(Trial),
    /// Writes a log tail of that length in bytes and ends without closing.
    WriteTail(Trial, u64),
    /// Opens the database, timed.
    OpenTimed(Trial, recovery::Passes),
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

/// What a child runs.
pub fn run(task: &str) -> Result<()> {
    let answer = match serde_json::from_str(task)? {
        Task::Larger(trial) => serde_json::to_string(&larger::measure(&trial)?)?,
        Task::WriteTail(trial, bytes) => {
            let (passes, instance) = recovery::write_tail(&trial, bytes)?;
            println!("{}", serde_json::to_string(&passes)?);
            // As if the process had crashed: nothing is closed or flushed.
            std::mem::forget(instance);
            std::process::exit(0);
        }
        Task::OpenTimed(trial, passes) => {
            serde_json::to_string(&recovery::open_timed(&trial, &passes)?)?
        }
    };
    println!("{answer}");
    Ok(())
}
