//! The start of a connection: encryption requests, cancel requests, the start-up packet.
//!
//! - STARTUP-1: a client that has not sent its start-up packet within [`TIMEOUT`] is disconnected.

use std::io;
use std::time::Duration;

use pgwire::messages::response::{GssEncResponse, SslResponse};
use pgwire::messages::startup::{Authentication, BackendKeyData, ParameterStatus, SecretKey};
use pgwire::messages::{
    PgWireBackendMessage, PgWireFrontendMessage, ProtocolVersion, SslNegotiationMetaMessage,
};

use crate::failure::fatal;
use crate::wire::Wire;

/// How long a client may take until it has sent its start-up packet.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The version of PostgreSQL whose protocol and answers the server follows.
const SERVER_VERSION: &str = "15.0 (Quickbeam)";

/// What a client opened the connection for.
pub enum Opening {
    /// A session of that user in that database.
    Session {
        /// The user's name.
        user: String,
    },
    /// To cancel the running statement of another connection.
    Cancel {
        /// The connection's number.
        number: i32,
        /// The key that its client was given.
        key: SecretKey,
    },
    /// Nothing: the client closed the connection, or was refused.
    Nothing,
}

/// Reads messages until the client has said what it wants.
pub fn read_opening(wire: &mut Wire) -> io::Result<Opening> {
    wire.stream().set_read_timeout(Some(TIMEOUT))?;
    loop {
        let Some(message) = wire.read()? else { return Ok(Opening::Nothing) };
        match message {
            PgWireFrontendMessage::SslNegotiation(SslNegotiationMetaMessage::PostgresSsl(_)) => {
                wire.send(&PgWireBackendMessage::SslResponse(SslResponse::Refuse))?;
                wire.flush()?;
            }
            PgWireFrontendMessage::SslNegotiation(SslNegotiationMetaMessage::PostgresGss(_)) => {
                wire.send(&PgWireBackendMessage::GssEncResponse(GssEncResponse::Refuse))?;
                wire.flush()?;
            }
            PgWireFrontendMessage::SslNegotiation(_) => wire.context.awaiting_frontend_ssl = false,
            PgWireFrontendMessage::CancelRequest(request) => {
                return Ok(Opening::Cancel { number: request.pid, key: request.secret_key });
            }
            PgWireFrontendMessage::Startup(startup) => {
                wire.context.awaiting_frontend_startup = false;
                if startup.protocol_number_major != 3 {
                    refuse(wire, "0A000", "unsupported frontend protocol: the server speaks 3.0")?;
                    return Ok(Opening::Nothing);
                }
                wire.context.protocol_version = ProtocolVersion::PROTOCOL3_0;
                let Some(user) = startup.parameters.get("user").cloned() else {
                    refuse(wire, "28000", "no user name in the start-up packet")?;
                    return Ok(Opening::Nothing);
                };
                if startup.protocol_number_minor > 0 {
                    negotiate_down(wire, &startup.parameters)?;
                }
                wire.stream().set_read_timeout(None)?;
                return Ok(Opening::Session { user });
            }
            _ => {
                refuse(wire, "08P01", "a start-up packet was expected")?;
                return Ok(Opening::Nothing);
            }
        }
    }
}

/// Tells a client of a later minor version that the server speaks 3.0.
fn negotiate_down(
    wire: &mut Wire,
    parameters: &std::collections::BTreeMap<String, String>,
) -> io::Result<()> {
    let options = parameters.keys().filter(|name| name.starts_with("_pq_.")).cloned().collect();
    let message = pgwire::messages::startup::NegotiateProtocolVersion::new(0, options);
    wire.send(&PgWireBackendMessage::NegotiateProtocolVersion(message))
}

/// Reports an error that ends the connection.
pub fn refuse(wire: &mut Wire, code: &str, message: &str) -> io::Result<()> {
    wire.send(&fatal(code, message))?;
    wire.flush()
}

/// Sends the messages that a client receives before its first statement.
pub fn welcome(wire: &mut Wire, user: &str, number: i32, key: i32) -> io::Result<()> {
    wire.send(&PgWireBackendMessage::Authentication(Authentication::Ok))?;
    let settings = [
        ("server_version", SERVER_VERSION),
        ("server_encoding", "UTF8"),
        ("client_encoding", "UTF8"),
        ("DateStyle", "ISO, MDY"),
        ("IntervalStyle", "postgres"),
        ("TimeZone", "UTC"),
        ("integer_datetimes", "on"),
        ("standard_conforming_strings", "on"),
        ("is_superuser", "on"),
        ("session_authorization", user),
        ("in_hot_standby", "off"),
        ("default_transaction_read_only", "off"),
    ];
    for (name, value) in settings {
        let status = ParameterStatus::new(name.to_owned(), value.to_owned());
        wire.send(&PgWireBackendMessage::ParameterStatus(status))?;
    }
    let key = BackendKeyData::new(number, SecretKey::I32(key));
    wire.send(&PgWireBackendMessage::BackendKeyData(key))
}
