//! The numbers of "Oracle Berkeley Database 11gR2 Performance Overview" (Oracle white paper, July
//! 2010), shown beside measured ones and never mixed with them: its machine had an Intel Core 2 Duo
//! E8400 at 3 GHz, 4 GB of memory and a SATA disk of 7200 revolutions a minute.

pub mod sql;

use crate::engine::Mode;
use crate::workload::Step;

/// How the rows are labelled.
pub const LABEL: &str = "Berkeley DB 11gR2 (published 2010, other hardware)";

/// Mean and standard deviation of one step, in operations a second.
pub type Rate = (f64, f64);

/// One row of Table 3, 4 or 5: insert, fetch, delete, update.
#[derive(Clone, Copy, Debug)]
pub struct PublishedRow {
    /// The configuration.
    pub mode: Mode,
    /// Threads.
    pub threads: usize,
    rates: [Rate; 4],
}

impl PublishedRow {
    /// The published rate of `step`.
    pub fn rate(&self, step: Step) -> Option<Rate> {
        let column = match step {
            Step::Insert => 0,
            Step::Fetch => 1,
            Step::Delete => 2,
            Step::Update => 3,
            Step::Populate | Step::Mixed | Step::Rewrite => return None,
        };
        Some(self.rates[column])
    }
}

const fn row(mode: Mode, threads: usize, rates: [Rate; 4]) -> PublishedRow {
    PublishedRow { mode, threads, rates }
}

/// Tables 3, 4 and 5; the first row of Table 5 repeats the first of Table 4 and is not here twice.
const ROWS: [PublishedRow; 12] = [
    row(
        Mode::Ds,
        1,
        [(208_139.0, 329.0), (264_665.0, 229.0), (158_506.0, 236.0), (250_297.0, 870.0)],
    ),
    row(Mode::Sync, 1, [(693.0, 10.0), (159_837.0, 895.0), (831.0, 23.0), (1_732.0, 18.0)]),
    row(
        Mode::Ramdisk,
        1,
        [(49_673.0, 912.0), (162_848.0, 1_588.0), (44_279.0, 277.0), (60_973.0, 291.0)],
    ),
    row(
        Mode::Wns,
        1,
        [(37_664.0, 460.0), (160_307.0, 293.0), (36_110.0, 454.0), (52_922.0, 258.0)],
    ),
    row(
        Mode::Ns,
        1,
        [(53_199.0, 613.0), (159_980.0, 1_419.0), (49_340.0, 183.0), (86_960.0, 639.0)],
    ),
    row(
        Mode::InMem,
        1,
        [(66_435.0, 102.0), (163_229.0, 815.0), (58_845.0, 101.0), (97_602.0, 396.0)],
    ),
    row(Mode::Sync, 2, [(647.0, 7.0), (106_196.0, 432.0), (767.0, 20.0), (1_634.0, 27.0)]),
    row(Mode::Sync, 3, [(690.0, 9.0), (126_762.0, 762.0), (863.0, 20.0), (1_909.0, 32.0)]),
    row(Mode::Sync, 4, [(721.0, 8.0), (134_581.0, 497.0), (882.0, 18.0), (2_085.0, 54.0)]),
    row(Mode::Sync, 8, [(859.0, 26.0), (128_928.0, 423.0), (967.0, 27.0), (2_497.0, 32.0)]),
    row(Mode::Sync, 12, [(930.0, 24.0), (112_735.0, 518.0), (1_013.0, 20.0), (2_658.0, 149.0)]),
    row(Mode::Sync, 16, [(968.0, 13.0), (99_860.0, 820.0), (1_085.0, 34.0), (2_837.0, 117.0)]),
];

/// The published row for a configuration, if there is one.
pub fn find(mode: Mode, threads: usize) -> Option<&'static PublishedRow> {
    ROWS.iter().find(|row| row.mode == mode && row.threads == threads)
}
