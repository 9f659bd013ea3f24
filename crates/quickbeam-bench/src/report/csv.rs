//! Results as comma-separated values: one line a result, runs separated by blanks.

use super::{Measurement, Report};

const HEADER: &str = "benchmark,engine,engine_version,mode,threads,ops_per_txn,records,step,unit,mean,stddev,\
median,p50_us,p90_us,p95_us,p99_us,p999_us,max_us,verified,retries,ceiling_share,runs,settings\n";

/// The whole report.
pub fn render(report: &Report) -> String {
    let mut text = HEADER.to_owned();
    for result in &report.results {
        text.push_str(&line(result));
        text.push('\n');
    }
    text
}

fn line(r: &Measurement) -> String {
    let runs: Vec<String> = r.runs.iter().map(f64::to_string).collect();
    let number = |value: Option<f64>| value.map(|v| v.to_string()).unwrap_or_default();
    [
        quote(&r.benchmark),
        quote(&r.engine),
        quote(&r.engine_version),
        quote(&r.mode),
        r.threads.to_string(),
        r.ops_per_txn.to_string(),
        r.records.to_string(),
        quote(&r.step),
        quote(&r.unit),
        r.mean.to_string(),
        r.stddev.to_string(),
        r.median.to_string(),
        number(r.p50_us),
        number(r.p90_us),
        number(r.p95_us),
        number(r.p99_us),
        number(r.p999_us),
        number(r.max_us),
        r.verified.to_string(),
        r.retries.to_string(),
        number(r.ceiling_share),
        runs.join(" "),
        quote(&r.settings),
    ]
    .join(",")
}

/// Quotes a field that contains a separator (RFC 4180).
fn quote(field: &str) -> String {
    if field.contains([',', '"', '\n']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_the_fields_of_the_header() {
        let text = render(&super::super::tests::sample());
        let fields = HEADER.split(',').count();
        assert!(text.lines().all(|line| line.split(',').count() == fields));
        assert_eq!(text.lines().count(), 1 + 24);
    }

    #[test]
    fn separators_are_quoted() {
        assert_eq!(quote("a, \"b\""), "\"a, \"\"b\"\"\"");
        assert_eq!(quote("plain"), "plain");
    }
}
