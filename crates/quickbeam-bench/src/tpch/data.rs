//! The rows of TPC-H, drawn as the specification says (revision 3, clause 4.2.3). They have the
//! numbers, keys and distributions of the specification's generator, but not its very values.

use anyhow::Result;

use super::words::{self, NATIONS, REGIONS, Words};
use crate::sql::{SqlConnection, Value};
use crate::workload::random::{Random, mix};

/// Days from 1970-01-01 to 1992-01-01, the first date, to 1998-12-31, the last one, and to
/// 1995-06-17, the present.
const START: i32 = 8035;
const END: i32 = 10_591;
const PRESENT: i32 = 9298;

/// A database of one scale factor.
pub struct Data {
    seed: u64,
    words: Words,
    /// Numbers of rows.
    pub suppliers: u64,
    parts: u64,
    customers: u64,
    orders: u64,
}

struct OrderLine {
    part: u64,
    supplier: u64,
    quantity: i64,
    /// In cents, and hundredths.
    price: i64,
    discount: i64,
    tax: i64,
    ship: i32,
    commit: i32,
    receipt: i32,
}

struct Order {
    key: u64,
    customer: u64,
    date: i32,
    lines: Vec<OrderLine>,
}

/// An amount of cents as text.
fn money(cents: i64) -> String {
    let sign = if cents < 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", cents.abs() / 100, cents.abs() % 100)
}

