//! SCRAM-SHA-256 and SCRAM-SHA-256-PLUS (RFC 5802, RFC 7677), the server's side.
//!
//! Above: the authentication of a connection. Below: hashes and encodings.
//!
//! - SCRAM-1: the exchange with an unknown user is that with a known one up to its last message.
//! - SCRAM-2: proofs are compared in constant time.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The name of the mechanism.
pub const MECHANISM: &str = "SCRAM-SHA-256";
/// The name of the mechanism with channel binding.
pub const MECHANISM_PLUS: &str = "SCRAM-SHA-256-PLUS";

/// The rounds of the password hash in new verifiers, PostgreSQL's default.
const ITERATIONS: u32 = 4096;
/// The most rounds in a verifier: a client computes them at each connection.
const MAX_ITERATIONS: u32 = 10_000_000;
/// Bytes of the salt in new verifiers.
const SALT_BYTES: usize = 16;
/// Random bytes in the server's part of the nonce.
const NONCE_BYTES: usize = 18;
/// The one channel binding of PostgreSQL's protocol, with the comma that ends its header.
const CHANNEL_BINDING: &str = "p=tls-server-end-point,";

type Key = [u8; 32];

fn hmac(key: &[u8], parts: &[&[u8]]) -> Key {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

/// What the server keeps instead of a password: it proves a client's knowledge of the password and
/// does not reveal it. Its text is PostgreSQL's, `SCRAM-SHA-256$4096:salt$stored:server`.
///
/// ```
/// use quickbeam_server::ScramVerifier;
///
/// let verifier = ScramVerifier::of_password("secret")?;
/// assert!(verifier.to_string().starts_with("SCRAM-SHA-256$4096:"));
/// assert_eq!(verifier.to_string().parse(), Ok(verifier));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ScramVerifier {
    iterations: u32,
    salt: Vec<u8>,
    stored_key: Key,
    server_key: Key,
}

impl ScramVerifier {
    /// Makes a verifier of a password, with a random salt.
    ///
    /// # Errors
    /// Those of the operating system's source of randomness.
    pub fn of_password(password: &str) -> std::io::Result<ScramVerifier> {
        let salt = super::random::<SALT_BYTES>()?;
        Ok(ScramVerifier::new(password, &salt, ITERATIONS))
    }

    fn new(password: &str, salt: &[u8], iterations: u32) -> ScramVerifier {
        // As in PostgreSQL, a password that SASLprep forbids is taken as it is.
        let prepared = stringprep::saslprep(password);
        let password = prepared.as_deref().unwrap_or(password);
        let mut salted = Key::default();
        pbkdf2::pbkdf2_hmac::<Sha256>(password.as_bytes(), salt, iterations, &mut salted);
        ScramVerifier {
            iterations,
            salt: salt.to_vec(),
            stored_key: Sha256::digest(hmac(&salted, &[b"Client Key"])).into(),
            server_key: hmac(&salted, &[b"Server Key"]),
        }
    }

    /// Makes a verifier that no password satisfies, the same for each `name` (SCRAM-1).
    pub fn mock(secret: &[u8], name: &str) -> ScramVerifier {
        let salt = hmac(secret, &[b"salt", name.as_bytes()])[..SALT_BYTES].to_vec();
        let stored_key = hmac(secret, &[b"stored", name.as_bytes()]);
        let server_key = hmac(secret, &[b"server", name.as_bytes()]);
        ScramVerifier { iterations: ITERATIONS, salt, stored_key, server_key }
    }

    /// Returns a part of the verifier that only the server knows.
    pub fn secret(&self) -> &[u8] {
        &self.server_key
    }
}

impl fmt::Display for ScramVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [salt, stored, server] =
            [&self.salt[..], &self.stored_key, &self.server_key].map(|bytes| BASE64.encode(bytes));
        write!(f, "{MECHANISM}${}:{salt}${stored}:{server}", self.iterations)
    }
}

impl fmt::Debug for ScramVerifier {
    /// Does not show the keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScramVerifier({} rounds)", self.iterations)
    }
}

/// A text that is no verifier. It does not repeat the text, which may be a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoVerifier;

impl fmt::Display for NoVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a verifier of the form SCRAM-SHA-256$ROUNDS:SALT$STORED:SERVER")
    }
}

impl std::error::Error for NoVerifier {}

impl FromStr for ScramVerifier {
    type Err = NoVerifier;

