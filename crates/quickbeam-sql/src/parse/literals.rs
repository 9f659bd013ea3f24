//! Literals, as PostgreSQL reads them.
//!
//! The tokenizer differs from PostgreSQL 15 for some numbers and texts. It splits a number and a
//! word that directly follows, reads `0x10` as bytes, and never continues a quoted text. Here the
//! tokens become those of PostgreSQL, or are refused.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Whitespace, Word};

use crate::error::{Result, SqlError, SqlState};
use crate::parse::is_word;
use crate::types::{EncodedKind, SystemType};

/// A place in the text that only moves forward, so that all tokens together cost one walk over it.
pub(super) struct Cursor<'t> {
    text: &'t str,
    at: usize,
    line: u64,
    column: u64,
}

impl<'t> Cursor<'t> {
    pub fn new(text: &'t str) -> Cursor<'t> {
        Cursor { text, at: 0, line: 1, column: 1 }
    }

    /// That place, in bytes from the start of the text.
    pub fn move_to(&mut self, location: Location) -> usize {
        self.from(location);
        self.at
    }

    /// The text from a place in bytes on.
    pub fn text_from(&self, at: usize) -> &'t str {
        self.text.get(at..).unwrap_or_default()
    }

    /// The text from that place on.
    fn from(&mut self, location: Location) -> &'t str {
        let mut rest = self.text.get(self.at..).unwrap_or_default().chars();
        while (self.line, self.column) < (location.line, location.column) {
            let Some(character) = rest.next() else { break };
            if character == '\n' {
                (self.line, self.column) = (self.line + 1, 1);
            } else {
                self.column += 1;
            }
        }
        self.at = self.text.len() - rest.as_str().len();
        rest.as_str()
    }
}

#[cold]
fn fault(message: String, at: usize) -> SqlError {
    SqlError::new(SqlState::SyntaxError, format!("syntax error: {message}")).at(at)
}

const JUNK: &str = "trailing junk after numeric literal";

