//! Roles, rights and owners: the statements that change them, and what changes of the catalog need.
//!
//! - ACCESS-1: a session without a role of its own is the bootstrap role, a superuser. Nothing is
//!   checked for superusers, and what is checked is checked when a statement is compiled or begins
//!   a change of the catalog, never for each row.
//! - ACCESS-2: a plan belongs to the role that it was made for: the role is part of the plan key.

mod defaults;
mod grants;
mod needs;
mod owners;
mod roles;
mod scram;
mod settings;

use std::sync::Arc;

use quickbeam::{ReadTransaction, Transaction};
use smol_str::SmolStr;

use crate::catalog::rights::{CHECKPOINT, MembershipUse};
use crate::catalog::{BOOTSTRAP, CatalogSnapshot, ObjectId, Routine};
use crate::compile::CompileContext;
use crate::ddl::CatalogEdit;
use crate::error::{Result, SqlError, SqlState};
use crate::parse::{AccessStatement, Name, RoleName};
use crate::session::Session;

pub(crate) use needs::{check_change, check_create_in};
pub(crate) use owners::own_new;

/// A statement about roles, rights or owners under way.
struct AccessChange<'c> {
    session: &'c Session,
    edit: CatalogEdit<'c>,
    /// The role that makes the change.
    user: ObjectId,
    session_user: ObjectId,
    look: &'c CompileContext<'c>,
}

impl AccessChange<'_> {
    /// Returns the function or procedure that a statement names.
    fn routine(&self, name: &Name, types: Option<&[String]>) -> Result<Arc<Routine>> {
        self.session.known_routine("ROUTINE", name, types, self.look)
    }
}

impl Session {
    /// Executes a statement about roles, rights or owners.
    pub fn change_access(
        &self,
        statement: &AccessStatement,
        look: &CompileContext<'_>,
    ) -> Result<()> {
        let change = AccessChange {
            session: self,
            edit: CatalogEdit::begin(look.catalog, look.transaction)?,
            user: look.user,
            session_user: self.session_user.get(),
            look,
        };
        match statement {
            AccessStatement::CreateRole(name, options) => change.create_role(name, options),
            AccessStatement::AlterRole(role, options) => change.alter_role(role, options),
            AccessStatement::RenameRole(from, to) => change.rename_role(from, to),
            AccessStatement::Settings(settings) => change.change_settings(settings),
            AccessStatement::DropRoles(roles, if_exists) => change.drop_roles(roles, *if_exists),
            AccessStatement::Membership(membership) => change.membership(membership),
            AccessStatement::Privileges(privileges) => change.privileges(privileges),
            AccessStatement::Defaults(defaults) => change.change_defaults(defaults),
            AccessStatement::Owner(object, role) => change.owner_to(object, role),
            AccessStatement::Reassign(from, to) => change.reassign(from, to),
            AccessStatement::DropOwned(roles, cascade) => change.drop_owned(roles, *cascade),
        }
    }

    /// Calls `with` with the catalog that the session sees.
    fn with_snapshot<T>(&self, with: impl FnOnce(&CatalogSnapshot) -> Result<T>) -> Result<T> {
        let catalog = &self.database.catalog;
        let see = |transaction: &Transaction| catalog.snapshot(transaction);
        let snapshot = if self.in_transaction() {
            self.make_begun()?;
            see(&*self.begun()?)?
        } else {
            see(self.database.environment.begin_read()?.as_transaction())?
        };
        with(&snapshot)
    }

    /// Makes a role the one that the session was opened for, and takes the settings with which its
    /// sessions begin.
    pub fn log_in(&self, name: &str) -> Result<()> {
        let role = self.with_snapshot(|snapshot| snapshot.known_role(name))?;
        self.known_roles.borrow_mut().insert(name.into(), role);
        self.login_role.set(role);
        self.note_roles();
        self.note_plan_key();
        self.take_first_settings(role)
    }

