//! Who a client is: access rules, passwords, certificates, users of the operating system.
//!
//! Above: the start of a connection. Below: the wire, SCRAM, the rules, the users.
//!
//! - AUTHENTICATION-1: a client learns whether it failed, not whether the user exists.

pub mod rules;
pub mod scram;
pub mod users;

use std::io;

use bytes::{Buf, Bytes};
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::startup::Authentication;

use quickbeam_sql::LoginRole;

use self::rules::{AccessRules, Method, Origin};
use self::scram::{Exchange, MECHANISM, MECHANISM_PLUS, ScramError, ScramVerifier};
use self::users::Users;
use crate::connection::tls::{Tls, common_name};
use crate::monitor::now;
use crate::protocol::wire::Wire;

/// Returns random bytes of the operating system.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}

/// Who may connect to a server, and how connections are encrypted.
///
/// ```
/// use quickbeam_server::{Access, ScramVerifier, Users};
///
/// let mut users = Users::new();
/// users.insert("anna", ScramVerifier::of_password("secret")?);
/// let access = Access::default().users(users);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Access {
    users: Users,
    rules: Option<AccessRules>,
    tls: Option<Tls>,
}

impl Access {
    /// Sets the users. Default: none.
    #[must_use]
    pub fn users(mut self, users: Users) -> Access {
        self.users = users;
        self
    }

    /// Sets the access rules. Default: [`AccessRules::require_password`] with users,
    /// [`AccessRules::trust_this_machine`] without.
    #[must_use]
    pub fn rules(mut self, rules: AccessRules) -> Access {
        self.rules = Some(rules);
        self
    }

    /// Sets the certificate and key for encrypted connections. Default: none can be encrypted.
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Access {
        self.tls = Some(tls);
        self
    }

    pub(crate) fn certificate(&self) -> Option<&Tls> {
        self.tls.as_ref()
    }

    pub(crate) fn effective_rules(&self) -> AccessRules {
        let default = || match self.users.is_empty() {
            true => AccessRules::trust_this_machine(),
            false => AccessRules::require_password(),
        };
        self.rules.clone().unwrap_or_else(default)
    }
}

