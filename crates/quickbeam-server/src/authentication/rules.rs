//! Access rules: who may connect to what from where, and how the connection proves it.
//!
//! Above: the authentication of a connection. Below: nothing.
//!
//! - RULES-1: the first rule that matches a connection decides; one that matches none is refused.
//! - RULES-2: `trust` applies to UNIX sockets and loopback addresses alone.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How a connection proves that it comes from the user that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// It proves nothing.
    Trust,
    /// It is refused.
    Reject,
    /// By a password (SCRAM-SHA-256, bound to the TLS channel where there is one).
    Scram,
    /// By the operating system's user at the other end of a UNIX socket, who has the same name.
    Peer,
    /// By a TLS client certificate whose common name is the user's.
    Certificate,
}

/// The connections that a rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Local,
    Host,
    HostTls,
    HostNoTls,
}

/// What a connection is, for the rules.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// The client's address; `None` for a UNIX socket.
    pub address: Option<IpAddr>,
    /// Whether the connection is encrypted.
    pub is_encrypted: bool,
}

/// A range of addresses: those that share the first bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    fn parse(text: &str) -> Option<Network> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address.parse().ok()?, Some(bits.parse().ok()?)),
            None => (text.parse().ok()?, None),
        };
        let width = if IpAddr::is_ipv4(&address) { 32 } else { 128 };
        let bits: u8 = bits.unwrap_or(width);
        (bits <= width).then_some(Network { address, bits })
    }

    fn contains(self, address: IpAddr) -> bool {
        let same_prefix = |a: u128, b: u128, width: u32| {
            // A shift by the whole width leaves no bits to compare.
            (a ^ b).checked_shr(width - u32::from(self.bits)).unwrap_or(0) == 0
        };
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                same_prefix(network.to_bits().into(), address.to_bits().into(), 32)
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                same_prefix(network.to_bits(), address.to_bits(), 128)
            }
            _ => false,
        }
    }

    /// Whether every address of the range is this machine's own.
    fn is_loopback(self) -> bool {
        match self.address {
            IpAddr::V4(address) => address.is_loopback() && self.bits >= 8,
            IpAddr::V6(address) => address.is_loopback() && self.bits == 128,
        }
    }
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    kind: Kind,
    /// Names; none for all.
    databases: Option<Vec<String>>,
    users: Option<Vec<String>>,
    /// `None` for all addresses.
    network: Option<Network>,
    method: Method,
}

impl Rule {
    fn matches(&self, origin: Origin, database: &str, user: &str) -> bool {
        let is_of_kind = match (self.kind, origin.address) {
            (Kind::Local, None) => true,
            (Kind::Host, Some(_)) => true,
            (Kind::HostTls, Some(_)) => origin.is_encrypted,
            (Kind::HostNoTls, Some(_)) => !origin.is_encrypted,
            _ => false,
        };
        let has = |names: &Option<Vec<String>>, name: &str| {
            names.as_ref().is_none_or(|names| names.iter().any(|it| it == name))
        };
        let is_near = match (self.network, origin.address) {
            (Some(network), Some(address)) => network.contains(address),
            _ => true,
        };
        is_of_kind && is_near && has(&self.databases, database) && has(&self.users, user)
    }
}

/// The rules of a server, in their order.
///
/// The text form is that of PostgreSQL's `pg_hba.conf`: a line `TYPE DATABASE USER [ADDRESS]
/// METHOD` for each rule. TYPE is `local`, `host`, `hostssl` or `hostnossl`; DATABASE and USER are
/// `all` or names with commas; ADDRESS is `all`, an address, or a range such as `10.0.0.0/8`;
/// METHOD is `scram-sha-256`, `peer`, `cert`, `trust` or `reject`. `#` begins a comment.
///
/// ```
/// use quickbeam_server::AccessRules;
///
/// let rules = AccessRules::parse("local all all peer\nhostssl all all 10.0.0.0/8 scram-sha-256")?;
/// assert!(AccessRules::parse("host all all 10.0.0.0/8 trust").is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessRules(Vec<Rule>);

impl AccessRules {
    /// Reads rules from their text form.
    ///
    /// # Errors
    /// What is wrong, with the number of the line.
    pub fn parse(text: &str) -> Result<AccessRules, String> {
        let mut rules = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> = line.split_whitespace().collect();
            if !words.is_empty() {
                rules.push(rule(&words).map_err(|fault| format!("line {number}: {fault}"))?);
            }
        }
        Ok(AccessRules(rules))
    }

    /// Returns the rules of a server without users: every connection from this machine is trusted.
    #[must_use]
    pub fn trust_this_machine() -> AccessRules {
        let rule = |kind, network| Rule {
            kind,
            databases: None,
            users: None,
            network,
            method: Method::Trust,
        };
        let four = Network { address: Ipv4Addr::LOCALHOST.into(), bits: 8 };
        let six = Network { address: Ipv6Addr::LOCALHOST.into(), bits: 128 };
        AccessRules(vec![
            rule(Kind::Local, None),
            rule(Kind::Host, Some(four)),
            rule(Kind::Host, Some(six)),
        ])
    }

    /// Returns the rules of a server with users: every connection needs a password.
    #[must_use]
    pub fn require_password() -> AccessRules {
        let rule = |kind| Rule {
            kind,
            databases: None,
            users: None,
            network: None,
            method: Method::Scram,
        };
        AccessRules(vec![rule(Kind::Local), rule(Kind::Host)])
    }

    /// Returns the method of the first rule that matches, or `None` if none does.
    #[must_use]
    pub fn method(&self, origin: Origin, database: &str, user: &str) -> Option<Method> {
        self.0.iter().find(|rule| rule.matches(origin, database, user)).map(|rule| rule.method)
    }

    /// Whether a connection of another machine can match a rule that does not refuse it.
    pub(crate) fn admits_other_machines(&self) -> bool {
        self.0.iter().any(|rule| {
            let is_near = rule.network.is_some_and(Network::is_loopback);
            rule.kind != Kind::Local && !is_near && rule.method != Method::Reject
        })
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Method::Trust => "trust",
            Method::Reject => "reject",
            Method::Scram => "scram-sha-256",
            Method::Peer => "peer",
            Method::Certificate => "cert",
        })
    }
}

