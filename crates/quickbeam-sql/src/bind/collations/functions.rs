//! Functions and operators of texts that have a collation.

use super::Derivation::Conflict;
use super::{indeterminate, not_under};
use crate::bind::{Binder, Typed};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::Expr;
use crate::types::{CollateStep, Collation, DataType, LetterForm};

/// What a function does with its texts.
enum Use {
    /// LIKE, by its name in messages.
    Like(&'static str),
    /// A regular expression.
    Regex,
    /// A search for a text in another.
    Search,
    /// Letters of the other case.
    Letters,
    /// A comparison.
    Comparison,
}

/// Returns what a function does with its texts that depends on the collation.
fn use_of(name: &str) -> Option<Use> {
    let plain = name.split(' ').next().unwrap_or_default();
    Some(match plain {
        "~~" | "!~~" | "like" | "notlike" => Use::Like("LIKE"),
        "~~*" | "!~~*" | "iclike" | "icnlike" => Use::Like("ILIKE"),
        "~" | "!~" | "~*" | "!~*" | "similar" | "textregexeq" | "texticregexeq" => Use::Regex,
        name if name.starts_with("regexp_") => Use::Regex,
        "position" | "strpos" | "replace" | "split_part" | "string_to_array"
        | "string_to_table" | "starts_with" | "^@" => Use::Search,
        "lower" | "upper" | "initcap" => Use::Letters,
        "array_position" | "array_positions" | "array_remove" | "array_replace" | "@>" | "<@"
        | "&&" | "hashtext" | "hashtextextended" | "text_larger" | "text_smaller"
        | "width_bucket" => Use::Comparison,
        _ => return None,
    })
}

#[cold]
fn nondeterministic(what: &str) -> SqlError {
    let message = format!("nondeterministic collations are not supported for {what}");
    SqlError::new(SqlState::FeatureNotSupported, message)
}

impl Binder<'_> {
    /// Binds `lower`, `upper` and `initcap` of a text under a collation of ICU. Returns `None` for
    /// any other call.
    pub(in crate::bind) fn collated_letters(
        &mut self,
        name: &str,
        arguments: &[Typed],
        position: u32,
    ) -> Result<Option<Typed>> {
        let form = match name {
            "lower" => LetterForm::Lower,
            "upper" => LetterForm::Upper,
            "initcap" => LetterForm::Title,
            _ => return Ok(None),
        };
        let [text] = arguments else { return Ok(None) };
        if !self.has_collations || text.data_type.is_some_and(|known| !known.is_text()) {
            return Ok(None);
        }
        let Some(own) = self.key_collation([text], Use::Letters.in_messages(name))? else {
            return Ok(None);
        };
        let text = Typed::new(self.as_text(text.clone())?, DataType::Text, position);
        let step = CollateStep::Letters(form, own);
        let expr = Expr::Collate(Box::new(text.expr), step);
        Ok(Some(Typed::new(expr, DataType::Text, position)))
    }

    /// Refuses a call whose result would depend on a collation that it does not know.
    pub(in crate::bind) fn check_collation(&self, name: &str, arguments: &[Typed]) -> Result<()> {
        if !self.has_collations {
            return Ok(());
        }
        let collation = self.common_collation(arguments)?;
        let is_pattern = |it: &Typed| it.data_type.is_none_or(|known| known.is_text());
        let used = match (name, arguments) {
            ("substring" | "substr", [_, second, ..]) if is_pattern(second) => Some(Use::Regex),
            _ => use_of(name),
        };
        let Some(used) = used else { return Ok(()) };
        let own = match collation {
            Conflict(..) => return Err(indeterminate(used.in_messages(name))),
            other => other.of_keys(),
        };
        match own {
            Some(own) => used.check(name, own),
            None => Ok(()),
        }
    }
}

impl Binder<'_> {
    /// Refuses texts under a collation of ICU as arguments of a function of the catalog, which
    /// would compare them by their bytes.
    pub(in crate::bind) fn check_routine_collation(
        &self,
        name: &str,
        arguments: &[Typed],
    ) -> Result<()> {
        let own = match self.common_collation(arguments)? {
            Conflict(_, own) => Some(own),
            other => other.of_keys(),
        };
        match own {
            Some(own) => Err(not_under(&format!("a call of the function {name}"), own)
                .with_hint("Write COLLATE \"C\" after the argument.")),
            None => Ok(()),
        }
    }
}

impl Use {
    fn in_messages(&self, name: &str) -> &'static str {
        match self {
            Use::Like(what) => what,
            Use::Regex => "regular expression",
            Use::Search => "string search",
            Use::Letters => match name {
                "lower" => "lower() function",
                "upper" => "upper() function",
                _ => "initcap() function",
            },
            Use::Comparison => "string comparison",
        }
    }

    fn check(&self, name: &str, own: Collation) -> Result<()> {
        match self {
            Use::Letters => Err(not_under(&format!("the function {name}"), own)),
            // The small letters of such languages are others.
            Use::Like("ILIKE") if own.has_other_letters() => Err(not_under("ILIKE", own)),
            _ if own.is_deterministic() => Ok(()),
            Use::Like(what) => Err(nondeterministic(what)),
            Use::Regex => Err(nondeterministic("regular expressions")),
            Use::Search => Err(nondeterministic("substring searches")),
            Use::Comparison => Err(not_under(&format!("the function {name}"), own)),
        }
    }
}
