//! The shell's backslash commands.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, anyhow, bail};

use super::input::{script, words};
use super::shell::{Flow, Shell, StatementPlace};
use super::{describe, say, syntax};
use crate::output::Output;

const DATABASES: &str = "SELECT datname AS \"Name\", pg_encoding_to_char(encoding) AS \"Encoding\" \
    FROM pg_catalog.pg_database ORDER BY 1";
const SCHEMAS: &str = "SELECT nspname AS \"Name\" FROM pg_catalog.pg_namespace ORDER BY 1";

/// All commands with their arguments and help texts, for `\?` and for completion.
pub const COMMANDS: [(&str, &str, &str); 30] = [
    ("\\!", "COMMAND", "execute a command of the operating system"),
    ("\\?", "", "show this help"),
    ("\\conninfo", "", "show the environment and the session"),
    ("\\copy", "TABLE FROM|TO FILE", "COPY of a table or (QUERY) with a file"),
    ("\\d", "[NAME]", "list tables and the like, or describe one"),
    ("\\di", "", "list indexes"),
    ("\\dn", "", "list schemas"),
    ("\\ds", "", "list sequences"),
    ("\\dt", "", "list tables"),
    ("\\dv", "", "list views"),
    ("\\e", "", "edit the statement in $VISUAL or $EDITOR"),
    ("\\echo", "[TEXT]", "write a text"),
    ("\\format", "[table|csv|json]", "set the output format"),
    ("\\g", "[FILE]", "execute the statement; write its result to FILE"),
    ("\\gx", "[FILE]", "as \\g, with expanded output"),
    ("\\h", "[STATEMENT]", "show the syntax of a statement, or list them"),
    ("\\i", "FILE", "execute the statements of a file"),
    ("\\l", "", "list the SQL databases"),
    ("\\o", "[FILE]", "append results to FILE, or to standard output"),
    ("\\p", "", "show the statement: the current or the last one"),
    ("\\pset", "[NAME [VALUE]]", "set null, format, expanded, footer, pager, …"),
    ("\\q", "", "quit"),
    ("\\qecho", "[TEXT]", "write a text to the output of \\o"),
    ("\\r", "", "discard the current statement"),
    ("\\set", "[NAME [VALUE]]", "set a variable: :NAME, :'NAME', :\"NAME\""),
    ("\\t", "[on|off]", "write rows only, without header and footer"),
    ("\\timing", "[on|off]", "show the execution time of each statement"),
    ("\\unset", "NAME", "remove a variable"),
    ("\\watch", "[SECONDS] [c=COUNT]", "repeat the statement every 2 seconds"),
    ("\\x", "[on|off]", "write one line for each column"),
];

/// The effect of a command on the incomplete statement before it.
pub enum Buffer {
    Keep,
    Clear,
    Replace(String),
}

/// Executes a line that is no SQL but what users of other shells type: `help`, `quit`, `.tables`.
/// Returns `None` for other lines. Words without a point are accepted in interactive mode only.
pub fn habit(
    shell: &mut Shell,
    line: &[u8],
    place: &StatementPlace,
) -> Option<anyhow::Result<Flow>> {
    let line = std::str::from_utf8(line).ok()?.trim().trim_end_matches(';').trim_end();
    match meaning(line)? {
        Meaning::Command(command) if shell.is_interactive => {
            Some(run(shell, command, "", place).map(|(flow, _)| flow))
        }
        Meaning::Command(_) => None,
        Meaning::Hint(hint) => Some(Ok(shell.report_other(&anyhow!("{hint}"), place))),
    }
}

