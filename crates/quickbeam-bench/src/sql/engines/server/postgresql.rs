//! A private PostgreSQL server. It refuses to run as root; then it gets the system user that its
//! package makes.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow, ensure};

use super::{Account, Server, ServerPlace, TRUSTED_USER, Transport, command, own};

/// Where PostgreSQL's programs may be, unless `QUICKBEAM_BENCH_POSTGRESQL` names the directory.
const PLACES: [&str; 2] = ["/usr/lib/postgresql/15/bin", "/usr/local/pgsql/bin"];
const VARIABLE: &str = "QUICKBEAM_BENCH_POSTGRESQL";
/// Whom the package makes for the server.
const USER: &str = "postgres";

/// The path of one of PostgreSQL's programs.
pub fn program(name: &str) -> Result<PathBuf> {
    let named = std::env::var_os(VARIABLE).map(PathBuf::from);
    let places = named.map_or_else(|| PLACES.map(PathBuf::from).to_vec(), |named| vec![named]);
    let mut programs = places.into_iter().map(|place| place.join(name));
    programs.find(|program| program.exists()).ok_or_else(|| {
        anyhow!(
            "PostgreSQL's program {name} is not installed (Debian package postgresql-15; or name \
             the directory of its programs in {VARIABLE})"
        )
    })
}

/// The server's release, as in `15.18`.
pub fn version() -> Result<String> {
    program("initdb")?;
    let output = Command::new(program("postgres")?).arg("--version").output()?;
    let text = String::from_utf8(output.stdout)?;
    Ok(text.split_whitespace().nth(2).context("postgres --version")?.to_owned())
}

/// User and group of the server when this process is root's.
fn other_user() -> Result<Option<Account>> {
    if fs::metadata("/proc/self")?.uid() != 0 {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd")?;
    let line = users.lines().find(|line| line.split(':').next() == Some(USER));
    let line = line.with_context(|| format!("there is no system user {USER}"))?;
    let field = |n| -> Result<u32> { Ok(line.split(':').nth(n).unwrap_or_default().parse()?) };
    Ok(Some((field(2)?, field(3)?)))
}

/// Whether everybody may pass through to `directory`.
fn is_open(directory: &Path) -> Result<bool> {
    let directory = fs::canonicalize(directory)?;
    for above in directory.ancestors() {
        if fs::metadata(above)?.mode() & 0o001 == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Makes a database cluster below `directory` and starts a server on it. If the server's user may
/// not enter that directory, the data is beside its socket.
pub fn start(directory: &Path, settings: &[String], transport: Transport) -> Result<Server> {
    let account = other_user()?;
    let place = ServerPlace::new(account)?;
    let elsewhere = place.folder.join("elsewhere");
    let parent = if account.is_some() && !is_open(directory)? { &elsewhere } else { directory };
    own(parent, account)?;
    // The server's programs do not run in this directory.
    let data = fs::canonicalize(parent)?.join("data");
    if !data.join("PG_VERSION").exists() {
        own(&data, account)?;
        let made = command(&program("initdb")?, account)
            .arg("-D")
            .arg(&data)
            .args(["-U", TRUSTED_USER, "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C"])
            .current_dir(&place.folder)
            .output()
            .context("start initdb")?;
        ensure!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
    }
    let listen = if transport == Transport::Tcp { "127.0.0.1" } else { "" };
    let mut postgres = command(&program("postgres")?, account);
    postgres.arg("-D").arg(&data).arg("-k").arg(&place.folder);
    postgres.args(["-p", &place.port.to_string()]);
    postgres.args(["-c", &format!("listen_addresses={listen}")]);
    postgres.args(["-c", &format!("hba_file={}", place.rules().display())]);
    settings.iter().for_each(|setting| {
        postgres.arg("-c").arg(setting);
    });
    Server::spawn(place, "postgres", postgres)
}
