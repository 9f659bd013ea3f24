//! The tables of the TimesTen report's sections 7.1 and 7.2 as far as the report describes them: it
//! gives the rows and bytes of each answer, but neither tables nor statements. So these are the
//! tables of a telephone company, drawn here, with those numbers of rows and about those sizes.

use anyhow::Result;

use crate::sql::{SqlConnection, Value};
use crate::workload::random::{Random, mix};

/// The definitions of the tables.
const TABLES: [&str; 6] = [
    "CREATE TABLE subscriber (id INTEGER NOT NULL PRIMARY KEY, name VARCHAR(40) NOT NULL, \
     street VARCHAR(40) NOT NULL, city VARCHAR(20) NOT NULL, region INTEGER NOT NULL, \
     status INTEGER NOT NULL, balance INTEGER NOT NULL, note VARCHAR(80) NOT NULL)",
    "CREATE TABLE contract (id INTEGER NOT NULL PRIMARY KEY, subscriber INTEGER NOT NULL, \
     tariff INTEGER NOT NULL, started INTEGER NOT NULL, monthly INTEGER NOT NULL, \
     terms VARCHAR(300) NOT NULL)",
    "CREATE TABLE device (id INTEGER NOT NULL PRIMARY KEY, contract INTEGER NOT NULL, \
     model VARCHAR(30) NOT NULL, serial VARCHAR(40) NOT NULL, state INTEGER NOT NULL, \
     bought INTEGER NOT NULL, remark VARCHAR(120) NOT NULL)",
    "CREATE TABLE invoice (id INTEGER NOT NULL PRIMARY KEY, subscriber INTEGER NOT NULL, \
     month INTEGER NOT NULL, amount INTEGER NOT NULL, letter VARCHAR(600) NOT NULL)",
    "CREATE TABLE call_record (id INTEGER NOT NULL PRIMARY KEY, device INTEGER NOT NULL, \
     sequence INTEGER NOT NULL, started INTEGER NOT NULL, seconds INTEGER NOT NULL, \
     cost INTEGER NOT NULL, target VARCHAR(20) NOT NULL, detail VARCHAR(300) NOT NULL)",
    "CREATE TABLE event (id INTEGER NOT NULL PRIMARY KEY, owner INTEGER NOT NULL, \
     kind VARCHAR(12) NOT NULL, amount INTEGER NOT NULL, content VARCHAR(300) NOT NULL)",
];

/// Tables of which there is a second one, named after it with `_copy`, for statements to write to.
const COPIED: [&str; 4] = ["subscriber", "contract", "invoice", "call_record"];

/// The definitions of all tables.
pub fn definitions() -> Vec<String> {
    let copies = COPIED.iter().flat_map(|name| {
        let head = format!("CREATE TABLE {name} (");
        let copy = format!("CREATE TABLE {name}_copy (");
        TABLES.iter().filter_map(move |table| {
            table.strip_prefix(&head[..]).map(|columns| format!("{copy}{columns}"))
        })
    });
    TABLES.iter().map(|table| (*table).to_owned()).chain(copies).collect()
}

/// The indexes of foreign keys.
pub const INDEXES: [&str; 4] = [
    "CREATE INDEX contract_subscriber ON contract (subscriber)",
    "CREATE INDEX device_contract ON device (contract)",
    "CREATE INDEX invoice_subscriber ON invoice (subscriber)",
    "CREATE INDEX call_record_device ON call_record (device)",
];

/// Tariffs, each of which has as many contracts as the others.
pub const TARIFFS: u64 = 39;

/// Rows at a scale; at scale 1 the report's.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    scale: f64,
}

impl Sizes {
    /// The sizes at that scale.
    pub fn new(scale: f64) -> Sizes {
        Sizes { scale }
    }

    /// `rows` of scale 1 at this scale.
    pub fn of(self, rows: u64) -> u64 {
        (rows as f64 * self.scale).round() as u64
    }

    /// Rows of `subscriber`.
    pub fn subscribers(self) -> u64 {
        self.of(544_424)
    }

    /// Rows of `contract`.
    pub fn contracts(self) -> u64 {
        self.of(205_474)
    }

    /// Rows of `device`.
    pub fn devices(self) -> u64 {
        self.of(70_944)
    }

    /// Rows of `invoice`.
    pub fn invoices(self) -> u64 {
        self.of(50_808)
    }

    /// Rows of `call_record`.
    pub fn calls(self) -> u64 {
        self.of(410_928)
    }

    /// Subscribers that have invoices.
    pub fn billed(self) -> u64 {
        self.of(14_398)
    }
}

const SYLLABLES: [&str; 16] = [
    "ka", "lo", "mi", "ren", "sa", "tor", "vel", "ni", "gar", "du", "pe", "shi", "bro", "an", "el",
    "wy",
];

/// A text of `length` letters and blanks.
fn prose(random: &mut Random, length: usize) -> String {
    let mut text = String::with_capacity(length + 4);
    while text.len() < length {
        let syllable = random.below(SYLLABLES.len() as u64) as usize;
        text.push_str(SYLLABLES.get(syllable).copied().unwrap_or_default());
        if random.below(3) == 0 {
            text.push(' ');
        }
    }
    text.truncate(length);
    text
}

type Take<'t> = dyn FnMut(&[Value<'_>]) -> Result<()> + 't;