/// Returns the tokens of a text, with literals as in PostgreSQL.
pub fn adapted(text: &str, tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>> {
    let mut cursor = Cursor::new(text);
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for mut token in tokens {
        if is_national(&out, &token) {
            // `NATIONAL CHARACTER` is CHARACTER.
            while out.pop().is_some_and(|before| is_blank(&before.token)) {}
            out.push(token);
        } else if is_null_test(&out, &token) {
            let word = |keyword: Keyword, value: &str| {
                let value = value.to_owned();
                let word = Token::Word(Word { value, quote_style: None, keyword });
                TokenWithSpan::new(word, token.span)
            };
            out.extend([word(Keyword::IS, "IS"), word(Keyword::NULL, "NULL")]);
        } else if is_typed_literal(&out, &token) {
            type_literal(&mut out, token);
        } else if let Some(at) = interval_with_precision(&out, &token) {
            // `INTERVAL(2) '1.5'` is a cast of the text.
            let cast = TokenWithSpan::new(Token::DoubleColon, token.span);
            out.splice(at..at, [token, cast]);
        } else if !joins(&mut out, &token, &mut cursor)? {
            adapt(&mut token, &mut cursor)?;
            out.push(token);
        }
    }
    Ok(out)
}

/// Names in `pg_type` that the parser knows as keywords, so that they name types of literals only
/// where they are quoted or follow `pg_catalog`.
const KEYWORD_TYPES: [&str; 17] = [
    "bool",
    "int2",
    "int4",
    "int8",
    "float4",
    "float8",
    "numeric",
    "text",
    "varchar",
    "bytea",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "interval",
    "json",
    "jsonb",
];

/// Whether a token is the text of a literal whose type stands before it, in a form that the parser
/// does not know.
fn is_typed_literal(before: &[TokenWithSpan], token: &TokenWithSpan) -> bool {
    let Token::SingleQuotedString(_) = token.token else { return false };
    let mut earlier = before.iter().rev().map(|token| &token.token);
    let Some(Token::Word(word)) = earlier.find(|token| !is_blank(token)) else { return false };
    let name = match word.quote_style {
        None => word.value.to_ascii_lowercase(),
        Some(_) => word.value.clone(),
    };
    let is_known =
        || name == "uuid" || KEYWORD_TYPES.contains(&&*name) || SystemType::named(&name).is_some();
    if matches!(&*name, "bpchar" | "nchar") || EncodedKind::named(&name).is_some() {
        return true;
    }
    match earlier.next() {
        Some(Token::Period) => {
            earlier.next().is_some_and(|it| is_word(it, "PG_CATALOG")) && is_known()
        }
        _ if word.quote_style.is_some() => is_known(),
        _ => name != "char" && SystemType::named(&name).is_some(),
    }
}

/// Returns whether a token is CHARACTER or CHAR after NATIONAL.
fn is_national(before: &[TokenWithSpan], token: &TokenWithSpan) -> bool {
    let is_character = is_word(&token.token, "CHARACTER") || is_word(&token.token, "CHAR");
    let last = before.iter().rev().find(|it| !is_blank(&it.token));
    is_character && last.is_some_and(|last| is_word(&last.token, "NATIONAL"))
}

fn is_blank(token: &Token) -> bool {
    matches!(token, Token::Whitespace(_))
}

/// Returns where `INTERVAL(precision)` begins if a token is the text of such a literal.
fn interval_with_precision(before: &[TokenWithSpan], token: &TokenWithSpan) -> Option<usize> {
    let Token::SingleQuotedString(_) = token.token else { return None };
    let mut earlier = before.iter().enumerate().rev().filter(|(_, it)| !is_blank(&it.token));
    let mut next = || earlier.next();
    let is = |found: Option<(usize, &TokenWithSpan)>, wanted: &dyn Fn(&Token) -> bool| {
        found.filter(|(_, it)| wanted(&it.token)).map(|(at, _)| at)
    };
    is(next(), &|it| *it == Token::RParen)?;
    is(next(), &|it| matches!(it, Token::Number(..)))?;
    is(next(), &|it| *it == Token::LParen)?;
    is(next(), &|it| is_word(it, "INTERVAL"))
}

/// Turns a type and the text of a literal into a cast of the text.
fn type_literal(out: &mut Vec<TokenWithSpan>, token: TokenWithSpan) {
    let Some(mut at) = out.iter().rposition(|token| matches!(token.token, Token::Word(_))) else {
        return;
    };
    out.truncate(at + 1);
    // The literal of a BIT has any length, as the type of this name in the catalog has.
    if let Token::Word(word) = &mut out[at].token
        && word.keyword == Keyword::BIT
    {
        *word = Word { value: "bit".into(), quote_style: Some('"'), keyword: Keyword::NoKeyword };
    }
    if at >= 2 && out[at - 1].token == Token::Period {
        at -= 2;
    }
    let name = out.split_off(at);
    let span = name.first().map_or(token.span, |first| first.span);
    out.push(token);
    out.push(TokenWithSpan::new(Token::DoubleColon, span));
    out.extend(name);
}

/// Whether a token is the operator ISNULL, which the parser does not know. After AS it is a name.
fn is_null_test(before: &[TokenWithSpan], token: &TokenWithSpan) -> bool {
    if !is_word(&token.token, "ISNULL") {
        return false;
    }
    let mut earlier = before.iter().rev().map(|token| &token.token);
    let last = earlier.find(|token| !matches!(token, Token::Whitespace(_)));
    !last.is_some_and(|last| *last == Token::Period || is_word(last, "AS"))
}

/// Whether a token is part of the literal before it, which it is added to.
fn joins(
    out: &mut [TokenWithSpan],
    token: &TokenWithSpan,
    cursor: &mut Cursor<'_>,
) -> Result<bool> {
    match &token.token {
        Token::Word(word) if word.quote_style.is_none() => match out.last_mut() {
            Some(TokenWithSpan { token: Token::Number(..), span })
                if span.end == token.span.start =>
            {
                Err(fault(JUNK.into(), cursor.move_to(span.start)))
            }
            _ => Ok(false),
        },
        Token::SingleQuotedString(more) => {
            let Some((at, on_new_line)) = text_before(out) else { return Ok(false) };
            match out.get_mut(at).map(|before| &mut before.token) {
                Some(Token::SingleQuotedString(content)) if on_new_line => {
                    content.push_str(more);
                    Ok(true)
                }
                _ => {
                    let message = format!("unexpected text '{more}' behind another one");
                    Err(fault(message, cursor.move_to(token.span.start)))
                }
            }
        }
        _ => Ok(false),
    }
}

/// Puts one token right.
fn adapt(token: &mut TokenWithSpan, cursor: &mut Cursor<'_>) -> Result<()> {
    let start = token.span.start;
    match &mut token.token {
        Token::Number(digits, is_long) if *is_long || digits.contains('_') => {
            return Err(fault(JUNK.into(), cursor.move_to(start)));
        }
        Token::DoubleEq => {
            let error = SqlError::new(SqlState::UndefinedFunction, "operator does not exist: ==");
            return Err(error.at(cursor.move_to(start)));
        }
        // `0x1f` is bytes to the tokenizer; `X'1f'` is a bit string.
        Token::HexStringLiteral(_) if cursor.from(start).starts_with('0') => {
            return Err(fault(JUNK.into(), cursor.at));
        }
        Token::Placeholder(name) => {
            let digits = name.strip_prefix('$').unwrap_or_default();
            let begins = digits.starts_with(|c: char| c.is_ascii_digit());
            if begins && !digits.bytes().all(|digit| digit.is_ascii_digit()) {
                let message = "trailing junk after parameter";
                return Err(fault(message.into(), cursor.move_to(start)));
            }
        }
        Token::EscapedStringLiteral(content) => {
            *content = unescaped(cursor.from(start)).map_err(|error| error.at(cursor.at))?;
        }
        _ => {}
    }
    Ok(())
}

/// Returns the token of a text that the next token could continue, and whether a line break
/// separates them.
fn text_before(tokens: &[TokenWithSpan]) -> Option<(usize, bool)> {
    let mut on_new_line = false;
    for (at, token) in tokens.iter().enumerate().rev() {
        match &token.token {
            Token::Whitespace(Whitespace::Newline | Whitespace::SingleLineComment { .. }) => {
                on_new_line = true;
            }
            Token::Whitespace(_) => {}
            Token::SingleQuotedString(_)
            | Token::EscapedStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            | Token::NationalStringLiteral(_)
            | Token::DollarQuotedString(_)
            | Token::HexStringLiteral(_) => return Some((at, on_new_line)),
            _ => return None,
        }
    }
    None
}

/// Returns the value of a text that begins with `E'`. Its escapes are bytes, which must form UTF-8.
pub fn unescaped(source: &str) -> Result<String> {
    let mut bytes = Vec::new();
    let mut rest = source.get(2..).unwrap_or_default().chars();
    loop {
        match rest.next() {
            None => {
                return Err(SqlError::new(
                    SqlState::SyntaxError,
                    "syntax error: a quote is missing",
                ));
            }
            Some('\'') => {
                if !rest.as_str().starts_with('\'') {
                    break;
                }
                rest.next();
                bytes.push(b'\'');
            }
            Some('\\') => escape(&mut rest, &mut bytes)?,
            Some(other) => bytes.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    if bytes.contains(&0) {
        return Err(not_utf8(0));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        not_utf8(error.as_bytes().get(at).copied().unwrap_or_default())
    })
}

#[cold]
fn not_utf8(byte: u8) -> SqlError {
    let message = format!("invalid byte sequence for encoding \"UTF8\": 0x{byte:02x}");
    SqlError::new(SqlState::CharacterNotInRepertoire, message)
}

/// Reads one escape, after its backslash.
fn escape(rest: &mut std::str::Chars<'_>, bytes: &mut Vec<u8>) -> Result<()> {
    let Some(first) = rest.next() else { return Ok(()) };
    match first {
        'b' => bytes.push(8),
        'f' => bytes.push(12),
        'n' => bytes.push(b'\n'),
        'r' => bytes.push(b'\r'),
        't' => bytes.push(b'\t'),
        // Of three octal digits only the lower eight bits count.
        '0'..='7' => {
            let more = digits(rest, 8, 2);
            let number = first.to_digit(8).unwrap_or_default();
            bytes.push((more.1.wrapping_add(number << (3 * more.0))) as u8);
        }
        'x' => match digits(rest, 16, 2) {
            (0, _) => bytes.push(b'x'),
            (_, number) => bytes.push(number as u8),
        },
        'u' | 'U' => {
            let character = unicode_escape(first, rest)?;
            bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
        other => bytes.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
    }
    Ok(())
}

/// Reads the digits after `u` or `U`, and the second escape of a surrogate pair.
fn unicode_escape(letter: char, rest: &mut std::str::Chars<'_>) -> Result<char> {
    let number = |letter: char, rest: &mut std::str::Chars<'_>| {
        let wanted = if letter == 'u' { 4 } else { 8 };
        match digits(rest, 16, wanted) {
            (count, number) if count == wanted => Ok(number),
            _ => {
                let error =
                    SqlError::new(SqlState::InvalidEscapeSequence, "invalid Unicode escape");
                Err(error.with_hint("Unicode escapes must be \\uXXXX or \\UXXXXXXXX."))
            }
        }
    };
    let refuse = |message: &str| SqlError::new(SqlState::SyntaxError, message);
    let first = number(letter, rest)?;
    let is_high = (0xd800..=0xdbff).contains(&first);
    if !is_high && !(0xdc00..=0xdfff).contains(&first) {
        return char::from_u32(first).ok_or_else(|| refuse("invalid Unicode escape value"));
    }
    let next = rest.as_str().strip_prefix('\\').and_then(|it| it.chars().next());
    let Some(letter @ ('u' | 'U')) = next.filter(|_| is_high) else {
        return Err(refuse("invalid Unicode surrogate pair"));
    };
    rest.nth(1);
    let second = number(letter, rest)?;
    let low = second.checked_sub(0xdc00).filter(|low| *low < 0x400);
    low.and_then(|low| char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + low))
        .ok_or_else(|| refuse("invalid Unicode surrogate pair"))
}

/// Reads at most `most` digits. Returns their count and their value.
fn digits(rest: &mut std::str::Chars<'_>, radix: u32, most: u32) -> (u32, u32) {
    let (mut count, mut number) = (0, 0_u32);
    while count < most
        && let Some(digit) = rest.as_str().chars().next().and_then(|next| next.to_digit(radix))
    {
        number = number.wrapping_mul(radix).wrapping_add(digit);
        rest.next();
        count += 1;
    }
    (count, number)
}
