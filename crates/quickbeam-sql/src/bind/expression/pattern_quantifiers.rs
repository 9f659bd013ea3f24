//! LIKE, ILIKE and regular expressions with ANY or ALL of an array of patterns.

use sqlparser::ast::{
    BinaryOperator, Expr as Ast, FunctionArg, FunctionArgExpr, FunctionArguments,
};

use crate::bind::types::undefined::no_operator;
use crate::bind::{Binder, Scope, Typed};
use crate::error::{Result, SqlError};
use crate::types::DataType;

/// The symbol of an operator that compares a text with a pattern.
pub(in crate::bind) fn pattern_symbol(op: &BinaryOperator) -> Option<&'static str> {
    Some(match op {
        BinaryOperator::PGLikeMatch => "~~",
        BinaryOperator::PGNotLikeMatch => "!~~",
        BinaryOperator::PGILikeMatch => "~~*",
        BinaryOperator::PGNotILikeMatch => "!~~*",
        BinaryOperator::PGRegexMatch => "~",
        BinaryOperator::PGRegexNotMatch => "!~",
        BinaryOperator::PGRegexIMatch => "~*",
        BinaryOperator::PGRegexNotIMatch => "!~*",
        _ => return None,
    })
}

/// A pattern operator with ANY or ALL of an array.
pub(in crate::bind) struct QuantifiedPattern<'a> {
    pub text: &'a Ast,
    /// The operator's symbol.
    pub symbol: &'static str,
    /// The array of patterns.
    pub patterns: &'a Ast,
    /// `any` or `all`.
    pub quantifier: &'static str,
}

/// Returns the parts of LIKE or ILIKE with ANY or ALL of an array. The parser takes ALL for a call.
pub(super) fn quantified_like(like: &Ast) -> Option<QuantifiedPattern<'_>> {
    let (text, symbol, pattern, any) = match like {
        Ast::Like { negated, expr, pattern, escape_char: None, any } => {
            (expr, if *negated { "!~~" } else { "~~" }, pattern, *any)
        }
        Ast::ILike { negated, expr, pattern, escape_char: None, any } => {
            (expr, if *negated { "!~~*" } else { "~~*" }, pattern, *any)
        }
        _ => return None,
    };
    let (patterns, quantifier) = match &**pattern {
        patterns if any => (patterns, "any"),
        Ast::Function(call) if call.name.to_string().eq_ignore_ascii_case("all") => {
            let FunctionArguments::List(list) = &call.args else { return None };
            match &list.args[..] {
                [FunctionArg::Unnamed(FunctionArgExpr::Expr(patterns))] => (patterns, "all"),
                _ => return None,
            }
        }
        _ => return None,
    };
    Some(QuantifiedPattern { text, symbol, patterns, quantifier })
}

impl Binder<'_> {
    /// Binds a pattern operator with ANY or ALL of an array.
    pub(in crate::bind) fn quantified_pattern(
        &mut self,
        test: &QuantifiedPattern<'_>,
        scope: &Scope,
    ) -> Result<Typed> {
        let QuantifiedPattern { text, symbol, mut patterns, quantifier } = *test;
        while let Ast::Nested(inner) = patterns {
            patterns = inner;
        }
        let position = self.position(patterns);
        if matches!(patterns, Ast::Subquery(_)) {
            let what = format!("{symbol} {quantifier} of a subquery");
            return Err(SqlError::unsupported(what).at(position as usize));
        }
        let text = self.expression(text, scope)?;
        let text = self.settle(text)?;
        let position = text.position;
        let patterns = self.expression(patterns, scope)?.without_vector();
        if text.data_type.is_some_and(|known| !known.is_text()) {
            let of = patterns.data_type.and_then(DataType::element).map(|it| it.data_type());
            return Err(no_operator(symbol, &[text.data_type, of], position));
        }
        // A CHAR keeps its trailing blanks.
        let text = Typed { data_type: Some(DataType::Text), ..text };
        self.operator(&format!("{symbol} {quantifier}"), vec![text, patterns], position)
    }
}
