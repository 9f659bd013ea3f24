//! The report as one page that needs nothing else: tables, plots, settings.

use anyhow::Result;

use super::numbers::{group, ratio, spread};
use super::terminal::{LEGEND, STEPS, heading, is_in_a_table};
use super::{Measurement, Report, plot, sql};
use crate::engine::Mode;
use crate::published;
use crate::workload::Step;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;\
padding:0 1rem;color:#222}table{border-collapse:collapse;margin:1rem 0;width:100%}td,th{padding:\
.25rem .6rem;border-bottom:1px solid #ddd;text-align:right;vertical-align:top;white-space:nowrap}\
table{display:block;overflow-x:auto}.left td{white-space:normal}td:first-child,\
th:first-child,.left td{text-align:left}.paper{color:#777;font-style:italic}.bad{color:#b00}small{\
color:#777}svg{max-width:100%;height:auto}.panels{display:grid;grid-template-columns:repeat(auto-\
fit,minmax(26rem,1fr));gap:1rem}";

/// The whole page.
pub fn render(report: &Report) -> Result<String> {
    let mut page = format!(
        "<!DOCTYPE html><html lang=\"en\"><meta charset=\"utf-8\"><title>Quickbeam benchmarks</title>\
         <style>{STYLE}</style><h1>Quickbeam benchmarks</h1>{}<p>{LEGEND}</p>",
        machine(report)
    );
    for failure in &report.failures {
        page.push_str(&format!(
            "<p class=\"bad\">Failed: {}, {}, {} threads: {}</p>",
            escape(&failure.engine),
            escape(&failure.mode),
            failure.threads,
            escape(&failure.error)
        ));
    }
    for benchmark in ["kv", "kv-larger"] {
        for (mode, threads) in report.configurations(benchmark) {
            page.push_str(&section(report, benchmark, mode, threads)?);
        }
    }
    page.push_str(&figures(report)?);
    page.push_str(&sql_section(report)?);
    page.push_str(&others(report));
    page.push_str(&settings(report));
    page.push_str("</html>\n");
    Ok(page)
}

fn machine(report: &Report) -> String {
    let (m, r) = (&report.machine, &report.run);
    let rows = [
        ("date", r.date()),
        ("command", r.command.clone()),
        ("duration", format!("{} s", group(r.seconds))),
        ("workload", r.workload.clone()),
        ("processor", format!("{} ({} cores)", m.cpu, m.cores)),
        ("memory", format!("{:.1} GiB", m.memory_bytes as f64 / f64::from(1 << 30))),
        ("system", format!("{}, kernel {}", m.system, m.kernel)),
        ("file system", m.file_system.clone()),
        ("flush rate", format!("{} a second (256 bytes, fdatasync)", group(m.flushes_per_second))),
        ("source revision", r.git_revision.clone()),
        ("seed", r.seed.to_string()),
    ];
    let rows = rows.map(|(name, value)| format!("<tr><td>{name}<td>{}</tr>", escape(&value)));
    format!("<table class=\"left\">{}</table>", rows.concat())
}

fn section(report: &Report, benchmark: &str, mode: Mode, threads: usize) -> Result<String> {
    let engines = report.engines(benchmark);
    let find =
        |engine: &str, step: Step| report.find(benchmark, engine, mode, threads, step.name());
    let steps: Vec<Step> = STEPS
        .into_iter()
        .filter(|&step| engines.iter().any(|engine| find(engine, step).is_some()))
        .collect();
    let mut html = format!("<h2>{}</h2>", escape(&heading(benchmark, mode, threads)));
    if let Some(svg) = plot::bars(report, benchmark, mode, threads)? {
        html.push_str(&svg);
    }
    html.push_str("<table><tr><th>engine");
    steps.iter().for_each(|step| html.push_str(&format!("<th>{step}")));
    html.push_str("</tr>");
    if let (Some(row), "kv") = (published::find(mode, threads), benchmark) {
        html.push_str(&format!("<tr class=\"paper\"><td>{}", published::LABEL));
        for &step in &steps {
            let cell = row.rate(step).map(|(mean, sd)| format!("{} ± {}", group(mean), group(sd)));
            html.push_str(&format!("<td>{}", cell.unwrap_or_default()));
        }
        html.push_str("</tr>");
    }
    for engine in engines {
        if steps.iter().all(|&step| find(engine, step).is_none()) {
            continue;
        }
        html.push_str(&format!("<tr><td>{}", escape(engine)));
        for &step in &steps {
            let quickbeam = find("quickbeam", step);
            html.push_str(&format!("<td>{}", cell(find(engine, step), quickbeam)));
        }
        html.push_str("</tr>");
    }
    html.push_str("</table>");
    Ok(html)
}

