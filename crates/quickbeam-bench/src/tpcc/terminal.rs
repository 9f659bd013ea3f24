//! A terminal: the statements of a connection, and the five transactions of clauses 2.4 to 2.8.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, anyhow};

use super::data::DISTRICTS;
use super::inputs::{CustomerChoice, DistrictKey, OrderedItem, TpccInputs};
use crate::engine::{OpError, OpResult};
use crate::sql::retry::{self, Ending};
use crate::sql::{Access, Prepared, SqlConnection, SqlInstance, SqlRow, Value};

/// Orders that the stock level looks at.
const RECENT: i32 = 20;
/// Most characters of a customer's data.
const MOST_DATA: usize = 500;

/// What a transaction did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TpccDone {
    /// Orders that were committed.
    pub orders: u64,
    /// Orders that were rolled back as their inputs ask.
    pub rollbacks: u64,
    /// Payments.
    pub payments: u64,
    /// Orders that were delivered.
    pub deliveries: u64,
    /// How often a transaction had to be run again.
    pub retries: u64,
}

impl TpccDone {
    /// Takes in what other transactions did.
    pub fn merge(&mut self, other: TpccDone) {
        self.orders += other.orders;
        self.rollbacks += other.rollbacks;
        self.payments += other.payments;
        self.deliveries += other.deliveries;
        self.retries += other.retries;
    }
}

/// A connection with its statements.
pub struct Terminal<'c> {
    connection: Box<dyn SqlConnection + 'c>,
    statements: TpccStatements,
}

/// The statements of a connection.
struct TpccStatements {
    order_customer: Prepared,
    warehouse_tax: Prepared,
    take_order: Prepared,
    insert_order: Prepared,
    insert_new_order: Prepared,
    item: Prepared,
    /// One for each district, which has its column of the stock.
    take_stock: Vec<Prepared>,
    insert_line: Prepared,
    pay_warehouse: Prepared,
    pay_district: Prepared,
    by_name: Prepared,
    pay_customer: Prepared,
    read_data: Prepared,
    write_data: Prepared,
    insert_history: Prepared,
    customer: Prepared,
    last_order: Prepared,
    order_lines: Prepared,
    oldest: Prepared,
    delete_new_order: Prepared,
    deliver_order: Prepared,
    deliver_lines: Prepared,
    amount: Prepared,
    credit: Prepared,
    next_order: Prepared,
    low_stock: Prepared,
}

const TAKE_STOCK: &str = "UPDATE stock SET s_quantity = CASE WHEN s_quantity >= $1 + 10 THEN s_quantity - $1 \
    ELSE s_quantity - $1 + 91 END, s_ytd = s_ytd + $1, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + $2 \
    WHERE s_w_id = $3 AND s_i_id = $4 RETURNING s_quantity, s_data, s_dist_";

