//! Options of EXPLAIN, in the parser's form.

use sqlparser::ast::{
    AnalyzeFormat, AnalyzeFormatKind, DescribeAlias, Expr, Ident, Statement, UtilityOption,
};

use super::offset_of;
use crate::error::{Result, SqlError, SqlState};

/// Makes `EXPLAIN (ANALYZE)` the same as `EXPLAIN ANALYZE`. Refuses options that would change the
/// output.
pub fn adapt(text: &str, statement: &mut Statement) -> Result<()> {
    let Statement::Explain {
        describe_alias: DescribeAlias::Explain,
        analyze,
        verbose,
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
    if *verbose || *query_plan || *estimate || !as_text {
        return Err(SqlError::unsupported("this form of EXPLAIN"));
    }
    for option in options.take().unwrap_or_default() {
        let position = offset_of(text, option.name.span.start);
        apply(&option, analyze).map_err(|error| error.at(position))?;
    }
    Ok(())
}

fn apply(option: &UtilityOption, analyze: &mut bool) -> Result<()> {
    let name = option.name.value.to_lowercase();
    let argument = match &option.arg {
        None => String::new(),
        Some(Expr::Identifier(Ident { value, .. })) => value.to_lowercase(),
        Some(other) => other.to_string().to_lowercase(),
    };
    let is_on = match argument.trim_matches('\'') {
        "" | "true" | "on" | "1" => Some(true),
        "false" | "off" | "0" => Some(false),
        _ => None,
    };
    match (&name[..], is_on) {
        ("analyze", Some(wanted)) => *analyze = wanted,
        ("format", None) if argument.trim_matches('\'') == "text" => {}
        (
            "verbose" | "costs" | "settings" | "buffers" | "wal" | "timing" | "summary",
            Some(false),
        ) => {}
        (
            "analyze" | "verbose" | "costs" | "settings" | "buffers" | "wal" | "timing" | "summary"
            | "format",
            _,
        ) => {
            return Err(SqlError::unsupported(format!(
                "the option {} of EXPLAIN",
                name.to_uppercase()
            )));
        }
        _ => {
            let message = format!("unrecognized EXPLAIN option \"{name}\"");
            return Err(SqlError::new(SqlState::SyntaxError, message));
        }
    }
    Ok(())
}
