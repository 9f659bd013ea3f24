//! What is wrong with an array literal, in PostgreSQL's words. Only literals that were refused are
//! read here.

use super::array_value::MAX_DIMENSIONS;

/// What an array literal may go on with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LiteralState {
    Nothing,
    OpenBrace,
    Element,
    OpenQuote,
    CloseQuote,
    CommaOfElements,
    CloseBrace,
    CommaOfArrays,
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// Returns what is wrong with a literal: with the bounds before its braces, or with these.
pub(super) fn fault(text: &str) -> Option<String> {
    let mut bytes = text.as_bytes();
    let mut has_bounds = false;
    loop {
        bytes = bytes.trim_ascii_start();
        let Some(rest) = bytes.strip_prefix(b"[") else { break };
        has_bounds = true;
        let (first, mut rest) = number(rest);
        if first == 0 {
            return Some("\"[\" must introduce explicitly-specified array dimensions.".to_owned());
        }
        if let Some(second) = rest.strip_prefix(b":") {
            let (second, after) = number(second);
            if second == 0 {
                return Some("Missing array dimension value.".to_owned());
            }
            rest = after;
        }
        let Some(rest) = rest.strip_prefix(b"]") else {
            return Some("Missing \"]\" after array dimensions.".to_owned());
        };
        bytes = rest;
    }
    if !has_bounds {
        return match bytes.first() {
            Some(b'{') => fault_of_braces(bytes),
            _ => Some("Array value must start with \"{\" or dimension information.".to_owned()),
        };
    }
    let Some(rest) = bytes.strip_prefix(b"=") else {
        return Some("Missing \"=\" after array dimensions.".to_owned());
    };
    let rest = rest.trim_ascii_start();
    if rest.first() != Some(&b'{') {
        return Some("Array contents must start with \"{\".".to_owned());
    }
    let otherwise = "Specified array dimensions do not match array contents.";
    fault_of_braces(rest).or_else(|| Some(otherwise.to_owned()))
}

/// Returns the length of the number that a text begins with, and what follows it.
fn number(text: &[u8]) -> (usize, &[u8]) {
    let is_part = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'+');
    let length = text.iter().take_while(|byte| is_part(byte)).count();
    (length, text.get(length..).unwrap_or_default())
}

fn fault_of_braces(text: &[u8]) -> Option<String> {
    let unexpected = |byte: u8| Some(format!("Unexpected \"{}\" character.", char::from(byte)));
    let element = || Some("Unexpected array element.".to_owned());
    let end = || Some("Unexpected end of input.".to_owned());
    let (mut after, mut depth) = (LiteralState::Nothing, 0_usize);
    let (mut counts, mut known) = ([1_usize; MAX_DIMENSIONS], [0_usize; MAX_DIMENSIONS]);
    let mut rest = text.iter().copied();
    loop {
        let Some(byte) = rest.next() else { return end() };
        let is_quoted = after == LiteralState::OpenQuote;
        let may_begin = matches!(after, LiteralState::OpenBrace | LiteralState::CommaOfElements);
        let is_whole = matches!(
            after,
            LiteralState::Element | LiteralState::CloseQuote | LiteralState::CloseBrace
        );
        match byte {
            b'\\' => {
                if !may_begin && !is_quoted && after != LiteralState::Element {
                    return unexpected(byte);
                }
                if !is_quoted {
                    after = LiteralState::Element;
                }
                if rest.next().is_none() {
                    return end();
                }
            }
            b'"' if is_quoted => after = LiteralState::CloseQuote,
            _ if is_quoted => {}
            b'"' if may_begin => after = LiteralState::OpenQuote,
            b'"' => return element(),
            b'{' => {
                let may_open =
                    [LiteralState::Nothing, LiteralState::OpenBrace, LiteralState::CommaOfArrays];
                if !may_open.contains(&after) {
                    return unexpected(byte);
                }
                (after, depth) = (LiteralState::OpenBrace, depth + 1);
                if depth > MAX_DIMENSIONS {
                    return None;
                }
            }
            b'}' => {
                let is_empty = depth == 1 && after == LiteralState::OpenBrace;
                if !is_whole && !is_empty {
                    return unexpected(byte);
                }
                (after, depth) = (LiteralState::CloseBrace, depth.saturating_sub(1));
                let (count, before) = (counts.get_mut(depth)?, known.get_mut(depth)?);
                if *before != 0 && count != before {
                    let message =
                        "Multidimensional arrays must have sub-arrays with matching dimensions.";
                    return Some(message.to_owned());
                }
                (*before, *count) = (*count, 1);
                if depth == 0 {
                    let is_junk = rest.any(|byte| !is_space(byte));
                    return is_junk.then(|| "Junk after closing right brace.".to_owned());
                }
            }
            b',' => {
                if !is_whole {
                    return unexpected(byte);
                }
                let is_array = after == LiteralState::CloseBrace;
                after = if is_array {
                    LiteralState::CommaOfArrays
                } else {
                    LiteralState::CommaOfElements
                };
                *counts.get_mut(depth.saturating_sub(1))? += 1;
            }
            _ if is_space(byte) => {}
            _ if may_begin || after == LiteralState::Element => after = LiteralState::Element,
            _ => return element(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_those_of_postgresql() {
        for (text, expected) in [
            ("{1", "Unexpected end of input."),
            ("{1\\", "Unexpected end of input."),
            ("{1}}", "Junk after closing right brace."),
            ("{1,2}{", "Junk after closing right brace."),
            ("{1,{2}}", "Unexpected \"{\" character."),
            ("{{1},2}", "Unexpected array element."),
            ("{\"a\"b}", "Unexpected array element."),
            ("{,}", "Unexpected \",\" character."),
            ("{1,}", "Unexpected \"}\" character."),
            ("{{}}", "Unexpected \"}\" character."),
            (
                "{{1,2},{3}}",
                "Multidimensional arrays must have sub-arrays with matching dimensions.",
            ),
            ("1", "Array value must start with \"{\" or dimension information."),
            ("[]={1}", "\"[\" must introduce explicitly-specified array dimensions."),
            ("[1:]={1}", "Missing array dimension value."),
            ("[1:1={1}", "Missing \"]\" after array dimensions."),
            ("[1:1]{1}", "Missing \"=\" after array dimensions."),
            ("[1:1]=1", "Array contents must start with \"{\"."),
            ("[1:2]={1}", "Specified array dimensions do not match array contents."),
        ] {
            assert_eq!(fault(text).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(fault("{{1,2},{3,4}} "), None);
    }
}