impl TpccStatements {
    fn prepare(c: &mut dyn SqlConnection) -> Result<TpccStatements> {
        let take_stock = (1..=DISTRICTS)
            .map(|district| c.prepare(&format!("{TAKE_STOCK}{district:02}")))
            .collect::<Result<_>>()?;
        Ok(TpccStatements {
            take_stock,
            order_customer: c.prepare(
                "SELECT c_discount, c_last, c_credit FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
            )?,
            warehouse_tax: c.prepare("SELECT w_tax FROM warehouse WHERE w_id = $1")?,
            take_order: c.prepare(
                "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = $1 AND d_id = $2 RETURNING d_next_o_id, d_tax",
            )?,
            insert_order: c.prepare("INSERT INTO orders VALUES ($1, $2, $3, $4, $5, 0, $6, $7)")?,
            insert_new_order: c.prepare("INSERT INTO new_order VALUES ($1, $2, $3)")?,
            item: c.prepare("SELECT i_price, i_name, i_data FROM item WHERE i_id = $1")?,
            insert_line: c
                .prepare("INSERT INTO order_line VALUES ($1, $2, $3, $4, $5, $6, 0, $7, $8, $9)")?,
            pay_warehouse: c.prepare(
                "UPDATE warehouse SET w_ytd = w_ytd + $1 WHERE w_id = $2 \
                 RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip",
            )?,
            pay_district: c.prepare(
                "UPDATE district SET d_ytd = d_ytd + $1 WHERE d_w_id = $2 AND d_id = $3 \
                 RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip",
            )?,
            by_name: c.prepare(
                "SELECT c_id FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3 ORDER BY c_first",
            )?,
            pay_customer: c.prepare(
                "UPDATE customer SET c_balance = c_balance - $1, c_ytd_payment = c_ytd_payment + $1, \
                 c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = $2 AND c_d_id = $3 AND c_id = $4 \
                 RETURNING c_credit, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone",
            )?,
            read_data: c.prepare(
                "SELECT c_data FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
            )?,
            write_data: c.prepare(
                "UPDATE customer SET c_data = $1 WHERE c_w_id = $2 AND c_d_id = $3 AND c_id = $4",
            )?,
            insert_history: c
                .prepare("INSERT INTO history VALUES ($1, $2, $3, $4, $5, $6, $7, $8)")?,
            customer: c.prepare(
                "SELECT c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
            )?,
            last_order: c.prepare(
                "SELECT o_id, o_carrier_id, o_entry_d FROM orders WHERE o_w_id = $1 AND o_d_id = $2 AND o_c_id = $3 \
                 ORDER BY o_id DESC LIMIT 1",
            )?,
            order_lines: c.prepare(
                "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
                 WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3",
            )?,
            oldest: c.prepare(
                "SELECT no_o_id FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 ORDER BY no_o_id LIMIT 1",
            )?,
            delete_new_order: c.prepare(
                "DELETE FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 AND no_o_id = $3",
            )?,
            deliver_order: c.prepare(
                "UPDATE orders SET o_carrier_id = $1 WHERE o_w_id = $2 AND o_d_id = $3 AND o_id = $4 RETURNING o_c_id",
            )?,
            deliver_lines: c.prepare(
                "UPDATE order_line SET ol_delivery_d = $1 WHERE ol_w_id = $2 AND ol_d_id = $3 AND ol_o_id = $4",
            )?,
            amount: c.prepare(
                "SELECT CAST(sum(ol_amount) AS BIGINT) FROM order_line WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3",
            )?,
            credit: c.prepare(
                "UPDATE customer SET c_balance = c_balance + $1, c_delivery_cnt = c_delivery_cnt + 1 \
                 WHERE c_w_id = $2 AND c_d_id = $3 AND c_id = $4",
            )?,
            next_order: c
                .prepare("SELECT d_next_o_id FROM district WHERE d_w_id = $1 AND d_id = $2")?,
            low_stock: c.prepare(
                "SELECT count(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = $1 AND ol_d_id = $2 \
                 AND ol_o_id >= $3 AND ol_o_id < $4 AND s_w_id = $1 AND s_i_id = ol_i_id AND s_quantity < $5",
            )?,
        })
    }
}

fn now() -> Value<'static> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Value::Bigint(now.as_micros() as i64)
}

fn one(rows: u64) -> OpResult {
    match rows {
        1 => Ok(()),
        rows => Err(anyhow!("{rows} rows changed where one was expected").into()),
    }
}

