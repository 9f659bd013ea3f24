//! Statements about functions, procedures and triggers.
//!
//! They are read here rather than by the parser crate: the texts of types, default values and
//! bodies are kept, and the parser crate does not know all forms.

mod aggregate;
mod settings;
mod trigger;

use sqlparser::tokenizer::{Token, TokenWithSpan};

use smol_str::SmolStr;

use super::command::token_cursor::{Name, TokenCursor};
use super::positions::is_any_word;
use crate::catalog::{ArgumentMode, Language, Volatility};
use crate::error::{Result, SqlError, SqlState};
use crate::keywords::NameKind;
pub use aggregate::CreateAggregate;
pub use settings::RoutineSetting;
pub use trigger::{CreateTrigger, TriggerStatement};

/// A statement about functions or procedures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoutineStatement {
    /// CREATE FUNCTION or CREATE PROCEDURE.
    Create(Box<CreateRoutine>),
    /// CREATE AGGREGATE.
    Aggregate(Box<CreateAggregate>),
    /// ALTER FUNCTION, PROCEDURE or ROUTINE.
    Alter(AlterRoutine),
    /// DROP FUNCTION, PROCEDURE or ROUTINE.
    Drop(DropRoutines),
    /// A statement about triggers.
    Trigger(TriggerStatement),
}

/// CREATE FUNCTION or CREATE PROCEDURE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateRoutine {
    /// The name.
    pub name: Name,
    /// CREATE PROCEDURE.
    pub is_procedure: bool,
    /// OR REPLACE.
    pub replace: bool,
    /// The arguments, with the columns of RETURNS TABLE.
    pub arguments: Vec<WrittenArgument>,
    /// The text of the type of the result; true: SETOF.
    pub returns: Option<(String, bool)>,
    /// RETURNS TABLE.
    pub returns_table: bool,
    /// LANGUAGE.
    pub language: Language,
    /// IMMUTABLE, STABLE or VOLATILE.
    pub volatility: Volatility,
    /// STRICT.
    pub strict: bool,
    /// SECURITY DEFINER.
    pub security_definer: bool,
    /// SET.
    pub settings: Vec<RoutineSetting>,
    /// The body.
    pub body: String,
    /// Where the body begins in the statement.
    pub body_at: usize,
}

/// An argument as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenArgument {
    /// Its name.
    pub name: Option<SmolStr>,
    /// IN, OUT or INOUT.
    pub mode: ArgumentMode,
    /// The text of its type.
    pub data_type: String,
    /// The text of its default value.
    pub default: Option<String>,
    /// VARIADIC.
    pub variadic: bool,
}

/// DROP FUNCTION, PROCEDURE or ROUTINE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropRoutines {
    /// FUNCTION, PROCEDURE or ROUTINE.
    pub kind: &'static str,
    /// The names, each with the texts of its argument types if they are given.
    pub names: Vec<(Name, Option<Vec<String>>)>,
    /// IF EXISTS.
    pub if_exists: bool,
    /// CASCADE.
    pub cascade: bool,
}

/// ALTER FUNCTION, PROCEDURE or ROUTINE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlterRoutine {
    /// FUNCTION, PROCEDURE or ROUTINE.
    pub kind: &'static str,
    /// The name, and the texts of the argument types if they are given.
    pub name: (Name, Option<Vec<String>>),
    /// What changes.
    pub change: RoutineChange,
}

/// What changes of a function or procedure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoutineChange {
    /// RENAME TO.
    Rename(SmolStr),
    /// SET SCHEMA.
    Schema(SmolStr),
    /// Options; `None`: not named.
    Options {
        /// IMMUTABLE, STABLE or VOLATILE.
        volatility: Option<Volatility>,
        /// STRICT.
        strict: Option<bool>,
        /// SECURITY DEFINER.
        security_definer: Option<bool>,
        /// ROWS is given.
        has_rows: bool,
        /// SET and RESET.
        settings: Vec<RoutineSetting>,
    },
    /// DEPENDS ON EXTENSION.
    Extension(SmolStr),
}