    /// Checks the role that SET ROLE or SET SESSION AUTHORIZATION names, and keeps its number.
    pub fn check_role_setting(&self, setting: &str, name: &str) -> Result<()> {
        let (login, session) = (self.login_role.get(), self.session_user.get());
        let role = self.with_snapshot(|snapshot| {
            let role = snapshot.role_named(name).ok_or_else(|| {
                let message = format!("role \"{name}\" does not exist");
                SqlError::new(SqlState::InvalidParameterValue, message)
            })?;
            let denied =
                |message: String| Err(SqlError::new(SqlState::InsufficientPrivilege, message));
            if setting == "role" {
                if !snapshot.is_member(session, role) {
                    return denied(format!("permission denied to set role \"{name}\""));
                }
            } else if role != login && !snapshot.is_superuser(login) {
                let message = "permission denied to set session authorization";
                return denied(message.to_owned());
            }
            Ok(role)
        })?;
        self.known_roles.borrow_mut().insert(name.into(), role);
        Ok(())
    }

    /// Takes over the roles that the settings name.
    pub fn note_roles(&self) {
        let (session, role) = {
            let variables = self.variables.borrow();
            (variables.get("session_authorization"), variables.get("role"))
        };
        let known = self.known_roles.borrow();
        let number = |name: &str| known.get(name).copied();
        let session_user = session.and_then(|name| number(&name));
        let session_user = session_user.unwrap_or(self.login_role.get());
        let role = role.filter(|name| **name != *"none").and_then(|name| number(&name));
        let role = self.definer.get().unwrap_or_else(|| role.unwrap_or(session_user));
        if (session_user, role) != (self.session_user.get(), self.role.get()) {
            self.session_user.set(session_user);
            self.role.set(role);
            self.note_path_number();
        }
    }

    /// Returns the name of the session's role, or of the one that it was opened for.
    pub fn role_name(&self, of_session: bool) -> Result<SmolStr> {
        let role = if of_session { self.session_user.get() } else { self.role.get() };
        if role == BOOTSTRAP {
            return Ok(SmolStr::new_static(crate::catalog::BOOTSTRAP_NAME));
        }
        self.with_snapshot(|snapshot| Ok(snapshot.role_name(role)))
    }

    /// Whether the session's role may execute CHECKPOINT.
    pub fn may_checkpoint(&self) -> Result<bool> {
        let role = self.role.get();
        let is_member = |snapshot: &CatalogSnapshot| {
            Ok(snapshot.roles_of(role, MembershipUse::Inherited).contains(&CHECKPOINT))
        };
        Ok(self.is_superuser()? || self.with_snapshot(is_member)?)
    }

    /// Whether the session's role is a superuser.
    pub fn is_superuser(&self) -> Result<bool> {
        let role = self.role.get();
        Ok(role == BOOTSTRAP || self.with_snapshot(|snapshot| Ok(snapshot.is_superuser(role)))?)
    }
}

impl AccessChange<'_> {
    fn before(&self) -> &CatalogSnapshot {
        &self.edit.before
    }

    fn is_superuser(&self) -> bool {
        self.before().is_superuser(self.user)
    }

    /// Returns the role that a statement names.
    fn role(&self, role: &RoleName) -> Result<ObjectId> {
        match role {
            RoleName::Named(name) => self.before().known_role(name),
            RoleName::Current => Ok(self.user),
            RoleName::Session => Ok(self.session_user),
            RoleName::Public => Err(crate::catalog::rights::no_role("public")),
        }
    }

    /// Returns the role that gains or loses rights; `None`: PUBLIC.
    fn grantee(&self, role: &RoleName) -> Result<Option<ObjectId>> {
        match role {
            RoleName::Public => Ok(None),
            role => self.role(role).map(Some),
        }
    }
}

#[cold]
fn insufficient(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::InsufficientPrivilege, message.into())
}
