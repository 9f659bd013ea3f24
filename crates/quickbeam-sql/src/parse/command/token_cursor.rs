//! A position in the tokens of a command.

use std::ops::Range;

use smol_str::SmolStr;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{Result, SqlError, SqlState};
use crate::keywords::{NameKind, is_name};
use crate::parse::offset_of;

/// A name and, if it is qualified, its schema.
pub type Name = (Option<SmolStr>, SmolStr);

/// A position in the tokens of a command.
pub(in crate::parse) struct TokenCursor<'t> {
    pub(in crate::parse) text: &'t str,
    pub(in crate::parse) tokens: Vec<TokenWithSpan>,
    pub(in crate::parse) at: usize,
}

impl<'t> TokenCursor<'t> {
    /// The place after the first token of a text.
    pub(in crate::parse) fn after_first(
        text: &'t str,
        tokens: Vec<TokenWithSpan>,
    ) -> TokenCursor<'t> {
        TokenCursor { text, tokens, at: 1 }
    }

    pub(in crate::parse) fn peek(&self) -> Option<&Token> {
        let token = &self.tokens.get(self.at)?.token;
        (*token != Token::EOF).then_some(token)
    }

    pub(in crate::parse) fn token(&self, at: usize) -> Option<&Token> {
        self.tokens.get(at).map(|one| &one.token)
    }

    /// Returns the byte at which the next token begins.
    pub(in crate::parse) fn offset(&self) -> usize {
        let next = self.tokens.get(self.at);
        next.map_or(self.text.len(), |next| offset_of(self.text, next.span.start))
    }

    pub(in crate::parse) fn error(&self) -> SqlError {
        let found = self.peek().map_or_else(|| "end of input".to_owned(), |it| format!("\"{it}\""));
        SqlError::new(SqlState::SyntaxError, format!("syntax error at or near {found}"))
            .at(self.offset())
    }

    pub(in crate::parse) fn takes(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Word(next))
            if next.quote_style.is_none() && next.value.eq_ignore_ascii_case(word));
        self.at += usize::from(found);
        found
    }

    pub(in crate::parse) fn takes_token(&mut self, token: &Token) -> bool {
        let found = self.peek() == Some(token);
        self.at += usize::from(found);
        found
    }

    pub(in crate::parse) fn expect(&mut self, word: &str) -> Result<()> {
        if self.takes(word) { Ok(()) } else { Err(self.error()) }
    }

    /// Reads the name of an object, such as a table or column.
    pub(in crate::parse) fn name(&mut self) -> Result<SmolStr> {
        self.name_of(NameKind::Object)
    }

    /// Reads the name of a role, a language or an option.
    pub(in crate::parse) fn role_word(&mut self) -> Result<SmolStr> {
        self.name_of(NameKind::Role)
    }

    /// Reads a name, which a key word of the other kinds is in quotes only.
    pub(in crate::parse) fn name_of(&mut self, kind: NameKind) -> Result<SmolStr> {
        match self.peek() {
            Some(Token::Word(word))
                if word.quote_style.is_none() && !is_name(&word.value.to_lowercase(), kind) =>
            {
                Err(self.error())
            }
            _ => self.any_word(),
        }
    }

    /// Reads a word, which any key word is, too.
    pub(in crate::parse) fn any_word(&mut self) -> Result<SmolStr> {
        let Some(Token::Word(word)) = self.peek() else { return Err(self.error()) };
        let name = match word.quote_style {
            Some(_) => SmolStr::new(&word.value),
            None => SmolStr::new(word.value.to_lowercase()),
        };
        self.at += 1;
        Ok(name)
    }

    pub(in crate::parse) fn text_literal(&mut self) -> Result<String> {
        let text = match self.peek() {
            Some(Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text)) => {
                text.clone()
            }
            Some(Token::DollarQuotedString(quoted)) => quoted.value.clone(),
            _ => return Err(self.error()),
        };
        self.at += 1;
        Ok(text)
    }

    /// Reads a name with dots, as one text.
    pub(in crate::parse) fn dotted(&mut self) -> Result<SmolStr> {
        let mut name = self.name()?.to_string();
        while self.takes_token(&Token::Period) {
            name.push('.');
            name.push_str(&self.any_word()?);
        }
        Ok(name.into())
    }

    pub(in crate::parse) fn qualified(&mut self) -> Result<Name> {
        self.qualified_of(NameKind::Object)
    }

    /// Reads the name of a function or procedure.
    pub(in crate::parse) fn routine_name(&mut self) -> Result<Name> {
        self.qualified_of(NameKind::Function)
    }

    /// Reads a name, whose first part without a schema is of that kind.
    pub(in crate::parse) fn qualified_of(&mut self, kind: NameKind) -> Result<Name> {
        let is_qualified = self.token(self.at + 1) == Some(&Token::Period);
        let first = self.name_of(if is_qualified { NameKind::Object } else { kind })?;
        if self.takes_token(&Token::Period) {
            return Ok((Some(first), self.any_word()?));
        }
        Ok((None, first))
    }

    pub(in crate::parse) fn end(&mut self) -> Result<()> {
        while self.takes_token(&Token::SemiColon) {}
        if self.peek().is_some() { Err(self.error()) } else { Ok(()) }
    }

    pub(in crate::parse) fn skip_rest(&mut self) -> Range<usize> {
        let start = self.offset();
        while self.peek().is_some_and(|token| *token != Token::SemiColon) {
            self.at += 1;
        }
        start..self.offset()
    }

    /// Skips parentheses and returns the text in them, if the next token opens some.
    pub(in crate::parse) fn parentheses(&mut self) -> Result<Option<Range<usize>>> {
        if !self.takes_token(&Token::LParen) {
            return Ok(None);
        }
        let start = self.offset();
        let mut depth = 1;
        loop {
            let end = self.offset();
            match self.peek() {
                Some(Token::LParen) => depth += 1,
                Some(Token::RParen) => depth -= 1,
                Some(_) => {}
                None => return Err(self.error()),
            }
            self.at += 1;
            if depth == 0 {
                return Ok(Some(start..end));
            }
        }
    }

    pub(in crate::parse) fn number(&mut self) -> Result<Option<i64>> {
        let start = self.at;
        let is_negative = self.takes_token(&Token::Minus);
        if !is_negative {
            self.takes_token(&Token::Plus);
        }
        let Some(Token::Number(digits, _)) = self.peek() else {
            self.at = start;
            return Ok(None);
        };
        let number: i64 = digits.parse().map_err(|_| self.error())?;
        self.at += 1;
        Ok(Some(if is_negative { -number } else { number }))
    }
}
