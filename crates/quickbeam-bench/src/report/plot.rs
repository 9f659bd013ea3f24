//! Plots as SVG: Figure 1 of the paper and a bar chart for each table.

use anyhow::{Result, anyhow};
use plotters::prelude::*;

use super::Report;
use super::terminal::STEPS;
use crate::engine::Mode;
use crate::published;
use crate::workload::Step;

const SIZE: (u32, u32) = (560, 360);
const FONT: &str = "sans-serif";

/// The colour of each engine is the same in every plot.
fn color(position: usize) -> RGBColor {
    const COLORS: [(u8, u8, u8); 10] = [
        (214, 39, 40),
        (31, 119, 180),
        (44, 160, 44),
        (152, 223, 138),
        (255, 127, 14),
        (148, 103, 189),
        (140, 86, 75),
        (227, 119, 194),
        (23, 190, 207),
        (127, 127, 127),
    ];
    let (r, g, b) = COLORS[position % COLORS.len()];
    RGBColor(r, g, b)
}

/// Position of the engine (its colour), its name, and points of threads and rate.
type Series<'s> = (usize, &'s str, Vec<(f64, f64)>);

/// Operations a second by threads, a line for each engine: one panel of Figure 1.
pub fn scaling(report: &Report, mode: Mode, step: Step) -> Result<Option<String>> {
    let threads: Vec<usize> = report
        .configurations("kv")
        .into_iter()
        .filter(|(m, _)| *m == mode)
        .map(|(_, threads)| threads)
        .collect();
    let series: Vec<Series<'_>> = report
        .engines("kv")
        .into_iter()
        .enumerate()
        .map(|(position, engine)| {
            let points = threads.iter().filter_map(|&threads| {
                let result = report.find("kv", engine, mode, threads, step.name())?;
                Some((threads as f64, result.mean))
            });
            (position, engine, points.collect())
        })
        .filter(|(.., points): &(_, _, Vec<_>)| !points.is_empty())
        .collect();
    if threads.len() < 2 || series.is_empty() {
        return Ok(None);
    }
    let published: Vec<(f64, f64)> = threads
        .iter()
        .filter_map(|&threads| Some((threads, published::find(mode, threads)?.rate(step)?.0)))
        .map(|(threads, rate)| (threads as f64, rate))
        .collect();
    let most = threads.iter().copied().max().unwrap_or(1) as f64;
    let top = series.iter().flat_map(|(.., points)| points).map(|p| p.1).fold(1.0, f64::max);
    let mut text = String::new();
    draw_scaling(&mut text, step, (most, top * 1.05), &series, &published)
        .map_err(|error| anyhow!("plot of {step}: {error}"))?;
    Ok(Some(text))
}

fn draw_scaling(
    text: &mut String,
    step: Step,
    (most, top): (f64, f64),
    series: &[Series<'_>],
    published: &[(f64, f64)],
) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::with_string(text, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(format!("{step}: operations a second by threads"), (FONT, 16))
        .margin(8)
        .x_label_area_size(32)
        .y_label_area_size(72)
        .build_cartesian_2d(0.0..most, 0.0..top)?;
    chart
        .configure_mesh()
        .x_desc("threads")
        .x_labels(9)
        .y_label_formatter(&|y| super::terminal::group(*y))
        .light_line_style(WHITE)
        .draw()?;
    for (position, engine, points) in series {
        let style = color(*position).stroke_width(2);
        chart
            .draw_series(LineSeries::new(points.iter().copied(), style))?
            .label(*engine)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], style));
    }
    if !published.is_empty() {
        let style = BLACK.mix(0.5).stroke_width(1);
        chart
            .draw_series(DashedLineSeries::new(published.iter().copied(), 4, 4, style))?
            .label("published 2010")
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.2))
        .label_font((FONT, 11))
        .draw()?;
    root.present()?;
    Ok(())
}

/// One table as groups of bars: a group for each step, a bar for each engine.
pub fn bars(
    report: &Report,
    benchmark: &str,
    mode: Mode,
    threads: usize,
) -> Result<Option<String>> {
    let engines = report.engines(benchmark);
    let mut bars = Vec::new();
    let mut groups = Vec::new();
    for step in STEPS {
        let found: Vec<(usize, f64)> = engines
            .iter()
            .enumerate()
            .filter_map(|(position, engine)| {
                let result = report.find(benchmark, engine, mode, threads, step.name())?;
                Some((position, result.mean))
            })
            .collect();
        if !found.is_empty() {
            bars.push(found);
            groups.push(step);
        }
    }
    if bars.is_empty() {
        return Ok(None);
    }
    let mut text = String::new();
    draw_bars(&mut text, &engines, &groups, &bars)
        .map_err(|error| anyhow!("bars of {mode}: {error}"))?;
    Ok(Some(text))
}

fn draw_bars(
    text: &mut String,
    engines: &[&str],
    groups: &[Step],
    bars: &[Vec<(usize, f64)>],
) -> Result<(), Box<dyn std::error::Error>> {
    let top = bars.iter().flatten().map(|bar| bar.1).fold(1.0, f64::max) * 1.05;
    let root = SVGBackend::with_string(text, (SIZE.0 + 160, SIZE.1)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .margin(8)
        .margin_right(130)
        .x_label_area_size(24)
        .y_label_area_size(72)
        .build_cartesian_2d(0.0..groups.len() as f64, 0.0..top)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .disable_x_axis()
        .y_label_formatter(&|y| super::terminal::group(*y))
        .light_line_style(WHITE)
        .draw()?;
    let width = 0.84 / engines.len() as f64;
    for (position, engine) in engines.iter().enumerate() {
        let rectangles = bars.iter().enumerate().flat_map(|(group, found)| {
            found.iter().filter(|bar| bar.0 == position).map(move |bar| {
                let left = group as f64 + 0.08 + position as f64 * width;
                Rectangle::new([(left, 0.0), (left + width, bar.1)], color(position).filled())
            })
        });
        chart.draw_series(rectangles)?.label(*engine).legend(move |(x, y)| {
            Rectangle::new([(x, y - 5), (x + 12, y + 5)], color(position).filled())
        });
    }
    let area = chart.plotting_area().get_pixel_range();
    let group_width = (area.0.end - area.0.start) / groups.len() as i32;
    for (group, step) in groups.iter().enumerate() {
        let x = area.0.start + group_width * group as i32 + group_width / 2 - 20;
        root.draw(&Text::new(step.name(), (x, area.1.end + 6), (FONT, 14)))?;
    }
    let legend_y = |position: usize| 24 + 20 * position as i32;
    let legend_x = area.0.end + 14;
    for (position, engine) in engines.iter().enumerate() {
        let y = legend_y(position);
        let mark = [(legend_x, y), (legend_x + 12, y + 10)];
        root.draw(&Rectangle::new(mark, color(position).filled()))?;
        root.draw(&Text::new(*engine, (legend_x + 18, y - 2), (FONT, 13)))?;
    }
    root.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plots_are_svg() {
        let report = super::super::tests::sample();
        let figure = scaling(&report, Mode::Sync, Step::Insert).unwrap().unwrap();
        assert!(figure.starts_with("<svg") && figure.contains("quickbeam"));
        assert!(scaling(&report, Mode::Ds, Step::Insert).unwrap().is_none());
        let chart = bars(&report, "kv", Mode::Ds, 1).unwrap().unwrap();
        assert!(chart.starts_with("<svg") && chart.contains("update"));
    }
}
