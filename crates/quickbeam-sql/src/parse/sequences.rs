//! Definitions of sequences, in the parser's form.
//!
//! PostgreSQL takes a sequence's options in any order, the parser in one only, so they are sorted.
//! The parser does not know ALTER SEQUENCE; it becomes a procedure call. It does not know SEQUENCE
//! NAME of an identity column either; that becomes the value of CACHE, as a marker.

use std::ops::Range;

use sqlparser::ast::{Expr, Value, ValueWithSpan};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Span, Token, TokenWithSpan, Word};

use super::command::Name;
use super::token_edits::TokenEdits;

/// The procedure that alters a sequence. Its arguments are the sequence's name, then the name of
/// each option and its value; NULL is the default.
pub const ALTER: &str = "\0alter_sequence";

/// The beginning of the marker of SEQUENCE NAME; schema and name follow, each after a character 1.
const SEQUENCE_NAME: &str = "\0sequence name";

/// Returns the name that a value of CACHE stands for.
pub fn sequence_name(cache: &Expr) -> Option<Name> {
    let Expr::Value(ValueWithSpan { value: Value::Placeholder(marker), .. }) = cache else {
        return None;
    };
    let mut parts = marker.strip_prefix(SEQUENCE_NAME)?.rsplit('\u{1}');
    let name = parts.next()?.into();
    Some((parts.next().filter(|schema| !schema.is_empty()).map(Into::into), name))
}

/// The tokens of a text, with the options of sequences in the parser's order.
pub fn adapted(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let about_sequences = |token: &TokenWithSpan| {
        matches!(keyword(&token.token), Some(Keyword::SEQUENCE | Keyword::IDENTITY))
    };
    if !tokens.iter().any(about_sequences) {
        return tokens;
    }
    tokens = without_unlogged(with_alterations(tokens));
    for at in 0..tokens.len() {
        if let Some(range) = options_at(&tokens, at) {
            name_by_cache(&mut tokens, range.clone());
            sort(&mut tokens, range);
        }
    }
    tokens
}

/// Returns the tokens without UNLOGGED in CREATE UNLOGGED SEQUENCE, which has no effect.
fn without_unlogged(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut edits = TokenEdits::new(tokens);
    for place in 0..edits.len() {
        if edits.has_keywords(place, &[Keyword::CREATE, Keyword::UNLOGGED, Keyword::SEQUENCE]) {
            edits.remove(place + 1);
        }
    }
    edits.finish()
}

/// Makes `SEQUENCE NAME name` the value of CACHE. Another CACHE has no effect and goes.
fn name_by_cache(tokens: &mut [TokenWithSpan], range: Range<usize>) {
    let Some(part) = tokens.get_mut(range) else { return };
    let shown: Vec<usize> = words(part, 0).map(|(at, _)| at).collect();
    let is_keyword = |part: &[TokenWithSpan], at: Option<&usize>, wanted: Keyword| {
        at.is_some_and(|&at| keyword(&part[at].token) == Some(wanted))
    };
    let Some(start) =
        shown.iter().position(|&at| keyword(&part[at].token) == Some(Keyword::SEQUENCE))
    else {
        return;
    };
    if !is_keyword(part, shown.get(start + 1), Keyword::NAME) {
        return;
    }
    let (mut marker, mut next) = (SEQUENCE_NAME.to_owned(), start + 2);
    while let Some(Token::Word(word)) = shown.get(next).map(|&at| &part[at].token) {
        let is_quoted = word.quote_style.is_some();
        marker.push('\u{1}');
        marker.push_str(&if is_quoted { word.value.clone() } else { word.value.to_lowercase() });
        next += 1;
        match shown.get(next).map(|&at| &part[at].token) {
            Some(Token::Period) => next += 1,
            _ => break,
        }
    }
    let blank = || Token::Whitespace(sqlparser::tokenizer::Whitespace::Space);
    if let Some(cache) =
        shown.iter().position(|&at| keyword(&part[at].token) == Some(Keyword::CACHE))
    {
        for &at in shown.iter().skip(cache).take(2) {
            part[at].token = blank();
        }
    }
    for &at in shown.get(start..next).unwrap_or_default() {
        part[at].token = blank();
    }
    let cache = Word { value: "CACHE".to_owned(), quote_style: None, keyword: Keyword::CACHE };
    part[shown[start]].token = Token::Word(cache);
    part[shown[start + 1]].token = Token::Placeholder(marker);
}

fn keyword(token: &Token) -> Option<Keyword> {
    match token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    }
}

/// The words of the tokens from there on, without blanks: each with its place.
fn words(tokens: &[TokenWithSpan], from: usize) -> impl Iterator<Item = (usize, &Token)> {
    let rest = tokens.iter().enumerate().skip(from);
    let shown = rest.filter(|(_, token)| !matches!(token.token, Token::Whitespace(_)));
    shown.map(|(at, token)| (at, &token.token))
}

