//! Plots as SVG: Figures 1 and 2 of the paper, residence times, and a bar chart for each table.

use std::error::Error;
use std::ops::Range;

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use super::terminal::STEPS;
use super::{Measurement, Report};
use crate::engine::Mode;
use crate::published;
use crate::workload::Step;

const FONT: &str = "sans-serif";
/// Width of the legend beside a plot.
const LEGEND: u32 = 140;
/// An axis is logarithmic if its largest value is this many times its smallest.
const LOG_SPAN: f64 = 30.0;

/// The colour of each engine, the same in every plot of every report.
const COLORS: [(&str, (u8, u8, u8)); 12] = [
    ("quickbeam", (214, 39, 40)),
    ("bdb", (31, 119, 180)),
    ("bdb-sql", (31, 119, 180)),
    ("lmdb", (44, 160, 44)),
    ("lmdb-writemap", (152, 223, 138)),
    ("wiredtiger", (188, 189, 34)),
    ("rocksdb", (255, 127, 14)),
    ("sqlite", (140, 86, 75)),
    ("redb", (227, 119, 194)),
    ("fjall", (23, 190, 207)),
    ("postgresql", (148, 103, 189)),
    ("duckdb", (127, 127, 127)),
];

fn color(engine: &str) -> RGBColor {
    let known = COLORS.iter().find(|(name, _)| *name == engine);
    let (r, g, b) = known.map_or((0, 0, 0), |(_, color)| *color);
    RGBColor(r, g, b)
}

/// A point of a line: threads or percentile, value, and standard deviation.
type Point = (f64, f64, f64);

/// The name of the engine and its points.
type Series<'s> = (&'s str, Vec<Point>);

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
        .map(|engine| {
            let points = threads.iter().filter_map(|&threads| {
                let result = report.find("kv", engine, mode, threads, step.name())?;
                Some((threads as f64, result.mean, result.stddev))
            });
            (engine, points.collect())
        })
        .filter(|(_, points): &(_, Vec<Point>)| !points.is_empty())
        .collect();
    if threads.len() < 2 || series.is_empty() {
        return Ok(None);
    }
    let published: Vec<(f64, f64)> = threads
        .iter()
        .filter_map(|&threads| Some((threads, published::find(mode, threads)?.rate(step)?.0)))
        .map(|(threads, rate)| (threads as f64, rate))
        .collect();
    let plot = Lines {
        caption: format!("{step}: operations a second by threads"),
        x: ("threads", 0.0..threads.iter().copied().max().unwrap_or(1) as f64),
        y: "operations a second",
        series,
        published,
    };
    plot.draw().map(Some).map_err(|error| anyhow!("plot of {step}: {error}"))
}

/// A line for each engine of TPC-B: its points are drawn from each of its results in one class.
fn tpcb_series<'r>(
    report: &'r Report,
    mode: Mode,
    points: impl Fn(&Measurement) -> Vec<Point>,
) -> Vec<Series<'r>> {
    let engines = report.engines("tpcb").into_iter();
    engines
        .map(|engine| {
            let results = report
                .of("tpcb")
                .filter(|result| result.engine == engine && result.mode == mode.name());
            (engine, results.flat_map(&points).collect())
        })
        .filter(|(_, points): &(_, Vec<Point>)| !points.is_empty())
        .collect()
}

/// Figure 2 of the paper: transactions a second by threads, a line for each engine.
pub fn figure_2(report: &Report, mode: Mode) -> Result<Option<String>> {
    let threads = super::sql::threads(report, "tpcb", mode);
    let series = tpcb_series(report, mode, |result| {
        vec![(result.threads as f64, result.mean, result.stddev)]
    });
    let most = threads.last().copied().unwrap_or(1) as f64;
    if threads.len() < 2 || series.is_empty() {
        return Ok(None);
    }
    let published: Vec<(f64, f64)> = threads
        .iter()
        .filter_map(|&threads| Some((threads as f64, published::sql::tpcb(mode, threads)?)))
        .collect();
    let plot = Lines {
        caption: "transactions a second by threads".to_owned(),
        x: ("threads", 0.0..most),
        y: "transactions a second",
        series,
        published,
    };
    plot.draw().map(Some).map_err(|error| anyhow!("Figure 2: {error}"))
}

/// The distribution of residence times at the largest number of threads.
pub fn residence(report: &Report, mode: Mode) -> Result<Option<String>> {
    let Some(threads) = super::sql::threads(report, "tpcb", mode).last().copied() else {
        return Ok(None);
    };
    let series = tpcb_series(report, mode, |result| {
        let points = result.distribution.iter().map(|&(at, time)| (at, time.max(0.1), 0.0));
        if result.threads == threads { points.collect() } else { Vec::new() }
    });
    if series.is_empty() {
        return Ok(None);
    }
    let plot = Lines {
        caption: format!("residence time by percentile, {threads} thread(s)"),
        x: ("percentile", 0.0..100.0),
        y: "residence time in µs",
        series,
        published: Vec::new(),
    };
    plot.draw().map(Some).map_err(|error| anyhow!("plot of residence times: {error}"))
}

