//! Options of EXPLAIN, in the parser's form.

use sqlparser::ast::{
    AnalyzeFormat, AnalyzeFormatKind, DescribeAlias, Expr, Ident, Statement, UtilityOption,
};

use super::offset_of;
use crate::error::{Result, SqlError, SqlState};

/// The output format of EXPLAIN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExplainFormat {
    /// Lines of text.
    #[default]
    Text,
    /// One JSON text.
    Json,
    /// One YAML text.
    Yaml,
    /// One XML text.
    Xml,
}

impl ExplainFormat {
    /// Returns the format of an EXPLAIN whose options were [adapted](adapt).
    pub fn of(options: Option<&[UtilityOption]>) -> ExplainFormat {
        let format = options.and_then(<[UtilityOption]>::first);
        format.and_then(|option| ExplainFormat::named(&argument_of(option))).unwrap_or_default()
    }

    fn named(name: &str) -> Option<ExplainFormat> {
        match name {
            "text" => Some(ExplainFormat::Text),
            "json" => Some(ExplainFormat::Json),
            "yaml" => Some(ExplainFormat::Yaml),
            "xml" => Some(ExplainFormat::Xml),
            _ => None,
        }
    }
}

/// Makes `EXPLAIN (ANALYZE)` the same as `EXPLAIN ANALYZE`, and leaves the option FORMAT alone in
/// the list of options. The other options are checked; they add nothing to the output.
pub fn adapt(text: &str, statement: &mut Statement) -> Result<()> {
    let Statement::Explain {
        describe_alias: DescribeAlias::Explain,
        analyze,
        query_plan,
        estimate,
        format,
        options,
        ..
    } = statement
    else {
        return Ok(());
    };
    let as_text = match format {
        None => true,
        Some(AnalyzeFormatKind::Keyword(form) | AnalyzeFormatKind::Assignment(form)) => {
            *form == AnalyzeFormat::TEXT
        }
    };
    if *query_plan || *estimate || !as_text {
        let message = "syntax error: this form of EXPLAIN does not exist";
        return Err(SqlError::new(SqlState::SyntaxError, message));
    }
    let mut needs_analyze = None;
    let mut formats = Vec::new();
    for option in options.take().unwrap_or_default() {
        let position = offset_of(text, option.name.span.start);
        let name = option.name.value.to_lowercase();
        let is_on = apply(&option, &name, analyze).map_err(|error| error.at(position))?;
        match &name[..] {
            "format" => formats = vec![option],
            "wal" | "timing" if is_on => needs_analyze = Some((name, position)),
            _ => {}
        }
    }
    if let Some((name, position)) = needs_analyze.filter(|_| !*analyze) {
        let message = format!("EXPLAIN option {} requires ANALYZE", name.to_uppercase());
        return Err(SqlError::new(SqlState::InvalidParameterValue, message).at(position));
    }
    *options = (!formats.is_empty()).then_some(formats);
    Ok(())
}

/// Returns the argument of an option in lower case, without quotes.
fn argument_of(option: &UtilityOption) -> String {
    let argument = match &option.arg {
        None => String::new(),
        Some(Expr::Identifier(Ident { value, .. })) => value.to_lowercase(),
        Some(other) => other.to_string().to_lowercase(),
    };
    argument.trim_matches('\'').to_owned()
}

/// Checks an option. Returns whether it is on.
fn apply(option: &UtilityOption, name: &str, analyze: &mut bool) -> Result<bool> {
    let argument = argument_of(option);
    let is_on = match &argument[..] {
        "" | "true" | "on" | "1" => Some(true),
        "false" | "off" | "0" => Some(false),
        _ => None,
    };
    match (name, is_on) {
        ("analyze", Some(wanted)) => {
            *analyze = wanted;
            Ok(wanted)
        }
        ("format", _) if ExplainFormat::named(&argument).is_some() => Ok(true),
        ("format", _) => {
            let message =
                format!("unrecognized value for EXPLAIN option \"{name}\": \"{argument}\"");
            Err(SqlError::new(SqlState::InvalidParameterValue, message))
        }
        (
            "verbose" | "costs" | "settings" | "buffers" | "wal" | "timing" | "summary",
            Some(wanted),
        ) => Ok(wanted),
        (
            "analyze" | "verbose" | "costs" | "settings" | "buffers" | "wal" | "timing" | "summary",
            None,
        ) => {
            let message = format!("{name} requires a Boolean value");
            Err(SqlError::new(SqlState::SyntaxError, message))
        }
        _ => {
            let message = format!("unrecognized EXPLAIN option \"{name}\"");
            Err(SqlError::new(SqlState::SyntaxError, message))
        }
    }
}
