//! Network addresses: INET, CIDR, MACADDR and MACADDR8.
//!
//! The bytes of an address are its family (4 or 6), its network with zeros for the host, the number
//! of bits of the network, and the whole address. So addresses sort by network, then by the size of
//! the network, then by host. The bytes of a hardware address are its own.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::EncodedKind;
use crate::error::{Result, SqlError, SqlState};
use crate::types::Value;

#[cold]
fn invalid(kind: &str, text: &str) -> SqlError {
    SqlError::new(
        SqlState::InvalidTextRepresentation,
        format!("invalid input syntax for type {kind}: \"{text}\""),
    )
}

/// An IP address with the number of bits of its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The address of the host.
    pub ip: IpAddr,
    /// The number of bits of the network.
    pub bits: u8,
}

/// Returns the number of bits of the addresses of a family.
fn width(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 32 } else { 128 }
}

/// Returns a mask with `bits` leading ones.
fn mask(bits: u8, width: u8) -> u128 {
    let ones = |count: u8| if count == 0 { 0 } else { u128::MAX << (128 - count) };
    ones(bits) >> (128 - width)
}

impl Address {
    /// Returns the address as a number.
    #[must_use]
    pub fn number(self) -> u128 {
        match self.ip {
            IpAddr::V4(ip) => u32::from(ip).into(),
            IpAddr::V6(ip) => ip.into(),
        }
    }

    /// Returns the address of the same family with that number.
    #[must_use]
    pub fn with_number(self, number: u128) -> Address {
        let ip = match self.ip {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from(number as u32)),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from(number)),
        };
        Address { ip, ..self }
    }

    /// Returns the number of bits of an address of the family.
    #[must_use]
    pub fn width(self) -> u8 {
        width(self.ip)
    }

    /// Returns the address with the bits of the host as zeros.
    #[must_use]
    pub fn network(self) -> Address {
        self.with_number(self.number() & mask(self.bits, self.width()))
    }

    /// Returns the mask of the network, or of the host.
    #[must_use]
    pub fn mask(self, is_of_host: bool) -> Address {
        let (all, network) = (mask(self.width(), self.width()), mask(self.bits, self.width()));
        let number = if is_of_host { all & !network } else { network };
        Address { bits: self.width(), ..self.with_number(number) }
    }

    /// Returns the last address of the network.
    #[must_use]
    pub fn broadcast(self) -> Address {
        self.with_number(self.number() | self.mask(true).number())
    }

    /// Returns whether the network contains another one, or an equal one.
    #[must_use]
    pub fn contains(self, other: Address) -> bool {
        same_family(self, other)
            && self.bits <= other.bits
            && self.network().ip == Address { bits: self.bits, ..other }.network().ip
    }

    /// Reads an address. A CIDR may lack its last parts, and must have no bits of a host.
    pub fn parse(text: &str, kind: EncodedKind) -> Result<Address> {
        let is_network = kind == EncodedKind::Cidr;
        let fault = || invalid(kind.name(), text);
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => {
                let is_number = !bits.is_empty() && bits.bytes().all(|b| b.is_ascii_digit());
                let bits: u8 = bits.parse().ok().filter(|_| is_number).ok_or_else(fault)?;
                (address, Some(bits))
            }
            None => (text, None),
        };
        let parsed = if address.contains(':') {
            let ip: Ipv6Addr = address.parse().map_err(|_| fault())?;
            Address { ip: ip.into(), bits: bits.unwrap_or(128) }
        } else {
            let (ip, given) = parse_v4(address, is_network || bits.is_some()).ok_or_else(fault)?;
            let implied = if is_network { network_bits(ip, given) } else { 32 };
            Address { ip: ip.into(), bits: bits.unwrap_or(implied) }
        };
        if parsed.bits > parsed.width() {
            return Err(fault());
        }
        if is_network && parsed.network() != parsed {
            let message = format!("invalid cidr value: \"{text}\"");
            return Err(SqlError::new(SqlState::InvalidTextRepresentation, message)
                .with_detail("Value has bits set to right of mask."));
        }
        Ok(parsed)
    }

    /// Returns the value with these bytes.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Address> {
        let (ip, bits): (IpAddr, u8) = match bytes {
            [4, _, _, _, _, bits, ip @ ..] => (<[u8; 4]>::try_from(ip).ok()?.into(), *bits),
            [6, rest @ ..] => {
                let (bits, ip) = rest.get(16..)?.split_first()?;
                (<[u8; 16]>::try_from(ip).ok()?.into(), *bits)
            }
            _ => return None,
        };
        (bits <= width(ip)).then_some(Address { ip, bits })
    }

    /// Returns the address as a value.
    #[must_use]
    pub fn value(self, kind: EncodedKind) -> Value {
        let mut bytes = vec![if self.ip.is_ipv4() { 4 } else { 6 }];
        let push = |bytes: &mut Vec<u8>, ip: IpAddr| match ip {
            IpAddr::V4(ip) => bytes.extend_from_slice(&ip.octets()),
            IpAddr::V6(ip) => bytes.extend_from_slice(&ip.octets()),
        };
        push(&mut bytes, self.network().ip);
        bytes.push(self.bits);
        push(&mut bytes, self.ip);
        Value::encoded(kind, &bytes)
    }

    /// Appends the address. The size of the network is left out if it is that of the address,
    /// unless `with_bits` is set.
    pub fn format(self, out: &mut String, with_bits: bool) {
        // Writing to a String does not fail.
        let _ = match self.ip {
            IpAddr::V6(ip) if is_compatible(ip) => {
                write!(out, "::{}", Ipv4Addr::from(u128::from(ip) as u32))
            }
            ip => write!(out, "{ip}"),
        };
        if with_bits || self.bits != self.width() {
            let _ = write!(out, "/{}", self.bits);
        }
    }

    /// Returns a CIDR without trailing zeros, or an INET without the size of a host's network.
    #[must_use]
    pub fn abbreviated(self, kind: EncodedKind) -> String {
        let mut out = String::new();
        match self.ip {
            IpAddr::V4(ip) if kind == EncodedKind::Cidr => {
                let shown = usize::from(self.bits.div_ceil(8)).max(1);
                let parts: Vec<String> =
                    ip.octets().iter().take(shown).map(u8::to_string).collect();
                let _ = write!(out, "{}/{}", parts.join("."), self.bits);
            }
            _ => self.format(&mut out, kind == EncodedKind::Cidr),
        }
        out
    }
}

