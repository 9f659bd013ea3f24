//! The tables of the SQL benchmarks, as text in cells: the terminal and the page draw the same.

use super::grid::{Grid, GridRow};
use super::numbers::{group, milliseconds, number, ratio};
use super::{Measurement, Report, servers, statements};
use crate::engine::Mode;
use crate::published::sql as published;

/// Benchmarks whose results are in these tables.
pub const BENCHMARKS: [&str; 8] =
    ["tpcb", "wisconsin", "tptbm", "tpch", "clicks", "statements", "tpcc", "pgbench"];

/// Every table of a report's SQL benchmarks.
pub fn grids(report: &Report) -> Vec<Grid> {
    let mut grids = Vec::new();
    for mode in modes(report, "tpcb") {
        grids.push(throughput(report, mode));
        grids.push(residence(report, mode));
    }
    grids.extend(shares(report));
    grids.extend(wisconsin(report));
    for mode in modes(report, "tptbm") {
        grids.push(tptbm(report, mode));
    }
    for mode in modes(report, "tpch") {
        grids.push(queries(report, "tpch", "TPC-H", 22, mode));
    }
    for mode in modes(report, "clicks") {
        grids.push(queries(report, "clicks", "Page views", 43, mode));
    }
    for mode in modes(report, "statements") {
        grids.extend(statements::grids(report, mode));
    }
    for mode in modes(report, "tpcc") {
        grids.extend(servers::tpcc(report, mode, &threads(report, "tpcc", mode)));
    }
    grids.extend(servers::pgbench(report));
    grids
}

/// The durability classes of a benchmark, in the order in which they were measured.
pub fn modes(report: &Report, benchmark: &str) -> Vec<Mode> {
    let mut modes: Vec<Mode> = report.configurations(benchmark).into_iter().map(|c| c.0).collect();
    modes.dedup();
    modes.sort_unstable();
    modes.dedup();
    modes
}

/// The numbers of threads of a benchmark in one class, ascending.
pub fn threads(report: &Report, benchmark: &str, mode: Mode) -> Vec<usize> {
    let configurations = report.configurations(benchmark).into_iter();
    let mut threads: Vec<usize> = configurations.filter(|c| c.0 == mode).map(|c| c.1).collect();
    threads.sort_unstable();
    threads
}

pub(super) fn named(mode: Mode) -> &'static str {
    match mode {
        Mode::Ds => "no transactions",
        Mode::Sync => "SYNC: every commit flushed",
        Mode::Ramdisk => "RAMDISK: SYNC on a memory file system",
        Mode::Wns => "WNS: every commit written, none flushed",
        Mode::Ns => "NS: commits stay in the process",
        Mode::InMem => "INMEM: in memory",
    }
}

fn heads(threads: &[usize]) -> Vec<String> {
    let s = |threads: usize| if threads == 1 { "" } else { "s" };
    threads.iter().map(|&n| format!("{n} thread{}", s(n))).collect()
}

/// A number beside Quickbeam's: as a share of it for rates, as a multiple for times.
pub(super) fn beside(result: &Measurement, quickbeam: Option<&Measurement>) -> String {
    match quickbeam {
        Some(reference) if result.engine != "quickbeam" && reference.median > 0.0 => {
            format!("  {}", ratio(result.median / reference.median))
        }
        _ => String::new(),
    }
}

