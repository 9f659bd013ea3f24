//! Results as tables in the terminal.

use comfy_table::{Cell, CellAlignment, Table, presets};

use super::grid::Grid;
use super::numbers::{group, number, ratio, spread};
use super::{Measurement, Report, sql};
use crate::engine::Mode;
use crate::published;
use crate::workload::Step;

/// Columns of the paper's tables, in the paper's order; `mixed` is beyond it.
pub const STEPS: [Step; 5] = [Step::Insert, Step::Fetch, Step::Delete, Step::Update, Step::Mixed];

/// How the cells of the tables of rates are to be read.
pub const LEGEND: &str = "Operations a second: mean ± standard deviation, × = median as a share of \
Quickbeam's median.";

/// All tables of a report.
pub fn render(report: &Report) -> String {
    let mut text = String::new();
    if !report.configurations("kv").is_empty() {
        text.push_str(&format!("\n{LEGEND}\n"));
    }
    for benchmark in ["kv", "kv-larger"] {
        for (mode, threads) in report.configurations(benchmark) {
            text.push_str(&format!("\n{}\n", heading(benchmark, mode, threads)));
            text.push_str(&format!("{}\n", rates(report, benchmark, mode, threads)));
        }
    }
    if let Some(table) = shares(report) {
        text.push_str("\nSYNC, 1 thread: commits a second as a share of what logwrite reached just before (fdatasync)\n");
        text.push_str(&format!("{table}\n"));
    }
    for grid in sql::grids(report) {
        text.push_str(&format!("\n{}\n{}\n", grid.title, drawn(&grid)));
    }
    if let Some(table) = others(report) {
        text.push_str(&format!("\n{table}\n"));
    }
    for line in report.not_supported_lines() {
        text.push_str(&format!("not supported (mode/threads): {line}\n"));
    }
    for failure in &report.failures {
        let (engine, mode, threads) = (&failure.engine, &failure.mode, failure.threads);
        text.push_str(&format!("FAILED: {engine}, {mode}, {threads} threads: {}\n", failure.error));
    }
    text
}

/// What a table shows, with its number in the paper.
pub fn heading(benchmark: &str, mode: Mode, threads: usize) -> String {
    let what = match mode {
        Mode::Ds => "Data Store",
        Mode::Sync => "SYNC: every commit flushed",
        Mode::Ramdisk => "RAMDISK: SYNC on a memory file system",
        Mode::Wns => "WNS: every commit written, none flushed",
        Mode::Ns => "NS: commits stay in the process",
        Mode::InMem => "INMEM: log in memory",
    };
    let table = match (benchmark, mode, threads) {
        ("kv-larger", ..) => "Larger than cache, ",
        (_, Mode::Ds, _) => "Table 3, ",
        (_, _, 1) => "Table 4, ",
        (_, Mode::Sync, _) => "Table 5, ",
        _ => "",
    };
    let s = if threads == 1 { "" } else { "s" };
    format!("{table}{what}; {threads} thread{s}")
}

fn rates(report: &Report, benchmark: &str, mode: Mode, threads: usize) -> Table {
    let find =
        |engine: &str, step: Step| report.find(benchmark, engine, mode, threads, step.name());
    let engines = report.engines(benchmark);
    let steps: Vec<Step> = STEPS
        .into_iter()
        .filter(|&step| engines.iter().any(|engine| find(engine, step).is_some()))
        .collect();
    let mut table = new_table("engine", steps.iter().map(|step| step.name()));
    if let (Some(row), true) = (published::find(mode, threads), benchmark == "kv") {
        let mut cells = vec![Cell::new(published::LABEL.replace(" (", "\n("))];
        cells.extend(steps.iter().map(|&step| {
            right(row.rate(step).map(|(mean, sd)| format!("{} ± {}", group(mean), group(sd))))
        }));
        table.add_row(cells);
    }
    for engine in &engines {
        if steps.iter().all(|&step| find(engine, step).is_none()) {
            continue;
        }
        let mut cells = vec![Cell::new(engine)];
        cells.extend(steps.iter().map(|&step| {
            let reference = find("quickbeam", step).map(|result| result.median);
            right(find(engine, step).map(|result| rate(result, reference)))
        }));
        table.add_row(cells);
    }
    table
}

