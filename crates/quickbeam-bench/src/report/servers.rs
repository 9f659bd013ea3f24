//! The tables of the benchmarks that compare servers: pgbench and TPC-C.

use super::grid::{Grid, GridRow};
use super::numbers::{group, ratio};
use super::{Measurement, Report};
use crate::engine::Mode;
use crate::tpcc::inputs::{HEADLINE, NAMES};

/// The engines of `bench pgbench`, Quickbeam first.
const PGBENCH: [&str; 2] = ["quickbeam-server", "postgresql"];

/// A row for each workload and number of clients: median and spread of each server, and the ratio
/// of their medians.
pub fn pgbench(report: &Report) -> Option<Grid> {
    let mut cases: Vec<(&str, usize, &str)> = Vec::new();
    let results: Vec<&Measurement> = report.of("pgbench").collect();
    for result in &results {
        let case = (&*result.step, result.threads, &*result.unit);
        if !cases.contains(&case) {
            cases.push(case);
        }
    }
    let row = |&(step, clients, unit): &(&str, usize, &str)| {
        let find = |engine: &str| {
            results.iter().find(|r| r.engine == engine && r.step == step && r.threads == clients)
        };
        let cell = |engine| find(engine).map_or_else(|| "missing".to_owned(), |r| spread(r));
        let mut cells: Vec<String> = PGBENCH.map(cell).into();
        let [ours, peer] = PGBENCH.map(find);
        let ratio = ours.zip(peer).map(|(ours, peer)| ratio(ours.median / peer.median));
        cells.push(ratio.unwrap_or_else(|| "–".to_owned()));
        let s = if clients == 1 { "" } else { "s" };
        let head = format!("{step}; {clients} client{s}; {unit}");
        GridRow { head, cells, published: false }
    };
    let rows: Vec<GridRow> = cases.iter().map(row).collect();
    let mut columns: Vec<String> = PGBENCH.map(str::to_owned).into();
    columns.push("Quickbeam over\nPostgreSQL".to_owned());
    let title = "pgbench: median of the repetitions, in brackets the lowest and the highest";
    let title = title.to_owned();
    (!rows.is_empty()).then_some(Grid { title, corner: "workload", columns, rows })
}

/// Two tables for each number of terminals: the new orders a minute with retries and what was
/// checked, and the latencies of each transaction.
pub fn tpcc(report: &Report, mode: Mode, terminals: &[usize]) -> Vec<Grid> {
    let mut grids = Vec::new();
    for &terminals in terminals {
        let s = if terminals == 1 { "" } else { "s" };
        let named = format!("TPC-C-like, {mode}, {terminals} terminal{s}");
        let find = |engine: &str, step| report.find("tpcc", engine, mode, terminals, step);
        let (mut rates, mut latencies) = (Vec::new(), Vec::new());
        for engine in report.engines("tpcc") {
            let Some(headline) = find(engine, HEADLINE) else { continue };
            let ours = find("quickbeam", HEADLINE).filter(|_| engine != "quickbeam");
            let checked = if headline.verified { "hold" } else { "not checked" };
            let ratio = ours.map(|ours| ratio(headline.median / ours.median));
            let cells = vec![
                spread(headline),
                ratio.unwrap_or_else(|| "–".to_owned()),
                group(headline.retries as f64),
                checked.to_owned(),
            ];
            rates.push(GridRow { head: engine.to_owned(), cells, published: false });
            let micros =
                |us: Option<f64>| us.map_or_else(|| "–".to_owned(), |us| group(us.round()));
            let of =
                |r: &Measurement| [r.p50_us, r.p90_us, r.p99_us, r.max_us].map(micros).join(" / ");
            let cell = |step| find(engine, step).map_or_else(|| "–".to_owned(), of);
            let cells = NAMES.map(cell).into();
            latencies.push(GridRow { head: engine.to_owned(), cells, published: false });
        }
        let columns = ["new orders a minute", "share of direct", "retries", "conditions 1 to 4"];
        grids.push(Grid {
            title: format!("{named}: median of the repetitions (lowest – highest)"),
            corner: "engine",
            columns: columns.map(str::to_owned).into(),
            rows: rates,
        });
        grids.push(Grid {
            title: format!("{named}: latency in µs, median / 90th percentile / 99th / longest"),
            corner: "engine",
            columns: NAMES.map(str::to_owned).into(),
            rows: latencies,
        });
    }
    grids
}

/// The median with the lowest and the highest run.
fn spread(result: &Measurement) -> String {
    let lowest = result.runs.iter().copied().reduce(f64::min).unwrap_or_default();
    let highest = result.runs.iter().copied().reduce(f64::max).unwrap_or_default();
    format!("{} ({} – {})", group(result.median), group(lowest), group(highest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::sample;

    fn result(engine: &str, clients: usize, runs: &[f64]) -> Measurement {
        Measurement {
            benchmark: "pgbench".to_owned(),
            engine: engine.to_owned(),
            mode: "sync".to_owned(),
            threads: clients,
            step: "select-only, prepared, socket".to_owned(),
            unit: "tps".to_owned(),
            ..Measurement::default()
        }
        .with_runs(runs.to_vec())
    }

    #[test]
    fn a_server_that_is_missing_has_its_cells() {
        let mut report = sample();
        assert!(pgbench(&report).is_none());
        report.results.push(result("quickbeam-server", 1, &[20_000.0, 30_000.0, 40_000.0]));
        report.results.push(result("postgresql", 1, &[10_000.0, 15_000.0, 11_000.0]));
        report.results.push(result("quickbeam-server", 4, &[50_000.0]));
        let grid = pgbench(&report).unwrap();
        let cells: Vec<String> = grid.rows.iter().map(|row| row.cells.join("|")).collect();
        let expected = [
            "30,000 (20,000 – 40,000)|11,000 (10,000 – 15,000)|×2.73",
            "50,000 (50,000 – 50,000)|missing|–",
        ];
        assert_eq!(cells, expected);
        assert_eq!(grid.rows[1].head, "select-only, prepared, socket; 4 clients; tps");
    }

    #[test]
    fn tpcc_has_rates_and_latencies_of_each_engine() {
        let mut report = sample();
        for (engine, factor) in [("quickbeam", 3.0), ("postgresql", 1.0)] {
            for step in [HEADLINE, "payment"] {
                let mut result = result(engine, 4, &[1000.0 * factor]);
                (result.benchmark, result.step) = ("tpcc".to_owned(), step.to_owned());
                (result.verified, result.retries, result.p50_us) = (true, 12, Some(80.4));
                report.results.push(result);
            }
        }
        let grids = tpcc(&report, Mode::Sync, &[4]);
        let cells = |grid: usize, row: usize| grids[grid].rows[row].cells.join("|");
        assert_eq!(grids.len(), 2);
        assert_eq!(cells(0, 0), "3,000 (3,000 – 3,000)|–|12|hold");
        assert_eq!(cells(0, 1), "1,000 (1,000 – 1,000)|×0.33|12|hold");
        assert_eq!(cells(1, 1), "–|80 / – / – / –|–|–|–");
        let is_whole =
            |grid: &Grid| grid.rows.iter().all(|row| row.cells.len() == grid.columns.len());
        assert!(grids.iter().all(is_whole));
    }
}
