//! CREATE, ALTER and DROP ROLE, and membership.

use std::sync::Arc;

use quickbeam::invariant;
use smol_str::SmolStr;

use super::scram::{is_verifier, verifier_of};
use super::{AccessChange, insufficient};
use crate::catalog::rights::{MembershipUse, is_predefined, no_role};
use crate::catalog::{BOOTSTRAP, Membership, ObjectId, Role};
use crate::error::{Result, SqlError, SqlState};
use crate::parse::{MembershipChange, RoleName, RoleOptions};
use crate::session::events::NoticeLevel;
use crate::types::{DataType, Value, parse_value};

impl AccessChange<'_> {
    /// CREATE ROLE.
    pub fn create_role(&self, name: &SmolStr, options: &RoleOptions) -> Result<()> {
        self.check_creator(options, "create")?;
        self.check_free(name)?;
        let mut role = Role::new(self.edit.new_id()?, name.clone());
        self.set_options(&mut role, options)?;
        for group in &options.member_of {
            let group = self.role(group)?;
            self.check_admin(group)?;
            role.member_of.push(Membership { role: group, grantor: self.user, admin: false });
        }
        let id = role.id;
        invariant!(ROLE_1, id != BOOTSTRAP, "the bootstrap role has no record");
        self.edit.put_role(role)?;
        let members = options.members.iter().map(|member| (member, false));
        for (member, admin) in members.chain(options.admins.iter().map(|member| (member, true))) {
            self.add_member(id, name, self.role(member)?, admin)?;
        }
        Ok(())
    }

    /// Checks that the user may give a role these options.
    fn check_creator(&self, options: &RoleOptions, what: &str) -> Result<()> {
        if self.is_superuser() {
            return Ok(());
        }
        let may_create = self.before().role(self.user).is_some_and(|role| role.create_role);
        if options.superuser == Some(true) {
            return Err(insufficient(format!("must be superuser to {what} superusers")));
        }
        if options.replication == Some(true) {
            return Err(insufficient(format!("must be superuser to {what} replication users")));
        }
        if options.bypass_rls == Some(true) {
            return Err(insufficient(format!("must be superuser to {what} bypassrls users")));
        }
        if !may_create {
            return Err(insufficient(format!("permission denied to {what} role")));
        }
        Ok(())
    }

    fn check_free(&self, name: &str) -> Result<()> {
        crate::ddl::check_name(name)?;
        if name.starts_with("pg_") || matches!(name, "public" | "none") {
            let message = format!("role name \"{name}\" is reserved");
            let error = SqlError::new(SqlState::ReservedName, message);
            return Err(match name.starts_with("pg_") {
                true => error.with_detail("Role names starting with \"pg_\" are reserved."),
                false => error,
            });
        }
        if self.before().role_named(name).is_some() {
            let message = format!("role \"{name}\" already exists");
            return Err(SqlError::new(SqlState::DuplicateObject, message));
        }
        Ok(())
    }

    fn set_options(&self, role: &mut Role, options: &RoleOptions) -> Result<()> {
        for (place, given) in [
            (&mut role.superuser, options.superuser),
            (&mut role.create_database, options.create_database),
            (&mut role.create_role, options.create_role),
            (&mut role.inherit, options.inherit),
            (&mut role.login, options.login),
            (&mut role.replication, options.replication),
            (&mut role.bypass_rls, options.bypass_rls),
        ] {
            *place = given.unwrap_or(*place);
        }
        if let Some(limit) = options.connection_limit {
            role.connection_limit =
                i32::try_from(limit).ok().filter(|it| *it >= -1).ok_or_else(|| {
                    let message = format!("invalid connection limit: {limit}");
                    SqlError::new(SqlState::InvalidParameterValue, message)
                })?;
        }
        if let Some(password) = &options.password {
            role.password = match password.as_deref() {
                None => None,
                Some("") => {
                    self.session.notice(
                        NoticeLevel::Notice,
                        SqlState::SuccessfulCompletion,
                        || "empty string is not a valid password, clearing password".to_owned(),
                    );
                    None
                }
                Some(verifier) if is_verifier(verifier) => Some(Arc::from(verifier)),
                Some(password) => Some(verifier_of(password)?.into()),
            };
        }
        if let Some(until) = &options.valid_until {
            role.valid_until =
                match parse_value(until, DataType::TimestampTz, &self.look.clock.settings())? {
                    Value::TimestampTz(moment) if moment != i64::MAX => Some(moment),
                    _ => None,
                };
        }
        Ok(())
    }

    /// Refuses a change of a predefined role.
    pub(super) fn check_alterable(&self, id: ObjectId) -> Result<()> {
        if !is_predefined(id) {
            return Ok(());
        }
        let message = format!("role name \"{}\" is reserved", self.before().role_name(id));
        let error = SqlError::new(SqlState::ReservedName, message);
        Err(error.with_detail("Cannot alter reserved roles."))
    }

    /// A stored role, to be changed.
    fn stored(&self, id: ObjectId) -> Result<Role> {
        match self.before().role(id) {
            Some(role) => Ok((**role).clone()),
            None if id == BOOTSTRAP => Err(SqlError::unsupported("a change of the bootstrap role")),
            None => Err(no_role(&self.before().role_name(id))),
        }
    }

    /// ALTER ROLE.
    pub fn alter_role(&self, role: &RoleName, options: &RoleOptions) -> Result<()> {
        let id = self.role(role)?;
        self.check_alterable(id)?;
        let own_password = id == self.user
            && RoleOptions { password: options.password.clone(), ..RoleOptions::default() }
                == *options;
        if !self.is_superuser() && !own_password {
            self.check_creator(options, "alter")?;
            if self.before().is_superuser(id) {
                let message =
                    "must be superuser to alter superuser roles or change superuser attribute";
                return Err(insufficient(message));
            }
        }
        let mut role = self.stored(id)?;
        self.set_options(&mut role, options)?;
        self.edit.put_role(role)
    }

    /// ALTER ROLE … RENAME TO.
    pub fn rename_role(&self, from: &str, to: &SmolStr) -> Result<()> {
        let id = self.before().known_role(from)?;
        self.check_creator(&RoleOptions::default(), "rename")?;
        if self.before().is_superuser(id) && !self.is_superuser() {
            return Err(insufficient("must be superuser to rename superusers"));
        }
        if id == self.session_user {
            return Err(SqlError::unsupported("session user cannot be renamed"));
        }
        if is_predefined(id) {
            return self.check_free(from);
        }
        self.check_free(to)?;
        self.edit.put_role(Role { name: to.clone(), ..self.stored(id)? })
    }

    /// DROP ROLE.
    pub fn drop_roles(&self, roles: &[RoleName], if_exists: bool) -> Result<()> {
        self.check_creator(&RoleOptions::default(), "drop")?;
        let mut gone = Vec::new();
        for role in roles {
            let RoleName::Named(name) = role else {
                let message = "cannot use special role specifier in DROP ROLE";
                return Err(SqlError::new(SqlState::InvalidParameterValue, message));
            };
            let Some(id) = self.before().role_named(name) else {
                if if_exists {
                    self.session.notice(
                        NoticeLevel::Notice,
                        SqlState::SuccessfulCompletion,
                        || format!("role \"{name}\" does not exist, skipping"),
                    );
                    continue;
                }
                return Err(no_role(name));
            };
            self.check_droppable(id, name)?;
            gone.push(id);
        }
        for id in &gone {
            self.edit.remove(*id)?;
        }
        // Memberships in a role end with it.
        for role in self.before().roles().filter(|role| !gone.contains(&role.id)) {
            if role.member_of.iter().any(|it| gone.contains(&it.role)) {
                let mut role = (**role).clone();
                role.member_of.retain(|it| !gone.contains(&it.role));
                self.edit.put_role(role)?;
            }
        }
        Ok(())
    }

    fn check_droppable(&self, id: ObjectId, name: &str) -> Result<()> {
        let in_use = |message: &str| Err(SqlError::new(SqlState::ObjectInUse, message));
        if id == self.user {
            return in_use("current user cannot be dropped");
        }
        if id == self.session_user {
            return in_use("session user cannot be dropped");
        }
        if id == BOOTSTRAP || is_predefined(id) {
            let message =
                format!("cannot drop role {name} because it is required by the database system");
            return Err(SqlError::new(SqlState::DependentObjectsStillExist, message));
        }
        if self.before().is_superuser(id) && !self.is_superuser() {
            return Err(insufficient("must be superuser to drop superusers"));
        }
        let details = self.dependents(id);
        if details.is_empty() {
            return Ok(());
        }
        let message =
            format!("role \"{name}\" cannot be dropped because some objects depend on it");
        let error = SqlError::new(SqlState::DependentObjectsStillExist, message);
        Err(error.with_detail(details.join("\n")))
    }

    /// Checks that the user may decide about the members of a role.
    fn check_admin(&self, role: ObjectId) -> Result<()> {
        let before = self.before();
        if self.is_superuser() {
            return Ok(());
        }
        if before.is_superuser(role) {
            return Err(insufficient("must be superuser to alter superusers"));
        }
        let own = before.role(self.user);
        let has_option = before.roles_of(self.user, MembershipUse::Any).iter().any(|id| {
            let memberships = before.role(*id).map_or(&[][..], |it| &it.member_of);
            memberships.iter().any(|it| it.role == role && it.admin)
        });
        if has_option || own.is_some_and(|own| own.create_role) {
            return Ok(());
        }
        let message = format!("must have admin option on role \"{}\"", before.role_name(role));
        Err(insufficient(message))
    }

    fn add_member(&self, role: ObjectId, name: &str, member: ObjectId, admin: bool) -> Result<()> {
        let before = self.before();
        if before.roles_of(role, MembershipUse::Any).contains(&member) {
            let member_name = before.role_name(member);
            let message = match member == role {
                true => format!("role \"{name}\" is a member of role \"{name}\""),
                false => format!("role \"{name}\" is a member of role \"{member_name}\""),
            };
            return Err(SqlError::new(SqlState::InvalidGrantOperation, message));
        }
        let mut stored = self
            .edit
            .latest_role(member)?
            .ok_or_else(|| SqlError::unsupported("a membership of a predefined role"))?;
        match stored.member_of.iter_mut().find(|it| it.role == role) {
            Some(known) if known.admin || !admin => {
                let member = stored.name.clone();
                self.session.notice(NoticeLevel::Notice, SqlState::SuccessfulCompletion, || {
                    format!("role \"{member}\" is already a member of role \"{name}\"")
                });
            }
            Some(known) => known.admin = true,
            None => stored.member_of.push(Membership { role, grantor: self.user, admin }),
        }
        self.edit.put_role(stored)
    }

    /// GRANT and REVOKE of roles.
    pub fn membership(&self, change: &MembershipChange) -> Result<()> {
        for name in &change.roles {
            let role = self.before().known_role(name)?;
            for member in &change.members {
                let member = self.role(member)?;
                // A member may leave by itself only where it may decide about members.
                self.check_admin(role)?;
                if change.grants {
                    self.add_member(role, name, member, change.admin)?;
                    continue;
                }
                let stored = self.edit.latest_role(member)?;
                let known = stored.filter(|it| it.member_of.iter().any(|it| it.role == role));
                let Some(mut stored) = known else {
                    let member = self.before().role_name(member);
                    self.session.notice(NoticeLevel::Warning, SqlState::Warning, || {
                        format!("role \"{member}\" is not a member of role \"{name}\"")
                    });
                    continue;
                };
                if change.admin {
                    for membership in stored.member_of.iter_mut().filter(|it| it.role == role) {
                        membership.admin = false;
                    }
                } else {
                    stored.member_of.retain(|it| it.role != role);
                }
                self.edit.put_role(stored)?;
            }
        }
        Ok(())
    }
}
