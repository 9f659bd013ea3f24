//! Clients that do not follow the protocol: whatever they send, the server answers legally or
//! closes the connection, and serves the next client.
//!
//! A process of its own: the panic hook that counts panics is one for the whole process.
//!
//! `QUICKBEAM_HOSTILE_CONNECTIONS` sets the number of connections, `QUICKBEAM_SEED` the first seed.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]

#[path = "it/common/mod.rs"]
mod common;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::{message, serve, startup, with_anna};
use postgres::{Client, NoTls};
use quickbeam_server::{AccessRules, Server, ServerOptions};
use quickbeam_testing::{Random, number_in};

/// Connections of a usual run. Each sends about ten messages.
const CONNECTIONS: u64 = 1500;

/// The types of the messages that a server sends.
const ANSWERS: &[u8] = b"RSKZEN12CDTtnsIGHWcdvA3";

const QUERIES: [&str; 10] = [
    "SELECT 1",
    "SELECT * FROM t",
    "INSERT INTO t VALUES ($1, $2)",
    "BEGIN; SELECT 1",
    "COMMIT",
    "ROLLBACK",
    "SELECT repeat('x', 20000)",
    "DECLARE c CURSOR FOR SELECT * FROM t",
    "SELECT $1::int + $2::bigint",
    "",
];

/// A message as a client might send it, before it is damaged.
fn sound(random: &mut Random) -> Vec<u8> {
    let name = random.pick(&["", "a", "b"]);
    let query = random.pick(&QUERIES);
    let text = |parts: &[&str]| -> Vec<u8> {
        parts.iter().flat_map(|part| part.bytes().chain([0])).collect()
    };
    let (kind, body) = match random.below(12) {
        0..=2 => (b'Q', text(&[query])),
        3 => (b'P', [text(&[name, query]), vec![0, 0]].concat()),
        4 => {
            let parameters = b"\0\x01\0\x01\0\x02\0\0\0\x04\0\0\0\x07\xff\xff\xff\xff\0\0";
            (b'B', [text(&[name, name]), parameters.to_vec()].concat())
        }
        5 => (b'B', [text(&[name, name]), vec![0; 6]].concat()),
        6 => (b'D', [b"SP"[random.below(2)..][..1].to_vec(), text(&[name])].concat()),
        7 => (b'E', [text(&[name]), (random.below(4) as u32).to_be_bytes().to_vec()].concat()),
        8 => (b'C', [b"SP"[random.below(2)..][..1].to_vec(), text(&[name])].concat()),
        9 => (b'H', Vec::new()),
        10 => (random.pick(&[&b"dcfp"[..]])[random.below(4)], text(&[query])),
        _ => (b'S', Vec::new()),
    };
    message(kind, &body)
}

/// Damages one of three messages: a byte, the length, the end.
fn damaged(random: &mut Random) -> Vec<u8> {
    let mut bytes = sound(random);
    let at = random.below(bytes.len());
    match random.below(9) {
        0 => bytes[at] = random.next() as u8,
        1 => bytes.truncate(at),
        2 => {
            let lengths = [0, 1, 3, 4, 5, 100, 0x7fff_ffff, 0x8000_0000, 0xffff_ffffu32];
            let length = lengths[random.below(9)];
            bytes[1..5].copy_from_slice(&length.to_be_bytes());
        }
        _ => {}
    }
    bytes
}

/// All that a client of one connection sends.
fn conversation(random: &mut Random) -> Vec<u8> {
    let mut bytes = match random.below(8) {
        0 => Vec::new(),
        1 => (0..random.below(40)).map(|_| random.next() as u8).collect(),
        2 => b"\0\0\0\x08\x04\xd2\x16\x2f".to_vec(),
        3 => b"\0\0\0\x10\x04\xd2\x16\x2e\0\0\0\x01\0\0\0\0".to_vec(),
        4 => {
            let mut packet =
                startup(random.below(4) as u8, &[("user", "anna"), ("options", "-c x")]);
            let at = random.below(packet.len());
            packet[at] = random.next() as u8;
            packet
        }
        // Asked for a password.
        5 => startup(0, &[("user", "anna")]),
        _ => startup(2 * random.below(2) as u8, &[("user", "guest")]),
    };
    for _ in 0..random.below(20) {
        bytes.extend(damaged(random));
    }
    bytes
}

/// Checks that what the server sent is a row of whole messages, the last of which may be cut off.
fn check_answers(mut bytes: &[u8], context: &str) {
    // Requests for encryption are answered by one byte.
    while let Some(rest) = bytes.strip_prefix(b"N")
        && rest.first().is_none_or(|byte| *byte != 0)
    {
        bytes = rest;
    }
    while bytes.len() >= 5 {
        assert!(ANSWERS.contains(&bytes[0]), "{context}: message {:?}", char::from(bytes[0]));
        let length = u32::from_be_bytes(bytes[1..5].try_into().unwrap()) as usize;
        assert!((4..1 << 24).contains(&length), "{context}: length {length}");
        bytes = bytes.get(1 + length..).unwrap_or_default();
    }
}

fn talk(server: &Server, seed: u64) {
    let mut random = Random::new(seed);
    let sent = conversation(&mut random);
    let socket = TcpStream::connect(server.address().unwrap()).unwrap();
    // A server that neither answers nor closes fails the test.
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut writer = socket.try_clone().unwrap();
    let sender = std::thread::spawn(move || {
        // The server may close before it has read everything.
        let _ = writer.write_all(&sent);
        let _ = writer.shutdown(Shutdown::Write);
    });
    let (mut socket, mut answer) = (socket, Vec::new());
    match socket.read_to_end(&mut answer) {
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
        Err(error) => panic!("seed {seed}: {error}"),
    }
    sender.join().unwrap();
    check_answers(&answer, &format!("seed {seed}"));
}

#[test]
fn hostile_clients_get_legal_answers_and_harm_no_other() {
    // A session that panics ends, but it must not.
    static PANICS: AtomicUsize = AtomicUsize::new(0);
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |information| {
        PANICS.fetch_add(1, Ordering::SeqCst);
        hook(information);
    }));
    let rules = "host all guest 127.0.0.1 trust\nhost all all 127.0.0.1 scram-sha-256";
    let access = with_anna().rules(AccessRules::parse(rules).unwrap());
    let options = ServerOptions::new().access(access).max_message_bytes(1 << 20);
    let (database, server) = serve(options);
    database.connect().execute_script("CREATE TABLE t (id INT PRIMARY KEY, x TEXT)").unwrap();
    let connections = number_in("QUICKBEAM_HOSTILE_CONNECTIONS").unwrap_or(CONNECTIONS);
    let first = number_in("QUICKBEAM_SEED").unwrap_or(1);
    for seed in first..first + connections {
        talk(&server, seed);
        if seed % 100 == 0 {
            let port = server.address().unwrap().port();
            let text = format!("host=127.0.0.1 port={port} user=guest");
            let mut client = Client::connect(&text, NoTls).unwrap();
            assert_eq!(client.query_one("SELECT 7", &[]).unwrap().get::<_, i32>(0), 7);
        }
    }
    // Every session has left the list.
    assert!((0..100_000).any(|_| {
        std::thread::yield_now();
        server.sessions() == 0
    }));
    server.stop();
    assert_eq!(PANICS.load(Ordering::SeqCst), 0);
}
