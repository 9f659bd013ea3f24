//! Clauses of ALTER TABLE and CREATE TABLE that the parser does not know, as markers.
//!
//! DROP EXPRESSION, DROP IDENTITY and changes of an identity column are SET DEFAULT with a marker.
//! LIKE with its options is a column whose name is a marker. A name in the list of CREATE TABLE …
//! (…) AS is a column whose type is a marker. NULLS NOT DISTINCT of a column is a collation.
//!
//! A marker is a quoted name that begins with the character 0, which no name contains.
//! CONCURRENTLY of DROP INDEX goes: an index is dropped in a transaction.

use sqlparser::ast::{DataType, Expr, Ident, ObjectName, Statement};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace, Word};

use super::names::{TextKind, check, without_marks};
use super::positions::{is_word_at, without_set_columns};
use super::token_edits::{TokenEdits, is_marker, keyword_of, marker, word};
use crate::error::{Result, SqlError, SqlState};

/// An action of ALTER COLUMN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnAction {
    /// DROP EXPRESSION; true: IF EXISTS.
    DropExpression(bool),
    /// DROP IDENTITY; true: IF EXISTS.
    DropIdentity(bool),
}

/// The words of each action, and its marker.
const ACTIONS: [(&[&str], &str, ColumnAction); 4] = [
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
];

/// Returns the action that a DEFAULT stands for.
pub fn action_of(default: &Expr) -> Option<ColumnAction> {
    let Expr::Identifier(name) = default else { return None };
    ACTIONS.iter().find(|(_, marker, _)| name.value == *marker).map(|(.., action)| *action)
}

/// The beginning of the marker of changes of an identity column; their text follows.
const IDENTITY: &str = "\0identity ";

/// Words after SET that begin an option of an identity column.
const OPTIONS: [&str; 11] = [
    "GENERATED",
    "INCREMENT",
    "START",
    "RESTART",
    "MINVALUE",
    "MAXVALUE",
    "CACHE",
    "CYCLE",
    "NO",
    "OWNED",
    "SEQUENCE",
];

/// Changes of an identity column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityOptions {
    /// SET GENERATED; true: ALWAYS.
    pub always: Option<bool>,
    /// The ALTER SEQUENCE that makes the other changes.
    pub alteration: Option<Statement>,
}

/// Returns the changes of an identity column that a DEFAULT stands for.
pub fn identity_options(default: &Expr) -> Result<Option<IdentityOptions>> {
    let Expr::Identifier(name) = default else { return Ok(None) };
    let Some(text) = name.value.strip_prefix(IDENTITY) else { return Ok(None) };
    let mut always = None;
    let mut options: Vec<&str> = Vec::new();
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let is = |wanted: &str| word.eq_ignore_ascii_case(wanted);
        if is("GENERATED") {
            let is_always = words.next().is_some_and(|word| word.eq_ignore_ascii_case("ALWAYS"));
            if !is_always {
                words.next_if(|word| word.eq_ignore_ascii_case("DEFAULT"));
            }
            if always.replace(is_always).is_some() {
                let message = "conflicting or redundant options";
                return Err(SqlError::new(SqlState::SyntaxError, message));
            }
        } else if is("SET") {
            let refused = ["RESTART", "OWNED"];
            let next = words.peek().copied().unwrap_or_default();
            if refused.iter().any(|refused| next.eq_ignore_ascii_case(refused)) {
                let option =
                    if next.eq_ignore_ascii_case("OWNED") { "owned_by" } else { "restart" };
                let message = format!("sequence option \"{option}\" not supported here");
                return Err(SqlError::new(SqlState::SyntaxError, message));
            }
        } else {
            options.push(word);
        }
    }
    let alteration = format!("ALTER SEQUENCE s {}", options.join(" "));
    let alteration = match options.is_empty() {
        true => None,
        false => super::statement(&alteration).map_err(SqlError::without_place)?,
    };
    Ok(Some(IdentityOptions { always, alteration }))
}

const LIKE: &str = "\0like ";

/// LIKE of CREATE TABLE: the table, and what is taken of it besides columns and NOT NULL.
#[derive(Clone, Debug)]
pub struct LikeClause {
    /// The table.
    pub table: ObjectName,
    /// What INCLUDING names.
    pub including: LikeOptions,
}

/// What LIKE includes.
#[derive(Clone, Copy, Debug, Default)]
pub struct LikeOptions {
    /// COMMENTS.
    pub comments: bool,
    /// CONSTRAINTS: CHECK.
    pub constraints: bool,
    /// DEFAULTS.
    pub defaults: bool,
    /// GENERATED.
    pub generated: bool,
    /// IDENTITY.
    pub identity: bool,
    /// INDEXES, and keys.
    pub indexes: bool,
}

