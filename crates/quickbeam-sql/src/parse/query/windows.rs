//! EXCLUDE of window frames, in the parser's form.
//!
//! The parser does not know EXCLUDE. The exclusion becomes the right operand of an OR in the
//! offset of the frame's last bound, as a quoted name that begins with [`EXCLUSION`]. OR binds
//! weakest, so its left operand is the whole offset. CURRENT ROW and UNBOUNDED become names too.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

use crate::parse::token_edits::{marker, word};

/// The beginning of the names that stand for an exclusion.
pub const EXCLUSION: &str = "frame exclusion ";

/// The name that stands for CURRENT ROW before an exclusion.
pub const CURRENT_ROW: &str = "frame bound CURRENT ROW";

/// The name that stands for UNBOUNDED before an exclusion.
pub const UNBOUNDED: &str = "frame bound UNBOUNDED";

/// The exclusions, as they are written.
const EXCLUSIONS: [&str; 4] = ["NO OTHERS", "CURRENT ROW", "GROUP", "TIES"];

/// Returns the tokens of a text, with exclusions in the parser's form.
pub fn adapted(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut tokens = with_offsets_in_parentheses(tokens);
    let mut at = 0;
    while let Some(found) = tokens.iter().skip(at).position(|token| is(token, "EXCLUDE")) {
        at += found;
        replace(&mut tokens, at);
        at += 1;
    }
    tokens
}

/// Writes parentheses around the text in the offset `'1 day'::interval` of a bound. The parser
/// reads a text at the beginning of an offset as a whole interval.
fn with_offsets_in_parentheses(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let shown: Vec<usize> = (0..tokens.len()).filter(|&at| !is_blank(&tokens[at])).collect();
    let mut texts = Vec::new();
    for places in shown.windows(4) {
        let [text, cast, data_type, bound] = [0, 1, 2, 3].map(|nth| &tokens[places[nth]]);
        if matches!(text.token, Token::SingleQuotedString(_))
            && cast.token == Token::DoubleColon
            && matches!(data_type.token, Token::Word(_))
            && (is(bound, "PRECEDING") || is(bound, "FOLLOWING"))
        {
            texts.push(places[0]);
        }
    }
    for at in texts.into_iter().rev() {
        let span = tokens[at].span;
        tokens.insert(at + 1, TokenWithSpan::new(Token::RParen, span));
        tokens.insert(at, TokenWithSpan::new(Token::LParen, span));
    }
    tokens
}

/// Returns the text of a query with exclusions as PostgreSQL writes them.
pub fn restore_exclusions(text: &mut String) {
    if !text.contains(EXCLUSION) {
        return;
    }
    for exclusion in EXCLUSIONS {
        let marker = format!(" OR \"{EXCLUSION}{exclusion}\"");
        for (bound, end) in [("FOLLOWING", "FOLLOWING"), ("PRECEDING", "PRECEDING")] {
            let excluded = format!(" EXCLUDE {exclusion}");
            let current = format!("\"{CURRENT_ROW}\"{marker} {bound}");
            *text = text.replace(&current, &format!("CURRENT ROW{excluded}"));
            let unbounded = format!("\"{UNBOUNDED}\"{marker} {bound}");
            *text = text.replace(&unbounded, &format!("UNBOUNDED {end}{excluded}"));
            *text = text.replace(&format!("{marker} {bound}"), &format!(" {end}{excluded}"));
        }
    }
}

fn is(token: &TokenWithSpan, word: &str) -> bool {
    matches!(&token.token, Token::Word(found)
        if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
}

fn is_blank(token: &TokenWithSpan) -> bool {
    matches!(token.token, Token::Whitespace(_))
}

/// Replaces the exclusion at that token, if one is there.
fn replace(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    let after = |from: usize| {
        tokens.iter().enumerate().skip(from).find(|(_, token)| !is_blank(token)).map(|(at, _)| at)
    };
    let before = |from: usize| tokens.iter().take(from).rposition(|token| !is_blank(token));
    let found = EXCLUSIONS.iter().find_map(|exclusion| {
        let mut end = at + 1;
        for word in exclusion.split(' ') {
            let next = after(end).filter(|next| is(&tokens[*next], word))?;
            end = next + 1;
        }
        Some((*exclusion, end))
    });
    let (Some((exclusion, end)), Some(last)) = (found, before(at)) else { return };
    let span = tokens[at].span;
    let mut made = Vec::new();
    let mut push = |token: Token| {
        made.push(TokenWithSpan::new(token, span));
        made.push(TokenWithSpan::new(Token::Whitespace(Whitespace::Space), span));
    };
    let first = before(last);
    let is_offset = is(&tokens[last], "PRECEDING") || is(&tokens[last], "FOLLOWING");
    let (start, bound) = match first {
        Some(first) if is_offset && is(&tokens[first], "UNBOUNDED") => {
            push(marker(UNBOUNDED));
            (first, tokens[last].token.clone())
        }
        Some(first) if is(&tokens[last], "ROW") && is(&tokens[first], "CURRENT") => {
            push(marker(CURRENT_ROW));
            (first, word(Keyword::FOLLOWING))
        }
        // A text alone would be read as a whole interval, without the OR.
        Some(text) if is_offset && matches!(tokens[text].token, Token::SingleQuotedString(_)) => {
            push(Token::LParen);
            push(tokens[text].token.clone());
            push(Token::RParen);
            (text, tokens[last].token.clone())
        }
        _ if is_offset => (last, tokens[last].token.clone()),
        _ => return,
    };
    push(word(Keyword::OR));
    push(marker(&format!("{EXCLUSION}{exclusion}")));
    push(bound);
    tokens.splice(start..end, made);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exclusions_survive_the_parser() {
        for frame in [
            "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES",
            "GROUPS BETWEEN 1 + 1 PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE NO OTHERS",
            "RANGE UNBOUNDED PRECEDING EXCLUDE CURRENT ROW",
            "ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING EXCLUDE GROUP",
        ] {
            let query = format!("SELECT sum(a) OVER (ORDER BY a {frame}) FROM t");
            let mut text = crate::parse::query(&query).unwrap().to_string();
            assert!(text.contains(EXCLUSION), "{text}");
            restore_exclusions(&mut text);
            assert_eq!(text, query);
        }
    }
}
