//! GRANT and REVOKE.

use smol_str::SmolStr;
use sqlparser::tokenizer::Token;

use super::{AccessStatement, GrantObjects, MembershipChange, PrivilegeChange};
use crate::error::{Result, SqlError};
use crate::parse::command::token_cursor::TokenCursor;
use crate::parse::positions::is_any_word;

/// Privileges with their columns, and the columns of ALL.
type PrivilegeList = (Vec<(String, Vec<SmolStr>)>, Vec<SmolStr>);

impl TokenCursor<'_> {
    /// Reads GRANT or REVOKE after that word.
    pub(super) fn grant(&mut self, grants: bool) -> Result<AccessStatement> {
        let (mut option, mut admin) = (false, false);
        if !grants {
            option = self.takes_all(&["GRANT", "OPTION", "FOR"]);
            admin = !option && self.takes_all(&["ADMIN", "OPTION", "FOR"]);
        }
        let start = self.at;
        if !self.stands_before_on() {
            self.at = start;
            return self.membership(grants, admin);
        }
        let (privileges, all_columns) = self.privilege_list()?;
        self.expect("ON")?;
        let objects = self.grant_objects()?;
        self.expect(if grants { "TO" } else { "FROM" })?;
        let grantees = self.role_names()?;
        let mut cascade = false;
        if grants {
            option = self.takes_all(&["WITH", "GRANT", "OPTION"]);
        }
        self.granted_by()?;
        if !grants {
            cascade = self.cascade();
        }
        Ok(AccessStatement::Privileges(PrivilegeChange {
            grants,
            privileges,
            all_columns,
            objects,
            grantees,
            option,
            cascade,
        }))
    }

    /// Reads privileges, each with its columns, none for ALL, and the columns of ALL.
    pub(super) fn privilege_list(&mut self) -> Result<PrivilegeList> {
        let mut privileges = Vec::new();
        if self.takes("ALL") {
            self.takes("PRIVILEGES");
            return Ok((privileges, self.column_list()?));
        }
        loop {
            let privilege = self.any_word()?.to_uppercase();
            privileges.push((privilege, self.column_list()?));
            if !self.takes_token(&Token::Comma) {
                return Ok((privileges, Vec::new()));
            }
        }
    }

    pub(super) fn takes_all(&mut self, words: &[&str]) -> bool {
        let start = self.at;
        let found = words.iter().all(|word| self.takes(word));
        if !found {
            self.at = start;
        }
        found
    }

    /// Whether ON comes before the end: privileges are granted on something, roles are not.
    fn stands_before_on(&mut self) -> bool {
        let start = self.at;
        let mut found = false;
        while let Some(token) = self.peek().filter(|token| **token != Token::SemiColon) {
            if is_any_word(Some(token), &["ON"]) {
                found = true;
                break;
            }
            self.at += 1;
        }
        self.at = start;
        found
    }

    fn membership(&mut self, grants: bool, mut admin: bool) -> Result<AccessStatement> {
        let roles = self.names()?;
        self.expect(if grants { "TO" } else { "FROM" })?;
        let members = self.role_names()?;
        if grants {
            admin = self.takes_all(&["WITH", "ADMIN", "OPTION"]);
        }
        self.granted_by()?;
        if !grants {
            self.cascade();
        }
        Ok(AccessStatement::Membership(MembershipChange { grants, roles, members, admin }))
    }

    /// Accepts GRANTED BY the role that grants in any case.
    fn granted_by(&mut self) -> Result<()> {
        if self.takes_all(&["GRANTED", "BY"]) && self.role_name()? != super::RoleName::Current {
            return Err(SqlError::unsupported("GRANTED BY another role than the current one"));
        }
        Ok(())
    }

    fn column_list(&mut self) -> Result<Vec<smol_str::SmolStr>> {
        if !self.takes_token(&Token::LParen) {
            return Ok(Vec::new());
        }
        let columns = self.names()?;
        if !self.takes_token(&Token::RParen) {
            return Err(self.error());
        }
        Ok(columns)
    }

    fn grant_objects(&mut self) -> Result<GrantObjects> {
        if self.takes("ALL") {
            let kinds = ["TABLES", "SEQUENCES", "FUNCTIONS", "PROCEDURES", "ROUTINES"];
            let Some(kind) = kinds.into_iter().find(|it| self.takes(it)) else {
                return Err(self.error());
            };
            self.expect("IN")?;
            self.expect("SCHEMA")?;
            let schemas = self.names()?;
            return Ok(match kind {
                "TABLES" => GrantObjects::AllTables(schemas),
                "SEQUENCES" => GrantObjects::AllSequences(schemas),
                _ => GrantObjects::AllRoutines(kind, schemas),
            });
        }
        if self.takes("SCHEMA") {
            return Ok(GrantObjects::Schemas(self.names()?));
        }
        if self.takes("DATABASE") {
            return Ok(GrantObjects::Databases(self.names()?));
        }
        let kinds = ["FUNCTION", "PROCEDURE", "ROUTINE"];
        if let Some(kind) = kinds.into_iter().find(|it| self.takes(it)) {
            let mut functions = Vec::new();
            loop {
                functions.push((self.routine_name()?, self.signature(kind)?));
                if !self.takes_token(&Token::Comma) {
                    return Ok(GrantObjects::Functions(kind, functions));
                }
            }
        }
        // A table may have such a name.
        let is_kind = !matches!(self.token(self.at + 1), Some(Token::Comma | Token::Period))
            && !is_any_word(self.token(self.at + 1), &["TO", "FROM"]);
        if is_kind && (self.takes("TYPE") || self.takes("DOMAIN")) {
            let mut types = vec![self.qualified()?];
            while self.takes_token(&Token::Comma) {
                types.push(self.qualified()?);
            }
            return Ok(GrantObjects::Types(types));
        }
        if is_kind && self.takes("LANGUAGE") {
            return Ok(GrantObjects::Languages(self.names()?));
        }
        for word in ["TABLESPACE", "FOREIGN", "LARGE", "PARAMETER"] {
            if is_any_word(self.peek(), &[word]) {
                return Err(SqlError::unsupported(format!("GRANT and REVOKE on {word}")));
            }
        }
        let is_sequence = self.takes("SEQUENCE");
        if !is_sequence {
            self.takes("TABLE");
        }
        let mut names = vec![self.qualified()?];
        while self.takes_token(&Token::Comma) {
            names.push(self.qualified()?);
        }
        Ok(if is_sequence { GrantObjects::Sequences(names) } else { GrantObjects::Tables(names) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::access::RoleName;
    use crate::parse::{Command, command};

    fn read(text: &str) -> AccessStatement {
        match command(text).unwrap() {
            Some(Command::Access(statement)) => (*statement).clone(),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn grants_are_read() {
        let AccessStatement::Privileges(change) =
            read("GRANT SELECT (a, b), UPDATE ON s.t, u TO anna, PUBLIC WITH GRANT OPTION")
        else {
            panic!()
        };
        let columns = vec!["a".into(), "b".into()];
        assert_eq!(change.privileges, [("SELECT".into(), columns), ("UPDATE".into(), vec![])]);
        let names = vec![(Some("s".into()), "t".into()), (None, "u".into())];
        assert_eq!(change.objects, GrantObjects::Tables(names));
        assert_eq!(change.grantees, [RoleName::Named("anna".into()), RoleName::Public]);
        assert!(change.option && change.grants);
        let revoke = "REVOKE GRANT OPTION FOR ALL ON ALL SEQUENCES IN SCHEMA a FROM b CASCADE";
        let AccessStatement::Privileges(change) = read(revoke) else { panic!() };
        assert_eq!(change.objects, GrantObjects::AllSequences(vec!["a".into()]));
        assert!(change.option && change.cascade && !change.grants);
        let AccessStatement::Membership(change) = read("GRANT a, b TO c WITH ADMIN OPTION") else {
            panic!()
        };
        assert!(change.admin && change.roles == ["a", "b"]);
    }

    #[test]
    fn statements_about_roles_and_owners_are_told_from_others() {
        for text in [
            "CREATE USER anna PASSWORD 'x'",
            "/* a */ alter role anna nologin",
            "DROP ROLE IF EXISTS a, b",
            "ALTER TABLE IF EXISTS ONLY s.t OWNER TO CURRENT_USER",
            "ALTER SEQUENCE s OWNER TO anna",
            "ALTER FUNCTION f(int, numeric(3,1)) OWNER TO anna",
            "REASSIGN OWNED BY a TO b",
            "DROP OWNED BY a CASCADE",
        ] {
            read(text);
            assert_eq!(crate::parse::pieces(text).unwrap().len(), 1, "{text}");
        }
        for text in [
            "ALTER TABLE t ADD COLUMN owner TEXT",
            "ALTER TABLE t ALTER COLUMN owner SET NOT NULL",
            "CREATE TABLE role (owner INT)",
            "DROP TABLE owned",
        ] {
            assert_eq!(command(text).unwrap(), None, "{text}");
        }
        for text in ["CREATE ROLE", "CREATE ROLE a LOGIN NOLOGIN", "GRANT ON t TO a"] {
            assert_eq!(command(text).unwrap_err().code(), "42601", "{text}");
        }
    }
}
