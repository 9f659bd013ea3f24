//! The settings of a server, from the command line, the environment variables and a file.
//!
//! - SERVE-1: an option of the command line goes before a variable, and a variable before the file.
//! - SERVE-2: no error shows a password, a key or a verifier.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow};
use quickbeam_server::{Access, AccessRules, AuditLevel, LogOutput, ServerOptions, Tls, Users};

/// What a file of settings, the variables and the command line say; `None` where they say nothing.
#[derive(clap::Args, Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Listen on this address by TCP; port 0 takes a free one [default: 127.0.0.1:5432 unless
    /// --socket-directory is given]
    #[arg(long, value_name = "ADDRESS", env = "QUICKBEAM_LISTEN")]
    listen: Option<SocketAddr>,
    /// Make a UNIX socket in this directory
    #[arg(long, value_name = "DIRECTORY", env = "QUICKBEAM_SOCKET_DIRECTORY")]
    socket_directory: Option<PathBuf>,
    /// Port in the name of the UNIX socket [default: 5432]
    #[arg(long, env = "QUICKBEAM_PORT")]
    port: Option<u16>,
    /// Users and the verifiers of their passwords, as in pgbouncer's auth_file
    #[arg(long, value_name = "FILE", env = "QUICKBEAM_USERS")]
    users: Option<PathBuf>,
    /// Access rules, as in PostgreSQL's pg_hba.conf [default: a password if there are users; else
    /// connections from this machine are trusted]
    #[arg(long, value_name = "FILE", env = "QUICKBEAM_ACCESS_RULES")]
    access_rules: Option<PathBuf>,
    /// Certificate for TLS with its chain, in PEM form
    #[arg(long, value_name = "FILE", env = "QUICKBEAM_TLS_CERTIFICATE")]
    tls_certificate: Option<PathBuf>,
    /// Private key of the certificate, in PEM form
    #[arg(long, value_name = "FILE", env = "QUICKBEAM_TLS_KEY")]
    tls_key: Option<PathBuf>,
    /// Certificates of the authorities whose client certificates are accepted
    #[arg(long, value_name = "FILE", env = "QUICKBEAM_TLS_CLIENT_AUTHORITIES")]
    tls_client_authorities: Option<PathBuf>,
    /// Sessions at a time [default: 100]
    #[arg(long, value_name = "N", env = "QUICKBEAM_MAX_CONNECTIONS")]
    max_connections: Option<usize>,
    /// Sessions of one user at a time [default: no limit of its own]
    #[arg(long, value_name = "N", env = "QUICKBEAM_MAX_CONNECTIONS_PER_USER")]
    max_connections_per_user: Option<usize>,
    /// Seconds until a client has to be authenticated [default: 60]
    #[arg(long, value_name = "SECONDS", env = "QUICKBEAM_AUTHENTICATION_TIMEOUT")]
    authentication_timeout: Option<u64>,
    /// Seconds that running statements may take after SIGTERM [default: 30]
    #[arg(long, value_name = "SECONDS", env = "QUICKBEAM_DRAIN_TIMEOUT")]
    drain_timeout: Option<u64>,
    /// Longest message of a client, in bytes [default: 1073741823]
    #[arg(long, value_name = "BYTES", env = "QUICKBEAM_MAX_MESSAGE_BYTES")]
    max_message_bytes: Option<usize>,
    /// Let clients write backups into folders of this directory, by
    /// `SELECT quickbeam_backup('NAME')`
    #[arg(long, value_name = "DIRECTORY", env = "QUICKBEAM_BACKUP_DIRECTORY")]
    backup_directory: Option<PathBuf>,
    /// Answer HTTP on this address: /metrics for Prometheus, and on a loopback address a status
    /// page
    #[arg(long, value_name = "ADDRESS", env = "QUICKBEAM_MONITOR")]
    monitor: Option<SocketAddr>,
    /// Log statements that take at least this long to standard error, with their plans
    #[arg(long, value_name = "MILLISECONDS", env = "QUICKBEAM_LOG_SLOW_STATEMENTS")]
    log_slow_statements: Option<u64>,
    /// Log the begin and the end of sessions to standard error
    #[arg(long, env = "QUICKBEAM_LOG_CONNECTIONS")]
    #[serde(default)]
    log_connections: bool,
    /// Append who connected and which statements were executed to the audit file: ddl has
    /// definitions, roles and rights, write changes of rows, too [default: none]
    #[arg(long, value_name = "LEVEL", env = "QUICKBEAM_AUDIT_LOG",
        value_parser = ["none", "ddl", "write", "all"])]
    audit_log: Option<String>,
    /// File of the audit log; SIGHUP opens it again
    #[arg(long, value_name = "FILE", env = "QUICKBEAM_AUDIT_FILE")]
    audit_file: Option<PathBuf>,
    /// Count the executions of as many statements, for quickbeam_stat_statements [default: 0]
    #[arg(long, value_name = "N", env = "QUICKBEAM_TRACK_STATEMENTS")]
    track_statements: Option<usize>,
    /// Compact the environment in the background, examining and writing up to this many bytes a
    /// second [default: no background compaction]
    #[arg(long, value_name = "BYTES", env = "QUICKBEAM_COMPACTION_RATE")]
    compaction_rate: Option<u64>,
    /// The cache of the environment, in a file of settings only: a number or a text such as "64M".
    #[arg(skip)]
    cache_size: Option<toml::Value>,
    /// The durability of commits, in a file of settings only.
    #[arg(skip)]
    durability: Option<String>,
}

