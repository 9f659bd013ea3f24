//! The statements: 20 of the kinds and sizes of the TimesTen report's sections 7.1 and 7.2, and the
//! creation of an index.

use super::data::{Sizes, TARIFFS};

/// What a statement does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementKind {
    /// Its answer is read, every column of every row. The letters say what the columns are: `i` for
    /// whole numbers and `t` for texts.
    Query(&'static str),
    /// It changes rows, or makes an index of them. Afterwards the outputs of a query, all whole
    /// numbers, must be equal in all engines.
    Write {
        /// Restores the state before the statement, untimed.
        before: &'static [&'static str],
        /// The query, and its number of outputs.
        check: (&'static str, usize),
    },
}

/// A statement of the list.
pub struct BenchStatement {
    /// Its number in the report.
    pub number: u8,
    /// What it does.
    pub kind: StatementKind,
    /// The text; `{K}` stands for a limit that depends on the scale.
    text: &'static str,
    /// `{K}` at scale 1.
    limit: u64,
    /// Rows of the answer, or rows changed, at scale 1.
    rows: u64,
}

impl BenchStatement {
    /// The text at a scale.
    pub fn text(&self, sizes: Sizes) -> String {
        self.text.replace("{K}", &sizes.of(self.limit).to_string())
    }

    /// Rows of the answer, or rows that are changed; `None` if it changes none.
    pub fn rows(&self, sizes: Sizes) -> Option<u64> {
        match self.number {
            12 => Some(sizes.of(self.limit) * TARIFFS),
            15 => Some(sizes.subscribers() - sizes.of(self.limit)),
            18 => Some(sizes.calls() + sizes.of(self.limit)),
            21 => None,
            _ => Some(sizes.of(self.rows)),
        }
    }

    /// Rows that the statement works on, for the cost of one.
    pub fn work(&self, sizes: Sizes) -> u64 {
        self.rows(sizes).unwrap_or_else(|| sizes.calls())
    }

    /// Whether it writes.
    pub fn is_write(&self) -> bool {
        matches!(self.kind, StatementKind::Write { .. })
    }
}

/// The step of a statement at a scale.
pub fn step(number: u8, scale: f64) -> String {
    format!("{number} at scale {scale}")
}

const fn query(number: u8, columns: &'static str, rows: u64, text: &'static str) -> BenchStatement {
    BenchStatement { number, kind: StatementKind::Query(columns), text, limit: rows, rows }
}

const fn write(
    number: u8,
    rows: u64,
    before: &'static [&'static str],
    check: (&'static str, usize),
    text: &'static str,
) -> BenchStatement {
    BenchStatement { number, kind: StatementKind::Write { before, check }, text, limit: rows, rows }
}

const SUBSCRIBERS_COPIED: (&str, usize) = (
    "SELECT count(*), CAST(sum(id) AS BIGINT), CAST(sum(status) AS BIGINT), \
     CAST(sum(balance) AS BIGINT), CAST(sum(length(note)) AS BIGINT) FROM subscriber_copy",
    5,
);
const CONTRACTS_COPIED: (&str, usize) = (
    "SELECT count(*), CAST(sum(id) AS BIGINT), CAST(sum(monthly) AS BIGINT), \
     CAST(sum(length(terms)) AS BIGINT) FROM contract_copy",
    4,
);
const DEVICES: (&str, usize) = (
    "SELECT count(*), CAST(sum(id * state) AS BIGINT), CAST(sum(length(remark)) AS BIGINT) \
     FROM device",
    3,
);

