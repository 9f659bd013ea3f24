//! Session and maintenance commands, which the parser crate reads otherwise than PostgreSQL.
//!
//! Such a command begins with a word of its own, so that other statements pay one comparison.

mod collations;
mod comments;
mod extensions;
mod relations;
mod schema_elements;
mod storage_hints;
mod table_locks;
pub(super) mod token_cursor;
pub(super) mod transactions;

use std::ops::Range;
use std::sync::Arc;

use smol_str::SmolStr;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use super::access::{self, AccessStatement};
use super::positions::{is_any_word, is_text_of, is_word};
use super::routine::{self, RoutineStatement};
use super::user_types::{self, TypeStatement};
use super::{offset_of, statement_end};
use crate::error::{Result, SqlError, SqlState};
pub use collations::{CollationChange, CollationStatement, WrittenCollation};
pub use comments::{CommentStatement, CommentedObject};
pub use extensions::ExtensionStatement;
pub use relations::{RelationChange, RelationStatement};
pub use schema_elements::{SchemaStatement, StatementOfExecute};
pub use storage_hints::StorageHint;
pub use table_locks::{TableLock, TableLockMode};
pub use token_cursor::Name;
pub(in crate::parse) use token_cursor::TokenCursor;

/// The indexes that REINDEX builds again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReindexTarget {
    /// An index.
    Index(Name),
    /// The indexes of a table.
    Table(Name),
    /// The indexes of all tables of a schema.
    Schema(SmolStr),
    /// The indexes of all tables.
    Database,
    /// The indexes of the catalog, which has none.
    System,
}

/// A session or maintenance command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// SHOW of a setting, by its name; `None`: of all.
    Show(Option<SmolStr>),
    /// RESET of a setting; `None`: of all.
    Reset(Option<SmolStr>),
    /// PREPARE: the name, the text of the types in parentheses, and the statement's text.
    Prepare(SmolStr, Option<Range<usize>>, Range<usize>),
    /// EXECUTE: the name, and the text of the arguments in parentheses.
    Execute(SmolStr, Option<Range<usize>>),
    /// DEALLOCATE; `None`: ALL.
    Deallocate(Option<SmolStr>),
    /// DISCARD.
    Discard(Discard),
    /// CHECKPOINT.
    Checkpoint,
    /// VACUUM, ANALYZE or CLUSTER, of the named relations.
    Maintain(&'static str, Vec<Name>),
    /// REINDEX.
    Reindex(ReindexTarget),
    /// A statement about the storage of a relation.
    StorageHint(StorageHint),
    /// A statement about extensions.
    Extension(ExtensionStatement),
    /// LOCK TABLE.
    Lock(TableLock),
    /// A statement about roles, rights or owners, which is executed as a change of the catalog.
    Access(Arc<AccessStatement>),
    /// A statement about functions or procedures, which is a change of the catalog.
    Routine(Arc<RoutineStatement>),
    /// A statement about types, which is a change of the catalog.
    Type(Arc<TypeStatement>),
    /// A statement about collations, which is a change of the catalog.
    Collation(Arc<CollationStatement>),
    /// RENAME or SET SCHEMA of a relation, which is a change of the catalog.
    Relation(Arc<RelationStatement>),
    /// CREATE SCHEMA with elements, which is a change of the catalog.
    Schema(Arc<SchemaStatement>),
    /// CREATE TABLE … AS EXECUTE.
    TableOfExecute(StatementOfExecute),
    /// EXPLAIN EXECUTE.
    ExplainExecute(StatementOfExecute),
    /// COMMENT ON, which is a change of the catalog.
    Comment(Arc<CommentStatement>),
    /// REFRESH MATERIALIZED VIEW, in the transaction of a statement.
    Refresh(Arc<RefreshStatement>),
    /// CALL: the procedure, and the text of the arguments in parentheses.
    Call(Name, Range<usize>),
    /// DO: the block, and where it begins.
    Do(Arc<str>, usize),
    /// LISTEN to a channel.
    Listen(SmolStr),
    /// UNLISTEN; `None`: all channels.
    Unlisten(Option<SmolStr>),
    /// NOTIFY: the channel and what to say.
    Notify(SmolStr, Arc<str>),
    /// SET CONSTRAINTS: the constraints, `None` for ALL; true: DEFERRED.
    SetConstraints(Option<Vec<Name>>, bool),
    /// DECLARE: the cursor's name, whether it outlives the transaction, and the query's text.
    Declare(SmolStr, CursorOptions, Range<usize>),
    /// FETCH, or MOVE if the flag is false.
    Fetch(SmolStr, Direction, bool),
    /// CLOSE; `None`: ALL.
    Close(Option<SmolStr>),
}

