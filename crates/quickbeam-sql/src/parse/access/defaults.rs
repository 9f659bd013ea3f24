//! ALTER DEFAULT PRIVILEGES.

use smol_str::SmolStr;

use super::{AccessStatement, RoleName};
use crate::error::{Result, SqlError, SqlState};
use crate::parse::command::token_cursor::TokenCursor;

/// The kinds of objects whose first rights can be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultKind {
    /// Tables and views.
    Tables,
    /// Sequences.
    Sequences,
    /// Functions and procedures.
    Functions,
    /// Schemas.
    Schemas,
}

/// ALTER DEFAULT PRIVILEGES.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultsChange {
    /// The roles whose objects are meant; empty: the current role.
    pub roles: Vec<RoleName>,
    /// The schemas; empty: all.
    pub schemas: Vec<SmolStr>,
    /// GRANT.
    pub grants: bool,
    /// The privileges, each with its columns; empty: ALL.
    pub privileges: Vec<(String, Vec<SmolStr>)>,
    /// The objects.
    pub kind: DefaultKind,
    /// Who gains or loses the privileges.
    pub grantees: Vec<RoleName>,
    /// WITH GRANT OPTION, or GRANT OPTION FOR.
    pub option: bool,
    /// CASCADE.
    pub cascade: bool,
}

impl TokenCursor<'_> {
    /// Reads ALTER DEFAULT PRIVILEGES after DEFAULT.
    pub(super) fn default_rights(&mut self) -> Result<AccessStatement> {
        self.expect("PRIVILEGES")?;
        let (mut roles, mut schemas) = (Vec::new(), Vec::new());
        loop {
            if self.takes("FOR") {
                if !self.takes("ROLE") {
                    self.expect("USER")?;
                }
                roles = self.role_names()?;
            } else if self.takes("IN") {
                self.expect("SCHEMA")?;
                schemas = self.names()?;
            } else {
                break;
            }
        }
        let grants = self.takes("GRANT");
        let mut option = false;
        if !grants {
            self.expect("REVOKE")?;
            option = self.takes_all(&["GRANT", "OPTION", "FOR"]);
        }
        let (privileges, all_columns) = self.privilege_list()?;
        if !all_columns.is_empty() {
            let message = "default privileges cannot be set for columns";
            return Err(SqlError::new(SqlState::InvalidGrantOperation, message));
        }
        self.expect("ON")?;
        let kind = self.default_kind()?;
        self.expect(if grants { "TO" } else { "FROM" })?;
        let grantees = self.role_names()?;
        let mut cascade = false;
        if grants {
            option = self.takes_all(&["WITH", "GRANT", "OPTION"]);
        } else {
            cascade = self.cascade();
        }
        Ok(AccessStatement::Defaults(DefaultsChange {
            roles,
            schemas,
            grants,
            privileges,
            kind,
            grantees,
            option,
            cascade,
        }))
    }

    fn default_kind(&mut self) -> Result<DefaultKind> {
        for (word, kind) in [
            ("TABLES", DefaultKind::Tables),
            ("SEQUENCES", DefaultKind::Sequences),
            ("FUNCTIONS", DefaultKind::Functions),
            ("ROUTINES", DefaultKind::Functions),
            ("SCHEMAS", DefaultKind::Schemas),
        ] {
            if self.takes(word) {
                return Ok(kind);
            }
        }
        if self.takes("TYPES") {
            return Err(SqlError::unsupported("default privileges on types"));
        }
        Err(self.error())
    }
}
