//! Overload resolution: which function or operator of the catalog a call means.
//!
//! The rules are those of PostgreSQL's chapter "Type Conversion": exact matches first, then the
//! candidates with the most exact and then the most preferred argument types, and at last a guess
//! from the type category of untyped literals.

pub(in crate::bind) mod catalog_functions;

use crate::bind::expression::system_types::name_fields;
use crate::bind::types::undefined::{many_functions, many_operators, no_function, no_operator};
use crate::bind::{Binder, Typed};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{
    Builtin, Expr, Function, Implementation, TextPosition, VARIADIC_PREFIX, overloads,
};
use crate::types::{CastContext, DataType, EncodedKind as K, cast_context};

/// What is called by its argument types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OverloadKind {
    /// An operator.
    Operator,
    /// A function.
    Function,
}

/// A group of types among which literals prefer one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Category {
    Boolean,
    Number,
    Text,
    DateTime,
    Span,
    Array,
    Network,
    Bits,
    Range,
    Other,
}

fn category(data_type: DataType) -> Category {
    match data_type {
        DataType::Boolean => Category::Boolean,
        known if known.is_numeric() => Category::Number,
        known if known.is_text() => Category::Text,
        DataType::Date | DataType::Time | DataType::Timestamp | DataType::TimestampTz => {
            Category::DateTime
        }
        DataType::Interval => Category::Span,
        DataType::Array(_) => Category::Array,
        DataType::Encoded(encoded) => match encoded.kind() {
            K::TimeTz => Category::DateTime,
            K::Inet | K::Cidr => Category::Network,
            K::Bit | K::Varbit => Category::Bits,
            kind if kind.subtype().is_some() => Category::Range,
            _ => Category::Other,
        },
        _ => Category::Other,
    }
}

/// Returns whether PostgreSQL has two types in one category, so that it tries to convert one to the
/// other.
pub(in crate::bind) fn is_same_category(a: DataType, b: DataType) -> bool {
    let is_user_defined =
        |known: DataType| known.record().is_none() && known.encoded() != Some(K::Enum);
    let number = |known: DataType| known.is_object_number() || known.is_numeric();
    match (category(a), category(b)) {
        _ if number(a) || number(b) => number(a) && number(b),
        (Category::Other, Category::Other) => is_user_defined(a) && is_user_defined(b),
        (a, b) => a == b,
    }
}

/// Returns whether the type is the preferred one of its category.
fn is_preferred(data_type: DataType) -> bool {
    matches!(
        data_type,
        DataType::Boolean
            | DataType::Double
            | DataType::Text
            | DataType::TimestampTz
            | DataType::Interval
    ) || matches!(data_type.encoded(), Some(K::Inet | K::Varbit))
}

fn is_castable(from: Option<DataType>, to: DataType) -> bool {
    from.is_none_or(|from| cast_context(from, to) == Some(CastContext::Implicit))
}

fn is_exact(from: Option<DataType>, to: DataType) -> bool {
    from.is_some_and(|from| from.is_same_kind(to))
}

/// Returns how far a type is from that of an argument: 0 for the same type; `None` if it does not
/// fit.
pub(in crate::bind) fn distance(from: DataType, to: DataType) -> Option<usize> {
    match is_exact(Some(from), to) {
        true => Some(0),
        false => is_castable(Some(from), to).then(|| if is_preferred(to) { 1 } else { 2 }),
    }
}

/// The result of a resolution.
enum Resolution {
    One(&'static Builtin),
    None,
    Ambiguous,
}

/// Keeps the candidates with the highest score.
fn keep_best(candidates: &mut Vec<&'static Builtin>, score: impl Fn(&'static Builtin) -> usize) {
    let best = candidates.iter().map(|candidate| score(candidate)).max().unwrap_or(0);
    candidates.retain(|candidate| score(candidate) == best);
}

/// Keeps the candidates that take arguments without a type as texts, or as what all candidates take
/// them. Keeps all if that fits none of them, or differs.
fn keep_untyped(candidates: &mut Vec<&'static Builtin>, types: &[Option<DataType>]) {
    let mut kept = candidates.clone();
    for (at, _) in types.iter().enumerate().filter(|(_, from)| from.is_none()) {
        let to = |candidate: &&'static Builtin| candidate.arguments.get(at).copied();
        let taken: Vec<DataType> = candidates.iter().filter_map(to).collect();
        let Some(first) = taken.first().map(|to| category(*to)) else { continue };
        let chosen = match taken.iter().any(|to| category(*to) == Category::Text) {
            true => Category::Text,
            false if taken.iter().all(|to| category(*to) == first) => first,
            false => return,
        };
        let fits = |to: DataType| category(to) == chosen;
        let has_preferred = taken.iter().any(|to| fits(*to) && is_preferred(*to));
        kept.retain(|candidate| {
            to(candidate).is_some_and(|to| fits(to) && (!has_preferred || is_preferred(to)))
        });
    }
    if !kept.is_empty() {
        *candidates = kept;
    }
}

