//! Text to syntax tree.
//!
//! Above: connections, and the binder for views, defaults and checks, which are stored as text.
//! Below: the parser crate. Nesting is limited here, before any recursion over the tree. Positions
//! become byte offsets.

mod access;
mod cast_collations;
mod command;
mod copy_options;
mod explain;
mod insert_clauses;
mod literals;
mod names;
pub mod plpgsql;
mod positions;
mod query;
mod routine;
mod sequences;
mod table_clauses;
mod text;
mod token_edits;
mod unicode_escapes;
mod user_types;
mod views;

use std::ops::Range;
use std::str::Chars;

use smol_str::SmolStr;
use sqlparser::ast::{
    BinaryOperator, DataType, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Query,
    Statement,
};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use crate::error::{Result, SqlError, SqlState};
use names::TextKind;

pub use access::{
    AccessStatement, DefaultKind, DefaultsChange, GrantObjects, MembershipChange, OwnedObject,
    PrivilegeChange, RoleName, RoleOptions, SettingsChange, without_constants, without_passwords,
};
pub use command::{
    CollationChange, CollationStatement, Command, CommentStatement, CommentedObject, CursorOptions,
    Direction, Discard, ExtensionStatement, Name, RefreshStatement, ReindexTarget, RelationChange,
    RelationStatement, SchemaStatement, StatementOfExecute, StorageHint, TableLock, TableLockMode,
    WrittenCollation, command,
};

pub use copy_options::{ALL_COLUMNS, HEADER_MATCH, copy_condition, repeated_option};
pub use explain::ExplainFormat;
pub use insert_clauses::{Overriding, conflict_target, overriding_of, subscripts_of};
pub use positions::{
    count_table_names, first_from, is_word, last_before, natural_join, set_columns,
};
pub use query::{
    ALL_FIELDS, CURRENT_ROW, CycleClause, EXCLUSION, NESTED_SETS, Traversal, UNBOUNDED,
    arguments_of, current_of, is_distinct_sets, is_no_keys, is_rows_from, join_alias,
    limit_with_ties, listed_columns, quantified, restore_exclusions, restore_query_markers,
    restore_row_stars, row_call, symmetric_bound, traversal, value_in_from,
};
pub use routine::{
    AlterRoutine, CreateAggregate, CreateRoutine, CreateTrigger, DropRoutines, RoutineChange,
    RoutineSetting, RoutineStatement, TriggerStatement,
};
pub use sequences::{ALTER as ALTER_SEQUENCE, sequence_name};
pub use table_clauses::{
    ColumnAction, LikeClause, action_of, identity_options, is_nulls_not_distinct, is_untyped,
    like_clause,
};
pub use text::Text;
pub use user_types::{
    AttributeChange, CreateDomain, DropTypes, Neighbour, TextAt, TypeChange, TypeStatement,
    WrittenAttribute, WrittenCheck,
};
pub use views::{NO_DATA, RESET_OPTION, VIEW_TYPE};

/// Recursion steps that the parser allows. A parenthesis with an operator takes two.
const STEPS: usize = 200;

/// Budget for the nesting of a statement, in kilobytes of stack: see [`check_nesting`].
const NESTING: usize = 1_300;

/// Cost of a level of parentheses, or of a CASE.
const OF_PARENTHESES: usize = 12;

/// Cost of a function call.
const OF_A_CALL: usize = 26;

/// Cost of a nested query.
const OF_A_QUERY: usize = 52;

/// Levels of CASE and parentheses from which a syntax error may really be excessive nesting.
const CASE_NESTING: usize = 40;

/// Bytes that a statement may have.
const TEXT_LIMIT: usize = 64 << 20;

/// Returns the byte offset of a location by reading the text up to it: see [`Text`].
fn offset_of(text: &str, location: Location) -> usize {
    if location.line == 0 {
        return 0;
    }
    let mut lines = text.split_inclusive('\n');
    let skipped = usize::try_from(location.line - 1).unwrap_or(usize::MAX);
    let before: usize = lines.by_ref().take(skipped).map(str::len).sum();
    let column = usize::try_from(location.column.saturating_sub(1)).unwrap_or(usize::MAX);
    let within = lines.next().unwrap_or_default();
    before + within.char_indices().nth(column).map_or(within.len(), |(at, _)| at)
}

