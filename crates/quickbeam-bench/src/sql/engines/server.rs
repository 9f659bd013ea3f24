//! A private PostgreSQL server: made, started and stopped by the benchmark.
//!
//! It refuses to run as root; then it gets the system user that its package makes. It ends with the
//! benchmark even when that is killed.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};

/// Where the server's programs may be, besides where `QUICKBEAM_BENCH_POSTGRESQL` says.
const PLACES: [&str; 2] = ["/usr/lib/postgresql/15/bin", "/usr/local/pgsql/bin"];
const VARIABLE: &str = "QUICKBEAM_BENCH_POSTGRESQL";
/// Whom the package makes for the server.
const USER: &str = "postgres";

/// The directory of the server's programs.
fn programs() -> Result<PathBuf> {
    let named = std::env::var_os(VARIABLE).map(PathBuf::from);
    named
        .into_iter()
        .chain(PLACES.map(PathBuf::from))
        .find(|place| place.join("initdb").exists() && place.join("postgres").exists())
        .ok_or_else(|| {
            anyhow!(
                "PostgreSQL's server is not installed (Debian package postgresql-15; or name the \
                 directory of its programs in {VARIABLE})"
            )
        })
}

/// The server's release, as in `15.18`.
pub fn version() -> Result<String> {
    let output = Command::new(programs()?.join("postgres")).arg("--version").output()?;
    let text = String::from_utf8(output.stdout)?;
    Ok(text.split_whitespace().nth(2).context("postgres --version")?.to_owned())
}

/// A running server.
pub struct Server {
    child: Option<Child>,
    log: PathBuf,
    /// Where the socket is: its path must be short.
    socket: PathBuf,
    /// Where the data is, if that is not below the directory given.
    elsewhere: Option<PathBuf>,
}

/// User and group of the server when this process is root's.
fn other_user() -> Result<Option<(u32, u32)>> {
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

fn own(directory: &Path, user: Option<(u32, u32)>) -> Result<()> {
    fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    if let Some((user, group)) = user {
        chown(directory, Some(user), Some(group))
            .with_context(|| directory.display().to_string())?;
    }
    Ok(())
}

/// A program of the server, as the right user, ended when this process ends.
fn command(program: &Path, user: Option<(u32, u32)>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "INT"]);
    if let Some((user, group)) = user {
        let (user, group) = (user.to_string(), group.to_string());
        command.args(["--reuid", &user, "--regid", &group, "--clear-groups"]);
    }
    command.arg(program).stdin(Stdio::null()).env_remove("PGDATA");
    command
}

impl Server {
    /// Makes a database cluster below `directory` and starts a server on it.
    pub fn start(directory: &Path, settings: &[String]) -> Result<Server> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let user = other_user()?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let socket = std::env::temp_dir().join(format!("quickbeam-pg-{}-{number}", process::id()));
        own(&socket, user)?;
        let elsewhere = match user.is_some() && !is_open(directory)? {
            true => Some(socket.join("elsewhere")),
            false => None,
        };
        let parent = elsewhere.as_deref().unwrap_or(directory);
        own(parent, user)?;
        // The server's programs do not run in this directory.
        let data = fs::canonicalize(parent)?.join("data");
        let mut server = Server { child: None, log: socket.join("log"), socket, elsewhere };
        let programs = programs()?;
        if !data.join("PG_VERSION").exists() {
            own(&data, user)?;
            let made = command(&programs.join("initdb"), user)
                .arg("-D")
                .arg(&data)
                .args(["-U", "bench", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C"])
                .current_dir(&server.socket)
                .output()
                .context("start initdb")?;
            ensure!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        }
        let log = File::create(&server.log)?;
        let mut postgres = command(&programs.join("postgres"), user);
        postgres.arg("-D").arg(&data).arg("-k").arg(&server.socket);
        postgres.args(["-c", "listen_addresses="]);
        settings.iter().for_each(|setting| {
            postgres.arg("-c").arg(setting);
        });
        postgres.current_dir(&server.socket).stdout(log.try_clone()?).stderr(log);
        server.child = Some(postgres.spawn().context("start postgres")?);
        Ok(server)
    }

    /// How to connect to it.
    pub fn connection_string(&self) -> String {
        format!("host={} user=bench dbname=postgres", self.socket.display())
    }

    /// Waits until it answers.
    pub fn wait(&self, answers: impl Fn() -> Result<()>) -> Result<()> {
        let mut last = Ok(());
        for _ in 0..600 {
            last = answers();
            if last.is_ok() {
                return last;
            }
            thread::sleep(Duration::from_millis(50));
        }
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        last.with_context(|| format!("the server does not answer; its log: {log}"))
    }

    /// Stops it cleanly.
    pub fn stop(mut self) -> Result<()> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        // SIGINT: connections are ended, everything is written. The program itself is what
        // `setpriv` has become.
        let signalled = Command::new("kill").args(["-INT", &child.id().to_string()]).status()?;
        ensure!(signalled.success(), "the server could not be told to stop");
        let status = child.wait()?;
        if !status.success() {
            bail!("the server ended with {status}");
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // After an error its content is not needed; a directory that remains wastes space only.
        if let Some(mut child) = self.child.take() {
            Command::new("kill").args(["-INT", &child.id().to_string()]).status().ok();
            child.wait().ok();
        }
        if let Some(elsewhere) = &self.elsewhere {
            fs::remove_dir_all(elsewhere).ok();
        }
        fs::remove_dir_all(&self.socket).ok();
    }
}
