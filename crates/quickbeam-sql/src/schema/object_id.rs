//! The numbers of objects.

use serde::{Deserialize, Serialize};

/// The number of an object: of a table, index, view or sequence, for example. Never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ObjectId(pub u32);