/// REFRESH MATERIALIZED VIEW.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefreshStatement {
    /// The materialized view.
    pub name: Name,
    /// CONCURRENTLY.
    pub concurrently: bool,
    /// Not WITH NO DATA.
    pub with_data: bool,
}

/// What DISCARD gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discard {
    /// The whole state of the session.
    All,
    /// Cached plans.
    Plans,
    /// The values taken from sequences.
    Sequences,
    /// Temporary tables.
    Temporary,
}

/// The options of DECLARE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CursorOptions {
    /// WITH HOLD.
    pub holds: bool,
    /// SCROLL, or false: NO SCROLL.
    pub scroll: Option<bool>,
    /// INSENSITIVE.
    pub insensitive: bool,
    /// BINARY.
    pub is_binary: bool,
}

/// Where FETCH and MOVE go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The given number of rows forward, or back if negative.
    By(i64),
    /// All rows on, or back.
    All(bool),
    /// To the row of that number, counted from the end if negative.
    Absolute(i64),
    /// To the row at that distance.
    Relative(i64),
}

/// The first words of commands.
const WORDS: [&str; 26] = [
    "SHOW",
    "RESET",
    "PREPARE",
    "EXECUTE",
    "DEALLOCATE",
    "DISCARD",
    "CHECKPOINT",
    "VACUUM",
    "ANALYZE",
    "ANALYSE",
    "REINDEX",
    "CLUSTER",
    "LOCK",
    "GRANT",
    "REVOKE",
    "LISTEN",
    "UNLISTEN",
    "NOTIFY",
    "DECLARE",
    "FETCH",
    "MOVE",
    "CLOSE",
    "CALL",
    "DO",
    "COMMENT",
    "REFRESH",
];

/// Returns whether a statement that begins with the token is a command.
pub(in crate::parse) fn begins_command(token: &Token) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none()
        && WORDS.iter().any(|known| is_text_of(&word.value, known)))
}

/// Returns the first word of a text, after blanks and comments.
fn first_word(text: &str) -> &str {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ';');
        if let Some(comment) = rest.strip_prefix("--") {
            rest = comment.split_once('\n').map_or("", |(_, rest)| rest);
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/").map_or("", |(_, rest)| rest);
        } else {
            break;
        }
    }
    let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    rest.get(..end).unwrap_or_default()
}

/// Returns whether a text that begins with SET is SET CONSTRAINTS.
fn sets_constraints(text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| !word.is_empty());
    let mut words = words.by_ref().skip_while(|word| !word.eq_ignore_ascii_case("SET"));
    words.nth(1).is_some_and(|word| word.eq_ignore_ascii_case("CONSTRAINTS"))
}

