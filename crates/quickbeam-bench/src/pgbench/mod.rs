//! `bench pgbench`: PostgreSQL's own benchmark program on a served environment and on PostgreSQL.
//!
//! Both servers run from the beginning to the end, on data that pgbench itself has made. Every
//! repetition of a workload runs on one right after the other, and the one that begins changes.

pub mod peer;
pub mod work;

use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;

use crate::args::{Places, parse_size, parse_threads};
use crate::engine::Mode;
use crate::kv::{Scratch, finish};
use crate::machine::Machine;
use crate::progress::Progress;
use crate::report::{Failure, Measurement, NotSupported, Outputs, Report, Run};
use crate::sql::engines;
use crate::sql::engines::server::{Transport, postgresql};
use crate::workload::random::mix;
use peer::{CopyLines, ENGINES, Peer, PeerSetup, PgbenchEnd, PgbenchRun};
use work::Work;

/// Accounts of each unit of scale.
const ACCOUNTS: u64 = 100_000;

/// Options of `bench pgbench`.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("json", |json| json.short('o')))]
pub struct PgbenchArgs {
    /// Workloads: select, tpcb, tpcb-nowait, pipeline, copy, connect [default: all]
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    pub work: Vec<Work>,
    /// How clients connect: socket, tcp [default: socket]
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    pub transport: Vec<Transport>,
    /// Numbers of clients [default: 1,4,16 for select, 1,4 or 1 for the others]
    #[arg(long, value_delimiter = ',', value_name = "LIST", value_parser = parse_threads)]
    pub clients: Vec<usize>,
    /// Scale of pgbench's tables, 100,000 accounts each [default: 4, with --full 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub scale: Option<u32>,
    /// Rows that COPY loads [default: 100000, with --full 1000000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub rows: Option<u64>,
    /// Seconds of one run [default: 1, with --full 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub seconds: Option<u32>,
    /// Transactions of each client, instead of a time
    #[arg(long, value_name = "N", conflicts_with = "seconds", value_parser = clap::value_parser!(u32).range(1..))]
    pub transactions: Option<u32>,
    /// Seconds beyond its time after which a run that has not ended counts as failed
    #[arg(long, default_value_t = 600, value_name = "N")]
    pub step_limit: u64,
    /// A million rows, ten times the time, five repetitions
    #[arg(long)]
    pub full: bool,
    /// Repetitions [default: 3, with --full 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub reps: Option<u32>,
    /// Cache size of both servers
    #[arg(long, default_value = "256M", value_name = "SIZE", value_parser = parse_size)]
    pub cache: u64,
    /// Seed of every random order
    #[arg(long, default_value_t = 20_100_701, value_name = "N")]
    pub seed: u64,
    /// Directories
    #[command(flatten)]
    pub places: Places,
    /// Report files
    #[command(flatten)]
    pub outputs: Outputs,
}

/// A row of the report: a workload by one transport with a number of clients.
#[derive(Clone, Copy, Debug)]
struct PgbenchCase {
    work: Work,
    transport: Transport,
    clients: usize,
}

impl PgbenchCase {
    /// The name in the report.
    fn step(&self) -> String {
        format!("{}, {}", self.work.title(), self.transport.name())
    }

    fn failure(&self, engine: &str, error: &anyhow::Error) -> Failure {
        Failure {
            engine: engine.to_owned(),
            mode: self.work.mode().to_owned(),
            threads: self.clients,
            error: format!("{}: {error:#}", self.step()),
        }
    }
}

impl PgbenchArgs {
    fn repetitions(&self) -> u32 {
        self.reps.unwrap_or(if self.full { 5 } else { 3 })
    }

    fn scale(&self) -> u32 {
        self.scale.unwrap_or(if self.full { 10 } else { 4 })
    }

    fn rows(&self) -> u64 {
        self.rows.unwrap_or(if self.full { 1_000_000 } else { 100_000 })
    }

    fn until(&self) -> PgbenchEnd {
        let seconds = self.seconds.unwrap_or(if self.full { 10 } else { 1 });
        self.transactions.map_or(PgbenchEnd::Seconds(seconds), PgbenchEnd::Transactions)
    }

    fn cases(&self) -> Vec<PgbenchCase> {
        let works = if self.work.is_empty() { &Work::ALL[..] } else { &self.work };
        let transports =
            if self.transport.is_empty() { &[Transport::Socket][..] } else { &self.transport };
        let mut cases = Vec::new();
        for &work in works {
            let clients = match (self.clients.is_empty(), work) {
                // A copy has one connection.
                (true, _) | (false, Work::Copy) => work.clients(),
                (false, _) => &self.clients,
            };
            for &transport in transports {
                let case = |&clients: &usize| PgbenchCase { work, transport, clients };
                cases.extend(clients.iter().map(case));
            }
        }
        cases
    }

    /// The workload in words.
    pub fn describe(&self) -> String {
        let until = match self.until() {
            PgbenchEnd::Seconds(seconds) => format!("{seconds} s"),
            PgbenchEnd::Transactions(count) => format!("{count} transactions a client"),
        };
        format!(
            "pgbench: scale {}, COPY of {} rows, {} MiB cache, {until}, {} repetitions",
            self.scale(),
            self.rows(),
            self.cache >> 20,
            self.repetitions()
        )
    }
}

