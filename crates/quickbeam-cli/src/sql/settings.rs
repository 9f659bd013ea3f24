//! The shell's output settings: `\pset` and its shortcuts, the output file and the pager.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use quickbeam_sql::types::TextSettings;

use super::show::Format;
use crate::output::Output;

/// How results are written.
#[derive(Clone, Debug)]
pub struct OutputSettings {
    pub format: Format,
    /// The text of NULL in tables.
    pub null: String,
    /// One line per column instead of one line per row.
    pub is_expanded: bool,
    /// The number of rows follows a table.
    pub has_footer: bool,
    /// Rows only: no header and no footer.
    pub is_tuples_only: bool,
    /// Results go through a pager if standard output is a terminal.
    pub is_paged: bool,
    /// The file of `\o`, in place of standard output.
    pub file: Option<PathBuf>,
    /// The settings of the session that the texts of values depend on.
    pub texts: TextSettings,
}

impl OutputSettings {
    pub fn new(format: Format) -> OutputSettings {
        OutputSettings {
            format,
            null: String::new(),
            is_expanded: false,
            has_footer: true,
            is_tuples_only: false,
            is_paged: true,
            file: None,
            texts: TextSettings::DEFAULT,
        }
    }

    /// Changes the setting of that name. Returns its new state for the user.
    pub fn set(&mut self, name: &str, value: &str) -> anyhow::Result<String> {
        let switch = match name {
            "null" => {
                value.clone_into(&mut self.null);
                return Ok(format!("Null display is \"{value}\"."));
            }
            "format" => {
                self.format = match value {
                    "aligned" => Format::Table,
                    other => other.parse()?,
                };
                return Ok(format!("Output format is {value}."));
            }
            "expanded" | "x" => &mut self.is_expanded,
            "footer" => &mut self.has_footer,
            "tuples_only" | "t" => &mut self.is_tuples_only,
            "pager" => &mut self.is_paged,
            _ => bail!(
                "\\pset {name:?} is unknown: null, format, expanded, footer, tuples_only and pager are settings"
            ),
        };
        *switch = match value {
            "" => !*switch,
            "on" => true,
            "off" => false,
            _ => bail!("\\pset {name} is on or off, not {value:?}"),
        };
        Ok(format!("Setting {name} is {}.", if *switch { "on" } else { "off" }))
    }

    /// Returns all settings, one per line.
    pub fn list(&self) -> String {
        let word = |on: bool| if on { "on" } else { "off" };
        format!(
            "expanded     {}\nfooter       {}\nformat       {:?}\nnull         '{}'\npager        {}\ntuples_only  {}\n",
            word(self.is_expanded),
            word(self.has_footer),
            self.format,
            self.null,
            word(self.is_paged),
            word(self.is_tuples_only),
        )
    }

    /// Opens the output of a result: the file of `\o`, a pager, or standard output.
    pub fn output(&self, is_interactive: bool) -> anyhow::Result<Output> {
        if let Some(path) = &self.file {
            let shown = path.display().to_string();
            let file = OpenOptions::new().create(true).append(true).open(path);
            let file = file.with_context(|| format!("cannot open {shown}"))?;
            return Ok(Output::to(Box::new(file), shown, None));
        }
        let pager = pager().filter(|_| is_interactive && self.is_paged);
        Ok(pager.and_then(|pager| spawn(&pager)).unwrap_or_else(Output::new))
    }
}

/// Returns the pager's command line. Returns `None` if it is empty, or without a terminal.
fn pager() -> Option<OsString> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let named = std::env::var_os("QUICKBEAM_PAGER").or_else(|| std::env::var_os("PAGER"));
    Some(named.unwrap_or_else(|| "less".into())).filter(|pager| !pager.is_empty())
}

/// Starts the pager. Returns `None`, so that standard output is used, if it cannot be started.
fn spawn(pager: &OsString) -> Option<Output> {
    let mut command = Command::new("sh");
    command.arg("-c").arg(pager).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        // Quit if the result fits the screen, pass colours, chop long lines, keep the screen.
        command.env("LESS", "FRSX");
    }
    let mut child = command.spawn().ok()?;
    let input = child.stdin.take()?;
    Some(Output::to(Box::new(input), "the pager".to_owned(), Some(child)))
}