fn cell(result: Option<&Measurement>, quickbeam: Option<&Measurement>) -> String {
    let Some(result) = result else { return "–".to_owned() };
    let mut text = spread(result.mean, result.stddev);
    if let (Some(quickbeam), true) = (quickbeam, result.engine != "quickbeam") {
        text.push_str(&format!(" {}", ratio(result.median / quickbeam.median)));
    }
    if let (Some(p50), Some(p99), Some(p999)) = (result.p50_us, result.p99_us, result.p999_us) {
        text.push_str(&format!("<br><small>p50 {p50:.1}, p99 {p99:.1}, p99.9 {p999:.1} µs"));
        if let Some(share) = result.ceiling_share {
            text.push_str(&format!("; {:.0} % of ceiling", share * 100.0));
        }
        text.push_str("</small>");
    }
    text
}

/// Figure 1, once for every durability class measured with several numbers of threads.
fn figures(report: &Report) -> Result<String> {
    let mut html = String::new();
    for mode in Mode::ALL {
        let mut panels = String::new();
        for step in STEPS {
            if let Some(svg) = plot::scaling(report, mode, step)? {
                panels.push_str(&format!("<div>{svg}</div>"));
            }
        }
        if !panels.is_empty() {
            let title = if mode == Mode::Sync { "Figure 1: " } else { "" };
            html.push_str(&format!(
                "<h2>{title}multiple threads, {mode}</h2><div class=\"panels\">{panels}</div>"
            ));
        }
    }
    Ok(html)
}

/// The tables of the SQL benchmarks, and Figure 2 with residence times, once for every class: the
/// paper does not say which its own is of.
fn sql_section(report: &Report) -> Result<String> {
    let mut html = String::new();
    for mode in sql::modes(report, "tpcb") {
        let figure = plot::figure_2(report, mode)?;
        // A single number of threads makes no figure.
        let title = if figure.is_some() { "Figure 2: " } else { "" };
        let panels: Vec<String> = [figure, plot::residence(report, mode)?]
            .into_iter()
            .flatten()
            .map(|svg| format!("<div>{svg}</div>"))
            .collect();
        html.push_str(&format!(
            "<h2>{title}TPC-B, {mode}</h2><div class=\"panels\">{}</div>",
            panels.concat()
        ));
    }
    for grid in sql::grids(report) {
        html.push_str(&format!("<h2>{}</h2><table><tr><th>{}", escape(&grid.title), grid.corner));
        for column in &grid.columns {
            html.push_str(&format!("<th>{}", escape(column).replace('\n', "<br>")));
        }
        html.push_str("</tr>");
        for row in &grid.rows {
            let class = if row.published { " class=\"paper\"" } else { "" };
            html.push_str(&format!("<tr{class}><td>{}", escape(&row.head)));
            for cell in &row.cells {
                html.push_str(&format!("<td>{}", escape(cell)));
            }
            html.push_str("</tr>");
        }
        html.push_str("</table>");
    }
    Ok(html)
}