/// The place that the parser's message names at its end, as "… at Line: 1, Column: 7".
fn place_in(message: &str) -> Option<(&str, Location)> {
    let (what, place) = message.rsplit_once(" at Line: ")?;
    let (line, column) = place.split_once(", Column: ")?;
    Some((what, Location::new(line.trim().parse().ok()?, column.trim().parse().ok()?)))
}

#[cold]
fn too_deep() -> SqlError {
    SqlError::new(SqlState::StatementTooComplex, "the statement is nested too deep")
        .with_hint("about 100 levels of parentheses, 50 of calls or 25 of queries are allowed")
}

/// How deep CASE and parentheses are nested in a text.
fn case_depth(text: &str) -> usize {
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize().unwrap_or_default();
    let (mut depth, mut most) = (0_usize, 0);
    for token in &tokens {
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            Token::Word(word) if word.keyword == Keyword::CASE => depth += 1,
            Token::Word(word) if word.keyword == Keyword::END => depth = depth.saturating_sub(1),
            _ => {}
        }
        most = most.max(depth);
    }
    most
}

/// Kinds of objects of PostgreSQL that Quickbeam does not have.
const UNSUPPORTED_OBJECTS: [&str; 18] = [
    "ACCESS",
    "AGGREGATE",
    "CAST",
    "CONVERSION",
    "EVENT",
    "FOREIGN",
    "LANGUAGE",
    "LARGE",
    "OPERATOR",
    "POLICY",
    "PUBLICATION",
    "RULE",
    "SERVER",
    "STATISTICS",
    "SUBSCRIPTION",
    "TABLESPACE",
    "TEXT",
    "TRANSFORM",
];

/// Returns the statement of PostgreSQL whose first words the parser's message names.
fn unsupported_statement(message: &str) -> Option<String> {
    let (expected, found) = message.split_once(", found: ")?;
    let found = found.split_whitespace().next()?.to_uppercase();
    if expected.ends_with("an SQL statement") {
        return match &found[..] {
            "SECURITY" => Some("SECURITY LABEL".to_owned()),
            "IMPORT" => Some("IMPORT FOREIGN SCHEMA".to_owned()),
            _ => None,
        };
    }
    let verb = expected.rsplit_once(" after ")?.1;
    let is_definition = matches!(verb, "CREATE" | "ALTER" | "DROP");
    let is_known = UNSUPPORTED_OBJECTS.contains(&&found[..]);
    (is_definition && is_known).then(|| format!("{verb} {found}"))
}

#[cold]
fn syntax_error(text: &str, error: ParserError) -> SqlError {
    let message = match error {
        ParserError::RecursionLimitExceeded => {
            return too_deep();
        }
        ParserError::TokenizerError(message) | ParserError::ParserError(message) => {
            names::without_marks(&message)
        }
    };
    // The parser tries several readings of a CASE, and forgets that one was nested too deep.
    if case_depth(text) >= CASE_NESTING {
        return too_deep();
    }
    // The parser does not know the clause.
    if text.to_ascii_uppercase().contains("EXCLUDE USING") {
        return SqlError::unsupported("an EXCLUDE constraint");
    }
    if let Some(statement) = unsupported_statement(&message) {
        return SqlError::unsupported(statement);
    }
    let (message, position) = match place_in(&message) {
        Some((what, location)) => (what.to_owned(), offset_of(text, location)),
        None => (message, text.len()),
    };
    SqlError::new(SqlState::SyntaxError, format!("syntax error: {message}")).at(position)
}

