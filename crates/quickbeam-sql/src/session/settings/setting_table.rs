//! The settings of PostgreSQL that programs read and change.
//!
//! A setting takes the values with which statements answer as in PostgreSQL. SET of another value
//! that PostgreSQL takes is refused (`0A000`), and so is a value that it does not take (`22023`).
//! Settings that only tune PostgreSQL's planner or its reports take every valid value.

use super::foreign::{self, Is};
use crate::error::{Result, SqlError, SqlState};

/// A setting.
pub(crate) struct Setting {
    /// Its name, as PostgreSQL writes it.
    pub name: &'static str,
    /// Its value in a new session.
    pub default: &'static str,
    /// The values that it takes.
    pub kind: Kind,
    /// What it is for.
    pub description: &'static str,
    /// Whether only superusers change it.
    pub is_of_superusers: bool,
}

/// The values that a setting takes.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// None: it is a fact.
    Fact,
    /// A setting of the engine or the planner, kept by the session itself.
    Engine,
    /// Any text.
    Text,
    /// On or off.
    Boolean,
    /// On or off; only the default is supported.
    OneBoolean,
    /// An integer of that range, with its unit.
    Integer(i64, i64, Unit),
    /// A number of that range.
    Real(f64, f64),
    /// One of these words.
    Word(&'static [&'static str]),
    /// One of these words; only the default is supported.
    OneWord(&'static [&'static str]),
    /// What the function accepts, given the value and the one before.
    Checked(fn(&str, &str) -> Is),
}

/// The unit of an integer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// A plain number.
    One,
    /// Milliseconds.
    Millisecond,
    /// Kilobytes.
    Kilobyte,
    /// Blocks of 8 kB.
    Block,
}

const TIMES: [(&str, i64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000), ("ms", 1)];
/// A block in kilobytes, and in bytes.
const KILOBYTES: i64 = 8;
pub(crate) const BLOCK: u64 = (KILOBYTES as u64) << 10;
/// The default of `min_parallel_table_scan_size`.
pub(crate) const LEAST_BLOCKS: u64 = (8 << 20) / BLOCK;
const SIZES: [(&str, i64); 4] = [("TB", 1 << 30), ("GB", 1 << 20), ("MB", 1 << 10), ("kB", 1)];

impl Unit {
    fn factors(self) -> &'static [(&'static str, i64)] {
        match self {
            Unit::One => &[],
            Unit::Millisecond => &TIMES,
            Unit::Kilobyte | Unit::Block => &SIZES,
        }
    }

    /// Formats a number with the largest unit that leaves an integer.
    pub fn format(self, number: i64) -> String {
        if number == 0 || number == -1 {
            return number.to_string();
        }
        if self == Unit::Block {
            return Unit::Kilobyte.format(number * KILOBYTES);
        }
        let fits = |(_, factor): &&(&str, i64)| number % factor == 0;
        match self.factors().iter().find(fits) {
            Some((name, factor)) => format!("{}{name}", number / factor),
            None => number.to_string(),
        }
    }

    /// Reads a number with an optional unit. Returns `None` if the text is neither.
    pub fn parse(self, text: &str) -> Option<i64> {
        let text = text.trim();
        if self == Unit::Block && text.ends_with(|c: char| c.is_ascii_alphabetic()) {
            let blocks = Unit::Kilobyte.parse(text)? as f64 / KILOBYTES as f64;
            return Some(blocks.round_ties_even() as i64);
        }
        let end = text.find(|c: char| !c.is_ascii_digit() && !"+-.".contains(c));
        let (digits, unit) = text.split_at(end.unwrap_or(text.len()));
        let factor = match unit.trim() {
            "" => 1,
            unit => self.factors().iter().find(|(name, _)| *name == unit)?.1,
        };
        match digits.parse::<i64>() {
            Ok(number) => number.checked_mul(factor),
            Err(_) => {
                let number = digits.parse::<f64>().ok()? * factor as f64;
                (number.abs() < 9e15).then_some(number.round() as i64)
            }
        }
    }
}