enum Meaning {
    Command(&'static str),
    Hint(String),
}

/// Returns the meaning of a line that users of other shells type.
fn meaning(line: &str) -> Option<Meaning> {
    match line.to_ascii_lowercase().as_str() {
        "help" => return Some(Meaning::Command("\\?")),
        "exit" | "quit" => return Some(Meaning::Command("\\q")),
        _ => {}
    }
    let word = line.strip_prefix('.')?.split_whitespace().next()?;
    let ours = match word {
        "tables" => "\\dt",
        "schema" | "fullschema" => "\\d NAME, or `quickbeam dump --sql`,",
        "indexes" | "indices" => "\\di",
        "databases" => "\\d",
        "quit" | "exit" => "\\q",
        "help" => "\\?",
        "mode" => "\\format or \\x",
        "nullvalue" => "\\pset null",
        "output" | "once" => "\\o",
        "print" => "\\echo",
        "read" => "\\i",
        "shell" | "system" => "\\!",
        "timer" => "\\timing",
        "import" => "\\copy",
        "dump" => "`quickbeam dump --sql`",
        _ if word.chars().all(char::is_alphabetic) => "\\?, which lists the commands,",
        _ => return None,
    };
    Some(Meaning::Hint(format!(".{word} is a command of sqlite3: use {ours} here")))
}

/// Executes a command line after the incomplete statement `query`. Reports its error, if any.
pub fn run(
    shell: &mut Shell,
    line: &str,
    query: &str,
    place: &StatementPlace,
) -> anyhow::Result<(Flow, Buffer)> {
    // A semicolon after a command is a habit of SQL users.
    let line = line.trim_end_matches(';').trim_end();
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = &*shell.variables.replace_in(rest.trim()).into_owned();
    // The lists have no columns that `+` could add.
    let name = if name.starts_with("\\d") { name.trim_end_matches('+') } else { name };
    let query =
        if query.trim().is_empty() { shell.last_statement.clone() } else { query.to_owned() };
    match name {
        "\\q" => return Ok((Flow::Quit, Buffer::Clear)),
        "\\r" => return Ok((Flow::On, Buffer::Clear)),
        "\\g" | "\\gx" => return Ok((go(shell, name, rest, &query, place)?, Buffer::Clear)),
        "\\watch" => {
            let flow = match watch_arguments(rest) {
                Ok((seconds, count)) => shell.watch(&query, seconds, count, place)?,
                Err(error) => shell.report_other(&error, place),
            };
            shell.last_statement = query;
            return Ok((flow, Buffer::Clear));
        }
        "\\e" => {
            return match edit(&query) {
                Ok(text) => Ok((Flow::On, Buffer::Replace(text))),
                Err(error) => Ok((shell.report_other(&error, place), Buffer::Keep)),
            };
        }
        "\\restrict" | "\\unrestrict" | "\\connect" if shell.is_lenient => {
            shell.skip(line, None, place);
            return Ok((Flow::On, Buffer::Keep));
        }
        "\\l" | "\\list" => return Ok((shell.statement(DATABASES, place)?, Buffer::Keep)),
        _ if shell.is_remote() && name.starts_with("\\d") && name != "\\dn" => {
            return Ok((
                shell.statement(&remote_description(name, unquoted(rest)), place)?,
                Buffer::Keep,
            ));
        }
        "\\dn" => return Ok((shell.statement(SCHEMAS, place)?, Buffer::Keep)),
        "\\copy" => return Ok((shell.statement(&copy(rest), place)?, Buffer::Keep)),
        "\\i" if !rest.is_empty() => {
            let flow = match script::file(shell, Path::new(unquoted(rest))) {
                // The error was reported when the file's statement failed.
                Ok(Flow::Failed) if shell.depth == 0 => shell.after_failure(),
                Ok(flow) => flow,
                Err(error) => shell.report_other(&error, place),
            };
            return Ok((flow, Buffer::Keep));
        }
        _ => {}
    }
    let mut output = Output::new();
    let done = simple(shell, name, rest, &query, &mut output);
    output.finish()?;
    let flow = match done {
        Ok(()) => Flow::On,
        Err(error) => shell.report_other(&error, place),
    };
    Ok((flow, Buffer::Keep))
}

/// Returns the query that answers a `\d` command where the catalog is another process's.
fn remote_description(command: &str, name: &str) -> String {
    if command == "\\d" && !name.is_empty() {
        let name = name.replace('\'', "''");
        return format!(
            "SELECT column_name AS \"Column\", data_type AS \"Type\", is_nullable AS \"Null\", \
             column_default AS \"Default\" FROM information_schema.columns \
             WHERE table_schema || '.' || table_name = '{name}' OR table_name = '{name}' \
             ORDER BY table_schema, ordinal_position"
        );
    }
    let kinds = match command {
        "\\dt" => "'r'",
        "\\di" => "'i'",
        "\\dv" => "'v'",
        "\\ds" => "'S'",
        _ => "'r', 'v', 'S'",
    };
    format!(
        "SELECT n.nspname AS \"Schema\", c.relname AS \"Name\", CASE c.relkind WHEN 'r' THEN 'table' \
         WHEN 'v' THEN 'view' WHEN 'i' THEN 'index' ELSE 'sequence' END AS \"Type\" \
         FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
         WHERE c.relkind IN ({kinds}) AND n.nspname NOT IN ('pg_catalog', 'information_schema') \
         ORDER BY 1, 2"
    )
}

/// Executes a command that executes no statement.
fn simple(
    shell: &mut Shell,
    name: &str,
    rest: &str,
    query: &str,
    output: &mut Output,
) -> anyhow::Result<()> {
    match name {
        "\\?" => Ok(help(output)?),
        "\\h" | "\\help" => match syntax::help(rest) {
            Some(text) => Ok(write!(output, "{text}")?),
            None => bail!("no statement begins with {rest}: \\h lists the statements"),
        },
        "\\conninfo" => Ok(writeln!(output, "{}", shell.description())?),
        "\\set" | "\\unset" => variable(shell, name, rest, output),
        "\\i" => bail!("\\i needs the name of a file"),
        "\\timing" => timing(rest, shell, output),
        "\\format" if rest.is_empty() => bail!("\\format is table, csv or json"),
        "\\format" => rest.parse().map(|format| shell.settings.format = format),
        "\\x" => set(shell, "expanded", rest),
        "\\t" => set(shell, "tuples_only", rest),
        "\\pset" if rest.is_empty() => Ok(write!(output, "{}", shell.settings.list())?),
        "\\pset" => {
            let (name, value) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            set(shell, name, unquoted(value.trim()))
        }
        "\\o" => {
            let file = Some(unquoted(rest)).filter(|name| !name.is_empty()).map(Into::into);
            let before = std::mem::replace(&mut shell.settings.file, file);
            // An unusable file is an error of this command.
            let opened = shell.settings.output(false).map(drop);
            opened.inspect_err(|_| shell.settings.file = before)
        }
        "\\p" => Ok(writeln!(output, "{}", query.trim())?),
        "\\echo" => Ok(writeln!(output, "{}", unquoted(rest))?),
        "\\qecho" => {
            let mut output = shell.settings.output(false)?;
            writeln!(output, "{}", unquoted(rest))?;
            Ok(output.finish()?)
        }
        "\\!" => {
            let shell = if rest.is_empty() { "${SHELL:-sh}" } else { rest };
            let status = Command::new("sh").arg("-c").arg(shell).status();
            let status = status.context("cannot start sh")?;
            if status.success() { Ok(()) } else { bail!("{rest}: {status}") }
        }
        "\\d" if !rest.is_empty() => describe::one(shell, output, unquoted(rest)),
        "\\d" | "\\dt" | "\\di" | "\\dv" | "\\ds" => describe::all(shell, output, name),
        "\\restrict" | "\\unrestrict" => {
            bail!("{name} is of a script of pg_dump, which the option --lenient reads")
        }
        _ => bail!("there is no command {name}: \\? lists the commands"),
    }
}

/// Executes `\set` or `\unset`.
fn variable(
    shell: &mut Shell,
    command: &str,
    rest: &str,
    output: &mut impl Write,
) -> anyhow::Result<()> {
    let (name, value) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    if name.is_empty() && command == "\\set" {
        return Ok(write!(output, "{}", shell.variables.list())?);
    }
    if name.is_empty() || !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
        bail!("{command} {name:?}: a variable's name has letters, digits and underscores");
    }
    let value = unquoted(value.trim()).replace("''", "'");
    if name == "ON_ERROR_STOP" {
        shell.keeps_going = matches!(&*value, "off" | "false" | "0") || command == "\\unset";
    }
    match command {
        "\\set" => shell.variables.set(name, value),
        _ => shell.variables.unset(name),
    }
    Ok(())
}

