//! Notifications and notices, as an application fetches them.

use super::connection::Connection;
use crate::session::events::{Notice, Notification};

impl Connection {
    /// Returns the notifications that have arrived since the last call.
    ///
    /// ```
    /// # use quickbeam_sql::SqlDatabase;
    /// # let database = SqlDatabase::open_in_memory(Default::default())?;
    /// let (listener, other) = (database.connect(), database.connect());
    /// listener.execute("LISTEN news", &[])?;
    /// other.execute("NOTIFY news, 'hello'", &[])?;
    /// let [notification] = &listener.take_notifications()[..] else { panic!("one") };
    /// assert_eq!((&notification.channel[..], &notification.payload[..]), ("news", "hello"));
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    #[must_use]
    pub fn take_notifications(&self) -> Vec<Notification> {
        let mut waiting = self.session.events.mailbox.0.lock();
        waiting.bytes = 0;
        std::mem::take(&mut waiting.queue).into()
    }

    /// Sets what is called, on the thread that commits, when a notification has arrived.
    pub fn on_notification(&self, wake: impl Fn() + Send + 'static) {
        self.session.events.mailbox.0.lock().wake = Some(Box::new(wake));
    }

    /// Returns whether the session listens on a channel.
    #[must_use]
    pub fn is_listening(&self) -> bool {
        !self.session.events.channels.borrow().is_empty()
    }

    /// Lets statements leave notices, which [`take_notices`](Self::take_notices) returns.
    pub fn keep_notices(&self) {
        self.session.events.keeps_notices.set(true);
    }

    /// Returns the notices of the statements since the last call.
    #[must_use]
    pub fn take_notices(&self) -> Vec<Notice> {
        std::mem::take(&mut *self.session.events.notices.borrow_mut())
    }
}
