//! LISTEN and NOTIFY, and notices: what a session hears beside the results of its statements.
//!
//! - EVENTS-1: LISTEN, UNLISTEN and NOTIFY take effect when their transaction has committed, in
//!   order. A rollback forgets them, also one to a savepoint.
//! - EVENTS-2: a commit that notifies fails while a session that listens keeps more than
//!   [`MAILBOX_BYTES`] of notifications.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use quickbeam::invariant;
use smol_str::SmolStr;

use super::Session;
use crate::bind::{CatalogChange, ObjectKind, TableChange};
use crate::catalog::{CatalogSnapshot, Relation, SequenceChanges, Table, split_lookup_name};
use crate::error::{Result, SqlError, SqlState};
use crate::parse::ColumnAction;

/// How a notice is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoticeLevel {
    /// WARNING
    Warning,
    /// NOTICE
    Notice,
    /// INFO
    Info,
}

impl NoticeLevel {
    fn severity(self) -> &'static str {
        match self {
            NoticeLevel::Warning => "WARNING",
            NoticeLevel::Notice => "NOTICE",
            NoticeLevel::Info => "INFO",
        }
    }
}

/// Bytes of notifications that wait for a session.
const MAILBOX_BYTES: usize = 64 << 20;

/// Bytes of a payload, and of a channel's name.
const PAYLOAD_BYTES: usize = 7_999;
const CHANNEL_BYTES: usize = 63;

/// What NOTIFY said to a session that listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The number of the session that executed NOTIFY.
    pub session: i32,
    /// The channel.
    pub channel: SmolStr,
    /// What was said.
    pub payload: Arc<str>,
}

impl Notification {
    fn bytes(&self) -> usize {
        size_of::<Notification>() + self.payload.len()
    }
}

/// A message of a statement that did not fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// WARNING, NOTICE or INFO.
    pub severity: &'static str,
    /// Its SQLSTATE.
    pub code: &'static str,
    /// The text.
    pub message: String,
    /// More about it.
    pub detail: Option<String>,
    /// What can be done about it.
    pub hint: Option<String>,
}

/// The notifications that wait for a session.
#[derive(Default)]
pub(crate) struct Mailbox(pub(crate) Mutex<Waiting>);

#[derive(Default)]
pub(crate) struct Waiting {
    pub queue: VecDeque<Notification>,
    pub bytes: usize,
    pub wake: Option<Box<dyn Fn() + Send>>,
}

impl fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailbox").field("waiting", &self.0.lock().queue.len()).finish()
    }
}

impl Mailbox {
    fn deliver(&self, notification: &Notification) {
        let mut waiting = self.0.lock();
        waiting.bytes += notification.bytes();
        waiting.queue.push_back(notification.clone());
        invariant!(
            EVENTS_2,
            waiting.bytes == waiting.queue.iter().map(Notification::bytes).sum::<usize>(),
            "{} bytes are counted",
            waiting.bytes
        );
        if let Some(wake) = &waiting.wake {
            wake();
        }
    }
}

/// The sessions that listen, by channel.
#[derive(Debug, Default)]
pub(crate) struct Channels(Mutex<ListenersByChannel>);

/// The numbers and mailboxes of the sessions that listen on each channel.
type ListenersByChannel = HashMap<SmolStr, Vec<(i32, Arc<Mailbox>)>>;

/// What takes effect when a transaction has committed (EVENTS-1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Listen(SmolStr),
    /// `None`: from all channels.
    Unlisten(Option<SmolStr>),
    Notify(SmolStr, Arc<str>),
}

/// The events and notices of a session.
#[derive(Default)]
pub(crate) struct Events {
    pending: RefCell<Vec<Event>>,
    pub mailbox: Arc<Mailbox>,
    pub channels: RefCell<BTreeSet<SmolStr>>,
    pub keeps_notices: Cell<bool>,
    pub notices: RefCell<Vec<Notice>>,
}

impl Events {
    #[inline]
    pub fn pending(&self) -> usize {
        self.pending.borrow().len()
    }

    /// Forgets the events after the first `count`.
    pub fn truncate(&self, count: usize) {
        self.pending.borrow_mut().truncate(count);
    }

    fn push(&self, event: Event) {
        let mut pending = self.pending.borrow_mut();
        // The same notification twice in a transaction is delivered once.
        if !matches!(event, Event::Notify(..)) || !pending.contains(&event) {
            pending.push(event);
        }
    }
}

#[cold]
fn invalid(message: &str) -> SqlError {
    SqlError::new(SqlState::InvalidParameterValue, message)
}

