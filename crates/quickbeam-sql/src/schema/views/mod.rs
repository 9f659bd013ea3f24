//! Views, and their options.

mod materialized;
mod tables_as_views;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use super::names::{is_public, lookup_name, public};
use super::objects::ObjectId;
use crate::error::{Result, SqlError, SqlState};

pub use materialized::{Materialized, NewMaterialized};

/// A view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct View {
    /// Its number.
    pub id: ObjectId,
    /// Its schema.
    #[serde(default = "public", skip_serializing_if = "is_public")]
    pub schema: SmolStr,
    /// Its name.
    pub name: SmolStr,
    /// Names of its columns, as given or as the query had them.
    pub columns: Vec<SmolStr>,
    /// The text of its query.
    pub query: Arc<str>,
    /// Tables and views that it reads.
    pub depends_on: Vec<ObjectId>,
    /// Its options.
    #[serde(default, skip_serializing_if = "ViewOptions::is_empty")]
    pub options: ViewOptions,
    /// The texts of the DEFAULTs of its columns, by their positions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub defaults: BTreeMap<u16, Arc<str>>,
}

impl View {
    /// The name under which the catalog finds it.
    #[must_use]
    pub fn lookup_name(&self) -> SmolStr {
        lookup_name(&self.schema, &self.name)
    }

    /// Returns the text of the DEFAULT of the column at a position.
    #[must_use]
    pub fn default(&self, position: usize) -> Option<&Arc<str>> {
        self.defaults.get(&u16::try_from(position).ok()?)
    }
}

/// CREATE VIEW.
#[derive(Clone, Debug, Default)]
pub struct NewView {
    /// The name.
    pub name: SmolStr,
    /// Names of its columns.
    pub columns: Vec<SmolStr>,
    /// The text of its query.
    pub query: Arc<str>,
    /// Its options.
    pub options: ViewOptions,
    /// OR REPLACE: the view of that name, if there is one, gets the new query and options; its
    /// columns must be the first of the new ones.
    pub replace: bool,
}

/// A change of ALTER VIEW.
#[derive(Clone, Debug)]
pub enum ViewChange {
    /// SET and RESET: all options as they are then.
    Options(ViewOptions),
    /// ALTER COLUMN … SET or DROP DEFAULT: the position of the column, and the text.
    Default(u16, Option<Arc<str>>),
}

/// Which conditions WITH CHECK OPTION checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckOption {
    /// Those of the view.
    Local,
    /// Those of the view and of all views below it.
    Cascaded,
}

/// The options of a view, `name=value` each, in the order in which they were given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ViewOptions(Vec<SmolStr>);

const CHECK_OPTION: &str = "check_option";
const SECURITY_BARRIER: &str = "security_barrier";
const SECURITY_INVOKER: &str = "security_invoker";

#[cold]
fn invalid(message: String) -> SqlError {
    SqlError::new(SqlState::InvalidParameterValue, message)
}

/// Reads a boolean as PostgreSQL reads those of options: a word of which the beginning is enough.
fn boolean_of(text: &str) -> Option<bool> {
    let text = text.to_ascii_lowercase();
    let begins = |word: &str, least: usize| text.len() >= least && word.starts_with(&*text);
    match &*text {
        "1" => Some(true),
        "0" => Some(false),
        _ if begins("true", 1) || begins("yes", 1) || text == "on" => Some(true),
        _ if begins("false", 1) || begins("no", 1) || begins("off", 2) => Some(false),
        _ => None,
    }
}

impl ViewOptions {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns `name=value` of each.
    pub fn texts(&self) -> impl Iterator<Item = &SmolStr> {
        self.0.iter()
    }

    /// Returns name and value of each.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().filter_map(|text| text.split_once('='))
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.pairs().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Sets an option.
    ///
    /// # Errors
    /// `22023` if a view has no such option, or not with that value.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        match name {
            CHECK_OPTION => {
                if !["local", "cascaded"].iter().any(|it| value.eq_ignore_ascii_case(it)) {
                    let detail = "Valid values are \"local\" and \"cascaded\".";
                    let message = format!("invalid value for enum option \"{name}\": {value}");
                    return Err(invalid(message).with_detail(detail));
                }
            }
            SECURITY_BARRIER | SECURITY_INVOKER => {
                if boolean_of(value).is_none() {
                    let message = format!("invalid value for boolean option \"{name}\": {value}");
                    return Err(invalid(message));
                }
            }
            _ => return Err(invalid(format!("unrecognized parameter \"{name}\""))),
        }
        self.reset(name);
        self.0.push(SmolStr::new(format!("{name}={value}")));
        Ok(())
    }

    /// Removes an option, if it is set.
    pub fn reset(&mut self, name: &str) {
        self.0.retain(|text| text.split_once('=').is_none_or(|(known, _)| known != name));
    }

    /// WITH CHECK OPTION.
    #[must_use]
    pub fn check_option(&self) -> Option<CheckOption> {
        let value = self.value(CHECK_OPTION)?;
        let is_local = value.eq_ignore_ascii_case("local");
        Some(if is_local { CheckOption::Local } else { CheckOption::Cascaded })
    }

    /// Whether the conditions of a statement are checked after those of the view.
    #[must_use]
    pub fn is_security_barrier(&self) -> bool {
        self.value(SECURITY_BARRIER).and_then(boolean_of) == Some(true)
    }

    /// Whether the rights on what the view reads are those of the role of the statement.
    #[must_use]
    pub fn is_security_invoker(&self) -> bool {
        self.value(SECURITY_INVOKER).and_then(boolean_of) == Some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn view_options_have_the_values_of_postgresql() {
        let mut options = ViewOptions::default();
        for value in ["local", "CASCADED"] {
            options.set("check_option", value).unwrap();
        }
        assert_eq!(options.check_option(), Some(CheckOption::Cascaded));
        for (value, is_set) in [("t", true), ("of", false), ("ON", true), ("0", false)] {
            options.set("security_barrier", value).unwrap();
            assert_eq!(options.is_security_barrier(), is_set, "{value}");
        }
        assert_eq!(options.texts().count(), 2);
        for (name, value) in [("check_option", "x"), ("security_invoker", "o"), ("x", "1")] {
            let error = options.set(name, value).unwrap_err();
            assert_eq!(error.state(), SqlState::InvalidParameterValue, "{name}");
        }
        options.reset("check_option");
        assert_eq!(options.check_option(), None);
    }
}
