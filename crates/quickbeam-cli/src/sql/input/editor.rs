//! Interactive input: a line editor with history and completion. A statement may span several
//! lines; the shell executes it once its `;` is entered.

use std::path::PathBuf;

use rustyline::completion::{Completer, FilenameCompleter};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, Helper};

use super::lines::standard_lines;
use super::script::Pending;
use crate::sql::command::COMMANDS;
use crate::sql::say;
use crate::sql::shell::{Flow, Shell, StatementPlace};

/// Environment variable with the path of the history file; empty disables the history.
const HISTORY: &str = "QUICKBEAM_HISTORY";
const HISTORY_FILE: &str = ".quickbeam_history";
const HISTORY_LINES: usize = 10_000;

/// SQL keywords that completion offers.
const KEYWORDS: &str = "ADD ALL ALTER ALWAYS ANALYZE AND ANY AS ASC AVG BEGIN BETWEEN BIGINT BOOLEAN BY BYTEA CASCADE CASE CAST CHAR CHECK COALESCE COLUMN \
    COMMIT CONFLICT CONSTRAINT COPY COUNT CREATE CROSS CSV CURRENT_DATE CURRENT_TIMESTAMP DATE DEFAULT DELETE DESC DISTINCT DO DOUBLE DROP ELSE END EXCEPT \
    EXISTS EXPLAIN FALSE FETCH FIRST FOR FOREIGN FORMAT FROM FULL GENERATED GROUP HASH HAVING HEADER IDENTITY IF ILIKE IN INDEX INNER INSERT INTEGER INTERSECT \
    INTO IS ISOLATION JOIN KEY LAST LEFT LEVEL LIKE LIMIT LOCAL MAX MIN NATURAL NEXTVAL NOT NOTHING NOW NULL NULLS NUMERIC OFFSET ON ONLY OR ORDER OUTER \
    PRECISION PRIMARY READ REAL REFERENCES RELEASE RENAME REPEATABLE REPLACE RESTART RESTRICT RETURNING RIGHT ROLLBACK ROW ROWS SAVEPOINT SELECT SEQUENCE \
    SERIALIZABLE SET SMALLINT STDIN STDOUT SUM TABLE TEXT THEN TIME TIMESTAMP TO TRANSACTION TRUE TRUNCATE UNION UNIQUE UPDATE USING UUID VALUES VARCHAR \
    VIEW WHEN WHERE WITH WORK";

/// Keywords that precede a table name.
const BEFORE_TABLES: [&str; 7] = ["from", "join", "into", "update", "table", "copy", "references"];

/// The completion data.
#[derive(Default)]
struct Words {
    /// Names of tables and views, each with its column names.
    tables: Vec<(String, Vec<String>)>,
    files: FilenameCompleter,
}

impl Helper for Words {}
impl Highlighter for Words {}
impl Validator for Words {}

impl Hinter for Words {
    type Hint = String;
}

impl Completer for Words {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let before = &line[..position];
        let command = before.trim_start().split(' ').next().unwrap_or_default();
        if matches!(command, "\\i" | "\\copy") && before.contains(' ') {
            let (start, found) = self.files.complete_path(line, position)?;
            if command == "\\i" || before[start..].contains('/') {
                return Ok((start, found.into_iter().map(|pair| pair.replacement).collect()));
            }
        }
        if command.starts_with('\\') && !before.contains(' ') {
            let start = position - command.len();
            let names = COMMANDS.iter().map(|(name, ..)| (*name).to_owned());
            return Ok((start, names.filter(|name| name.starts_with(command)).collect()));
        }
        Ok(self.candidates(line, before))
    }
}

impl Words {
    /// Returns the start of the word before the cursor and its completions.
    fn candidates(&self, line: &str, before: &str) -> (usize, Vec<String>) {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let start = before
            .rfind(|c: char| !is_word(c))
            .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        let typed = &before[start..];
        let small = typed.to_lowercase();
        let mut found: Vec<String> = Vec::new();
        if let Some(qualified) = before[..start].strip_suffix('.') {
            // The name before the point is a table or an alias.
            let from = qualified.rfind(|c: char| !is_word(c)).map_or(0, |at| at + 1);
            let name = qualified.get(from..).unwrap_or_default().to_lowercase();
            let table = self.alias(line, &name).unwrap_or(name);
            let columns = self.tables.iter().filter(|(known, _)| *known == table);
            found.extend(columns.flat_map(|(_, columns)| columns.iter().cloned()));
        } else {
            let earlier = before[..start].trim_end().rsplit(|c: char| !is_word(c)).next();
            let earlier = earlier.unwrap_or_default().to_lowercase();
            found.extend(self.tables.iter().map(|(name, _)| name.clone()));
            if !BEFORE_TABLES.contains(&earlier.as_str()) {
                found.extend(self.columns_in(line));
                let is_small = typed.chars().any(char::is_lowercase);
                let keywords = KEYWORDS.split_whitespace();
                found.extend(
                    keywords
                        .map(|word| if is_small { word.to_lowercase() } else { word.to_owned() }),
                );
            }
        }
        found.retain(|word| word.to_lowercase().starts_with(&small));
        found.sort();
        found.dedup();
        // Names with upper-case letters need quotes.
        let is_plain = |c: char| c.is_lowercase() || c.is_ascii_digit() || c == '_';
        let names = |word: String| {
            let is_keyword =
                KEYWORDS.split_whitespace().any(|known| known.eq_ignore_ascii_case(&word));
            if is_keyword || word.chars().all(is_plain) {
                word
            } else {
                format!("\"{}\"", word.replace('"', "\"\""))
            }
        };
        (start, found.into_iter().map(names).collect())
    }