    fn from_str(text: &str) -> Result<ScramVerifier, NoVerifier> {
        let parse = || {
            let (mechanism, rest) = text.split_once('$')?;
            let (salted, keys) = rest.split_once('$')?;
            let (iterations, salt) = salted.split_once(':')?;
            let (stored, server) = keys.split_once(':')?;
            let iterations: u32 = iterations.parse().ok()?;
            let salt = BASE64.decode(salt).ok()?;
            let key = |text: &str| Key::try_from(BASE64.decode(text).ok()?).ok();
            let is_sound = mechanism == MECHANISM
                && (1..=MAX_ITERATIONS).contains(&iterations)
                && (1..=1024).contains(&salt.len());
            let (stored_key, server_key) = (key(stored)?, key(server)?);
            is_sound.then_some(ScramVerifier { iterations, salt, stored_key, server_key })
        };
        parse().ok_or(NoVerifier)
    }
}

/// Why an exchange failed.
#[derive(Debug, PartialEq, Eq)]
pub enum ScramError {
    /// The client does not follow the protocol.
    Malformed(&'static str),
    /// The client does not know the password.
    WrongPassword,
}

use ScramError::Malformed;

type Step<T> = Result<T, ScramError>;

/// An exchange, after the server's first message.
pub struct Exchange {
    verifier: ScramVerifier,
    /// The header that the client chose, with the data of the channel that it must be bound to.
    binding: Vec<u8>,
    nonce: String,
    client_first: String,
    server_first: String,
}

impl Exchange {
    /// Takes the client's first message and returns the server's. `is_bound` says whether the
    /// client chose [`MECHANISM_PLUS`]; `channel` is the data to bind to, where there is a channel.
    pub fn begin(
        verifier: ScramVerifier,
        message: &[u8],
        is_bound: bool,
        channel: Option<&[u8]>,
    ) -> Step<(Exchange, String)> {
        let nonce = super::random::<NONCE_BYTES>().map_err(|_| Malformed("no randomness"))?;
        Self::begin_with(verifier, message, is_bound, channel, &BASE64.encode(nonce))
    }

    fn begin_with(
        verifier: ScramVerifier,
        message: &[u8],
        is_bound: bool,
        channel: Option<&[u8]>,
        server_nonce: &str,
    ) -> Step<(Exchange, String)> {
        let message = text(message)?;
        let (header, rest) = match message {
            _ if message.starts_with("n,") || message.starts_with("y,") => message.split_at(2),
            _ if message.starts_with(CHANNEL_BINDING) => message.split_at(CHANNEL_BINDING.len()),
            _ if message.starts_with("p=") => return Err(Malformed("unknown channel binding")),
            _ => return Err(Malformed("unexpected start of the first message")),
        };
        if header.starts_with('y') && channel.is_some() {
            // The client could bind to the channel and believes that the server cannot.
            return Err(Malformed("the channel binding was negotiated away"));
        }
        if header.starts_with('p') != is_bound {
            return Err(Malformed("the channel binding does not match the mechanism"));
        }
        // An authorization identity would stand before the comma.
        let client_first = rest
            .strip_prefix(',')
            .ok_or(Malformed("an authorization identity is not supported"))?;
        let mut binding = format!("{header},").into_bytes();
        if is_bound {
            binding.extend_from_slice(channel.ok_or(Malformed("there is no channel to bind to"))?);
        }
        let mut attributes = client_first.split(',');
        if !attributes.next().is_some_and(|name| name.starts_with("n=")) {
            return Err(Malformed("the first message has no user name"));
        }
        let nonce = attributes.next().and_then(|nonce| nonce.strip_prefix("r="));
        let nonce = nonce.filter(|nonce| !nonce.is_empty());
        let nonce = nonce.ok_or(Malformed("the first message has no nonce"))?;
        let nonce = format!("{nonce}{server_nonce}");
        let salt = BASE64.encode(&verifier.salt);
        let server_first = format!("r={nonce},s={salt},i={}", verifier.iterations);
        let client_first = client_first.to_owned();
        let answer = server_first.clone();
        Ok((Exchange { verifier, binding, nonce, client_first, server_first }, answer))
    }

