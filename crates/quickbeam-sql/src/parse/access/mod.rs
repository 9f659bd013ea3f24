//! Statements about roles, rights and owners.
//!
//! They are read here rather than by the parser crate, which does not know all of their forms.

mod constants;
mod defaults;
mod grants;
mod passwords;

use smol_str::SmolStr;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::command::token_cursor::{Name, TokenCursor};
use super::positions::{is_any_word, mentions};
use super::routine::RoutineSetting;
use crate::error::{Result, SqlError, SqlState};
pub use constants::without_constants;
pub use defaults::{DefaultKind, DefaultsChange};
pub use passwords::without_passwords;

/// A statement about roles, rights or owners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessStatement {
    /// CREATE ROLE.
    CreateRole(SmolStr, RoleOptions),
    /// ALTER ROLE.
    AlterRole(RoleName, RoleOptions),
    /// ALTER ROLE … RENAME TO.
    RenameRole(SmolStr, SmolStr),
    /// ALTER ROLE … SET or RESET, and ALTER DATABASE.
    Settings(SettingsChange),
    /// DROP ROLE; true: IF EXISTS.
    DropRoles(Vec<RoleName>, bool),
    /// GRANT or REVOKE of membership.
    Membership(MembershipChange),
    /// GRANT or REVOKE of privileges.
    Privileges(PrivilegeChange),
    /// ALTER DEFAULT PRIVILEGES.
    Defaults(DefaultsChange),
    /// ALTER … OWNER TO.
    Owner(OwnedObject, RoleName),
    /// REASSIGN OWNED.
    Reassign(Vec<RoleName>, RoleName),
    /// DROP OWNED; true: CASCADE.
    DropOwned(Vec<RoleName>, bool),
}

/// A role in a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoleName {
    /// By its name.
    Named(SmolStr),
    /// CURRENT_USER or CURRENT_ROLE.
    Current,
    /// SESSION_USER.
    Session,
    /// PUBLIC: all roles.
    Public,
}

/// The options of CREATE ROLE and ALTER ROLE; `None`: not named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleOptions {
    /// SUPERUSER.
    pub superuser: Option<bool>,
    /// CREATEDB.
    pub create_database: Option<bool>,
    /// CREATEROLE.
    pub create_role: Option<bool>,
    /// INHERIT.
    pub inherit: Option<bool>,
    /// LOGIN.
    pub login: Option<bool>,
    /// REPLICATION.
    pub replication: Option<bool>,
    /// BYPASSRLS.
    pub bypass_rls: Option<bool>,
    /// CONNECTION LIMIT.
    pub connection_limit: Option<i64>,
    /// PASSWORD; the inner `None`: NULL.
    pub password: Option<Option<String>>,
    /// VALID UNTIL.
    pub valid_until: Option<String>,
    /// IN ROLE: the roles that it becomes a member of.
    pub member_of: Vec<RoleName>,
    /// ROLE: its members.
    pub members: Vec<RoleName>,
    /// ADMIN: its members with the admin option.
    pub admins: Vec<RoleName>,
}

/// A change of the settings with which sessions begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsChange {
    /// The role; `None`: all.
    pub role: Option<RoleName>,
    /// The database; `None`: all.
    pub database: Option<SmolStr>,
    /// The change.
    pub change: RoutineSetting,
}

/// GRANT or REVOKE of membership in roles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MembershipChange {
    /// GRANT.
    pub grants: bool,
    /// The roles.
    pub roles: Vec<SmolStr>,
    /// Their members.
    pub members: Vec<RoleName>,
    /// WITH ADMIN OPTION, or ADMIN OPTION FOR.
    pub admin: bool,
}

/// GRANT or REVOKE of privileges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrivilegeChange {
    /// GRANT.
    pub grants: bool,
    /// The privileges, each with its columns; empty: ALL.
    pub privileges: Vec<(String, Vec<SmolStr>)>,
    /// The columns of ALL.
    pub all_columns: Vec<SmolStr>,
    /// The objects.
    pub objects: GrantObjects,
    /// Who gains or loses them.
    pub grantees: Vec<RoleName>,
    /// WITH GRANT OPTION, or GRANT OPTION FOR.
    pub option: bool,
    /// CASCADE.
    pub cascade: bool,
}