fn resolve(all: &[&'static Builtin], types: &[Option<DataType>], kind: OverloadKind) -> Resolution {
    let is_operator = kind == OverloadKind::Operator;
    let mut candidates: Vec<&'static Builtin> =
        all.iter().copied().filter(|candidate| candidate.takes(types.len())).collect();
    let matches = |candidate: &Builtin, types: &[Option<DataType>]| {
        candidate.arguments.iter().zip(types).all(|(to, from)| is_exact(*from, *to))
    };
    // Of an operator with one untyped operand, that operand first takes the other's type.
    let assumed: Vec<Option<DataType>> = match types {
        [Some(known), None] | [None, Some(known)] if is_operator => vec![Some(*known); 2],
        other => other.to_vec(),
    };
    if let Some(exact) = candidates.iter().find(|candidate| matches(candidate, &assumed)) {
        return Resolution::One(exact);
    }
    candidates.retain(|candidate| {
        candidate.arguments.iter().zip(types).all(|(to, from)| is_castable(*from, *to))
    });
    let single = |candidates: &[&'static Builtin]| match candidates {
        [] => Some(Resolution::None),
        [one] => Some(Resolution::One(one)),
        _ => None,
    };
    if let Some(found) = single(&candidates) {
        return found;
    }
    keep_best(&mut candidates, |candidate| {
        candidate.arguments.iter().zip(types).filter(|(to, from)| is_exact(**from, **to)).count()
    });
    keep_best(&mut candidates, |candidate| {
        let pairs = candidate.arguments.iter().zip(types);
        pairs
            .filter(|(to, from)| {
                is_exact(**from, **to)
                    || is_preferred(**to)
                        && from.is_some_and(|from| category(from) == category(**to))
            })
            .count()
    });
    if let Some(found) = single(&candidates) {
        return found;
    }
    keep_untyped(&mut candidates, types);
    if let Some(found) = single(&candidates) {
        return found;
    }
    // Untyped arguments take the type that all typed ones have.
    let mut known = types.iter().flatten();
    if let Some(first) = known.next()
        && known.all(|other| other.is_same_kind(*first))
    {
        let assumed = vec![Some(*first); types.len()];
        candidates.retain(|candidate| {
            candidate.arguments.iter().zip(&assumed).all(|(to, from)| is_castable(*from, *to))
        });
        if let [one] = candidates[..] {
            return Resolution::One(one);
        }
    }
    Resolution::Ambiguous
}

/// Returns whether an operator of a range and a value is given a value of another type than that of
/// the bounds. PostgreSQL's operators take `anyrange` and `anyelement`.
fn is_of_other_bounds(builtin: &Builtin, types: &[Option<DataType>]) -> bool {
    let subtype = |of: DataType| of.encoded().and_then(K::subtype);
    let (value, range) = match *builtin.arguments {
        [range, value] if subtype(range) == Some(value) => (types.get(1), range),
        [value, range] if subtype(range) == Some(value) => (types.first(), range),
        _ => return false,
    };
    value.copied().flatten().is_some_and(|value| {
        value.encoded().is_none() && !subtype(range).is_some_and(|of| of.is_same_kind(value))
    })
}

impl Binder<'_> {
    /// Binds a call of a catalog function.
    pub(in crate::bind) fn builtin(
        &mut self,
        name: &str,
        arguments: Vec<Typed>,
        position: u32,
    ) -> Result<Typed> {
        let (builtin, exprs) = self.chosen(name, arguments, position)?;
        if let Implementation::Routine(call) = builtin.implementation {
            return self.routine_call(builtin, call, exprs, position);
        }
        let call = Expr::Call(Function(builtin), exprs, TextPosition(position));
        Ok(self.folded(Typed::new(call, builtin.result, position)))
    }

    /// Finds the function that a call means, and casts the arguments to its types.
    pub(in crate::bind) fn chosen(
        &mut self,
        name: &str,
        arguments: Vec<Typed>,
        position: u32,
    ) -> Result<(&'static Builtin, Vec<Expr>)> {
        let types: Vec<Option<DataType>> = arguments.iter().map(|a| a.data_type).collect();
        let mut known = self.names.registered_functions(name);
        known.extend(overloads(name));
        known.extend(self.routine_entries(name, &types));
        match resolve(&known, &types, OverloadKind::Function) {
            Resolution::One(builtin) => {
                self.check_collation(name, &arguments)?;
                if let Implementation::Routine(call) = builtin.implementation {
                    self.check_routine_collation(name, &arguments)?;
                    if known.iter().any(|other| self.is_rival(call, builtin, other)) {
                        return Err(many_functions(name, types, position));
                    }
                }
                Ok((builtin, self.cast_to(builtin, arguments)?))
            }
            Resolution::None => {
                let name = name.strip_prefix(VARIADIC_PREFIX).unwrap_or(name);
                self.refuse_procedure(name, position)?;
                let (name, missing) = (crate::catalog::shown_name(name), name.contains('\0'));
                if missing
                    && let Some((schema, _)) = name.split_once('.')
                    && schema != "public"
                    && !self.names.has_schema(schema)
                {
                    let message = format!("schema \"{schema}\" does not exist");
                    let error = SqlError::new(SqlState::InvalidSchemaName, message);
                    return Err(error.at(position as usize));
                }
                Err(no_function(&name, types, position))
            }
            Resolution::Ambiguous => Err(many_functions(name, types, position)),
        }
    }

    /// Binds an operator of the catalog, by its symbol.
    pub(in crate::bind) fn operator(
        &mut self,
        symbol: &str,
        operands: Vec<Typed>,
        position: u32,
    ) -> Result<Typed> {
        let types: Vec<Option<DataType>> = operands.iter().map(|a| a.data_type).collect();
        match resolve(overloads(symbol), &types, OverloadKind::Operator) {
            Resolution::One(builtin) if is_of_other_bounds(builtin, &types) => {
                Err(no_operator(symbol, &types, position))
            }
            Resolution::One(builtin) => {
                self.check_collation(symbol, &operands)?;
                self.call_of(builtin, operands, position)
            }
            Resolution::None => Err(no_operator(symbol, &types, position)),
            Resolution::Ambiguous => Err(many_operators(symbol, &types, position)),
        }
    }

    /// Calls a function with arguments that are cast to its types.
    fn call_of(
        &mut self,
        builtin: &'static Builtin,
        arguments: Vec<Typed>,
        position: u32,
    ) -> Result<Typed> {
        let exprs = self.cast_to(builtin, arguments)?;
        let call = Expr::Call(Function(builtin), exprs, TextPosition(position));
        Ok(self.folded(Typed::new(call, builtin.result, position)))
    }

    /// Casts the arguments to the types of the function.
    fn cast_to(&mut self, builtin: &'static Builtin, arguments: Vec<Typed>) -> Result<Vec<Expr>> {
        let mut exprs = Vec::with_capacity(arguments.len());
        for (at, argument) in arguments.into_iter().enumerate() {
            exprs.push(match (builtin.arguments.get(at), argument.data_type) {
                (Some(to), Some(from)) if from.is_same_kind(*to) => argument.expr,
                (Some(to), _) => self.coerce(argument, *to)?,
                // The functions of any arguments show objects by their names.
                (None, Some(from)) if from.reference().is_some() => {
                    self.through_name(argument, DataType::Text)?.expr
                }
                (None, _) => {
                    let mut value = self.settle(argument)?.expr;
                    name_fields(&mut value);
                    value
                }
            });
        }
        Ok(exprs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use DataType as D;

    fn chosen(name: &str, types: &[Option<DataType>]) -> Option<&'static [DataType]> {
        match resolve(overloads(name), types, OverloadKind::Function) {
            Resolution::One(builtin) => Some(builtin.arguments),
            _ => None,
        }
    }

    #[test]
    fn overloads_are_chosen_as_postgresql_chooses_them() {
        let numeric = D::Numeric(None);
        assert_eq!(chosen("ceil", &[Some(D::Integer)]), Some(&[D::Double][..]));
        assert_eq!(chosen("ceil", &[Some(D::Numeric(Some((5, 2))))]), Some(&[numeric][..]));
        assert_eq!(chosen("round", &[Some(D::Integer); 2]), Some(&[numeric, D::Integer][..]));
        assert_eq!(chosen("round", &[Some(D::Double), Some(D::Integer)]), None);
        assert_eq!(chosen("mod", &[Some(D::SmallInt), Some(D::BigInt)]), Some(&[D::BigInt; 2][..]));
        assert_eq!(chosen("length", &[None]), Some(&[D::Text][..]));
        assert_eq!(chosen("abs", &[None]), Some(&[D::Double][..]));
        assert_eq!(chosen("ts_headline", &[None; 3]), None);
        assert_eq!(chosen("ts_headline", &[None; 2]).map(<[_]>::len), Some(2));
    }
}
