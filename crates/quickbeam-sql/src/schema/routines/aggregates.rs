//! Aggregates that statements have made.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use super::{PseudoType, Routine, TypeKey, is_false};
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

    /// Returns the functions that it calls, and of each whether the arguments follow the state.
    pub fn functions(&self) -> impl Iterator<Item = (&FunctionName, bool)> {
        std::iter::once((&self.step, true)).chain(self.finish.iter().map(|it| (it, self.extra)))
    }

    /// Returns whether an aggregate of these arguments calls `function`, which is one of the
    /// functions of its name.
    pub fn calls(&self, inputs: &[TypeKey], function: &Routine, named: &[Arc<Routine>]) -> bool {
        let name = (function.schema.clone(), function.name.clone());
        self.functions().filter(|(called, _)| **called == name).any(|(_, takes_inputs)| {
            let mut types: Vec<TypeKey> = vec![(self.state, self.pseudo, None)];
            types.extend(inputs.iter().filter(|_| takes_inputs).cloned());
            let exact = named.iter().find(|it| it.signature_key() == types);
            match exact {
                Some(exact) => exact.id == function.id,
                None => function.inputs().count() == types.len() || function.is_variadic(),
            }
        })
    }
}