fn rate(result: &Measurement, quickbeam: Option<f64>) -> String {
    let text = spread(result.mean, result.stddev);
    match quickbeam {
        Some(reference) if result.engine != "quickbeam" && reference > 0.0 => {
            format!("{text}  {}", ratio(result.median / reference))
        }
        _ => text,
    }
}

fn shares(report: &Report) -> Option<Table> {
    let steps = [Step::Insert, Step::Delete, Step::Update];
    let mut table = new_table("engine", steps.iter().map(|step| step.name()));
    for engine in report.engines("kv") {
        let share = |step: Step| {
            report.find("kv", engine, Mode::Sync, 1, step.name()).and_then(|r| r.ceiling_share)
        };
        if steps.iter().any(|&step| share(step).is_some()) {
            let mut cells = vec![Cell::new(engine)];
            cells.extend(
                steps
                    .iter()
                    .map(|&step| right(share(step).map(|share| format!("{:.0} %", share * 100.0)))),
            );
            table.add_row(cells);
        }
    }
    (!table.is_empty()).then_some(table)
}

/// Everything that is not a rate of a key/value step: one line for each number.
fn others(report: &Report) -> Option<Table> {
    let mut table =
        new_table("measurement", ["engine", "mode", "mean ± sd", "median", "p50", "p99", "p99.9"]);
    for r in &report.results {
        if is_in_a_table(r) {
            continue;
        }
        let micros = |value: Option<f64>| right(value.map(|us| format!("{us:.1} µs")));
        table.add_row(vec![
            Cell::new(format!("{}: {}", r.benchmark, r.step)),
            Cell::new(&r.engine),
            Cell::new(&r.mode),
            right(Some(format!("{} {}", spread(r.mean, r.stddev), r.unit))),
            right(Some(number(r.median))),
            micros(r.p50_us),
            micros(r.p99_us),
            micros(r.p999_us),
        ]);
    }
    (!table.is_empty()).then_some(table)
}

/// Whether a result has its place in one of the tables before.
pub fn is_in_a_table(result: &Measurement) -> bool {
    let benchmark = result.benchmark.as_str();
    sql::BENCHMARKS.contains(&benchmark)
        || (matches!(benchmark, "kv" | "kv-larger") && result.unit == "ops/s")
}

fn drawn(grid: &Grid) -> Table {
    let mut table = new_table(grid.corner, grid.columns.iter().map(String::as_str));
    for row in &grid.rows {
        let mut cells = vec![Cell::new(&row.head)];
        cells.extend(row.cells.iter().map(|cell| right(Some(cell.clone()))));
        table.add_row(cells);
    }
    table
}

fn new_table<'t>(first: &str, columns: impl IntoIterator<Item = &'t str>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    let mut header = vec![Cell::new(first)];
    header.extend(columns.into_iter().map(|c| Cell::new(c).set_alignment(CellAlignment::Right)));
    table.set_header(header);
    table
}

fn right(text: Option<String>) -> Cell {
    Cell::new(text.unwrap_or_else(|| "–".to_owned())).set_alignment(CellAlignment::Right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_show_measured_and_published_numbers() {
        let text = render(&super::super::tests::sample());
        for expected in [
            "Table 3",
            "Table 4",
            "Table 5",
            "published 2010, other hardware",
            "208,139 ± 329",
            "330,000 ± 42,000",
            "×0.33",
            "90 %",
            "redb, wns/1: no such <class>",
        ] {
            assert!(text.contains(expected), "{expected} is not in\n{text}");
        }
    }
}