    /// Returns the table of an alias in this statement: `table name` or `table AS name`.
    fn alias(&self, line: &str, alias: &str) -> Option<String> {
        let words: Vec<String> = line
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect();
        let at = |number: usize| words.get(number).map(String::as_str);
        (0..words.len()).find_map(|number| {
            let table =
                at(number).filter(|name| self.tables.iter().any(|(known, _)| known == name))?;
            let next = if at(number + 1) == Some("as") { number + 2 } else { number + 1 };
            (at(next) == Some(alias)).then(|| table.to_owned())
        })
    }

    /// Returns the columns of the tables in the statement, or of all tables if it names none.
    fn columns_in(&self, line: &str) -> Vec<String> {
        let small = line.to_lowercase();
        let is_named = |table: &str| {
            small.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == table)
        };
        let any = self.tables.iter().any(|(name, _)| is_named(name));
        let tables = self.tables.iter().filter(|(name, _)| !any || is_named(name));
        tables.flat_map(|(_, columns)| columns.iter().cloned()).collect()
    }
}

/// Reads and executes statements until the user quits.
pub fn run(shell: &mut Shell) -> anyhow::Result<()> {
    let config = Config::builder()
        .max_history_size(HISTORY_LINES)?
        .completion_type(CompletionType::List)
        .build();
    let mut editor: Editor<Words, DefaultHistory> = Editor::with_config(config)?;
    editor.set_helper(Some(Words::default()));
    let history = history_file();
    if let Some(file) = history.as_ref().filter(|file| file.exists())
        && let Err(error) = editor.load_history(file)
    {
        say(&format!("the history {} cannot be read: {error}", file.display()));
    }
    say("Statements end with a semicolon. \\? lists commands, \\q ends.");
    shell.set_input(Some(standard_lines()));
    let ended = converse(shell, &mut editor);
    if let Some(file) = &history
        && let Err(error) = editor.save_history(file)
    {
        say(&format!("the history {} cannot be written: {error}", file.display()));
    }
    ended
}

fn converse(shell: &mut Shell, editor: &mut Editor<Words, DefaultHistory>) -> anyhow::Result<()> {
    let (mut pending, mut entry) = (Pending::default(), String::new());
    let mut place = StatementPlace { name: None, line: 0 };
    loop {
        if let Some(words) = editor.helper_mut() {
            match tables(shell) {
                Ok(tables) => words.tables = tables,
                Err(error) => say(&format!("completion does not know the tables: {error}")),
            }
        }
        let star = if shell.in_transaction() { "*" } else { "" };
        let text = match editor.readline(&format!("quickbeam{}{star}> ", pending.mark())) {
            Ok(text) => text,
            // Ctrl-C discards the incomplete statement.
            Err(ReadlineError::Interrupted) => {
                (pending, entry) = (Pending::default(), String::new());
                continue;
            }
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        // A pasted text has several lines.
        for line in text.lines() {
            entry.push_str(line);
            entry.push('\n');
            if pending.feed(shell, format!("{line}\n").as_bytes(), &mut place)? == Flow::Quit {
                return Ok(());
            }
        }
        // The history keeps a statement of several lines as one entry.
        if pending.is_blank() && !entry.trim().is_empty() {
            editor.add_history_entry(entry.trim_end())?;
        }
        if pending.is_blank() {
            entry.clear();
        }
    }
}

fn tables(shell: &Shell) -> Result<Vec<(String, Vec<String>)>, quickbeam_sql::SqlError> {
    use quickbeam_sql::catalog::{Relation, shown_name};
    let catalog = shell.catalog()?;
    let relations = catalog.relations().into_iter();
    let tables = relations.filter_map(|(name, relation)| {
        let columns = match relation {
            Relation::Table(table) => {
                table.columns.iter().map(|column| column.name.to_string()).collect()
            }
            Relation::View(view) => view.columns.iter().map(|column| column.to_string()).collect(),
            Relation::Sequence(_) | Relation::Index(..) => return None,
        };
        Some((shown_name(&name), columns))
    });
    Ok(tables.collect())
}

fn history_file() -> Option<PathBuf> {
    match std::env::var_os(HISTORY) {
        Some(file) if file.is_empty() => None,
        Some(file) => Some(file.into()),
        None => std::env::home_dir().map(|home| home.join(HISTORY_FILE)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(before: &str) -> (String, Vec<String>) {
        let tables = vec![
            ("fruit".to_owned(), vec!["id".to_owned(), "name".to_owned()]),
            ("orders".to_owned(), vec!["id".to_owned(), "Note".to_owned(), "sum".to_owned()]),
        ];
        let words = Words { tables, ..Words::default() };
        let (start, found) = words.candidates(before, before);
        (before[start..].to_owned(), found)
    }

    #[test]
    fn words_are_completed_by_what_may_stand_there() {
        let cases: [(&str, &str, &[&str]); 9] = [
            ("sel", "sel", &["select"]),
            ("SEL", "SEL", &["SELECT"]),
            ("SELECT * FROM fr", "fr", &["fruit"]),
            ("SELECT * FROM ", "", &["fruit", "orders"]),
            ("UPDATE fruit SET na", "na", &["name", "natural"]),
            ("SELECT o.n FROM orders o WHERE o.n", "n", &["\"Note\""]),
            ("SELECT * FROM fruit AS f WHERE f.", "", &["id", "name"]),
            ("SELECT fruit.i", "i", &["id"]),
            ("größe.", "", &[]),
        ];
        for (before, word, expected) in cases {
            let (typed, found) = completed(before);
            assert_eq!(typed, word, "{before}");
            assert_eq!(found, expected, "{before}");
        }
    }
}