/// Returns the command of a text, or `None` for any other statement.
///
/// # Errors
/// A syntax error if the text begins as a command and does not go on as one.
pub fn command(text: &str) -> Result<Option<Command>> {
    let word = first_word(text);
    let word = match WORDS.iter().find(|known| word.eq_ignore_ascii_case(known)) {
        Some(word) => *word,
        None if word.eq_ignore_ascii_case("SET") && sets_constraints(text) => "SET",
        None if access::may_begin(word, text)
            || routine::may_begin(word, text)
            || user_types::may_begin(word, text)
            || collations::may_begin(word, text)
            || storage_hints::may_begin(word, text)
            || relations::may_begin(word, text)
            || schema_elements::may_begin(word, text)
            || extensions::may_begin(word, text) =>
        {
            let known = ["CREATE", "ALTER", "DROP", "REASSIGN", "EXPLAIN"];
            known.into_iter().find(|it| word.eq_ignore_ascii_case(it)).unwrap_or_default()
        }
        None => return Ok(None),
    };
    let is_definition = matches!(word, "CREATE" | "ALTER" | "DROP" | "EXPLAIN");
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location();
    if is_definition && tokens.is_err() {
        return Ok(None);
    }
    let tokens = tokens.map_err(|error| {
        let message = format!("syntax error: {}", error.message);
        SqlError::new(SqlState::SyntaxError, message).at(offset_of(text, error.location))
    })?;
    let mut tokens: Vec<TokenWithSpan> =
        tokens.into_iter().filter(|one| !matches!(one.token, Token::Whitespace(_))).collect();
    while tokens.first().is_some_and(|one| one.token == Token::SemiColon) {
        tokens.remove(0);
    }
    let is_routine = is_definition && routine::is_routine(&tokens);
    let is_type = is_definition && user_types::is_type(&tokens);
    let is_collation = is_definition && collations::is_collation(&tokens);
    let is_hint = is_definition && storage_hints::is_hint(&tokens);
    let is_extension = is_definition && extensions::is_extension(&tokens);
    let is_relation = is_definition && relations::is_relation(&tokens);
    let has_elements = is_definition && !is_routine && schema_elements::has_elements(&tokens);
    let is_of_execute = is_definition && schema_elements::is_of_execute(&tokens);
    let is_made = has_elements || is_of_execute;
    let is_known =
        is_routine || is_type || is_collation || is_hint || is_extension || is_relation || is_made;
    if is_definition && !is_known && !access::is_access(&tokens) {
        return Ok(None);
    }
    let mut cursor = TokenCursor::after_first(text, tokens);
    let command = match () {
        () if is_routine => Command::Routine(Arc::new(cursor.routine(word)?)),
        () if is_type => Command::Type(Arc::new(cursor.type_statement(word)?)),
        () if is_collation => Command::Collation(Arc::new(cursor.collation(word)?)),
        () if has_elements => Command::Schema(Arc::new(cursor.schema_elements()?)),
        () if is_of_execute && word == "EXPLAIN" => {
            Command::ExplainExecute(cursor.statement_of_execute()?)
        }
        () if is_of_execute => Command::TableOfExecute(cursor.statement_of_execute()?),
        () if is_relation => Command::Relation(Arc::new(cursor.relation_statement()?)),
        () if is_hint => Command::StorageHint(cursor.storage_hint()?),
        () if is_extension => Command::Extension(cursor.extension(word)?),
        () => cursor.command(word)?,
    };
    cursor.end()?;
    Ok(Some(command))
}