/// Returns the options of the keyword at that token: SEQUENCE after CREATE, or IDENTITY.
fn options_at(tokens: &[TokenWithSpan], at: usize) -> Option<Range<usize>> {
    match keyword(&tokens.get(at)?.token)? {
        Keyword::SEQUENCE => {
            let earlier = tokens.get(..at)?.iter().rev();
            let before =
                earlier.map(|token| &token.token).find(|t| !matches!(t, Token::Whitespace(_)));
            let creates = [Keyword::CREATE, Keyword::TEMP, Keyword::TEMPORARY];
            if !before.and_then(keyword).is_some_and(|word| creates.contains(&word)) {
                return None;
            }
            // The name comes first, even if it is a keyword.
            let skipped = [Some(Keyword::IF), Some(Keyword::NOT), Some(Keyword::EXISTS)];
            let mut name = words(tokens, at + 1).skip_while(|(_, t)| skipped.contains(&keyword(t)));
            let start = name.next()?.0 + 1;
            let end = words(tokens, start)
                .find(|(_, token)| matches!(token, Token::SemiColon | Token::EOF));
            Some(start..end.map_or(tokens.len(), |(at, _)| at))
        }
        Keyword::IDENTITY => {
            let (open, token) = words(tokens, at + 1).next()?;
            if *token != Token::LParen {
                return None;
            }
            let close = words(tokens, open).find(|(_, token)| **token == Token::RParen)?;
            Some(open + 1..close.0)
        }
        _ => None,
    }
}

/// The place of an option in the parser's order.
fn rank(word: Keyword) -> Option<u8> {
    Some(match word {
        Keyword::AS => 1,
        Keyword::INCREMENT => 2,
        Keyword::MINVALUE => 3,
        Keyword::MAXVALUE => 4,
        Keyword::START => 5,
        Keyword::CACHE => 6,
        Keyword::CYCLE => 7,
        Keyword::OWNED => 8,
        _ => return None,
    })
}

fn sort(tokens: &mut [TokenWithSpan], range: Range<usize>) {
    let Some(part) = tokens.get_mut(range) else { return };
    let mut options: Vec<(u8, Vec<TokenWithSpan>)> = vec![(0, Vec::new())];
    let mut follows_no = false;
    for at in 0..part.len() {
        let Some(token) = part.get(at) else { break };
        let word = keyword(&token.token);
        let begins = match word {
            Some(Keyword::NO) => {
                words(part, at + 1).next().and_then(|(_, next)| rank(keyword(next)?))
            }
            Some(word) if !follows_no => rank(word),
            _ => None,
        };
        if !matches!(token.token, Token::Whitespace(_)) {
            follows_no = word == Some(Keyword::NO);
        }
        match (begins, options.last_mut()) {
            (None, Some((_, last))) => last.push(token.clone()),
            (begins, _) => options.push((begins.unwrap_or(0), vec![token.clone()])),
        }
    }
    options.sort_by_key(|(rank, _)| *rank);
    let sorted = options.into_iter().flat_map(|(_, tokens)| tokens);
    part.iter_mut().zip(sorted).for_each(|(place, token)| *place = token);
}

/// Returns the tokens of a text with `ALTER SEQUENCE name option …` as a procedure call.
fn with_alterations(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut out = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match alteration_at(&tokens, at) {
            Some((call, end)) => {
                out.extend(call);
                at = end;
            }
            None => {
                out.push(token.clone());
                at += 1;
            }
        }
    }
    out
}

/// The words of an ALTER SEQUENCE from there on.
struct Alteration<'t> {
    words: Vec<(usize, &'t TokenWithSpan)>,
    at: usize,
    call: Vec<TokenWithSpan>,
    span: Span,
}

