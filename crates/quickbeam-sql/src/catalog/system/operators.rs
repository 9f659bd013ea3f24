//! The operators in `pg_operator`, by the functions that `pg_proc` has for them.
//!
//! PostgreSQL calls `int4pl` for `+` of two integers, and lets a statement call it by that name.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::{fixed_text, procedures, type_row};

/// A row of `pg_operator`, as far as a call of its function needs it.
#[derive(Debug)]
pub struct CatalogOperator {
    /// Its name.
    pub symbol: &'static str,
    /// The names of the operands' types; of one operand, if it is a prefix operator.
    pub operands: Vec<&'static str>,
}

static BY_FUNCTION: LazyLock<HashMap<&'static str, CatalogOperator>> = LazyLock::new(|| {
    let names: HashMap<u32, &'static str> = procedures().map(|it| (it.oid, it.name)).collect();
    let operator = |line: &'static str| {
        let fields: Vec<&'static str> = line.split('\t').collect();
        let [_, symbol, _, _, _, _, _, left, right, _, _, _, code, ..] = fields[..] else {
            return None;
        };
        let name = names.get(&code.parse().ok()?)?;
        let operands = [left, right].into_iter().filter(|oid| *oid != "0");
        // Functions of polymorphic types are resolved by their own names.
        let named = |oid: &str| {
            let row = type_row(oid.parse().ok()?)?;
            Some(row.name).filter(|name| !name.starts_with("any"))
        };
        let operands: Option<Vec<_>> = operands.map(named).collect();
        Some((*name, CatalogOperator { symbol, operands: operands? }))
    };
    fixed_text("pg_operator").lines().filter_map(operator).collect()
});

/// Returns the operator that a function of that name computes.
#[must_use]
pub fn operator_of(function: &str) -> Option<&'static CatalogOperator> {
    BY_FUNCTION.get(function)
}

/// Returns whether there is an operator of that name.
#[must_use]
pub fn is_operator(symbol: &str) -> bool {
    BY_FUNCTION.values().any(|known| known.symbol == symbol)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_found_by_their_functions() {
        let plus = operator_of("int4pl").unwrap();
        assert_eq!((plus.symbol, &plus.operands[..]), ("+", &["int4", "int4"][..]));
        let minus = operator_of("int4um").unwrap();
        assert_eq!((minus.symbol, &minus.operands[..]), ("-", &["int4"][..]));
        assert!(operator_of("abs").is_none() && operator_of("array_append").is_none());
    }
}
