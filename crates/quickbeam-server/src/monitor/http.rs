//! An HTTP listener for GET: `/metrics`, and on loopback addresses the status page.
//!
//! - HTTP-1: a client holds the only thread for two seconds at most, and a request for 8 KiB.
//! - HTTP-2: statements and users are shown on loopback addresses only, to requests that name an
//!   address or `localhost`: a page of another site that the operator's browser has open cannot
//!   read them. (by test `status_page_is_for_this_machine`)

use std::io::{self, Read, Write};
use std::net::{IpAddr, TcpListener};
use std::time::{Duration, Instant};

use super::{Watched, metrics, status};
use crate::connection::socket::Socket;

const PAGE: &str = include_str!("status.html");

/// How long a client may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// The most bytes of a request.
const MAX_REQUEST: usize = 8 << 10;

/// Answers one client after the other until the server stops.
pub fn serve(server: &dyn Watched, listener: &TcpListener, is_near: bool) {
    while !server.is_stopping() {
        let Ok((stream, _)) = listener.accept() else {
            // It passes when descriptors are free again.
            std::thread::sleep(Duration::from_millis(10));
            continue;
        };
        // A client that goes away, or is too slow, gets nothing.
        let _ = Socket::tcp(stream).and_then(|socket| answer(server, socket, is_near));
    }
}

/// What a client is sent.
struct Page {
    status: &'static str,
    kind: &'static str,
    body: String,
}

impl Page {
    fn error(status: &'static str) -> Page {
        Page { status, kind: "text/plain; charset=utf-8", body: format!("{status}\n") }
    }
}

fn answer(server: &dyn Watched, mut socket: Socket, is_near: bool) -> io::Result<()> {
    socket.set_deadline(Instant::now().checked_add(PATIENCE))?;
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut buffer = [0; 1 << 10];
        let read = socket.read(&mut buffer)?;
        if read == 0 || request.len() + read > MAX_REQUEST {
            return Ok(());
        }
        request.extend_from_slice(&buffer[..read]);
    }
    let page = page(server, &String::from_utf8_lossy(&request), is_near);
    let head = format!(
        "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; script-src \
         'unsafe-inline'; connect-src 'self'\r\nX-Content-Type-Options: nosniff\r\n\
         Connection: close\r\n\r\n",
        page.status,
        page.kind,
        page.body.len()
    );
    socket.write_all(head.as_bytes())?;
    socket.write_all(page.body.as_bytes())?;
    socket.shut_down();
    Ok(())
}

fn page(server: &dyn Watched, request: &str, is_near: bool) -> Page {
    let mut lines = request.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    if words.next() != Some("GET") {
        return Page::error("405 Method Not Allowed");
    }
    let path = words.next().and_then(|path| path.split('?').next()).unwrap_or_default();
    let host = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("host").then(|| value.trim())
    });
    match path {
        "/metrics" => Page {
            status: "200 OK",
            kind: "text/plain; version=0.0.4; charset=utf-8",
            body: metrics::prometheus(server),
        },
        "/" | "/status.json" if !is_near || !host.is_some_and(is_own_name) => {
            Page::error("403 Forbidden")
        }
        "/" => Page { status: "200 OK", kind: "text/html; charset=utf-8", body: PAGE.to_owned() },
        "/status.json" => Page {
            status: "200 OK",
            kind: "application/json",
            body: status::status(server).to_string(),
        },
        _ => Page::error("404 Not Found"),
    }
}

/// Returns whether a Host header names this machine by an address, or as `localhost`.
fn is_own_name(host: &str) -> bool {
    let bare = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    bare.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok()
}