impl TokenCursor<'_> {
    fn command(&mut self, word: &str) -> Result<Command> {
        Ok(match word {
            "SHOW" => Command::Show(self.setting()?),
            "RESET" => Command::Reset(self.setting()?),
            "PREPARE" => {
                let name = self.name()?;
                let types = self.parentheses()?;
                self.expect("AS")?;
                Command::Prepare(name, types, self.skip_rest())
            }
            "EXECUTE" => Command::Execute(self.name()?, self.parentheses()?),
            "DEALLOCATE" => {
                self.takes("PREPARE");
                Command::Deallocate(if self.takes("ALL") { None } else { Some(self.name()?) })
            }
            "DISCARD" => Command::Discard(self.discard()?),
            "CHECKPOINT" => Command::Checkpoint,
            "VACUUM" => self.maintain("VACUUM", &["FULL", "FREEZE", "VERBOSE", "ANALYZE"])?,
            "ANALYZE" | "ANALYSE" => self.maintain("ANALYZE", &["VERBOSE"])?,
            "REINDEX" => self.reindex()?,
            "CLUSTER" => self.cluster()?,
            "LOCK" => self.lock()?,
            "GRANT" | "REVOKE" | "CREATE" | "ALTER" | "DROP" | "REASSIGN" => {
                Command::Access(Arc::new(self.access(word)?))
            }
            "COMMENT" => Command::Comment(Arc::new(self.comment()?)),
            "REFRESH" => Command::Refresh(Arc::new(self.refresh()?)),
            "CALL" => {
                let name = self.routine_name()?;
                Command::Call(name, self.parentheses()?.ok_or_else(|| self.error())?)
            }
            "DO" => {
                let at = self.offset();
                Command::Do(self.block()?, at)
            }
            "LISTEN" => Command::Listen(self.name()?),
            "UNLISTEN" if self.takes_token(&Token::Mul) => Command::Unlisten(None),
            "UNLISTEN" => Command::Unlisten(Some(self.name()?)),
            "NOTIFY" => Command::Notify(self.name()?, self.payload()?),
            "SET" => {
                self.expect("CONSTRAINTS")?;
                self.constraints()?
            }
            "DECLARE" => self.declare()?,
            "FETCH" | "MOVE" => {
                let direction = self.direction()?;
                if !self.takes("FROM") {
                    self.takes("IN");
                }
                Command::Fetch(self.name()?, direction, word == "FETCH")
            }
            _ => Command::Close(if self.takes("ALL") { None } else { Some(self.name()?) }),
        })
    }

    fn refresh(&mut self) -> Result<RefreshStatement> {
        self.expect("MATERIALIZED")?;
        self.expect("VIEW")?;
        let concurrently = self.takes("CONCURRENTLY");
        let name = self.qualified()?;
        let mut with_data = true;
        if self.takes("WITH") {
            with_data = !self.takes("NO");
            self.expect("DATA")?;
        }
        Ok(RefreshStatement { name, concurrently, with_data })
    }

    /// Reads the block of DO, and its language.
    fn block(&mut self) -> Result<Arc<str>> {
        let mut block = None;
        while self.peek().is_some_and(|token| *token != Token::SemiColon) {
            if self.takes("LANGUAGE") {
                let language = match self.peek() {
                    Some(Token::SingleQuotedString(text)) => {
                        let text = SmolStr::new(text);
                        self.at += 1;
                        text
                    }
                    _ => self.role_word()?,
                };
                if !["plpgsql", "sql", "c", "internal"].contains(&language.as_str()) {
                    let message = format!("language \"{language}\" does not exist");
                    return Err(SqlError::new(SqlState::UndefinedObject, message));
                }
                if language != "plpgsql" {
                    let message =
                        format!("language \"{language}\" does not support inline code execution");
                    return Err(SqlError::new(SqlState::FeatureNotSupported, message));
                }
                continue;
            }
            block = Some(match self.peek() {
                Some(Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text)) => {
                    text.as_str().into()
                }
                Some(Token::DollarQuotedString(quoted)) => quoted.value.as_str().into(),
                _ => return Err(self.error()),
            });
            self.at += 1;
        }
        block.ok_or_else(|| self.error())
    }

    /// Reads the payload of NOTIFY; without one it is empty.
    fn payload(&mut self) -> Result<Arc<str>> {
        if !self.takes_token(&Token::Comma) {
            return Ok("".into());
        }
        let Some(Token::SingleQuotedString(payload)) = self.peek() else {
            return Err(self.error());
        };
        let payload = payload.as_str().into();
        self.at += 1;
        Ok(payload)
    }

    /// Reads the name of a setting; `None` is ALL.
    fn setting(&mut self) -> Result<Option<SmolStr>> {
        if self.takes("ALL") {
            return Ok(None);
        }
        let name = self.dotted()?;
        let rest: &[&str] = match &name[..] {
            "time" => &["ZONE"],
            "transaction" => &["ISOLATION", "LEVEL"],
            "session" => &["AUTHORIZATION"],
            _ => return Ok(Some(name)),
        };
        rest.iter().try_for_each(|word| self.expect(word))?;
        Ok(Some(SmolStr::new_static(match &name[..] {
            "time" => "timezone",
            "session" => "session_authorization",
            _ => "transaction_isolation",
        })))
    }

    /// Reads SET CONSTRAINTS.
    fn constraints(&mut self) -> Result<Command> {
        let mut names = None;
        if !self.takes("ALL") {
            let mut list = vec![self.qualified()?];
            while self.takes_token(&Token::Comma) {
                list.push(self.qualified()?);
            }
            names = Some(list);
        }
        let is_deferred = self.takes("DEFERRED");
        if !is_deferred {
            self.expect("IMMEDIATE")?;
        }
        Ok(Command::SetConstraints(names, is_deferred))
    }

    fn discard(&mut self) -> Result<Discard> {
        for (word, discard) in [
            ("ALL", Discard::All),
            ("PLANS", Discard::Plans),
            ("SEQUENCES", Discard::Sequences),
            ("TEMP", Discard::Temporary),
            ("TEMPORARY", Discard::Temporary),
        ] {
            if self.takes(word) {
                return Ok(discard);
            }
        }
        Err(self.error())
    }

    fn maintain(&mut self, what: &'static str, options: &[&str]) -> Result<Command> {
        if self.parentheses()?.is_none() {
            while options.iter().any(|option| self.takes(option)) {}
        }
        let mut names = Vec::new();
        if self.peek().is_some_and(|token| *token != Token::SemiColon) {
            loop {
                self.takes("ONLY");
                names.push(self.qualified()?);
                self.parentheses()?;
                if !self.takes_token(&Token::Comma) {
                    break;
                }
            }
        }
        Ok(Command::Maintain(what, names))
    }

    fn reindex(&mut self) -> Result<Command> {
        self.parentheses()?;
        let words = ["INDEX", "TABLE", "SCHEMA", "DATABASE", "SYSTEM"];
        let Some(word) = words.into_iter().find(|word| self.takes(word)) else {
            return Err(self.error());
        };
        self.takes("CONCURRENTLY");
        let name = self.qualified()?;
        Ok(Command::Reindex(match word {
            "INDEX" => ReindexTarget::Index(name),
            "TABLE" => ReindexTarget::Table(name),
            "SCHEMA" => ReindexTarget::Schema(name.1),
            "DATABASE" => ReindexTarget::Database,
            _ => ReindexTarget::System,
        }))
    }

    fn declare(&mut self) -> Result<Command> {
        let name = self.name()?;
        let mut options = CursorOptions::default();
        let mut is_asensitive = false;
        loop {
            let asked = if self.takes("NO") {
                self.expect("SCROLL")?;
                Some(false)
            } else {
                self.takes("SCROLL").then_some(true)
            };
            if asked.is_some_and(|asked| options.scroll.is_some_and(|known| known != asked)) {
                return Err(both("SCROLL", "NO SCROLL"));
            }
            options.scroll = asked.or(options.scroll);
            let is_insensitive = self.takes("INSENSITIVE");
            options.insensitive |= is_insensitive;
            let is_other = !is_insensitive && self.takes("ASENSITIVE");
            is_asensitive |= is_other;
            if options.insensitive && is_asensitive {
                return Err(both("INSENSITIVE", "ASENSITIVE"));
            }
            let is_binary = self.takes("BINARY");
            options.is_binary |= is_binary;
            if asked.is_none() && !is_insensitive && !is_other && !is_binary {
                break;
            }
        }
        self.expect("CURSOR")?;
        options.holds = self.takes("WITH");
        if options.holds || self.takes("WITHOUT") {
            self.expect("HOLD")?;
        }
        self.expect("FOR")?;
        let is_query = match self.peek() {
            Some(Token::LParen) => true,
            Some(token) => {
                ["SELECT", "VALUES", "TABLE", "WITH"].iter().any(|it| is_word(token, it))
            }
            None => false,
        };
        if !is_query {
            return Err(self.error());
        }
        Ok(Command::Declare(name, options, self.skip_rest()))
    }

    fn direction(&mut self) -> Result<Direction> {
        // The last word is the name of the cursor, which may be that of a direction.
        let is_last = self.token(self.at + 1).is_none_or(statement_end);
        if is_last && !is_any_word(self.peek(), &["ALL"]) {
            return Ok(Direction::By(1));
        }
        for (word, direction) in [
            ("NEXT", Direction::By(1)),
            ("PRIOR", Direction::By(-1)),
            ("FIRST", Direction::Absolute(1)),
            ("LAST", Direction::Absolute(-1)),
            ("ALL", Direction::All(true)),
        ] {
            if self.takes(word) {
                return Ok(direction);
            }
        }
        if self.takes("ABSOLUTE") {
            return self.number()?.map(Direction::Absolute).ok_or_else(|| self.error());
        }
        if self.takes("RELATIVE") {
            return self.number()?.map(Direction::Relative).ok_or_else(|| self.error());
        }
        let is_forward = self.takes("FORWARD");
        let is_backward = !is_forward && self.takes("BACKWARD");
        if (is_forward || is_backward) && self.takes("ALL") {
            return Ok(Direction::All(is_forward));
        }
        let count = self.number()?.unwrap_or(1);
        Ok(Direction::By(if is_backward { -count } else { count }))
    }
}

