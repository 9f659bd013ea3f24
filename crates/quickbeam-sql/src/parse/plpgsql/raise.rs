//! RAISE.

use smol_str::SmolStr;

use super::BlockParser;
use super::conditions::condition_codes;
use super::lexer::LexemeKind;
use super::tree::{BlockAction, Raise};
use crate::error::{Result, SqlError, SqlState};

/// The options of RAISE … USING.
const OPTIONS: [&str; 9] =
    ["message", "detail", "hint", "errcode", "column", "constraint", "datatype", "table", "schema"];

impl BlockParser<'_> {
    /// Reads RAISE after that word.
    pub(super) fn raise(&mut self) -> Result<BlockAction> {
        let levels = ["debug", "log", "info", "notice", "warning", "exception"];
        let level = levels.into_iter().find(|level| self.takes(level));
        if level.is_some() && matches!(self.peek(), LexemeKind::Symbol(";")) {
            return Err(self.error());
        }
        let level = level.unwrap_or("exception");
        let mut raise = Raise {
            level: level.into(),
            code: None,
            name: None,
            message: None,
            arguments: Vec::new(),
            options: Vec::new(),
        };
        if let LexemeKind::Text(message) = self.peek() {
            raise.message = Some(message.clone());
            self.at += 1;
            while self.takes_symbol(",") {
                let argument = self.expression(&[",", ";", "using"])?;
                raise.arguments.push(argument);
            }
            let message = raise.message.as_deref().unwrap_or_default().replace("%%", "");
            let wanted = message.matches('%').count();
            if wanted != raise.arguments.len() {
                let many = if wanted > raise.arguments.len() { "few" } else { "many" };
                let message = format!("too {many} parameters specified for RAISE");
                return Err(SqlError::new(SqlState::SyntaxError, message).at(self.offset()));
            }
        } else if self.takes("sqlstate") {
            let LexemeKind::Text(code) = self.peek() else { return Err(self.error()) };
            raise.code = Some(code.clone());
            self.at += 1;
        } else if !self.is_word("using") && matches!(self.peek(), LexemeKind::Word(_)) {
            let position = self.offset();
            let name = self.name()?;
            let code = condition_codes(&name).next().ok_or_else(|| {
                let message = format!("unrecognized exception condition \"{name}\"");
                SqlError::new(SqlState::UndefinedObject, message).at(position)
            })?;
            raise.code = Some(code.to_owned());
            raise.name = Some(name);
        }
        if self.takes("using") {
            loop {
                let (at, token) = (self.offset(), self.at);
                let option: SmolStr = self.name()?;
                if !OPTIONS.contains(&&option[..]) {
                    let token = self.token(token);
                    let near = self.text.get(token.start..token.end).unwrap_or_default();
                    let message =
                        format!("unrecognized RAISE statement option at or near \"{near}\"");
                    return Err(SqlError::new(SqlState::SyntaxError, message).at(at));
                }
                if !self.takes_symbol(":=") {
                    self.expect_symbol("=")?;
                }
                let value = self.expression(&[",", ";"])?;
                raise.options.push((option, value));
                if !self.takes_symbol(",") {
                    break;
                }
            }
        }
        self.expect_symbol(";")?;
        Ok(BlockAction::Raise(Box::new(raise)))
    }
}