fn set(shell: &mut Shell, name: &str, value: &str) -> anyhow::Result<()> {
    let state = shell.settings.set(name, value)?;
    if shell.is_interactive {
        say(&state);
    }
    Ok(())
}

/// Executes a statement with the settings of `\g` or `\gx`.
fn go(
    shell: &mut Shell,
    name: &str,
    file: &str,
    query: &str,
    place: &StatementPlace,
) -> anyhow::Result<Flow> {
    let before = shell.settings.clone();
    shell.settings.is_expanded |= name == "\\gx";
    if !file.is_empty() {
        shell.settings.file = Some(unquoted(file).into());
    }
    let flow = match shell.settings.output(false) {
        Ok(_) => shell.statement(query, place),
        Err(error) => Ok(shell.report_other(&error, place)),
    };
    shell.settings = before;
    query.clone_into(&mut shell.last_statement);
    flow
}

/// Parses the interval and the number of executions of `\watch`.
fn watch_arguments(rest: &str) -> anyhow::Result<(f64, u64)> {
    let (mut seconds, mut count) = (2.0, u64::MAX);
    for word in rest.split_whitespace() {
        if let Some(number) = word.strip_prefix("c=") {
            count = number.parse().with_context(|| format!("{word}: not a number"))?;
        } else {
            let number = word.strip_prefix("i=").unwrap_or(word);
            seconds = number.parse().with_context(|| format!("{word}: not a number"))?;
        }
    }
    if !(0.0..=86_400.0).contains(&seconds) {
        bail!("\\watch takes an interval from 0 to 86400 seconds");
    }
    Ok((seconds, count))
}

