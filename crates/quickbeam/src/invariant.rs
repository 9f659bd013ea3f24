//! Assertions of the numbered invariants that the head comments of modules state.
//!
//! Above: every module, and the SQL crate. `invariant!` names the invariant that it checks. The
//! checks run in builds with debug assertions, and in release builds with the feature `invariants`,
//! such as simulations; other release builds do not evaluate them. The tidy test `invariants` finds
//! numbers without a check.

/// True in builds that check invariants.
pub const CHECKS_INVARIANTS: bool = cfg!(any(debug_assertions, feature = "invariants"));

/// Checks a numbered invariant: `invariant!(BTREE_1, condition, "details {}", …)`. Panics if the
/// condition is false, in builds that check.
#[doc(hidden)]
#[macro_export]
macro_rules! invariant {
    ($number:ident, $condition:expr, $($details:tt)+) => {
        if $crate::CHECKS_INVARIANTS {
            assert!(
                $condition,
                "invariant {} is broken: {}",
                stringify!($number),
                format_args!($($details)+)
            );
        }
    };
}

#[cfg(test)]
mod tests {
    #[test]
    #[should_panic(expected = "invariant LOG_2 is broken: 5 bytes")]
    fn broken_invariant_panics_with_its_number() {
        invariant!(LOG_2, 5 < 3, "{} bytes", 5);
    }
}
