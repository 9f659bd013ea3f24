//! Plots as SVG: Figures 1 and 2 of the paper, residence times, and a bar chart for each table.

use anyhow::{Result, anyhow};
use plotters::prelude::*;

use super::terminal::STEPS;
use super::{Measurement, Report};
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
    let caption = format!("{step}: operations a second by threads");
    let mut text = String::new();
    draw_scaling(&mut text, &caption, (most, top * 1.05), &series, &published)
        .map_err(|error| anyhow!("plot of {step}: {error}"))?;
    Ok(Some(text))
}

/// A line for each engine of TPC-B: its points are drawn from each of its results in one class.
fn tpcb_series<'r>(
    report: &'r Report,
    mode: Mode,
    points: impl Fn(&Measurement) -> Vec<(f64, f64)>,
) -> Vec<Series<'r>> {
    let engines = report.engines("tpcb").into_iter().enumerate();
    engines
        .map(|(position, engine)| {
            let results = report
                .of("tpcb")
                .filter(|result| result.engine == engine && result.mode == mode.name());
            (position, engine, results.flat_map(&points).collect())
        })
        .filter(|(.., points): &(_, _, Vec<_>)| !points.is_empty())
        .collect()
}

/// Figure 2 of the paper: transactions a second by threads, a line for each engine.
pub fn figure_2(report: &Report, mode: Mode) -> Result<Option<String>> {
    let threads = super::sql::threads(report, "tpcb", mode);
    let series = tpcb_series(report, mode, |result| vec![(result.threads as f64, result.mean)]);
    let most = threads.last().copied().unwrap_or(1) as f64;
    if threads.len() < 2 || series.is_empty() {
        return Ok(None);
    }
    let published: Vec<(f64, f64)> = threads
        .iter()
        .filter_map(|&threads| Some((threads as f64, published::sql::tpcb(mode, threads)?)))
        .collect();
    let top = series.iter().flat_map(|(.., points)| points).map(|p| p.1).fold(1.0, f64::max);
    let mut text = String::new();
    let caption = "transactions a second by threads";
    draw_scaling(&mut text, caption, (most, top * 1.05), &series, &published)
        .map_err(|error| anyhow!("Figure 2: {error}"))?;
    Ok(Some(text))
}

/// The distribution of residence times at the largest number of threads.
pub fn residence(report: &Report, mode: Mode) -> Result<Option<String>> {
    let Some(threads) = super::sql::threads(report, "tpcb", mode).last().copied() else {
        return Ok(None);
    };
    let series = tpcb_series(report, mode, |result| {
        if result.threads == threads { result.distribution.clone() } else { Vec::new() }
    });
    if series.is_empty() {
        return Ok(None);
    }
    let mut text = String::new();
    draw_residence(&mut text, threads, &series)
        .map_err(|error| anyhow!("plot of residence times: {error}"))?;
    Ok(Some(text))
}

