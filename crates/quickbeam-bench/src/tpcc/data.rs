//! The nine tables of TPC-C and their first rows: clauses 1.3 and 4.3.3 of the specification.
//!
//! Amounts are whole cents, rates ten thousandths, times microseconds. An order that is not
//! delivered has carrier and delivery time 0 rather than NULL. Foreign keys are not declared.

use std::fmt::Write;

use anyhow::Result;

use super::inputs::{last_name, loaded_name};
use crate::sql::{SqlConnection, Value};
use crate::workload::random::{Random, mix, permutation};

/// Districts of a warehouse.
pub const DISTRICTS: i32 = 10;

/// How many rows the tables have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TpccSizes {
    /// Warehouses.
    pub warehouses: u32,
    /// Items, each with a row of stock in each warehouse.
    pub items: u32,
    /// Customers of each district, each with one order.
    pub customers: u32,
}

/// Tables that are stored by their key where an engine can do so: short rows.
const KEYED: [(&str, &str); 4] = [
    (
        "district",
        "d_w_id INTEGER NOT NULL, d_id INTEGER NOT NULL, d_name VARCHAR(10) NOT NULL, d_street_1 VARCHAR(20) NOT NULL, \
         d_street_2 VARCHAR(20) NOT NULL, d_city VARCHAR(20) NOT NULL, d_state CHAR(2) NOT NULL, d_zip CHAR(9) NOT NULL, \
         d_tax INTEGER NOT NULL, d_ytd BIGINT NOT NULL, d_next_o_id INTEGER NOT NULL, PRIMARY KEY (d_w_id, d_id)",
    ),
    (
        "new_order",
        "no_w_id INTEGER NOT NULL, no_d_id INTEGER NOT NULL, no_o_id INTEGER NOT NULL, \
         PRIMARY KEY (no_w_id, no_d_id, no_o_id)",
    ),
    (
        "orders",
        "o_w_id INTEGER NOT NULL, o_d_id INTEGER NOT NULL, o_id INTEGER NOT NULL, o_c_id INTEGER NOT NULL, \
         o_entry_d BIGINT NOT NULL, o_carrier_id INTEGER NOT NULL, o_ol_cnt INTEGER NOT NULL, o_all_local INTEGER NOT NULL, \
         PRIMARY KEY (o_w_id, o_d_id, o_id)",
    ),
    (
        "order_line",
        "ol_w_id INTEGER NOT NULL, ol_d_id INTEGER NOT NULL, ol_o_id INTEGER NOT NULL, ol_number INTEGER NOT NULL, \
         ol_i_id INTEGER NOT NULL, ol_supply_w_id INTEGER NOT NULL, ol_delivery_d BIGINT NOT NULL, \
         ol_quantity INTEGER NOT NULL, ol_amount BIGINT NOT NULL, ol_dist_info CHAR(24) NOT NULL, \
         PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)",
    ),
];

