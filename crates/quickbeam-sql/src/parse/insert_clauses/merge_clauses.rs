//! Clauses of MERGE that the parser does not know.
//!
//! `THEN INSERT DEFAULT VALUES` becomes `THEN INSERT VALUES (DEFAULT)`. A join as the source gets
//! parentheses. ONLY goes, as no table has children.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::parse::token_edits::{TokenEdits, keyword_of, word};

/// Returns the tokens of a text with these clauses in the parser's form.
pub(super) fn adapted(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    use Keyword::{DEFAULT, INSERT, INTO, MERGE, ONLY, THEN, VALUES};
    if !tokens.iter().any(|token| keyword_of(&token.token) == MERGE) {
        return tokens;
    }
    let mut edits = TokenEdits::new(tokens);
    for place in 0..edits.len() {
        if edits.has_keywords(place, &[THEN, INSERT, DEFAULT, VALUES]) {
            let made = vec![word(VALUES), Token::LParen, word(DEFAULT), Token::RParen];
            edits.remove(place + 2);
            edits.replace(place + 3, made);
        }
        if edits.has_keywords(place, &[MERGE, INTO]) {
            if edits.keyword(place + 2) == ONLY {
                edits.remove(place + 2);
            }
            if let Some((using, on)) = joined_source(&edits, place + 2) {
                edits.replace(using, vec![word(Keyword::USING), Token::LParen]);
                edits.replace(on, vec![Token::RParen, word(Keyword::ON)]);
            }
        }
    }
    edits.finish()
}

/// Returns the places of USING and ON of a MERGE between which there is a join.
fn joined_source(edits: &TokenEdits, target: usize) -> Option<(usize, usize)> {
    let (mut using, mut on, mut is_join) = (None, None, false);
    let (mut depth, mut cases) = (0_usize, 0_usize);
    for place in target..edits.len() {
        match edits.token(place)? {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.checked_sub(1)?,
            Token::SemiColon => return None,
            _ if depth > 0 => {}
            token => match keyword_of(token) {
                Keyword::USING if using.is_none() => using = Some(place),
                Keyword::JOIN => is_join = true,
                Keyword::ON => on = Some(place),
                Keyword::CASE => cases += 1,
                Keyword::END => cases = cases.saturating_sub(1),
                Keyword::WHEN if cases == 0 => break,
                _ => {}
            },
        }
    }
    using.zip(on).filter(|_| is_join)
}