fn draw_residence(
    text: &mut String,
    threads: usize,
    series: &[Series<'_>],
) -> Result<(), Box<dyn std::error::Error>> {
    let times = || series.iter().flat_map(|(.., points)| points).map(|point| point.1.max(0.1));
    let (least, longest) = (times().fold(1e9, f64::min), times().fold(1.0, f64::max));
    let root = SVGBackend::with_string(text, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(format!("residence time in µs, {threads} thread(s)"), (FONT, 16))
        .margin(8)
        .margin_right(20)
        .x_label_area_size(32)
        .y_label_area_size(72)
        .build_cartesian_2d(0.0..100.0, (least * 0.8..longest * 1.2).log_scale())?;
    chart
        .configure_mesh()
        .x_desc("percentile")
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| super::terminal::group(*y))
        .max_light_lines(0)
        .draw()?;
    for (position, engine, points) in series {
        let style = color(*position).stroke_width(2);
        let points = points.iter().map(|&(percentile, time)| (percentile, time.max(0.1)));
        chart
            .draw_series(LineSeries::new(points, style))?
            .label(*engine)
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

fn draw_scaling(
    text: &mut String,
    caption: &str,
    (most, top): (f64, f64),
    series: &[Series<'_>],
    published: &[(f64, f64)],
) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::with_string(text, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(caption, (FONT, 16))
        .margin(8)
        .margin_right(20)
        .x_label_area_size(32)
        .y_label_area_size(72)
        .build_cartesian_2d(0.0..most, 0.0..top)?;
    chart
        .configure_mesh()
        .x_desc("threads")
        .x_labels(9)
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| super::terminal::group(*y))
        .max_light_lines(0)
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

/// What a bar chart shows.
struct Bars<'r> {
    /// Colour and name of each engine that has a bar at all.
    engines: Vec<(RGBColor, &'r str)>,
    /// Each step with one rate for each engine.
    groups: Vec<(Step, Vec<Option<f64>>)>,
}

/// One table as groups of bars: a group for each step, a bar for each engine.
pub fn bars(
    report: &Report,
    benchmark: &str,
    mode: Mode,
    threads: usize,
) -> Result<Option<String>> {
    let rate = |engine: &str, step: Step| {
        report.find(benchmark, engine, mode, threads, step.name()).map(|result| result.mean)
    };
    let engines: Vec<(RGBColor, &str)> = report
        .engines(benchmark)
        .into_iter()
        .enumerate()
        .map(|(position, engine)| (color(position), engine))
        .filter(|(_, engine)| STEPS.iter().any(|&step| rate(engine, step).is_some()))
        .collect();
    let groups: Vec<(Step, Vec<Option<f64>>)> = STEPS
        .into_iter()
        .map(|step| (step, engines.iter().map(|(_, engine)| rate(engine, step)).collect()))
        .filter(|(_, rates): &(Step, Vec<Option<f64>>)| rates.iter().any(Option::is_some))
        .collect();
    if groups.is_empty() {
        return Ok(None);
    }
    let mut text = String::new();
    draw_bars(&mut text, &Bars { engines, groups })
        .map_err(|error| anyhow!("bars of {mode}: {error}"))?;
    Ok(Some(text))
}

fn draw_bars(text: &mut String, bars: &Bars<'_>) -> Result<(), Box<dyn std::error::Error>> {
    let rates = bars.groups.iter().flat_map(|(_, rates)| rates.iter().flatten().copied());
    let top = rates.fold(1.0, f64::max) * 1.05;
    let root = SVGBackend::with_string(text, (SIZE.0 + 160, SIZE.1)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .margin(8)
        .margin_right(130)
        .x_label_area_size(24)
        .y_label_area_size(72)
        .build_cartesian_2d(0.0..bars.groups.len() as f64, 0.0..top)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .disable_x_axis()
        .y_label_formatter(&|y| super::terminal::group(*y))
        .max_light_lines(0)
        .draw()?;
    let width = 0.84 / bars.engines.len() as f64;
    for (group, (_, rates)) in bars.groups.iter().enumerate() {
        chart.draw_series(rates.iter().enumerate().filter_map(|(position, rate)| {
            let left = group as f64 + 0.08 + position as f64 * width;
            let color = bars.engines[position].0;
            Some(Rectangle::new([(left, 0.0), (left + width, (*rate)?)], color.filled()))
        }))?;
    }
    let (across, down) = chart.plotting_area().get_pixel_range();
    let group_width = (across.end - across.start) / bars.groups.len() as i32;
    for (left, (step, _)) in (across.start..).step_by(group_width as usize).zip(&bars.groups) {
        let place = (left + group_width / 2 - 20, down.end + 6);
        root.draw(&Text::new(step.name(), place, (FONT, 14)))?;
    }
    for (y, (color, engine)) in (24..).step_by(20).zip(&bars.engines) {
        let x = across.end + 14;
        root.draw(&Rectangle::new([(x, y), (x + 12, y + 10)], color.filled()))?;
        root.draw(&Text::new(*engine, (x + 18, y - 2), (FONT, 13)))?;
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