/// The other tables.
const OTHERS: [(&str, &str); 5] = [
    (
        "warehouse",
        "w_id INTEGER NOT NULL PRIMARY KEY, w_name VARCHAR(10) NOT NULL, w_street_1 VARCHAR(20) NOT NULL, \
         w_street_2 VARCHAR(20) NOT NULL, w_city VARCHAR(20) NOT NULL, w_state CHAR(2) NOT NULL, w_zip CHAR(9) NOT NULL, \
         w_tax INTEGER NOT NULL, w_ytd BIGINT NOT NULL",
    ),
    (
        "customer",
        "c_w_id INTEGER NOT NULL, c_d_id INTEGER NOT NULL, c_id INTEGER NOT NULL, c_first VARCHAR(16) NOT NULL, \
         c_middle CHAR(2) NOT NULL, c_last VARCHAR(16) NOT NULL, c_street_1 VARCHAR(20) NOT NULL, \
         c_street_2 VARCHAR(20) NOT NULL, c_city VARCHAR(20) NOT NULL, c_state CHAR(2) NOT NULL, c_zip CHAR(9) NOT NULL, \
         c_phone CHAR(16) NOT NULL, c_since BIGINT NOT NULL, c_credit CHAR(2) NOT NULL, c_credit_lim BIGINT NOT NULL, \
         c_discount INTEGER NOT NULL, c_balance BIGINT NOT NULL, c_ytd_payment BIGINT NOT NULL, \
         c_payment_cnt INTEGER NOT NULL, c_delivery_cnt INTEGER NOT NULL, c_data VARCHAR(500) NOT NULL, \
         PRIMARY KEY (c_w_id, c_d_id, c_id)",
    ),
    (
        "history",
        "h_c_id INTEGER NOT NULL, h_c_d_id INTEGER NOT NULL, h_c_w_id INTEGER NOT NULL, h_d_id INTEGER NOT NULL, \
         h_w_id INTEGER NOT NULL, h_date BIGINT NOT NULL, h_amount BIGINT NOT NULL, h_data VARCHAR(24) NOT NULL",
    ),
    (
        "item",
        "i_id INTEGER NOT NULL PRIMARY KEY, i_im_id INTEGER NOT NULL, i_name VARCHAR(24) NOT NULL, \
         i_price INTEGER NOT NULL, i_data VARCHAR(50) NOT NULL",
    ),
    (
        "stock",
        "s_w_id INTEGER NOT NULL, s_i_id INTEGER NOT NULL, s_quantity INTEGER NOT NULL, s_dist_01 CHAR(24) NOT NULL, \
         s_dist_02 CHAR(24) NOT NULL, s_dist_03 CHAR(24) NOT NULL, s_dist_04 CHAR(24) NOT NULL, s_dist_05 CHAR(24) NOT NULL, \
         s_dist_06 CHAR(24) NOT NULL, s_dist_07 CHAR(24) NOT NULL, s_dist_08 CHAR(24) NOT NULL, s_dist_09 CHAR(24) NOT NULL, \
         s_dist_10 CHAR(24) NOT NULL, s_ytd BIGINT NOT NULL, s_order_cnt INTEGER NOT NULL, s_remote_cnt INTEGER NOT NULL, \
         s_data VARCHAR(50) NOT NULL, PRIMARY KEY (s_w_id, s_i_id)",
    ),
];

/// Indexes beside the primary keys.
const INDEXES: [&str; 2] = [
    "CREATE INDEX customer_name ON customer (c_w_id, c_d_id, c_last, c_first)",
    "CREATE UNIQUE INDEX orders_customer ON orders (o_w_id, o_d_id, o_c_id, o_id)",
];

/// Draws texts; the last one of each is kept.
struct TextDraw {
    random: Random,
    buffer: String,
}

impl TextDraw {
    fn from(&mut self, low: u64, high: u64) -> u64 {
        low + self.random.below(high - low + 1)
    }

    /// Letters.
    fn letters(&mut self, low: u64, high: u64) -> String {
        let count = self.from(low, high);
        (0..count).map(|_| char::from(b'a' + self.random.below(26) as u8)).collect()
    }

    /// Digits.
    fn digits(&mut self, count: u64) -> String {
        (0..count).map(|_| char::from(b'0' + self.random.below(10) as u8)).collect()
    }

    /// Letters; every tenth text has the word that marks a brand.
    fn data(&mut self) -> &str {
        self.buffer = self.letters(26, 50);
        if self.random.below(10) == 0 {
            let place = self.random.below(self.buffer.len() as u64 - 7) as usize;
            self.buffer.replace_range(place..place + 8, "ORIGINAL");
        }
        &self.buffer
    }

    /// Street, second line, city, state, postal code.
    fn address(&mut self) -> [String; 5] {
        let zip = self.digits(4) + "11111";
        [
            self.letters(10, 20),
            self.letters(10, 20),
            self.letters(10, 20),
            self.letters(2, 2).to_uppercase(),
            zip,
        ]
    }
}

impl TpccSizes {
    /// The size of the specification for this number of warehouses.
    pub fn full(warehouses: u32) -> TpccSizes {
        TpccSizes { warehouses, items: 100_000, customers: 3000 }
    }