/// Returns a parser of a text, and whether words of the text are marked: see [`names`].
fn parser_for(text: &str, kind: TextKind) -> Result<(Parser<'static>, bool)> {
    static DIALECT: PostgreSqlDialect = PostgreSqlDialect {};
    if text.len() > TEXT_LIMIT {
        let message =
            format!("a statement of {} bytes is longer than the limit of {TEXT_LIMIT}", text.len());
        return Err(SqlError::new(SqlState::ProgramLimitExceeded, message));
    }
    let tokens = unicode_escapes::tokens_of(&DIALECT, text).map_err(|error| {
        let position = offset_of(text, error.location);
        // The tokenizer does not say which escape is invalid.
        let rest = text.get(position..).unwrap_or_default();
        if rest.starts_with("e'") || rest.starts_with("E'") {
            let escape = || SqlError::unsupported("a character as the escapes of its bytes");
            return literals::unescaped(rest).err().unwrap_or_else(escape).at(position);
        }
        SqlError::new(SqlState::SyntaxError, format!("syntax error: {}", error.message))
            .at(position)
    })?;
    check_nesting(text, &tokens)?;
    check_chains(text, &tokens)?;
    let tokens = token_edits::with_signs(unicode_escapes::adapted(text, tokens)?);
    let tokens = literals::adapted(text, tokens)?;
    let tokens = command::transactions::adapted(tokens);
    let tokens = command::transactions::with_authorization(tokens);
    let tokens = sequences::adapted(tokens);
    let tokens = insert_clauses::adapted(views::adapted(table_clauses::adapted(tokens)));
    let tokens = copy_options::adapted(query::adapted(cast_collations::adapted(tokens)));
    let (tokens, has_marks) = names::marked(text, kind, tokens)?;
    let parser = Parser::new(&DIALECT).with_recursion_limit(STEPS);
    Ok((parser.with_tokens_with_locations(tokens), has_marks))
}

/// Refuses nesting that would overflow a thread's stack (2 MiB by default). The costs were measured
/// in the parser, the binder and the planner together.
fn check_nesting(text: &str, tokens: &[TokenWithSpan]) -> Result<()> {
    let mut open: Vec<usize> = Vec::new();
    let mut cost = 0;
    let mut rest = tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_)));
    let mut before: Option<&Token> = None;
    while let Some(token) = rest.next() {
        let next = || rest.clone().next().map(|next| &next.token);
        match &token.token {
            Token::LParen | Token::LBracket => {
                let level = match before {
                    _ if next().is_some_and(|next| is_one_of(next, &QUERIES)) => OF_A_QUERY,
                    Some(Token::LParen) => {
                        open.last().map_or(OF_PARENTHESES, |around| OF_A_CALL.min(*around))
                    }
                    Some(before @ Token::Word(_)) if !is_one_of(before, &OPERATORS) => OF_A_CALL,
                    _ => OF_PARENTHESES,
                };
                open.push(level);
                cost += level;
            }
            Token::Word(word) if word.keyword == Keyword::CASE => {
                open.push(OF_PARENTHESES);
                cost += OF_PARENTHESES;
            }
            Token::RParen | Token::RBracket => cost -= open.pop().unwrap_or_default(),
            Token::Word(word) if word.keyword == Keyword::END => {
                cost -= open.pop().unwrap_or_default();
            }
            _ => {}
        }
        if cost > NESTING {
            return Err(too_deep().at(offset_of(text, token.span.start)));
        }
        before = Some(&token.token);
    }
    Ok(())
}

fn is_one_of(token: &Token, keywords: &[Keyword]) -> bool {
    matches!(token, Token::Word(word) if keywords.contains(&word.keyword))
}

/// Keywords after an opening parenthesis that begin a query.
const QUERIES: [Keyword; 3] = [Keyword::SELECT, Keyword::WITH, Keyword::VALUES];

/// Words before an opening parenthesis that do not make it one of a call.
const OPERATORS: [Keyword; 12] = [
    Keyword::AND,
    Keyword::OR,
    Keyword::NOT,
    Keyword::WHEN,
    Keyword::THEN,
    Keyword::ELSE,
    Keyword::WHERE,
    Keyword::HAVING,
    Keyword::SELECT,
    Keyword::ON,
    Keyword::BETWEEN,
    Keyword::LIKE,
];

/// Limit of operators in one expression. A chain of operators makes a tree as deep as the chain,
/// and dropping the tree recurses.
const CHAIN: usize = 2_000;

fn check_chains(text: &str, tokens: &[TokenWithSpan]) -> Result<()> {
    let mut operators = 0;
    for token in tokens {
        match &token.token {
            Token::Comma | Token::SemiColon => operators = 0,
            Token::Whitespace(_) => {}
            Token::Word(word) if word.quote_style.is_none() => {
                use sqlparser::keywords::Keyword as K;
                operators += usize::from(matches!(
                    word.keyword,
                    K::AND | K::OR | K::NOT | K::IS | K::UNION | K::EXCEPT | K::INTERSECT | K::JOIN
                ));
            }
            Token::Number(..) | Token::SingleQuotedString(_) | Token::Placeholder(_) => {}
            _ => operators += 1,
        }
        if operators > CHAIN {
            let message = format!("more than {CHAIN} operators in one expression");
            let position = offset_of(text, token.span.start);
            return Err(SqlError::new(SqlState::StatementTooComplex, message).at(position));
        }
    }
    Ok(())
}