/// Reads a Boolean as PostgreSQL does: a word or the unique start of one.
pub(crate) fn boolean(text: &str) -> Option<bool> {
    let text = text.trim().to_ascii_lowercase();
    let begins = |word: &str, least: usize| text.len() >= least && word.starts_with(&text[..]);
    if begins("true", 1) || begins("yes", 1) || text == "on" || text == "1" {
        return Some(true);
    }
    if begins("false", 1) || begins("no", 1) || begins("off", 2) || text == "0" {
        return Some(false);
    }
    None
}

/// Returns the error of a value that a setting does not take.
#[cold]
pub(crate) fn invalid(name: &str, value: &str) -> SqlError {
    let message = format!("invalid value for parameter \"{name}\": \"{value}\"");
    SqlError::new(SqlState::InvalidParameterValue, message)
}

#[cold]
fn not_supported(name: &str, value: &str) -> SqlError {
    SqlError::unsupported(format!("{name} \"{value}\""))
}

impl Setting {
    /// Checks a value and returns it as PostgreSQL shows it. `current` is the value before.
    pub fn checked(&self, value: &str, current: &str) -> Result<String> {
        let name = self.name;
        match self.kind {
            Kind::Fact => {
                let message = format!("parameter \"{name}\" cannot be changed");
                Err(SqlError::new(SqlState::CannotChangeRuntimeParameter, message))
            }
            Kind::Engine | Kind::Text => Ok(value.to_owned()),
            Kind::Boolean | Kind::OneBoolean => {
                let on = boolean(value).ok_or_else(|| {
                    let message = format!("parameter \"{name}\" requires a Boolean value");
                    SqlError::new(SqlState::InvalidParameterValue, message)
                })?;
                let shown = if on { "on" } else { "off" };
                if matches!(self.kind, Kind::OneBoolean) && shown != self.default {
                    return Err(not_supported(name, shown));
                }
                Ok(shown.to_owned())
            }
            Kind::Integer(least, most, unit) => {
                let number = unit.parse(value).ok_or_else(|| invalid(name, value))?;
                if !(least..=most).contains(&number) {
                    let message = format!(
                        "{number} is outside the valid range for parameter \"{name}\" ({least} .. {most})"
                    );
                    return Err(SqlError::new(SqlState::InvalidParameterValue, message));
                }
                Ok(unit.format(number))
            }
            Kind::Real(least, most) => match value.trim().parse::<f64>() {
                Ok(number) if (least..=most).contains(&number) => Ok(number.to_string()),
                _ => Err(invalid(name, value)),
            },
            Kind::Word(words) | Kind::OneWord(words) => {
                let same = |word: &&&str| word.eq_ignore_ascii_case(value.trim());
                let word = words.iter().find(same).ok_or_else(|| invalid(name, value))?;
                if matches!(self.kind, Kind::OneWord(_)) && *word != self.default {
                    return Err(not_supported(name, value));
                }
                Ok((*word).to_owned())
            }
            Kind::Checked(check) => match check(&value.to_lowercase(), current) {
                Is::Supported(shown) => Ok(shown.unwrap_or_else(|| value.to_owned())),
                Is::Another => Err(not_supported(name, value)),
                Is::Invalid(None) => Err(invalid(name, value)),
                Is::Invalid(Some(detail)) => Err(invalid(name, value).with_detail(detail)),
            },
        }
    }
}

const INT: i64 = i32::MAX as i64;

const fn row(
    name: &'static str,
    default: &'static str,
    kind: Kind,
    description: &'static str,
) -> Setting {
    Setting { name, default, kind, description, is_of_superusers: false }
}

const MESSAGES: Kind = Kind::Word(&[
    "debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error",
]);
const TIMEOUT: Kind = Kind::Integer(0, INT, Unit::Millisecond);

