//! Statements about types of users.
//!
//! They are read here rather than by the parser crate: the texts of types, defaults and conditions
//! are kept, and the parser crate does not know all forms.

use std::ops::Range;

use smol_str::SmolStr;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::command::token_cursor::{Name, TokenCursor};
use super::positions::is_any_word;
use crate::error::{Result, SqlError, SqlState};
use crate::keywords::NameKind;

/// A statement about types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeStatement {
    /// CREATE DOMAIN.
    CreateDomain(Box<CreateDomain>),
    /// CREATE TYPE … AS ENUM: the name and the labels.
    CreateEnum(Name, Vec<SmolStr>),
    /// CREATE TYPE … AS (…): the name and the attributes.
    CreateComposite(Name, Vec<WrittenAttribute>),
    /// ALTER DOMAIN, or of the forms that both have ALTER TYPE.
    Alter(&'static str, Name, TypeChange),
    /// DROP DOMAIN or DROP TYPE.
    Drop(DropTypes),
}

/// CREATE DOMAIN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateDomain {
    /// The name.
    pub name: Name,
    /// The text of the type that it is over.
    pub data_type: String,
    /// Where that text begins.
    pub type_at: usize,
    /// The text of DEFAULT.
    pub default: Option<TextAt>,
    /// NOT NULL or NULL.
    pub not_null: Option<bool>,
    /// The CHECK constraints.
    pub checks: Vec<WrittenCheck>,
}

/// A part of a statement's text, and where it begins.
pub type TextAt = (String, usize);

/// A CHECK constraint of a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenCheck {
    /// CONSTRAINT.
    pub name: Option<SmolStr>,
    /// The text of the condition.
    pub condition: TextAt,
    /// NOT VALID.
    pub not_valid: bool,
}

/// An attribute of a composite type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenAttribute {
    /// Its name.
    pub name: SmolStr,
    /// The text of its type.
    pub data_type: TextAt,
}

/// What ALTER TYPE changes of the attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeChange {
    /// ADD ATTRIBUTE.
    Add(WrittenAttribute),
    /// DROP ATTRIBUTE; true: IF EXISTS.
    Drop(SmolStr, bool),
    /// ALTER ATTRIBUTE … TYPE.
    Type(WrittenAttribute),
}

/// What ALTER DOMAIN changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeChange {
    /// SET DEFAULT or DROP DEFAULT.
    Default(Option<TextAt>),
    /// SET NOT NULL or DROP NOT NULL.
    NotNull(bool),
    /// ADD CONSTRAINT.
    AddCheck(WrittenCheck),
    /// DROP CONSTRAINT; true: IF EXISTS.
    DropCheck(SmolStr, bool),
    /// RENAME CONSTRAINT.
    RenameCheck(SmolStr, SmolStr),
    /// VALIDATE CONSTRAINT.
    Validate(SmolStr),
    /// ADD VALUE: the label; true: IF NOT EXISTS; its neighbour.
    AddValue(SmolStr, bool, Option<Neighbour>),
    /// RENAME VALUE.
    RenameValue(SmolStr, SmolStr),
    /// Changes of attributes.
    Attributes(Vec<AttributeChange>),
    /// RENAME ATTRIBUTE.
    RenameAttribute(SmolStr, SmolStr),
    /// RENAME TO.
    Rename(SmolStr),
    /// SET SCHEMA.
    Schema(SmolStr),
    /// OWNER TO.
    Owner(SmolStr),
}

/// BEFORE or AFTER of ADD VALUE, with the label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Neighbour {
    /// BEFORE.
    Before(SmolStr),
    /// AFTER.
    After(SmolStr),
}

/// DROP DOMAIN or DROP TYPE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropTypes {
    /// `DOMAIN` or `TYPE`.
    pub kind: &'static str,
    /// The names.
    pub names: Vec<Name>,
    /// IF EXISTS.
    pub if_exists: bool,
    /// CASCADE.
    pub cascade: bool,
}

/// Words that end the type or the DEFAULT of a domain.
const CONSTRAINTS: [&str; 10] = [
    "DEFAULT",
    "NOT",
    "NULL",
    "CONSTRAINT",
    "CHECK",
    "COLLATE",
    "UNIQUE",
    "PRIMARY",
    "REFERENCES",
    "GENERATED",
];

