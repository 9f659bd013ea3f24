//! Messages from a client, decoded from the bodies of frames.
//!
//! Above: the start of a connection and the session. Below: nothing.
//!
//! - FRONTEND-1: no body makes decoding panic or allocate more than the body's size; what does not
//!   follow the protocol is an error.

use bytes::{Buf, Bytes};

/// A message of an open session.
#[derive(Debug, PartialEq, Eq)]
pub enum FrontendMessage {
    /// A simple query.
    Query(String),
    /// A statement to prepare.
    Parse {
        /// Its name; empty for the unnamed statement.
        name: String,
        /// Its text.
        query: String,
        /// The numbers of its parameters' types; 0 where the server chooses.
        types: Vec<u32>,
    },
    /// A portal to make from a prepared statement.
    Bind(Bind),
    /// A description that the client asks for.
    Describe(Target),
    /// A portal to execute.
    Execute {
        /// Its name.
        portal: String,
        /// The most rows to return; 0 or less for all.
        max_rows: i32,
    },
    /// A statement or portal to forget.
    Close(Target),
    /// A request to send what the server has collected.
    Flush,
    /// The end of a sequence of extended messages.
    Sync,
    /// A piece of COPY data.
    CopyData(Bytes),
    /// The end of COPY data.
    CopyDone,
    /// The client gave COPY up, for the reason given.
    CopyFail(String),
    /// The end of the session.
    Terminate,
}

/// The content of a Bind message.
#[derive(Debug, PartialEq, Eq)]
pub struct Bind {
    /// The portal's name.
    pub portal: String,
    /// The prepared statement's name.
    pub statement: String,
    /// The formats of the parameters.
    pub formats: Vec<i16>,
    /// The parameters; `None` for NULL.
    pub parameters: Vec<Option<Bytes>>,
    /// The formats of the result columns.
    pub result_formats: Vec<i16>,
}

/// What Describe and Close name.
#[derive(Debug, PartialEq, Eq)]
pub enum Target {
    /// A prepared statement.
    Statement(String),
    /// A portal.
    Portal(String),
}

/// Why a message cannot be decoded: an SQLSTATE and a text for the client.
#[derive(Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The SQLSTATE.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// Whether the frames that follow cannot be trusted either.
    pub is_fatal: bool,
}

impl Malformed {
    fn new(message: impl Into<String>) -> Malformed {
        Malformed { code: "08P01", message: message.into(), is_fatal: false }
    }
}

type Decoded<T> = Result<T, Malformed>;

/// Decodes the body of a frame of that type.
pub fn decode(kind: u8, body: Bytes) -> Decoded<FrontendMessage> {
    let mut body = Body(body);
    let message = match kind {
        b'Q' => FrontendMessage::Query(body.text()?),
        b'P' => {
            let (name, query) = (body.text()?, body.text()?);
            let count = body.count(4)?;
            let types = (0..count).map(|_| body.number::<4>().map(u32::from_be_bytes));
            FrontendMessage::Parse { name, query, types: types.collect::<Decoded<_>>()? }
        }
        b'B' => FrontendMessage::Bind(bind(&mut body)?),
        b'D' => FrontendMessage::Describe(target(&mut body)?),
        b'C' => FrontendMessage::Close(target(&mut body)?),
        b'E' => {
            let (portal, max_rows) = (body.text()?, i32::from_be_bytes(body.number()?));
            FrontendMessage::Execute { portal, max_rows }
        }
        b'H' => FrontendMessage::Flush,
        b'S' => FrontendMessage::Sync,
        b'X' => FrontendMessage::Terminate,
        b'd' => FrontendMessage::CopyData(std::mem::take(&mut body.0)),
        b'c' => FrontendMessage::CopyDone,
        b'f' => FrontendMessage::CopyFail(body.text()?),
        other => {
            let message = format!("invalid frontend message type {other}");
            return Err(Malformed { is_fatal: true, ..Malformed::new(message) });
        }
    };
    if body.0.is_empty() { Ok(message) } else { Err(invalid_format()) }
}

