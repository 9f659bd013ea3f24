//! SET and RESET of settings in the definition of a function or procedure.

use smol_str::SmolStr;
use sqlparser::tokenizer::Token;

use crate::error::Result;
use crate::parse::command::token_cursor::TokenCursor;
use crate::parse::positions::is_any_word;

/// A change of the settings that calls of a function have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoutineSetting {
    /// The text of a SET statement.
    Assign(String),
    /// SET … FROM CURRENT.
    Current(SmolStr),
    /// RESET.
    Reset(SmolStr),
    /// RESET ALL.
    ResetAll,
}

impl TokenCursor<'_> {
    /// Reads a SET or RESET clause, if it stands here.
    pub(in crate::parse) fn routine_setting(&mut self) -> Result<Option<RoutineSetting>> {
        if self.takes("RESET") {
            return Ok(Some(match self.takes("ALL") {
                true => RoutineSetting::ResetAll,
                false => RoutineSetting::Reset(self.setting_name()?),
            }));
        }
        let start = self.offset();
        if !self.takes("SET") {
            return Ok(None);
        }
        if self.takes("TIME") {
            self.expect("ZONE")?;
        } else {
            let name = self.setting_name()?;
            if self.takes("FROM") {
                self.expect("CURRENT")?;
                return Ok(Some(RoutineSetting::Current(name)));
            }
            if !self.takes("TO") && !self.takes_token(&Token::Eq) {
                return Err(self.error());
            }
        }
        loop {
            self.takes_token(&Token::Minus);
            self.peek().ok_or_else(|| self.error())?;
            self.at += 1;
            if !self.takes_token(&Token::Comma) {
                break;
            }
        }
        let text = self.text.get(start..self.offset()).unwrap_or_default();
        Ok(Some(RoutineSetting::Assign(text.trim_end().to_owned())))
    }

    fn setting_name(&mut self) -> Result<SmolStr> {
        if is_any_word(self.peek(), &["TIME"]) && is_any_word(self.token(self.at + 1), &["ZONE"]) {
            self.at += 2;
            return Ok(SmolStr::new_static("timezone"));
        }
        let mut name = self.name()?.to_string();
        while self.takes_token(&Token::Period) {
            name = format!("{name}.{}", self.name()?);
        }
        Ok(name.into())
    }
}