/// The words for kinds of routines.
pub(super) const KINDS: [&str; 4] = ["FUNCTION", "PROCEDURE", "ROUTINE", "AGGREGATE"];

/// Returns whether a statement with these tokens is one about functions or procedures.
pub(super) fn begins(token: &dyn Fn(usize) -> Option<Token>) -> bool {
    let is = |at: usize, words: &[&str]| is_any_word(token(at).as_ref(), words);
    if is(0, &["CREATE"]) {
        let at = if is(1, &["OR"]) { 3 } else { 1 };
        return is(at, &["FUNCTION", "PROCEDURE", "TRIGGER", "AGGREGATE"])
            || is(at, &["CONSTRAINT"]) && is(at + 1, &["TRIGGER"]);
    }
    let is_routine = is(1, &KINDS);
    is(0, &["DROP"]) && (is_routine || is(1, &["TRIGGER"]))
        || is(0, &["ALTER"]) && (is(1, &["TRIGGER"]) || is_routine && !gives_owner(token))
}

/// Returns whether the tokens end with OWNER TO and a role.
fn gives_owner(token: &dyn Fn(usize) -> Option<Token>) -> bool {
    let mut at = 2;
    while let Some(next) = token(at) {
        if matches!(next, Token::SemiColon | Token::EOF) {
            return false;
        }
        let is = |at: usize, word: &str| is_any_word(token(at).as_ref(), &[word]);
        if is(at, "OWNER") && is(at + 1, "TO") {
            return true;
        }
        at += 1;
    }
    false
}

/// As [`begins`], of the tokens of a text.
pub(super) fn is_routine(tokens: &[TokenWithSpan]) -> bool {
    begins(&|at| tokens.get(at).map(|one| one.token.clone()))
}

/// Returns whether a text may be such a statement, so that its tokens are worth a look.
pub(super) fn may_begin(first: &str, text: &str) -> bool {
    if !["CREATE", "ALTER", "DROP"].iter().any(|it| first.eq_ignore_ascii_case(it)) {
        return false;
    }
    let mut words = text.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| !word.is_empty());
    words.any(|word| KINDS.iter().chain(&["TRIGGER"]).any(|it| word.eq_ignore_ascii_case(it)))
}

/// Words that end the type after RETURNS.
const OPTIONS: [&str; 22] = [
    "LANGUAGE",
    "IMMUTABLE",
    "STABLE",
    "VOLATILE",
    "STRICT",
    "CALLED",
    "RETURNS",
    "SECURITY",
    "EXTERNAL",
    "LEAKPROOF",
    "NOT",
    "COST",
    "ROWS",
    "PARALLEL",
    "AS",
    "WINDOW",
    "SET",
    "SUPPORT",
    "RETURN",
    "BEGIN",
    "TRANSFORM",
    "RESET",
];

/// Second words of types of several words.
const OF_TYPES: [&str; 12] = [
    "PRECISION",
    "VARYING",
    "WITH",
    "WITHOUT",
    "YEAR",
    "MONTH",
    "DAY",
    "HOUR",
    "MINUTE",
    "SECOND",
    "CHARACTER",
    "CHAR",
];

/// First words of types of several words.
const TYPES: [&str; 8] =
    ["DOUBLE", "CHARACTER", "CHAR", "NATIONAL", "TIMESTAMP", "TIME", "BIT", "INTERVAL"];