/// Returns the range of an axis, and true if it is logarithmic. Values of zero count as absent.
fn axis(values: impl Iterator<Item = f64> + Clone) -> (Range<f64>, bool) {
    let top = values.clone().fold(f64::MIN_POSITIVE, f64::max);
    let least = values.filter(|value| *value > 0.0).fold(top, f64::min);
    if top / least > LOG_SPAN { (least * 0.6..top * 1.5, true) } else { (0.0..top * 1.08, false) }
}

type Drawn = Result<(), Box<dyn Error>>;

/// A plot of values with error bars on a linear or logarithmic axis.
trait Chart {
    const SIZE: (u32, u32);

    /// The range of the horizontal axis.
    fn across(&self) -> Range<f64>;

    /// The values and the upper ends of their error bars.
    fn ends(&self) -> Vec<f64>;

    /// Sets what is around the plot.
    fn frame(&self, builder: &mut ChartBuilder<'_, '_, SVGBackend<'_>>);

    /// Draws the values; `floor` is the lower end of the vertical axis.
    fn fill<Y: Ranged<ValueType = f64> + ValueFormatter<f64>>(
        &self,
        root: &Root<'_>,
        chart: ChartContext<'_, SVGBackend<'_>, Cartesian2d<RangedCoordf64, Y>>,
        floor: f64,
    ) -> Drawn;

    /// Returns the plot as SVG.
    fn draw(&self) -> Result<String, Box<dyn Error>> {
        let mut text = String::new();
        let root = SVGBackend::with_string(&mut text, Self::SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let (range, is_log) = axis(self.ends().into_iter());
        let mut builder = ChartBuilder::on(&root);
        builder.margin(8).margin_right(LEGEND).y_label_area_size(88);
        self.frame(&mut builder);
        let across = self.across();
        if is_log {
            let floor = range.start;
            self.fill(&root, builder.build_cartesian_2d(across, range.log_scale())?, floor)?;
        } else {
            self.fill(&root, builder.build_cartesian_2d(across, range)?, 0.0)?;
        }
        root.present()?;
        drop(builder);
        drop(root);
        Ok(text)
    }
}

/// A line for each engine, with error bars of one standard deviation.
struct Lines<'s> {
    caption: String,
    /// The unit and the range.
    x: (&'static str, Range<f64>),
    /// The unit.
    y: &'static str,
    series: Vec<Series<'s>>,
    published: Vec<(f64, f64)>,
}

impl Chart for Lines<'_> {
    const SIZE: (u32, u32) = (620, 360);

    fn across(&self) -> Range<f64> {
        self.x.1.clone()
    }

    fn ends(&self) -> Vec<f64> {
        let points = self.series.iter().flat_map(|(_, points)| points);
        points.flat_map(|&(_, value, sd)| [value, value + sd]).collect()
    }

    fn frame(&self, builder: &mut ChartBuilder<'_, '_, SVGBackend<'_>>) {
        builder.caption(&self.caption, (FONT, 16)).x_label_area_size(36);
    }

    fn fill<Y: Ranged<ValueType = f64> + ValueFormatter<f64>>(
        &self,
        root: &Root<'_>,
        mut chart: ChartContext<'_, SVGBackend<'_>, Cartesian2d<RangedCoordf64, Y>>,
        floor: f64,
    ) -> Drawn {
        chart
            .configure_mesh()
            .x_desc(self.x.0)
            .y_desc(self.y)
            .x_labels(9)
            .x_label_formatter(&|x| format!("{x:.0}"))
            .y_label_formatter(&|y| super::numbers::number(*y))
            .max_light_lines(0)
            .draw()?;
        let width = (self.x.1.end - self.x.1.start) / 120.0;
        for (engine, points) in &self.series {
            let style = color(engine).stroke_width(2);
            let line = points.iter().map(|&(x, y, _)| (x, y));
            chart.draw_series(LineSeries::new(line, style))?;
            for point in points.iter().filter(|point| point.2 > 0.0) {
                chart.draw_series(error_bar(*point, width, floor, color(engine)))?;
            }
        }
        if !self.published.is_empty() {
            let style = BLACK.mix(0.5).stroke_width(1);
            let line = self.published.iter().copied();
            chart.draw_series(DashedLineSeries::new(line, 4, 4, style))?;
        }
        let mut names: Vec<(RGBColor, &str)> =
            self.series.iter().map(|(engine, _)| (color(engine), *engine)).collect();
        if !self.published.is_empty() {
            names.push((RGBColor(127, 127, 127), "published 2010"));
        }
        let (across, _) = chart.plotting_area().get_pixel_range();
        legend(root, across.end + 14, &names)
    }
}

type Root<'r> = DrawingArea<SVGBackend<'r>, Shift>;

/// Returns the lines of an error bar: mean minus to mean plus one standard deviation.
fn error_bar(
    (x, mean, sd): Point,
    width: f64,
    floor: f64,
    color: RGBColor,
) -> [PathElement<(f64, f64)>; 3] {
    let (low, high) = ((mean - sd).max(floor), mean + sd);
    let line = |from, to| PathElement::new([from, to], color.stroke_width(1));
    [
        line((x, low), (x, high)),
        line((x - width, low), (x + width, low)),
        line((x - width, high), (x + width, high)),
    ]
}

/// Writes the names of the engines beside the plot, from `x`.
fn legend(root: &Root<'_>, x: i32, names: &[(RGBColor, &str)]) -> Drawn {
    for (y, (color, name)) in (24..).step_by(20).zip(names) {
        root.draw(&Rectangle::new([(x, y), (x + 12, y + 10)], color.filled()))?;
        root.draw(&Text::new(*name, (x + 18, y - 2), (FONT, 13)))?;
    }
    Ok(())
}

/// A step with rate and standard deviation for each engine.
type StepRates = (Step, Vec<Option<(f64, f64)>>);

/// A bar chart.
struct Bars<'r> {
    /// The engines that have a bar at all.
    engines: Vec<&'r str>,
    groups: Vec<StepRates>,
}

