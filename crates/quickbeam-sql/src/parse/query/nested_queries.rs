//! Values that are queries and begin with a query in parentheses: `((SELECT 1) UNION SELECT 2)`, or
//! with VALUES.
//!
//! The parser takes the inner parentheses for an expression and VALUES for a name, so the query
//! becomes an item of FROM: `(SELECT * FROM ((SELECT 1) UNION SELECT 2) AS "*query*")`. A query
//! that is the first member of the list of IN becomes an argument of `coalesce`.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::parse::token_edits::{TokenEdits, keyword_of, marker, word};

/// The name of the item of FROM.
const ITEM: &str = "*query*";

/// Words that begin a query.
const QUERIES: [Keyword; 4] = [Keyword::SELECT, Keyword::VALUES, Keyword::WITH, Keyword::TABLE];

/// Words that go on with a query after parentheses.
const CLAUSES: [Keyword; 8] = [
    Keyword::UNION,
    Keyword::INTERSECT,
    Keyword::EXCEPT,
    Keyword::ORDER,
    Keyword::LIMIT,
    Keyword::OFFSET,
    Keyword::FETCH,
    Keyword::FOR,
];

/// Words that a value follows.
const BEFORE_VALUES: [Keyword; 20] = [
    Keyword::SELECT,
    Keyword::WHERE,
    Keyword::AND,
    Keyword::OR,
    Keyword::NOT,
    Keyword::ON,
    Keyword::CASE,
    Keyword::WHEN,
    Keyword::THEN,
    Keyword::ELSE,
    Keyword::HAVING,
    Keyword::BY,
    Keyword::RETURNING,
    Keyword::DISTINCT,
    Keyword::BETWEEN,
    Keyword::LIKE,
    Keyword::ANY,
    Keyword::SOME,
    Keyword::LIMIT,
    Keyword::OFFSET,
];

/// Returns the tokens of a text with such values in the parser's form.
pub(super) fn adapted(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut shown = tokens.iter().filter(|it| !matches!(it.token, Token::Whitespace(_)));
    let mut is_open = false;
    let is_candidate = shown.any(|it| {
        let opens = it.token == Token::LParen;
        let begins = opens || keyword_of(&it.token) == Keyword::VALUES;
        std::mem::replace(&mut is_open, opens) && begins
    });
    if !is_candidate {
        return tokens;
    }
    let mut edits = TokenEdits::new(tokens);
    for place in 1..edits.len() {
        if let Some(end) = first_member_at(&edits, place) {
            let coalesce = Token::make_word("coalesce", None);
            edits.replace(place, vec![coalesce, Token::LParen, Token::LParen]);
            edits.replace(end, vec![Token::RParen; 2]);
            continue;
        }
        let Some(end) = value_at(&edits, place) else { continue };
        let item = [Keyword::SELECT, Keyword::FROM].map(word);
        let [select, from] = item;
        edits.replace(place, vec![Token::LParen, select, Token::Mul, from, Token::LParen]);
        let name = [Token::RParen, word(Keyword::AS), marker(ITEM), Token::RParen];
        edits.replace(end, name.to_vec());
    }
    edits.finish()
}

/// Returns the place of the parenthesis that closes a query at the beginning of the list of IN.
fn first_member_at(edits: &TokenEdits, place: usize) -> Option<usize> {
    let opens = |place: usize| edits.is(place, &Token::LParen);
    let is_first = place > 1 && opens(place) && opens(place - 1);
    if !is_first || edits.keyword(place - 2) != Keyword::IN {
        return None;
    }
    let first = (place + 1..edits.len()).find(|at| !opens(*at))?;
    if !QUERIES.contains(&edits.keyword(first)) {
        return None;
    }
    let end = edits.closing(place)?;
    let goes_on = edits.is(end + 1, &Token::RParen) || CLAUSES.contains(&edits.keyword(end + 1));
    (!goes_on).then_some(end)
}

/// Returns the place of the parenthesis that closes such a value.
fn value_at(edits: &TokenEdits, place: usize) -> Option<usize> {
    let is_values = edits.keyword(place + 1) == Keyword::VALUES;
    if !edits.is(place, &Token::LParen) || !is_values && !edits.is(place + 1, &Token::LParen) {
        return None;
    }
    let is_value = match edits.token(place - 1)? {
        Token::Word(_) => match edits.keyword(place - 1) {
            // Not that of UNION ALL or SELECT ALL.
            Keyword::ALL => place > 1 && !edits.is_name(place - 2),
            word => BEFORE_VALUES.contains(&word),
        },
        Token::RParen | Token::RBracket | Token::SemiColon => false,
        _ => true,
    };
    let first = (place + 1..edits.len()).find(|at| !edits.is(*at, &Token::LParen))?;
    if !is_value || !QUERIES.contains(&edits.keyword(first)) {
        return None;
    }
    if is_values {
        return edits.closing(place);
    }
    let behind = edits.closing(place + 1)? + 1;
    CLAUSES.contains(&edits.keyword(behind)).then(|| edits.closing(place)).flatten()
}