/// Returns the statement as the user's editor leaves it.
fn edit(query: &str) -> anyhow::Result<String> {
    let editor = ["VISUAL", "EDITOR"].into_iter().find_map(|name| std::env::var(name).ok());
    let editor = editor.unwrap_or_else(|| "vi".to_owned());
    let path = std::env::temp_dir().join(format!("quickbeam-{}.sql", std::process::id()));
    let shown = path.display().to_string();
    let made = std::fs::File::create_new(&path);
    made.and_then(|mut file| writeln!(file, "{}", query.trim()))
        .with_context(|| format!("cannot write {shown}"))?;
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(&path);
    let edited = match command.status().with_context(|| format!("cannot start {editor}")) {
        Ok(status) if status.success() => {
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {shown}"))
        }
        Ok(status) => Err(anyhow!("{editor}: {status}")),
        Err(error) => Err(error),
    };
    std::fs::remove_file(&path).with_context(|| format!("cannot remove {shown}"))?;
    edited
}

fn help(output: &mut impl Write) -> std::io::Result<()> {
    for (name, arguments, what) in COMMANDS {
        let form = format!("{name} {arguments}");
        writeln!(output, "  {form:<27} {what}")?;
    }
    writeln!(output, "  {:<27} execute the statement; Ctrl-C cancels it", "STATEMENT;")
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

    #[test]
    fn commands_of_other_shells_are_recognized() {
        for (line, expected) in [("help", "\\?"), ("EXIT", "\\q"), ("quit", "\\q")] {
            assert!(matches!(meaning(line), Some(Meaning::Command(found)) if found == expected));
        }
        for line in [".tables", ".schema t", ".foo"] {
            assert!(matches!(meaning(line), Some(Meaning::Hint(_))), "{line}");
        }
        for line in ["helpful", "", ".5", "select", "."] {
            assert!(meaning(line).is_none(), "{line}");
        }
    }
}