/// One table as groups of bars: a group for each step, a bar for each engine.
pub fn bars(
    report: &Report,
    benchmark: &str,
    mode: Mode,
    threads: usize,
) -> Result<Option<String>> {
    let rate = |engine: &str, step: Step| {
        let result = report.find(benchmark, engine, mode, threads, step.name())?;
        Some((result.mean, result.stddev))
    };
    let mut engines = report.engines(benchmark);
    engines.retain(|engine| STEPS.iter().any(|&step| rate(engine, step).is_some()));
    let groups: Vec<StepRates> = STEPS
        .into_iter()
        .map(|step| (step, engines.iter().map(|engine| rate(engine, step)).collect()))
        .filter(|(_, rates): &(Step, Vec<_>)| rates.iter().any(Option::is_some))
        .collect();
    if groups.is_empty() {
        return Ok(None);
    }
    let bars = Bars { engines, groups };
    bars.draw().map(Some).map_err(|error| anyhow!("bars of {mode}: {error}"))
}

impl Chart for Bars<'_> {
    const SIZE: (u32, u32) = (960, 340);

    fn across(&self) -> Range<f64> {
        0.0..self.groups.len() as f64
    }

    fn ends(&self) -> Vec<f64> {
        let rates = self.groups.iter().flat_map(|(_, rates)| rates.iter().flatten());
        rates.flat_map(|&(rate, sd)| [rate, rate + sd]).collect()
    }

    fn frame(&self, builder: &mut ChartBuilder<'_, '_, SVGBackend<'_>>) {
        builder.x_label_area_size(24);
    }

    fn fill<Y: Ranged<ValueType = f64> + ValueFormatter<f64>>(
        &self,
        root: &Root<'_>,
        mut chart: ChartContext<'_, SVGBackend<'_>, Cartesian2d<RangedCoordf64, Y>>,
        floor: f64,
    ) -> Drawn {
        let unit = if floor > 0.0 { "operations a second (log)" } else { "operations a second" };
        chart
            .configure_mesh()
            .disable_x_mesh()
            .disable_x_axis()
            .y_desc(unit)
            .y_label_formatter(&|y| super::numbers::number(*y))
            .max_light_lines(0)
            .draw()?;
        let width = 0.84 / self.engines.len() as f64;
        for (group, (_, rates)) in self.groups.iter().enumerate() {
            for (position, (engine, rate)) in self.engines.iter().zip(rates).enumerate() {
                let Some((rate, sd)) = *rate else { continue };
                let left = group as f64 + 0.08 + position as f64 * width;
                let corners = [(left, floor), (left + width, rate)];
                chart.draw_series([Rectangle::new(corners, color(engine).filled())])?;
                let point = (left + width / 2.0, rate, sd);
                chart.draw_series(error_bar(point, width / 6.0, floor, BLACK))?;
            }
        }
        let (across, down) = chart.plotting_area().get_pixel_range();
        let group_width = (across.end - across.start) / self.groups.len() as i32;
        for (left, (step, _)) in (across.start..).step_by(group_width as usize).zip(&self.groups) {
            let place = (left + group_width / 2 - 20, down.end + 6);
            root.draw(&Text::new(step.name(), place, (FONT, 14)))?;
        }
        let names: Vec<(RGBColor, &str)> =
            self.engines.iter().map(|engine| (color(engine), *engine)).collect();
        legend(root, across.end + 14, &names)
    }
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
        assert!(chart.contains("operations a second"));
    }

    #[test]
    fn axis_is_logarithmic_where_values_differ_widely() {
        assert_eq!(axis([5.0, 0.0, 100.0].into_iter()), (0.0..108.0, false));
        assert_eq!(axis([5.0, 1_000.0].into_iter()), (3.0..1_500.0, true));
    }

    #[test]
    fn every_engine_has_a_colour() {
        let stores = crate::engines::all().into_iter().map(|engine| engine.name());
        let sql = crate::sql::engines::all().into_iter().map(|engine| engine.name());
        for name in stores.chain(sql) {
            assert_ne!(color(name), BLACK, "{name}");
        }
    }
}
