//! Actions of ALTER COLUMN that the parser does not know, as SET DEFAULT with a marker: DROP
//! EXPRESSION, DROP IDENTITY and SET GENERATED.
//!
//! A marker is a quoted name that begins with the character 0, which no name contains.

use sqlparser::ast::Expr;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace, Word};

/// An action of ALTER COLUMN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnAction {
    /// DROP EXPRESSION; true: IF EXISTS.
    DropExpression(bool),
    /// DROP IDENTITY; true: IF EXISTS.
    DropIdentity(bool),
    /// SET GENERATED; true: ALWAYS.
    SetGenerated(bool),
}

/// The words of each action, and its marker.
const ACTIONS: [(&[&str], &str, ColumnAction); 6] = [
    (
        &["DROP", "EXPRESSION", "IF", "EXISTS"],
        "\0drop expression if exists",
        ColumnAction::DropExpression(true),
    ),
    (&["DROP", "EXPRESSION"], "\0drop expression", ColumnAction::DropExpression(false)),
    (
        &["DROP", "IDENTITY", "IF", "EXISTS"],
        "\0drop identity if exists",
        ColumnAction::DropIdentity(true),
    ),
    (&["DROP", "IDENTITY"], "\0drop identity", ColumnAction::DropIdentity(false)),
    (&["SET", "GENERATED", "ALWAYS"], "\0set always", ColumnAction::SetGenerated(true)),
    (&["SET", "GENERATED", "BY", "DEFAULT"], "\0set by default", ColumnAction::SetGenerated(false)),
];

/// Returns the action that a DEFAULT stands for.
pub fn action_of(default: &Expr) -> Option<ColumnAction> {
    let Expr::Identifier(name) = default else { return None };
    ACTIONS.iter().find(|(_, marker, _)| name.value == *marker).map(|(.., action)| *action)
}

fn is_word(token: Option<&TokenWithSpan>, wanted: &str) -> bool {
    matches!(token.map(|token| &token.token), Some(Token::Word(word))
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted))
}

/// Returns the tokens of a text with these actions in the parser's form.
pub fn adapted(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_such = |token: &TokenWithSpan| {
        ["EXPRESSION", "IDENTITY", "GENERATED"].iter().any(|word| is_word(Some(token), word))
    };
    let alters = tokens.iter().any(|token| is_word(Some(token), "ALTER"));
    if !alters || !tokens.iter().any(is_such) {
        return tokens;
    }
    let shown: Vec<usize> =
        (0..tokens.len()).filter(|&at| !matches!(tokens[at].token, Token::Whitespace(_))).collect();
    let token = |place: usize| shown.get(place).and_then(|&at| tokens.get(at));
    let mut out = Vec::with_capacity(tokens.len() + 4);
    let mut next = 0;
    for place in 2..shown.len() {
        // The column's name follows ALTER or COLUMN.
        let is_action = is_word(token(place - 2), "ALTER") || is_word(token(place - 2), "COLUMN");
        let fits = |(words, ..): &&(&[&str], &str, ColumnAction)| {
            words.iter().enumerate().all(|(offset, word)| is_word(token(place + offset), word))
        };
        let Some((words, marker, _)) = ACTIONS.iter().find(fits).filter(|_| is_action) else {
            continue;
        };
        let (Some(&start), Some(&last)) = (shown.get(place), shown.get(place + words.len() - 1))
        else {
            continue;
        };
        out.extend_from_slice(tokens.get(next..start).unwrap_or_default());
        let (first, end) = (tokens[start].span, tokens[last].span);
        let word = |value: &str, keyword, quote_style| {
            Token::Word(Word { value: value.to_owned(), quote_style, keyword })
        };
        let made = [
            (word("SET", Keyword::SET, None), first),
            (Token::Whitespace(Whitespace::Space), first),
            (word("DEFAULT", Keyword::DEFAULT, None), first),
            (Token::Whitespace(Whitespace::Space), first),
            (word(marker, Keyword::NoKeyword, Some('"')), end),
        ];
        out.extend(made.map(|(token, span)| TokenWithSpan::new(token, span)));
        next = last + 1;
    }
    out.extend_from_slice(tokens.get(next..).unwrap_or_default());
    out
}
