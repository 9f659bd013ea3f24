//! A client that writes and reads single messages.

#![allow(dead_code)] // Each program uses a part.

use std::io::{Read, Write};
use std::net::TcpStream;

use postgres::{Client, NoTls};
use quickbeam_server::{Access, ScramVerifier, Server, ServerOptions, Users};
use quickbeam_sql::SqlDatabase;

/// A server on a free port.
pub fn serve(options: ServerOptions) -> (SqlDatabase, Server) {
    let database = SqlDatabase::open_in_memory(Default::default()).unwrap();
    let server = Server::start(&database, options.listen("127.0.0.1:0".parse().unwrap())).unwrap();
    (database, server)
}

/// Connects as the user test, without a password.
pub fn connect(server: &Server) -> Client {
    let port = server.address().unwrap().port();
    Client::connect(&format!("host=127.0.0.1 port={port} user=test"), NoTls).unwrap()
}

/// Connects as that user, without TLS.
pub fn connect_as(server: &Server, user: &str, password: &str) -> Result<Client, postgres::Error> {
    let mut config = postgres::Config::new();
    config.host("127.0.0.1").port(server.address().unwrap().port()).user(user);
    config.password(password).connect(NoTls)
}

/// The user anna with the password "secret".
pub fn anna() -> Users {
    let mut users = Users::new();
    users.insert("anna", ScramVerifier::of_password("secret").unwrap());
    users
}

pub fn with_anna() -> Access {
    Access::default().users(anna())
}

/// A start-up packet of the protocol 3 with that minor version.
pub fn startup(minor: u8, settings: &[(&str, &str)]) -> Vec<u8> {
    let mut packet = vec![0, 0, 0, 0, 0, 3, 0, minor];
    for (name, value) in settings {
        packet.extend([name.as_bytes(), b"\0", value.as_bytes(), b"\0"].concat());
    }
    packet.push(0);
    let length = packet.len() as u32;
    packet[..4].copy_from_slice(&length.to_be_bytes());
    packet
}

/// A message with its type and length.
pub fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
}

pub struct Raw<S = TcpStream>(pub S);

impl Raw {
    pub fn connect(server: &Server) -> Raw {
        Raw(TcpStream::connect(server.address().unwrap()).unwrap())
    }

    /// Connects as that user and reads up to the first ReadyForQuery.
    pub fn open(server: &Server, user: &str) -> Raw {
        let mut raw = Raw::connect(server);
        raw.send(&startup(0, &[("user", user)]));
        raw.until(b'Z');
        raw
    }
}

impl<S: Read + Write> Raw<S> {
    pub fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    /// Reads a message; `None` at the end of the connection.
    pub fn read(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut header = [0; 5];
        self.0.read_exact(&mut header).ok()?;
        let length = u32::from_be_bytes(header[1..].try_into().unwrap()) as usize;
        let mut body = vec![0; length - 4];
        self.0.read_exact(&mut body).ok()?;
        Some((header[0], body))
    }

    /// Reads messages up to one of that type.
    pub fn until(&mut self, kind: u8) -> Vec<(u8, Vec<u8>)> {
        let mut found = Vec::new();
        loop {
            let message = self.read().expect("the connection ended");
            let is_last = message.0 == kind;
            found.push(message);
            if is_last {
                return found;
            }
        }
    }

    /// Sends a query and reads up to ReadyForQuery.
    pub fn query(&mut self, text: &str) -> Vec<(u8, Vec<u8>)> {
        self.send(&message(b'Q', &[text.as_bytes(), b"\0"].concat()));
        self.until(b'Z')
    }
}

/// The SQLSTATE of an error message.
pub fn code(body: &[u8]) -> String {
    field(body, b'C')
}

/// A field of an error message.
pub fn field(body: &[u8], kind: u8) -> String {
    let fields = body.split(|byte| *byte == 0);
    let found = fields.filter(|field| field.first() == Some(&kind)).map(|field| &field[1..]).next();
    String::from_utf8_lossy(found.unwrap_or_default()).into_owned()
}
