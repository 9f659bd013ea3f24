//! Generated statements, compared with a model, with SQLite, between both executions and between
//! plans.

mod collated_indexes;
mod decimal_columns;
mod differential;
mod differential_schemas;
mod from_queries;
mod inverted_indexes;
mod model;
mod nested_keys;
mod planner_variants;
mod properties;
mod sqlite;
