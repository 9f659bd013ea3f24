//! Published numbers of SQL systems: Tables 6 and 7 of the Oracle white paper, and the averages of
//! the report "Performance benchmarks of TimesTen with Tptbm" (2015), which names no
//! hardware.

use crate::engine::Mode;

/// How the row of Table 6 is labelled.
pub const BERKELEY_DB: &str = "Berkeley DB SQL 11gR2\n(published 2010, other hardware)";

/// Table 6: transactions a second by threads. Its commits are synchronous.
pub fn tpcb(mode: Mode, threads: usize) -> Option<f64> {
    const ROWS: [(usize, f64); 6] =
        [(1, 1846.71), (2, 2310.84), (3, 2508.26), (4, 2678.14), (5, 2808.51), (10, 2859.15)];
    let row = ROWS.iter().find(|row| row.0 == threads && mode == Mode::Sync)?;
    Some(row.1)
}

/// Table 7: mean elapsed milliseconds of a query, numbered from 1.
pub fn wisconsin(query: u8) -> f64 {
    const TIMES: [f64; 32] = [
        8.175, 13.875, 0.879, 6.749, 1.368, 11.017, 0.244, 1.373, 31047.220, 3160.824, 5335.219,
        9.920, 9.942, 11.585, 19.407, 14.759, 16.944, 58.801, 136.595, 3.944, 32.566, 32.774,
        0.102, 17.742, 18.163, 0.907, 3.844, 4.380, 1.081, 1.273, 1.252, 1.081,
    ];
    usize::from(query).checked_sub(1).and_then(|at| TIMES.get(at)).copied().unwrap_or(f64::NAN)
}

/// Transactions a second of TimesTen and of Oracle in an experiment of the report; zero where it
/// has no number.
pub fn tptbm(step: &str) -> Option<(f64, f64)> {
    const ROWS: [(&str, f64, f64); 14] = [
        ("insert 10000 rows", 16_879.0, 4_093.0),
        ("insert 250000 rows", 17_722.0, 4_195.0),
        ("insert 1000000 rows", 17_902.0, 4_279.0),
        ("1 read a transaction", 6_680.0, 2_290.0),
        ("5 reads a transaction", 2_600.0, 777.0),
        ("10 reads a transaction", 1_453.0, 432.0),
        ("1 read a transaction, threads", 22_247.0, 10_509.0),
        ("5 reads a transaction, threads", 8_796.0, 2_936.0),
        ("10 reads a transaction, threads", 5_550.0, 1_443.0),
        ("mixed on 10000 rows, threads", 20_000.0, 6_274.0),
        ("mixed on 250000 rows, threads", 19_523.0, 5_580.0),
        ("mixed on 1000000 rows, threads", 19_791.0, 6_355.0),
        ("5/5/20/70, 2 operations a transaction", 12_804.0, 0.0),
        ("multiop", 3_646.0, 0.0),
    ];
    ROWS.iter().find(|row| row.0 == step).map(|row| (row.1, row.2))
}

/// Seconds of TimesTen and of Oracle for a statement of the report's sections 7.1 and 7.2, numbered
/// from 1. The report does not print the statements.
pub fn statement(number: u8) -> Option<(f64, f64)> {
    const SECONDS: [(f64, f64); 20] = [
        (0.09, 0.11),
        (0.03, 0.91),
        (0.01, 0.02),
        (0.01, 0.04),
        (0.03, 1.91),
        (10.12, 20.56),
        (3.72, 16.14),
        (1.28, 2.63),
        (0.99, 7.76),
        (3.78, 26.64),
        (0.47, 0.64),
        (1.63, 7.43),
        (1.21, 1.16),
        (1.3, 3.52),
        (0.4, 1.32),
        (24.54, 28.58),
        (14.08, 16.92),
        (20.5, 22.56),
        (4.31, 6.83),
        (5.81, 8.07),
    ];
    SECONDS.get(usize::from(number).checked_sub(1)?).copied()
}
