//! The SQL benchmarks in a small size on every engine that this machine has: the same work is done,
//! what is there afterwards is right, and what is not right is found.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]

use std::fs;
use std::path::PathBuf;

use clap::Parser;
use quickbeam_bench::BenchCommand;
use quickbeam_bench::engine::Mode;
use quickbeam_bench::machine::Machine;
use quickbeam_bench::report::{Report, Run};
use quickbeam_bench::sql::{SqlConnection, SqlEngine, SqlSetup, engines};
use quickbeam_bench::tpcb::data::{Bank, TABLES, Tally};
use quickbeam_bench::tpcc::data::TpccSizes;
use quickbeam_bench::tpcc::terminal::TpccDone;
use quickbeam_bench::tptbm::subscribers::{self, Key, Operation, SubscriberContent};
use quickbeam_bench::{clicks, tpcb, tpcc, tpch, tptbm, wisconsin};

#[derive(Parser)]
struct Program {
    #[command(subcommand)]
    command: BenchCommand,
}

/// A directory of one test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("bench-sql-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs a benchmark as the command line says it and returns its report.
fn measured(folder: &Folder, arguments: &str) -> Report {
    let place = folder.0.to_str().unwrap();
    let words = ["bench"].into_iter().chain(arguments.split_whitespace());
    let words = words.chain(["--dir", place, "--cache", "32M"]);
    let mut report =
        Report::new(Machine::describe(&folder.0, 10).unwrap(), Run::now(1, arguments.to_owned()));
    match Program::try_parse_from(words).unwrap().command {
        BenchCommand::Tpcb(args) => tpcb::measure(&args, &mut report),
        BenchCommand::Wisconsin(args) => wisconsin::measure(&args, &mut report),
        BenchCommand::Tptbm(args) => tptbm::measure(&args, &mut report),
        BenchCommand::Tpch(args) => tpch::measure(&args, &mut report),
        BenchCommand::Clicks(args) => clicks::measure(&args, &mut report),
        BenchCommand::Tpcc(args) => tpcc::measure(&args, &mut report),
        _ => unreachable!("only SQL benchmarks are tested here"),
    }
    .unwrap();
    report
}