    /// Districts of all warehouses.
    pub fn districts(&self) -> impl Iterator<Item = (i32, i32)> + use<> {
        let warehouses = self.warehouses as i32;
        (1..=warehouses).flat_map(|warehouse| (1..=DISTRICTS).map(move |d| (warehouse, d)))
    }

    /// The first order of a district that is not delivered when the tables are filled.
    pub fn first_undelivered(&self) -> i32 {
        (u64::from(self.customers) * 7 / 10) as i32 + 1
    }

    /// Makes and fills the tables. `keyed_table` is written after the definition of tables that
    /// are stored by their key.
    pub fn build(
        &self,
        connection: &mut dyn SqlConnection,
        keyed_table: &str,
        seed: u64,
    ) -> Result<()> {
        for (name, columns) in KEYED {
            connection.run(&format!("CREATE TABLE {name} ({columns}){keyed_table}"))?;
        }
        for (name, columns) in OTHERS {
            connection.run(&format!("CREATE TABLE {name} ({columns})"))?;
        }
        let texts =
            |part: u64| TextDraw { random: Random::new(mix(seed ^ part)), buffer: String::new() };
        self.load_items(connection, texts(1))?;
        self.load_warehouses(connection, texts(2))?;
        self.load_stock(connection, texts(3))?;
        self.load_customers(connection, texts(4))?;
        self.load_orders(connection, mix(seed ^ 5))?;
        INDEXES.into_iter().try_for_each(|index| connection.run(index))
    }

    fn load_items(&self, connection: &mut dyn SqlConnection, mut texts: TextDraw) -> Result<()> {
        connection.load("item", 5, &mut |add| {
            (1..=self.items as i32).try_for_each(|id| {
                let image = texts.from(1, 10_000) as i32;
                let (name, price) = (texts.letters(14, 24), texts.from(100, 10_000) as i32);
                add(&[
                    Value::Integer(id),
                    Value::Integer(image),
                    Value::Text(&name),
                    Value::Integer(price),
                    Value::Text(texts.data()),
                ])
            })
        })
    }

    fn load_warehouses(
        &self,
        connection: &mut dyn SqlConnection,
        mut texts: TextDraw,
    ) -> Result<()> {
        connection.load("warehouse", 9, &mut |add| {
            (1..=self.warehouses as i32).try_for_each(|id| {
                let (name, address) = (texts.letters(6, 10), texts.address());
                let mut row = vec![Value::Integer(id), Value::Text(&name)];
                row.extend(address.iter().map(|text| Value::Text(text)));
                row.push(Value::Integer(texts.from(0, 2000) as i32));
                row.push(Value::Bigint(30_000_000));
                add(&row)
            })
        })?;
        connection.load("district", 11, &mut |add| {
            self.districts().try_for_each(|(warehouse, district)| {
                let (name, address) = (texts.letters(6, 10), texts.address());
                let mut row =
                    vec![Value::Integer(warehouse), Value::Integer(district), Value::Text(&name)];
                row.extend(address.iter().map(|text| Value::Text(text)));
                row.push(Value::Integer(texts.from(0, 2000) as i32));
                row.push(Value::Bigint(3_000_000));
                row.push(Value::Integer(self.customers as i32 + 1));
                add(&row)
            })
        })
    }

    fn load_stock(&self, connection: &mut dyn SqlConnection, mut texts: TextDraw) -> Result<()> {
        connection.load("stock", 17, &mut |add| {
            for warehouse in 1..=self.warehouses as i32 {
                for item in 1..=self.items as i32 {
                    let districts: Vec<String> =
                        (0..DISTRICTS).map(|_| texts.letters(24, 24)).collect();
                    let quantity = texts.from(10, 100) as i32;
                    let mut row = vec![
                        Value::Integer(warehouse),
                        Value::Integer(item),
                        Value::Integer(quantity),
                    ];
                    row.extend(districts.iter().map(|text| Value::Text(text)));
                    row.extend([Value::Bigint(0), Value::Integer(0), Value::Integer(0)]);
                    row.push(Value::Text(texts.data()));
                    add(&row)?;
                }
            }
            Ok(())
        })
    }