/// Returns whether the token ends a statement.
fn statement_end(token: &Token) -> bool {
    matches!(token, Token::SemiColon | Token::EOF)
}

/// Calls `take` with the byte range of each statement of a text, and the statement unless it is a
/// [`Command`].
fn each(text: &str, mut take: impl FnMut(Range<usize>, Option<Statement>)) -> Result<()> {
    let (mut parser, has_marks) = parser_for(text, TextKind::Statement)?;
    let mut place = TextCursor { rest: text.chars(), line: 1, column: 1, length: text.len() };
    loop {
        while parser.consume_token(&Token::SemiColon) {}
        let first = parser.peek_token_ref();
        if first.token == Token::EOF {
            return Ok(());
        }
        let start = place.advance(first.span.start);
        let statement = if command::skip(&mut parser) {
            None
        } else {
            let statement = parser.parse_statement().map_err(|error| syntax_error(text, error))?;
            if has_marks {
                names::check(text, &statement)?;
            }
            Some(statement)
        };
        let behind = parser.peek_token_ref();
        let end = match behind.token {
            Token::EOF => text.len(),
            Token::SemiColon => place.advance(behind.span.start),
            _ => parser
                .expected_ref("end of statement", behind)
                .map_err(|error| syntax_error(text, error))?,
        };
        take(start..end, statement);
    }
}

/// A position in a text that only moves forward, so that one pass finds all positions of a long
/// text.
struct TextCursor<'t> {
    rest: Chars<'t>,
    line: u64,
    column: u64,
    length: usize,
}

impl TextCursor<'_> {
    /// Goes to a place; the bytes before it.
    fn advance(&mut self, to: Location) -> usize {
        while (self.line, self.column) < (to.line, to.column)
            && let Some(c) = self.rest.next()
        {
            (self.line, self.column) =
                if c == '\n' { (self.line + 1, 1) } else { (self.line, self.column + 1) };
        }
        self.length - self.rest.as_str().len()
    }
}

/// Returns the range of each statement of a text, in bytes.
///
/// # Errors
/// A syntax error if one of the statements cannot be parsed.
pub fn pieces(text: &str) -> Result<Vec<Range<usize>>> {
    let mut pieces = Vec::new();
    each(text, |piece, _| pieces.push(piece))?;
    Ok(pieces)
}

/// The only statement of a text.
pub fn statement(text: &str) -> Result<Option<Statement>> {
    let (mut first, mut second) = (None, None);
    each(text, |piece, statement| match first {
        None => first = Some(statement),
        Some(_) => second = second.or(Some(piece.start)),
    })?;
    if let Some(position) = second {
        let message = "cannot prepare several statements at once";
        return Err(SqlError::new(SqlState::SyntaxError, message).at(position));
    }
    match first {
        None => Ok(None),
        Some(Some(mut statement)) => {
            explain::adapt(text, &mut statement)?;
            Ok(Some(statement))
        }
        Some(None) => {
            let message = "syntax error: a command is not allowed here";
            Err(SqlError::new(SqlState::SyntaxError, message))
        }
    }
}

/// Parses a list of type names.
pub fn data_types(text: &str) -> Result<Vec<DataType>> {
    let (mut parser, has_marks) = parser_for(text, TextKind::Types)?;
    let types = parser.parse_comma_separated(Parser::parse_data_type);
    let types = types.map_err(|error| syntax_error(text, error))?;
    if has_marks {
        types.iter().try_for_each(|one| names::check(text, one))?;
    }
    Ok(types)
}

/// Parses a stored expression.
pub fn expression(text: &str) -> Result<Expr> {
    let (mut parser, has_marks) = parser_for(text, TextKind::Expression)?;
    let parsed = parser.parse_expr().map_err(|error| syntax_error(text, error))?;
    if has_marks {
        names::check(text, &parsed)?;
    }
    let behind = parser.peek_token_ref();
    if behind.token != Token::EOF {
        let error = parser.expected_ref("end of expression", behind);
        return error.map_err(|error| syntax_error(text, error));
    }
    Ok(parsed)
}

