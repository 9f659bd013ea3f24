//! The tables of `bench statements`: the times beside the published ones, and how the cost of a row
//! grows with the tables.

use super::grid::{Grid, GridRow};
use super::sql::{beside, named};
use super::{Measurement, Report};
use crate::engine::Mode;
use crate::published::sql::statement as published;
use crate::statements::list::{STATEMENTS, step};

/// The tables for one class.
pub fn grids(report: &Report, mode: Mode) -> Vec<Grid> {
    let scales = scales(report);
    let mut grids: Vec<Grid> = scales.iter().map(|scale| times(report, mode, *scale)).collect();
    if let [first, others @ ..] = &scales[..]
        && !others.is_empty()
    {
        grids.push(growth(report, mode, *first, others));
    }
    grids
}

/// The scales, in the order in which they were measured.
fn scales(report: &Report) -> Vec<f64> {
    let mut scales = Vec::new();
    for result in report.of("statements") {
        let scale = result.step.split_whitespace().last().and_then(|word| word.parse().ok());
        if let Some(scale) = scale
            && !scales.contains(&scale)
        {
            scales.push(scale);
        }
    }
    scales
}

fn find<'r>(
    report: &'r Report,
    engine: &str,
    mode: Mode,
    number: u8,
    scale: f64,
) -> Option<&'r Measurement> {
    report.find("statements", engine, mode, 1, &step(number, scale))
}

/// Milliseconds of each statement at one scale. The published ones belong to scale 1.
fn times(report: &Report, mode: Mode, scale: f64) -> Grid {
    let engines = report.engines("statements");
    let is_published = (scale - 1.0).abs() < f64::EPSILON;
    let mut rows = Vec::new();
    for statement in &STATEMENTS {
        let number = statement.number;
        let ours = find(report, "quickbeam", mode, number, scale);
        let seconds = published(number).filter(|_| is_published);
        let mut cells: Vec<String> = [seconds.map(|s| s.0), seconds.map(|s| s.1)]
            .map(|seconds| seconds.map_or_else(|| "–".to_owned(), |s| format!("{:.0}", s * 1000.0)))
            .into();
        cells.extend(engines.iter().map(|engine| {
            find(report, engine, mode, number, scale)
                .map_or_else(|| "–".to_owned(), |r| format!("{:.1}{}", r.median, beside(r, ours)))
        }));
        if cells.iter().skip(2).any(|cell| cell != "–") {
            rows.push(GridRow { head: number.to_string(), cells, published: false });
        }
    }
    let mut columns = vec!["TimesTen\npublished".to_owned(), "Oracle\npublished".to_owned()];
    columns.extend(engines.iter().map(|engine| (*engine).to_owned()));
    let title = format!(
        "Statements at scale {scale}, {}, one thread: median milliseconds, and as a multiple of \
         Quickbeam's",
        named(mode)
    );
    Grid { title, corner: "statement", columns, rows }
}

/// The cost of a row of each write at larger scales, as a multiple of that at the first.
fn growth(report: &Report, mode: Mode, first: f64, others: &[f64]) -> Grid {
    let engines = report.engines("statements");
    let cost = |engine: &str, number: u8, scale: f64| {
        let result = find(report, engine, mode, number, scale)?;
        Some(result.median / result.records as f64)
    };
    let mut rows = Vec::new();
    for statement in STATEMENTS.iter().filter(|statement| statement.is_write()) {
        let number = statement.number;
        let cells = engines.iter().map(|engine| {
            let ratios = others.iter().map(|&scale| {
                let ratio = cost(engine, number, scale)
                    .zip(cost(engine, number, first))
                    .map(|(large, small)| large / small);
                ratio.map_or_else(|| "–".to_owned(), |ratio| format!("×{ratio:.2}"))
            });
            ratios.collect::<Vec<String>>().join(" / ")
        });
        rows.push(GridRow { head: number.to_string(), cells: cells.collect(), published: false });
    }
    let scales: Vec<String> = others.iter().map(f64::to_string).collect();
    let title = format!(
        "Statements, {}: the cost of a row written at scale {} as a multiple of that at scale {first}",
        named(mode),
        scales.join(" / ")
    );
    let columns = engines.iter().map(|engine| (*engine).to_owned()).collect();
    Grid { title, corner: "statement", columns, rows }
}