    /// Takes the client's last message. Returns the server's if the client knows the password.
    pub fn finish(self, message: &[u8]) -> Step<String> {
        let message = text(message)?;
        let (without_proof, proof) =
            message.rsplit_once(",p=").ok_or(Malformed("the last message has no proof"))?;
        let proof = BASE64.decode(proof).ok().and_then(|proof| Key::try_from(proof).ok());
        let proof = proof.ok_or(Malformed("the proof is malformed"))?;
        let mut attributes = without_proof.split(',');
        let binding = attributes.next().and_then(|binding| binding.strip_prefix("c="));
        let binding = binding.and_then(|binding| BASE64.decode(binding).ok());
        if binding.as_deref() != Some(&self.binding[..]) {
            return Err(Malformed("the channel binding check failed"));
        }
        if attributes.next().and_then(|nonce| nonce.strip_prefix("r=")) != Some(&self.nonce[..]) {
            return Err(Malformed("the nonce is another one"));
        }
        let parts = [&self.client_first, ",", &self.server_first, ",", without_proof];
        let parts = parts.map(str::as_bytes);
        let signature = hmac(&self.verifier.stored_key, &parts);
        let mut client_key = proof;
        client_key.iter_mut().zip(signature).for_each(|(byte, mask)| *byte ^= mask);
        let stored: Key = Sha256::digest(client_key).into();
        if !bool::from(stored.ct_eq(&self.verifier.stored_key)) {
            return Err(ScramError::WrongPassword);
        }
        Ok(format!("v={}", BASE64.encode(hmac(&self.verifier.server_key, &parts))))
    }
}

fn text(message: &[u8]) -> Step<&str> {
    std::str::from_utf8(message).map_err(|_| Malformed("a message is no UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    // The example of RFC 7677, section 3.
    const CLIENT_FIRST: &str = "n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
    const SERVER_NONCE: &str = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
    const SERVER_FIRST: &str =
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
    const CLIENT_LAST: &str = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                               p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
    const SERVER_LAST: &str = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";

    fn verifier() -> ScramVerifier {
        let salt = BASE64.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        ScramVerifier::new("pencil", &salt, 4096)
    }

    fn begin(message: &str, is_bound: bool, channel: Option<&[u8]>) -> Step<(Exchange, String)> {
        Exchange::begin_with(verifier(), message.as_bytes(), is_bound, channel, SERVER_NONCE)
    }

    #[test]
    fn the_example_of_rfc_7677_is_reproduced() {
        let (exchange, answer) = begin(CLIENT_FIRST, false, None).unwrap();
        assert_eq!(answer, SERVER_FIRST);
        assert_eq!(exchange.finish(CLIENT_LAST.as_bytes()), Ok(SERVER_LAST.to_owned()));
    }

    #[test]
    fn a_changed_message_is_refused() {
        for at in 0..CLIENT_LAST.len() {
            let mut changed = CLIENT_LAST.as_bytes().to_vec();
            changed[at] ^= 1;
            let (exchange, _) = begin(CLIENT_FIRST, false, None).unwrap();
            assert!(exchange.finish(&changed).is_err(), "byte {at}");
        }
        let (exchange, _) = begin(CLIENT_FIRST, false, None).unwrap();
        assert!(exchange.finish(b"").is_err());
    }

    #[test]
    fn the_channel_binding_matches_mechanism_and_channel() {
        let bound = CLIENT_FIRST.replacen("n,", CHANNEL_BINDING, 1);
        assert!(begin(&bound, true, Some(b"hash")).is_ok());
        assert!(begin(&bound, true, None).is_err());
        assert!(begin(&bound, false, Some(b"hash")).is_err());
        assert!(begin(CLIENT_FIRST, true, Some(b"hash")).is_err());
        assert!(begin(CLIENT_FIRST, false, Some(b"hash")).is_ok());
        let able = CLIENT_FIRST.replacen("n,", "y,", 1);
        assert!(begin(&able, false, None).is_ok());
        assert!(begin(&able, false, Some(b"hash")).is_err());
        let (exchange, _) = begin(&bound, true, Some(b"hash")).unwrap();
        let other = BASE64.encode(format!("{CHANNEL_BINDING},lash"));
        let last = CLIENT_LAST.replacen("biws", &other, 1);
        let failed = exchange.finish(last.as_bytes());
        assert_eq!(failed, Err(Malformed("the channel binding check failed")));
    }

    #[test]
    fn malformed_first_messages_are_refused() {
        for message in
            ["", "n", "n,", "n,,", "n,,n=a", "n,,n=a,r=", "n,a=b,n=a,r=b", "p=x,,n=a,r=b"]
        {
            assert!(begin(message, false, None).is_err(), "{message}");
        }
        let odd = Exchange::begin_with(verifier(), b"n,,n=a,r=\xff", false, None, "x");
        assert!(odd.is_err());
    }

    #[test]
    fn texts_that_are_no_verifiers_are_refused() {
        let good = verifier().to_string();
        assert_eq!(good.parse(), Ok(verifier()));
        for cut in 0..good.len() {
            assert!(good[..cut].parse::<ScramVerifier>().is_err(), "{cut}");
        }
        assert!(good.replace("4096", "0").parse::<ScramVerifier>().is_err());
        assert!(good.replace("256", "512").parse::<ScramVerifier>().is_err());
    }

    #[test]
    fn passwords_are_normalized_as_in_rfc_4013() {
        let salt = b"salt";
        let plain = ScramVerifier::new("IX", salt, 10);
        assert_eq!(ScramVerifier::new("I\u{AD}X", salt, 10), plain);
        assert_eq!(ScramVerifier::new("\u{2168}", salt, 10), plain);
        assert_ne!(ScramVerifier::new("ix", salt, 10), plain);
    }
}