impl LikeOptions {
    /// Sets the option of that name.
    fn set_option(&mut self, option: &str, wanted: bool) -> Result<()> {
        match option {
            "COMMENTS" => self.comments = wanted,
            "CONSTRAINTS" => self.constraints = wanted,
            "DEFAULTS" => self.defaults = wanted,
            "GENERATED" => self.generated = wanted,
            "IDENTITY" => self.identity = wanted,
            "INDEXES" => self.indexes = wanted,
            // What is not kept of a table cannot be taken from one.
            "COMPRESSION" | "STATISTICS" | "STORAGE" => {}
            "ALL" => {
                *self = LikeOptions {
                    comments: wanted,
                    constraints: wanted,
                    defaults: wanted,
                    generated: wanted,
                    identity: wanted,
                    indexes: wanted,
                };
            }
            other => {
                let message = format!("syntax error at or near \"{other}\"");
                return Err(SqlError::new(SqlState::SyntaxError, message));
            }
        }
        Ok(())
    }
}

/// Returns the LIKE that a column stands for.
pub fn like_clause(column: &Ident) -> Result<Option<LikeClause>> {
    let Some(text) = column.value.strip_prefix(LIKE) else { return Ok(None) };
    let (mut parser, has_marks) = super::parser_for(text, TextKind::Name)?;
    let table = parser.parse_object_name(false);
    let table = table.map_err(|error| super::syntax_error(text, error))?;
    if has_marks {
        let refused = |error: SqlError| SqlError::new(SqlState::SyntaxError, error.message());
        check(text, &table).map_err(refused)?;
    }
    let mut including = LikeOptions::default();
    loop {
        let wanted = match parser.next_token().token {
            Token::EOF => return Ok(Some(LikeClause { table, including })),
            Token::Word(word) if word.value.eq_ignore_ascii_case("INCLUDING") => true,
            Token::Word(word) if word.value.eq_ignore_ascii_case("EXCLUDING") => false,
            other => {
                let message = format!("syntax error at or near \"{other}\"");
                return Err(SqlError::new(SqlState::SyntaxError, message));
            }
        };
        including
            .set_option(&without_marks(&parser.next_token().to_string()).to_uppercase(), wanted)?;
    }
}

/// Returns the tokens of a text with LIKE of CREATE TABLE in the parser's form.
fn with_likes(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_like = |token: &TokenWithSpan| is_word_at(Some(token), "LIKE");
    if !tokens.iter().any(is_like) || !tokens.iter().any(|it| is_word_at(Some(it), "CREATE")) {
        return tokens;
    }
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    // Where of a statement a token is: among its words, or in the list of a CREATE TABLE.
    let (mut words, mut depth, mut is_table) = (0_usize, 0_usize, false);
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let begins = depth == 1
            && is_table
            && is_like(token)
            && out
                .iter()
                .rev()
                .find(|token| !matches!(token.token, Token::Whitespace(_)))
                .is_some_and(|before| matches!(before.token, Token::LParen | Token::Comma));
        if begins {
            let end = end_of_element(&tokens[at..]);
            let text: String =
                tokens[at + 1..at + end].iter().map(|token| token.token.to_string()).collect();
            let value = format!("{LIKE}{}", text.trim());
            let word = |value: String, quote_style, keyword| {
                Token::Word(Word { value, quote_style, keyword })
            };
            let made = [
                word(value, Some('"'), Keyword::NoKeyword),
                Token::Whitespace(Whitespace::Space),
                word("INTEGER".to_owned(), None, Keyword::INTEGER),
            ];
            out.extend(made.map(|made| TokenWithSpan::new(made, token.span)));
            at += end;
            continue;
        }
        match &token.token {
            Token::SemiColon => (words, depth, is_table) = (0, 0, false),
            Token::LParen => depth += 1,
            Token::RParen => {
                depth = depth.saturating_sub(1);
                is_table &= depth > 0;
            }
            Token::Whitespace(_) => {}
            _ if depth == 0 => {
                // CREATE, at most two words of a kind, TABLE.
                let is_created = words == 0 && is_word_at(Some(token), "CREATE");
                words = if words > 0 || is_created { words + 1 } else { usize::MAX / 2 };
                is_table |= words < 5 && is_word_at(Some(token), "TABLE");
            }
            _ => {}
        }
        out.push(token.clone());
        at += 1;
    }
    out
}

