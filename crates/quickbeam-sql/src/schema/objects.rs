//! What all objects have: their numbers, and comments.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The number of an object: of a table, index, view or sequence, for example. Never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ObjectId(pub u32);

/// The comments on an object that is no table: that on the object by 0, those on the columns of a
/// view by their numbers from 1 on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Comments(pub BTreeMap<u16, Arc<str>>);