impl Session {
    /// LISTEN, UNLISTEN or NOTIFY.
    pub fn event(&self, event: Event) -> Result<()> {
        if let Event::Notify(channel, payload) = &event {
            if channel.is_empty() {
                return Err(invalid("channel name cannot be empty"));
            }
            if channel.len() > CHANNEL_BYTES {
                return Err(invalid("channel name too long"));
            }
            if payload.len() > PAYLOAD_BYTES {
                return Err(invalid("payload string too long"));
            }
        }
        self.events.push(event);
        Ok(())
    }

    /// LISTEN, UNLISTEN or NOTIFY as a statement.
    pub fn command_event(&self, event: Event) -> Result<()> {
        self.event(event)?;
        if !self.in_transaction() {
            self.check_events().inspect_err(|_| self.finish_events(false))?;
            self.finish_events(true);
        }
        Ok(())
    }

    /// Fails if those who listen have no room for the transaction's notifications (EVENTS-2).
    #[inline]
    pub fn check_events(&self) -> Result<()> {
        if self.events.pending() == 0 { Ok(()) } else { self.check_mailboxes() }
    }

    #[cold]
    fn check_mailboxes(&self) -> Result<()> {
        let channels = self.database.shared.channels.0.lock();
        for event in &*self.events.pending.borrow() {
            let Event::Notify(channel, _) = event else { continue };
            let listeners = channels.get(channel).into_iter().flatten();
            for (_, mailbox) in listeners {
                if mailbox.0.lock().bytes > MAILBOX_BYTES {
                    let message = "too many notifications wait for a session that listens";
                    return Err(SqlError::new(SqlState::ProgramLimitExceeded, message));
                }
            }
        }
        Ok(())
    }

    /// Lets the events of a transaction take effect if it has committed, or forgets them
    /// (EVENTS-1).
    #[inline]
    pub fn finish_events(&self, is_committed: bool) {
        if self.events.pending() > 0 {
            self.finish_pending(is_committed);
        }
    }

    #[cold]
    fn finish_pending(&self, is_committed: bool) {
        let pending = std::mem::take(&mut *self.events.pending.borrow_mut());
        if !is_committed {
            return;
        }
        let mut channels = self.database.shared.channels.0.lock();
        let mut own = self.events.channels.borrow_mut();
        for event in pending {
            match event {
                Event::Listen(channel) => {
                    if own.insert(channel.clone()) {
                        let listener = (self.number, self.events.mailbox.clone());
                        channels.entry(channel).or_default().push(listener);
                    }
                }
                Event::Unlisten(channel) => {
                    own.retain(|known| {
                        let stays = channel.as_ref().is_some_and(|channel| channel != known);
                        if !stays {
                            leave(&mut channels, known, self.number);
                        }
                        stays
                    });
                }
                Event::Notify(channel, payload) => {
                    let notification = Notification { session: self.number, channel, payload };
                    let listeners = channels.get(&notification.channel).into_iter().flatten();
                    listeners.for_each(|(_, mailbox)| mailbox.deliver(&notification));
                }
            }
        }
    }

    /// Stops to listen, since the session ends.
    pub fn leave_channels(&self) {
        let own = std::mem::take(&mut *self.events.channels.borrow_mut());
        if !own.is_empty() {
            let mut channels = self.database.shared.channels.0.lock();
            own.iter().for_each(|channel| leave(&mut channels, channel, self.number));
        }
    }

    /// Leaves a notice, if anybody fetches it.
    pub fn notice(&self, level: NoticeLevel, state: SqlState, message: impl FnOnce() -> String) {
        if self.events.keeps_notices.get() {
            let (severity, code, message) = (level.severity(), state.code(), message());
            self.leave_notice(Notice { severity, code, message, detail: None, hint: None });
        }
    }

    /// Leaves what RAISE says, if anybody fetches it.
    pub fn notice_raised(&self, level: NoticeLevel, error: &SqlError) {
        let text = |text: Option<&str>| text.map(str::to_owned);
        self.leave_notice(Notice {
            severity: level.severity(),
            code: error.code(),
            message: error.message().to_owned(),
            detail: text(error.detail()),
            hint: text(error.hint()),
        });
    }

    /// Leaves a notice with a detail, if anybody fetches it.
    pub fn notice_detailed(&self, message: String, detail: Option<String>) {
        let level = NoticeLevel::Notice;
        let (severity, code) = (level.severity(), SqlState::SuccessfulCompletion.code());
        self.leave_notice(Notice { severity, code, message, detail, hint: None });
    }

    /// Whether notices are kept for the program, which fetches them.
    pub fn keeps_notices(&self) -> bool {
        self.events.keeps_notices.get()
    }

    fn leave_notice(&self, notice: Notice) {
        if self.events.keeps_notices.get() {
            self.events.notices.borrow_mut().push(notice);
        }
    }

