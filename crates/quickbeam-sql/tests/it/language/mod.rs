//! The SQL language, statement by statement: answers, errors and their positions.

mod copy;
mod definitions;
mod hostile;
mod positions;
mod registered_functions;
mod roles;
mod routines;
mod scripts;
mod settings;
mod sql_basics;
mod sql_queries;