impl Settings {
    /// Reads a file of settings.
    pub fn read(path: &Path) -> anyhow::Result<Settings> {
        let shown = path.display();
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
        toml::from_str(&text).map_err(|error| anyhow!("{shown}: {error}"))
    }

    /// Returns the cache size and the durability of a file of settings, as texts.
    pub fn opening(&self) -> (Option<String>, Option<String>) {
        let cache_size = self.cache_size.as_ref().map(|value| match value {
            toml::Value::String(text) => text.clone(),
            toml::Value::Integer(bytes) => bytes.to_string(),
            // Refused as a size, like any other text.
            other => format!("{other:?}"),
        });
        (cache_size, self.durability.clone())
    }

    /// Fills what is missing from a file of settings (SERVE-1).
    pub fn with_file(self, path: &Path) -> anyhow::Result<Settings> {
        let file = Settings::read(path)?;
        Ok(Settings {
            listen: self.listen.or(file.listen),
            socket_directory: self.socket_directory.or(file.socket_directory),
            port: self.port.or(file.port),
            users: self.users.or(file.users),
            access_rules: self.access_rules.or(file.access_rules),
            tls_certificate: self.tls_certificate.or(file.tls_certificate),
            tls_key: self.tls_key.or(file.tls_key),
            tls_client_authorities: self.tls_client_authorities.or(file.tls_client_authorities),
            cache_size: file.cache_size,
            durability: file.durability,
            max_connections: self.max_connections.or(file.max_connections),
            max_connections_per_user: self
                .max_connections_per_user
                .or(file.max_connections_per_user),
            authentication_timeout: self.authentication_timeout.or(file.authentication_timeout),
            drain_timeout: self.drain_timeout.or(file.drain_timeout),
            max_message_bytes: self.max_message_bytes.or(file.max_message_bytes),
            backup_directory: self.backup_directory.or(file.backup_directory),
            monitor: self.monitor.or(file.monitor),
            log_slow_statements: self.log_slow_statements.or(file.log_slow_statements),
            log_connections: self.log_connections || file.log_connections,
            audit_log: self.audit_log.or(file.audit_log),
            audit_file: self.audit_file.or(file.audit_file),
            track_statements: self.track_statements.or(file.track_statements),
            compaction_rate: self.compaction_rate.or(file.compaction_rate),
        })
    }