/// Returns whether a statement with these tokens is one about types.
pub(super) fn begins(token: &dyn Fn(usize) -> Option<Token>) -> bool {
    is_any_word(token(0).as_ref(), &["CREATE", "ALTER", "DROP"])
        && is_any_word(token(1).as_ref(), &["DOMAIN", "TYPE"])
}

/// As [`begins`], of the tokens of a text.
pub(super) fn is_type(tokens: &[TokenWithSpan]) -> bool {
    begins(&|at| tokens.get(at).map(|one| one.token.clone()))
}

/// Returns whether a text may be such a statement, so that its tokens are worth a look.
pub(super) fn may_begin(first: &str, text: &str) -> bool {
    if !["CREATE", "ALTER", "DROP"].iter().any(|it| first.eq_ignore_ascii_case(it)) {
        return false;
    }
    let mut words = text.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| !word.is_empty());
    words.any(|word| word.eq_ignore_ascii_case("DOMAIN") || word.eq_ignore_ascii_case("TYPE"))
}

fn not_possible(what: &str) -> SqlError {
    let message = format!("{what} constraints not possible for domains");
    SqlError::new(SqlState::SyntaxError, message)
}

impl TokenCursor<'_> {
    /// Reads a statement about types, after its first word.
    pub(super) fn type_statement(&mut self, first: &str) -> Result<TypeStatement> {
        let kind = if self.takes("DOMAIN") { "DOMAIN" } else { "TYPE" };
        if kind == "TYPE" {
            self.expect("TYPE")?;
        }
        match (first, kind) {
            ("CREATE", "DOMAIN") => Ok(TypeStatement::CreateDomain(Box::new(self.domain()?))),
            ("CREATE", _) => self.enumerated(),
            ("ALTER", _) => {
                let name = self.qualified()?;
                Ok(TypeStatement::Alter(kind, name, self.type_change(kind)?))
            }
            _ => {
                let if_exists = self.takes("IF");
                if if_exists {
                    self.expect("EXISTS")?;
                }
                let mut names = vec![self.qualified_of(NameKind::Role)?];
                while self.takes_token(&Token::Comma) {
                    names.push(self.qualified_of(NameKind::Role)?);
                }
                let cascade = self.takes("CASCADE");
                if !cascade {
                    self.takes("RESTRICT");
                }
                Ok(TypeStatement::Drop(DropTypes { kind, names, if_exists, cascade }))
            }
        }
    }

    /// Reads CREATE TYPE after these words.
    fn enumerated(&mut self) -> Result<TypeStatement> {
        let at = self.offset();
        let name = self.qualified()?;
        let unsupported = |what: &str| Err(SqlError::unsupported(what).at(at));
        if !self.takes("AS") {
            return unsupported("CREATE TYPE of a base type");
        }
        if self.takes("RANGE") {
            return unsupported("CREATE TYPE … AS RANGE");
        }
        if self.peek() == Some(&Token::LParen) {
            return Ok(TypeStatement::CreateComposite(name, self.attributes()?));
        }
        self.expect("ENUM")?;
        if !self.takes_token(&Token::LParen) {
            return Err(self.error());
        }
        let mut labels = Vec::new();
        while !self.takes_token(&Token::RParen) {
            if !labels.is_empty() && !self.takes_token(&Token::Comma) {
                return Err(self.error());
            }
            labels.push(self.label()?);
        }
        Ok(TypeStatement::CreateEnum(name, labels))
    }

    /// Reads the attributes of a composite type in their parentheses.
    fn attributes(&mut self) -> Result<Vec<WrittenAttribute>> {
        self.at += 1;
        let mut attributes = Vec::new();
        while !self.takes_token(&Token::RParen) {
            if !attributes.is_empty() && !self.takes_token(&Token::Comma) {
                return Err(self.error());
            }
            attributes.push(self.attribute()?);
        }
        Ok(attributes)
    }

    fn attribute(&mut self) -> Result<WrittenAttribute> {
        let name = self.name()?;
        let start = self.offset();
        let (mut depth, first) = (0, self.at);
        while let Some(token) = self.peek() {
            match token {
                Token::LParen | Token::LBracket => depth += 1,
                Token::RParen | Token::Comma | Token::SemiColon if depth == 0 => break,
                Token::RParen | Token::RBracket => depth -= 1,
                token if is_any_word(Some(token), &["COLLATE", "CASCADE", "RESTRICT"]) => break,
                _ => {}
            }
            self.at += 1;
        }
        if self.at == first {
            return Err(self.error());
        }
        let data_type = self.text_in(start..self.offset());
        if self.takes("COLLATE") {
            self.byte_order()?;
        }
        Ok(WrittenAttribute { name, data_type })
    }

    /// Reads the changes of attributes of ALTER TYPE.
    fn attribute_changes(&mut self) -> Result<TypeChange> {
        let mut changes = Vec::new();
        loop {
            let change = if self.takes("ADD") {
                self.expect("ATTRIBUTE")?;
                AttributeChange::Add(self.attribute()?)
            } else if self.takes("DROP") {
                self.expect("ATTRIBUTE")?;
                let if_exists = self.takes("IF");
                if if_exists {
                    self.expect("EXISTS")?;
                }
                AttributeChange::Drop(self.name()?, if_exists)
            } else {
                self.expect("ALTER")?;
                self.expect("ATTRIBUTE")?;
                let name = self.name()?;
                if self.takes("SET") {
                    self.expect("DATA")?;
                }
                self.expect("TYPE")?;
                // The type follows as after the name of an attribute.
                self.at -= 1;
                AttributeChange::Type(WrittenAttribute { name, ..self.attribute()? })
            };
            changes.push(change);
            // Typed tables, which CASCADE is for, do not exist.
            if !self.takes("CASCADE") {
                self.takes("RESTRICT");
            }
            if !self.takes_token(&Token::Comma) {
                return Ok(TypeChange::Attributes(changes));
            }
        }
    }

    fn label(&mut self) -> Result<SmolStr> {
        let label = match self.peek() {
            Some(Token::SingleQuotedString(label) | Token::EscapedStringLiteral(label)) => {
                SmolStr::new(label)
            }
            _ => return Err(self.error()),
        };
        self.at += 1;
        Ok(label)
    }

    fn added_value(&mut self) -> Result<TypeChange> {
        let if_not_exists = self.takes("IF");
        if if_not_exists {
            self.expect("NOT")?;
            self.expect("EXISTS")?;
        }
        let label = self.label()?;
        let neighbour = if self.takes("BEFORE") {
            Some(Neighbour::Before(self.label()?))
        } else if self.takes("AFTER") {
            Some(Neighbour::After(self.label()?))
        } else {
            None
        };
        Ok(TypeChange::AddValue(label, if_not_exists, neighbour))
    }

    fn text_in(&self, range: Range<usize>) -> TextAt {
        let start = range.start;
        (self.text.get(range).unwrap_or_default().trim_end().to_owned(), start)
    }

    /// Reads a type or an expression: at least one token, up to the next constraint.
    fn text_before_constraint(&mut self) -> Result<TextAt> {
        let start = self.offset();
        let mut depth = 0;
        let first = self.at;
        while let Some(token) = self.peek() {
            match token {
                Token::LParen | Token::LBracket => depth += 1,
                Token::RParen | Token::RBracket => depth -= 1,
                Token::SemiColon if depth == 0 => break,
                token
                    if depth == 0 && self.at > first && is_any_word(Some(token), &CONSTRAINTS) =>
                {
                    break;
                }
                _ => {}
            }
            self.at += 1;
        }
        if self.at == first {
            return Err(self.error());
        }
        Ok(self.text_in(start..self.offset()))
    }

    fn domain(&mut self) -> Result<CreateDomain> {
        let name = self.qualified()?;
        self.takes("AS");
        let (data_type, type_at) = self.text_before_constraint()?;
        let mut made = CreateDomain {
            name,
            data_type,
            type_at,
            default: None,
            not_null: None,
            checks: Vec::new(),
        };
        while self.peek().is_some_and(|token| *token != Token::SemiColon) {
            let at = self.offset();
            let syntax = |message: &str| SqlError::new(SqlState::SyntaxError, message).at(at);
            if self.takes("DEFAULT") {
                if made.default.is_some() {
                    return Err(syntax("multiple default expressions"));
                }
                made.default = Some(self.text_before_constraint()?);
                continue;
            }
            if self.takes("COLLATE") {
                self.byte_order()?;
                continue;
            }
            let constraint = if self.takes("CONSTRAINT") { Some(self.name()?) } else { None };
            let not_null = if self.takes("NULL") {
                Some(false)
            } else if self.takes("NOT") {
                self.expect("NULL")?;
                Some(true)
            } else {
                None
            };
            match not_null {
                Some(_) if made.not_null.is_some_and(|known| Some(known) != not_null) => {
                    return Err(syntax("conflicting NULL/NOT NULL constraints"));
                }
                Some(_) => made.not_null = not_null,
                None => made.checks.push(self.domain_check(constraint)?),
            }
        }
        Ok(made)
    }

    /// Reads the collation of a domain: texts are in byte order.
    fn byte_order(&mut self) -> Result<()> {
        let at = self.offset();
        let collation = self.dotted()?;
        let own = collation.rsplit('.').next().unwrap_or_default();
        if ["C", "POSIX", "C.UTF-8", "default", "ucs_basic"].contains(&own) {
            return Ok(());
        }
        Err(SqlError::unsupported(format!("the collation {collation}")).at(at))
    }

    fn domain_check(&mut self, name: Option<SmolStr>) -> Result<WrittenCheck> {
        for (word, what) in [
            ("UNIQUE", "unique"),
            ("PRIMARY", "primary key"),
            ("REFERENCES", "foreign key"),
            ("FOREIGN", "foreign key"),
            ("EXCLUDE", "exclusion"),
        ] {
            if self.takes(word) {
                return Err(not_possible(what));
            }
        }
        self.expect("CHECK")?;
        let range = self.parentheses()?.ok_or_else(|| self.error())?;
        Ok(WrittenCheck { name, condition: self.text_in(range), not_valid: false })
    }

    fn type_change(&mut self, kind: &str) -> Result<TypeChange> {
        let is_domain = kind == "DOMAIN";
        if self.takes("RENAME") {
            if is_domain && self.takes("CONSTRAINT") {
                let from = self.name()?;
                self.expect("TO")?;
                return Ok(TypeChange::RenameCheck(from, self.name()?));
            }
            if !is_domain && self.takes("VALUE") {
                let from = self.label()?;
                self.expect("TO")?;
                return Ok(TypeChange::RenameValue(from, self.label()?));
            }
            if !is_domain && self.takes("ATTRIBUTE") {
                let from = self.name()?;
                self.expect("TO")?;
                let to = self.name()?;
                if !self.takes("CASCADE") {
                    self.takes("RESTRICT");
                }
                return Ok(TypeChange::RenameAttribute(from, to));
            }
            self.expect("TO")?;
            return Ok(TypeChange::Rename(self.name()?));
        }
        if self.takes("OWNER") {
            self.expect("TO")?;
            return Ok(TypeChange::Owner(self.role_word()?));
        }
        if self.takes("SET") {
            if self.takes("SCHEMA") {
                return Ok(TypeChange::Schema(self.name()?));
            }
            if is_domain && self.takes("DEFAULT") {
                return Ok(TypeChange::Default(Some(self.text_before_constraint()?)));
            }
            if !is_domain {
                return Err(self.error());
            }
            self.not_null()?;
            return Ok(TypeChange::NotNull(true));
        }
        if !is_domain {
            if is_any_word(self.token(self.at + 1), &["VALUE"]) && self.takes("ADD") {
                self.at += 1;
                return self.added_value();
            }
            return self.attribute_changes();
        }
        if self.takes("DROP") {
            if self.takes("DEFAULT") {
                return Ok(TypeChange::Default(None));
            }
            if self.takes("CONSTRAINT") {
                let if_exists = self.takes("IF");
                if if_exists {
                    self.expect("EXISTS")?;
                }
                let name = self.name()?;
                if !self.takes("CASCADE") {
                    self.takes("RESTRICT");
                }
                return Ok(TypeChange::DropCheck(name, if_exists));
            }
            self.not_null()?;
            return Ok(TypeChange::NotNull(false));
        }
        if self.takes("VALIDATE") {
            self.expect("CONSTRAINT")?;
            return Ok(TypeChange::Validate(self.name()?));
        }
        self.expect("ADD")?;
        let name = if self.takes("CONSTRAINT") { Some(self.name()?) } else { None };
        let mut check = self.domain_check(name)?;
        if self.takes("NOT") {
            self.expect("VALID")?;
            check.not_valid = true;
        }
        Ok(TypeChange::AddCheck(check))
    }

    fn not_null(&mut self) -> Result<()> {
        self.expect("NOT")?;
        self.expect("NULL")
    }
}
