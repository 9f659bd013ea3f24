//! COLLATE after a cast: `a::text COLLATE "C"`.
//!
//! The parser takes COLLATE only right after an operand that is not cast by `::`. So the cast gets
//! parentheses.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::token_edits::{TokenEdits, keyword_of};
use crate::keywords::{KeywordCategory, keyword_category};

/// A cast: the places of its first token and after its last one.
#[derive(Clone, Copy)]
struct CastPlaces {
    start: usize,
    end: usize,
}

/// Returns the tokens with each cast before a COLLATE in parentheses.
pub(super) fn adapted(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_keyword = |token: &TokenWithSpan| keyword_of(&token.token) == Keyword::COLLATE;
    if !tokens.iter().any(is_keyword) || !tokens.iter().any(|it| it.token == Token::DoubleColon) {
        return tokens;
    }
    let mut edits = TokenEdits::new(tokens);
    let columns_at = depth_of_columns(&edits);
    let (mut depth, mut last): (usize, Option<CastPlaces>) = (0, None);
    let mut taken: Vec<usize> = Vec::new();
    for place in 0..edits.len() {
        match edits.token(place) {
            Some(Token::LParen) => depth += 1,
            Some(Token::RParen) => depth = depth.saturating_sub(1),
            Some(Token::DoubleColon) => {
                // The operand of a further cast is the cast before it.
                let inner = last.filter(|cast| cast.end == place).map(|cast| cast.start);
                let start = inner.or_else(|| operand_start(&edits, place.checked_sub(1)?));
                let Some(start) = start else { continue };
                let end = type_end(&edits, place + 1);
                last = Some(CastPlaces { start, end });
                let is_collated = edits.keyword(end) == Keyword::COLLATE;
                let is_free = !taken.contains(&start) && !taken.contains(&(end - 1));
                if is_collated && is_free && columns_at != Some(depth) {
                    taken.extend([start, end - 1]);
                    enclose(&mut edits, start, end - 1);
                }
            }
            _ => {}
        }
    }
    edits.finish()
}

/// Returns the depth of parentheses at which columns are defined. There COLLATE after a default
/// belongs to the column.
fn depth_of_columns(edits: &TokenEdits) -> Option<usize> {
    let has_table = (1..4).any(|place| edits.keyword(place) == Keyword::TABLE);
    match edits.keyword(0) {
        Keyword::CREATE if has_table => Some(1),
        Keyword::ALTER if has_table => Some(0),
        Keyword::CREATE if edits.is_word(1, "domain") => Some(0),
        _ => None,
    }
}

fn enclose(edits: &mut TokenEdits, first: usize, last: usize) {
    if let (Some(a), Some(b)) = (edits.token(first).cloned(), edits.token(last).cloned()) {
        edits.replace(first, vec![Token::LParen, a]);
        edits.replace(last, vec![b, Token::RParen]);
    }
}

/// Returns the place after the type at that place.
fn type_end(edits: &TokenEdits, start: usize) -> usize {
    let mut at = start + 1;
    while edits.is(at, &Token::Period) {
        at += 2;
    }
    if edits.is_word(at, "varying") || edits.is_word(at, "precision") {
        at += 1;
    }
    if edits.is(at, &Token::LParen) {
        at = edits.closing(at).map_or(at, |close| close + 1);
    }
    if ["with", "without"].iter().any(|word| edits.is_word(at, word))
        && edits.is_word(at + 1, "time")
    {
        at += 3;
    }
    while edits.is(at, &Token::LBracket) {
        at += if edits.is(at + 1, &Token::RBracket) { 2 } else { 3 };
    }
    at
}

