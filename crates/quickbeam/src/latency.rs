//! Histograms of durations, with power-of-two buckets; cheap enough to be always on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Serialize;

const BUCKETS: usize = 40;

/// A histogram: bucket `i` counts durations below 2^i nanoseconds that no lower bucket counts.
pub struct Latencies {
    buckets: [AtomicU64; BUCKETS],
    longest: AtomicU64,
}

/// Percentiles of durations. Each is an upper bound, less than twice the exact value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LatencySummary {
    /// Number of durations.
    pub count: u64,
    /// Median.
    pub p50: Duration,
    /// 99th percentile.
    pub p99: Duration,
    /// 99.9th percentile.
    pub p999: Duration,
    /// Longest duration, exact.
    pub longest: Duration,
}

impl Default for Latencies {
    fn default() -> Self {
        Latencies { buckets: [const { AtomicU64::new(0) }; BUCKETS], longest: AtomicU64::new(0) }
    }
}

impl Latencies {
    /// Adds a duration.
    pub fn add(&self, took: Duration) {
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let bucket = (64 - nanoseconds.leading_zeros()) as usize;
        self.buckets[bucket.min(BUCKETS - 1)].fetch_add(1, Ordering::Relaxed);
        self.longest.fetch_max(nanoseconds, Ordering::Relaxed);
    }

    /// Returns the percentiles of all durations added so far.
    pub fn summary(&self) -> LatencySummary {
        let counts: Vec<u64> = self.buckets.iter().map(|b| b.load(Ordering::Relaxed)).collect();
        let count: u64 = counts.iter().sum();
        let longest = self.longest.load(Ordering::Relaxed);
        let at = |share: f64| {
            let wanted = (count as f64 * share).ceil() as u64;
            let mut seen = 0;
            let bucket = counts.iter().position(|count| {
                seen += count;
                seen >= wanted
            });
            Duration::from_nanos((1 << bucket.unwrap_or(0)).min(longest))
        };
        LatencySummary {
            count,
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            longest: Duration::from_nanos(longest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_bound_the_samples() {
        let latencies = Latencies::default();
        assert_eq!(latencies.summary(), LatencySummary::default());
        for micros in 1..=1000 {
            latencies.add(Duration::from_micros(micros));
        }
        let summary = latencies.summary();
        assert_eq!(summary.count, 1000);
        assert!((500..1000).contains(&summary.p50.as_micros()), "{summary:?}");
        assert!((990..=1000).contains(&summary.p99.as_micros()), "{summary:?}");
        assert_eq!(summary.longest, Duration::from_millis(1));
    }
}
