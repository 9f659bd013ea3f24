//! The bank of TPC-B: its tables, its rows, one transaction's inputs, and what must hold after
//! any number of transactions.
//!
//! Standard Specification, Revision 2.0: clause 1.2 (the transaction), 2.4 (consistency), 3.2 (rows
//! of at least 100 bytes, history at least 50), 5.3 (random inputs).

use std::collections::HashMap;

use anyhow::{Result, ensure};

use crate::sql::answers::for_each_integers;
use crate::sql::{SqlConnection, Value};
use crate::workload::random::Random;

/// How many rows the tables have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bank {
    /// Branches.
    pub branches: u32,
    /// Tellers of each branch.
    pub tellers: u32,
    /// Accounts of each branch.
    pub accounts: u32,
}

/// Definitions of the tables.
pub const TABLES: [&str; 4] = [
    "CREATE TABLE branches (id INTEGER NOT NULL PRIMARY KEY, balance BIGINT NOT NULL, filler CHAR(88) NOT NULL)",
    "CREATE TABLE tellers (id INTEGER NOT NULL PRIMARY KEY, branch INTEGER NOT NULL, balance BIGINT NOT NULL, \
     filler CHAR(84) NOT NULL)",
    "CREATE TABLE accounts (id INTEGER NOT NULL PRIMARY KEY, branch INTEGER NOT NULL, balance BIGINT NOT NULL, \
     filler CHAR(84) NOT NULL)",
    "CREATE TABLE history (teller INTEGER NOT NULL, branch INTEGER NOT NULL, account INTEGER NOT NULL, \
     delta BIGINT NOT NULL, mtime BIGINT NOT NULL, filler CHAR(22) NOT NULL)",
];

/// What fills a row of history up.
pub const HISTORY_FILLER: &str = "hhhhhhhhhhhhhhhhhhhhhh";

/// The largest amount of a transaction, either way.
const DELTA: u64 = 999_999;

/// The inputs of one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inputs {
    /// The teller.
    pub teller: i32,
    /// The teller's branch.
    pub branch: i32,
    /// The account, of this branch or of another one.
    pub account: i32,
    /// The amount.
    pub delta: i64,
}

impl Bank {
    /// The paper's: 1,000 branches, 10,000 tellers, 100,000 accounts.
    pub const PAPERS: Bank = Bank { branches: 1000, tellers: 10, accounts: 100 };

    /// Accounts of all branches.
    pub fn all_accounts(&self) -> u32 {
        self.branches * self.accounts
    }

    /// Fills the tables.
    pub fn load(&self, connection: &mut dyn SqlConnection) -> Result<()> {
        let filler = "f".repeat(88);
        connection.load("branches", 3, &mut |add| {
            (0..self.branches as i32).try_for_each(|id| {
                add(&[Value::Integer(id), Value::Bigint(0), Value::Text(&filler)])
            })
        })?;
        for (table, each) in [("tellers", self.tellers), ("accounts", self.accounts)] {
            connection.load(table, 4, &mut |add| {
                (0..(self.branches * each) as i32).try_for_each(|id| {
                    let branch = Value::Integer(id / each as i32);
                    add(&[Value::Integer(id), branch, Value::Bigint(0), Value::Text(&filler[..84])])
                })
            })?;
        }
        Ok(())
    }

    /// Draws inputs: any teller; an account of the teller's branch with a chance of 85 %, else of
    /// any other branch.
    pub fn draw(&self, random: &mut Random) -> Inputs {
        let teller = random.below((self.branches * self.tellers).into());
        let branch = teller / u64::from(self.tellers);
        let home = self.branches == 1 || random.below(100) < 85;
        let accounts_branch = match home {
            true => branch,
            false => {
                let other = random.below(u64::from(self.branches) - 1);
                other + u64::from(other >= branch)
            }
        };
        let account =
            accounts_branch * u64::from(self.accounts) + random.below(self.accounts.into());
        let delta = random.below(2 * DELTA + 1) as i64 - DELTA as i64;
        Inputs { teller: teller as i32, branch: branch as i32, account: account as i32, delta }
    }

