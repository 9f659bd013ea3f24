//! FETCH, MOVE and CLOSE of portals that the protocol has made. Those of cursors that DECLARE has
//! made are statements of SQL.

use quickbeam_sql::PortalCommand;

use super::statement::{Done, io};
use super::{Session, in_failed_transaction, no_portal};
use crate::protocol::failure::Failure;
use crate::protocol::rows::{Formats, description};

/// Whether the columns of a result are described first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Description {
    /// They are.
    Sent,
    /// The client has asked for them before.
    Known,
}

impl Session<'_> {
    /// Returns the command if it is about a portal of this session.
    pub(super) fn portal_command(&self, text: &str) -> Result<Option<PortalCommand>, Failure> {
        if self.portals.is_empty() {
            return Ok(None);
        }
        let command = PortalCommand::of(text);
        let command = command.filter(|command| self.portals.contains_key(command.name()));
        if command.is_some() && self.has_failed {
            return Err(in_failed_transaction());
        }
        Ok(command)
    }

    /// Runs a command about a portal, with the formats of the rows that it sends. `describes`: the
    /// rows are described first.
    pub(super) fn run_portal_command(
        &mut self,
        command: &PortalCommand,
        formats: Option<&Formats>,
        columns: Description,
    ) -> Done<()> {
        let describes = columns == Description::Sent;
        let name = command.name();
        match command {
            PortalCommand::Close(_) => {
                self.portals.remove(name);
                self.complete("CLOSE CURSOR".to_owned())
            }
            PortalCommand::Backward(_) => {
                let message = "cursor can only scan forward";
                Err(Failure::new("55000", message).into())
            }
            PortalCommand::Fetch { count, returns_rows, .. } => {
                let mut portal = self.portals.remove(name).ok_or_else(|| no_portal(name))?;
                let formats = formats.filter(|_| *returns_rows);
                if let Some(formats) = formats.filter(|_| describes) {
                    let described = description(portal.prepared.borrow().columns(), formats);
                    io(self.wire.send(&described))?;
                }
                let limit = count.map_or(0, |count| usize::try_from(count).unwrap_or(usize::MAX));
                let passed = portal.pass(self.connection, &mut self.wire, limit, formats);
                self.portals.insert(name.to_owned(), portal);
                let word = if *returns_rows { "FETCH" } else { "MOVE" };
                self.complete(format!("{word} {}", passed?))
            }
        }
    }
}
