//! Clauses of queries that the parser does not know, in its form.

mod clauses;
mod empty_lists;
mod markers;
mod nested_items;
mod nested_queries;
mod quantified;
mod values_in_from;
mod windows;

use sqlparser::tokenizer::TokenWithSpan;

pub use clauses::{
    ALL_FIELDS, arguments_of, current_of, is_rows_from, limit_with_ties, restore_row_stars,
    row_call, symmetric_bound,
};
pub use markers::{
    CycleClause, Traversal, is_distinct_sets, join_alias, restore_query_markers, traversal,
};
pub use nested_items::{NESTED_SETS, is_no_keys, listed_columns};
pub use quantified::quantified;
pub use values_in_from::value_in_from;
pub use windows::{CURRENT_ROW, EXCLUSION, UNBOUNDED, restore_exclusions};

/// Returns the tokens of a text with all these clauses in the parser's form.
pub fn adapted(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let tokens = quantified::adapted(tokens);
    let tokens = nested_items::adapted(values_in_from::adapted(tokens));
    let tokens = nested_queries::adapted(empty_lists::adapted(tokens));
    let tokens = clauses::adapted(windows::adapted(tokens));
    markers::with_aliases(markers::adapted(tokens))
}
