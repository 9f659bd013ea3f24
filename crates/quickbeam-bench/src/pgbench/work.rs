//! What is measured: pgbench's own scripts, a pipeline, new connections, and COPY.

use std::fmt::Write;
use std::str::FromStr;

use anyhow::{Context, Result, anyhow, ensure};

/// A workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// One select by primary key a transaction, prepared.
    Select,
    /// The TPC-B-like script; commits wait for the device.
    Tpcb,
    /// The same; commits do not wait.
    TpcbNoWait,
    /// Selects in a pipeline: one wait for the answers of all.
    Pipeline,
    /// COPY FROM STDIN into a table with a primary key.
    Copy,
    /// A connection with a password for each select.
    Connect,
}

/// Selects in a pipeline.
const PIPELINED: usize = 10;

impl Work {
    /// Every workload, in the order of the report.
    pub const ALL: [Work; 6] =
        [Work::Select, Work::Tpcb, Work::TpcbNoWait, Work::Pipeline, Work::Copy, Work::Connect];

    /// The name used on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Work::Select => "select",
            Work::Tpcb => "tpcb",
            Work::TpcbNoWait => "tpcb-nowait",
            Work::Pipeline => "pipeline",
            Work::Copy => "copy",
            Work::Connect => "connect",
        }
    }

    /// The name used in the report.
    pub fn title(self) -> &'static str {
        match self {
            Work::Select => "select-only, prepared",
            Work::Tpcb => "TPC-B-like, synchronous commit",
            Work::TpcbNoWait => "TPC-B-like, commit without waiting",
            Work::Pipeline => "pipelines of 10 selects",
            Work::Copy => "COPY FROM",
            Work::Connect => "connect with SCRAM and select",
        }
    }

    /// What is counted.
    pub fn unit(self) -> &'static str {
        if self == Work::Copy { "rows/s" } else { "tps" }
    }

    /// The durability class in reports.
    pub fn mode(self) -> &'static str {
        if self == Work::TpcbNoWait { "ns" } else { "sync" }
    }

    /// The numbers of clients, unless the command line says others.
    pub fn clients(self) -> &'static [usize] {
        match self {
            Work::Select => &[1, 4, 16],
            Work::Tpcb | Work::TpcbNoWait | Work::Pipeline => &[1, 4],
            Work::Copy | Work::Connect => &[1],
        }
    }

    /// Whether it changes rows.
    pub fn writes(self) -> bool {
        matches!(self, Work::Tpcb | Work::TpcbNoWait | Work::Copy)
    }

    /// Whether it is TPC-B-like.
    pub fn is_tpcb(self) -> bool {
        matches!(self, Work::Tpcb | Work::TpcbNoWait)
    }

    /// The script that pgbench runs, if it is not one of its own.
    pub fn script(self, accounts: u64) -> Option<String> {
        if self != Work::Pipeline {
            return None;
        }
        let mut script = String::new();
        for number in 0..PIPELINED {
            // Writing to a string does not fail.
            let _ = writeln!(script, "\\set aid{number} random(1, {accounts})");
        }
        script.push_str("\\startpipeline\n");
        for number in 0..PIPELINED {
            let _ =
                writeln!(script, "SELECT abalance FROM pgbench_accounts WHERE aid = :aid{number};");
        }
        script.push_str("\\endpipeline\n");
        Some(script)
    }
}

impl FromStr for Work {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Work> {
        Work::ALL.into_iter().find(|work| work.name() == text).ok_or_else(|| {
            let known = Work::ALL.map(Work::name);
            anyhow!("unknown workload `{text}`; one of {}", known.join(", "))
        })
    }
}

/// What pgbench says at its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PgbenchSummary {
    /// Transactions that were committed.
    pub processed: u64,
    /// Transactions a second.
    pub rate: f64,
}

impl PgbenchSummary {
    /// Reads what pgbench wrote. A transaction that failed makes the run a failure.
    pub fn parse(text: &str) -> Result<PgbenchSummary> {
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            let word = line.and_then(|line| line.split([' ', '/']).find(|word| !word.is_empty()));
            word.with_context(|| format!("pgbench does not say `{name}`: {text}"))
        };
        let failed: u64 = field("number of failed transactions:")?.parse()?;
        ensure!(failed == 0, "{failed} transactions failed");
        Ok(PgbenchSummary {
            processed: field("number of transactions actually processed:")?.parse()?,
            rate: field("tps =")?.parse()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "pgbench (15.18)\ntransaction type: <builtin: select only>\n\
        number of transactions actually processed: 40/40\n\
        number of failed transactions: 0 (0.000%)\nlatency average = 0.084 ms\n\
        initial connection time = 2.105 ms\ntps = 11862.954 (without initial connection time)\n";

    #[test]
    fn the_end_of_pgbench_is_read() {
        let summary = PgbenchSummary::parse(TEXT).unwrap();
        assert_eq!(summary, PgbenchSummary { processed: 40, rate: 11_862.954 });
        let timed = TEXT.replace("40/40", "123");
        assert_eq!(PgbenchSummary::parse(&timed).unwrap().processed, 123);
    }

    #[test]
    fn failed_transactions_are_no_result() {
        let failed = TEXT.replace("0 (0.000%)", "2 (5.000%)");
        let error = PgbenchSummary::parse(&failed).unwrap_err().to_string();
        assert_eq!(error, "2 transactions failed");
        assert!(PgbenchSummary::parse("").is_err());
    }

    #[test]
    fn a_pipeline_has_its_selects_between_its_ends() {
        let script = Work::Pipeline.script(100_000).unwrap();
        let lines: Vec<&str> = script.lines().collect();
        assert_eq!(lines.len(), 2 * PIPELINED + 2);
        assert_eq!(lines[0], "\\set aid0 random(1, 100000)");
        assert_eq!(
            (lines[PIPELINED], lines[2 * PIPELINED + 1]),
            ("\\startpipeline", "\\endpipeline")
        );
        assert!(Work::ALL.into_iter().all(|work| work.name().parse::<Work>().unwrap() == work));
    }
}
