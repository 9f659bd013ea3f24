//! The start of a connection: encryption, cancel requests, the start-up packet, authentication.
//!
//! Above: the session. Below: the wire, TLS and authentication.
//!
//! - STARTUP-1: a client that is not authenticated before the deadline is disconnected, whatever it
//!   sends.
//! - STARTUP-2: before authentication no packet and no message is longer than [`MAX_PACKET`].

use std::io;
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes};
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::startup::{
    Authentication, BackendKeyData, NegotiateProtocolVersion, ParameterStatus, SecretKey,
};

use super::tls::names_protocol;
use quickbeam_sql::{LoginRole, SqlDatabase};

use crate::authentication::{Access, Refusal, authenticate};
use crate::protocol::failure::fatal;
use crate::protocol::frontend::{StartupPacket, decode_startup};
use crate::protocol::wire::Wire;

/// The longest packet, and the longest message of the authentication.
pub const MAX_PACKET: usize = 10_000;

/// The newest minor version of the protocol 3 that the server speaks.
const NEWEST_MINOR: u16 = 2;

/// The first byte of a TLS handshake.
const TLS_HANDSHAKE: u8 = 0x16;

/// A client that was authenticated.
pub struct AdmittedClient {
    /// The user's name.
    pub user: String,
    /// The role that it is, if there is one of that name.
    pub role: Option<LoginRole>,
    /// The settings that it asked for, in their order.
    pub settings: Vec<(String, String)>,
    /// Bytes of its cancel key.
    pub key_bytes: usize,
}

/// What a client opened the connection for.
pub enum Opening {
    /// A session.
    Session(AdmittedClient),
    /// To cancel the running statement of another connection: its number and its key.
    Cancel(i32, Bytes),
    /// Nothing: the user was refused.
    Refused(String, Refusal),
    /// Nothing: the client closed the connection, or sent what cannot be read.
    Nothing,
}

/// Reads messages until the client has said what it wants and has proved who it is.
pub fn read_opening(
    wire: &mut Wire,
    access: &Access,
    database: &SqlDatabase,
    timeout: Duration,
) -> io::Result<Opening> {
    wire.set_deadline(Instant::now().checked_add(timeout))?;
    let opening = read_until_open(wire, access, database)?;
    wire.set_deadline(None)?;
    Ok(opening)
}

fn read_until_open(wire: &mut Wire, access: &Access, roles: &SqlDatabase) -> io::Result<Opening> {
    if wire.socket()?.peek()? == Some(TLS_HANDSHAKE) {
        let Some(tls) = access.certificate() else { return Ok(Opening::Nothing) };
        wire.start_tls(tls.connect().map_err(io::Error::other)?)?;
        if !wire.tls().is_some_and(names_protocol) {
            return Ok(Opening::Nothing);
        }
    }
    let mut has_asked = (false, false);
    loop {
        let Some(packet) = wire.read_packet(MAX_PACKET)? else { return Ok(Opening::Nothing) };
        let packet = match decode_startup(packet) {
            Ok(packet) => packet,
            Err(malformed) => {
                refuse(wire, malformed.code, &malformed.message)?;
                return Ok(Opening::Nothing);
            }
        };
        match packet {
            StartupPacket::Tls if !std::mem::replace(&mut has_asked.0, true) => {
                match access.certificate().filter(|_| wire.tls().is_none()) {
                    Some(tls) => {
                        wire.output.put_u8(b'S');
                        wire.start_tls(tls.connect().map_err(io::Error::other)?)?;
                    }
                    None => wire.output.put_u8(b'N'),
                }
            }
            StartupPacket::Gss if !std::mem::replace(&mut has_asked.1, true) => {
                wire.output.put_u8(b'N');
            }
            StartupPacket::Tls | StartupPacket::Gss => {
                refuse(wire, "08P01", "encryption was asked for twice")?;
                return Ok(Opening::Nothing);
            }
            StartupPacket::Cancel(number, key) => return Ok(Opening::Cancel(number, key)),
            StartupPacket::Session { major, minor, settings } => {
                let named = settings.iter().find(|(name, _)| name == "user");
                let user = named.map_or_else(String::new, |(_, user)| user.clone());
                return match open_session(wire, access, roles, (major, minor), settings)? {
                    Ok(client) => Ok(Opening::Session(client)),
                    Err(refusal) => {
                        // The client may have gone; the audit log has the refusal all the same.
                        let _ = refuse(wire, refusal.0, &refusal.1);
                        Ok(Opening::Refused(user, refusal))
                    }
                };
            }
        }
    }
}