/// The text of an argument of a call, with its name if it has one.
pub type GivenArgument = (Option<SmolStr>, String);

/// Returns the arguments of a call; `None` if they have other forms.
pub fn call_arguments(text: &str) -> Result<Option<Vec<GivenArgument>>> {
    let Expr::Function(call) = expression(&format!("f({text})"))? else { return Ok(None) };
    let FunctionArguments::List(list) = &call.args else { return Ok(None) };
    let folded = |name: &Ident| match name.quote_style {
        Some(_) => SmolStr::new(&name.value),
        None => SmolStr::new(name.value.to_lowercase()),
    };
    let argument = |argument: &FunctionArg| match argument {
        FunctionArg::Named { name, arg, .. } => Some((Some(folded(name)), arg.to_string())),
        FunctionArg::ExprNamed { name: Expr::Identifier(name), arg, .. } => {
            Some((Some(folded(name)), arg.to_string()))
        }
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::BinaryOp {
            left,
            op: BinaryOperator::Assignment,
            right,
        })) => match &**left {
            Expr::Identifier(name) => Some((Some(folded(name)), right.to_string())),
            _ => None,
        },
        FunctionArg::Unnamed(value) => Some((None, value.to_string())),
        FunctionArg::ExprNamed { .. } => None,
    };
    Ok(list.args.iter().map(argument).collect())
}

/// Parses a stored query.
pub fn query(text: &str) -> Result<Box<Query>> {
    match statement(text)? {
        Some(Statement::Query(query)) => Ok(query),
        _ => Err(SqlError::new(SqlState::SyntaxError, "syntax error: a query is expected")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_place() {
        for (text, position) in
            [("SELEC 1", 0), ("SELECT 1 +", 10), ("SELECT 'größe' FROM\n )", 23), ("SELECT 'a", 7)]
        {
            let error = pieces(text).unwrap_err();
            assert_eq!(
                (error.code(), error.position()),
                ("42601", Some(position)),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn a_text_is_cut_into_its_statements() {
        let text = ";; SELECT 'ä;';\n-- no statement;\n  BEGIN ;COMMIT\n;ALTER SEQUENCE s RESTART WITH 3; CREATE SEQUENCE s START 2 INCREMENT 3 ; SELECT\t1 -- end";
        let found: Vec<&str> =
            pieces(text).unwrap().into_iter().map(|piece| text[piece].trim_end()).collect();
        let expected = [
            "SELECT 'ä;'",
            "BEGIN",
            "COMMIT",
            "ALTER SEQUENCE s RESTART WITH 3",
            "CREATE SEQUENCE s START 2 INCREMENT 3",
            "SELECT\t1 -- end",
        ];
        assert_eq!(found, expected);
        assert!(pieces(" ; -- nothing\n").unwrap().is_empty());
        // A statement ends with a semicolon or with the text.
        for (text, position) in
            [("SELECT 1 ON; DROP TABLE t", 9), ("BEGIN; SELECT 1) ; COMMIT", 15)]
        {
            let error = pieces(text).unwrap_err();
            assert_eq!((error.code(), error.position()), ("42601", Some(position)), "{error}");
        }
    }

    #[test]
    fn nesting_is_limited() {
        let deep = format!("SELECT {}1{}", "(".repeat(10_000), ")".repeat(10_000));
        assert_eq!(pieces(&deep).unwrap_err().code(), "54001");
        for (open, close, depth) in [
            ("(", ")", 100),
            ("(a < 5 AND (b > 7 OR ", "))", 45),
            ("abs(", ")", 48),
            ("(SELECT ", ")", 24),
        ] {
            let text = format!("SELECT {}1{}", open.repeat(depth), close.repeat(depth));
            assert_eq!(pieces(&text).map(|pieces| pieces.len()).unwrap(), 1, "{open}");
        }
        let case = ["CASE WHEN TRUE THEN ", " END"].map(|part| part.repeat(10_000));
        let cases = format!("SELECT {}1{}", case[0], case[1]);
        assert_eq!(pieces(&cases).unwrap_err().code(), "54001");
        let chain = format!("SELECT 1{}", " + 1".repeat(20_000));
        assert_eq!(pieces(&chain).unwrap_err().code(), "54001");
    }
}
