//! Progress while a benchmark runs: a bar in a terminal, a line for each run elsewhere.

use std::fmt::Display;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Says on standard error what begins.
pub fn say(text: &str) {
    eprintln!("== {text}");
}

/// How far a benchmark has come.
pub struct Progress(ProgressBar);

impl Progress {
    /// A bar for `runs` runs.
    pub fn new(runs: u64) -> Progress {
        let bar = ProgressBar::new(runs);
        let template = "{elapsed_precise} [{wide_bar}] {pos}/{len} ({eta} left)\n{msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(250));
        Progress(bar)
    }

    /// What is being done now.
    pub fn message(&self, text: &str) {
        self.0.set_message(text.to_owned());
    }

    /// One run has ended.
    pub fn done<E: Display>(&self, label: &str, outcome: Result<String, E>) {
        self.0.inc(1);
        if self.0.is_hidden() {
            let text = match outcome {
                Ok(text) => text,
                Err(error) => format!("failed: {error:#}"),
            };
            let (position, length) = (self.0.position(), self.0.length().unwrap_or(0));
            eprintln!("[{position}/{length}] {label}: {text}");
        }
    }

    /// Takes the bar away.
    pub fn finish(self) {
        self.0.finish_and_clear();
    }
}
