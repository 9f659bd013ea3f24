//! CREATE AGGREGATE.

use smol_str::SmolStr;
use sqlparser::tokenizer::Token;

use super::{CreateRoutine, WrittenArgument};
use crate::catalog::{ArgumentMode, Language, Volatility};
use crate::error::{Result, SqlError, SqlState};
use crate::parse::command::token_cursor::TokenCursor;
use crate::parse::positions::is_any_word;

/// CREATE AGGREGATE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateAggregate {
    /// The name and the arguments; there is no body.
    pub routine: CreateRoutine,
    /// The options, with the texts of their values.
    pub options: Vec<(SmolStr, String)>,
}

impl CreateAggregate {
    /// Returns the value of the option of one of these names.
    pub fn option(&self, names: &[&str]) -> Option<&str> {
        let mut given = self.options.iter();
        given.find(|(known, _)| names.contains(&known.as_str())).map(|(_, value)| value.as_str())
    }
}

impl TokenCursor<'_> {
    /// Reads CREATE AGGREGATE after that word.
    pub(super) fn create_aggregate(&mut self, replace: bool) -> Result<CreateAggregate> {
        let name = self.routine_name()?;
        // The older form has the type of the argument among the options.
        let is_older = matches!(self.ahead(1), Some(Token::Word(_)))
            && self.ahead(2) == Some(&Token::Eq)
            && self.peek() == Some(&Token::LParen);
        let mut arguments = Vec::new();
        if !is_older {
            arguments = self.aggregate_arguments()?;
        }
        let options = self.aggregate_options()?;
        if !is_older && options.iter().any(|(name, _)| name == "basetype") {
            let message = "basetype is redundant with aggregate input type specification";
            return Err(SqlError::new(SqlState::InvalidFunctionDefinition, message));
        }
        if let Some((_, base)) = options.iter().find(|(name, _)| is_older && name == "basetype") {
            if !base.eq_ignore_ascii_case("any") && base != "*" {
                let (mode, data_type) = (ArgumentMode::In, base.clone());
                let (name, default, variadic) = (None, None, false);
                arguments.push(WrittenArgument { name, mode, data_type, default, variadic });
            }
        } else if is_older {
            let message = "aggregate input type must be specified";
            return Err(SqlError::new(SqlState::InvalidFunctionDefinition, message));
        }
        let routine = CreateRoutine {
            name,
            is_procedure: false,
            replace,
            arguments,
            returns: None,
            returns_table: false,
            language: Language::Sql,
            volatility: Volatility::Immutable,
            strict: false,
            security_definer: false,
            settings: Vec::new(),
            body: String::new(),
            body_at: 0,
        };
        Ok(CreateAggregate { routine, options })
    }

    fn aggregate_arguments(&mut self) -> Result<Vec<WrittenArgument>> {
        if self.ahead(1) == Some(&Token::Mul) && self.ahead(2) == Some(&Token::RParen) {
            self.at += 3;
            return Ok(Vec::new());
        }
        let mut depth = 0_usize;
        let mut at = self.at;
        while let Some(token) = self.token(at) {
            match token {
                Token::LParen => depth += 1,
                Token::RParen if depth <= 1 => break,
                Token::RParen => depth -= 1,
                token if is_any_word(Some(token), &["ORDER"]) => {
                    return Err(SqlError::unsupported("CREATE AGGREGATE of an ordered set"));
                }
                _ => {}
            }
            at += 1;
        }
        self.arguments()
    }

    fn aggregate_options(&mut self) -> Result<Vec<(SmolStr, String)>> {
        if !self.takes_token(&Token::LParen) {
            return Err(self.error());
        }
        let mut options = Vec::new();
        loop {
            let name = self.any_word()?;
            let value =
                if self.takes_token(&Token::Eq) { self.option_value()? } else { "true".to_owned() };
            options.push((name, value));
            if self.takes_token(&Token::RParen) {
                return Ok(options);
            }
            if !self.takes_token(&Token::Comma) {
                return Err(self.error());
            }
        }
    }

    /// Reads the text of a value, without the quotes of a literal.
    fn option_value(&mut self) -> Result<String> {
        if let Ok(text) = self.text_literal() {
            return Ok(text);
        }
        let start = self.offset();
        let mut depth = 0_usize;
        let first = self.at;
        loop {
            match self.peek() {
                Some(Token::LParen | Token::LBracket) => depth += 1,
                Some(Token::RParen) if depth == 0 => break,
                Some(Token::RParen | Token::RBracket) => depth = depth.saturating_sub(1),
                Some(Token::Comma) if depth == 0 => break,
                Some(Token::SemiColon) | None => return Err(self.error()),
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
