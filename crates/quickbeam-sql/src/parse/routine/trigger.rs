//! CREATE, ALTER and DROP TRIGGER.

use std::ops::Range;
use std::sync::Arc;

use smol_str::SmolStr;
use sqlparser::tokenizer::Token;

use crate::catalog::{ConstraintTiming, TransitionSide, TriggerEvent, TriggerLevel, TriggerTiming};
use crate::error::{Result, SqlError, SqlState};
use crate::parse::command::token_cursor::{Name, TokenCursor};

/// A statement about triggers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TriggerStatement {
    /// CREATE TRIGGER.
    Create(Box<CreateTrigger>),
    /// ALTER TRIGGER … ON … RENAME TO: the trigger, its table and the new name.
    Rename(SmolStr, Name, SmolStr),
    /// DROP TRIGGER … ON …; true: IF EXISTS.
    Drop(SmolStr, Name, bool),
}

/// CREATE TRIGGER.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateTrigger {
    /// The name.
    pub name: SmolStr,
    /// OR REPLACE.
    pub replace: bool,
    /// BEFORE, AFTER or INSTEAD OF.
    pub timing: TriggerTiming,
    /// INSERT, UPDATE, DELETE and TRUNCATE.
    pub events: Vec<TriggerEvent>,
    /// The columns of UPDATE OF.
    pub columns: Vec<SmolStr>,
    /// The table or view.
    pub relation: Name,
    /// FOR EACH ROW or STATEMENT.
    pub level: TriggerLevel,
    /// The place of the text of WHEN.
    pub condition: Option<Range<usize>>,
    /// When a constraint trigger fires.
    pub constraint: Option<ConstraintTiming>,
    /// REFERENCING: the sides and the names of transition tables.
    pub transitions: Vec<(TransitionSide, SmolStr)>,
    /// The function.
    pub function: Name,
    /// What it is called with.
    pub arguments: Vec<Arc<str>>,
    /// The whole statement.
    pub text: Arc<str>,
}

