//! Clauses of queries that the parser does not know.
//!
//! `TABLE name` as a query becomes `SELECT * FROM name`. FOR NO KEY UPDATE and FOR KEY SHARE become
//! FOR UPDATE and FOR SHARE: a row has one lock for all its columns. Row locks before LIMIT move to
//! the query's end. `ONLY table` becomes the table, as no table has children. `ROWS FROM (…)` and
//! the first bound of BETWEEN SYMMETRIC become calls of functions with the names of markers.
//! `VARIADIC array` becomes the named argument `VARIADIC => array`, and `TRIM(FROM text)` names the
//! blanks that it removes. The `*` of `(row).*` becomes a field's name.

use sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName,
};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

use super::markers::{CURRENT_OF, TIES};
use crate::parse::token_edits::{TokenEdits, is_marker, keyword_of, marker, word};

/// Words that a query may follow.
const BEFORE: [Keyword; 7] = [
    Keyword::UNION,
    Keyword::ALL,
    Keyword::DISTINCT,
    Keyword::EXCEPT,
    Keyword::INTERSECT,
    Keyword::AS,
    Keyword::EXPLAIN,
];

/// Returns the tokens of a text, with `TABLE name` as a SELECT where a query may stand.
pub fn adapted(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let tokens = with_markers(with_limits_first(with_plain_locks(with_row_stars(tokens))));
    let tokens = with_collation_calls(tokens);
    let is_table = |token: &TokenWithSpan| {
        matches!(&token.token, Token::Word(word)
            if word.quote_style.is_none() && word.keyword == Keyword::TABLE)
    };
    // After AS, the word may be a label.
    let has_name = |at: usize| {
        let mut rest = tokens.iter().skip(at + 1);
        let next = rest.find(|token| !matches!(token.token, Token::Whitespace(_)));
        next.is_some_and(|next| {
            matches!(next.token, Token::Word(_)) && keyword_of(&next.token) != Keyword::FROM
        })
    };
    let mut begins = true;
    let mut places = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if begins && is_table(token) && has_name(at) {
            places.push(at);
        }
        begins = match &token.token {
            Token::Whitespace(_) => begins,
            // A parenthesis ends the list of WITH, or the options of EXPLAIN.
            Token::SemiColon | Token::LParen | Token::RParen => true,
            Token::Word(word) => word.quote_style.is_none() && BEFORE.contains(&word.keyword),
            _ => false,
        };
    }
    if places.is_empty() {
        return tokens;
    }
    let mut out = Vec::with_capacity(tokens.len() + places.len() * 4);
    for (at, token) in tokens.into_iter().enumerate() {
        if !places.contains(&at) {
            out.push(token);
            continue;
        }
        let blank = || Token::Whitespace(Whitespace::Space);
        let made = [word(Keyword::SELECT), blank(), Token::Mul, blank(), word(Keyword::FROM)];
        out.extend(made.map(|made| TokenWithSpan::new(made, token.span)));
    }
    out
}

/// Returns the tokens of a text with `COLLATION FOR (value)` as a call.
fn with_collation_calls(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is = |token: &TokenWithSpan, word: Keyword| keyword_of(&token.token) == word;
    if !tokens.iter().any(|token| is(token, Keyword::COLLATION)) {
        return tokens;
    }
    let shown = tokens.iter().enumerate();
    let shown = shown.filter(|(_, token)| !matches!(token.token, Token::Whitespace(_)));
    let shown: Vec<usize> = shown.map(|(at, _)| at).collect();
    let mut gone = Vec::new();
    for places in shown.windows(3) {
        if let [first, second, third] = *places
            && is(&tokens[first], Keyword::COLLATION)
            && is(&tokens[second], Keyword::FOR)
            && tokens[third].token == Token::LParen
        {
            tokens[first].token = marker("pg_collation_for");
            gone.push(second);
        }
    }
    let mut at = 0;
    tokens.retain(|_| {
        at += 1;
        !gone.contains(&(at - 1))
    });
    tokens
}

/// Removes the words NO KEY and KEY from row locks.
fn with_plain_locks(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_key = |token: &TokenWithSpan| matches!(&token.token, Token::Word(word) if word.keyword == Keyword::KEY);
    if !tokens.iter().any(is_key) {
        return tokens;
    }
    let words: Vec<(usize, Keyword)> = tokens
        .iter()
        .enumerate()
        .filter(|(_, token)| !matches!(token.token, Token::Whitespace(_)))
        .map(|(at, token)| (at, keyword_of(&token.token)))
        .collect();
    use Keyword::{FOR, KEY, NO, SHARE, UPDATE};
    let keywords = |from: usize, count: usize| words.get(from..from + count).unwrap_or_default();
    let mut gone: Vec<usize> = Vec::new();
    for from in 0..words.len() {
        match keywords(from, 4) {
            [(_, FOR), (no, NO), (key, KEY), (_, UPDATE)] => gone.extend([*no, *key]),
            [(_, FOR), (key, KEY), (_, SHARE), ..] => gone.push(*key),
            _ => {
                if let [(_, FOR), (key, KEY), (_, SHARE)] = keywords(from, 3) {
                    gone.push(*key);
                }
            }
        }
    }
    let mut at = 0;
    tokens.retain(|_| {
        at += 1;
        !gone.contains(&(at - 1))
    });
    tokens
}