/// Returns whether an address of version 6 is shown with one of version 4 at its end.
fn is_compatible(ip: Ipv6Addr) -> bool {
    let number = u128::from(ip);
    number >> 32 == 0 && number >> 16 != 0
}

/// Returns whether both addresses are of one version.
#[must_use]
pub fn same_family(a: Address, b: Address) -> bool {
    a.ip.is_ipv4() == b.ip.is_ipv4()
}

/// Reads an address of version 4; returns the number of its parts too.
fn parse_v4(text: &str, may_be_short: bool) -> Option<(Ipv4Addr, usize)> {
    let mut octets = [0; 4];
    let mut count = 0;
    for part in text.split('.') {
        let is_number = (1..=3).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
        *octets.get_mut(count)? = part.parse().ok().filter(|_| is_number)?;
        count += 1;
    }
    (count == 4 || may_be_short).then_some((Ipv4Addr::from(octets), count))
}

/// Returns the bits of a network that is given without: those of its class, or of its parts.
fn network_bits(ip: Ipv4Addr, parts: usize) -> u8 {
    let of_class = match ip.octets()[0] {
        240.. => 32,
        224.. => 4,
        192.. => 24,
        128.. => 16,
        _ => 8,
    };
    of_class.max(parts as u8 * 8)
}

/// Reads a hardware address, in pairs or groups of digits.
pub(super) fn parse_hardware(text: &str, kind: EncodedKind) -> Result<Value> {
    let fault = || invalid(kind.name(), text);
    let trimmed = text.trim();
    let separator = trimmed.chars().find(|c| !c.is_ascii_hexdigit());
    if separator.is_some_and(|c| !matches!(c, ':' | '-' | '.')) {
        return Err(fault());
    }
    let groups: Vec<&str> = match separator {
        Some(separator) => trimmed.split(separator).collect(),
        None => vec![trimmed],
    };
    let digits = groups.concat();
    let has_digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_even = groups.iter().all(|group| group.len() == groups[0].len());
    let size = groups[0].len();
    let is_form = match separator {
        None => true,
        Some('.') => size == 4,
        Some(_) => size == 2 || size == 6 || size == 4 && separator == Some('-'),
    };
    if !has_digits || !is_even || !is_form || !digits.len().is_multiple_of(2) {
        return Err(fault());
    }
    let byte = |at: usize| digits.get(at..at + 2).and_then(|two| u8::from_str_radix(two, 16).ok());
    let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
    let bytes =
        bytes.filter(|bytes| bytes.len() == 6 || kind == EncodedKind::Macaddr8 && bytes.len() == 8);
    convert_hardware(&bytes.ok_or_else(fault)?, kind)
}

/// Appends the pairs of digits of a hardware address.
pub(super) fn format_hardware(out: &mut String, bytes: &[u8]) {
    for (at, byte) in bytes.iter().enumerate() {
        let colon = if at == 0 { "" } else { ":" };
        // Writing to a String does not fail.
        let _ = write!(out, "{colon}{byte:02x}");
    }
}

/// Converts between hardware addresses of six and eight bytes.
pub(super) fn convert_hardware(bytes: &[u8], to: EncodedKind) -> Result<Value> {
    let converted = match (bytes, to) {
        ([a, b, c, d, e, f], EncodedKind::Macaddr8) => vec![*a, *b, *c, 0xff, 0xfe, *d, *e, *f],
        ([a, b, c, 0xff, 0xfe, d, e, f], EncodedKind::Macaddr) => vec![*a, *b, *c, *d, *e, *f],
        (_, EncodedKind::Macaddr) if bytes.len() != 6 => {
            let message = "macaddr8 data out of range to convert to macaddr";
            return Err(SqlError::new(SqlState::NumericValueOutOfRange, message).with_hint(
                "Only addresses that have FF and FE as values in the 4th and 5th bytes from the left, for example xx:xx:xx:ff:fe:xx:xx:xx, are eligible to be converted from macaddr8 to macaddr.",
            ));
        }
        _ => bytes.to_vec(),
    };
    Ok(Value::encoded(to, &converted))
}
