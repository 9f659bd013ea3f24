//! `ts_rank` and `ts_rank_cd`.

use super::{QUERY, VECTOR, query, vector};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::builtin::arrays::array;
use crate::expression::builtin::{Builtin, integer, invalid, strict};
use crate::types::encoded::text_search::{
    DEFAULT_WEIGHTS, RankWeights, TextQuery, TextVectorRef, cover_rank, word_rank,
};
use crate::types::{DataType, ElementType, Value, ValueRef};
use DataType::{Integer, Real};

const REALS: DataType = match ElementType::new(Real) {
    Some(element) => DataType::Array(element),
    None => Real,
};

pub(in crate::expression::builtin) static TABLE: &[Builtin] = &[
    strict("ts_rank", &[REALS, VECTOR, QUERY, Integer], Real, |v| weighted(v, word_rank)),
    strict("ts_rank", &[REALS, VECTOR, QUERY], Real, |v| weighted(v, word_rank)),
    strict("ts_rank", &[VECTOR, QUERY, Integer], Real, |v| ranked(&DEFAULT_WEIGHTS, v, word_rank)),
    strict("ts_rank", &[VECTOR, QUERY], Real, |v| ranked(&DEFAULT_WEIGHTS, v, word_rank)),
    strict("ts_rank_cd", &[REALS, VECTOR, QUERY, Integer], Real, |v| weighted(v, cover_rank)),
    strict("ts_rank_cd", &[REALS, VECTOR, QUERY], Real, |v| weighted(v, cover_rank)),
    strict("ts_rank_cd", &[VECTOR, QUERY, Integer], Real, |v| {
        ranked(&DEFAULT_WEIGHTS, v, cover_rank)
    }),
    strict("ts_rank_cd", &[VECTOR, QUERY], Real, |v| ranked(&DEFAULT_WEIGHTS, v, cover_rank)),
];

type Rank = fn(&RankWeights, &TextVectorRef<'_>, &TextQuery<'_>, i32) -> f32;

/// Ranks by the vector, the query and perhaps the method.
fn ranked(weights: &RankWeights, arguments: &[ValueRef<'_>], rank: Rank) -> Result<Value> {
    let method = if arguments.len() > 2 { integer(arguments, 2)? as i32 } else { 0 };
    let (vector, query) = (vector(arguments, 0)?, query(arguments, 1)?);
    Ok(Value::Real(rank(weights, &vector, &query, method)))
}

/// Ranks by the weights in the first argument. A negative one is the default.
fn weighted(arguments: &[ValueRef<'_>], rank: Rank) -> Result<Value> {
    let given = array(arguments, 0)?;
    let fault = |message: &str| Err(SqlError::new(SqlState::ArraySubscriptError, message));
    if given.dimensions().len() != 1 {
        return fault("array of weight must be one-dimensional");
    }
    let mut weights = DEFAULT_WEIGHTS;
    if given.len() < weights.len() {
        return fault("array of weight is too short");
    }
    if given.iter().any(|weight| weight.is_null()) {
        let message = "array of weight must not contain nulls";
        return Err(SqlError::new(SqlState::NullValueNotAllowed, message));
    }
    for (weight, given) in weights.iter_mut().zip(given.iter()) {
        if let ValueRef::Real(given) = given
            && given >= 0.0
        {
            *weight = given;
        }
        if *weight > 1.0 {
            return Err(invalid("weight out of range"));
        }
    }
    ranked(&weights, arguments.get(1..).unwrap_or_default(), rank)
}
