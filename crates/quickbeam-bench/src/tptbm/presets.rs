//! The experiments of the TimesTen report, each with the mix that it says it used.

use std::str::FromStr;

use anyhow::{Result, anyhow};

use super::worker::Mix;

/// A group of experiments, as they are named on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Rows inserted into an empty table: 10 thousand, 250 thousand, a million.
    Insert,
    /// One thread that reads: 1, 5, 10 statements a transaction, on a million rows.
    Queries,
    /// The same on several threads.
    Threads,
    /// 10 % inserts, 10 % updates, 10 % deletes, 70 % reads on 10 thousand, 250 thousand and a
    /// million rows; one thread and several.
    Mixed,
    /// One insert, three reads, one update a transaction, ten threads.
    Multiop,
    /// The report's example: ten threads, two operations a transaction, 5/5/20/70.
    Example,
    /// Everything.
    Report,
}

impl Preset {
    const ALL: [(&'static str, Preset); 7] = [
        ("insert", Preset::Insert),
        ("queries", Preset::Queries),
        ("threads", Preset::Threads),
        ("mixed", Preset::Mixed),
        ("multiop", Preset::Multiop),
        ("example", Preset::Example),
        ("report", Preset::Report),
    ];
}

impl FromStr for Preset {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Preset> {
        let found = Preset::ALL.iter().find(|(name, _)| *name == text).map(|(_, preset)| *preset);
        found.ok_or_else(|| {
            let names: Vec<&str> = Preset::ALL.iter().map(|(name, _)| *name).collect();
            anyhow!("unknown preset `{text}`; one of {}", names.join(", "))
        })
    }
}

/// One experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// Its name in results.
    pub name: String,
    /// The square root of the number of rows.
    pub key: u32,
    /// Threads.
    pub threads: usize,
    /// What the threads do; nothing when filling the table is what is measured.
    pub mix: Option<Mix>,
}

/// The mix of transactions that read, with `statements` in each.
fn reads(statements: u32, transactions: u64) -> Mix {
    Mix {
        reads: 100,
        inserts: 0,
        deletes: 0,
        min: statements,
        max: statements,
        multiop: false,
        procedure: false,
        commit_reads: false,
        transactions,
    }
}

/// The experiments of a preset.
///
/// `key` replaces the report's sizes. The report's transactions are few for today's engines: there
/// are `transactions` in each thread instead. It does not say how many its several threads are:
/// `threads`.
pub fn experiments(
    preset: Preset,
    key: Option<u32>,
    threads: usize,
    transactions: u64,
) -> Vec<Experiment> {
    let sizes = key.map_or_else(|| vec![100, 500, 1000], |key| vec![key]);
    let large = key.unwrap_or(1000);
    let several = |threads: usize| if threads > 1 { ", threads" } else { "" };
    let queries = |threads: usize| -> Vec<Experiment> {
        let experiment = |statements: u32| Experiment {
            name: format!(
                "{statements} read{} a transaction{}",
                if statements == 1 { "" } else { "s" },
                several(threads)
            ),
            key: large,
            threads,
            mix: Some(reads(statements, transactions)),
        };
        [1, 5, 10].map(experiment).into()
    };
    let mixed = |inserts, deletes, of_reads, statements| Mix {
        inserts,
        deletes,
        reads: of_reads,
        ..reads(statements, transactions)
    };
    match preset {
        Preset::Insert => {
            let rows = |&key: &u32| u64::from(key).pow(2);
            let experiment = |key: &u32| Experiment {
                name: format!("insert {} rows", rows(key)),
                key: *key,
                threads: 1,
                mix: None,
            };
            sizes.iter().map(experiment).collect()
        }
        Preset::Queries => queries(1),
        Preset::Threads => queries(threads.max(2)),
        Preset::Mixed => [1, threads.max(2)]
            .into_iter()
            .flat_map(|threads| {
                let suffix = several(threads);
                sizes.iter().map(move |&key| (threads, key, suffix))
            })
            .map(|(threads, key, suffix)| Experiment {
                name: format!("mixed on {} rows{suffix}", u64::from(key).pow(2)),
                key,
                threads,
                mix: Some(mixed(10, 10, 70, 1)),
            })
            .collect(),
        Preset::Multiop => vec![Experiment {
            name: "multiop".to_owned(),
            key: key.unwrap_or(100),
            threads: 10,
            mix: Some(Mix { multiop: true, ..mixed(20, 0, 60, 5) }),
        }],
        Preset::Example => vec![Experiment {
            name: "5/5/20/70, 2 operations a transaction".to_owned(),
            key: key.unwrap_or(100),
            threads: 10,
            mix: Some(mixed(5, 5, 70, 2)),
        }],
        Preset::Report => Preset::ALL
            .iter()
            .filter(|(_, preset)| *preset != Preset::Report)
            .flat_map(|(_, preset)| experiments(*preset, key, threads, transactions))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::sql::tptbm;

    #[test]
    fn the_reports_experiments_have_its_numbers_beside_them() {
        let all = experiments(Preset::Report, None, 4, 1000);
        assert_eq!(all.len(), 3 + 3 + 3 + 6 + 1 + 1);
        let without: Vec<&str> = all
            .iter()
            .map(|experiment| experiment.name.as_str())
            .filter(|name| tptbm(name).is_none())
            .collect();
        // The report's table of these is not in its text.
        assert_eq!(
            without,
            ["mixed on 10000 rows", "mixed on 250000 rows", "mixed on 1000000 rows"]
        );
        assert!(all.iter().filter_map(|e| e.mix.as_ref()).all(|mix| mix.validate().is_ok()));
    }
}