#[cold]
fn both(one: &str, other: &str) -> SqlError {
    let message = format!("cannot specify both {one} and {other}");
    SqlError::new(SqlState::InvalidCursorDefinition, message)
}

/// Moves a parser over a command and returns whether there was one.
pub(in crate::parse) fn skip(parser: &mut sqlparser::parser::Parser<'_>) -> bool {
    let sets_constraints = is_word(&parser.peek_token_ref().token, "SET")
        && is_word(&parser.peek_nth_token_ref(1).token, "CONSTRAINTS");
    let is_definition = |token: &Token| {
        ["CREATE", "ALTER", "DROP", "REASSIGN"].iter().any(|word| is_word(token, word))
    };
    let is_access = || {
        is_definition(&parser.peek_token_ref().token) && {
            let token = |at: usize| {
                let token = &parser.peek_nth_token_ref(at).token;
                (!statement_end(token)).then(|| token.clone())
            };
            access::begins(&token)
                || routine::begins(&token)
                || user_types::begins(&token)
                || storage_hints::begins(&token)
                || relations::begins(&token)
                || schema_elements::begins(&token)
                || extensions::begins(&token)
        }
    };
    // ALTER SEQUENCE reaches the parser as a call.
    let alters_sequence = is_word(&parser.peek_token_ref().token, "CALL")
        && matches!(&parser.peek_nth_token_ref(1).token, Token::Word(word)
            if word.value == super::sequences::ALTER);
    if alters_sequence {
        return false;
    }
    if !sets_constraints && !begins_command(&parser.peek_token_ref().token) && !is_access() {
        return false;
    }
    // The statements of a body between BEGIN ATOMIC and END belong to the command.
    let mut depth = 0_usize;
    loop {
        let token = &parser.peek_token_ref().token;
        if *token == Token::EOF || depth == 0 && statement_end(token) {
            return true;
        }
        let begins_body =
            is_word(token, "BEGIN") && is_word(&parser.peek_nth_token_ref(1).token, "ATOMIC");
        if begins_body || depth > 0 && is_word(token, "CASE") {
            depth += 1;
        } else if depth > 0 && is_word(token, "END") {
            depth -= 1;
        }
        parser.next_token();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read() {
        let name = |name: &str| Some(SmolStr::new(name));
        for (text, expected) in [
            ("-- a\n SHOW TimeZone;", Command::Show(name("timezone"))),
            ("show time zone", Command::Show(name("timezone"))),
            ("SHOW TRANSACTION ISOLATION LEVEL", Command::Show(name("transaction_isolation"))),
            ("show all", Command::Show(None)),
            (
                "PREPARE a (int, text) AS SELECT $1",
                Command::Prepare("a".into(), Some(11..20), 25..34),
            ),
            ("EXECUTE a(f(1), ')')", Command::Execute("a".into(), Some(10..19))),
            ("DEALLOCATE PREPARE ALL", Command::Deallocate(None)),
            (
                "VACUUM (ANALYZE) public.t, u",
                Command::Maintain("VACUUM", vec![(name("public"), "t".into()), (None, "u".into())]),
            ),
            (
                "LOCK TABLE t IN SHARE MODE NOWAIT",
                Command::Lock(TableLock {
                    names: vec![(None, "t".into())],
                    mode: TableLockMode::Share,
                    waits: false,
                }),
            ),
            (
                "LOCK t",
                Command::Lock(TableLock {
                    names: vec![(None, "t".into())],
                    mode: TableLockMode::AccessExclusive,
                    waits: true,
                }),
            ),
            ("FETCH BACKWARD 3 FROM c", Command::Fetch("c".into(), Direction::By(-3), true)),
            ("SET CONSTRAINTS ALL DEFERRED", Command::SetConstraints(None, true)),
            (
                "set constraints a, b.c immediate",
                Command::SetConstraints(
                    Some(vec![(None, "a".into()), (Some("b".into()), "c".into())]),
                    false,
                ),
            ),
            ("LISTEN a", Command::Listen("a".into())),
            ("UNLISTEN *", Command::Unlisten(None)),
            ("NOTIFY \"A\", 'it''s'", Command::Notify("A".into(), "it's".into())),
            ("FETCH c", Command::Fetch("c".into(), Direction::By(1), true)),
            ("MOVE FORWARD ALL IN c", Command::Fetch("c".into(), Direction::All(true), false)),
        ] {
            assert_eq!(command(text).unwrap(), Some(expected), "{text}");
        }
        for text in ["SELECT 1", "ABORT", "showing"] {
            assert_eq!(command(text).unwrap(), None, "{text}");
        }
        for text in ["SHOW", "SHOW a b", "DISCARD t", "LOCK t IN MY MODE", "CLOSE a; SELECT 1"] {
            assert_eq!(command(text).unwrap_err().code(), "42601", "{text}");
        }
    }
}
