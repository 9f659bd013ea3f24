//! Clauses of CREATE VIEW and ALTER VIEW that the parser does not know, in its form.
//!
//! The value of each option is a literal. WITH CHECK OPTION is the option `check_option`. The
//! parser knows ALTER VIEW with a new query only, so other forms are ALTER TABLE of a kind of table
//! that does not exist here.

use std::ops::Range;

use sqlparser::ast::AlterTableType;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Span, Token, TokenWithSpan, Whitespace, Word};

use super::positions::is_word;

/// The kind of table that stands for a view in ALTER TABLE.
pub const VIEW_TYPE: AlterTableType = AlterTableType::Iceberg;

/// The option that stands for WITH NO DATA of CREATE MATERIALIZED VIEW.
pub const NO_DATA: &str = "\0no_data";

/// The value of an option that RESET names.
pub const RESET_OPTION: &str = "\0reset";

fn keyword(token: &Token) -> Option<Keyword> {
    match token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    }
}

/// Returns the tokens of a text with these clauses in the parser's form.
pub fn adapted(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    if !tokens.iter().any(|token| keyword(&token.token) == Some(Keyword::VIEW)) {
        return tokens;
    }
    let mut out = Vec::with_capacity(tokens.len() + 8);
    for statement in tokens.split_inclusive(|token| token.token == Token::SemiColon) {
        let plain = ViewStatement::of(statement).without_recursive();
        let statement = ViewStatement::of(plain.as_deref().unwrap_or(statement));
        if statement.creates_view() {
            statement.push_creation(&mut out);
        } else if statement.alters_view() {
            statement.push_alteration(&mut out);
        } else {
            out.extend_from_slice(statement.tokens);
        }
    }
    out
}

/// A clause after the query of a view.
struct LastClause {
    places: Range<usize>,
    /// The name and value of the option that it is.
    option: Option<(&'static str, &'static str)>,
}

/// A statement, and which of its tokens are no blanks.
struct ViewStatement<'t> {
    tokens: &'t [TokenWithSpan],
    shown: Vec<usize>,
}

/// Puts tokens in the place of one.
fn push_made(out: &mut Vec<TokenWithSpan>, span: Span, made: impl IntoIterator<Item = Token>) {
    for token in made {
        out.push(TokenWithSpan::new(token, span));
        out.push(TokenWithSpan::new(Token::Whitespace(Whitespace::Space), span));
    }
}

fn word(value: &str, keyword: Keyword) -> Token {
    Token::Word(Word { value: value.to_owned(), quote_style: None, keyword })
}

impl<'t> ViewStatement<'t> {
    fn of(tokens: &'t [TokenWithSpan]) -> ViewStatement<'t> {
        let is_shown = |at: &usize| !matches!(tokens[*at].token, Token::Whitespace(_));
        ViewStatement { tokens, shown: (0..tokens.len()).filter(is_shown).collect() }
    }

    /// Returns the token at a place among those that are no blanks.
    fn token(&self, place: usize) -> Option<&'t Token> {
        Some(&self.tokens.get(*self.shown.get(place)?)?.token)
    }

    fn is(&self, place: usize, wanted: &str) -> bool {
        self.token(place).is_some_and(|token| is_word(token, wanted))
    }

