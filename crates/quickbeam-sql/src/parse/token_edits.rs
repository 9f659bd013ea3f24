//! Edits of the tokens of a text: clauses that the parser does not know become ones that it knows.

use sqlparser::ast::ObjectName;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use super::positions::is_word;

/// Replacements of single tokens, collected before any is made. A place counts the tokens that are
/// not blank.
pub(super) struct TokenEdits {
    tokens: Vec<TokenWithSpan>,
    shown: Vec<usize>,
    /// For each token that is replaced, what it is replaced by.
    changes: Vec<(usize, Vec<Token>)>,
}

/// Returns the keyword that a token is, unless it is quoted.
pub(super) fn keyword_of(token: &Token) -> Keyword {
    match token {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    }
}

/// Makes the signs at the ends of operators tokens of their own, as in `a->-1`. As in PostgreSQL,
/// an operator ends with a sign only if it has one of certain characters.
pub(super) fn with_signs(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let has_sign = |token: &TokenWithSpan| match &token.token {
        Token::CustomBinaryOperator(symbol) => symbol.ends_with(['+', '-']),
        _ => false,
    };
    if !tokens.iter().any(has_sign) {
        return tokens;
    }
    let mut out = Vec::with_capacity(tokens.len() + 1);
    for token in tokens {
        let Token::CustomBinaryOperator(symbol) = &token.token else {
            out.push(token);
            continue;
        };
        let plain = symbol.trim_end_matches(['+', '-']);
        let first = match (plain.contains(OF_OWN_OPERATORS), plain.chars().next()) {
            (true, _) => None,
            (false, Some(_)) => operator_of(plain),
            (false, None) => None,
        };
        // Signs alone are no operator together.
        if first.is_none() && !plain.is_empty() {
            out.push(token);
            continue;
        }
        let signs = symbol.get(plain.len()..).unwrap_or_default().chars();
        let signs = signs.map(|sign| if sign == '+' { Token::Plus } else { Token::Minus });
        let made = first.into_iter().chain(signs);
        out.extend(made.map(|made| TokenWithSpan::new(made, token.span)));
    }
    out
}

/// The characters that let an operator end with a sign.
const OF_OWN_OPERATORS: [char; 10] = ['~', '!', '@', '#', '^', '&', '|', '`', '?', '%'];

/// Returns the token of an operator without a sign at its end.
fn operator_of(symbol: &str) -> Option<Token> {
    Some(match symbol {
        "->" => Token::Arrow,
        "->>" => Token::LongArrow,
        "=" => Token::Eq,
        "<" => Token::Lt,
        ">" => Token::Gt,
        "<=" => Token::LtEq,
        ">=" => Token::GtEq,
        "<>" => Token::Neq,
        "<<" => Token::ShiftLeft,
        ">>" => Token::ShiftRight,
        "*" => Token::Mul,
        "/" => Token::Div,
        _ => return None,
    })
}

/// Returns a quoted name.
pub(super) fn marker(value: &str) -> Token {
    let value = value.to_owned();
    Token::Word(Word { value, quote_style: Some('"'), keyword: Keyword::NoKeyword })
}

/// Returns whether a name is that marker.
pub(super) fn is_marker(name: &ObjectName, marker: &str) -> bool {
    let first = name.0.first().and_then(|part| part.as_ident());
    first.is_some_and(|ident| ident.value == marker)
}

/// Returns a keyword.
pub(super) fn word(keyword: Keyword) -> Token {
    Token::Word(Word { value: format!("{keyword:?}"), quote_style: None, keyword })
}

impl TokenEdits {
    pub fn new(tokens: Vec<TokenWithSpan>) -> TokenEdits {
        let is_shown = |at: &usize| !matches!(tokens[*at].token, Token::Whitespace(_));
        let shown = (0..tokens.len()).filter(is_shown).collect();
        TokenEdits { tokens, shown, changes: Vec::new() }
    }

    /// Returns the number of places.
    pub fn len(&self) -> usize {
        self.shown.len()
    }

    pub fn token(&self, place: usize) -> Option<&Token> {
        self.shown.get(place).map(|&at| &self.tokens[at].token)
    }

    pub fn is(&self, place: usize, wanted: &Token) -> bool {
        self.token(place) == Some(wanted)
    }

    pub fn keyword(&self, place: usize) -> Keyword {
        self.token(place).map_or(Keyword::NoKeyword, keyword_of)
    }

    /// Returns whether the words from that place on are these.
    pub fn has_keywords(&self, place: usize, wanted: &[Keyword]) -> bool {
        wanted.iter().enumerate().all(|(nth, wanted)| self.keyword(place + nth) == *wanted)
    }

    /// Returns whether that word is at that place, without quotes.
    pub fn is_word(&self, place: usize, wanted: &str) -> bool {
        self.token(place).is_some_and(|token| is_word(token, wanted))
    }

    /// Returns whether a name, quoted or not, is at that place.
    pub fn is_name(&self, place: usize) -> bool {
        matches!(self.token(place), Some(Token::Word(_)))
    }

    /// Returns the place of the parenthesis that closes the one at `open`.
    pub fn closing(&self, open: usize) -> Option<usize> {
        let is = |wanted: Token| move |token: &Token| *token == wanted;
        self.matching(open..self.len(), is(Token::LParen), is(Token::RParen))
    }

    /// Returns the place of the token that ends what the first of `places` begins, where such pairs
    /// may be within each other.
    pub fn matching(
        &self,
        places: impl Iterator<Item = usize>,
        begins: impl Fn(&Token) -> bool,
        ends: impl Fn(&Token) -> bool,
    ) -> Option<usize> {
        let mut depth = 0_usize;
        for place in places {
            let token = self.token(place)?;
            if begins(token) {
                depth += 1;
            } else if ends(token) {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(place);
                }
            }
        }
        None
    }

    /// Replaces the token at that place.
    pub fn replace(&mut self, place: usize, by: Vec<Token>) {
        if let Some(&at) = self.shown.get(place) {
            self.changes.push((at, by));
        }
    }

    /// Removes the token at that place.
    pub fn remove(&mut self, place: usize) {
        self.replace(place, Vec::new());
    }

    /// Removes the tokens at these places.
    pub fn remove_all(&mut self, places: impl IntoIterator<Item = usize>) {
        places.into_iter().for_each(|place| self.remove(place));
    }

    /// Removes the tokens from the place `first` to `last`, and the blanks between them.
    pub fn cut(&mut self, first: usize, last: usize) {
        if let (Some(&first), Some(&last)) = (self.shown.get(first), self.shown.get(last)) {
            self.changes.extend((first..=last).map(|at| (at, Vec::new())));
        }
    }

    /// Makes all replacements.
    pub fn finish(mut self) -> Vec<TokenWithSpan> {
        if self.changes.is_empty() {
            return self.tokens;
        }
        self.changes.sort_by_key(|(at, _)| *at);
        let mut out = Vec::with_capacity(self.tokens.len() + 2 * self.changes.len());
        let mut changes = self.changes.into_iter().peekable();
        for (at, token) in self.tokens.into_iter().enumerate() {
            match changes.next_if(|(place, _)| *place == at) {
                Some((_, made)) => {
                    out.extend(made.into_iter().map(|made| TokenWithSpan::new(made, token.span)));
                }
                None => out.push(token),
            }
        }
        out
    }
}
