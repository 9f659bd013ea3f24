//! The random inputs of TPC-C's transactions: clauses 2.1.6 (non-uniform numbers), 2.4 to 2.8 (the
//! transactions) and 4.3.2 (last names) of the specification, revision 5.11.

use super::data::{DISTRICTS, TpccSizes};
use crate::workload::random::Random;

/// The constants C of the non-uniform numbers. The difference of those for last names is one that
/// clause 2.1.6.1 permits.
const LAST_NAME_C_LOAD: u64 = 23;
const LAST_NAME_C_RUN: u64 = 108;
const CUSTOMER_C: u64 = 259;
const ITEM_C: u64 = 7911;

/// Most lines of an order.
const MOST_LINES: u64 = 15;

/// A non-uniform number from `low` to `high`.
fn non_uniform(random: &mut Random, a: u64, c: u64, low: u64, high: u64) -> u64 {
    let (first, second) = (random.below(a + 1), low + random.below(high - low + 1));
    ((first | second) + c) % (high - low + 1) + low
}

/// The largest number of ones in binary that is not above `bound`.
fn ones(bound: u64) -> u64 {
    (1 << bound.max(1).ilog2().max(1)) - 1
}

/// A last name.
pub fn last_name(number: u64) -> String {
    const SYLLABLES: [&str; 10] =
        ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
    [100, 10, 1].map(|place| SYLLABLES[(number / place % 10) as usize]).concat()
}

/// The number of a customer's last name when the tables are filled; customers count from 1.
pub fn loaded_name(customer: u64, random: &mut Random) -> u64 {
    match customer {
        1..=1000 => customer - 1,
        _ => non_uniform(random, 255, LAST_NAME_C_LOAD, 0, 999),
    }
}

/// A customer as a transaction names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CustomerChoice {
    /// By number.
    Id(i32),
    /// By last name; of several the middle one in the order of first names.
    LastName(String),
}

/// A district of a warehouse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DistrictKey {
    /// The warehouse.
    pub warehouse: i32,
    /// The district in it.
    pub district: i32,
}

/// A line of a new order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderedItem {
    /// The item; one that is not there makes the order roll back.
    pub item: i32,
    /// The warehouse that it comes from.
    pub supplier: i32,
    /// How many.
    pub quantity: i32,
}

/// The inputs of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TpccInputs {
    /// A customer orders items.
    NewOrder {
        /// Where.
        at: DistrictKey,
        /// Who.
        customer: i32,
        /// What, in the order of the stock's key.
        lines: Vec<OrderedItem>,
    },
    /// A customer pays.
    Payment {
        /// Where.
        at: DistrictKey,
        /// The customer's district.
        home: DistrictKey,
        /// Who.
        customer: CustomerChoice,
        /// How many cents.
        cents: i64,
    },
    /// The last order of a customer.
    OrderStatus {
        /// The customer's district.
        at: DistrictKey,
        /// Who.
        customer: CustomerChoice,
    },
    /// The oldest order of each district is delivered.
    Delivery {
        /// Where.
        warehouse: i32,
        /// By whom.
        carrier: i32,
    },
    /// Items of the last orders that are low in stock.
    StockLevel {
        /// Where.
        at: DistrictKey,
        /// What is low.
        threshold: i32,
    },
}

/// The transactions, in the order of the specification.
pub const NAMES: [&str; 5] = ["new-order", "payment", "order-status", "delivery", "stock-level"];
/// The name of the rate that counts: orders that were committed.
pub const HEADLINE: &str = "new orders a minute";
/// How many of a hundred each is.
pub const MIX: [usize; 5] = [45, 43, 4, 4, 4];

/// Draws the inputs of one terminal.
pub struct TpccDraw {
    sizes: TpccSizes,
    warehouse: i32,
    random: Random,
    /// Transactions to come, by their places in [`NAMES`].
    deck: Vec<usize>,
}

impl TpccDraw {
    /// A terminal of a warehouse.
    pub fn new(sizes: TpccSizes, warehouse: i32, seed: u64) -> TpccDraw {
        TpccDraw { sizes, warehouse, random: Random::new(seed), deck: Vec::new() }
    }

    /// The next transaction: its place in [`NAMES`], and its inputs. Each hundred has the mix.
    pub fn draw_transaction(&mut self) -> (usize, TpccInputs) {
        if self.deck.is_empty() {
            for (kind, count) in MIX.into_iter().enumerate() {
                self.deck.extend(std::iter::repeat_n(kind, count));
            }
        }
        let place = self.random.below(self.deck.len() as u64) as usize;
        let kind = self.deck.swap_remove(place);
        let at = self.district(self.warehouse);
        let inputs = match kind {
            0 => self.new_order(at),
            1 => self.payment(at),
            2 => TpccInputs::OrderStatus { at, customer: self.choice() },
            3 => TpccInputs::Delivery { warehouse: self.warehouse, carrier: self.from(1, 10) },
            _ => TpccInputs::StockLevel { at, threshold: self.from(10, 20) },
        };
        (kind, inputs)
    }

    /// A whole number from `low` to `high`.
    fn from(&mut self, low: i32, high: i32) -> i32 {
        low + self.random.below((high - low + 1) as u64) as i32
    }

    fn is_in_hundred(&mut self, count: u64) -> bool {
        self.random.below(100) < count
    }