fn rule(words: &[&str]) -> Result<Rule, String> {
    let kind = match words[0] {
        "local" => Kind::Local,
        "host" => Kind::Host,
        "hostssl" => Kind::HostTls,
        "hostnossl" => Kind::HostNoTls,
        other => return Err(format!("unknown connection type \"{other}\"")),
    };
    let (databases, users, network, method) = match (kind, words) {
        (Kind::Local, [_, databases, users, method]) => (databases, users, None, method),
        (Kind::Local, _) => return Err("\"local\" takes DATABASE USER METHOD".to_owned()),
        (_, [_, databases, users, network, method]) => (databases, users, Some(*network), method),
        _ => return Err("a host rule takes DATABASE USER ADDRESS METHOD".to_owned()),
    };
    let network = match network {
        None | Some("all") => None,
        Some(text) => {
            let network = Network::parse(text);
            Some(network.ok_or_else(|| format!("\"{text}\" is no address or range of addresses"))?)
        }
    };
    let method = match *method {
        "trust" => Method::Trust,
        "reject" => Method::Reject,
        "scram-sha-256" => Method::Scram,
        "peer" => Method::Peer,
        "cert" => Method::Certificate,
        other => return Err(format!("unknown method \"{other}\"")),
    };
    let is_local = kind == Kind::Local;
    if method == Method::Trust && !is_local && !network.is_some_and(Network::is_loopback) {
        return Err("\"trust\" needs a loopback address".to_owned());
    }
    if method == Method::Peer && !is_local {
        return Err("\"peer\" is for UNIX sockets, \"local\"".to_owned());
    }
    if method == Method::Certificate && kind != Kind::HostTls {
        return Err("\"cert\" is for encrypted connections, \"hostssl\"".to_owned());
    }
    Ok(Rule { kind, databases: names(databases), users: names(users), network, method })
}

fn names(text: &str) -> Option<Vec<String>> {
    (text != "all").then(|| text.split(',').map(|name| name.trim_matches('"').to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(address: &str, is_encrypted: bool) -> Origin {
        Origin { address: address.parse().ok(), is_encrypted }
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let rules = AccessRules::parse(
            "# rules\nlocal all root,admin peer\nlocal all all scram-sha-256\n\n\
             hostnossl all all all reject # in clear\n\
             hostssl sales anna 10.1.0.0/16 cert\nhost all all 10.0.0.0/8 scram-sha-256\n\
             host all all fd00::/8 scram-sha-256",
        )
        .unwrap();
        let method = |origin, user| rules.method(origin, "sales", user);
        assert_eq!(method(origin("", false), "admin"), Some(Method::Peer));
        assert_eq!(method(origin("", false), "anna"), Some(Method::Scram));
        assert_eq!(method(origin("10.1.2.3", false), "anna"), Some(Method::Reject));
        assert_eq!(method(origin("10.1.2.3", true), "anna"), Some(Method::Certificate));
        assert_eq!(method(origin("10.1.2.3", true), "bert"), Some(Method::Scram));
        assert_eq!(method(origin("10.2.2.3", true), "anna"), Some(Method::Scram));
        assert_eq!(method(origin("::ffff:10.2.2.3", true), "anna"), Some(Method::Scram));
        assert_eq!(method(origin("11.2.2.3", true), "anna"), None);
        assert_eq!(method(origin("fd12::1", true), "anna"), Some(Method::Scram));
        assert_eq!(method(origin("fe12::1", true), "anna"), None);
        assert_eq!(rules.method(origin("10.1.2.3", true), "other", "anna"), Some(Method::Scram));
    }

    #[test]
    fn rules_that_would_open_the_server_are_errors() {
        for text in [
            "host all all all trust",
            "host all all 10.0.0.0/8 trust",
            "host all all 127.0.0.0/7 trust",
            "host all all ::/0 trust",
            "host all all 127.0.0.1 peer",
            "host all all 127.0.0.1 cert",
            "host all all scram-sha-256",
            "local all all 127.0.0.1 trust",
            "host all all 10.0.0.0/33 reject",
            "host all all example.org reject",
            "tcp all all all reject",
            "local all all md5",
            "local",
        ] {
            let error = AccessRules::parse(&format!("\n{text}")).unwrap_err();
            assert!(error.starts_with("line 2: "), "{text}: {error}");
        }
        assert!(AccessRules::parse("host all all 127.0.0.1/32 trust").is_ok());
        assert!(!AccessRules::trust_this_machine().admits_other_machines());
        assert!(AccessRules::require_password().admits_other_machines());
    }
}
