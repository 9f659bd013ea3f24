//! Commands on an environment that another process has open: they reach it by the socket in its
//! directory.
//!
//! A dump needs one moment of all databases, so it reads a backup that the other process writes.

use std::path::{Path, PathBuf};

use anyhow::Context;
use quickbeam_server::Client;
use serde_json::Value;

/// Connects to the process that has the directory open, if that is why it cannot be opened here.
/// Returns the error otherwise, or if that process does not serve the environment.
pub fn connect(directory: &Path, error: anyhow::Error) -> anyhow::Result<Client> {
    let is_served = error.chain().any(|cause| {
        let cause = cause.downcast_ref::<quickbeam::Error>();
        matches!(cause, Some(quickbeam::Error::Locked(locked)) if locked.socket.is_some())
    });
    if !is_served {
        return Err(error);
    }
    Client::connect(directory).map_err(|connecting| {
        error.context(format!(
            "cannot connect to the server in {}: {connecting}",
            directory.display()
        ))
    })
}

/// Runs a command of the server and returns its report.
pub fn report(client: &mut Client, command: &str, argument: &str) -> anyhow::Result<Value> {
    let text =
        client.control(command, argument).with_context(|| format!("cannot run {command}"))?;
    serde_json::from_str(&text).context("the server's report is no JSON")
}

/// Lets the server write a backup. Returns its report.
pub fn backup(client: &mut Client, into: &Path) -> anyhow::Result<Value> {
    let absolute = std::path::absolute(into)?;
    let text = absolute.to_str().context("the name of the directory is not UTF-8")?;
    report(client, "backup", text)
}

/// A copy of a served environment, removed at the end.
pub struct TemporaryCopy(PathBuf);

impl TemporaryCopy {
    /// Lets the server write the copy.
    pub fn of(client: &mut Client) -> anyhow::Result<TemporaryCopy> {
        let name = format!("quickbeam-{}-{}", std::process::id(), client.session_id());
        let copy = TemporaryCopy(std::env::temp_dir().join(name));
        backup(client, &copy.0)?;
        Ok(copy)
    }

    /// Returns its directory.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryCopy {
    fn drop(&mut self) {
        // A copy that cannot be removed is in the directory of temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