/// Those of the engines that this machine has.
fn present(engines: Vec<&'static dyn SqlEngine>) -> Vec<&'static dyn SqlEngine> {
    engines.into_iter().filter(|engine| engine.version().is_ok()).collect()
}

/// No run failed, and each of the benchmark's engines has results or a reason why not.
fn assert_whole(report: &Report, engines: Vec<&'static dyn SqlEngine>, modes: &[Mode]) {
    assert!(report.failures.is_empty(), "{:#?}", report.failures);
    for engine in present(engines) {
        for mode in modes {
            let matches = |name: &str, class: &str| name == engine.name() && class == mode.name();
            let measured = report.results.iter().any(|r| matches(&r.engine, &r.mode));
            let missing = report.not_supported.iter().any(|m| matches(&m.engine, &m.mode));
            assert!(measured || missing, "{}, {mode}: nothing", engine.name());
        }
    }
    assert!(report.results.iter().all(|r| r.verified && r.mean > 0.0 && !r.settings.is_empty()));
}

#[test]
fn tpcb_on_every_engine() {
    let folder = Folder::new("tpcb");
    let report = measured(
        &folder,
        "tpcb --branches 5 --threads 1,3 --transactions 20 --reps 1 --modes sync,wns,ns,inmem",
    );
    assert_whole(&report, engines::all_ways(), &[Mode::Sync, Mode::Wns, Mode::Ns, Mode::InMem]);
    for result in &report.results {
        assert_eq!((result.benchmark.as_str(), result.unit.as_str()), ("tpcb", "tps"));
        assert!(result.p90_us >= result.p50_us && !result.distribution.is_empty());
        let shown = result.mode == "sync" && result.threads == 1;
        assert_eq!(result.ceiling_share.is_some(), shown, "{} {}", result.engine, result.mode);
    }
}

#[test]
fn wisconsin_on_every_engine() {
    let folder = Folder::new("wisconsin");
    let report = measured(&folder, "wisconsin --tuples 1000 --reps 2 --modes sync,wns,inmem");
    assert_whole(&report, engines::all(), &[Mode::Sync, Mode::Wns, Mode::InMem]);
    for engine in report.engines("wisconsin") {
        for query in 1..=32_u8 {
            let results = report.of("wisconsin").filter(|r| r.engine == engine);
            let runs: Vec<usize> = results
                .filter(|r| r.step == query.to_string())
                .map(|result| result.runs.len())
                .collect();
            assert!(!runs.is_empty() && runs.iter().all(|&runs| runs == 2), "{engine}: {query}");
        }
    }
}

/// Each answer is compared with those of the other engines, which makes a failure of an engine that
/// differs.
#[test]
fn tpch_has_the_same_answers_on_every_engine() {
    let folder = Folder::new("tpch");
    let report = measured(&folder, "tpch --scale 0.01 --reps 1 --engines quickbeam,sqlite");
    assert!(report.failures.is_empty(), "{:#?}", report.failures);
    for engine in ["quickbeam", "sqlite"] {
        let count = report.of("tpch").filter(|result| result.engine == engine).count();
        assert_eq!(count, 22, "{engine}");
    }
}

#[test]
fn clicks_have_the_same_answers_on_every_engine() {
    let folder = Folder::new("clicks");
    let report = measured(&folder, "clicks --rows 10000 --reps 1 --engines quickbeam,sqlite");
    assert!(report.failures.is_empty(), "{:#?}", report.failures);
    for engine in ["quickbeam", "sqlite"] {
        let count = report.of("clicks").filter(|result| result.engine == engine).count();
        assert_eq!(count, 43, "{engine}");
    }
}

#[test]
fn tptbm_on_every_engine() {
    let folder = Folder::new("tptbm");
    for (options, modes) in [
        ("--preset report --reps 1 --key 12 --xacts 20", &[Mode::InMem][..]),
        (
            "--inserts 20 --deletes 30 --reads 30 --min 1 --max 4 --commitReads --range --key 12 --xacts 50",
            &[Mode::Wns, Mode::InMem],
        ),
        ("--deletes 100 --reads 0 --threads 3 --key 3 --xacts 7", &[Mode::Sync]),
    ] {
        let names: Vec<&str> = modes.iter().map(|mode| mode.name()).collect();
        let report = measured(&folder, &format!("tptbm {options} --modes {}", names.join(",")));
        assert_whole(&report, engines::all_ways(), modes);
    }
}

#[test]
fn tpcc_is_consistent_on_every_engine() {
    let folder = Folder::new("tpcc");
    let line = "tpcc --items 100 --customers 10 --transactions 60 --terminals 1,3 --reps 1";
    let report = measured(&folder, &format!("{line} --modes sync"));
    assert!(report.failures.is_empty(), "{:#?}", report.failures);
    for engine in report.engines("tpcc") {
        // The headline and five transactions for each number of terminals.
        let count = report.of("tpcc").filter(|r| r.engine == engine && r.mean > 0.0).count();
        assert_eq!(count, 2 * 6, "{engine}");
    }
    assert!(report.engines("tpcc").contains(&"quickbeam"));
}

#[test]
fn a_stored_procedure_is_run_or_reported_as_missing() {
    let folder = Folder::new("procedure");
    let report =
        measured(&folder, "tptbm --multiop --plsql --threads 2 --key 10 --xacts 10 --modes wns");
    assert!(report.failures.is_empty(), "{:#?}", report.failures);
    for result in &report.results {
        assert!(result.engine.starts_with("postgresql"), "{}", result.engine);
    }
    let missing = report.not_supported.iter().any(|m| m.engine == "sqlite" && m.mode == "multiop");
    assert!(
        missing || !present(engines::all_ways()).iter().any(|engine| engine.name() == "sqlite")
    );
}

#[test]
fn database_at_a_path_is_built_and_found_in_every_mode() {
    let folder = Folder::new("place");
    for engine in present(engines::all_ways()).iter().map(|engine| engine.name()) {
        // A server needs one that is there.
        if engine.starts_with("postgresql") {
            continue;
        }
        let place = folder.0.join(engine);
        let at = format!("tptbm --url {} --xacts 30 --engines {engine}", place.display());
        // Each again, as nothing that a run did may be in the way of the next one.
        for options in [
            "--build",
            "--nobuild",
            "--nobuild --inserts 20 --deletes 30 --reads 30 --threads 2 --reps 2",
            "--nobuild --multiop --threads 3",
            "--reps 2 --inserts 20",
            "--build --modes sync",
            "--nobuild --modes sync,ramdisk --deletes 100 --reads 0 --threads 1",
        ] {
            let line = format!("{at} --key 10 {options}");
            let report = measured(&folder, &line);
            assert!(report.failures.is_empty(), "{line}: {:#?}", report.failures);
            let missing = report.not_supported.iter().any(|m| m.reason.contains("--url"));
            let asks = options.contains("build") && !options.contains("modes");
            assert_eq!(missing, asks, "{line}: {:?}", report.not_supported);
            if engine == "quickbeam" {
                let expected = if asks || options.contains("ramdisk") { 2 } else { 3 };
                let expected = if options == "--build --modes sync" { 1 } else { expected };
                assert_eq!(report.results.len(), expected, "{line}");
            }
        }
        let report = measured(&folder, &format!("{at} --nobuild --modes sync --key 11"));
        let [failure] = &report.failures[..] else { panic!("{:#?}", report.failures) };
        assert!(failure.error.contains("100 of the 121 rows of --key 11: build it"), "{failure:?}");
    }
}

/// An open in-memory database of SQLite, if there is one here.
fn with_sqlite(test: impl FnOnce(&mut dyn SqlConnection)) {
    let engine = engines::find("sqlite").unwrap();
    if engine.version().is_err() {
        return;
    }
    let setup = SqlSetup {
        directory: std::env::temp_dir(),
        mode: Mode::InMem,
        cache_bytes: 1 << 25,
        threads: 1,
        rows: 100,
        url: None,
    };
    let instance = engine.open(&setup).unwrap();
    test(&mut *instance.connect().unwrap());
}

#[test]
fn a_bank_that_lost_or_invented_money_is_found() {
    with_sqlite(|connection| {
        let bank = Bank { branches: 2, tellers: 3, accounts: 4 };
        TABLES.iter().for_each(|definition| connection.run(definition).unwrap());
        bank.load(connection).unwrap();
        bank.verify(connection, Tally::default()).unwrap();
        assert!(bank.verify(connection, Tally { count: 1, sum: 0 }).is_err(), "a lost commit");
        for (damage, repair) in [
            ("UPDATE accounts SET balance = 5 WHERE id = 7", "UPDATE accounts SET balance = 0"),
            ("UPDATE branches SET balance = 5 WHERE id = 0", "UPDATE branches SET balance = 0"),
            ("UPDATE tellers SET balance = 5 WHERE id = 5", "UPDATE tellers SET balance = 0"),
            ("INSERT INTO history VALUES (0, 0, 0, 0, 0, '')", "DELETE FROM history"),
        ] {
            connection.run(damage).unwrap();
            assert!(bank.verify(connection, Tally::default()).is_err(), "{damage}");
            connection.run(repair).unwrap();
            bank.verify(connection, Tally::default()).unwrap();
        }
        connection.run("DELETE FROM tellers WHERE id = 5").unwrap();
        assert!(bank.verify(connection, Tally::default()).is_err(), "a lost teller");
    });
}

#[test]
fn subscribers_that_are_not_as_they_were_left_are_found() {
    with_sqlite(|connection| {
        connection.run(&subscribers::definition("", "")).unwrap();
        subscribers::load(connection, 5).unwrap();
        let key = Key { id: 2, number: 3 };
        let content = |operations: &[Operation]| {
            let mut content = SubscriberContent { key: 5, ..SubscriberContent::default() };
            operations.iter().for_each(|&operation| content.note(operation));
            content
        };
        content(&[]).verify(connection).unwrap();
        for expected in [
            Operation::Delete(key),
            Operation::Update(key),
            Operation::Insert(Key { id: 5, number: 0 }),
        ] {
            assert!(content(&[expected]).verify(connection).is_err(), "{expected:?} was lost");
        }
        connection.run("UPDATE vpn_users SET vpn_id = 9 WHERE vpn_id = 2 AND vpn_nb = 3").unwrap();
        assert!(content(&[]).verify(connection).is_err(), "a row has another key");
        connection.run("DELETE FROM vpn_users WHERE vpn_id = 9").unwrap();
        content(&[Operation::Update(key), Operation::Delete(key)]).verify(connection).unwrap();
    });
}

#[test]
fn broken_conditions_of_tpcc_are_found() {
    with_sqlite(|connection| {
        let sizes = TpccSizes { warehouses: 1, items: 100, customers: 10 };
        sizes.build(connection, "", 1).unwrap();
        let check = |connection: &mut dyn SqlConnection, done| {
            tpcc::check::verify(sizes, connection, done).map_err(|error| error.to_string())
        };
        check(connection, TpccDone::default()).unwrap();
        for done in [
            TpccDone { orders: 1, ..TpccDone::default() },
            TpccDone { payments: 1, ..TpccDone::default() },
            TpccDone { deliveries: 1, ..TpccDone::default() },
        ] {
            let error = check(connection, done).unwrap_err();
            assert!(error.contains("rows instead of"), "{done:?}: {error}");
        }
        for (damage, repair, expected) in [
            (
                "UPDATE warehouse SET w_ytd = w_ytd + 1",
                "UPDATE warehouse SET w_ytd = w_ytd - 1",
                "condition 1",
            ),
            (
                "UPDATE district SET d_next_o_id = 12 WHERE d_id = 3",
                "UPDATE district SET d_next_o_id = 11 WHERE d_id = 3",
                "condition 2",
            ),
            (
                "DELETE FROM new_order WHERE no_d_id = 4 AND no_o_id = 9",
                "INSERT INTO new_order VALUES (1, 4, 9)",
                "condition 3",
            ),
            (
                "UPDATE orders SET o_ol_cnt = o_ol_cnt + 1 WHERE o_d_id = 5 AND o_id = 2",
                "UPDATE orders SET o_ol_cnt = o_ol_cnt - 1 WHERE o_d_id = 5 AND o_id = 2",
                "condition 4",
            ),
        ] {
            connection.run(damage).unwrap();
            let error = check(connection, TpccDone::default()).unwrap_err();
            assert!(error.contains(expected), "{damage}: {error}");
            connection.run(repair).unwrap();
            check(connection, TpccDone::default()).unwrap();
        }
    });
}