/// Runs a query of one row and takes something of it.
fn find<T>(
    c: &mut dyn SqlConnection,
    query: Prepared,
    parameters: &[Value<'_>],
    take: impl Fn(&dyn SqlRow) -> Option<T>,
) -> OpResult<Option<T>> {
    let mut found = None;
    c.query(query, parameters, &mut |row| found = take(row))?;
    Ok(found)
}

/// Runs a query that must find its row.
fn must_find<T>(
    c: &mut dyn SqlConnection,
    (query, what): (Prepared, &str),
    parameters: &[Value<'_>],
    take: impl Fn(&dyn SqlRow) -> Option<T>,
) -> OpResult<T> {
    let found = find(c, query, parameters, take)?;
    found.ok_or_else(|| anyhow!("no {what} of {parameters:?}").into())
}

/// Looks at the columns, as an application would.
fn look(row: &dyn SqlRow, columns: std::ops::Range<usize>) {
    let bytes = columns.filter_map(|column| row.text(column)).map(<[u8]>::len).sum::<usize>();
    std::hint::black_box(bytes);
}

impl<'c> Terminal<'c> {
    /// Connects and prepares the statements.
    pub fn connect(instance: &'c dyn SqlInstance) -> Result<Terminal<'c>> {
        let mut connection = instance.connect()?;
        let statements = TpccStatements::prepare(&mut *connection)?;
        Ok(Terminal { connection, statements })
    }

    /// Runs a transaction until it comes through.
    pub fn run(&mut self, inputs: &TpccInputs) -> Result<TpccDone> {
        let Terminal { connection, statements: s } = self;
        let access = match inputs {
            TpccInputs::OrderStatus { .. } | TpccInputs::StockLevel { .. } => Access::Read,
            _ => Access::Write,
        };
        let mut done = TpccDone::default();
        let retries = retry::ended_transaction(&mut **connection, access, |c| {
            done = TpccDone::default();
            match inputs {
                TpccInputs::NewOrder { at, customer, lines } => {
                    let ending = s.new_order(c, *at, *customer, lines)?;
                    done.orders = u64::from(ending == Ending::Commit);
                    done.rollbacks = u64::from(ending == Ending::Rollback);
                    return Ok(ending);
                }
                TpccInputs::Payment { at, home, customer, cents } => {
                    s.payment(c, *at, *home, customer, *cents)?;
                    done.payments = 1;
                }
                TpccInputs::OrderStatus { at, customer } => s.order_status(c, *at, customer)?,
                TpccInputs::Delivery { warehouse, carrier } => {
                    done.deliveries = s.delivery(c, *warehouse, *carrier)?;
                }
                TpccInputs::StockLevel { at, threshold } => s.stock_level(c, *at, *threshold)?,
            }
            Ok(Ending::Commit)
        })?;
        done.retries = retries;
        Ok(done)
    }
}

impl TpccStatements {
    fn new_order(
        &self,
        c: &mut dyn SqlConnection,
        at: DistrictKey,
        customer: i32,
        lines: &[OrderedItem],
    ) -> OpResult<Ending> {
        let (warehouse, district) = (Value::Integer(at.warehouse), Value::Integer(at.district));
        let of = [warehouse, district, Value::Integer(customer)];
        let discount = must_find(c, (self.order_customer, "customer"), &of, |row| {
            look(row, 1..3);
            row.integer(0)
        })?;
        let tax = must_find(c, (self.warehouse_tax, "warehouse"), &of[..1], |r| r.integer(0))?;
        let (next, district_tax) = must_find(c, (self.take_order, "district"), &of[..2], |row| {
            Some((row.integer(0)?, row.integer(1)?))
        })?;
        let order = Value::Integer(next as i32 - 1);
        let is_local = lines.iter().all(|line| line.supplier == at.warehouse);
        let count = Value::Integer(lines.len() as i32);
        let local = Value::Integer(i32::from(is_local));
        one(c.execute(
            self.insert_order,
            &[warehouse, district, order, of[2], now(), count, local],
        )?)?;
        one(c.execute(self.insert_new_order, &[warehouse, district, order])?)?;
        let mut total = 0;
        for (number, line) in (1..).zip(lines) {
            let item = Value::Integer(line.item);
            let found = find(c, self.item, &[item], |row| {
                look(row, 1..3);
                row.integer(0)
            })?;
            let Some(price) = found else { return Ok(Ending::Rollback) };
            let remote = i32::from(line.supplier != at.warehouse);
            let supplier = Value::Integer(line.supplier);
            let quantity = Value::Integer(line.quantity);
            let take = self.take_stock[at.district as usize - 1];
            let stock = [quantity, Value::Integer(remote), supplier, item];
            let information = must_find(c, (take, "stock"), &stock, |row| {
                look(row, 1..2);
                Some(String::from_utf8_lossy(row.text(2)?).into_owned())
            })?;
            let amount = price * i64::from(line.quantity);
            total += amount;
            one(c.execute(
                self.insert_line,
                &[
                    warehouse,
                    district,
                    order,
                    Value::Integer(number),
                    item,
                    supplier,
                    quantity,
                    Value::Bigint(amount),
                    Value::Text(&information),
                ],
            )?)?;
        }
        let charged = total * (10_000 - discount) * (10_000 + tax + district_tax);
        std::hint::black_box(charged);
        Ok(Ending::Commit)
    }

    /// The number of a customer.
    fn choose(
        &self,
        c: &mut dyn SqlConnection,
        at: DistrictKey,
        customer: &CustomerChoice,
    ) -> OpResult<i32> {
        let name = match customer {
            CustomerChoice::Id(id) => return Ok(*id),
            CustomerChoice::LastName(name) => name,
        };
        let mut found = Vec::new();
        let parameters =
            [Value::Integer(at.warehouse), Value::Integer(at.district), Value::Text(name)];
        c.query(self.by_name, &parameters, &mut |row| found.extend(row.integer(0)))?;
        let middle = found.len().div_ceil(2).checked_sub(1).and_then(|place| found.get(place));
        let id = middle.ok_or_else(|| anyhow!("no customer {name} in {at:?}"))?;
        Ok(*id as i32)
    }

    fn payment(
        &self,
        c: &mut dyn SqlConnection,
        at: DistrictKey,
        home: DistrictKey,
        customer: &CustomerChoice,
        cents: i64,
    ) -> OpResult {
        let amount = Value::Bigint(cents);
        let (warehouse, district) = (Value::Integer(at.warehouse), Value::Integer(at.district));
        let name = |row: &dyn SqlRow| {
            look(row, 1..6);
            Some(String::from_utf8_lossy(row.text(0)?).into_owned())
        };
        let first = must_find(c, (self.pay_warehouse, "warehouse"), &[amount, warehouse], name)?;
        let paid = [amount, warehouse, district];
        let second = must_find(c, (self.pay_district, "district"), &paid, name)?;
        let id = self.choose(c, home, customer)?;
        let key = [home.warehouse, home.district, id].map(Value::Integer);
        let paid = [amount, key[0], key[1], key[2]];
        let is_bad = must_find(c, (self.pay_customer, "customer"), &paid, |row| {
            look(row, 1..10);
            Some(row.text(0)? == b"BC")
        })?;
        if is_bad {
            let old = must_find(c, (self.read_data, "customer"), &key, |row| {
                Some(String::from_utf8_lossy(row.text(0)?).into_owned())
            })?;
            let mut data = format!(
                "{id} {} {} {} {} {cents}|{old}",
                home.district, home.warehouse, at.district, at.warehouse
            );
            data.truncate(MOST_DATA);
            one(c.execute(self.write_data, &[Value::Text(&data), key[0], key[1], key[2]])?)?;
        }
        let data = format!("{first}    {second}");
        let place = [key[2], key[1], key[0], district, warehouse];
        let row = [place[0], place[1], place[2], place[3], place[4], now(), amount];
        let mut row = row.to_vec();
        row.push(Value::Text(&data));
        one(c.execute(self.insert_history, &row)?)
    }

    fn order_status(
        &self,
        c: &mut dyn SqlConnection,
        at: DistrictKey,
        customer: &CustomerChoice,
    ) -> OpResult {
        let id = self.choose(c, at, customer)?;
        let key = [at.warehouse, at.district, id].map(Value::Integer);
        must_find(c, (self.customer, "customer"), &key, |row| {
            look(row, 1..4);
            row.integer(0)
        })?;
        let order = must_find(c, (self.last_order, "order"), &key, |row| row.integer(0))?;
        let mut sum = 0;
        let lines = [key[0], key[1], Value::Integer(order as i32)];
        c.query(self.order_lines, &lines, &mut |row| sum += row.integer(3).unwrap_or(0))?;
        std::hint::black_box(sum);
        Ok(())
    }

    /// Returns how many orders were delivered: a district may have none that is open.
    fn delivery(&self, c: &mut dyn SqlConnection, warehouse: i32, carrier: i32) -> OpResult<u64> {
        let mut delivered = 0;
        for district in 1..=DISTRICTS {
            let [warehouse, district, carrier] = [warehouse, district, carrier].map(Value::Integer);
            let oldest = find(c, self.oldest, &[warehouse, district], |row| row.integer(0))?;
            let Some(order) = oldest else { continue };
            let order = Value::Integer(order as i32);
            let key = [warehouse, district, order];
            if c.execute(self.delete_new_order, &key)? == 0 {
                // Under read committed, another delivery took the order between the statements.
                return Err(OpError::Retry);
            }
            let of = [carrier, warehouse, district, order];
            let customer = must_find(c, (self.deliver_order, "order"), &of, |r| r.integer(0))?;
            c.execute(self.deliver_lines, &[now(), warehouse, district, order])?;
            let amount = must_find(c, (self.amount, "order line"), &key, |row| row.integer(0))?;
            let customer = Value::Integer(customer as i32);
            one(c.execute(self.credit, &[Value::Bigint(amount), warehouse, district, customer])?)?;
            delivered += 1;
        }
        Ok(delivered)
    }

    fn stock_level(&self, c: &mut dyn SqlConnection, at: DistrictKey, threshold: i32) -> OpResult {
        let key = [at.warehouse, at.district].map(Value::Integer);
        let next = must_find(c, (self.next_order, "district"), &key, |r| r.integer(0))? as i32;
        let [first, next, threshold] = [next - RECENT, next, threshold].map(Value::Integer);
        let parameters = [key[0], key[1], first, next, threshold];
        let low = must_find(c, (self.low_stock, "stock"), &parameters, |row| row.integer(0))?;
        std::hint::black_box(low);
        Ok(())
    }
}