/// Returns how many tokens there are up to the end of an element of a list.
fn end_of_element(tokens: &[TokenWithSpan]) -> usize {
    let mut depth = 0_usize;
    let ends = |token: &TokenWithSpan| match token.token {
        Token::LParen => {
            depth += 1;
            false
        }
        Token::RParen if depth > 0 => {
            depth -= 1;
            false
        }
        Token::RParen | Token::SemiColon | Token::EOF => true,
        Token::Comma => depth == 0,
        _ => false,
    };
    tokens.iter().position(ends).unwrap_or(tokens.len())
}

/// The type of a name in the list of CREATE TABLE … (…) AS.
const UNTYPED: &str = "\0untyped";

/// Returns whether a type stands for that of a query's column.
pub fn is_untyped(data_type: &DataType) -> bool {
    let DataType::Custom(name, _) = data_type else { return false };
    let first = name.0.first().and_then(|part| part.as_ident());
    first.is_some_and(|ident| ident.value == UNTYPED)
}

/// Gives the names of CREATE TABLE … (…) AS types, and removes CONCURRENTLY of DROP INDEX.
fn with_typed_names(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_such = |token: &TokenWithSpan| {
        ["AS", "CONCURRENTLY"].iter().any(|word| is_word_at(Some(token), word))
    };
    if !tokens.iter().any(is_such) {
        return tokens;
    }
    let shown: Vec<usize> =
        (0..tokens.len()).filter(|&at| !matches!(tokens[at].token, Token::Whitespace(_))).collect();
    let token = |place: usize| shown.get(place).and_then(|&at| tokens.get(at));
    let mut names: Vec<usize> = Vec::new();
    let mut gone: Option<usize> = None;
    for place in 0..shown.len() {
        let begins =
            place == 0 || token(place - 1).is_some_and(|token| token.token == Token::SemiColon);
        if begins && is_word_at(token(place), "CREATE") {
            names.extend(listed_names(&token, place).iter().map(|&place| shown[place]));
        }
        let drops =
            begins && is_word_at(token(place), "DROP") && is_word_at(token(place + 1), "INDEX");
        if drops && is_word_at(token(place + 2), "CONCURRENTLY") {
            gone = Some(shown[place + 2]);
        }
    }
    if let Some(at) = gone {
        tokens[at].token = Token::Whitespace(Whitespace::Space);
    }
    for &at in names.iter().rev() {
        let value = UNTYPED.to_owned();
        let made = Word { value, quote_style: Some('"'), keyword: Keyword::NoKeyword };
        let span = tokens[at].span;
        tokens.insert(at + 1, TokenWithSpan::new(Token::Word(made), span));
        tokens.insert(at + 1, TokenWithSpan::new(Token::Whitespace(Whitespace::Space), span));
    }
    tokens
}

/// Returns the places of the names in the list of a CREATE TABLE … (…) AS that begins at `place`.
fn listed_names<'t>(
    token: &impl Fn(usize) -> Option<&'t TokenWithSpan>,
    place: usize,
) -> Vec<usize> {
    let is = |place: usize, wanted: &Token| token(place).is_some_and(|it| it.token == *wanted);
    let Some(table) = (place + 1..place + 4).find(|&at| is_word_at(token(at), "TABLE")) else {
        return Vec::new();
    };
    let mut at = if is_word_at(token(table + 1), "IF") { table + 5 } else { table + 2 };
    while is(at, &Token::Period) {
        at += 2;
    }
    if !is(at, &Token::LParen) {
        return Vec::new();
    }
    let mut names = Vec::new();
    loop {
        if !token(at + 1).is_some_and(|it| matches!(it.token, Token::Word(_))) {
            return Vec::new();
        }
        names.push(at + 1);
        at += 2;
        if is(at, &Token::RParen) {
            break;
        }
        if !is(at, &Token::Comma) {
            return Vec::new();
        }
    }
    let ends = ["AS", "WITH", "ON", "USING", "TABLESPACE", "WITHOUT"];
    match ends.iter().any(|word| is_word_at(token(at + 1), word)) {
        true => names,
        false => Vec::new(),
    }
}

/// The collation that stands for NULLS NOT DISTINCT of the UNIQUE before it.
const NULLS_NOT_DISTINCT: &str = "\0nulls not distinct";

/// Returns whether a collation stands for NULLS NOT DISTINCT.
pub fn is_nulls_not_distinct(collation: &ObjectName) -> bool {
    is_marker(collation, NULLS_NOT_DISTINCT)
}