impl TokenCursor<'_> {
    fn ahead(&self, by: usize) -> Option<&Token> {
        self.token(self.at + by)
    }

    /// Reads a statement about functions or procedures, after its first word.
    pub(super) fn routine(&mut self, first: &str) -> Result<RoutineStatement> {
        match first {
            "CREATE" => {
                let replace = self.takes("OR");
                if replace {
                    self.expect("REPLACE")?;
                }
                let is_constraint = self.takes("CONSTRAINT");
                if is_constraint && replace {
                    let message = "CREATE OR REPLACE CONSTRAINT TRIGGER is not supported";
                    return Err(SqlError::new(SqlState::FeatureNotSupported, message));
                }
                if self.takes("TRIGGER") {
                    let create = Box::new(self.create_trigger(replace, is_constraint)?);
                    return Ok(RoutineStatement::Trigger(TriggerStatement::Create(create)));
                }
                if self.takes("AGGREGATE") {
                    let create = Box::new(self.create_aggregate(replace)?);
                    return Ok(RoutineStatement::Aggregate(create));
                }
                let is_procedure = self.takes("PROCEDURE");
                if !is_procedure {
                    self.expect("FUNCTION")?;
                }
                Ok(RoutineStatement::Create(Box::new(self.create_routine(is_procedure, replace)?)))
            }
            _ if self.takes("TRIGGER") => Ok(RoutineStatement::Trigger(self.trigger(first)?)),
            _ => {
                let kind = KINDS.into_iter().find(|kind| self.takes(kind));
                let kind = kind.ok_or_else(|| self.error())?;
                match first {
                    "ALTER" => self.alter_routine(kind),
                    _ => self.drop_routines(kind),
                }
            }
        }
    }

    fn alter_routine(&mut self, kind: &'static str) -> Result<RoutineStatement> {
        let name = self.routine_name()?;
        let name = (name, self.signature(kind)?);
        let change = if self.takes("RENAME") {
            self.expect("TO")?;
            RoutineChange::Rename(self.name()?)
        } else if is_any_word(self.peek(), &["SET"]) && is_any_word(self.ahead(1), &["SCHEMA"]) {
            self.at += 2;
            RoutineChange::Schema(self.name()?)
        } else if self.takes("DEPENDS") {
            self.expect("ON")?;
            self.expect("EXTENSION")?;
            RoutineChange::Extension(self.name()?)
        } else {
            self.routine_options()?
        };
        Ok(RoutineStatement::Alter(AlterRoutine { kind, name, change }))
    }

    /// Reads the options of ALTER FUNCTION.
    fn routine_options(&mut self) -> Result<RoutineChange> {
        let (mut volatility, mut strict, mut security_definer) = (None, None, None);
        let (mut has_rows, mut settings, start) = (false, Vec::new(), self.at);
        let once = |is_given: bool, at: usize| match is_given {
            true => {
                let message = "conflicting or redundant options";
                Err(SqlError::new(SqlState::SyntaxError, message).at(at))
            }
            false => Ok(()),
        };
        while self.peek().is_some_and(|token| *token != Token::SemiColon) {
            let place = self.offset();
            let levels = [
                ("IMMUTABLE", Volatility::Immutable),
                ("STABLE", Volatility::Stable),
                ("VOLATILE", Volatility::Volatile),
            ];
            if let Some((_, level)) = levels.into_iter().find(|(word, _)| self.takes(word)) {
                once(volatility.replace(level).is_some(), place)?;
            } else if self.takes("STRICT") {
                once(strict.replace(true).is_some(), place)?;
            } else if self.takes("CALLED") {
                ["ON", "NULL", "INPUT"].iter().try_for_each(|word| self.expect(word))?;
                once(strict.replace(false).is_some(), place)?;
            } else if self.takes("RETURNS") {
                ["NULL", "ON", "NULL", "INPUT"].iter().try_for_each(|word| self.expect(word))?;
                once(strict.replace(true).is_some(), place)?;
            } else if self.takes("EXTERNAL") || is_any_word(self.peek(), &["SECURITY"]) {
                self.expect("SECURITY")?;
                let is_definer = self.takes("DEFINER");
                if !is_definer {
                    self.expect("INVOKER")?;
                }
                once(security_definer.replace(is_definer).is_some(), place)?;
            } else if self.takes("NOT") || is_any_word(self.peek(), &["LEAKPROOF"]) {
                self.expect("LEAKPROOF")?;
            } else if self.takes("PARALLEL") {
                self.name()?;
            } else if self.takes("COST") {
                self.number()?.ok_or_else(|| self.error())?;
            } else if self.takes("ROWS") {
                has_rows = true;
                self.number()?.ok_or_else(|| self.error())?;
            } else if let Some(setting) = self.routine_setting()? {
                settings.push(setting);
            } else if is_any_word(self.peek(), &["SUPPORT"]) {
                let what = self.any_word()?.to_uppercase();
                return Err(SqlError::unsupported(format!("{what} in ALTER FUNCTION")));
            } else {
                return Err(self.error());
            }
        }
        if self.at == start {
            return Err(self.error());
        }
        Ok(RoutineChange::Options { volatility, strict, security_definer, has_rows, settings })
    }

    fn drop_routines(&mut self, kind: &'static str) -> Result<RoutineStatement> {
        let if_exists = self.if_exists()?;
        let mut names = Vec::new();
        loop {
            let is_alone = self.ahead(1) != Some(&Token::LParen);
            let kind_of_name = if is_alone { NameKind::Role } else { NameKind::Function };
            let name = self.qualified_of(kind_of_name)?;
            names.push((name, self.signature(kind)?));
            if !self.takes_token(&Token::Comma) {
                break;
            }
        }
        let cascade = self.takes("CASCADE");
        self.takes("RESTRICT");
        Ok(RoutineStatement::Drop(DropRoutines { kind, names, if_exists, cascade }))
    }

    /// Reads the texts of the argument types after the name of a function or procedure. They may
    /// have modes and names. Returns `None` if there are no parentheses.
    pub(super) fn signature(&mut self, kind: &str) -> Result<Option<Vec<String>>> {
        if self.peek() != Some(&Token::LParen) {
            return Ok(None);
        }
        if self.ahead(1) == Some(&Token::Mul) && self.ahead(2) == Some(&Token::RParen) {
            self.at += 3;
            return Ok(Some(Vec::new()));
        }
        let all = self.arguments()?;
        let is_input = |it: &WrittenArgument| it.mode.is_input() || kind == "PROCEDURE";
        Ok(Some(all.into_iter().filter(is_input).map(|it| it.data_type).collect()))
    }

    fn create_routine(&mut self, is_procedure: bool, replace: bool) -> Result<CreateRoutine> {
        let name = self.routine_name()?;
        let mut made = CreateRoutine {
            name,
            is_procedure,
            replace,
            arguments: self.arguments()?,
            returns: None,
            returns_table: false,
            language: Language::Sql,
            volatility: Volatility::Volatile,
            strict: false,
            security_definer: false,
            settings: Vec::new(),
            body: String::new(),
            body_at: 0,
        };
        let (mut language, mut body) = (None, None);
        if !is_procedure && self.takes("RETURNS") {
            made.returns_table = self.takes("TABLE");
            if made.returns_table {
                let columns = self.arguments()?.into_iter();
                made.arguments
                    .extend(columns.map(|it| WrittenArgument { mode: ArgumentMode::Table, ..it }));
            } else {
                let set = self.takes("SETOF");
                made.returns = Some((self.text_until(&OPTIONS)?, set));
            }
        }
        while self.peek().is_some_and(|token| *token != Token::SemiColon) {
            self.routine_option(&mut made, &mut language, &mut body)?;
        }
        let missing = |what: &str| {
            let message = format!("no {what} specified");
            SqlError::new(SqlState::InvalidFunctionDefinition, message)
        };
        made.body = body.ok_or_else(|| missing("function body"))?;
        made.language = match language.ok_or_else(|| missing("language"))?.as_str() {
            "sql" => Language::Sql,
            "plpgsql" => Language::PlPgSql,
            other => {
                let message = format!("language \"{other}\" does not exist");
                return Err(SqlError::new(SqlState::UndefinedObject, message));
            }
        };
        Ok(made)
    }

    fn routine_option(
        &mut self,
        made: &mut CreateRoutine,
        language: &mut Option<SmolStr>,
        body: &mut Option<String>,
    ) -> Result<()> {
        if self.takes("LANGUAGE") {
            let name = match self.peek() {
                Some(Token::SingleQuotedString(text)) => SmolStr::new(text.to_lowercase()),
                _ => {
                    *language = Some(self.role_word()?);
                    return Ok(());
                }
            };
            self.at += 1;
            *language = Some(name);
        } else if self.takes("IMMUTABLE") {
            made.volatility = Volatility::Immutable;
        } else if self.takes("STABLE") {
            made.volatility = Volatility::Stable;
        } else if self.takes("VOLATILE") {
            made.volatility = Volatility::Volatile;
        } else if self.takes("STRICT") {
            made.strict = true;
        } else if self.takes("CALLED") || self.takes("RETURNS") {
            made.strict = !is_any_word(self.token(self.at - 1), &["CALLED"]);
            ["NULL", "ON", "NULL", "INPUT"]
                .iter()
                .skip(usize::from(!made.strict))
                .try_for_each(|word| self.expect(word))?;
        } else if self.takes("EXTERNAL") || is_any_word(self.peek(), &["SECURITY"]) {
            self.expect("SECURITY")?;
            made.security_definer = self.takes("DEFINER");
            if !made.security_definer {
                self.expect("INVOKER")?;
            }
        } else if self.takes("NOT") || is_any_word(self.peek(), &["LEAKPROOF"]) {
            self.expect("LEAKPROOF")?;
        } else if self.takes("PARALLEL") {
            self.name()?;
        } else if self.takes("COST") || self.takes("ROWS") {
            self.at += 1;
        } else if self.takes("AS") {
            made.body_at = self.offset();
            *body = Some(match self.peek() {
                Some(
                    Token::SingleQuotedString(text)
                    | Token::EscapedStringLiteral(text)
                    | Token::UnicodeStringLiteral(text),
                ) => text.clone(),
                Some(Token::DollarQuotedString(quoted)) => quoted.value.clone(),
                _ => return Err(self.error()),
            });
            self.at += 1;
        } else if is_any_word(self.peek(), &["RETURN", "BEGIN"]) {
            if language.get_or_insert("sql".into()) != "sql" {
                let message = "inline SQL function body only valid for language SQL";
                return Err(SqlError::new(SqlState::InvalidFunctionDefinition, message));
            }
            (made.body_at, *body) = (self.offset(), Some(self.inline_body()?));
        } else if is_any_word(self.peek(), &["SET"]) {
            made.settings.extend(self.routine_setting()?);
        } else if is_any_word(self.peek(), &["WINDOW", "SUPPORT", "TRANSFORM"]) {
            let what = self.any_word()?.to_uppercase();
            return Err(SqlError::unsupported(format!("{what} in CREATE FUNCTION")));
        } else {
            return Err(self.error());
        }
        Ok(())
    }

    /// Reads RETURN and an expression, or BEGIN ATOMIC and statements, as the text of a body.
    fn inline_body(&mut self) -> Result<String> {
        if self.takes("RETURN") {
            return Ok(format!("SELECT {}", self.text_until(&[])?));
        }
        self.expect("BEGIN")?;
        self.expect("ATOMIC")?;
        let (start, mut depth) = (self.offset(), 1_usize);
        loop {
            match self.peek() {
                None => return Err(self.error()),
                token if is_any_word(token, &["CASE"]) => depth += 1,
                token if is_any_word(token, &["END"]) => depth -= 1,
                Some(_) => {}
            }
            if depth == 0 {
                break;
            }
            self.at += 1;
        }
        let body = self.text.get(start..self.offset()).unwrap_or_default().trim().to_owned();
        self.at += 1;
        Ok(body)
    }

    /// Reads the text up to one of these words, or the end of the statement.
    fn text_until(&mut self, words: &[&str]) -> Result<String> {
        let start = self.offset();
        let first = self.at;
        while self.peek().is_some_and(|it| *it != Token::SemiColon && !is_any_word(Some(it), words))
        {
            self.at += 1;
        }
        if self.at == first {
            return Err(self.error());
        }
        Ok(self.text.get(start..self.offset()).unwrap_or_default().trim().to_owned())
    }

    /// Reads arguments in parentheses.
    pub(super) fn arguments(&mut self) -> Result<Vec<WrittenArgument>> {
        if !self.takes_token(&Token::LParen) {
            return Err(self.error());
        }
        let mut arguments = Vec::new();
        if self.takes_token(&Token::RParen) {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.argument()?);
            if self.takes_token(&Token::RParen) {
                return Ok(arguments);
            }
            if !self.takes_token(&Token::Comma) {
                return Err(self.error());
            }
        }
    }

    /// Reads the mode of an argument, if it stands here, and whether it is VARIADIC.
    fn argument_mode(&mut self) -> Option<(ArgumentMode, bool)> {
        let mode = if self.takes("VARIADIC") {
            return Some((ArgumentMode::In, true));
        } else if self.takes("INOUT") {
            ArgumentMode::InOut
        } else if self.takes("OUT") {
            ArgumentMode::Out
        } else if self.takes("IN") {
            if self.takes("OUT") { ArgumentMode::InOut } else { ArgumentMode::In }
        } else {
            return None;
        };
        Some((mode, false))
    }

    /// Reads an argument, whose mode stands before or after its name.
    fn argument(&mut self) -> Result<WrittenArgument> {
        let first = self.argument_mode();
        let is_type = is_any_word(self.peek(), &TYPES) && is_any_word(self.ahead(1), &OF_TYPES);
        let is_named = matches!(self.ahead(1), Some(Token::Word(word))
            if word.quote_style.is_some() || !is_any_word(self.ahead(1), &["DEFAULT"]));
        let is_named = is_named && !is_type;
        let name = if is_named { Some(self.name_of(NameKind::Function)?) } else { None };
        let after = if is_named && first.is_none() { self.argument_mode() } else { None };
        let (mode, variadic) = first.or(after).unwrap_or((ArgumentMode::In, false));
        let data_type = self.text_at_level(true)?;
        let has_default = self.takes("DEFAULT")
            || self.takes_token(&Token::Eq)
            || self.takes_token(&Token::Assignment);
        let default = has_default.then(|| self.default_text()).transpose()?;
        Ok(WrittenArgument { name, mode, data_type, default, variadic })
    }

    /// Reads the default of an argument.
    fn default_text(&mut self) -> Result<String> {
        let start = self.offset();
        let text = self.text_at_level(false)?;
        match super::expression(&text) {
            Ok(_) => Ok(text),
            // The expression ends too early.
            Err(error) if error.position().is_none_or(|at| at >= text.len()) => Err(self.error()),
            Err(error) => Err(error.shifted(start)),
        }
    }

    /// Reads the text up to a comma or closing parenthesis at this level, or also up to a default.
    fn text_at_level(&mut self, to_default: bool) -> Result<String> {
        let start = self.offset();
        let (first, mut depth) = (self.at, 0_usize);
        loop {
            match self.peek() {
                None => return Err(self.error()),
                Some(Token::LParen | Token::LBracket) => depth += 1,
                Some(Token::RParen | Token::Comma) if depth == 0 => break,
                Some(Token::RParen | Token::RBracket) => depth = depth.saturating_sub(1),
                Some(Token::Eq | Token::Assignment) if depth == 0 && to_default => break,
                token if depth == 0 && to_default && is_any_word(token, &["DEFAULT"]) => break,
                Some(_) => {}
            }
            self.at += 1;
        }
        if self.at == first {
            return Err(self.error());
        }
        Ok(self.text.get(start..self.offset()).unwrap_or_default().trim().to_owned())
    }
}