/// Runs the command and writes its report. The outcome says whether both servers were there.
pub fn run(args: &PgbenchArgs) -> Result<crate::BenchOutcome> {
    std::fs::create_dir_all(&args.places.dir)
        .with_context(|| format!("directory {}", args.places.dir.display()))?;
    let machine = Machine::describe(&args.places.dir, Machine::FLUSHES)?;
    let mut report = Report::new(machine, Run::now(args.seed, args.describe()));
    measure(args, &mut report)?;
    finish(&report, &args.outputs, "pgbench")?;
    let is_whole = report.not_supported.is_empty();
    Ok(if is_whole { crate::BenchOutcome::Whole } else { crate::BenchOutcome::PeerMissing })
}

/// Starts the servers that can be had; the others go into the report.
fn peers(args: &PgbenchArgs, scratches: &[Scratch], report: &mut Report) -> Vec<Peer> {
    let mut peers = Vec::new();
    for (name, scratch) in ENGINES.into_iter().zip(scratches) {
        let version = postgresql::program("pgbench")
            .and_then(|_| engines::find(name))
            .and_then(|engine| engine.version());
        let version = match version {
            Ok(version) => version,
            Err(error) => {
                let (engine, mode) = (name.to_owned(), "every workload".to_owned());
                let reason = format!("{error:#}");
                report.not_supported.push(NotSupported { engine, mode, threads: 0, reason });
                continue;
            }
        };
        let most_clients = args.cases().iter().map(|case| case.clients).max().unwrap_or(1);
        let setup = PeerSetup {
            directory: scratch.path(),
            cache_bytes: args.cache,
            scale: args.scale(),
            sessions: most_clients + 10,
            limit: Duration::from_secs(args.step_limit),
        };
        match Peer::start(name, version, &setup) {
            Ok(peer) => peers.push(peer),
            Err(error) => report.failures.push(Failure {
                engine: name.to_owned(),
                mode: "every workload".to_owned(),
                threads: 0,
                error: format!("start: {error:#}"),
            }),
        }
    }
    peers
}

/// Runs every workload on both servers, interleaved, and adds the results to the report.
pub fn measure(args: &PgbenchArgs, report: &mut Report) -> Result<()> {
    let scratch = |name: &str| Scratch::new(&args.places, Mode::Sync, &format!("pgbench-{name}"));
    let scratches: Vec<Scratch> = ENGINES.into_iter().map(scratch).collect::<Result<_>>()?;
    let peers = peers(args, &scratches, report);
    let cases = args.cases();
    let is_copied = cases.iter().any(|case| case.work == Work::Copy);
    let lines = CopyLines::new(if is_copied { args.rows() } else { 0 });
    let runs = cases.len() * peers.len();
    let progress = Progress::new(runs as u64 * u64::from(args.repetitions()));
    let mut rates = vec![vec![Vec::new(); peers.len()]; cases.len()];
    for repetition in 0..args.repetitions() {
        for (case, rates) in cases.iter().zip(&mut rates) {
            for turn in 0..peers.len() {
                let number = (repetition as usize + turn) % peers.len();
                let peer = &peers[number];
                let (step, clients) = (case.step(), case.clients);
                let label = format!("{step}: {}, {clients} clients", peer.name);
                progress.message(&label);
                let rate = trial(args, case, peer, repetition, &lines);
                progress.done(&label, rate.as_ref().map(|rate| format!("{rate:.0} a second")));
                match rate {
                    Ok(rate) => rates[number].push(rate),
                    Err(error) => report.failures.push(case.failure(peer.name, &error)),
                }
            }
        }
    }
    progress.finish();
    for (case, rates) in cases.iter().zip(rates) {
        for (peer, rates) in peers.iter().zip(rates) {
            if !rates.is_empty() {
                report.results.push(result(args, case, peer, rates));
            }
        }
    }
    for peer in peers {
        let name = peer.name;
        peer.stop().with_context(|| format!("stop {name}"))?;
    }
    Ok(())
}

fn trial(
    args: &PgbenchArgs,
    case: &PgbenchCase,
    peer: &Peer,
    repetition: u32,
    lines: &CopyLines,
) -> Result<f64> {
    if case.work == Work::Copy {
        return peer.copy(case.transport, lines);
    }
    peer.run(&PgbenchRun {
        work: case.work,
        transport: case.transport,
        clients: case.clients,
        until: args.until(),
        accounts: ACCOUNTS * u64::from(args.scale()),
        // pgbench takes seeds of 31 bits.
        seed: mix(args.seed ^ mix(repetition.into())) >> 33,
    })
}

fn result(args: &PgbenchArgs, case: &PgbenchCase, peer: &Peer, rates: Vec<f64>) -> Measurement {
    let records = match case.work {
        Work::Copy => args.rows(),
        _ => ACCOUNTS * u64::from(args.scale()),
    };
    Measurement {
        benchmark: "pgbench".to_owned(),
        engine: peer.name.to_owned(),
        engine_version: peer.version.clone(),
        mode: case.work.mode().to_owned(),
        threads: case.clients,
        ops_per_txn: 1,
        records,
        step: case.step(),
        unit: case.work.unit().to_owned(),
        verified: true,
        settings: peer.settings.clone(),
        ..Measurement::default()
    }
    .with_runs(rates)
}
