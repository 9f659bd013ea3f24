//! A private `quickbeam serve`, in a process of its own.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use quickbeam::Durability;

use super::{Server, ServerPlace, Transport, command};

const VARIABLE: &str = "QUICKBEAM_BENCH_PROGRAM";

/// The program to run: this one, unless the variable names another. Programs that embed the
/// benchmarks have no `serve`.
pub fn program() -> Result<PathBuf> {
    if let Some(named) = env::var_os(VARIABLE) {
        return Ok(PathBuf::from(named));
    }
    let this = env::current_exe().context("find this program")?;
    if this.file_name().is_none_or(|name| name != "quickbeam") {
        bail!("this is not the program quickbeam: name it in {VARIABLE}");
    }
    Ok(this)
}

/// Starts a server on the environment in `directory`, or on one in memory.
pub fn start(
    directory: Option<&Path>,
    durability: Durability,
    cache_bytes: u64,
    sessions: usize,
    transport: Transport,
) -> Result<Server> {
    let place = ServerPlace::new(None)?;
    let mut serve = command(&program()?, None);
    serve.arg("serve");
    match directory {
        Some(directory) => serve.arg(std::path::absolute(directory)?).arg("--create"),
        None => serve.arg("--memory"),
    };
    serve.args(["--durability", durability.to_string().as_str()]);
    serve.args(["--cache-size", &cache_bytes.to_string()]);
    serve.args(["--max-connections", &sessions.to_string()]);
    serve.arg("--socket-directory").arg(&place.folder);
    serve.args(["--port", &place.port.to_string()]);
    if transport == Transport::Tcp {
        serve.args(["--listen", &format!("127.0.0.1:{}", place.port)]);
    }
    serve.arg("--access-rules").arg(place.rules());
    Server::spawn(place, "quickbeam", serve)
}