fn others(report: &Report) -> String {
    let rows: String = report
        .results
        .iter()
        .filter(|r| !is_in_a_table(r))
        .map(|r| {
            let latency = match (r.p50_us, r.p99_us, r.p999_us) {
                (Some(p50), Some(p99), Some(p999)) => {
                    format!("p50 {p50:.1}, p99 {p99:.1}, p99.9 {p999:.1} µs")
                }
                _ => String::new(),
            };
            format!(
                "<tr><td>{}: {}<td>{}<td>{}<td>{} {}<td>{latency}</tr>",
                escape(&r.benchmark),
                escape(&r.step),
                escape(&r.engine),
                escape(&r.mode),
                spread(r.mean, r.stddev),
                escape(&r.unit),
            )
        })
        .collect();
    if rows.is_empty() {
        return rows;
    }
    format!(
        "<h2>Further measurements</h2><table><tr><th>measurement<th>engine<th>mode<th>mean ± \
         sd<th>latency</tr>{rows}</table>"
    )
}

fn settings(report: &Report) -> String {
    let mut seen = Vec::new();
    let mut html = String::from(
        "<h2>Settings</h2><table class=\"left\"><tr><th>engine<th>mode<th>settings</tr>",
    );
    for r in report.results.iter().filter(|r| !r.settings.is_empty()) {
        let row = (&r.engine, &r.engine_version, &r.mode, &r.settings);
        if !seen.contains(&row) {
            seen.push(row);
            let [engine, version, mode, settings] =
                [&r.engine, &r.engine_version, &r.mode, &r.settings].map(|text| escape(text));
            html.push_str(&format!("<tr><td>{engine} {version}<td>{mode}<td>{settings}</tr>"));
        }
    }
    html.push_str("</table>");
    if !report.not_supported.is_empty() {
        html.push_str("<h2>Not supported</h2><p>Engine, mode/threads: reason.<ul>");
        for line in report.not_supported_lines() {
            html.push_str(&format!("<li>{}", escape(&line)));
        }
        html.push_str("</ul>");
    }
    html
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sql_benchmarks_have_their_tables_and_figure_2() {
        let page = render(&super::sql::tests::sql_sample()).unwrap();
        for expected in ["Figure 2", "Table 6", "Table 7", "Tptbm", "16,879", "residence"] {
            assert!(page.contains(expected), "{expected} is not there");
        }
        assert_eq!(page.matches("<svg").count(), 2);
    }

    #[test]
    fn figure_2_is_named_in_every_class_that_has_it() {
        let mut report = super::sql::tests::sql_sample();
        report.results.retain(|result| result.benchmark == "tpcb");
        let sync = report.results.clone();
        for result in &mut report.results {
            result.mode = "wns".to_owned();
        }
        let page = render(&report).unwrap();
        assert!(page.contains("<h2>Figure 2: TPC-B, wns</h2>"), "{page}");
        assert!(page.contains("Table 6, TPC-B, WNS"), "{page}");
        report.results.extend(sync);
        assert_eq!(render(&report).unwrap().matches("<h2>Figure 2: TPC-B").count(), 2);
        report.results.retain(|result| result.threads == 1);
        assert!(!render(&report).unwrap().contains("Figure 2"), "one number of threads");
    }

    #[test]
    fn engine_without_results_has_no_row() {
        let mut report = super::super::tests::sample();
        report.results.retain(|r| r.engine != "bdb" || r.mode != "ds");
        let page = render(&report).unwrap();
        let table = page.split("<h2>").find(|part| part.starts_with("Table 3")).unwrap();
        assert!(!table.contains("<tr><td>bdb"), "{table}");
    }

    #[test]
    fn the_page_stands_alone_and_is_escaped() {
        let page = render(&super::super::tests::sample()).unwrap();
        assert!(page.starts_with("<!DOCTYPE html>"));
        assert!(page.matches("<svg").count() >= 7, "three tables and four panels");
        assert!(page.contains("no such &lt;class&gt;"));
        assert!(!page.contains("src=") && !page.contains("<link"));
        assert!(page.contains("Figure 1") && page.contains("208,139"));
        assert!(page.contains("330,000 ± 42,000"), "as many digits as the deviation leaves");
        for expected in ["<td>date<td>20", "<td>command<td>", "<td>duration<td>0 s"] {
            assert!(page.contains(expected), "{expected}");
        }
    }
}