/// Returns the place of the first token of the operand that ends at `end`. Returns `None` if it is
/// not known.
fn operand_start(edits: &TokenEdits, end: usize) -> Option<usize> {
    let mut at = end;
    loop {
        match edits.token(at)? {
            Token::RBracket => {
                at = opening(edits, at, (&Token::LBracket, &Token::RBracket))?.checked_sub(1)?;
                if edits.is_word(at, "array") {
                    return Some(at);
                }
                continue;
            }
            Token::RParen => {
                at = opening(edits, at, (&Token::LParen, &Token::RParen))?;
                match at.checked_sub(1) {
                    Some(before) if is_function(edits, before) => at = before,
                    _ => return Some(at),
                }
            }
            Token::Word(_) if edits.keyword(at) == Keyword::END => return case_start(edits, at),
            Token::SingleQuotedString(_) if at > 0 && is_function(edits, at - 1) => {
                // `date '2020-01-01'`
                at -= 1;
            }
            _ => {}
        }
        match at.checked_sub(1) {
            Some(before) if edits.is(before, &Token::Period) => at = before.checked_sub(1)?,
            _ => return Some(at),
        }
    }
}

/// Returns the place of the CASE that ends with the END at `end`.
fn case_start(edits: &TokenEdits, end: usize) -> Option<usize> {
    let is = |wanted: Keyword| move |token: &Token| keyword_of(token) == wanted;
    edits.matching((0..=end).rev(), is(Keyword::END), is(Keyword::CASE))
}

/// Returns the place of the token that opens what the one at `close` closes.
fn opening(edits: &TokenEdits, close: usize, (open, closed): (&Token, &Token)) -> Option<usize> {
    edits.matching((0..=close).rev(), |token| token == closed, |token| token == open)
}

/// Returns whether a word before a parenthesis or a text is the name of a function or type.
fn is_function(edits: &TokenEdits, place: usize) -> bool {
    let Some(Token::Word(word)) = edits.token(place) else { return false };
    if word.quote_style.is_some() {
        return true;
    }
    let name = word.value.to_ascii_lowercase();
    let is_operator = ["like", "ilike", "similar", "is", "between", "overlaps", "values"];
    keyword_category(&name) != Some(KeywordCategory::Reserved)
        && !is_operator.contains(&name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::tokenizer::Tokenizer;

    fn adapted_text(text: &str) -> String {
        let mut tokenizer = Tokenizer::new(&PostgreSqlDialect {}, text);
        let tokens = adapted(tokenizer.tokenize_with_location().unwrap());
        tokens.iter().map(|token| token.token.to_string()).collect()
    }

    #[test]
    fn casts_before_a_collation_get_parentheses() {
        for (text, expected) in [
            ("SELECT a::text COLLATE x", "SELECT (a::text) COLLATE x"),
            ("SELECT -t.a::int::text COLLATE x", "SELECT -(t.a::int::text) COLLATE x"),
            ("SELECT f(a, b)::s.t COLLATE x", "SELECT (f(a, b)::s.t) COLLATE x"),
            ("WHERE a AND (b)::varchar(3) COLLATE x", "WHERE a AND ((b)::varchar(3)) COLLATE x"),
            ("WHERE a LIKE (b)::text COLLATE x", "WHERE a LIKE ((b)::text) COLLATE x"),
            ("SELECT 'a'::text COLLATE x, 1", "SELECT ('a'::text) COLLATE x, 1"),
            ("SELECT a[1][2]::text COLLATE x", "SELECT (a[1][2]::text) COLLATE x"),
            (
                "SELECT CASE WHEN a THEN b END::text COLLATE x",
                "SELECT (CASE WHEN a THEN b END::text) COLLATE x",
            ),
            ("SELECT a::text = b COLLATE x", "SELECT a::text = b COLLATE x"),
            ("SELECT a::text AND b COLLATE x", "SELECT a::text AND b COLLATE x"),
        ] {
            assert_eq!(adapted_text(text), expected);
        }
    }

    #[test]
    fn collations_of_columns_stay_theirs() {
        for text in [
            "CREATE TABLE t (a text DEFAULT 'x'::text COLLATE c)",
            "ALTER TABLE t ADD a text DEFAULT 'x'::text COLLATE c",
        ] {
            assert_eq!(adapted_text(text), text);
        }
        let check = "CREATE TABLE t (a text CHECK (a::text COLLATE c > 'x'))";
        let expected = "CREATE TABLE t (a text CHECK ((a::text) COLLATE c > 'x'))";
        assert_eq!(adapted_text(check), expected);
    }
}