    /// Returns CREATE RECURSIVE VIEW as CREATE VIEW of a query WITH RECURSIVE.
    fn without_recursive(&self) -> Option<Vec<TokenWithSpan>> {
        let word_place = |words: &[&str], from: usize| {
            (from..self.shown.len()).find(|at| words.iter().any(|word| self.is(*at, word)))
        };
        if !self.is(0, "CREATE") {
            return None;
        }
        let skipped = ["OR", "REPLACE", "TEMP", "TEMPORARY", "LOCAL", "GLOBAL"];
        let recursive =
            (1..self.shown.len()).find(|at| !skipped.iter().any(|word| self.is(*at, word)))?;
        if !self.is(recursive, "RECURSIVE") || !self.is(recursive + 1, "VIEW") {
            return None;
        }
        let mut name = recursive + 2;
        while self.token(name + 1) == Some(&Token::Period) {
            name += 2;
        }
        let open = name + 1;
        let is_close = |at: &usize| self.token(*at) == Some(&Token::RParen);
        let close = (open..self.shown.len()).find(is_close)?;
        let query = word_place(&["AS"], close)? + 1;
        if self.token(open) != Some(&Token::LParen) {
            return None;
        }
        let span = self.span(query - 1);
        let part = |from: usize, to: usize| {
            self.tokens.get(self.at(from)..self.at(to)).unwrap_or_default().to_vec()
        };
        let mut out = part(0, recursive);
        out.extend(part(recursive + 1, query));
        let blank = || TokenWithSpan::new(Token::Whitespace(Whitespace::Space), span);
        let made = |token: Token| TokenWithSpan::new(token, span);
        out.push(blank());
        push_made(
            &mut out,
            span,
            [word("WITH", Keyword::WITH), word("RECURSIVE", Keyword::RECURSIVE)],
        );
        out.extend(part(name, close + 1));
        out.extend([blank(), made(word("AS", Keyword::AS)), made(Token::LParen)]);
        out.extend(part(query, self.end()));
        out.push(made(Token::RParen));
        push_made(&mut out, span, [word("SELECT", Keyword::SELECT)]);
        out.extend(part(open + 1, close));
        out.push(blank());
        push_made(&mut out, span, [word("FROM", Keyword::FROM)]);
        out.extend(part(name, name + 1));
        out.extend_from_slice(self.tokens.get(self.at(self.end())..).unwrap_or_default());
        Some(out)
    }

    fn creates_view(&self) -> bool {
        let mut place = 1;
        while ["OR", "REPLACE", "TEMP", "TEMPORARY", "MATERIALIZED"]
            .iter()
            .any(|word| self.is(place, word))
        {
            place += 1;
        }
        self.is(0, "CREATE") && self.is(place, "VIEW")
    }

    fn alters_view(&self) -> bool {
        self.is(0, "ALTER") && (self.is(1, "VIEW") || self.alters_materialized())
    }

    fn alters_materialized(&self) -> bool {
        self.is(1, "MATERIALIZED") && self.is(2, "VIEW")
    }

    /// Returns the clause at the end: WITH CHECK OPTION, or of a materialized view WITH DATA, which
    /// is no option, and WITH NO DATA.
    fn last_clause(&self) -> Option<LastClause> {
        if !self.is(1, "MATERIALIZED") {
            let (places, kind) = self.check_option()?;
            return Some(LastClause { places, option: Some(("check_option", kind)) });
        }
        let end = self.end();
        let last = end.checked_sub(2).filter(|last| self.is(last + 1, "DATA"))?;
        if self.is(last, "WITH") {
            return Some(LastClause { places: last..end, option: None });
        }
        let before = last.checked_sub(1).filter(|before| self.is(*before, "WITH"))?;
        let option = Some((NO_DATA, "true"));
        self.is(last, "NO").then_some(LastClause { places: before..end, option })
    }

    /// Returns the place after the last token of the statement.
    fn end(&self) -> usize {
        let is_end = |place: usize| {
            self.token(place).is_none_or(|it| matches!(it, Token::SemiColon | Token::EOF))
        };
        let mut end = self.shown.len();
        while end > 0 && is_end(end - 1) {
            end -= 1;
        }
        end
    }

    /// Returns the places of WITH CHECK OPTION at the end, and which conditions it means.
    fn check_option(&self) -> Option<(Range<usize>, &'static str)> {
        let end = self.end();
        let start = end.checked_sub(3)?;
        if !self.is(start + 1, "CHECK") || !self.is(start + 2, "OPTION") {
            return None;
        }
        if self.is(start, "WITH") {
            return Some((start..end, "cascaded"));
        }
        let before = start.checked_sub(1).filter(|before| self.is(*before, "WITH"))?;
        let kinds = [("LOCAL", "local"), ("CASCADED", "cascaded")];
        let kind = kinds.into_iter().find(|(written, _)| self.is(start, written))?;
        Some((before..end, kind.1))
    }

    /// Returns the places of the parentheses of the options, and of AS before the query.
    fn options(&self) -> (Option<Range<usize>>, Option<usize>) {
        let (mut depth, mut open, mut list) = (0_usize, None, None);
        for place in 0..self.shown.len() {
            match self.token(place) {
                Some(Token::LParen) => {
                    if depth == 0 && place > 0 && self.is(place - 1, "WITH") {
                        open = Some(place);
                    }
                    depth += 1;
                }
                Some(Token::RParen) => {
                    depth = depth.saturating_sub(1);
                    if let (0, Some(open)) = (depth, open.take_if(|_| depth == 0)) {
                        list = Some(open..place);
                    }
                }
                Some(token) if depth == 0 && is_word(token, "AS") => return (list, Some(place)),
                _ => {}
            }
        }
        (list, None)
    }

