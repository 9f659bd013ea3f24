//! What must hold after any number of transactions: consistency conditions 1 to 4 of clause 3.3.2,
//! and that each transaction that was committed left its rows.

use std::collections::HashMap;

use anyhow::{Result, ensure};

use super::data::{DISTRICTS, TpccSizes};
use super::terminal::TpccDone;
use crate::sql::SqlConnection;
use crate::sql::answers::for_each_integers;

/// What the tables have of a district.
#[derive(Clone, Copy, Debug, Default)]
struct DistrictContent {
    ytd: i64,
    next_order: i64,
    orders: i64,
    last_order: i64,
    order_lines: i64,
    open_orders: i64,
    first_open: i64,
    last_open: i64,
    lines: i64,
}

/// The tables, summed up by district.
struct TpccContent {
    warehouses: HashMap<i64, i64>,
    districts: HashMap<(i64, i64), DistrictContent>,
    payments: i64,
}

impl TpccContent {
    fn read(c: &mut dyn SqlConnection) -> Result<TpccContent> {
        let mut content =
            TpccContent { warehouses: HashMap::new(), districts: HashMap::new(), payments: 0 };
        let TpccContent { warehouses, districts, payments } = &mut content;
        for_each_integers(c, "SELECT w_id, w_ytd FROM warehouse", 2, |row| {
            warehouses.insert(row[0], row[1]);
        })?;
        let query = "SELECT d_w_id, d_id, d_ytd, d_next_o_id FROM district";
        for_each_integers(c, query, 4, |row| {
            let district = districts.entry((row[0], row[1])).or_default();
            (district.ytd, district.next_order) = (row[2], row[3]);
        })?;
        let query = "SELECT o_w_id, o_d_id, max(o_id), CAST(sum(o_ol_cnt) AS BIGINT), count(*) \
                     FROM orders GROUP BY o_w_id, o_d_id";
        for_each_integers(c, query, 5, |row| {
            let district = districts.entry((row[0], row[1])).or_default();
            (district.last_order, district.order_lines, district.orders) = (row[2], row[3], row[4]);
        })?;
        let query = "SELECT no_w_id, no_d_id, min(no_o_id), max(no_o_id), count(*) FROM new_order \
                     GROUP BY no_w_id, no_d_id";
        for_each_integers(c, query, 5, |row| {
            let district = districts.entry((row[0], row[1])).or_default();
            (district.first_open, district.last_open, district.open_orders) =
                (row[2], row[3], row[4]);
        })?;
        let query = "SELECT ol_w_id, ol_d_id, count(*) FROM order_line GROUP BY ol_w_id, ol_d_id";
        for_each_integers(c, query, 3, |row| {
            districts.entry((row[0], row[1])).or_default().lines = row[2];
        })?;
        for_each_integers(c, "SELECT count(*) FROM history", 1, |row| *payments = row[0])?;
        Ok(content)
    }

    /// The sum of a field over all districts.
    fn sum(&self, field: impl Fn(&DistrictContent) -> i64) -> i64 {
        self.districts.values().map(field).sum()
    }
}

/// Reads the tables and checks them.
pub fn verify(sizes: TpccSizes, c: &mut dyn SqlConnection, done: TpccDone) -> Result<()> {
    let content = TpccContent::read(c)?;
    let districts = u64::from(sizes.warehouses) * DISTRICTS as u64;
    let (warehouses_found, districts_found) = (content.warehouses.len(), content.districts.len());
    ensure!(warehouses_found == sizes.warehouses as usize, "{warehouses_found} warehouses");
    ensure!(districts_found as u64 == districts, "{districts_found} districts");
    for (&warehouse, &ytd) in &content.warehouses {
        let of_warehouse = content.districts.iter().filter(|(key, _)| key.0 == warehouse);
        let sum: i64 = of_warehouse.map(|(_, district)| district.ytd).sum();
        ensure!(ytd == sum, "condition 1: warehouse {warehouse} has {ytd}, its districts {sum}");
    }
    for (key, district) in &content.districts {
        let last = district.next_order - 1;
        let is_last = last == district.last_order
            && (district.open_orders == 0 || last == district.last_open);
        ensure!(is_last, "condition 2: district {key:?}: {district:?}");
        let open = district.last_open - district.first_open + 1;
        let is_dense = district.open_orders == 0 || open == district.open_orders;
        ensure!(is_dense, "condition 3: district {key:?}: {district:?}");
        let has_lines = district.order_lines == district.lines;
        ensure!(has_lines, "condition 4: district {key:?}: {district:?}");
    }
    let customers = (districts * u64::from(sizes.customers)) as i64;
    let first_open = i64::from(sizes.customers) + 1 - i64::from(sizes.first_undelivered());
    let (orders, deliveries) = (done.orders as i64, done.deliveries as i64);
    let open = first_open * districts as i64 + orders - deliveries;
    for (what, found, expected) in [
        ("orders", content.sum(|district| district.orders), customers + orders),
        ("new_order", content.sum(|district| district.open_orders), open),
        ("history", content.payments, customers + done.payments as i64),
    ] {
        ensure!(found == expected, "{what} has {found} rows instead of {expected}");
    }
    Ok(())
}
