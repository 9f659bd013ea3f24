//! Verifiers of passwords: SCRAM-SHA-256 (RFC 5802, RFC 7677), in PostgreSQL's text form.

use std::hash::{BuildHasher, RandomState};

use sha2::{Digest, Sha256};

use crate::error::{Result, SqlError, SqlState};

const MECHANISM: &str = "SCRAM-SHA-256";
const ROUNDS: u32 = 4_096;
const BLOCK: usize = 64;

/// Whether a text is a verifier rather than a password.
pub fn is_verifier(text: &str) -> bool {
    let parse = || {
        let (rounds, salt) = text.strip_prefix(MECHANISM)?.strip_prefix('$')?.split_once(':')?;
        let (salt, keys) = salt.split_once('$')?;
        let (stored, server) = keys.split_once(':')?;
        let is_base64 = |text: &str| {
            text.len().is_multiple_of(4)
                && text
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'='))
        };
        let is_key = |text: &str| text.len() == 44 && is_base64(text);
        let rounds: u32 = rounds.parse().ok()?;
        Some(rounds > 0 && !salt.is_empty() && is_base64(salt) && is_key(stored) && is_key(server))
    };
    parse() == Some(true)
}

fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut block = [0; BLOCK];
    let digest: [u8; 32];
    let key = match key.len() {
        ..=BLOCK => key,
        _ => {
            digest = Sha256::digest(key).into();
            &digest
        }
    };
    block.iter_mut().zip(key).for_each(|(place, byte)| *place = *byte);
    let mut inner = Sha256::new_with_prefix(block.map(|byte| byte ^ 0x36));
    parts.iter().for_each(|part| inner.update(part));
    let mut outer = Sha256::new_with_prefix(block.map(|byte| byte ^ 0x5c));
    outer.update(inner.finalize());
    outer.finalize().into()
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0_u32, |group, byte| group << 8 | u32::from(*byte));
        let group = group << (8 * (3 - chunk.len()));
        for at in 0..4 {
            let digit = (group >> (18 - 6 * at) & 63) as usize;
            let digit = DIGITS.get(digit).copied().filter(|_| at <= chunk.len());
            text.push(digit.map_or('=', char::from));
        }
    }
    text
}

/// Returns a salt. The keys of the standard library's hashers come from the operating system.
fn salt() -> [u8; 16] {
    let mut hash = Sha256::new_with_prefix("quickbeam salt");
    for number in 0..4_u64 {
        hash.update(RandomState::new().hash_one(number).to_le_bytes());
    }
    let digest: [u8; 32] = hash.finalize().into();
    std::array::from_fn(|at| digest[at])
}

/// Returns the verifier of a password.
///
/// # Errors
/// 0A000 for a password with characters other than those of ASCII, which would have to be
/// normalized first: the program that knows it can send its verifier.
pub fn verifier_of(password: &str) -> Result<String> {
    if !password.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        let message = "a password with other characters than those of ASCII is not supported here";
        return Err(SqlError::new(SqlState::FeatureNotSupported, message).with_hint(
            "Give its verifier, such as `quickbeam user-line` or psql's \\password makes.",
        ));
    }
    Ok(verifier(password.as_bytes(), &salt()))
}

fn verifier(password: &[u8], salt: &[u8]) -> String {
    let mut round = hmac(password, &[salt, &1_u32.to_be_bytes()]);
    let mut salted = round;
    for _ in 1..ROUNDS {
        round = hmac(password, &[&round]);
        salted.iter_mut().zip(round).for_each(|(sum, byte)| *sum ^= byte);
    }
    let client_key = hmac(&salted, &[b"Client Key"]);
    let stored: [u8; 32] = Sha256::digest(client_key).into();
    let server = hmac(&salted, &[b"Server Key"]);
    format!("{MECHANISM}${ROUNDS}:{}${}:{}", base64(salt), base64(&stored), base64(&server))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verifiers_are_those_of_the_standard() {
        // The salt and the password of RFC 7677; the keys by PostgreSQL 15's own formula.
        let salt = [
            0x5b, 0x6d, 0x99, 0x68, 0x9d, 0x12, 0x35, 0x8e, 0xec, 0xa0, 0x4b, 0x14, 0x12, 0x36,
            0xfa, 0x81,
        ];
        let text = verifier(b"pencil", &salt);
        assert_eq!(
            text,
            "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
        );
        assert!(is_verifier(&text) && !is_verifier("SCRAM-SHA-256$secret"));
        assert_ne!(verifier_of("a").unwrap(), verifier_of("a").unwrap());
        assert_eq!(verifier_of("ä").unwrap_err().code(), "0A000");
    }
}