    /// Leaves notices for what a change of the catalog passes over.
    pub fn notice_skipped(&self, change: &CatalogChange, snapshot: &CatalogSnapshot) {
        if !self.events.keeps_notices.get() {
            return;
        }
        let is_there = |name: &str| snapshot.relation(name).is_some();
        let exists = |name: &str| {
            if is_there(name) {
                let message = || {
                    format!("relation \"{}\" already exists, skipping", split_lookup_name(name).1)
                };
                self.notice(NoticeLevel::Notice, SqlState::DuplicateTable, message);
            }
        };
        match change {
            CatalogChange::CreateTable(table, true) => exists(&table.name),
            CatalogChange::CreateSequence(name, _, true) => exists(name),
            CatalogChange::CreateIndex(index, true) => {
                index.name.iter().for_each(|name| exists(name));
            }
            CatalogChange::Drop(kind, names, true, _) => {
                let kind = match kind {
                    ObjectKind::Table => "table",
                    ObjectKind::View => "view",
                    ObjectKind::MaterializedView => "materialized view",
                    ObjectKind::Sequence => "sequence",
                    ObjectKind::Index => "index",
                };
                for name in names.iter().filter(|name| !is_there(name)) {
                    let schema = split_lookup_name(name).0;
                    let is_known = schema.is_empty() || snapshot.has_schema(&schema);
                    let message = || match is_known {
                        true => format!(
                            "{kind} \"{}\" does not exist, skipping",
                            split_lookup_name(name).1
                        ),
                        false => format!("schema \"{schema}\" does not exist, skipping"),
                    };
                    self.notice(NoticeLevel::Notice, SqlState::SuccessfulCompletion, message);
                }
            }
            CatalogChange::Alter(name, _, true)
            | CatalogChange::AlterView(name, _, true)
            | CatalogChange::AlterSequence(name, SequenceChanges { if_exists: true, .. })
                if !is_there(name) =>
            {
                let message = || {
                    format!("relation \"{}\" does not exist, skipping", split_lookup_name(name).1)
                };
                self.notice(NoticeLevel::Notice, SqlState::SuccessfulCompletion, message);
            }
            CatalogChange::CreateSchema(name, true, _) if snapshot.has_schema(name) => {
                let message = || format!("schema \"{name}\" already exists, skipping");
                self.notice(NoticeLevel::Notice, SqlState::DuplicateSchema, message);
            }
            CatalogChange::DropSchemas(names, true, _) => {
                for name in names.iter().filter(|name| !snapshot.has_schema(name)) {
                    let message = || format!("schema \"{name}\" does not exist, skipping");
                    self.notice(NoticeLevel::Notice, SqlState::SuccessfulCompletion, message);
                }
            }
            CatalogChange::Alter(name, changes, _) => {
                if let Some(Relation::Table(table)) = snapshot.relation(name) {
                    changes.iter().for_each(|change| self.notice_skipped_part(&table, change));
                }
            }
            _ => {}
        }
    }

    /// As [`notice_skipped`](Self::notice_skipped), of a part of ALTER TABLE.
    fn notice_skipped_part(&self, table: &Table, change: &TableChange) {
        let of = |what: &str, column: &SmolStr| {
            format!("column \"{column}\" of relation \"{}\" {what}, skipping", table.name)
        };
        let found = |name: &SmolStr| table.columns.iter().find(|column| column.name == *name);
        let mut state = SqlState::SuccessfulCompletion;
        let message = match change {
            TableChange::Existing(column) => {
                state = SqlState::DuplicateColumn;
                of("already exists", column)
            }
            TableChange::DropColumn(column, true, _) if found(column).is_none() => {
                of("does not exist", column)
            }
            TableChange::DropConstraint(name, true, _) if !table.has_constraint(name) => {
                let table = &table.name;
                format!("constraint \"{name}\" of relation \"{table}\" does not exist, skipping")
            }
            TableChange::Column(column, ColumnAction::DropIdentity(true))
                if found(column).is_some_and(|it| it.identity.is_none()) =>
            {
                of("is not an identity column", column)
            }
            TableChange::Column(column, ColumnAction::DropExpression(true))
                if found(column).is_some_and(|it| it.generated.is_none()) =>
            {
                of("is not a stored generated column", column)
            }
            _ => return,
        };
        self.notice(NoticeLevel::Notice, state, || message);
    }
}

fn leave(channels: &mut ListenersByChannel, channel: &SmolStr, session: i32) {
    if let Some(listeners) = channels.get_mut(channel) {
        listeners.retain(|(number, _)| *number != session);
        if listeners.is_empty() {
            channels.remove(channel);
        }
    }
}
