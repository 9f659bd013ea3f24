//! Summaries of repeated measurements and of latencies.

use std::time::Duration;

use hdrhistogram::Histogram;

/// Mean, standard deviation and median of repeated measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation of the sample (divisor n - 1); zero for a single run.
    pub stddev: f64,
    /// The middle value, or the mean of the two middle ones.
    pub median: f64,
}

impl Summary {
    /// Summarizes `runs`.
    pub fn of(runs: &[f64]) -> Summary {
        if runs.is_empty() {
            return Summary::default();
        }
        let count = runs.len() as f64;
        let mean = runs.iter().sum::<f64>() / count;
        let squares: f64 = runs.iter().map(|run| (run - mean).powi(2)).sum();
        let stddev = if runs.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 };
        let mut sorted = runs.to_vec();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let median = if sorted.len().is_multiple_of(2) {
            (sorted[middle - 1] + sorted[middle]) / 2.0
        } else {
            sorted[middle]
        };
        Summary { mean, stddev, median }
    }
}

/// Latencies with a resolution of 0.1 %, from a nanosecond to ten minutes.
#[derive(Clone, Debug)]
pub struct Latencies(Histogram<u32>);

const LONGEST: u64 = 600_000_000_000;

impl Default for Latencies {
    fn default() -> Self {
        Latencies(Histogram::new_with_bounds(1, LONGEST, 3).expect("constant bounds are valid"))
    }
}

impl Latencies {
    /// Takes one measurement in.
    pub fn record(&mut self, latency: Duration) {
        let nanoseconds = u64::try_from(latency.as_nanos()).unwrap_or(LONGEST);
        self.0.saturating_record(nanoseconds.clamp(1, LONGEST));
    }

    /// Takes in all measurements of another.
    pub fn merge(&mut self, other: &Latencies) {
        self.0.add(&other.0).expect("both have the same bounds");
    }

    /// The latency in microseconds that the given share of measurements does not exceed.
    pub fn percentile_us(&self, percent: f64) -> f64 {
        self.0.value_at_percentile(percent) as f64 / 1000.0
    }

    /// The longest latency in microseconds.
    pub fn max_us(&self) -> f64 {
        self.0.max() as f64 / 1000.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_of_known_numbers() {
        let summary = Summary::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!(summary.mean, 5.0);
        assert_eq!(summary.median, 4.5);
        assert!((summary.stddev - (32.0f64 / 7.0).sqrt()).abs() < 1e-12);
        assert_eq!(Summary::of(&[3.0]), Summary { mean: 3.0, stddev: 0.0, median: 3.0 });
    }

    #[test]
    fn percentiles() {
        let mut latencies = Latencies::default();
        for microseconds in 1..=1000 {
            latencies.record(Duration::from_micros(microseconds));
        }
        assert!((latencies.percentile_us(50.0) - 500.0).abs() < 1.0);
        assert!((latencies.percentile_us(99.0) - 990.0).abs() < 2.0);
        assert!((latencies.max_us() - 1000.0).abs() < 2.0);
    }
}