fn bind(body: &mut Body) -> Decoded<Bind> {
    let (portal, statement) = (body.text()?, body.text()?);
    let formats = body.formats()?;
    let count = body.count(4)?;
    let parameters = (0..count).map(|_| body.parameter()).collect::<Decoded<_>>()?;
    let result_formats = body.formats()?;
    Ok(Bind { portal, statement, formats, parameters, result_formats })
}

fn target(body: &mut Body) -> Decoded<Target> {
    let [kind] = body.number()?;
    let name = body.text()?;
    match kind {
        b'S' => Ok(Target::Statement(name)),
        b'P' => Ok(Target::Portal(name)),
        other => Err(Malformed::new(format!("invalid message subtype {other}"))),
    }
}

#[cold]
fn invalid_format() -> Malformed {
    Malformed::new("invalid message format")
}

/// The rest of a message's body.
struct Body(Bytes);

impl Body {
    fn number<const N: usize>(&mut self) -> Decoded<[u8; N]> {
        let bytes = self.0.first_chunk().copied();
        let bytes = bytes.ok_or_else(|| Malformed::new("insufficient data left in message"))?;
        self.0.advance(N);
        Ok(bytes)
    }

    /// Reads a text that ends with a zero byte.
    fn text(&mut self) -> Decoded<String> {
        let end = self.0.iter().position(|byte| *byte == 0);
        let end = end.ok_or_else(|| Malformed::new("invalid string in message"))?;
        let text = self.0.split_to(end);
        self.0.advance(1);
        String::from_utf8(text.into()).map_err(|error| Malformed {
            code: "22021",
            message: format!("invalid byte sequence for encoding \"UTF8\": {}", error.utf8_error()),
            is_fatal: false,
        })
    }

    /// Reads the number of items that follow, each of at least `size` bytes.
    fn count(&mut self, size: usize) -> Decoded<usize> {
        let count = usize::from(u16::from_be_bytes(self.number()?));
        if count * size > self.0.len() {
            return Err(Malformed::new("insufficient data left in message"));
        }
        Ok(count)
    }

    fn formats(&mut self) -> Decoded<Vec<i16>> {
        let count = self.count(2)?;
        let formats = (0..count).map(|_| self.number().map(i16::from_be_bytes));
        let formats: Vec<i16> = formats.collect::<Decoded<_>>()?;
        match formats.iter().find(|format| !(0..=1).contains(*format)) {
            Some(other) => Err(Malformed {
                code: "22023",
                ..Malformed::new(format!("unsupported format code: {other}"))
            }),
            None => Ok(formats),
        }
    }

    fn parameter(&mut self) -> Decoded<Option<Bytes>> {
        let length = i32::from_be_bytes(self.number()?);
        if length == -1 {
            return Ok(None);
        }
        let length = usize::try_from(length).map_err(|_| invalid_format())?;
        if length > self.0.len() {
            return Err(Malformed::new("insufficient data left in message"));
        }
        Ok(Some(self.0.split_to(length)))
    }
}

/// A packet before a session begins; it has no type.
#[derive(Debug, PartialEq, Eq)]
pub enum StartupPacket {
    /// A request to encrypt the connection by TLS.
    Tls,
    /// A request to encrypt the connection by GSSAPI.
    Gss,
    /// A request to cancel the statement of another connection: its number and its key.
    Cancel(i32, Bytes),
    /// The start of a session: the version of the protocol and the client's settings.
    Session {
        /// The major version of the protocol.
        major: u16,
        /// The minor version of the protocol.
        minor: u16,
        /// Names and values, as the client sent them.
        settings: Vec<(String, String)>,
    },
}