    /// Reads the whole bank and checks that every balance is the sum of the history's deltas, that
    /// every branch has what its tellers have, and that each transaction of `tally` left its mark.
    pub fn verify(&self, connection: &mut dyn SqlConnection, tally: Tally) -> Result<()> {
        let mut by_teller: HashMap<i64, i64> = HashMap::new();
        let mut by_branch: HashMap<i64, i64> = HashMap::new();
        let mut by_account: HashMap<i64, i64> = HashMap::new();
        let mut found = Tally::default();
        let mut strangers = 0;
        let per_branch = i64::from(self.tellers);
        for_each_integers(
            connection,
            "SELECT teller, branch, account, delta FROM history",
            4,
            |row| {
                *by_teller.entry(row[0]).or_default() += row[3];
                *by_branch.entry(row[1]).or_default() += row[3];
                *by_account.entry(row[2]).or_default() += row[3];
                found.add(row[3]);
                strangers += u32::from(row[0] / per_branch != row[1]);
            },
        )?;
        ensure!(found == tally, "history has {found:?}, {tally:?} was committed");
        ensure!(strangers == 0, "{strangers} rows of history have a teller of another branch");
        let mut sums = Vec::new();
        for (table, rows, expected) in [
            ("branches", self.branches, by_branch),
            ("tellers", self.branches * self.tellers, by_teller),
            ("accounts", self.all_accounts(), by_account),
        ] {
            let (mut count, mut sum, mut wrong) = (0, 0, 0);
            for_each_integers(connection, &format!("SELECT id, balance FROM {table}"), 2, |row| {
                count += 1;
                sum += row[1];
                wrong += u32::from(expected.get(&row[0]).copied().unwrap_or_default() != row[1]);
            })?;
            ensure!(count == rows, "{table} has {count} rows instead of {rows}");
            ensure!(
                wrong == 0,
                "{wrong} rows of {table} have a balance that is not their history's"
            );
            sums.push(sum);
        }
        ensure!(sums.iter().all(|sum| *sum == tally.sum), "sums {sums:?} are not {}", tally.sum);
        Ok(())
    }
}

/// How many transactions were committed, and the sum of their amounts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Transactions.
    pub count: u64,
    /// Sum of their amounts.
    pub sum: i64,
}

impl Tally {
    /// Takes in a transaction with this amount.
    pub fn add(&mut self, delta: i64) {
        self.count += 1;
        self.sum += delta;
    }

    /// Takes in another tally.
    pub fn merge(&mut self, other: Tally) {
        self.count += other.count;
        self.sum += other.sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_the_specifications() {
        let bank = Bank::PAPERS;
        let mut random = Random::new(3);
        let (mut home, mut tellers) = (0, vec![0u32; 10_000]);
        let draws = 100_000;
        for _ in 0..draws {
            let inputs = bank.draw(&mut random);
            assert!((0..10_000).contains(&inputs.teller) && (0..100_000).contains(&inputs.account));
            assert_eq!(inputs.branch, inputs.teller / 10);
            assert!(inputs.delta.unsigned_abs() <= DELTA);
            home += u32::from(inputs.account / 100 == inputs.branch);
            tellers[inputs.teller as usize] += 1;
        }
        assert!((84_500..85_500).contains(&home), "{home} of {draws} accounts are at home");
        assert!(tellers.iter().all(|&count| count < 50), "tellers are drawn evenly");
    }

    #[test]
    fn a_single_branch_has_all_accounts_at_home() {
        let bank = Bank { branches: 1, tellers: 2, accounts: 3 };
        let mut random = Random::new(1);
        for _ in 0..100 {
            let inputs = bank.draw(&mut random);
            assert!(inputs.branch == 0 && inputs.teller < 2 && inputs.account < 3);
        }
    }
}
