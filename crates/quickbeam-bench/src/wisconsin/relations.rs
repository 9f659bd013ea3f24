//! The relations of the Wisconsin benchmark, computed from their definition (D. J. DeWitt, "The
//! Wisconsin Benchmark: Past, Present, and Future", section 2).

use anyhow::Result;

use crate::sql::{SqlConnection, Value};

/// Whole numbers of a tuple.
pub const NUMBERS: usize = 13;
/// Texts of a tuple, after its numbers.
pub const TEXTS: usize = 3;
/// Positions of the numbers.
pub mod column {
    #![allow(missing_docs)]
    pub const UNIQUE1: usize = 0;
    pub const UNIQUE2: usize = 1;
    pub const ONE_PERCENT: usize = 6;
    pub const UNIQUE3: usize = 10;
}

/// One tuple.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuple {
    /// unique1, unique2, two, four, ten, twenty, onePercent, tenPercent, twentyPercent,
    /// fiftyPercent, unique3, evenOnePercent, oddOnePercent.
    pub numbers: [i32; NUMBERS],
    /// stringu1, stringu2, string4.
    pub texts: [String; TEXTS],
}

/// Seven letters to the base of 26, filled up to 52 characters.
fn letters(mut number: i32) -> String {
    let mut letters = [b'A'; 7];
    for letter in letters.iter_mut().rev() {
        *letter += (number % 26) as u8;
        number /= 26;
    }
    let mut text: String = letters.map(char::from).iter().collect();
    text.push_str(&"x".repeat(45));
    text
}

impl Tuple {
    /// The tuple with these two keys.
    pub fn new(unique1: i32, unique2: i32) -> Tuple {
        let one_percent = unique1 % 100;
        let four = ["AAAA", "HHHH", "OOOO", "VVVV"][unique2 as usize % 4];
        Tuple {
            numbers: [
                unique1,
                unique2,
                unique1 % 2,
                unique1 % 4,
                unique1 % 10,
                unique1 % 20,
                one_percent,
                unique1 % 10,
                unique1 % 5,
                unique1 % 2,
                unique1,
                one_percent * 2,
                one_percent * 2 + 1,
            ],
            texts: [letters(unique1), letters(unique2), format!("{four}{}", "x".repeat(48))],
        }
    }
}

/// All tuples of a relation of `size`, in the order of unique2.
pub fn relation(size: u32) -> Vec<Tuple> {
    permutation(size).zip(0..).map(|(unique1, unique2)| Tuple::new(unique1, unique2)).collect()
}

/// The numbers below `size` in the order in which a multiplicative generator modulo a prime above
/// `size` gives them, numbers above `size` left out, less one.
fn permutation(size: u32) -> impl Iterator<Item = i32> {
    let (generator, prime) = match size {
        1000 => (279, 1009),
        10_000 => (2969, 10_007),
        _ => {
            let prime = (u64::from(size) + 1..).find(|&n| is_prime(n)).unwrap_or(2);
            (primitive_root(prime), prime)
        }
    };
    let mut seed = 1;
    (1..prime)
        .map(move |_| {
            seed = seed * generator % prime;
            seed
        })
        .filter(move |&number| number <= size.into())
        .map(|number| (number - 1) as i32)
}

fn is_prime(number: u64) -> bool {
    number >= 2 && (2..).take_while(|d| d * d <= number).all(|d| !number.is_multiple_of(d))
}

fn power(mut base: u64, mut exponent: u64, modulus: u64) -> u64 {
    let mut product = 1;
    while exponent > 0 {
        if exponent & 1 == 1 {
            product = product * base % modulus;
        }
        base = base * base % modulus;
        exponent >>= 1;
    }
    product
}

/// A number whose powers are all numbers from 1 to below the prime; not a small one, whose powers
/// would begin in order.
fn primitive_root(prime: u64) -> u64 {
    let order = prime - 1;
    let factors: Vec<u64> =
        (2..).take_while(|d| d * d <= order).filter(|d| order.is_multiple_of(*d)).collect();
    let factors: Vec<u64> = factors
        .iter()
        .flat_map(|&d| [d, order / d])
        .chain([order])
        .filter(|&d| is_prime(d))
        .collect();
    let is_root = |g: &u64| factors.iter().all(|factor| power(*g, order / factor, prime) != 1);
    (prime * 3 / 10 + 1..prime).chain(1..prime).find(is_root).unwrap_or(1)
}

/// Definition of a relation; `key` is written after `unique2`'s type.
pub fn definition(name: &str, key: &str) -> String {
    let numbers = [
        "two",
        "four",
        "ten",
        "twenty",
        "onePercent",
        "tenPercent",
        "twentyPercent",
        "fiftyPercent",
        "unique3",
        "evenOnePercent",
        "oddOnePercent",
    ];
    let numbers: String = numbers.iter().map(|n| format!("{n} INTEGER NOT NULL, ")).collect();
    format!(
        "CREATE TABLE {name} (unique1 INTEGER NOT NULL, unique2 INTEGER NOT NULL{key}, {numbers}stringu1 CHAR(52) \
         NOT NULL, stringu2 CHAR(52) NOT NULL, string4 CHAR(52) NOT NULL)"
    )
}

/// Fills the relation `name`.
pub fn load(connection: &mut dyn SqlConnection, name: &str, tuples: &[Tuple]) -> Result<()> {
    connection.load(name, NUMBERS + TEXTS, &mut |add| {
        tuples.iter().try_for_each(|tuple| {
            let mut row = [Value::Integer(0); NUMBERS + TEXTS];
            for (value, number) in row.iter_mut().zip(tuple.numbers) {
                *value = Value::Integer(number);
            }
            for (value, text) in row[NUMBERS..].iter_mut().zip(&tuple.texts) {
                *value = Value::Text(text);
            }
            add(&row)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_is_a_permutation_that_looks_random() {
        for size in [1, 2, 10, 11, 97, 100, 997, 1000, 1234, 10_000, 50_000] {
            let order: Vec<i32> = permutation(size).collect();
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..size as i32), "size {size}");
            let steps = order.windows(2).filter(|pair| pair[1] == pair[0] + 1).count();
            assert!(size < 97 || steps * 10 < size as usize, "size {size}: {steps} steps of one");
        }
    }

    #[test]
    fn a_tuple_has_the_columns_of_its_definition() {
        let tuple = Tuple::new(1234, 27);
        assert_eq!(tuple.numbers, [1234, 27, 0, 2, 4, 14, 34, 4, 4, 0, 1234, 68, 69]);
        assert!(tuple.texts.iter().all(|text| text.len() == 52));
        assert!(tuple.texts[0].starts_with("AAAABVMxx"), "1234 = 1 * 676 + 21 * 26 + 12");
        assert!(tuple.texts[1].starts_with("AAAAABBxx") && tuple.texts[2].starts_with("VVVVxx"));
    }

    #[test]
    fn groups_are_even() {
        let tuples = relation(1000);
        for group in 0..100 {
            let of_group = tuples.iter().filter(|t| t.numbers[column::ONE_PERCENT] == group);
            assert_eq!(of_group.count(), 10);
        }
    }
}