/// Table 6, for one class.
fn throughput(report: &Report, mode: Mode) -> Grid {
    let threads = threads(report, "tpcb", mode);
    let find = |engine: &str, threads| report.find("tpcb", engine, mode, threads, "transaction");
    let mut rows = Vec::new();
    let published: Vec<Option<f64>> =
        threads.iter().map(|&threads| published::tpcb(mode, threads)).collect();
    if published.iter().any(Option::is_some) {
        let cell = |tps: &Option<f64>| tps.map_or_else(|| "–".to_owned(), group);
        let cells = published.iter().map(cell).collect();
        rows.push(GridRow { head: published::BERKELEY_DB.to_owned(), cells, published: true });
    }
    for engine in report.engines("tpcb") {
        let cells: Vec<String> = threads
            .iter()
            .map(|&threads| match find(engine, threads) {
                Some(result) => format!(
                    "{} ± {}{}",
                    group(result.mean),
                    group(result.stddev),
                    beside(result, find("quickbeam", threads))
                ),
                None => "–".to_owned(),
            })
            .collect();
        rows.push(GridRow { head: engine.to_owned(), cells, published: false });
    }
    let title = format!("Table 6, TPC-B, {}: transactions a second", named(mode));
    Grid { title, corner: "engine", columns: heads(&threads), rows: kept(rows) }
}

/// Rows that say anything.
fn kept(mut rows: Vec<GridRow>) -> Vec<GridRow> {
    rows.retain(|row| row.cells.iter().any(|cell| cell != "–"));
    rows
}

/// Residence times: the specification asks for the 90th percentile.
fn residence(report: &Report, mode: Mode) -> Grid {
    let threads = threads(report, "tpcb", mode);
    let micros = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |us| group(us.round()));
    let rows = report.engines("tpcb").into_iter().map(|engine| {
        let cells = threads.iter().map(|&threads| {
            match report.find("tpcb", engine, mode, threads, "transaction") {
                Some(r) => [r.p50_us, r.p90_us, r.p99_us, r.max_us].map(micros).join(" / "),
                None => "–".to_owned(),
            }
        });
        GridRow { head: engine.to_owned(), cells: cells.collect(), published: false }
    });
    let title = format!(
        "TPC-B, {}: residence time in µs, median / 90th percentile / 99th / longest",
        named(mode)
    );
    Grid { title, corner: "engine", columns: heads(&threads), rows: kept(rows.collect()) }
}

/// What single-threaded durable commits reach of the device's ceiling.
fn shares(report: &Report) -> Option<Grid> {
    let rows: Vec<GridRow> = report
        .of("tpcb")
        .filter_map(|result| {
            let share = format!("{:.0} %", result.ceiling_share? * 100.0);
            Some(GridRow { head: result.engine.clone(), cells: vec![share], published: false })
        })
        .collect();
    (!rows.is_empty()).then(|| Grid {
        title: "TPC-B, SYNC, 1 thread: commits a second as a share of what logwrite reached just before"
            .to_owned(),
        corner: "engine",
        columns: vec!["share".to_owned()],
        rows,
    })
}

/// Table 7: a row for each query, a column for each engine in each class.
fn wisconsin(report: &Report) -> Option<Grid> {
    let mut queries: Vec<u8> = report.of("wisconsin").filter_map(|r| r.step.parse().ok()).collect();
    queries.sort_unstable();
    queries.dedup();
    let columns: Vec<(&str, Mode)> = report
        .engines("wisconsin")
        .into_iter()
        .flat_map(|engine| modes(report, "wisconsin").into_iter().map(move |mode| (engine, mode)))
        .filter(|&(engine, mode)| {
            report.of("wisconsin").any(|r| r.engine == engine && r.mode == mode.name())
        })
        .collect();
    if queries.is_empty() {
        return None;
    }
    let find = |query: u8, (engine, mode): (&str, Mode)| {
        report.find("wisconsin", engine, mode, 1, &query.to_string())
    };
    let best = |query: u8, ours: bool| {
        let times = columns
            .iter()
            .filter(|(engine, _)| (*engine == "quickbeam") == ours)
            .filter_map(|&column| Some(find(query, column)?.median));
        times.reduce(f64::min)
    };
    let mut ratios = Vec::new();
    let mut rows: Vec<GridRow> = queries
        .iter()
        .map(|&query| {
            let mut cells = vec![number(published::wisconsin(query))];
            cells.extend(columns.iter().map(|&column| {
                find(query, column).map_or_else(|| "–".to_owned(), |r| milliseconds(r.mean))
            }));
            let ratio = best(query, false).zip(best(query, true)).map(|(peer, ours)| peer / ours);
            ratios.extend(ratio);
            cells.push(ratio.map_or_else(|| "–".to_owned(), |ratio| format!("×{ratio:.2}")));
            GridRow { head: query.to_string(), cells, published: false }
        })
        .collect();
    if !ratios.is_empty() {
        let mean = (ratios.iter().map(|r| r.ln()).sum::<f64>() / ratios.len() as f64).exp();
        let mut cells = vec![String::new(); columns.len() + 1];
        cells.push(format!("×{mean:.2}"));
        rows.push(GridRow { head: "geometric mean".to_owned(), cells, published: false });
    }
    let mut heads = vec!["published\n2010".to_owned()];
    heads.extend(columns.iter().map(|(engine, mode)| format!("{engine}\n{mode}")));
    heads.push("best peer over best\nQuickbeam, any mode".to_owned());
    let title = "Table 7, Wisconsin: mean elapsed milliseconds of each query; the last column \
                 compares medians"
        .to_owned();
    Some(Grid { title, corner: "query", columns: heads, rows })
}