/// The field that `*` becomes in `(row).*`, and in `item.*` that is not an item of a select list.
pub const ALL_FIELDS: &str = "\0*";

/// Returns the tokens of a text with each `*` that means all fields of a row as a field's name.
fn with_row_stars(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_star =
        |pair: &[TokenWithSpan]| pair[0].token == Token::Period && pair[1].token == Token::Mul;
    if !tokens.windows(2).any(is_star) {
        return tokens;
    }
    for star in 1..tokens.len() {
        if !is_star(&tokens[star - 1..=star]) {
            continue;
        }
        let is_shown = |token: &&TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
        let is_of_value = tokens[..star - 1]
            .iter()
            .rfind(is_shown)
            .is_some_and(|before| matches!(before.token, Token::RParen | Token::RBracket));
        let next = tokens[star + 1..].iter().find(is_shown).map(|next| &next.token);
        let is_value = match next {
            Some(Token::DoubleColon | Token::Eq | Token::Neq) => true,
            Some(Token::Lt | Token::Gt | Token::LtEq | Token::GtEq) => true,
            Some(Token::Word(word)) => word.keyword == Keyword::IS,
            _ => false,
        };
        if is_of_value || is_value {
            tokens[star].token = marker(ALL_FIELDS);
        }
    }
    tokens
}

/// Writes each `*` in a text as it was before [`adapted`].
pub fn restore_row_stars(text: &mut String) {
    let written = format!("\"{ALL_FIELDS}\"");
    if text.contains(&written) {
        *text = text.replace(&written, "*");
    }
}

/// Moves the row locks of a query after its LIMIT, OFFSET and FETCH.
fn with_limits_first(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    use Keyword::{FETCH, FOR, LIMIT, LOCKED, NOWAIT, OF, OFFSET, SHARE, SKIP, UPDATE};
    if !tokens.iter().any(|token| keyword_of(&token.token) == FOR) {
        return tokens;
    }
    let shown: Vec<usize> =
        (0..tokens.len()).filter(|&at| !matches!(tokens[at].token, Token::Whitespace(_))).collect();
    for place in 0..shown.len() {
        let token = |place: usize| shown.get(place).map(|&at| &tokens[at].token);
        let word_at = |place: usize| token(place).map_or(Keyword::NoKeyword, keyword_of);
        if word_at(place) != FOR || !matches!(word_at(place + 1), UPDATE | SHARE) {
            continue;
        }
        let mut end = place + 2;
        if word_at(end) == OF {
            end += 2;
            while matches!(token(end), Some(Token::Comma | Token::Period)) {
                end += 2;
            }
        }
        end += match (word_at(end), word_at(end + 1)) {
            (NOWAIT, _) => 1,
            (SKIP, LOCKED) => 2,
            _ => 0,
        };
        if !matches!(word_at(end), LIMIT | OFFSET | FETCH) {
            continue;
        }
        let mut depth = 0_usize;
        let mut after = end;
        while let Some(token) = token(after) {
            match token {
                Token::LParen => depth += 1,
                Token::RParen if depth == 0 => break,
                Token::RParen => depth -= 1,
                Token::SemiColon | Token::EOF => break,
                _ if depth == 0 && keyword_of(token) == FOR => break,
                _ => {}
            }
            after += 1;
        }
        let last = shown.get(after).copied().unwrap_or(tokens.len());
        if let Some(moved) = tokens.get_mut(shown[place]..last) {
            moved.rotate_left(shown[end] - shown[place]);
        }
    }
    tokens
}

/// The function that ROWS FROM becomes.
pub(super) const ROWS_FROM: &str = "\0rows from";

/// The function that the first bound of BETWEEN SYMMETRIC becomes the argument of.
pub(super) const SYMMETRIC: &str = "\0symmetric";

/// Returns the arguments of a call that have no names.
pub fn arguments_of(function: &Function) -> Option<Vec<&Expr>> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let argument = |argument| match argument {
        &FunctionArg::Unnamed(FunctionArgExpr::Expr(ref expr)) => Some(expr),
        _ => None,
    };
    list.args.iter().map(argument).collect()
}

