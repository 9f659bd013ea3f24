//! Aggregates that statements have made.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use super::{PseudoType, is_false};
use crate::types::DataType;

/// The name of a function: its schema, and its own.
pub type FunctionName = (SmolStr, SmolStr);

/// How an aggregate computes its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AggregateDefinition {
    /// SFUNC: the function of the state and the arguments.
    pub step: FunctionName,
    /// STYPE: the type of the state.
    pub state: DataType,
    /// The type of the state, if calls decide it. Then `state` is TEXT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pseudo: Option<PseudoType>,
    /// INITCOND: the text of the first state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial: Option<Arc<str>>,
    /// FINALFUNC: the function of the last state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<FunctionName>,
    /// FINALFUNC_EXTRA: NULLs for the arguments follow the state.
    #[serde(default, skip_serializing_if = "is_false")]
    pub extra: bool,
}

impl AggregateDefinition {
    /// Returns the name of the type of the state.
    #[must_use]
    pub fn state_name(&self) -> String {
        self.pseudo.map_or_else(|| self.state.to_string(), |pseudo| pseudo.name().to_owned())
    }

    /// Returns the functions that it calls.
    pub fn functions(&self) -> impl Iterator<Item = &FunctionName> {
        std::iter::once(&self.step).chain(&self.finish)
    }
}