impl Alteration<'_> {
    fn takes(&mut self, wanted: Keyword) -> bool {
        let next = self.words.get(self.at).and_then(|(_, token)| keyword(&token.token));
        let found = next == Some(wanted);
        self.at += usize::from(found);
        found
    }

    fn push(&mut self, token: Token) {
        self.call.push(TokenWithSpan::new(token, self.span));
    }

    fn option(&mut self, name: &str) {
        self.push(Token::Comma);
        self.push(Token::SingleQuotedString(name.to_owned()));
        self.push(Token::Comma);
    }

    fn word(&mut self, value: &str, keyword: Keyword) {
        self.push(Token::Word(Word { value: value.to_owned(), quote_style: None, keyword }));
    }

    /// Takes a signed number.
    fn number(&mut self) -> Option<()> {
        if let Some((_, sign)) = self.words.get(self.at)
            && matches!(sign.token, Token::Minus | Token::Plus)
        {
            let sign = (*sign).clone();
            self.call.push(sign);
            self.at += 1;
        }
        let (_, number) = self.words.get(self.at)?;
        if !matches!(number.token, Token::Number(..)) {
            return None;
        }
        let number = (*number).clone();
        self.call.push(number);
        self.at += 1;
        Some(())
    }

    /// Takes a qualified name.
    fn name(&mut self) -> Option<()> {
        loop {
            let (_, word) = self.words.get(self.at)?;
            if !matches!(word.token, Token::Word(_)) {
                return None;
            }
            let word = (*word).clone();
            self.call.push(word);
            self.at += 1;
            match self.words.get(self.at) {
                Some((_, period)) if period.token == Token::Period => {
                    let period = (*period).clone();
                    self.call.push(period);
                    self.at += 1;
                }
                _ => return Some(()),
            }
        }
    }

    /// Takes an option. Returns `None` if there is no such one.
    fn take_option(&mut self) -> Option<()> {
        let numbers = [
            (Keyword::INCREMENT, "increment", Keyword::BY),
            (Keyword::START, "start", Keyword::WITH),
            (Keyword::MINVALUE, "minvalue", Keyword::NoKeyword),
            (Keyword::MAXVALUE, "maxvalue", Keyword::NoKeyword),
            (Keyword::CACHE, "cache", Keyword::NoKeyword),
        ];
        for (keyword, name, filler) in numbers {
            if self.takes(keyword) {
                self.option(name);
                if filler != Keyword::NoKeyword {
                    self.takes(filler);
                }
                return self.number();
            }
        }
        if self.takes(Keyword::RESTART) {
            self.option("restart");
            let is_given = self.takes(Keyword::WITH)
                || self.words.get(self.at).is_some_and(|(_, token)| {
                    matches!(token.token, Token::Minus | Token::Plus | Token::Number(..))
                });
            if is_given {
                return self.number();
            }
            self.word("NULL", Keyword::NULL);
        } else if self.takes(Keyword::AS) {
            let Some((_, TokenWithSpan { token: Token::Word(word), .. })) = self.words.get(self.at)
            else {
                return None;
            };
            let name = word.value.clone();
            self.at += 1;
            self.option("as");
            self.push(Token::SingleQuotedString(name));
        } else if self.takes(Keyword::CYCLE) {
            self.option("cycle");
            self.word("TRUE", Keyword::TRUE);
        } else if self.takes(Keyword::NO) {
            let (name, value) = match () {
                () if self.takes(Keyword::MINVALUE) => ("minvalue", ("NULL", Keyword::NULL)),
                () if self.takes(Keyword::MAXVALUE) => ("maxvalue", ("NULL", Keyword::NULL)),
                () if self.takes(Keyword::CYCLE) => ("cycle", ("FALSE", Keyword::FALSE)),
                () => return None,
            };
            self.option(name);
            self.word(value.0, value.1);
        } else if self.takes(Keyword::OWNED) {
            self.takes(Keyword::BY).then_some(())?;
            self.option("owned");
            return self.name();
        } else if self.takes(Keyword::SET) {
            // All sequences are logged.
            let is_known = self.takes(Keyword::LOGGED) || self.takes(Keyword::UNLOGGED);
            is_known.then_some(())?;
        } else {
            return None;
        }
        Some(())
    }
}

/// Returns the call of an ALTER SEQUENCE that begins at that token, and the token after it.
fn alteration_at(tokens: &[TokenWithSpan], at: usize) -> Option<(Vec<TokenWithSpan>, usize)> {
    let is_end = |token: &Token| matches!(token, Token::SemiColon | Token::EOF);
    if keyword(&tokens.get(at)?.token) != Some(Keyword::ALTER) {
        return None;
    }
    let shown = tokens.iter().enumerate().skip(at);
    let shown = shown.filter(|(_, token)| !matches!(token.token, Token::Whitespace(_)));
    let words: Vec<(usize, &TokenWithSpan)> =
        shown.take_while(|(_, token)| !is_end(&token.token)).collect();
    let span = tokens.get(at)?.span;
    let mut reader = Alteration { words, at: 1, call: Vec::new(), span };
    reader.takes(Keyword::SEQUENCE).then_some(())?;
    reader.word("CALL", Keyword::CALL);
    reader.push(Token::Whitespace(sqlparser::tokenizer::Whitespace::Space));
    reader.push(Token::Word(Word {
        value: ALTER.to_owned(),
        quote_style: Some('"'),
        keyword: Keyword::NoKeyword,
    }));
    reader.push(Token::LParen);
    let if_exists = reader.takes(Keyword::IF) && reader.takes(Keyword::EXISTS);
    reader.name()?;
    if if_exists {
        reader.option("if exists");
        reader.word("TRUE", Keyword::TRUE);
    }
    let first = reader.at;
    while reader.at < reader.words.len() {
        reader.take_option()?;
    }
    if reader.at == first {
        return None;
    }
    reader.call.push(TokenWithSpan::new(Token::RParen, Span::empty()));
    let end = reader.words.last().map_or(at + 1, |(last, _)| last + 1);
    Some((reader.call, end))
}
