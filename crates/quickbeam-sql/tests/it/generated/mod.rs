//! Generated statements, compared with a model, with SQLite and between both executions.

mod differential;
mod differential_schemas;
mod model;
mod properties;
mod sqlite;
