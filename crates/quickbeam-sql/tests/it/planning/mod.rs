//! Plans: what EXPLAIN shows, what statistics change, and that every execution is a fresh one.

mod adaptive;
mod computed_indexes;
mod derived_conditions;
mod executions;
mod from_queries;
mod lookups;
mod plan_choices;
mod statistics;
