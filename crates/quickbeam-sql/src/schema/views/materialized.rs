//! Materialized views: tables whose rows are those of a query when it was last run.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::schema::objects::ObjectId;

/// What makes a table a materialized view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Materialized {
    /// The text of its query.
    pub query: Arc<str>,
    /// Tables and views that it reads.
    pub depends_on: Vec<ObjectId>,
    /// Whether its query was run: without that, it cannot be read.
    pub is_populated: bool,
}

/// CREATE MATERIALIZED VIEW.
#[derive(Clone, Debug)]
pub struct NewMaterialized {
    /// The text of its query.
    pub query: Arc<str>,
    /// WITH DATA.
    pub is_populated: bool,
}