/// Removes WITHOUT OIDS of CREATE TABLE: no table has them.
fn without_oids(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_such = |token: &TokenWithSpan| keyword_of(&token.token) == Keyword::WITHOUT;
    if !tokens.iter().any(is_such) {
        return tokens;
    }
    let mut edits = TokenEdits::new(tokens);
    for place in 1..edits.len() {
        let is_clause = edits.keyword(place) == Keyword::WITHOUT
            && edits.is_word(place + 1, "oids")
            && edits.is(place - 1, &Token::RParen);
        if is_clause {
            edits.remove_all([place, place + 1]);
        }
    }
    edits.finish()
}

/// Moves NULLS NOT DISTINCT of a column's own UNIQUE after that constraint, as a collation.
fn with_nulls_of_columns(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    use Keyword::{
        COLLATE, DEFERRABLE, DEFERRED, DISTINCT, IMMEDIATE, INITIALLY, NOT, NULLS, UNIQUE,
    };
    if !tokens.iter().any(|token| keyword_of(&token.token) == UNIQUE) {
        return tokens;
    }
    let mut edits = TokenEdits::new(tokens);
    for place in 0..edits.len() {
        if !edits.has_keywords(place, &[UNIQUE, NULLS]) {
            continue;
        }
        let is_equal = edits.keyword(place + 2) == NOT;
        let last = place + 2 + usize::from(is_equal);
        if edits.keyword(last) != DISTINCT || edits.is(last + 1, &Token::LParen) {
            continue;
        }
        edits.remove_all(place + 1..last);
        let mut made = Vec::new();
        let mut next = last + 1;
        loop {
            let count = match (edits.keyword(next), edits.keyword(next + 1)) {
                (DEFERRABLE, _) => 1,
                (NOT, DEFERRABLE) | (INITIALLY, IMMEDIATE | DEFERRED) => 2,
                _ => break,
            };
            for at in next..next + count {
                made.extend(edits.token(at).cloned());
                made.push(Token::Whitespace(Whitespace::Space));
            }
            edits.remove_all(next..next + count);
            next += count;
        }
        if is_equal {
            let blank = Token::Whitespace(Whitespace::Space);
            made.extend([word(COLLATE), blank, marker(NULLS_NOT_DISTINCT)]);
        }
        edits.replace(last, made);
    }
    edits.finish()
}

/// Returns the marker of the changes of an identity column that begin at a place, and of how many
/// tokens they are.
fn identity_changes<'t>(
    token: &impl Fn(usize) -> Option<&'t TokenWithSpan>,
    place: usize,
) -> Option<(String, usize)> {
    let is_option = |at: usize| OPTIONS.iter().any(|word| is_word_at(token(at), word));
    let begins = is_word_at(token(place), "RESTART")
        || is_word_at(token(place), "SET") && is_option(place + 1);
    if !begins {
        return None;
    }
    let mut marker = IDENTITY.to_owned();
    let mut at = place;
    while let Some(next) = token(at) {
        if matches!(next.token, Token::Comma | Token::SemiColon | Token::EOF) {
            break;
        }
        marker.push_str(&next.token.to_string());
        // A sign belongs to its number.
        if !matches!(next.token, Token::Minus | Token::Plus) {
            marker.push(' ');
        }
        at += 1;
    }
    Some((marker, at - place))
}

/// Returns the tokens of a text with these clauses in the parser's form.
pub fn adapted(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let tokens = with_nulls_of_columns(without_oids(without_set_columns(tokens)));
    let tokens = with_likes(with_typed_names(tokens));
    let is_such = |token: &TokenWithSpan| {
        let words = ["EXPRESSION", "IDENTITY"];
        words.iter().chain(&OPTIONS).any(|word| is_word_at(Some(token), word))
    };
    let alters = tokens.iter().any(|token| is_word_at(Some(token), "ALTER"));
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
        let is_action =
            is_word_at(token(place - 2), "ALTER") || is_word_at(token(place - 2), "COLUMN");
        if !is_action {
            continue;
        }
        let fits = |(words, ..): &&(&[&str], &str, ColumnAction)| {
            words.iter().enumerate().all(|(offset, word)| is_word_at(token(place + offset), word))
        };
        let known = ACTIONS.iter().find(fits);
        let known = known.map(|(words, marker, _)| ((*marker).to_owned(), words.len()));
        let Some((marker, count)) = known.or_else(|| identity_changes(&token, place)) else {
            continue;
        };
        let (Some(&start), Some(&last)) = (shown.get(place), shown.get(place + count - 1)) else {
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
            (word(&marker, Keyword::NoKeyword, Some('"')), end),
        ];
        out.extend(made.map(|(token, span)| TokenWithSpan::new(token, span)));
        next = last + 1;
    }
    out.extend_from_slice(tokens.get(next..).unwrap_or_default());
    out
}