/// The settings with an effect, and those of older releases.
pub(super) static SETTINGS: &[Setting] = &[
    row(
        "application_name",
        "",
        Kind::Text,
        "Sets the application name to be reported in statistics and logs.",
    ),
    row("array_nulls", "on", Kind::OneBoolean, "Enable input of NULL elements in arrays."),
    row(
        "backslash_quote",
        "safe_encoding",
        Kind::Word(&["safe_encoding", "on", "off"]),
        "Sets whether \"\\'\" is allowed in string literals.",
    ),
    row("block_size", "8192", Kind::Fact, "Shows the size of a disk block."),
    row("bytea_output", "hex", Kind::Word(&["escape", "hex"]), "Sets the output format for bytea."),
    row(
        "check_function_bodies",
        "on",
        Kind::Boolean,
        "Check routine bodies during CREATE FUNCTION and CREATE PROCEDURE.",
    ),
    row(
        "client_encoding",
        "UTF8",
        Kind::Checked(foreign::encoding),
        "Sets the client's character set encoding.",
    ),
    row(
        "client_min_messages",
        "notice",
        MESSAGES,
        "Sets the message levels that are sent to the client.",
    ),
    row(
        "constraint_exclusion",
        "partition",
        Kind::Word(&["partition", "on", "off"]),
        "Enables the planner to use constraints to optimize queries.",
    ),
    row(
        "cursor_tuple_fraction",
        "0.1",
        Kind::Real(0.0, 1.0),
        "Sets the planner's estimate of the fraction of a cursor's rows that will be retrieved.",
    ),
    row(
        "DateStyle",
        "ISO, MDY",
        Kind::Checked(foreign::date_style),
        "Sets the display format for date and time values.",
    ),
    row(
        "default_statistics_target",
        "100",
        Kind::Integer(1, 10_000, Unit::One),
        "Sets the default statistics target.",
    ),
    row(
        "default_table_access_method",
        "heap",
        Kind::OneWord(&["heap"]),
        "Sets the default table access method for new tables.",
    ),
    row(
        "default_tablespace",
        "",
        Kind::OneWord(&[""]),
        "Sets the default tablespace to create tables and indexes in.",
    ),
    row(
        "default_text_search_config",
        "pg_catalog.english",
        Kind::Checked(foreign::text_search_configuration),
        "Sets default text search configuration.",
    ),
    row(
        "default_transaction_deferrable",
        "off",
        Kind::OneBoolean,
        "Sets the default deferrable status of new transactions.",
    ),
    row(
        "default_transaction_isolation",
        "",
        Kind::Engine,
        "Sets the transaction isolation level of each new transaction.",
    ),
    row(
        "default_transaction_read_only",
        "off",
        Kind::Engine,
        "Sets the default read-only status of new transactions.",
    ),
    row("durability", "", Kind::Engine, "Sets what a commit waits for."),
    row(
        "enable_bitmapscan",
        "on",
        Kind::Boolean,
        "Enables the planner's use of bitmap-scan plans.",
    ),
    row(
        "enable_hashagg",
        "on",
        Kind::Boolean,
        "Enables the planner's use of hashed aggregation plans.",
    ),
    row("enable_hashjoin", "on", Kind::Boolean, "Enables the planner's use of hash join plans."),
    row(
        "enable_indexonlyscan",
        "on",
        Kind::Boolean,
        "Enables the planner's use of index-only-scan plans.",
    ),
    row("enable_indexscan", "on", Kind::Boolean, "Enables the planner's use of index-scan plans."),
    row("enable_material", "on", Kind::Boolean, "Enables the planner's use of materialization."),
    row("enable_mergejoin", "on", Kind::Boolean, "Enables the planner's use of merge join plans."),
    row(
        "enable_nestloop",
        "on",
        Kind::Boolean,
        "Enables the planner's use of nested-loop join plans.",
    ),
    row(
        "enable_seqscan",
        "on",
        Kind::Boolean,
        "Enables the planner's use of sequential-scan plans.",
    ),
    row("enable_sort", "on", Kind::Boolean, "Enables the planner's use of explicit sort steps."),
    row(
        "escape_string_warning",
        "on",
        Kind::Boolean,
        "Warn about backslash escapes in ordinary string literals.",
    ),
    row("execution_mode", "auto", Kind::Engine, "Sets whether steps run by rows or by columns."),
    row(
        "extra_float_digits",
        "1",
        Kind::Integer(-15, 3, Unit::One),
        "Sets the number of digits displayed for floating-point values.",
    ),
    row(
        "from_collapse_limit",
        "8",
        Kind::Integer(1, INT, Unit::One),
        "Sets the FROM-list size beyond which subqueries are not collapsed.",
    ),
    row("geqo", "on", Kind::Boolean, "Enables genetic query optimization."),
    row(
        "idle_in_transaction_session_timeout",
        "0",
        TIMEOUT,
        "Sets the maximum allowed idle time between queries, when in a transaction.",
    ),
    row(
        "idle_session_timeout",
        "0",
        TIMEOUT,
        "Sets the maximum allowed idle time between queries, when not in a transaction.",
    ),
    row("in_hot_standby", "off", Kind::Fact, "Shows whether hot standby is currently active."),
    row("integer_datetimes", "on", Kind::Fact, "Shows whether datetimes are integer based."),
    row(
        "IntervalStyle",
        "postgres",
        Kind::Word(&["postgres", "postgres_verbose", "sql_standard", "iso_8601"]),
        "Sets the display format for interval values.",
    ),
    row("is_superuser", "on", Kind::Fact, "Shows whether the current user is a superuser."),
    row("jit", "off", Kind::Boolean, "Allow JIT compilation."),
    row(
        "join_collapse_limit",
        "8",
        Kind::Integer(1, INT, Unit::One),
        "Sets the FROM-list size beyond which JOIN constructs are not flattened.",
    ),
    row("lc_collate", "C", Kind::Fact, "Shows the collation order locale."),
    row(
        "lc_ctype",
        "C.UTF-8",
        Kind::Fact,
        "Shows the character classification and case conversion locale.",
    ),
    row("lc_messages", "C", Kind::Text, "Sets the language in which messages are displayed."),
    row(
        "lc_monetary",
        "C",
        Kind::OneWord(&["C"]),
        "Sets the locale for formatting monetary amounts.",
    ),
    row("lc_numeric", "C", Kind::OneWord(&["C"]), "Sets the locale for formatting numbers."),
    row(
        "lc_time",
        "C",
        Kind::OneWord(&["C"]),
        "Sets the locale for formatting date and time values.",
    ),
    row(
        "lock_timeout",
        "0",
        Kind::Engine,
        "Sets the maximum allowed duration of any wait for a lock.",
    ),
    row(
        "log_statement",
        "none",
        Kind::Word(&["none", "ddl", "mod", "all"]),
        "Sets the type of statements logged.",
    ),
    row(
        "maintenance_work_mem",
        "64MB",
        Kind::Integer(1_024, INT, Unit::Kilobyte),
        "Sets the maximum memory to be used for maintenance operations.",
    ),
    row("max_identifier_length", "63", Kind::Fact, "Shows the maximum identifier length."),
    row("max_index_keys", "32", Kind::Fact, "Shows the maximum number of index keys."),
    row(
        "max_parallel_workers_per_gather",
        "0",
        Kind::Integer(0, 1_024, Unit::One),
        "Sets the maximum number of parallel processes per executor node.",
    ),
    row(
        "min_parallel_table_scan_size",
        "8MB",
        Kind::Integer(0, INT / 3, Unit::Block),
        "Sets the minimum amount of table data for a parallel scan.",
    ),
    row(
        "plan_cache_mode",
        "auto",
        Kind::Word(&["auto", "force_generic_plan", "force_custom_plan"]),
        "Controls the planner's selection of custom or generic plan.",
    ),
    row(
        "quote_all_identifiers",
        "off",
        Kind::OneBoolean,
        "When generating SQL fragments, quote all identifiers.",
    ),
    row(
        "random_page_cost",
        "4",
        Kind::Real(0.0, f64::MAX),
        "Sets the planner's estimate of the cost of a nonsequentially fetched disk page.",
    ),
    row("role", "none", Kind::Text, "Sets the current role."),
    row("row_security", "on", Kind::Boolean, "Enable row security."),
    row(
        "search_path",
        "\"$user\", public",
        Kind::Text,
        "Sets the schema search order for names that are not schema-qualified.",
    ),
    row(
        "server_encoding",
        "UTF8",
        Kind::Fact,
        "Shows the server (database) character set encoding.",
    ),
    row(
        "server_version",
        crate::expression::SERVER_VERSION,
        Kind::Fact,
        "Shows the server version.",
    ),
    row("server_version_num", "150000", Kind::Fact, "Shows the server version as an integer."),
    row("session_authorization", "quickbeam", Kind::Text, "Sets the session user name."),
    Setting {
        name: "session_replication_role",
        default: "origin",
        kind: Kind::Word(&["origin", "replica", "local"]),
        description: "Sets the session's behavior for triggers and rewrite rules.",
        is_of_superusers: true,
    },
    row(
        "standard_conforming_strings",
        "on",
        Kind::OneBoolean,
        "Causes '...' strings to treat backslashes literally.",
    ),
    row("statement_timeout", "0", TIMEOUT, "Sets the maximum allowed duration of any statement."),
    row(
        "synchronous_commit",
        "on",
        Kind::Checked(foreign::synchronous_commit),
        "Sets the current transaction's synchronization level.",
    ),
    row(
        "temp_tablespaces",
        "",
        Kind::OneWord(&[""]),
        "Sets the tablespace(s) to use for temporary tables and sort files.",
    ),
    row(
        "TimeZone",
        "UTC",
        Kind::Checked(foreign::time_zone),
        "Sets the time zone for displaying and interpreting time stamps.",
    ),
    row(
        "transaction_deferrable",
        "off",
        Kind::OneBoolean,
        "Whether to defer a read-only serializable transaction until it can be executed with no possible serialization failures.",
    ),
    row(
        "transaction_isolation",
        "",
        Kind::Engine,
        "Sets the current transaction's isolation level.",
    ),
    row(
        "transaction_read_only",
        "off",
        Kind::Engine,
        "Sets the current transaction's read-only status.",
    ),
    row(
        "work_mem",
        "256MB",
        Kind::Engine,
        "Sets the maximum memory to be used for query workspaces.",
    ),
    row(
        "xmloption",
        "content",
        Kind::Word(&["content", "document"]),
        "Sets whether XML data in implicit parsing and serialization operations is to be considered as documents or content fragments.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::settings::known_settings::setting;

    #[test]
    fn only_supported_values_are_accepted() {
        for (name, value, expected) in [
            ("client_encoding", "utf-8", Ok("UTF8")),
            ("client_encoding", "latin1", Err("0A000")),
            ("client_encoding", "nosuch", Err("22023")),
            ("DateStyle", "iso, dmy", Ok("ISO, DMY")),
            ("datestyle", "ISO", Ok("ISO, MDY")),
            ("datestyle", "german", Ok("German, DMY")),
            ("datestyle", "sql, ymd", Ok("SQL, YMD")),
            ("datestyle", "iso, sql", Err("22023")),
            ("datestyle", "nosuch", Err("22023")),
            ("extra_float_digits", "3", Ok("3")),
            ("extra_float_digits", "0", Ok("0")),
            ("extra_float_digits", "4", Err("22023")),
            ("application_name", "Any Thing", Ok("Any Thing")),
            ("statement_timeout", "90000", Ok("90s")),
            ("statement_timeout", "2min", Ok("2min")),
            ("statement_timeout", "-1", Err("22023")),
            ("statement_timeout", "2 parsecs", Err("22023")),
            ("min_parallel_table_scan_size", "100", Ok("800kB")),
            ("min_parallel_table_scan_size", "20kB", Ok("16kB")),
            ("min_parallel_table_scan_size", "1GB", Ok("1GB")),
            ("min_parallel_table_scan_size", "0", Ok("0")),
            ("min_parallel_table_scan_size", "-1", Err("22023")),
            ("row_security", "of", Ok("off")),
            ("row_security", "o", Err("22023")),
            ("standard_conforming_strings", "off", Err("0A000")),
            ("TIMEZONE", "utc", Ok("UTC")),
            ("timezone", "europe/berlin", Ok("Europe/Berlin")),
            ("timezone", "nowhere", Err("22023")),
            ("timezone", "170", Err("22023")),
            ("client_min_messages", "WARNING", Ok("warning")),
            ("server_version", "1", Err("55P02")),
        ] {
            let found = setting(name).unwrap();
            let found = found.checked(value, found.default);
            let found = found.as_deref().map_err(SqlError::code);
            assert_eq!(found, expected, "{name} = {value}");
        }
    }
}