/// The TimesTen report's experiments, for one class.
fn tptbm(report: &Report, mode: Mode) -> Grid {
    let engines = report.engines("tptbm");
    let mut lines: Vec<(&str, usize)> = Vec::new();
    for result in report.of("tptbm").filter(|result| result.mode == mode.name()) {
        if !lines.contains(&(&result.step, result.threads)) {
            lines.push((&result.step, result.threads));
        }
    }
    let rows = lines.into_iter().map(|(step, threads)| {
        let find = |engine: &str| report.find("tptbm", engine, mode, threads, step);
        let published = published::tptbm(step);
        let mut cells: Vec<String> = [published.map(|p| p.0), published.map(|p| p.1)]
            .map(|tps| tps.filter(|tps| *tps > 0.0).map_or_else(|| "–".to_owned(), group))
            .into();
        cells.extend(engines.iter().map(|engine| match find(engine) {
            Some(r) => format!("{}{}", group(r.median), beside(r, find("quickbeam"))),
            None => "–".to_owned(),
        }));
        let s = if threads == 1 { "" } else { "s" };
        GridRow { head: format!("{step}; {threads} thread{s}"), cells, published: false }
    });
    let rows = rows.collect();
    let mut columns = vec!["TimesTen\npublished".to_owned(), "Oracle\npublished".to_owned()];
    columns.extend(engines.iter().map(|engine| (*engine).to_owned()));
    let title = format!("Tptbm, {}: transactions a second, median", named(mode));
    Grid { title, corner: "experiment", columns, rows }
}