impl TokenCursor<'_> {
    /// Reads ALTER or DROP TRIGGER, after the word TRIGGER.
    pub(super) fn trigger(&mut self, first: &str) -> Result<TriggerStatement> {
        match first {
            "ALTER" => {
                let name = self.name()?;
                self.expect("ON")?;
                let relation = self.qualified()?;
                if self.takes("NO") || self.takes("DEPENDS") {
                    return Err(SqlError::unsupported("ALTER TRIGGER … DEPENDS ON EXTENSION"));
                }
                self.expect("RENAME")?;
                self.expect("TO")?;
                Ok(TriggerStatement::Rename(name, relation, self.name()?))
            }
            _ => {
                let if_exists = self.if_exists()?;
                let name = self.name()?;
                self.expect("ON")?;
                let relation = self.qualified()?;
                if !self.takes("CASCADE") {
                    self.takes("RESTRICT");
                }
                Ok(TriggerStatement::Drop(name, relation, if_exists))
            }
        }
    }

    /// Reads CREATE TRIGGER, after the word TRIGGER.
    pub(super) fn create_trigger(
        &mut self,
        replace: bool,
        is_constraint: bool,
    ) -> Result<CreateTrigger> {
        let name = self.name()?;
        let timing = if !is_constraint && self.takes("BEFORE") {
            TriggerTiming::Before
        } else if self.takes("AFTER") {
            TriggerTiming::After
        } else {
            self.expect("INSTEAD")?;
            self.expect("OF")?;
            TriggerTiming::InsteadOf
        };
        let (mut events, mut columns) = (Vec::new(), Vec::new());
        loop {
            let position = self.offset();
            let event = TriggerEvent::ALL.into_iter().find(|event| self.takes(event.word()));
            let event = event.ok_or_else(|| self.error())?;
            if events.contains(&event) {
                let message = "duplicate trigger events specified";
                return Err(SqlError::new(SqlState::SyntaxError, message).at(position));
            }
            events.push(event);
            if event == TriggerEvent::Update && self.takes("OF") {
                columns.push(self.name()?);
                while self.takes_token(&Token::Comma) {
                    columns.push(self.name()?);
                }
            }
            if !self.takes("OR") {
                break;
            }
        }
        self.expect("ON")?;
        let relation = self.qualified()?;
        let constraint = if is_constraint { Some(self.trigger_timing()?) } else { None };
        let transitions = if is_constraint { Vec::new() } else { self.transitions()? };
        let mut level = TriggerLevel::Statement;
        let has_level = self.takes("FOR");
        if is_constraint && !has_level {
            return Err(self.error());
        }
        if has_level {
            self.takes("EACH");
            if is_constraint {
                self.expect("ROW")?;
                level = TriggerLevel::Row;
            } else if self.takes("ROW") {
                level = TriggerLevel::Row;
            } else {
                self.expect("STATEMENT")?;
            }
        }
        let condition = match self.takes("WHEN") {
            true => Some(self.parentheses()?.ok_or_else(|| self.error())?),
            false => None,
        };
        self.expect("EXECUTE")?;
        if !self.takes("FUNCTION") {
            self.expect("PROCEDURE")?;
        }
        let function = self.routine_name()?;
        let arguments = self.trigger_arguments()?;
        let text = self.text.into();
        Ok(CreateTrigger {
            name,
            replace,
            timing,
            events,
            columns,
            relation,
            level,
            condition,
            constraint,
            transitions,
            function,
            arguments,
            text,
        })
    }

    /// Reads when a constraint trigger fires.
    fn trigger_timing(&mut self) -> Result<ConstraintTiming> {
        if self.takes("FROM") {
            self.qualified()?;
            return Err(SqlError::unsupported("FROM in CREATE CONSTRAINT TRIGGER"));
        }
        let (mut deferrable, mut is_deferred) = (None, false);
        loop {
            let position = self.offset();
            if self.takes("NOT") {
                self.expect("DEFERRABLE")?;
                deferrable = Some(false);
            } else if self.takes("DEFERRABLE") {
                deferrable = Some(true);
            } else if self.takes("INITIALLY") {
                is_deferred = self.takes("DEFERRED");
                if !is_deferred {
                    self.expect("IMMEDIATE")?;
                }
            } else {
                break;
            }
            if is_deferred && deferrable == Some(false) {
                let message = "constraint declared INITIALLY DEFERRED must be DEFERRABLE";
                return Err(SqlError::new(SqlState::SyntaxError, message).at(position));
            }
        }
        Ok(match (deferrable, is_deferred) {
            (_, true) => ConstraintTiming::Deferred,
            (Some(true), false) => ConstraintTiming::Immediate,
            _ => ConstraintTiming::NotDeferrable,
        })
    }

    /// Reads REFERENCING.
    fn transitions(&mut self) -> Result<Vec<(TransitionSide, SmolStr)>> {
        let mut found = Vec::new();
        if !self.takes("REFERENCING") {
            return Ok(found);
        }
        loop {
            let side = if self.takes("OLD") {
                TransitionSide::Old
            } else if self.takes("NEW") {
                TransitionSide::New
            } else if found.is_empty() {
                return Err(self.error());
            } else {
                return Ok(found);
            };
            if !self.takes("TABLE") {
                self.takes("ROW");
                let message = "ROW variable naming in the REFERENCING clause is not supported";
                return Err(SqlError::new(SqlState::FeatureNotSupported, message)
                    .with_hint("Use OLD TABLE or NEW TABLE for naming transition tables."));
            }
            self.takes("AS");
            found.push((side, self.name()?));
        }
    }

    /// Reads the arguments of a trigger: each is kept as a text.
    fn trigger_arguments(&mut self) -> Result<Vec<Arc<str>>> {
        if !self.takes_token(&Token::LParen) {
            return Err(self.error());
        }
        let mut arguments: Vec<Arc<str>> = Vec::new();
        if self.takes_token(&Token::RParen) {
            return Ok(arguments);
        }
        loop {
            let argument: Arc<str> = match self.peek() {
                Some(
                    Token::SingleQuotedString(text)
                    | Token::EscapedStringLiteral(text)
                    | Token::UnicodeStringLiteral(text)
                    | Token::Number(text, _),
                ) => text.as_str().into(),
                Some(Token::DollarQuotedString(quoted)) => quoted.value.as_str().into(),
                _ => {
                    let name = self.any_word()?;
                    self.at -= 1;
                    name.as_str().into()
                }
            };
            self.at += 1;
            arguments.push(argument);
            if self.takes_token(&Token::RParen) {
                return Ok(arguments);
            }
            if !self.takes_token(&Token::Comma) {
                return Err(self.error());
            }
        }
    }
}
