//! RAISE.

use std::collections::HashSet;
use std::sync::LazyLock;

use parking_lot::Mutex;

use super::call::Invocation;
use crate::error::{Result, SqlError, SqlState};
use crate::parse::plpgsql::Raise;
use crate::session::events::NoticeLevel;

/// SQLSTATEs of programs that a process keeps. Each is a few bytes that stay.
const CODES: usize = 10_000;

/// Returns a SQLSTATE that lives as long as the process.
fn kept_code(code: &str) -> Option<&'static str> {
    static KNOWN: LazyLock<Mutex<HashSet<&'static str>>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock();
    if let Some(found) = known.get(code) {
        return Some(found);
    }
    if known.len() >= CODES {
        return None;
    }
    let kept: &'static str = Box::leak(code.to_owned().into_boxed_str());
    known.insert(kept);
    Some(kept)
}

/// Returns an error with a SQLSTATE.
fn error_of(code: &str, message: String) -> SqlError {
    match SqlState::of_code(code) {
        Some(state) => SqlError::new(state, message),
        None => {
            let error = SqlError::new(SqlState::RaiseException, message);
            match kept_code(code) {
                Some(code) => error.with_code(code),
                None => error,
            }
        }
    }
}

fn is_code(code: &str) -> bool {
    code.len() == 5 && code.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

impl Invocation<'_> {
    /// The message with the arguments in the place of the percent signs.
    fn message(&self, raise: &Raise) -> Result<Option<String>> {
        let Some(format) = &raise.message else { return Ok(None) };
        let mut message = String::with_capacity(format.len());
        let mut arguments = raise.arguments.iter();
        let mut rest = format.chars().peekable();
        while let Some(c) = rest.next() {
            if c != '%' {
                message.push(c);
            } else if rest.next_if_eq(&'%').is_some() {
                message.push('%');
            } else if let Some(argument) = arguments.next() {
                let text = self.text_of(*argument)?;
                message.push_str(text.as_deref().unwrap_or("<NULL>"));
            }
        }
        Ok(Some(message))
    }

    pub(super) fn raise(&mut self, raise: &Raise) -> Result<()> {
        let is_bare = raise.message.is_none() && raise.code.is_none() && raise.options.is_empty();
        if is_bare {
            return Err(self.errors.pop().unwrap_or_else(|| {
                let message =
                    "RAISE without parameters cannot be used outside an exception handler";
                let state = SqlState::StackedDiagnosticsAccessedWithoutActiveHandler;
                SqlError::new(state, message)
            }));
        }
        let mut message = self.message(raise)?;
        let mut code = raise.code.clone();
        let mut given: Vec<(&str, String)> = Vec::new();
        for (option, value) in &raise.options {
            let is_twice = given.iter().any(|(known, _)| *known == &option[..]);
            if is_twice || option == "message" && message.is_some() {
                let name = option.to_uppercase();
                let message = format!("RAISE option already specified: {name}");
                return Err(SqlError::new(SqlState::SyntaxError, message));
            }
            let text = self.text_of(*value)?.ok_or_else(|| {
                let message = "RAISE statement option cannot be null";
                SqlError::new(SqlState::NullValueNotAllowed, message)
            })?;
            match &option[..] {
                "message" => message = Some(text),
                "errcode" => {
                    let named = crate::parse::plpgsql::condition_codes(&text.to_lowercase()).next();
                    code = Some(match named {
                        Some(code) => code.to_owned(),
                        None if is_code(&text) => text,
                        None => {
                            let message = format!("unrecognized exception condition \"{text}\"");
                            return Err(SqlError::new(SqlState::UndefinedObject, message));
                        }
                    });
                }
                name => given.push((name, text)),
            }
        }
        let name = raise.name.as_ref().map(ToString::to_string);
        let message = message.or(name).or_else(|| code.clone()).unwrap_or_default();
        let (level, state) = match &raise.level[..] {
            "exception" => (None, SqlState::RaiseException),
            "warning" => (Some(NoticeLevel::Warning), SqlState::Warning),
            "notice" => (Some(NoticeLevel::Notice), SqlState::SuccessfulCompletion),
            "info" => (Some(NoticeLevel::Info), SqlState::SuccessfulCompletion),
            _ => return Ok(()),
        };
        let code = code.unwrap_or_else(|| state.code().to_owned());
        let error = given.into_iter().fold(error_of(&code, message), with_option);
        match level {
            None => Err(error),
            Some(level) => {
                self.session.notice_raised(level, &error);
                Ok(())
            }
        }
    }
}

/// Adds what an option of RAISE says.
fn with_option(error: SqlError, (option, text): (&str, String)) -> SqlError {
    match option {
        "detail" => error.with_detail(text),
        "hint" => error.with_hint(text),
        "constraint" => error.of_constraint(text),
        "column" => error.of_column(text),
        "datatype" => error.of_data_type(text),
        "table" => error.of_named_table(text),
        "schema" => error.of_schema(text),
        _ => error,
    }
}
