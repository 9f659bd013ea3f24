//! The options of `bench kv` and `bench logwrite`, and what several benchmarks' options share.

use std::path::PathBuf;

use anyhow::{Result, anyhow, ensure};
use clap::Args;

use crate::engine::Mode;
use crate::report::Outputs;
use crate::workload::{Distribution, Workload};

/// Options of `bench kv`.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("json", |json| json.short('o')))]
pub struct KvArgs {
    /// Tables of the paper to run [default: 3,4,5]
    #[arg(long, value_delimiter = ',', value_name = "LIST", value_parser = clap::value_parser!(u8).range(3..=5))]
    pub table: Vec<u8>,
    /// Engines to run [default: all that can be had]
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    pub engines: Vec<String>,
    /// Durability classes: ds, sync, ramdisk, wns, ns, inmem [default: those of the tables]
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    pub modes: Vec<Mode>,
    /// Numbers of threads [default: 1,2,4,16, with --full 1,2,3,4,8,12,16]
    #[arg(long, value_delimiter = ',', value_name = "LIST", value_parser = parse_threads)]
    pub threads: Vec<usize>,
    /// The paper's size: 576,000 records, 5 repetitions, 1 to 16 threads
    #[arg(long)]
    pub full: bool,
    /// Records in the database [default: 57600, with --full 576000]
    #[arg(long, value_name = "N")]
    pub records: Option<u64>,
    /// Repetitions [default: 3, with --full 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub reps: Option<u32>,
    /// Bytes of a key [default: 64, with --ycsb 16]
    #[arg(long, value_name = "BYTES")]
    pub key_size: Option<usize>,
    /// Bytes of a value [default: 64, with --ycsb 100]
    #[arg(long, value_name = "BYTES")]
    pub value_size: Option<usize>,
    /// Cache size
    #[arg(long, default_value = "512M", value_name = "SIZE", value_parser = parse_size)]
    pub cache: u64,
    /// Log buffer size
    #[arg(long, default_value = "128M", value_name = "SIZE", value_parser = parse_size)]
    pub log_buffer: u64,
    /// Operations in a transaction [default: 10, with --ycsb 1]
    #[arg(long, value_name = "N")]
    pub ops_per_txn: Option<usize>,
    /// How fetch and update choose records: uniform, zipf, sequential
    #[arg(long, default_value_t = Distribution::Uniform, value_name = "NAME")]
    pub distribution: Distribution,
    /// Add a mixed step with this fraction of fetching transactions, the rest updating
    #[arg(long, value_name = "FRACTION")]
    pub read_ratio: Option<f64>,
    /// Seed of every random order
    #[arg(long, default_value_t = 20_100_701, value_name = "N")]
    pub seed: u64,
    /// Instead of the tables: 20 million records in the same cache, each engine in its own process
    #[arg(long, group = "instead")]
    pub larger_than_cache: bool,
    /// Instead of the tables: random keys, scans both ways and YCSB, each engine in its own process
    #[arg(long, group = "instead")]
    pub ycsb: bool,
    /// Seconds of each step of --ycsb
    #[arg(long, default_value_t = 5, value_name = "N")]
    pub step_seconds: u64,
    /// Seconds after which a step of --ycsb that has not ended counts as failed
    #[arg(long, default_value_t = 600, value_name = "N")]
    pub step_limit: u64,
    /// Instead of the tables: disk space after populating and after ten rewrites of every record
    #[arg(long, group = "instead")]
    pub space: bool,
    /// Instead of the tables: time to recover a long log and to open after a clean close
    #[arg(long, group = "instead")]
    pub recovery: bool,
    /// Instead of the tables: what checkpoints cost the commits beside them
    #[arg(long, group = "instead")]
    pub checkpoint_interference: bool,
    /// Bytes of log that --recovery leaves to be recovered
    #[arg(long, default_value = "1G", value_name = "SIZE", value_parser = parse_size)]
    pub log_tail: u64,
    /// Milliseconds between two checkpoints of --checkpoint-interference
    #[arg(long, default_value_t = 1000, value_name = "MS")]
    pub checkpoint_pause: u64,
    /// Directories
    #[command(flatten)]
    pub places: Places,
    /// Report files
    #[command(flatten)]
    pub outputs: Outputs,
}

impl KvArgs {
    /// The work that the options describe.
    pub fn workload(&self) -> Result<Workload> {
        // The small size of a quick run would be hidden by fixed costs of space and recovery.
        let papers = self.full || self.space || self.recovery || self.checkpoint_interference;
        let records = match (self.records, self.larger_than_cache, papers) {
            (Some(records), ..) => records,
            _ if self.ycsb => 1_000_000,
            (None, true, _) => 20_000_000,
            (None, false, true) => 576_000,
            (None, false, false) => 57_600,
        };
        let workload = Workload {
            records,
            key_size: self.key_size.unwrap_or(if self.ycsb { 16 } else { 64 }),
            value_size: self.value_size.unwrap_or(if self.ycsb { 100 } else { 64 }),
            ops_per_txn: self.ops_per_txn.unwrap_or(if self.ycsb { 1 } else { 10 }),
            distribution: self.distribution,
            read_ratio: self.read_ratio,
            sample: self.larger_than_cache.then_some(if self.full { 57_600 } else { 11_520 }),
            seed: self.seed,
        };
        workload.validate()?;
        Ok(workload)
    }

    /// How often each configuration is run.
    pub fn repetitions(&self) -> u32 {
        self.reps.unwrap_or(match (self.full, self.larger_than_cache) {
            (true, _) => 5,
            (false, false) => 3,
            (false, true) => 1,
        })
    }

