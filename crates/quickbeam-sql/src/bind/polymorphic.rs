//! Calls of functions with polymorphic and VARIADIC arguments: the types that a call decides.

use std::collections::HashSet;
use std::sync::LazyLock;

use parking_lot::Mutex;

use super::types::common;
use crate::catalog::{Argument, ConcreteTypes, PseudoType, Routine, RoutineResult};
use crate::types::{DataType, ElementType};

/// Returns concrete types that stay until the process ends, since plans refer to them.
pub(super) fn interned(types: ConcreteTypes) -> &'static ConcreteTypes {
    static KNOWN: LazyLock<Mutex<HashSet<&'static ConcreteTypes>>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock();
    if let Some(found) = known.get(&types) {
        return found;
    }
    let made: &'static ConcreteTypes = Box::leak(Box::new(types));
    known.insert(made);
    made
}

/// How a call gives the last argument of a VARIADIC function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VariadicForm {
    /// Element by element.
    Elements,
    /// As `VARIADIC array`.
    Whole,
}

/// What the types of arguments decide.
#[derive(Default)]
struct Decided {
    element: Option<DataType>,
    range: Option<DataType>,
    compatible: Option<DataType>,
}

impl Decided {
    /// Takes note of the type of an argument. Returns `None` if it does not fit.
    fn note(&mut self, pseudo: PseudoType, given: DataType) -> Option<()> {
        let given = given.unconstrained();
        let element = match (pseudo.is_array(), given) {
            (true, DataType::Array(element)) => element.data_type(),
            (true, _) => return None,
            (false, other) => other,
        };
        let is_array = matches!(given, DataType::Array(_));
        match pseudo {
            PseudoType::NonArray | PseudoType::CompatibleNonArray if is_array => return None,
            PseudoType::Enum if given.enumerated().is_none() => return None,
            PseudoType::Range => {
                let kind = given.encoded().filter(|kind| !kind.is_multirange())?;
                let subtype = kind.subtype()?;
                if self.range.replace(given).is_some_and(|known| known != given) {
                    return None;
                }
                return self.note(PseudoType::Element, subtype);
            }
            _ => {}
        }
        if pseudo.is_compatible() {
            self.compatible = Some(match self.compatible {
                Some(known) => common(known, element)?,
                None => element,
            });
            return Some(());
        }
        match self.element.replace(element) {
            Some(known) if !known.is_same_kind(element) => None,
            _ => Some(()),
        }
    }

    /// Returns what a polymorphic type is.
    fn of(&self, pseudo: PseudoType) -> Option<DataType> {
        if pseudo == PseudoType::Range {
            return self.range;
        }
        let element = if pseudo.is_compatible() { self.compatible } else { self.element }?;
        match pseudo.is_array() {
            true => ElementType::new(element).map(DataType::Array),
            false => Some(element),
        }
    }

    fn concrete(&self, argument: &Argument) -> Option<DataType> {
        match argument.pseudo {
            Some(pseudo) => self.of(pseudo),
            None => Some(argument.data_type),
        }
    }
}

/// Returns the types of all arguments and the result of a function, for a call with arguments of
/// these types. Returns `None` if the call does not fit.
pub(super) fn concrete_types(
    routine: &Routine,
    given: &[Option<DataType>],
    form: VariadicForm,
) -> Option<ConcreteTypes> {
    let inputs: Vec<&Argument> = routine.inputs().collect();
    let mut decided = Decided::default();
    for (at, given) in given.iter().enumerate() {
        let argument = inputs.get(at).or(inputs.last())?;
        let (Some(pseudo), Some(given)) = (argument.pseudo, given) else { continue };
        let is_element = argument.variadic && form == VariadicForm::Elements;
        decided.note(if is_element { pseudo.element() } else { pseudo }, *given)?;
    }
    // Arguments that are all untyped literals are texts.
    decided.compatible.get_or_insert(DataType::Text);
    let arguments = routine.arguments.iter().map(|it| decided.concrete(it));
    let arguments = arguments.collect::<Option<Vec<DataType>>>()?;
    let result = match &routine.result {
        RoutineResult::Pseudo(pseudo) => Some(decided.of(*pseudo)?),
        RoutineResult::Value(data_type) => match routine.outputs().next() {
            Some(output) => Some(decided.concrete(output)?),
            None => Some(*data_type),
        },
        _ => None,
    };
    Some(ConcreteTypes { arguments, result, columns: Vec::new() })
}
