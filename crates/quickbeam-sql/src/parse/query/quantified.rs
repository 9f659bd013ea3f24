//! ANY and ALL after operators that are no comparisons, as in `tags @> ANY (lists)`.
//!
//! The parser takes comparisons and patterns alone. The operator becomes `~`, which binds as
//! strongly, and the operand a call of a function without a name that could be written, with the
//! symbol of the operator and the operand.

use sqlparser::ast::Expr;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::clauses::arguments_of;
use crate::parse::token_edits::{TokenEdits, is_marker, keyword_of, marker};

/// The function that the operand becomes.
const QUANTIFIED: &str = "\0operator";

/// Returns the symbol of an operator that is no comparison and no arithmetic.
fn symbol_of(token: &Token) -> Option<String> {
    let is_symbol = matches!(
        token,
        Token::AtAt
            | Token::AtArrow
            | Token::ArrowAt
            | Token::AtQuestion
            | Token::Overlap
            | Token::CaretAt
            | Token::Question
            | Token::QuestionPipe
            | Token::QuestionAnd
            | Token::ShiftLeft
            | Token::ShiftRight
            | Token::CustomBinaryOperator(_)
    );
    is_symbol.then(|| token.to_string())
}

/// Returns the tokens of a text with such operators in the parser's form.
pub(super) fn adapted(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_quantifier = |word: Keyword| matches!(word, Keyword::ANY | Keyword::SOME | Keyword::ALL);
    if !tokens.iter().any(|token| is_quantifier(keyword_of(&token.token))) {
        return tokens;
    }
    let mut edits = TokenEdits::new(tokens);
    for place in 0..edits.len() {
        let symbol = edits.token(place).and_then(symbol_of);
        let is_quantified =
            is_quantifier(edits.keyword(place + 1)) && edits.is(place + 2, &Token::LParen);
        let (Some(symbol), true) = (symbol, is_quantified) else { continue };
        let Some(close) = edits.closing(place + 2) else { continue };
        edits.replace(place, vec![Token::Tilde]);
        let begin = [Token::LParen, marker(QUANTIFIED), Token::LParen];
        let operator = [Token::SingleQuotedString(symbol), Token::Comma, Token::LParen];
        edits.replace(place + 2, begin.into_iter().chain(operator).collect());
        edits.replace(close, vec![Token::RParen; 3]);
    }
    edits.finish()
}

/// Returns the symbol of the operator and the operand that an operand of ANY or ALL stands for.
pub fn quantified(operand: &Expr) -> Option<(&str, &Expr)> {
    let Expr::Function(call) = operand else { return None };
    if !is_marker(&call.name, QUANTIFIED) {
        return None;
    }
    let [Expr::Value(symbol), operand] = &arguments_of(call)?[..] else { return None };
    let sqlparser::ast::Value::SingleQuotedString(symbol) = &symbol.value else { return None };
    Some((symbol, operand))
}
