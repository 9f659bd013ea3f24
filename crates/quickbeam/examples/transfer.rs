//! Moves money between accounts from several threads: serializable transactions with retries.
//!
//! `cargo run -p quickbeam --example transfer`

#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]

use std::error::Error;
use std::thread;

use quickbeam::{Database, Environment, Options, ReadTransaction, Result, Transaction};

const ACCOUNTS: u32 = 10;
const OPENING_BALANCE: u64 = 100;

fn balance(accounts: &Database, transaction: &impl ReadTransaction, id: u32) -> Result<u64> {
    let bytes = accounts.get(transaction, &id.to_be_bytes())?;
    Ok(bytes.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_be_bytes))
}

fn set_balance(accounts: &Database, transaction: &Transaction, id: u32, to: u64) -> Result<()> {
    accounts.put(transaction, &id.to_be_bytes(), &to.to_be_bytes())
}

/// Why a transfer is not made. A closure of `transact_with` may return its own errors.
#[derive(Debug)]
enum TransferError {
    TooLittle,
    Database(quickbeam::Error),
}

impl From<quickbeam::Error> for TransferError {
    fn from(error: quickbeam::Error) -> Self {
        TransferError::Database(error)
    }
}

/// Moves `amount` from one account to the other.
fn transfer(
    environment: &Environment,
    accounts: &Database,
    from: u32,
    to: u32,
    amount: u64,
) -> std::result::Result<(), TransferError> {
    // The closure may run more than once, so it has no effects but those in the transaction.
    environment.transact_with(|transaction| {
        let payer = balance(accounts, transaction, from)?;
        if from == to || payer < amount {
            return Err(TransferError::TooLittle);
        }
        let payee = balance(accounts, transaction, to)?;
        set_balance(accounts, transaction, from, payer - amount)?;
        set_balance(accounts, transaction, to, payee + amount)?;
        Ok(())
    })
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let environment = Environment::open(directory.path(), Options::default())?;
    let accounts = environment.create_database("accounts")?;
    environment.transact(|transaction| {
        (0..ACCOUNTS).try_for_each(|id| set_balance(&accounts, transaction, id, OPENING_BALANCE))
    })?;

    let transferred: Result<Vec<u32>> = thread::scope(|scope| {
        let worker = |thread: u32| {
            let (environment, accounts) = (&environment, &accounts);
            scope.spawn(move || {
                let mut done = 0;
                for n in 0..25 {
                    let (from, to) = ((thread + n) % ACCOUNTS, (3 * n + 1) % ACCOUNTS);
                    match transfer(environment, accounts, from, to, 30) {
                        Ok(()) => done += 1,
                        Err(TransferError::TooLittle) => {}
                        Err(TransferError::Database(error)) => return Err(error),
                    }
                }
                Ok(done)
            })
        };
        let workers: Vec<_> = (0..4).map(worker).collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker does not panic")).collect()
    });
    println!("transfers of each thread: {:?}", transferred?);

    let snapshot = environment.begin_read()?;
    let balances = (0..ACCOUNTS).map(|id| balance(&accounts, &snapshot, id));
    let balances = balances.collect::<Result<Vec<u64>>>()?;
    println!("balances: {balances:?}");
    assert_eq!(balances.iter().sum::<u64>(), u64::from(ACCOUNTS) * OPENING_BALANCE);
    Ok(())
}