    /// Returns the bytes a second of background compaction.
    pub fn compaction_rate(&self) -> Option<u64> {
        self.compaction_rate
    }

    /// Returns the options of the server, with the access as of now.
    pub fn options(&self) -> anyhow::Result<ServerOptions> {
        let mut options = ServerOptions::new().access(self.access()?);
        let listen = match (self.listen, &self.socket_directory) {
            (None, None) => Some(SocketAddr::from(([127, 0, 0, 1], 5432))),
            (listen, _) => listen,
        };
        if let Some(address) = listen {
            options = options.listen(address);
        }
        if let Some(directory) = &self.socket_directory {
            options = options.socket_directory(directory);
        }
        options = options.port(self.socket_port());
        if let Some(count) = self.max_connections {
            options = options.max_connections(count);
        }
        if let Some(count) = self.max_connections_per_user {
            options = options.max_connections_per_user(count);
        }
        if let Some(seconds) = self.authentication_timeout {
            options = options.authentication_timeout(Duration::from_secs(seconds));
        }
        if let Some(directory) = &self.backup_directory {
            options = options.backup_directory(directory);
        }
        if let Some(address) = self.monitor {
            options = options.monitor(address);
        }
        options = options.log(LogOutput::new(std::io::stderr()));
        options = options.log_connections(self.log_connections);
        if let Some(milliseconds) = self.log_slow_statements {
            options = options.log_slow_statements(Duration::from_millis(milliseconds));
        }
        options = self.with_audit_log(options)?;
        if let Some(count) = self.track_statements {
            options = options.track_statements(count);
        }
        if let Some(bytes) = self.max_message_bytes {
            options = options.max_message_bytes(bytes);
        }
        Ok(options)
    }

    fn with_audit_log(&self, options: ServerOptions) -> anyhow::Result<ServerOptions> {
        let level = self.audit_log.as_deref().map(str::parse).transpose();
        let level: AuditLevel =
            level.map_err(|error: String| anyhow!("audit_log: {error}"))?.unwrap_or_default();
        match &self.audit_file {
            Some(file) => Ok(options.audit_log(level, file)),
            None if level == AuditLevel::None => Ok(options),
            None => anyhow::bail!("--audit-log takes --audit-file"),
        }
    }

    /// Returns how long running statements may go on when the server is to end.
    pub fn drain_timeout(&self) -> Duration {
        Duration::from_secs(self.drain_timeout.unwrap_or(30))
    }

    /// Returns the path of the UNIX socket.
    pub fn socket(&self) -> Option<PathBuf> {
        let directory = self.socket_directory.as_ref()?;
        Some(directory.join(format!(".s.PGSQL.{}", self.socket_port())))
    }

    fn socket_port(&self) -> u16 {
        self.port.unwrap_or(5432)
    }

    /// Reads users, access rules and certificates from their files.
    pub fn access(&self) -> anyhow::Result<Access> {
        let mut access = Access::default();
        if let Some(path) = &self.users {
            let users = Users::parse(&read_text(path)?);
            access = access.users(users.map_err(|error| anyhow!("{}: {error}", path.display()))?);
        }
        if let Some(path) = &self.access_rules {
            let rules = AccessRules::parse(&read_text(path)?);
            access = access.rules(rules.map_err(|error| anyhow!("{}: {error}", path.display()))?);
        }
        match (&self.tls_certificate, &self.tls_key) {
            (None, None) if self.tls_client_authorities.is_none() => {}
            (Some(certificate), Some(key)) => {
                let authorities = self.tls_client_authorities.as_ref();
                let authorities = authorities.map(|path| read(path)).transpose()?;
                let tls = Tls::from_pem(&read(certificate)?, &read(key)?, authorities.as_deref());
                access = access.tls(tls.map_err(|error| anyhow!("TLS: {error}"))?);
            }
            _ => anyhow::bail!("TLS takes both --tls-certificate and --tls-key"),
        }
        Ok(access)
    }
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

fn read_text(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}