    /// The configurations of the tables asked for, in the order of the paper, none twice.
    pub fn configurations(&self) -> Vec<(Mode, usize)> {
        let mut list = Vec::new();
        let mut add = |mode, threads| {
            if !list.contains(&(mode, threads)) {
                list.push((mode, threads));
            }
        };
        let wanted = |mode| self.modes.is_empty() || self.modes.contains(&mode);
        if self.table.is_empty() && !self.modes.is_empty() {
            let threads = if self.threads.is_empty() { &[1][..] } else { &self.threads };
            for &mode in &self.modes {
                threads.iter().for_each(|&threads| add(mode, threads));
            }
            return list;
        }
        let table = |number| self.table.is_empty() || self.table.contains(&number);
        if table(3) && wanted(Mode::Ds) {
            add(Mode::Ds, 1);
        }
        if table(4) {
            Mode::ALL[1..].iter().filter(|&&m| wanted(m)).for_each(|&mode| add(mode, 1));
        }
        if table(5) {
            let threads = match (self.threads.is_empty(), self.full) {
                (false, _) => &self.threads[..],
                (true, true) => &[1, 2, 3, 4, 8, 12, 16],
                (true, false) => &[1, 2, 4, 16],
            };
            // The paper's Table 5 is SYNC; other levels are measured where --modes names them.
            let named = self.modes.iter().copied().filter(|&mode| mode != Mode::Ds);
            let modes: Vec<Mode> =
                if self.modes.is_empty() { vec![Mode::Sync] } else { named.collect() };
            for mode in modes {
                threads.iter().for_each(|&threads| add(mode, threads));
            }
        }
        list
    }
}

/// Options of `bench logwrite`.
#[derive(Clone, Debug, Args)]
pub struct LogwriteArgs {
    /// Bytes of one write
    #[arg(short, long, default_value_t = 256, value_name = "N", value_parser = parse_positive)]
    pub bytes: usize,
    /// Writes, each with its flush, in one run
    #[arg(short, long, default_value_t = 1000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub operations: u64,
    /// Repetitions
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub reps: u32,
    /// Directories
    #[command(flatten)]
    pub places: Places,
    /// Report files
    #[command(flatten)]
    pub outputs: Outputs,
}

/// Where databases are put while they are measured.
#[derive(Clone, Debug, Args)]
pub struct Places {
    /// Directory on the device to measure
    #[arg(long, default_value = "results", value_name = "DIR")]
    pub dir: PathBuf,
    /// Directory on a memory file system, for ramdisk
    #[arg(long, default_value = "/dev/shm", value_name = "DIR")]
    pub ramdisk: PathBuf,
}

/// A number of threads.
pub fn parse_threads(text: &str) -> Result<usize> {
    let threads = parse_positive(text)?;
    ensure!(threads <= 1024, "at most 1024 threads");
    Ok(threads)
}

/// A number above zero.
pub fn parse_positive(text: &str) -> Result<usize> {
    let number = text.parse()?;
    ensure!(number > 0, "must be above zero");
    Ok(number)
}

/// A size in bytes, with K, M or G for powers of 1024.
pub fn parse_size(text: &str) -> Result<u64> {
    let (digits, shift) = match text.to_ascii_uppercase().chars().last() {
        Some('K') => (&text[..text.len() - 1], 10),
        Some('M') => (&text[..text.len() - 1], 20),
        Some('G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number: u64 = digits.parse().map_err(|_| anyhow!("`{text}` is not a size such as 512M"))?;
    number
        .checked_shl(shift)
        .filter(|size| *size >= 1 << 16 && size >> shift == number)
        .ok_or_else(|| anyhow!("`{text}` is too small or too large"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::command::BenchCommand;

    #[derive(Parser)]
    struct Program {
        #[command(subcommand)]
        command: BenchCommand,
    }

    fn kv(arguments: &str) -> KvArgs {
        let words = ["bench", "kv"].into_iter().chain(arguments.split_whitespace());
        match Program::try_parse_from(words).unwrap().command {
            BenchCommand::Kv(args) => *args,
            _ => unreachable!(),
        }
    }

    #[test]
    fn tables_select_configurations() {
        assert_eq!(kv("--table 3").configurations(), [(Mode::Ds, 1)]);
        assert_eq!(kv("--table 3,4").configurations().len(), 6);
        assert_eq!(kv("--full").configurations().len(), 12);
        assert_eq!(kv("--table 4 --modes ns,wns").configurations().len(), 2);
        assert_eq!(kv("--modes ns --threads 1,2").configurations(), [(Mode::Ns, 1), (Mode::Ns, 2)]);
        assert_eq!(kv("--table 5 --modes ns --threads 2").configurations(), [(Mode::Ns, 2)]);
    }

    #[test]
    fn the_full_size_is_the_papers() {
        let args = kv("--full");
        assert_eq!(args.workload().unwrap().records, 576_000);
        assert_eq!(args.repetitions(), 5);
        assert_eq!(args.cache, 512 << 20);
        assert_eq!(args.log_buffer, 128 << 20);
    }

    #[test]
    fn sizes() {
        assert_eq!(parse_size("512M").unwrap(), 512 << 20);
        assert_eq!(parse_size("2g").unwrap(), 2 << 30);
        assert_eq!(parse_size("65536").unwrap(), 65536);
        assert!(parse_size("x").is_err() && parse_size("1").is_err());
    }
}