/// Why a connection is refused: an SQLSTATE and a message for the client.
pub struct Refusal(pub &'static str, pub String);

impl Refusal {
    fn not_authorized(message: String) -> Refusal {
        Refusal("28000", message)
    }
}

/// Finds out whether the client is the user that it names. An error is one of the socket.
pub fn authenticate(
    wire: &mut Wire,
    access: &Access,
    user: &str,
    role: Option<&LoginRole>,
    database: &str,
) -> io::Result<Result<(), Refusal>> {
    let proved = prove(wire, access, user, role, database)?;
    Ok(proved.and_then(|()| role.map_or(Ok(()), |role| check_role(user, role))))
}

/// Checks that a role may have a session.
fn check_role(user: &str, role: &LoginRole) -> Result<(), Refusal> {
    if !role.may_log_in {
        let message = format!("role \"{user}\" is not permitted to log in");
        return Err(Refusal::not_authorized(message));
    }
    if !role.may_connect {
        let message = "permission denied for database \"quickbeam\"".to_owned();
        return Err(Refusal("42501", message));
    }
    Ok(())
}

fn prove(
    wire: &mut Wire,
    access: &Access,
    user: &str,
    role: Option<&LoginRole>,
    database: &str,
) -> io::Result<Result<(), Refusal>> {
    if wire.socket()?.is_of_owner() {
        return Ok(Ok(()));
    }
    let (address, is_encrypted) = (wire.socket()?.address()?, wire.tls().is_some());
    let origin = Origin { address, is_encrypted };
    let Some(method) = access.effective_rules().method(origin, database, user) else {
        let host = address.map_or_else(|| "[local]".to_owned(), |address| address.to_string());
        let encryption = if is_encrypted { "TLS" } else { "no encryption" };
        return Ok(Err(Refusal::not_authorized(format!(
            "no access rule for host \"{host}\", user \"{user}\", database \"{database}\", {encryption}"
        ))));
    };
    let is_user = match method {
        Method::Trust => true,
        Method::Reject => {
            let message = format!("an access rule rejects user \"{user}\" from this host");
            return Ok(Err(Refusal::not_authorized(message)));
        }
        Method::Peer => wire.socket()?.peer_user()?.as_deref() == Some(user),
        Method::Certificate => wire.tls().and_then(common_name).as_deref() == Some(user),
        Method::Scram => return check_password(wire, access, user, role),
    };
    if is_user {
        return Ok(Ok(()));
    }
    let method = if method == Method::Peer { "peer" } else { "certificate" };
    let message = format!("{method} authentication failed for user \"{user}\"");
    Ok(Err(Refusal::not_authorized(message)))
}

fn protocol_violation(message: impl Into<String>) -> Refusal {
    Refusal("08P01", message.into())
}

/// Returns the verifier of a role's password, unless the password has expired.
fn verifier_of(role: &LoginRole) -> Option<ScramVerifier> {
    if role.password_expires.is_some_and(|end| end <= now()) {
        return None;
    }
    role.verifier.as_deref()?.parse().ok()
}

/// Runs the SCRAM exchange.
fn check_password(
    wire: &mut Wire,
    access: &Access,
    user: &str,
    role: Option<&LoginRole>,
) -> io::Result<Result<(), Refusal>> {
    let known = access.users.verifier(user).cloned().or_else(|| role.and_then(verifier_of));
    let is_known = known.is_some();
    let verifier = known.unwrap_or_else(|| ScramVerifier::mock(&access.users.secret(), user));
    let channel = match (wire.tls(), &access.tls) {
        (Some(_), Some(tls)) => tls.end_point(),
        _ => None,
    };
    let mut mechanisms = vec![MECHANISM.to_owned()];
    if channel.is_some() {
        mechanisms.insert(0, MECHANISM_PLUS.to_owned());
    }
    send(wire, Authentication::SASL(mechanisms))?;
    let Some(body) = read_response(wire)? else {
        return Ok(Err(protocol_violation("expected SASL response")));
    };
    let Some((mechanism, message)) = initial_response(body) else {
        return Ok(Err(protocol_violation("malformed SASL response")));
    };
    let is_bound = match mechanism.as_slice() {
        it if it == MECHANISM.as_bytes() => false,
        it if it == MECHANISM_PLUS.as_bytes() && channel.is_some() => true,
        _ => return Ok(Err(protocol_violation("client selected an invalid SASL mechanism"))),
    };
    let (exchange, answer) = match Exchange::begin(verifier, &message, is_bound, channel) {
        Ok(begun) => begun,
        Err(error) => return Ok(Err(refusal(&error, user))),
    };
    send(wire, Authentication::SASLContinue(answer.into()))?;
    let Some(message) = read_response(wire)? else {
        return Ok(Err(protocol_violation("expected SASL response")));
    };
    match exchange.finish(&message) {
        Ok(answer) if is_known => {
            send(wire, Authentication::SASLFinal(answer.into()))?;
            Ok(Ok(()))
        }
        Ok(_) => Ok(Err(refusal(&ScramError::WrongPassword, user))),
        Err(error) => Ok(Err(refusal(&error, user))),
    }
}

fn refusal(error: &ScramError, user: &str) -> Refusal {
    match error {
        ScramError::Malformed(what) => {
            protocol_violation(format!("malformed SCRAM message: {what}"))
        }
        ScramError::WrongPassword => {
            Refusal("28P01", format!("password authentication failed for user \"{user}\""))
        }
    }
}

fn send(wire: &mut Wire, message: Authentication) -> io::Result<()> {
    wire.send(&PgWireBackendMessage::Authentication(message))
}

/// Reads the client's response; `None` if it sends another message or leaves.
fn read_response(wire: &mut Wire) -> io::Result<Option<Bytes>> {
    let frame = wire.read_frame()?;
    Ok(frame.filter(|frame| frame.kind == b'p').map(|frame| frame.body))
}

/// Takes a first response apart: the mechanism and the message.
fn initial_response(mut body: Bytes) -> Option<(Vec<u8>, Bytes)> {
    let end = body.iter().position(|byte| *byte == 0)?;
    let mechanism = body.split_to(end).to_vec();
    body.advance(1);
    let length = body.first_chunk().map(|bytes| i32::from_be_bytes(*bytes))?;
    body.advance(4);
    (usize::try_from(length) == Ok(body.len())).then_some((mechanism, body))
}