/// The statements, in the report's order.
pub const STATEMENTS: [BenchStatement; 21] = [
    query(1, "itttiiit", 544_424, "SELECT * FROM subscriber WHERE status < 9"),
    query(2, "iiiiit", 205_474, "SELECT * FROM contract WHERE monthly > 0"),
    query(3, "iittiit", 70_944, "SELECT * FROM device WHERE state IN (0, 1, 2, 3)"),
    query(
        4,
        "iiiit",
        50_808,
        "SELECT * FROM invoice WHERE amount >= 100 AND month BETWEEN 1 AND 12",
    ),
    query(5, "iiiiiitt", 410_928, "SELECT * FROM call_record WHERE seconds > 0 AND cost >= 0"),
    write(
        6,
        544_424,
        &["DELETE FROM subscriber_copy"],
        SUBSCRIBERS_COPIED,
        "INSERT INTO subscriber_copy SELECT * FROM subscriber",
    ),
    write(
        7,
        205_474,
        &["DELETE FROM contract_copy"],
        CONTRACTS_COPIED,
        "INSERT INTO contract_copy SELECT * FROM contract",
    ),
    write(
        8,
        70_944,
        &["UPDATE device SET state = 1"],
        DEVICES,
        "UPDATE device SET state = 3 - state",
    ),
    write(
        9,
        50_808,
        &["DELETE FROM invoice_copy", "INSERT INTO invoice_copy SELECT * FROM invoice"],
        ("SELECT count(*) FROM invoice_copy", 1),
        "DELETE FROM invoice_copy WHERE amount >= 100",
    ),
    write(
        10,
        410_928,
        &[],
        ("SELECT count(*), CAST(sum(cost) AS BIGINT) FROM call_record", 2),
        "UPDATE call_record SET cost = cost + 1 WHERE seconds > 0",
    ),
    query(
        11,
        "ittttii",
        70_944,
        "SELECT d.id, d.model, d.serial, s.name, s.city, count(r.id), \
         CAST(coalesce(sum(r.cost), 0) AS BIGINT) \
         FROM device d JOIN contract c ON c.id = d.contract \
         JOIN subscriber s ON s.id = c.subscriber LEFT JOIN call_record r ON r.device = d.id \
         GROUP BY d.id, d.model, d.serial, s.name, s.city",
    ),
    BenchStatement {
        number: 12,
        kind: StatementKind::Query("iitiiii"),
        text: "SELECT c.id, c.tariff, c.terms, c.monthly, c.place, t.highest, t.contracts FROM \
               (SELECT id, tariff, terms, monthly, \
               rank() OVER (PARTITION BY tariff ORDER BY monthly DESC, id) AS place FROM contract) c \
               JOIN (SELECT tariff, max(monthly) AS highest, count(*) AS contracts \
               FROM contract GROUP BY tariff) t ON t.tariff = c.tariff WHERE c.place <= {K}",
        limit: 737,
        rows: 28_743,
    },
    query(
        13,
        "ittiiit",
        14_398,
        "SELECT s.id, s.name, s.city, count(*), CAST(sum(i.amount) AS BIGINT), max(i.month), s.note \
         FROM invoice i JOIN subscriber s ON s.id = i.subscriber WHERE s.status < 9 \
         GROUP BY s.id, s.name, s.city, s.note HAVING sum(i.amount) > 0 ORDER BY 5 DESC, s.id",
    ),
    query(
        14,
        "iiittit",
        186_211,
        "SELECT r.id, r.started, r.cost, r.target, d.serial, c.tariff, s.name FROM call_record r \
         JOIN device d ON d.id = r.device JOIN contract c ON c.id = d.contract \
         JOIN subscriber s ON s.id = c.subscriber WHERE r.sequence < {K} ORDER BY s.name, r.id",
    ),
    BenchStatement {
        number: 15,
        kind: StatementKind::Query("itttiti"),
        text: "SELECT s.id, s.name, s.street, s.city, s.region, s.note, \
               (SELECT count(*) FROM invoice i WHERE i.subscriber = s.id) FROM subscriber s \
               WHERE s.id > {K} AND NOT EXISTS (SELECT 1 FROM contract c WHERE c.subscriber = s.id)",
        limit: 300_296,
        rows: 244_128,
    },
    write(
        16,
        544_424,
        &["DELETE FROM subscriber_copy"],
        SUBSCRIBERS_COPIED,
        "INSERT INTO subscriber_copy SELECT s.id, s.name, s.street, s.city, s.region, \
         CASE WHEN c.contracts IS NULL THEN 0 ELSE 1 END, s.balance - coalesce(c.monthly, 0), s.note \
         FROM subscriber s LEFT JOIN (SELECT subscriber, count(*) AS contracts, \
         max(monthly) AS monthly FROM contract GROUP BY subscriber) c ON c.subscriber = s.id",
    ),
    write(
        17,
        205_474,
        &["DELETE FROM contract_copy"],
        CONTRACTS_COPIED,
        "INSERT INTO contract_copy SELECT c.id, c.subscriber, c.tariff, c.started, \
         CAST(c.monthly + coalesce(u.cost, 0) AS INTEGER), c.terms FROM contract c LEFT JOIN \
         (SELECT d.contract, sum(r.cost) AS cost FROM device d JOIN call_record r ON r.device = d.id \
         GROUP BY d.contract) u ON u.contract = c.id",
    ),
    BenchStatement {
        number: 18,
        kind: StatementKind::Write {
            before: &["DELETE FROM event"],
            check: (
                "SELECT count(*), CAST(sum(id) AS BIGINT), CAST(sum(owner) AS BIGINT), \
                 CAST(sum(amount) AS BIGINT), CAST(sum(length(content)) AS BIGINT) FROM event",
                5,
            ),
        },
        text: "INSERT INTO event SELECT r.id, d.contract, 'call', r.cost, r.detail \
               FROM call_record r JOIN device d ON d.id = r.device UNION ALL \
               SELECT -s.id, s.id, 'subscriber', s.balance, s.note FROM subscriber s \
               WHERE s.id <= {K}",
        limit: 297_294,
        rows: 708_222,
    },
    write(
        19,
        70_944,
        &["UPDATE device SET state = 1"],
        DEVICES,
        "UPDATE device SET state = u.calls, remark = u.target FROM (SELECT device, \
         CAST(count(*) AS INTEGER) AS calls, max(target) AS target FROM call_record \
         GROUP BY device) AS u WHERE u.device = device.id",
    ),
    write(
        20,
        239_148,
        &["DELETE FROM call_record_copy", "INSERT INTO call_record_copy SELECT * FROM call_record"],
        ("SELECT count(*), CAST(sum(id) AS BIGINT) FROM call_record_copy", 2),
        "DELETE FROM call_record_copy WHERE sequence < {K} AND EXISTS \
         (SELECT 1 FROM device d WHERE d.id = call_record_copy.device)",
    ),
    write(
        21,
        410_928,
        &[
            "DROP INDEX IF EXISTS call_record_copy_device",
            "DELETE FROM call_record_copy",
            "INSERT INTO call_record_copy SELECT * FROM call_record",
        ],
        ("SELECT count(*), CAST(sum(id) AS BIGINT) FROM call_record_copy WHERE device = 7", 2),
        "CREATE INDEX call_record_copy_device ON call_record_copy (device, started)",
    ),
];