/// The objects of GRANT and REVOKE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantObjects {
    /// Tables and views, by name.
    Tables(Vec<Name>),
    /// Sequences.
    Sequences(Vec<Name>),
    /// Schemas.
    Schemas(Vec<SmolStr>),
    /// Databases.
    Databases(Vec<SmolStr>),
    /// Functions and procedures, with the texts of their argument types.
    Functions(&'static str, Vec<(Name, Option<Vec<String>>)>),
    /// Types and domains.
    Types(Vec<Name>),
    /// Languages of routines.
    Languages(Vec<SmolStr>),
    /// All tables and views of schemas.
    AllTables(Vec<SmolStr>),
    /// All sequences of schemas.
    AllSequences(Vec<SmolStr>),
    /// All FUNCTIONS, PROCEDURES or ROUTINES of schemas.
    AllRoutines(&'static str, Vec<SmolStr>),
}

/// An object that gets another owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnedObject {
    /// A table, view or sequence: its kind, its name; true: IF EXISTS.
    Relation(&'static str, Name, bool),
    /// A schema.
    Schema(SmolStr),
    /// The database.
    Database(SmolStr),
    /// A function or procedure, with the text of its argument types.
    Function(Name, Option<Vec<String>>),
}

/// Returns whether a statement with these tokens is one about roles, rights or owners.
pub(super) fn begins(token: &dyn Fn(usize) -> Option<Token>) -> bool {
    let one_of = |at: usize, words: &[&str]| is_any_word(token(at).as_ref(), words);
    if one_of(0, &["REASSIGN"]) {
        return true;
    }
    if one_of(0, &["CREATE", "ALTER", "DROP"]) && one_of(1, &["ROLE", "USER", "GROUP"]) {
        // CREATE USER MAPPING belongs to foreign servers.
        return !one_of(2, &["MAPPING"]);
    }
    if one_of(0, &["DROP"]) && one_of(1, &["OWNED"]) {
        return true;
    }
    if !one_of(0, &["ALTER"]) {
        return false;
    }
    if one_of(1, &["DEFAULT"]) && one_of(2, &["PRIVILEGES"]) {
        return true;
    }
    let kinds = ["TABLE", "VIEW", "SEQUENCE", "SCHEMA", "DATABASE"];
    let is_known = one_of(1, &kinds) || one_of(1, &crate::parse::routine::KINDS);
    let is_materialized = one_of(1, &["MATERIALIZED"]) && one_of(2, &["VIEW"]);
    if !is_materialized && !is_known {
        return false;
    }
    let mut at = 2 + usize::from(is_materialized);
    if one_of(at, &["IF"]) {
        at += 2;
    }
    at += usize::from(one_of(at, &["ONLY"])) + 1;
    while token(at) == Some(Token::Period) {
        at += 2;
    }
    let mut depth = 0_usize;
    loop {
        match token(at) {
            Some(Token::LParen) => depth += 1,
            Some(Token::RParen) if depth > 0 => depth -= 1,
            Some(_) if depth > 0 => {}
            _ => break,
        }
        at += 1;
    }
    one_of(at, &["OWNER"]) && one_of(at + 1, &["TO"])
        || one_of(1, &["DATABASE"]) && one_of(at, &["SET", "RESET"])
}

/// Returns whether a text may be such a statement, so that its tokens are worth a look.
pub(super) fn may_begin(first: &str, text: &str) -> bool {
    if !["CREATE", "ALTER", "DROP", "REASSIGN"].iter().any(|it| first.eq_ignore_ascii_case(it)) {
        return false;
    }
    mentions(text, &["role", "user", "group", "owner", "owned", "database", "privileges"])
}

/// Returns whether the tokens of a text are such a statement.
pub(super) fn is_access(tokens: &[TokenWithSpan]) -> bool {
    begins(&|at| {
        let token = &tokens.get(at)?.token;
        (!matches!(token, Token::SemiColon | Token::EOF)).then(|| token.clone())
    })
}

impl TokenCursor<'_> {
    /// Reads a statement about roles, rights or owners. GRANT and REVOKE have been skipped.
    pub(super) fn access(&mut self, word: &str) -> Result<AccessStatement> {
        match word {
            "GRANT" => return self.grant(true),
            "REVOKE" => return self.grant(false),
            "REASSIGN" => {
                for word in ["OWNED", "BY"] {
                    self.expect(word)?;
                }
                let roles = self.role_names()?;
                self.expect("TO")?;
                return Ok(AccessStatement::Reassign(roles, self.role_name()?));
            }
            "DROP" if self.takes("OWNED") => {
                self.expect("BY")?;
                let roles = self.role_names()?;
                return Ok(AccessStatement::DropOwned(roles, self.cascade()));
            }
            "ALTER" if self.takes("DEFAULT") => return self.default_rights(),
            _ => {}
        }
        let is_user = self.takes("USER");
        let is_role = is_user || self.takes("ROLE");
        if !is_role && !self.takes("GROUP") {
            return self.owner();
        }
        match word {
            "CREATE" => {
                let name = self.new_role()?;
                let mut options = self.role_options()?;
                if is_user && options.login.is_none() {
                    options.login = Some(true);
                }
                Ok(AccessStatement::CreateRole(name, options))
            }
            "ALTER" if is_role && self.takes("ALL") => self.settings_change(None),
            "ALTER" => {
                let name = self.role_name()?;
                let words = ["SET", "RESET", "IN"];
                if is_role && is_any_word(self.peek(), &words) {
                    return self.settings_change(Some(name));
                }
                if self.takes("RENAME") {
                    self.expect("TO")?;
                    let RoleName::Named(name) = name else { return Err(self.error()) };
                    return Ok(AccessStatement::RenameRole(name, self.new_role()?));
                }
                if is_any_word(self.peek(), &["ADD", "DROP"]) {
                    return self.group_members(name);
                }
                Ok(AccessStatement::AlterRole(name, self.role_options()?))
            }
            _ => {
                let if_exists = self.if_exists()?;
                Ok(AccessStatement::DropRoles(self.role_names()?, if_exists))
            }
        }
    }

    /// Reads ADD USER or DROP USER of ALTER GROUP, after the name of the group.
    fn group_members(&mut self, group: RoleName) -> Result<AccessStatement> {
        let grants = self.takes("ADD");
        if !grants {
            self.expect("DROP")?;
        }
        self.expect("USER")?;
        let members = self.role_names()?;
        let RoleName::Named(group) = group else {
            return Err(SqlError::unsupported("ALTER GROUP of a role without its name"));
        };
        let (roles, admin) = (vec![group], false);
        Ok(AccessStatement::Membership(MembershipChange { grants, roles, members, admin }))
    }

    /// Reads [IN DATABASE …] SET … or RESET … after the role.
    fn settings_change(&mut self, role: Option<RoleName>) -> Result<AccessStatement> {
        let mut database = None;
        if self.takes("IN") {
            self.expect("DATABASE")?;
            database = Some(self.name()?);
        }
        let change = self.routine_setting()?.ok_or_else(|| self.error())?;
        Ok(AccessStatement::Settings(SettingsChange { role, database, change }))
    }

    pub(in crate::parse) fn if_exists(&mut self) -> Result<bool> {
        let is_there = self.takes("IF");
        if is_there {
            self.expect("EXISTS")?;
        }
        Ok(is_there)
    }

    fn cascade(&mut self) -> bool {
        let cascade = self.takes("CASCADE");
        if !cascade {
            self.takes("RESTRICT");
        }
        cascade
    }

    fn role_name(&mut self) -> Result<RoleName> {
        for (word, role) in [
            ("CURRENT_USER", RoleName::Current),
            ("CURRENT_ROLE", RoleName::Current),
            ("SESSION_USER", RoleName::Session),
            ("PUBLIC", RoleName::Public),
        ] {
            if self.takes(word) {
                return Ok(role);
            }
        }
        if is_any_word(self.peek(), &["NONE"]) {
            let message = "role name \"none\" is reserved";
            return Err(SqlError::new(SqlState::ReservedName, message).at(self.offset()));
        }
        self.role_word().map(RoleName::Named)
    }

    /// Reads the name of a new role.
    fn new_role(&mut self) -> Result<SmolStr> {
        for word in ["CURRENT_USER", "CURRENT_ROLE", "SESSION_USER"] {
            if is_any_word(self.peek(), &[word]) {
                let message = format!("{word} cannot be used as a role name here");
                return Err(SqlError::new(SqlState::ReservedName, message).at(self.offset()));
            }
        }
        self.role_word()
    }

    fn role_names(&mut self) -> Result<Vec<RoleName>> {
        let mut roles = Vec::new();
        loop {
            self.takes("GROUP");
            roles.push(self.role_name()?);
            if !self.takes_token(&Token::Comma) {
                return Ok(roles);
            }
        }
    }

    fn names(&mut self) -> Result<Vec<SmolStr>> {
        let mut names = vec![self.name()?];
        while self.takes_token(&Token::Comma) {
            names.push(self.name()?);
        }
        Ok(names)
    }

    fn role_options(&mut self) -> Result<RoleOptions> {
        let mut options = RoleOptions::default();
        self.takes("WITH");
        while self.peek().is_some_and(|token| *token != Token::SemiColon) {
            self.role_option(&mut options)?;
        }
        Ok(options)
    }

    fn role_option(&mut self, options: &mut RoleOptions) -> Result<()> {
        let place = self.offset();
        let twice = || {
            let message = "conflicting or redundant options";
            Err(SqlError::new(SqlState::SyntaxError, message).at(place))
        };
        let flags = [
            ("SUPERUSER", "NOSUPERUSER", &mut options.superuser),
            ("CREATEDB", "NOCREATEDB", &mut options.create_database),
            ("CREATEROLE", "NOCREATEROLE", &mut options.create_role),
            ("INHERIT", "NOINHERIT", &mut options.inherit),
            ("LOGIN", "NOLOGIN", &mut options.login),
            ("REPLICATION", "NOREPLICATION", &mut options.replication),
            ("BYPASSRLS", "NOBYPASSRLS", &mut options.bypass_rls),
        ];
        for (yes, no, place) in flags {
            let is_yes = self.takes(yes);
            if is_yes || self.takes(no) {
                return if place.replace(is_yes).is_some() { twice() } else { Ok(()) };
            }
        }
        if self.takes("CONNECTION") {
            self.expect("LIMIT")?;
            let limit = self.number()?.ok_or_else(|| self.error())?;
            return if options.connection_limit.replace(limit).is_some() {
                twice()
            } else {
                Ok(())
            };
        }
        self.takes("ENCRYPTED");
        if self.takes("PASSWORD") {
            let password = if self.takes("NULL") { None } else { Some(self.text_literal()?) };
            return if options.password.replace(password).is_some() { twice() } else { Ok(()) };
        }
        if self.takes("VALID") {
            self.expect("UNTIL")?;
            let until = self.text_literal()?;
            return if options.valid_until.replace(until).is_some() { twice() } else { Ok(()) };
        }
        if self.takes("SYSID") {
            self.number()?.ok_or_else(|| self.error())?;
            return Ok(());
        }
        if self.takes("IN") {
            if !self.takes("ROLE") {
                self.expect("GROUP")?;
            }
            options.member_of.extend(self.role_names()?);
            return Ok(());
        }
        if self.takes("ROLE") || self.takes("USER") {
            options.members.extend(self.role_names()?);
            return Ok(());
        }
        if self.takes("ADMIN") {
            options.admins.extend(self.role_names()?);
            return Ok(());
        }
        Err(match self.peek() {
            Some(Token::Word(word)) => {
                let message = format!("unrecognized role option \"{}\"", word.value.to_lowercase());
                SqlError::new(SqlState::SyntaxError, message).at(place)
            }
            _ => self.error(),
        })
    }

    /// Reads ALTER … OWNER TO after ALTER.
    fn owner(&mut self) -> Result<AccessStatement> {
        let object = if self.takes("SCHEMA") {
            OwnedObject::Schema(self.name()?)
        } else if self.takes("DATABASE") {
            let name = self.name()?;
            if is_any_word(self.peek(), &["SET", "RESET"]) {
                if is_any_word(self.token(self.at + 1), &["TABLESPACE"]) {
                    return Err(SqlError::unsupported("ALTER DATABASE … SET TABLESPACE"));
                }
                let change = self.routine_setting()?.ok_or_else(|| self.error())?;
                let database = Some(name);
                return Ok(AccessStatement::Settings(SettingsChange {
                    role: None,
                    database,
                    change,
                }));
            }
            OwnedObject::Database(name)
        } else if let Some(kind) =
            crate::parse::routine::KINDS.into_iter().find(|word| self.takes(word))
        {
            OwnedObject::Function(self.routine_name()?, self.signature(kind)?)
        } else {
            let is_materialized = self.takes("MATERIALIZED");
            let kinds = ["table", "view", "sequence"];
            let kind = kinds.into_iter().find(|kind| self.takes(kind));
            let kind = if is_materialized { Some("materialized view") } else { kind };
            let kind = kind.ok_or_else(|| self.error())?;
            let if_exists = self.if_exists()?;
            self.takes("ONLY");
            OwnedObject::Relation(kind, self.qualified()?, if_exists)
        };
        self.expect("OWNER")?;
        self.expect("TO")?;
        Ok(AccessStatement::Owner(object, self.role_name()?))
    }
}