/// Returns whether the name of a function in FROM stands for ROWS FROM, whose arguments are calls.
pub fn is_rows_from(name: &ObjectName) -> bool {
    is_marker(name, ROWS_FROM)
}

/// Returns the name and the arguments of a call in ROWS FROM.
pub fn row_call(argument: &FunctionArg) -> Option<(&ObjectName, Vec<&Expr>)> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Function(function))) => {
            Some((&function.name, arguments_of(function)?))
        }
        _ => None,
    }
}

/// Returns the first bound of BETWEEN SYMMETRIC.
pub fn symmetric_bound(low: &Expr) -> Option<&Expr> {
    let Expr::Function(function) = low else { return None };
    if !is_marker(&function.name, SYMMETRIC) {
        return None;
    }
    arguments_of(function)?.first().copied()
}

/// Returns the name of the cursor of CURRENT OF.
pub fn current_of(condition: &Expr) -> Option<&Ident> {
    let Expr::Function(function) = condition else { return None };
    if !is_marker(&function.name, CURRENT_OF) {
        return None;
    }
    match arguments_of(function)?[..] {
        [Expr::Identifier(cursor)] => Some(cursor),
        _ => None,
    }
}

/// Returns the number of rows of a LIMIT that stands for `FETCH FIRST (expression) … WITH TIES`.
pub fn limit_with_ties(limit: &Expr) -> Option<&Expr> {
    let Expr::Function(function) = limit else { return None };
    if !is_marker(&function.name, TIES) {
        return None;
    }
    arguments_of(function)?.first().copied()
}

/// Returns the tokens of a text with ONLY, ROWS FROM, BETWEEN SYMMETRIC, VARIADIC and TRIM in the
/// parser's form.
fn with_markers(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    use Keyword::{
        ASYMMETRIC, BETWEEN, BOTH, FROM, JOIN, LEADING, ONLY, ROWS, TRAILING, TRIM, UPDATE, USING,
        VARIADIC,
    };
    let is_such = |token: &TokenWithSpan| {
        matches!(
            keyword_of(&token.token),
            ONLY | ROWS | ASYMMETRIC | Keyword::SYMMETRIC | TRIM | VARIADIC
        )
    };
    if !tokens.iter().any(is_such) {
        return tokens;
    }
    let mut edits = TokenEdits::new(tokens);
    for place in 1..edits.len() {
        match (edits.keyword(place - 1), edits.keyword(place)) {
            (FROM | JOIN | UPDATE | USING, ONLY) if edits.is_name(place + 1) => edits.remove(place),
            (FROM | JOIN | UPDATE | USING, ONLY) if edits.is(place + 1, &Token::LParen) => {
                if let Some(end) = edits.closing(place + 1) {
                    edits.remove_all([place, place + 1, end]);
                }
            }
            (_, ROWS)
                if edits.keyword(place + 1) == FROM && edits.is(place + 2, &Token::LParen) =>
            {
                edits.replace(place, vec![marker(ROWS_FROM)]);
                edits.remove(place + 1);
            }
            (_, TRIM) if edits.is(place + 1, &Token::LParen) => {
                let side = matches!(edits.keyword(place + 2), BOTH | LEADING | TRAILING);
                let from = place + 2 + usize::from(side);
                if edits.keyword(from) == FROM {
                    let blank = Token::SingleQuotedString(" ".to_owned());
                    edits.replace(from, vec![blank, word(FROM)]);
                }
            }
            // The types of a routine's arguments may be VARIADIC too.
            (_, VARIADIC) if !matches!(edits.keyword(0), Keyword::CREATE | Keyword::DROP) => {
                let own = edits.token(place).cloned();
                edits.replace(place, own.into_iter().chain([Token::RArrow]).collect());
            }
            (BETWEEN, ASYMMETRIC) => edits.remove(place),
            (BETWEEN, Keyword::SYMMETRIC) => {
                let Some(end) = end_of_bound(&edits, place + 1) else { continue };
                edits.replace(place, vec![marker(SYMMETRIC), Token::LParen]);
                edits.replace(end, vec![Token::RParen, word(Keyword::AND)]);
            }
            _ => {}
        }
    }
    edits.finish()
}

/// Returns the place of the AND that ends the first bound of a BETWEEN.
fn end_of_bound(edits: &TokenEdits, from: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for place in from..edits.len() {
        match edits.token(place)? {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => depth = depth.checked_sub(1)?,
            Token::SemiColon | Token::EOF => return None,
            token => match keyword_of(token) {
                Keyword::CASE => depth += 1,
                Keyword::END => depth = depth.checked_sub(1)?,
                Keyword::AND if depth == 0 => return Some(place),
                _ => {}
            },
        }
    }
    None
}