/// A day, counted from 1970-01-01, as text (the algorithm of H. Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms").
pub fn date(days: i32) -> String {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year + era * 400 + i32::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// The retail price of a part in cents.
fn retail_price(part: u64) -> i64 {
    (90_000 + part / 10 % 20_001 + 100 * (part % 1000)) as i64
}

fn phone(nation: u64, random: &mut Random) -> String {
    let [a, b, c] = [(100, 900), (100, 900), (1000, 9000)]
        .map(|(from, count): (u64, u64)| from + random.below(count));
    format!("{}-{a}-{b}-{c}", nation + 10)
}

impl Data {
    /// The data of a scale factor.
    pub fn new(scale: f64, seed: u64) -> Data {
        let count = |rows: f64| ((rows * scale).round() as u64).max(10);
        Data {
            seed,
            words: Words::default(),
            suppliers: count(10_000.0),
            parts: count(200_000.0),
            customers: count(150_000.0),
            orders: count(1_500_000.0),
        }
    }

    /// The random numbers of one row.
    fn random(&self, table: u64, row: u64) -> Random {
        Random::new(mix(self.seed ^ mix(table << 48 | row)))
    }

    /// The supplier of a part with the number 0 to 3.
    fn supplier_of(&self, part: u64, number: u64) -> u64 {
        let s = self.suppliers;
        (part + number * (s / 4 + (part - 1) / s)) % s + 1
    }

    /// Fills the tables.
    pub fn load(&self, connection: &mut dyn SqlConnection) -> Result<()> {
        connection.load("region", 3, &mut |row| self.regions(row))?;
        connection.load("nation", 4, &mut |row| self.nations(row))?;
        connection.load("supplier", 7, &mut |row| self.each_supplier(row))?;
        connection.load("part", 9, &mut |row| self.each_part(row))?;
        connection.load("partsupp", 5, &mut |row| self.each_part_supplier(row))?;
        connection.load("customer", 8, &mut |row| self.each_customer(row))?;
        connection.load("orders", 9, &mut |row| self.each_order(row))?;
        connection.load("lineitem", 16, &mut |row| self.each_line(row))
    }

    fn regions(&self, row: &mut dyn FnMut(&[Value<'_>]) -> Result<()>) -> Result<()> {
        for (number, name) in REGIONS.iter().enumerate() {
            let comment = self.words.comment(&mut self.random(0, number as u64), 31, 115);
            row(&[Value::Integer(number as i32), Value::Text(name), Value::Text(&comment)])?;
        }
        Ok(())
    }

    fn nations(&self, row: &mut dyn FnMut(&[Value<'_>]) -> Result<()>) -> Result<()> {
        for (number, (name, region)) in NATIONS.iter().enumerate() {
            let comment = self.words.comment(&mut self.random(1, number as u64), 31, 114);
            row(&[
                Value::Integer(number as i32),
                Value::Text(name),
                Value::Integer(*region),
                Value::Text(&comment),
            ])?;
        }
        Ok(())
    }

    fn each_supplier(&self, row: &mut dyn FnMut(&[Value<'_>]) -> Result<()>) -> Result<()> {
        for key in 1..=self.suppliers {
            let mut random = self.random(2, key);
            let nation = random.below(25);
            let mut comment = self.words.comment(&mut random, 25, 70);
            // Five of 10,000 complain, five recommend.
            match random.below(2000) {
                0 => comment.insert_str(3, "Customer even Complaints "),
                1 => comment.insert_str(3, "Customer even Recommends "),
                _ => {}
            }
            row(&[
                Value::Integer(key as i32),
                Value::Text(&format!("Supplier#{key:09}")),
                Value::Text(&words::address(&mut random)),
                Value::Integer(nation as i32),
                Value::Text(&phone(nation, &mut random)),
                Value::Text(&money(random.below(1_099_999) as i64 - 99_999)),
                Value::Text(&comment),
            ])?;
        }
        Ok(())
    }

    fn each_part(&self, row: &mut dyn FnMut(&[Value<'_>]) -> Result<()>) -> Result<()> {
        for key in 1..=self.parts {
            let mut random = self.random(3, key);
            let maker = 1 + random.below(5);
            row(&[
                Value::Integer(key as i32),
                Value::Text(&self.words.part_name(&mut random)),
                Value::Text(&format!("Manufacturer#{maker}")),
                Value::Text(&format!("Brand#{maker}{}", 1 + random.below(5))),
                Value::Text(&words::part_type(&mut random)),
                Value::Integer(1 + random.below(50) as i32),
                Value::Text(&words::container(&mut random)),
                Value::Text(&money(retail_price(key))),
                Value::Text(&self.words.comment(&mut random, 5, 22)),
            ])?;
        }
        Ok(())
    }

    fn each_part_supplier(&self, row: &mut dyn FnMut(&[Value<'_>]) -> Result<()>) -> Result<()> {
        for part in 1..=self.parts {
            let mut random = self.random(4, part);
            let mut suppliers: Vec<u64> = (0..4).map(|n| self.supplier_of(part, n)).collect();
            suppliers.sort_unstable();
            suppliers.dedup();
            for supplier in suppliers {
                row(&[
                    Value::Integer(part as i32),
                    Value::Integer(supplier as i32),
                    Value::Integer(1 + random.below(9999) as i32),
                    Value::Text(&money(100 + random.below(99_901) as i64)),
                    Value::Text(&self.words.comment(&mut random, 49, 198)),
                ])?;
            }
        }
        Ok(())
    }

    fn each_customer(&self, row: &mut dyn FnMut(&[Value<'_>]) -> Result<()>) -> Result<()> {
        for key in 1..=self.customers {
            let mut random = self.random(5, key);
            let nation = random.below(25);
            row(&[
                Value::Integer(key as i32),
                Value::Text(&format!("Customer#{key:09}")),
                Value::Text(&words::address(&mut random)),
                Value::Integer(nation as i32),
                Value::Text(&phone(nation, &mut random)),
                Value::Text(&money(random.below(1_099_999) as i64 - 99_999)),
                Value::Text(words::segment(&mut random)),
                Value::Text(&self.words.comment(&mut random, 29, 116)),
            ])?;
        }
        Ok(())
    }

    /// An order with its lines. Of 32 keys eight are used, and a third of the customers has no
    /// orders.
    fn order(&self, number: u64) -> Order {
        let mut random = self.random(6, number);
        let mut customer = 1 + random.below(self.customers);
        while customer.is_multiple_of(3) {
            customer = 1 + random.below(self.customers);
        }
        let date = START + random.below((END - 151 - START) as u64 + 1) as i32;
        let lines = (0..1 + random.below(7)).map(|_| {
            let part = 1 + random.below(self.parts);
            let quantity = 1 + random.below(50) as i64;
            let ship = date + 1 + random.below(121) as i32;
            OrderLine {
                part,
                supplier: self.supplier_of(part, random.below(4)),
                quantity,
                price: quantity * retail_price(part),
                discount: random.below(11) as i64,
                tax: random.below(9) as i64,
                ship,
                commit: date + 30 + random.below(61) as i32,
                receipt: ship + 1 + random.below(30) as i32,
            }
        });
        let lines = lines.collect();
        Order { key: number / 8 * 32 + number % 8 + 1, customer, date, lines }
    }

    fn each_order(&self, row: &mut dyn FnMut(&[Value<'_>]) -> Result<()>) -> Result<()> {
        for number in 0..self.orders {
            let order = self.order(number);
            let mut random = self.random(7, number);
            let total =
                |line: &OrderLine| line.price * (100 + line.tax) * (100 - line.discount) / 10_000;
            let shipped = order.lines.iter().filter(|line| line.ship <= PRESENT).count();
            let status = match shipped {
                0 => "O",
                all if all == order.lines.len() => "F",
                _ => "P",
            };
            let clerk = 1 + random.below((self.suppliers / 10).max(1));
            row(&[
                Value::Integer(order.key as i32),
                Value::Integer(order.customer as i32),
                Value::Text(status),
                Value::Text(&money(order.lines.iter().map(total).sum())),
                Value::Text(&date(order.date)),
                Value::Text(words::priority(&mut random)),
                Value::Text(&format!("Clerk#{clerk:09}")),
                Value::Integer(0),
                Value::Text(&self.words.comment(&mut random, 19, 78)),
            ])?;
        }
        Ok(())
    }

    fn each_line(&self, row: &mut dyn FnMut(&[Value<'_>]) -> Result<()>) -> Result<()> {
        for number in 0..self.orders {
            let order = self.order(number);
            let mut random = self.random(8, number);
            for (line, place) in order.lines.iter().zip(1..) {
                let returned = match line.receipt <= PRESENT {
                    true if random.below(2) == 0 => "R",
                    true => "A",
                    false => "N",
                };
                row(&[
                    Value::Integer(order.key as i32),
                    Value::Integer(line.part as i32),
                    Value::Integer(line.supplier as i32),
                    Value::Integer(place),
                    Value::Text(&money(line.quantity * 100)),
                    Value::Text(&money(line.price)),
                    Value::Text(&money(line.discount)),
                    Value::Text(&money(line.tax)),
                    Value::Text(returned),
                    Value::Text(if line.ship > PRESENT { "O" } else { "F" }),
                    Value::Text(&date(line.ship)),
                    Value::Text(&date(line.commit)),
                    Value::Text(&date(line.receipt)),
                    Value::Text(words::instruction(&mut random)),
                    Value::Text(words::ship_mode(&mut random)),
                    Value::Text(&self.words.comment(&mut random, 10, 43)),
                ])?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_dates() {
        assert_eq!(date(START), "1992-01-01");
        assert_eq!(date(END), "1998-12-31");
        assert_eq!(date(PRESENT), "1995-06-17");
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(9555), "1996-02-29");
    }

    #[test]
    fn a_line_is_of_a_part_and_supplier_that_go_together() {
        let data = Data::new(0.01, 1);
        for number in 0..500 {
            let order = data.order(number);
            assert!(!order.customer.is_multiple_of(3) && order.customer <= data.customers);
            assert!((1..=7).contains(&order.lines.len()));
            for line in &order.lines {
                let suppliers = (0..4).map(|n| data.supplier_of(line.part, n));
                assert!(suppliers.into_iter().any(|supplier| supplier == line.supplier));
                assert!(line.supplier <= data.suppliers && line.part <= data.parts);
            }
        }
    }
}