/// Decodes a packet that comes before a session.
pub fn decode_startup(body: Bytes) -> Decoded<StartupPacket> {
    let mut body = Body(body);
    let version = u32::from_be_bytes(body.number()?);
    match version {
        80_877_103 => Ok(StartupPacket::Tls),
        80_877_104 => Ok(StartupPacket::Gss),
        80_877_102 => {
            let number = i32::from_be_bytes(body.number()?);
            Ok(StartupPacket::Cancel(number, body.0))
        }
        _ => {
            let mut settings = Vec::new();
            if version >> 16 == 3 {
                while body.0.len() > 1 {
                    settings.push((body.text()?, body.text()?));
                }
                if body.0.as_ref() != [0] {
                    return Err(Malformed::new(
                        "invalid startup packet layout: expected terminator as last byte",
                    ));
                }
            }
            let (major, minor) = ((version >> 16) as u16, version as u16);
            Ok(StartupPacket::Session { major, minor, settings })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode_bytes(kind: u8, body: &[u8]) -> Decoded<FrontendMessage> {
        decode(kind, Bytes::copy_from_slice(body))
    }

    #[test]
    fn bind_is_decoded_with_null_and_formats() {
        let body = b"p\0s\0\0\x01\0\x01\0\x02\xff\xff\xff\xff\0\0\0\x02ab\0\x01\0\0";
        let expected = Bind {
            portal: "p".into(),
            statement: "s".into(),
            formats: vec![1],
            parameters: vec![None, Some(Bytes::from_static(b"ab"))],
            result_formats: vec![0],
        };
        assert_eq!(decode_bytes(b'B', body), Ok(FrontendMessage::Bind(expected)));
    }

    #[test]
    fn every_prefix_of_a_message_is_an_error() {
        let bodies: [(u8, &[u8]); 5] = [
            (b'B', b"p\0s\0\0\x01\0\x01\0\x02\xff\xff\xff\xff\0\0\0\x02ab\0\x01\0\0"),
            (b'P', b"s\0SELECT 1\0\0\x01\0\0\0\x17"),
            (b'E', b"p\0\0\0\0\0"),
            (b'D', b"Sname\0"),
            (b'Q', b"SELECT 1\0"),
        ];
        for (kind, body) in bodies {
            assert!(decode_bytes(kind, body).is_ok(), "{}", char::from(kind));
            for length in 0..body.len() {
                assert!(decode_bytes(kind, &body[..length]).is_err(), "{kind} {length}");
            }
            assert!(decode_bytes(kind, &[body, b"!"].concat()).is_err(), "{kind}");
        }
    }

    #[test]
    fn counts_beyond_the_body_are_errors() {
        assert!(decode_bytes(b'P', b"\0\0\xff\xff").is_err());
        assert!(decode_bytes(b'B', b"\0\0\0\0\0\x01\x7f\xff\xff\xffab\0\0").is_err());
        assert!(decode_bytes(b'B', b"\0\0\0\0\0\x01\xff\xff\xff\xfeab\0\0").is_err());
    }

    #[test]
    fn an_unknown_type_is_fatal_and_bad_text_is_not() {
        assert!(decode_bytes(b'!', b"").unwrap_err().is_fatal);
        let error = decode_bytes(b'Q', b"\xff\0").unwrap_err();
        assert_eq!((error.code, error.is_fatal), ("22021", false));
    }

    #[test]
    fn startup_packets_need_a_terminator() {
        let decode = |body: &'static [u8]| decode_startup(Bytes::from_static(body));
        let settings = vec![("user".to_owned(), "a".to_owned())];
        let expected = StartupPacket::Session { major: 3, minor: 2, settings };
        assert_eq!(decode(b"\0\x03\0\x02user\0a\0\0"), Ok(expected));
        assert!(decode(b"\0\x03\0\x02user\0a\0").is_err());
        assert!(decode(b"\0\x03\0\x02user\0\0").is_err());
        assert!(decode(b"\0\x03").is_err());
        assert_eq!(decode(b"\x04\xd2\x16\x2f"), Ok(StartupPacket::Tls));
    }
}