/// Fills the tables.
pub fn load(connection: &mut dyn SqlConnection, sizes: Sizes, seed: u64) -> Result<()> {
    let mut fill =
        |table: &str, width: usize, rows: u64, row: fn(Row, &mut Take<'_>) -> Result<()>| {
            let seed = mix(seed ^ mix(table.len() as u64 * 31 + width as u64));
            connection.load(table, width, &mut |take| {
                (0..rows).try_for_each(|number| {
                    let random = Random::new(mix(seed ^ number));
                    row(Row { number, rows, sizes, random }, take)
                })
            })
        };
    fill("subscriber", 8, sizes.subscribers(), subscriber)?;
    fill("contract", 6, sizes.contracts(), contract)?;
    fill("device", 7, sizes.devices(), device)?;
    fill("invoice", 5, sizes.invoices(), invoice)?;
    fill("call_record", 8, sizes.calls(), call)
}

/// What a row is drawn from.
struct Row {
    /// Its number, from 0.
    number: u64,
    /// Rows of its table.
    rows: u64,
    sizes: Sizes,
    random: Random,
}

impl Row {
    fn key(&self) -> Value<'static> {
        Value::Integer(self.number as i32 + 1)
    }

    fn below(&mut self, bound: u64) -> Value<'static> {
        Value::Integer(self.random.below(bound) as i32)
    }

    fn prose(&mut self, least: usize, more: u64) -> String {
        let length = least + self.random.below(more) as usize;
        prose(&mut self.random, length)
    }
}

fn subscriber(mut row: Row, take: &mut Take<'_>) -> Result<()> {
    let (name, street) = (row.prose(14, 16), row.prose(18, 16));
    let (city, note) = (row.prose(6, 10), row.prose(40, 36));
    let numbers = [row.below(90), row.below(9), row.below(1_000_000)];
    let [region, status, balance] = numbers;
    take(&[
        row.key(),
        Value::Text(&name),
        Value::Text(&street),
        Value::Text(&city),
        region,
        status,
        balance,
        Value::Text(&note),
    ])
}

fn contract(mut row: Row, take: &mut Take<'_>) -> Result<()> {
    let terms = row.prose(200, 90);
    // Spread over the first subscribers, one for each.
    let subscriber = spread(row.number, row.rows) as i32 + 1;
    let tariff = Value::Integer((row.number % TARIFFS) as i32);
    let (started, monthly) = (row.below(4000), row.below(9_000));
    let monthly = match monthly {
        Value::Integer(cents) => Value::Integer(cents + 500),
        other => other,
    };
    let subscriber = Value::Integer(subscriber);
    take(&[row.key(), subscriber, tariff, started, monthly, Value::Text(&terms)])
}

fn device(mut row: Row, take: &mut Take<'_>) -> Result<()> {
    let (model, serial, remark) = (row.prose(12, 14), row.prose(24, 12), row.prose(50, 50));
    let contract = Value::Integer(spread(row.number, row.sizes.contracts()) as i32 + 1);
    let (state, bought) = (row.below(4), row.below(4000));
    take(&[
        row.key(),
        contract,
        Value::Text(&model),
        Value::Text(&serial),
        state,
        bought,
        Value::Text(&remark),
    ])
}

fn invoice(mut row: Row, take: &mut Take<'_>) -> Result<()> {
    let letter = row.prose(440, 160);
    let subscriber = Value::Integer((row.number % row.sizes.billed()) as i32 + 1);
    let month = Value::Integer((row.number % 12) as i32 + 1);
    let amount = Value::Integer(100 + row.random.below(20_000) as i32);
    take(&[row.key(), subscriber, month, amount, Value::Text(&letter)])
}

fn call(mut row: Row, take: &mut Take<'_>) -> Result<()> {
    let (target, detail) = (row.prose(10, 8), row.prose(190, 90));
    let device = Value::Integer((row.number % row.sizes.devices()) as i32 + 1);
    let sequence = Value::Integer(spread(row.number, row.rows) as i32);
    let started = Value::Integer((row.number / 3) as i32);
    let seconds = Value::Integer(1 + row.random.below(3_600) as i32);
    let cost = row.below(500);
    take(&[
        row.key(),
        device,
        sequence,
        started,
        seconds,
        cost,
        Value::Text(&target),
        Value::Text(&detail),
    ])
}

/// A permutation of `0..count`: a multiplication by a number without a common divisor.
fn spread(number: u64, count: u64) -> u64 {
    let divides = |a: u64, b: u64| {
        let (mut a, mut b) = (a, b);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let wanted = (count as f64 * 0.618_033_988_75) as u64 | 1;
    let step = (wanted..).step_by(2).find(|step| divides(*step, count) == 1).unwrap_or(1);
    (u128::from(number % count) * u128::from(step) % u128::from(count)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_numbers_are_a_permutation() {
        for count in [1, 2, 71, 2_055, 5_444] {
            let mut all: Vec<u64> = (0..count).map(|number| spread(number, count)).collect();
            all.sort_unstable();
            assert!(all.iter().enumerate().all(|(at, number)| at as u64 == *number), "{count}");
        }
    }

    #[test]
    fn rows_at_scale_1_are_the_reports() {
        let sizes = Sizes::new(1.0);
        let rows = [
            sizes.subscribers(),
            sizes.contracts(),
            sizes.devices(),
            sizes.invoices(),
            sizes.calls(),
        ];
        assert_eq!(rows, [544_424, 205_474, 70_944, 50_808, 410_928]);
    }
}
