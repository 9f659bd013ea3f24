//! The shell's backslash commands.

use std::io::Write;
use std::path::Path;

use anyhow::bail;

use super::shell::{Flow, Place, Shell};
use super::{describe, script, words};
use crate::output::Output;

/// All commands with their arguments and help texts, for `\?` and for completion.
pub const COMMANDS: [(&str, &str, &str); 11] = [
    ("\\?", "", "these commands"),
    (
        "\\copy",
        "TABLE|(QUERY) FROM|TO FILE …",
        "COPY with a file, as the statement COPY; its name needs no quotes",
    ),
    ("\\d", "[NAME]", "all tables, views, sequences and databases, or what one of them is"),
    ("\\di", "", "indexes"),
    ("\\ds", "", "sequences"),
    ("\\dt", "", "tables"),
    ("\\dv", "", "views"),
    ("\\format", "[table|csv|json]", "how answers are written"),
    ("\\i", "FILE", "execute the statements of a file"),
    ("\\q", "", "end"),
    ("\\timing", "[on|off]", "say how long each statement took"),
];

/// Executes a command line and reports its error, if any.
pub fn run(shell: &mut Shell, line: &str, place: &Place) -> anyhow::Result<Flow> {
    // A semicolon after a command is a habit of SQL users.
    let line = line.trim_end_matches(';').trim_end();
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let mut output = Output::new();
    let done = match name {
        "\\q" => return Ok(Flow::Quit),
        "\\i" if rest.is_empty() => Err(anyhow::anyhow!("\\i needs the name of a file")),
        "\\i" => match script::file(shell, Path::new(unquoted(rest))) {
            // The error was reported when the file's statement failed.
            Ok(Flow::Failed) if shell.depth == 0 => return Ok(shell.after_failure()),
            Ok(flow) => return Ok(flow),
            Err(error) => Err(error),
        },
        "\\copy" => return shell.statement(&copy(rest), place),
        "\\?" => help(&mut output).map_err(Into::into),
        "\\timing" => timing(rest, shell, &mut output),
        "\\format" if rest.is_empty() => Err(anyhow::anyhow!("\\format is table, csv or json")),
        "\\format" => rest.parse().map(|format| shell.format = format),
        "\\d" if !rest.is_empty() => describe::one(shell, &mut output, unquoted(rest)),
        "\\d" | "\\dt" | "\\di" | "\\dv" | "\\ds" => describe::all(shell, &mut output, name),
        _ => Err(anyhow::anyhow!("there is no command {name}: \\? lists what there is")),
    };
    output.finish()?;
    match done {
        Ok(()) => Ok(Flow::On),
        Err(error) => Ok(shell.report_other(&error, place)),
    }
}

fn help(output: &mut impl Write) -> std::io::Result<()> {
    for (name, arguments, what) in COMMANDS {
        let form = format!("{name} {arguments}");
        writeln!(output, "  {form:<40} {what}")?;
    }
    writeln!(output, "  {:<40} execute the statement; Ctrl-C cancels it", "STATEMENT;")
}

fn timing(to: &str, shell: &mut Shell, output: &mut impl Write) -> anyhow::Result<()> {
    shell.is_timing = match to {
        "" => !shell.is_timing,
        "on" => true,
        "off" => false,
        other => bail!("\\timing is on or off, not {other}"),
    };
    if shell.is_interactive {
        writeln!(output, "Timing is {}.", if shell.is_timing { "on" } else { "off" })?;
    }
    Ok(())
}

fn unquoted(text: &str) -> &str {
    let quoted = text.strip_prefix(['\'', '"']).and_then(|text| text.strip_suffix(['\'', '"']));
    quoted.unwrap_or(text)
}

/// Builds the COPY statement of a `\copy` command by quoting its file name.
fn copy(rest: &str) -> String {
    let Some((_, end)) = words::direction(rest) else { return format!("COPY {rest}") };
    let (head, tail) = rest.split_at(end);
    let tail = tail.trim_start();
    let (file, options) = tail.split_at(tail.find(char::is_whitespace).unwrap_or(tail.len()));
    let is_name = !file.starts_with('\'')
        && !["stdin", "stdout", "program"].contains(&file.to_lowercase().as_str());
    if is_name {
        format!("COPY {head} '{}'{options}", file.replace('\'', "''"))
    } else {
        format!("COPY {head} {tail}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_get_quotes() {
        let cases = [
            ("t from a.csv with (format csv)", "COPY t from 'a.csv' with (format csv)"),
            ("t (a, b) FROM 'a b.csv' CSV", "COPY t (a, b) FROM 'a b.csv' CSV"),
            ("(SELECT a FROM t) to /tmp/x", "COPY (SELECT a FROM t) to '/tmp/x'"),
            ("t to stdout csv", "COPY t to stdout csv"),
            ("t", "COPY t"),
        ];
        for (given, expected) in cases {
            assert_eq!(copy(given), expected);
        }
    }
}