    fn load_customers(
        &self,
        connection: &mut dyn SqlConnection,
        mut texts: TextDraw,
    ) -> Result<()> {
        connection.load("customer", 21, &mut |add| {
            for (warehouse, district) in self.districts() {
                for id in 1..=self.customers as i32 {
                    let (first, address) = (texts.letters(8, 16), texts.address());
                    let last = last_name(loaded_name(id as u64, &mut texts.random));
                    let phone = texts.digits(16);
                    let credit = if texts.random.below(10) == 0 { "BC" } else { "GC" };
                    let discount = texts.from(0, 5000) as i32;
                    let data = texts.letters(300, 500);
                    let mut row = [warehouse, district, id].map(Value::Integer).to_vec();
                    row.extend([&first, "OE", &last].map(Value::Text));
                    row.extend(address.iter().map(|text| Value::Text(text)));
                    row.extend([Value::Text(&phone), Value::Bigint(0), Value::Text(credit)]);
                    row.extend([Value::Bigint(5_000_000), Value::Integer(discount)]);
                    row.extend([Value::Bigint(-1000), Value::Bigint(1000)]);
                    row.extend([Value::Integer(1), Value::Integer(0), Value::Text(&data)]);
                    add(&row)?;
                }
            }
            Ok(())
        })?;
        connection.load("history", 8, &mut |add| {
            for (warehouse, district) in self.districts() {
                for id in 1..=self.customers as i32 {
                    let data = texts.letters(12, 24);
                    let mut row =
                        [id, district, warehouse, district, warehouse].map(Value::Integer).to_vec();
                    row.extend([Value::Bigint(0), Value::Bigint(1000), Value::Text(&data)]);
                    add(&row)?;
                }
            }
            Ok(())
        })
    }

    /// Orders of all customers in random order, with their lines. The three tables are drawn from
    /// the same seed, so that they agree.
    fn load_orders(&self, connection: &mut dyn SqlConnection, seed: u64) -> Result<()> {
        let lines = |random: &mut Random| 5 + random.below(11) as i32;
        let orders = self.customers as i32;
        let first = self.first_undelivered();
        connection.load("orders", 8, &mut |add| {
            let mut random = Random::new(seed);
            let mut customers = Random::new(mix(seed));
            self.districts().try_for_each(|(warehouse, district)| {
                let order = permutation(orders as u64, &mut customers);
                (1..=orders).zip(order).try_for_each(|(id, customer)| {
                    let carrier = if id < first { 1 + id % 10 } else { 0 };
                    let mut row =
                        [warehouse, district, id, customer as i32 + 1].map(Value::Integer).to_vec();
                    row.push(Value::Bigint(0));
                    row.extend([carrier, lines(&mut random), 1].map(Value::Integer));
                    add(&row)
                })
            })
        })?;
        connection.load("order_line", 10, &mut |add| {
            let mut random = Random::new(seed);
            let mut texts = TextDraw { random: Random::new(mix(seed ^ 1)), buffer: String::new() };
            self.districts().try_for_each(|(warehouse, district)| {
                (1..=orders).try_for_each(|id| {
                    let is_delivered = id < first;
                    (1..=lines(&mut random)).try_for_each(|number| {
                        let item = texts.from(1, self.items.into()) as i32;
                        let cents = if is_delivered { 0 } else { texts.from(1, 999_999) as i64 };
                        texts.buffer.clear();
                        // Writing to a string does not fail.
                        let _ = write!(texts.buffer, "{:24}", texts.random.next_u64());
                        let mut row = [warehouse, district, id, number, item, warehouse]
                            .map(Value::Integer)
                            .to_vec();
                        row.push(Value::Bigint(i64::from(is_delivered)));
                        row.extend([Value::Integer(5), Value::Bigint(cents)]);
                        row.push(Value::Text(&texts.buffer));
                        add(&row)
                    })
                })
            })
        })?;
        connection.load("new_order", 3, &mut |add| {
            self.districts().try_for_each(|(warehouse, district)| {
                let row = |id: i32| [warehouse, district, id].map(Value::Integer);
                (first..=orders).try_for_each(|id| add(&row(id)))
            })
        })
    }
}