    fn at(&self, place: usize) -> usize {
        self.shown.get(place).copied().unwrap_or(self.tokens.len())
    }

    fn span(&self, place: usize) -> Span {
        self.tokens.get(self.at(place)).map_or_else(Span::empty, |token| token.span)
    }

    fn push(&self, out: &mut Vec<TokenWithSpan>, range: Range<usize>) {
        out.extend_from_slice(self.tokens.get(range).unwrap_or_default());
    }

    /// Adds the options between two parentheses, each with a literal: with the given one, if there
    /// is one.
    fn push_options(&self, out: &mut Vec<TokenWithSpan>, list: &Range<usize>, given: Option<&str>) {
        let mut place = list.start + 1;
        while place < list.end {
            let name = place;
            self.push(out, self.at(place)..self.at(place) + 1);
            place += 1;
            let has_value = self.token(place) == Some(&Token::Eq);
            if has_value || matches!(self.token(place), Some(Token::Comma | Token::RParen)) {
                let written = self.token(place + 1).filter(|_| has_value);
                let value = match written {
                    _ if given.is_some() => given.unwrap_or_default().to_owned(),
                    None => "true".to_owned(),
                    Some(Token::SingleQuotedString(text)) => text.clone(),
                    Some(Token::Word(word)) => word.value.to_lowercase(),
                    Some(other) => other.to_string(),
                };
                push_made(out, self.span(name), [Token::Eq, Token::SingleQuotedString(value)]);
                place += if has_value { 2 } else { 0 };
            }
            if place < list.end {
                self.push(out, self.at(place)..self.at(place) + 1);
                place += 1;
            }
        }
    }

    fn push_creation(&self, out: &mut Vec<TokenWithSpan>) {
        let (list, query) = self.options();
        let check = self.last_clause();
        let Some(query) = query else { return out.extend_from_slice(self.tokens) };
        let option = check.as_ref().and_then(|clause| clause.option).map(|(name, value)| {
            let value = Token::SingleQuotedString(value.to_owned());
            [word(name, Keyword::NoKeyword), Token::Eq, value]
        });
        let span = self.span(query);
        match &list {
            Some(list) => {
                self.push(out, 0..self.at(list.start) + 1);
                self.push_options(out, list, None);
                if let Some(option) = option {
                    push_made(out, span, std::iter::once(Token::Comma).chain(option));
                }
                self.push(out, self.at(list.end)..self.at(query));
            }
            None => {
                self.push(out, 0..self.at(query));
                if let Some(option) = option {
                    let open = [word("WITH", Keyword::WITH), Token::LParen];
                    push_made(out, span, open.into_iter().chain(option).chain([Token::RParen]));
                }
            }
        }
        match check {
            Some(LastClause { places, .. }) => {
                self.push(out, self.at(query)..self.at(places.start));
                self.push(out, self.at(places.end)..self.tokens.len());
            }
            None => self.push(out, self.at(query)..self.tokens.len()),
        }
    }

    fn push_alteration(&self, out: &mut Vec<TokenWithSpan>) {
        self.push(out, 0..self.at(1));
        let table = [word("ICEBERG", Keyword::ICEBERG), word("TABLE", Keyword::TABLE)];
        push_made(out, self.span(1), table);
        let first = if self.alters_materialized() { 3 } else { 2 };
        let places = first..self.shown.len();
        let begins = |place: &usize| {
            (self.is(*place, "SET") || self.is(*place, "RESET"))
                && self.token(place + 1) == Some(&Token::LParen)
        };
        let last = |at: &usize| self.token(*at) == Some(&Token::RParen);
        let (Some(start), Some(end)) = (places.clone().find(begins), places.rev().find(last))
        else {
            return self.push(out, self.at(first)..self.tokens.len());
        };
        self.push(out, self.at(first)..self.at(start));
        push_made(out, self.span(start), [word("SET", Keyword::SET), Token::LParen]);
        let given = self.is(start, "RESET").then_some(RESET_OPTION);
        self.push_options(out, &(start + 1..end), given);
        self.push(out, self.at(end)..self.tokens.len());
    }
}
