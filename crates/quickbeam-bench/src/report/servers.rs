//! The tables of the benchmarks that compare servers.

use super::grid::{Grid, GridRow};
use super::numbers::{group, ratio};
use super::{Measurement, Report};

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
}