/// A list of `count` queries, for one class: a row for each query, and the geometric means over the
/// queries that both engines answered.
fn queries(report: &Report, benchmark: &str, name: &str, count: u8, mode: Mode) -> Grid {
    let engines = report.engines(benchmark);
    let find =
        |engine: &str, query: u8| report.find(benchmark, engine, mode, 1, &query.to_string());
    let mut ratios: Vec<Vec<f64>> = vec![Vec::new(); engines.len()];
    let mut rows = Vec::new();
    for query in 1..=count {
        let ours = find("quickbeam", query);
        let mut cells = Vec::new();
        for (engine, ratios) in engines.iter().zip(&mut ratios) {
            let result = find(engine, query);
            let ratio = result.zip(ours).map(|(peer, ours)| peer.median / ours.median);
            ratios.extend(ratio.filter(|ratio| ratio.is_finite() && *ratio > 0.0));
            cells.push(
                result.map_or_else(
                    || "–".to_owned(),
                    |r| format!("{:.2}{}", r.median, beside(r, ours)),
                ),
            );
        }
        rows.push(GridRow { head: query.to_string(), cells, published: false });
    }
    let mean = |ratios: &Vec<f64>| match ratios.len() {
        0 => "–".to_owned(),
        count => {
            let mean = (ratios.iter().map(|r| r.ln()).sum::<f64>() / count as f64).exp();
            format!("×{mean:.2}")
        }
    };
    let mut rows = kept(rows);
    let cells = ratios.iter().map(mean).collect();
    rows.push(GridRow { head: "geometric mean".to_owned(), cells, published: false });
    let columns = engines.iter().map(|engine| (*engine).to_owned()).collect();
    let title = format!(
        "{name}, {}, one thread: median milliseconds of each query, and as a multiple of Quickbeam's",
        named(mode)
    );
    Grid { title, corner: "query", columns, rows }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::report::tests::sample;
    use crate::statistics::Latencies;

    /// A report of every SQL benchmark.
    pub(crate) fn sql_sample() -> Report {
        let mut report = sample();
        report.results.clear();
        let mut latencies = Latencies::default();
        latencies.record(std::time::Duration::from_micros(120));
        let mut add = |benchmark: &str, engine: &str, threads, step: &str, value: f64| {
            let result = Measurement {
                benchmark: benchmark.to_owned(),
                engine: engine.to_owned(),
                mode: "sync".to_owned(),
                threads,
                step: step.to_owned(),
                records: if step.ends_with("16") { 160 } else { 10 },
                unit: if matches!(benchmark, "wisconsin" | "tpch" | "clicks" | "statements") {
                    "ms"
                } else {
                    "tps"
                }
                .to_owned(),
                ceiling_share: (benchmark == "tpcb" && threads == 1).then_some(0.93),
                ..Measurement::default()
            };
            let result = result.with_runs(vec![value]).with_latencies(&latencies);
            report.results.push(result.with_distribution(&latencies));
        };
        for (engine, factor) in [("quickbeam", 4.0), ("sqlite", 1.0)] {
            for threads in [1, 10] {
                add("tpcb", engine, threads, "transaction", 5000.0 * factor);
            }
            for query in ["1", "32"] {
                add("wisconsin", engine, 1, query, 8.0 / factor);
            }
            add("tptbm", engine, 1, "insert 10000 rows", 40_000.0 * factor);
            add("tpch", engine, 1, "22", 100.0 / factor);
            add("clicks", engine, 1, "43", 100.0 / factor);
            add("statements", engine, 1, "6 at scale 1", 4.0 / factor);
            add("statements", engine, 1, "6 at scale 16", 80.0 / factor);
        }
        report
    }

    #[test]
    fn measured_and_published_numbers_stand_side_by_side() {
        let grids = grids(&sql_sample());
        let text: Vec<String> = grids
            .iter()
            .flat_map(|grid| {
                let rows = grid.rows.iter().map(|r| format!("{}|{}", r.head, r.cells.join("|")));
                [grid.title.clone()].into_iter().chain(rows)
            })
            .collect();
        let text = text.join("\n");
        for expected in [
            "Table 6, TPC-B, SYNC",
            "published 2010, other hardware)|1,847|2,859",
            "sqlite|5,000 ± 0  ×0.25",
            "120 / 120 / 120 / 120",
            "sqlite|93 %",
            "1|8.175|2.000|8.000|×4.00",
            "32|1.081",
            "geometric mean||||×4.00",
            "insert 10000 rows; 1 thread|16,879|4,093|160,000|40,000  ×0.25",
            "22|25.00|100.00  ×4.00",
            "geometric mean|×1.00|×4.00",
            "6|10120|20560|1.0|4.0  ×4.00",
            "6|–|–|20.0|80.0  ×4.00",
            "6|×1.25|×1.25",
        ] {
            assert!(text.contains(expected), "{expected} is not in\n{text}");
        }
        let whole = grids.iter().all(|g| g.rows.iter().all(|r| r.cells.len() == g.columns.len()));
        assert!(whole, "every row has a cell for each column");
    }
}