    fn district(&mut self, warehouse: i32) -> DistrictKey {
        DistrictKey { warehouse, district: self.from(1, DISTRICTS) }
    }

    /// Another warehouse, if there is one.
    fn other_warehouse(&mut self) -> i32 {
        let count = self.sizes.warehouses as i32;
        if count == 1 {
            return self.warehouse;
        }
        let other = self.from(1, count - 1);
        other + i32::from(other >= self.warehouse)
    }

    fn customer(&mut self) -> i32 {
        let customers = u64::from(self.sizes.customers);
        non_uniform(&mut self.random, ones(customers * 10 / 29), CUSTOMER_C, 1, customers) as i32
    }

    fn choice(&mut self) -> CustomerChoice {
        if !self.is_in_hundred(60) {
            return CustomerChoice::Id(self.customer());
        }
        let highest = u64::from(self.sizes.customers).min(1000) - 1;
        let number = non_uniform(&mut self.random, 255, LAST_NAME_C_RUN, 0, highest);
        CustomerChoice::LastName(last_name(number))
    }

    fn new_order(&mut self, at: DistrictKey) -> TpccInputs {
        let items = u64::from(self.sizes.items);
        let count = 5 + self.random.below(MOST_LINES - 4);
        let mut lines: Vec<OrderedItem> = (0..count)
            .map(|_| {
                let item = non_uniform(&mut self.random, ones(items / 12), ITEM_C, 1, items) as i32;
                let is_remote = self.is_in_hundred(1);
                let supplier = if is_remote { self.other_warehouse() } else { self.warehouse };
                OrderedItem { item, supplier, quantity: self.from(1, 10) }
            })
            .collect();
        if self.is_in_hundred(1)
            && let Some(last) = lines.last_mut()
        {
            last.item = items as i32 + 1;
        }
        // Two orders that take the same items do so in the same order. An item that is not there
        // is the last one.
        lines.sort_by_key(|line| (line.item, line.supplier));
        TpccInputs::NewOrder { at, customer: self.customer(), lines }
    }

    fn payment(&mut self, at: DistrictKey) -> TpccInputs {
        let home = if self.is_in_hundred(85) {
            at
        } else {
            let other = self.other_warehouse();
            self.district(other)
        };
        let customer = self.choice();
        let cents = i64::from(self.from(100, 500_000));
        TpccInputs::Payment { at, home, customer, cents }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: TpccSizes = TpccSizes { warehouses: 3, items: 100_000, customers: 3000 };

    #[test]
    fn the_numbers_are_the_specifications() {
        assert_eq!((ones(3000 * 10 / 29), ones(100_000 / 12)), (1023, 8191));
        assert_eq!((last_name(371), last_name(0)), ("PRICALLYOUGHT".into(), "BARBARBAR".into()));
        let delta = LAST_NAME_C_RUN - LAST_NAME_C_LOAD;
        assert!((65..=119).contains(&delta) && delta != 96 && delta != 112);
    }

    #[test]
    fn each_hundred_transactions_have_the_mix() {
        let mut draw = TpccDraw::new(FULL, 2, 7);
        for _ in 0..3 {
            let mut counts = [0; 5];
            (0..100).for_each(|_| counts[draw.draw_transaction().0] += 1);
            assert_eq!(counts, MIX);
        }
    }

    #[test]
    fn inputs_are_in_their_ranges() {
        let mut draw = TpccDraw::new(FULL, 2, 11);
        let (mut orders, mut rolled_back, mut remote, mut named, mut chosen) = (0, 0, 0, 0, 0);
        for _ in 0..20_000 {
            let mut note = |customer: &CustomerChoice| {
                chosen += 1;
                match customer {
                    CustomerChoice::Id(id) => assert!((1..=3000).contains(id)),
                    CustomerChoice::LastName(_) => named += 1,
                }
            };
            match draw.draw_transaction().1 {
                TpccInputs::NewOrder { at, customer, lines } => {
                    orders += 1;
                    assert!(at.warehouse == 2 && (1..=10).contains(&at.district));
                    assert!((1..=3000).contains(&customer) && (5..=15).contains(&lines.len()));
                    rolled_back += usize::from(lines.last().unwrap().item == 100_001);
                    assert!(lines.iter().all(|line| (1..=100_001).contains(&line.item)));
                    assert!(lines.iter().all(|line| (1..=3).contains(&line.supplier)));
                }
                TpccInputs::Payment { at, home, customer, cents } => {
                    remote += usize::from(home.warehouse != at.warehouse);
                    assert!((100..=500_000).contains(&cents));
                    note(&customer);
                }
                TpccInputs::OrderStatus { customer, .. } => note(&customer),
                TpccInputs::Delivery { carrier, .. } => assert!((1..=10).contains(&carrier)),
                TpccInputs::StockLevel { threshold, .. } => {
                    assert!((10..=20).contains(&threshold));
                }
            }
        }
        assert_eq!(orders, 9000);
        assert!((45..150).contains(&rolled_back), "{rolled_back} of 9000 roll back");
        assert!((1100..1500).contains(&remote), "{remote} of 8600 payments are remote");
        let share = f64::from(named) / f64::from(chosen);
        assert!((0.58..0.62).contains(&share), "{share} of the customers are named");
    }
}
