//! The users that may connect, each with the verifier of a password.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use sha2::{Digest, Sha256};

use super::scram::ScramVerifier;

/// The users of a server, by name.
///
/// The text form is that of pgbouncer's `auth_file`: a line `"name" "verifier"` for each user, in
/// which `""` stands for a quotation mark; `;` begins a comment line. Passwords in clear are
/// refused.
///
/// ```
/// use quickbeam_server::{ScramVerifier, Users};
///
/// let line = format!("\"anna\" \"{}\"\n", ScramVerifier::of_password("secret")?);
/// let users = Users::parse(&line)?;
/// assert_eq!(users.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Users(BTreeMap<String, ScramVerifier>);

impl Users {
    /// Returns no users.
    #[must_use]
    pub fn new() -> Users {
        Users::default()
    }

    /// Adds a user, or changes its verifier.
    pub fn insert(&mut self, name: impl Into<String>, verifier: ScramVerifier) {
        self.0.insert(name.into(), verifier);
    }

    /// Returns the number of users.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no users.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads users from their text form.
    ///
    /// # Errors
    /// What is wrong, with the number of the line. The line's text is not repeated.
    pub fn parse(text: &str) -> Result<Users, String> {
        let mut users = Users::default();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with(';') {
                continue;
            }
            let fault = |what: &str| format!("line {number}: {what}");
            let (name, rest) =
                quoted(line).ok_or_else(|| fault("a name in quotation marks is missing"))?;
            let (verifier, _) = quoted(rest.trim_start())
                .ok_or_else(|| fault("a verifier in quotation marks is missing"))?;
            let verifier = verifier.parse().map_err(|error| fault(&format!("{error}")))?;
            if users.0.insert(name, verifier).is_some() {
                return Err(fault("the user is named twice"));
            }
        }
        Ok(users)
    }

    pub(crate) fn verifier(&self, name: &str) -> Option<&ScramVerifier> {
        self.0.get(name)
    }

    /// Returns a secret that changes only with the users; without any, one of the process.
    pub(crate) fn secret(&self) -> [u8; 32] {
        static SECRET: OnceLock<[u8; 32]> = OnceLock::new();
        let mut hash = Sha256::new_with_prefix("quickbeam mock verifiers");
        if self.0.is_empty() {
            hash.update(SECRET.get_or_init(|| super::random().unwrap_or_default()));
        }
        self.0.values().for_each(|verifier| hash.update(verifier.secret()));
        hash.finalize().into()
    }
}

/// Reads a text in quotation marks. Returns it and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut rest = text.strip_prefix('"')?;
    let mut found = String::new();
    loop {
        let (before, after) = rest.split_once('"')?;
        found.push_str(before);
        match after.strip_prefix('"') {
            Some(after) => {
                found.push('"');
                rest = after;
            }
            None => return Some((found, after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_read_with_comments_and_quotation_marks() {
        let verifier = ScramVerifier::of_password("secret").unwrap();
        let text = format!("; users\n\n\"a\"\"b\" \"{verifier}\"\n  \"c\"   \"{verifier}\" x\n");
        let users = Users::parse(&text).unwrap();
        assert_eq!(users.verifier("a\"b"), Some(&verifier));
        assert_eq!(users.verifier("c"), Some(&verifier));
        assert_eq!(users.verifier("b"), None);
    }

    #[test]
    fn errors_name_the_line_and_not_its_text() {
        let verifier = ScramVerifier::of_password("secret").unwrap();
        let twice = format!("\"a\" \"{verifier}\"\n\"a\" \"{verifier}\"");
        for text in ["\n\"a\" \"geheim\"", "\n\"a\"", "\na b", "\n\"a", &twice] {
            let error = Users::parse(text).unwrap_err();
            assert!(error.starts_with("line 2: ") && !error.contains("geheim"), "{error}");
        }
    }
}