fn open_session(
    wire: &mut Wire,
    access: &Access,
    roles: &SqlDatabase,
    (major, minor): (u16, u16),
    settings: Vec<(String, String)>,
) -> io::Result<Result<AdmittedClient, Refusal>> {
    if major != 3 {
        let message = format!("unsupported frontend protocol {major}.{minor}: server supports 3.0");
        return Ok(Err(Refusal("0A000", message)));
    }
    let (options, settings): (Vec<_>, Vec<_>) =
        settings.into_iter().partition(|(name, _)| name.starts_with("_pq_."));
    if minor > NEWEST_MINOR || !options.is_empty() {
        let names = options.into_iter().map(|(name, _)| name).collect();
        let version = (3 << 16) | i32::from(minor.min(NEWEST_MINOR));
        let message = NegotiateProtocolVersion::new(version, names);
        wire.send(&PgWireBackendMessage::NegotiateProtocolVersion(message))?;
    }
    let mut user = None;
    let mut database = None;
    let mut rest = Vec::new();
    for (name, value) in settings {
        match name.as_str() {
            "user" => user = Some(value),
            "database" => database = Some(value),
            "replication" if !matches!(value.as_str(), "false" | "off" | "no" | "0") => {
                let message = "replication connections are not supported".to_owned();
                return Ok(Err(Refusal("0A000", message)));
            }
            "replication" => {}
            "options" => rest.extend(command_line_settings(&value)),
            _ => rest.push((name, value)),
        }
    }
    let Some(user) = user.filter(|user| !user.is_empty()) else {
        let message = "no PostgreSQL user name specified in startup packet".to_owned();
        return Ok(Err(Refusal("28000", message)));
    };
    let database = database.filter(|name| !name.is_empty()).unwrap_or_else(|| user.clone());
    // Who may read the files has all rights, whatever it calls itself.
    let role = match wire.socket()?.is_of_owner() {
        true => None,
        false => roles.role(&user).map_err(io::Error::other)?,
    };
    if let Err(refusal) = authenticate(wire, access, &user, role.as_ref(), &database)? {
        return Ok(Err(refusal));
    }
    let key_bytes = if minor >= 2 { 32 } else { 4 };
    Ok(Ok(AdmittedClient { user, role, settings: rest, key_bytes }))
}

/// Reads settings from the option `options`, which is written as the arguments of a server:
/// `-c name=value` or `--name=value`. A backslash takes the next character as it is.
fn command_line_settings(text: &str) -> Vec<(String, String)> {
    let mut words = vec![String::new()];
    let mut characters = text.chars();
    while let Some(next) = characters.next() {
        let last = words.last_mut();
        match (next, last) {
            (' ' | '\t', Some(last)) if last.is_empty() => {}
            (' ' | '\t', _) => words.push(String::new()),
            ('\\', Some(last)) => last.extend(characters.next()),
            (other, Some(last)) => last.push(other),
            (_, None) => {}
        }
    }
    let mut words = words.into_iter();
    let mut settings = Vec::new();
    while let Some(word) = words.next() {
        let assignment = match word.as_str() {
            "-c" => words.next(),
            _ => word.strip_prefix("--").or(word.strip_prefix("-c")).map(str::to_owned),
        };
        if let Some((name, value)) = assignment.as_deref().and_then(|it| it.split_once('=')) {
            settings.push((name.replace('-', "_"), value.to_owned()));
        }
    }
    settings
}

/// Reports an error that ends the connection.
pub fn refuse(wire: &mut Wire, code: &str, message: &str) -> io::Result<()> {
    wire.send(&fatal(code, message))?;
    wire.flush()
}

/// Sends the messages that a client receives before its first statement.
pub fn welcome(
    wire: &mut Wire,
    settings: &[(&str, String)],
    number: i32,
    key: &[u8],
) -> io::Result<()> {
    wire.send(&PgWireBackendMessage::Authentication(Authentication::Ok))?;
    for (name, value) in settings {
        send_setting(wire, name, value)?;
    }
    let key = SecretKey::Bytes(Bytes::copy_from_slice(key));
    wire.send(&PgWireBackendMessage::BackendKeyData(BackendKeyData::new(number, key)))
}

/// Tells the client the value of a setting.
pub fn send_setting(wire: &mut Wire, name: &str, value: &str) -> io::Result<()> {
    let status = ParameterStatus::new(name.to_owned(), value.to_owned());
    wire.send(&PgWireBackendMessage::ParameterStatus(status))
}

#[cfg(test)]
mod tests {
    use super::command_line_settings;

    #[test]
    fn settings_are_read_as_arguments() {
        let read = |text: &str| -> Vec<String> {
            command_line_settings(text)
                .iter()
                .map(|(name, value)| format!("{name}:{value}"))
                .collect()
        };
        assert_eq!(read("-c a=b  --work-mem=1MB -cd=e"), ["a:b", "work_mem:1MB", "d:e"]);
        assert_eq!(read(r"-c application_name=two\ words\\"), [r"application_name:two words\"]);
        assert_eq!(read("-c"), [""; 0]);
        assert_eq!(read("  x -c y "), [""; 0]);
    }
}
