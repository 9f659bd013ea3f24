//! What a client hears beside answers: notices, notifications, changed settings.
//!
//! - EVENTS-1: notices come before the end of the statement that left them.
//! - EVENTS-2: notifications come outside transactions only, at once if the client is idle.

use std::io;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use pgwire::messages::PgWireBackendMessage as Backend;
use pgwire::messages::response::{NoticeResponse, NotificationResponse};
use quickbeam_sql::Notice;

use super::Session;
use crate::protocol::failure::notice_fields;

/// Both ends of the stream that tells a waiting session of notifications.
pub(super) struct Bell {
    receiver: UnixStream,
}

impl Session<'_> {
    /// Sends the notices of the last statement (EVENTS-1).
    pub(super) fn send_notices(&mut self) -> io::Result<()> {
        let notices = self.connection.take_notices();
        notices.iter().try_for_each(|notice| self.send_notice(notice))
    }

    /// Sends a notice that the server leaves itself.
    pub(super) fn warn(&mut self, code: &'static str, message: &str) -> io::Result<()> {
        let (severity, message) = ("WARNING", message.to_owned());
        self.send_notice(&Notice { severity, code, message, detail: None, hint: None })
    }

    fn send_notice(&mut self, notice: &Notice) -> io::Result<()> {
        let least = self.connection.setting("client_min_messages").ok().flatten();
        let is_heard = match least.as_deref() {
            _ if notice.severity == "INFO" => true,
            Some("error") => false,
            Some("warning") => notice.severity == "WARNING",
            _ => true,
        };
        if !is_heard {
            return Ok(());
        }
        let fields = notice_fields(notice);
        self.wire.send(&Backend::NoticeResponse(NoticeResponse::new(fields)))
    }

    /// Sends the notifications that have arrived, outside transactions (EVENTS-2).
    pub(super) fn send_notifications(&mut self) -> io::Result<()> {
        if self.connection.in_transaction() || (self.bell.is_none() && !self.is_new_listener()?) {
            return Ok(());
        }
        for notification in self.connection.take_notifications() {
            let (channel, payload) = (notification.channel.into(), notification.payload.as_ref());
            let message =
                NotificationResponse::new(notification.session, channel, payload.to_owned());
            self.wire.send(&Backend::NotificationResponse(message))?;
        }
        Ok(())
    }

    /// Sets the bell up when the session begins to listen.
    fn is_new_listener(&mut self) -> io::Result<bool> {
        if !self.connection.is_listening() {
            return Ok(false);
        }
        let (sender, receiver) = UnixStream::pair()?;
        sender.set_nonblocking(true)?;
        receiver.set_nonblocking(true)?;
        // A full stream has rung already.
        self.connection.on_notification(move || drop(io::Write::write(&mut &sender, &[0])));
        self.bell = Some(Bell { receiver });
        Ok(true)
    }

    /// Waits until the client sends something, and hands it notifications meanwhile.
    pub(super) fn wait_for_client(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        while let Some(bell) = &self.bell {
            if self.connection.in_transaction() || self.wire.has_input()? {
                return Ok(());
            }
            self.wire.flush()?;
            if self.wire.socket()?.wait_beside(&bell.receiver, deadline)? {
                return Ok(());
            }
            let mut rung = [0; 64];
            while matches!(io::Read::read(&mut &bell.receiver, &mut rung), Ok(1..)) {}
            self.send_notifications()?;
            self.wire.flush()?;
        }
        Ok(())
    }
}
