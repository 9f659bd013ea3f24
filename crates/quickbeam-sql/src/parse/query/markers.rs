//! Clauses of queries that become names with a marker, or clauses that the parser knows.
//!
//! - The alias of `JOIN … USING (a) AS j` becomes one more name in the list.
//! - SEARCH and CYCLE after a query of WITH become further queries of WITH, which list the names.
//! - GROUP BY DISTINCT becomes a key.
//! - `WHERE CURRENT OF c` becomes a call of a function without a name that could be written.
//! - `FETCH FIRST (expression)` with ROWS ONLY or WITH TIES becomes LIMIT, `SUBSTRING(… SIMILAR …
//!   ESCAPE …)` becomes `SUBSTRING(… FROM … FOR …)`, and `FOR UPDATE OF a, b` becomes a row lock
//!   for each table. The `*` after the name of a table goes, as no table has children.

use sqlparser::ast::{Cte, Expr, Ident, SelectItem, SetExpr, TableAliasColumnDef};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, Word};

use super::clauses::{ROWS_FROM, SYMMETRIC};
use super::values_in_from::VALUE;
use crate::parse::token_edits::{TokenEdits, keyword_of, marker, word};

/// The beginning of the name that stands for the alias of a join with USING.
const JOIN_ALIAS: &str = "\0as ";

/// The key that stands for GROUP BY DISTINCT.
const DISTINCT_SETS: &str = "\0distinct";

/// The function that CURRENT OF becomes, of the name of the cursor.
pub(super) const CURRENT_OF: &str = "\0current of";

/// The function that the number of `FETCH FIRST (expression) ROWS WITH TIES` becomes.
pub(super) const TIES: &str = "\0with ties";

const DEPTH_FIRST: &str = "\0search depth";
const BREADTH_FIRST: &str = "\0search breadth";
const CYCLE: &str = "\0cycle";

/// SEARCH or CYCLE of a recursive query.
#[derive(Clone, Copy, Debug)]
pub enum Traversal<'a> {
    DepthFirst(&'a [TableAliasColumnDef], &'a Ident),
    BreadthFirst(&'a [TableAliasColumnDef], &'a Ident),
    Cycle(CycleClause<'a>),
}

/// CYCLE of a recursive query.
#[derive(Clone, Copy, Debug)]
pub struct CycleClause<'a> {
    pub columns: &'a [TableAliasColumnDef],
    pub mark: &'a Ident,
    pub path: &'a Ident,
    /// The mark of a row that closes a cycle.
    pub marked: &'a Expr,
    /// The mark of any other row.
    pub unmarked: &'a Expr,
}

/// Returns the clause that a query of WITH stands for.
pub fn traversal(common: &Cte) -> Option<Traversal<'_>> {
    let columns = &common.alias.columns[..];
    match (&common.alias.name.value[..], columns) {
        (DEPTH_FIRST, [by @ .., sequence]) => Some(Traversal::DepthFirst(by, &sequence.name)),
        (BREADTH_FIRST, [by @ .., sequence]) => Some(Traversal::BreadthFirst(by, &sequence.name)),
        (CYCLE, [columns @ .., mark, path]) => {
            let SetExpr::Select(select) = &*common.query.body else { return None };
            let [SelectItem::UnnamedExpr(marked), SelectItem::UnnamedExpr(unmarked)] =
                &select.projection[..]
            else {
                return None;
            };
            let (mark, path) = (&mark.name, &path.name);
            Some(Traversal::Cycle(CycleClause { columns, mark, path, marked, unmarked }))
        }
        _ => None,
    }
}

/// Returns the alias of a join that the last name of USING stands for.
pub fn join_alias(name: &str) -> Option<&str> {
    name.strip_prefix(JOIN_ALIAS)
}

/// Returns whether a key stands for GROUP BY DISTINCT.
pub fn is_distinct_sets(key: &Expr) -> bool {
    matches!(key, Expr::Identifier(name) if name.value == DISTINCT_SETS)
}

/// Returns the tokens of a text with the clauses in the parser's form.
pub fn adapted(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    use Keyword::{CURRENT, FETCH, FOR, FROM, GROUP, JOIN, ONLY};
    use Keyword::{SEARCH, SUBSTRING, UPDATE, USING, WHERE};
    let is_such = |pair: &[TokenWithSpan]| match keyword_of(&pair[0].token) {
        USING | FETCH | SUBSTRING | GROUP | SEARCH | FOR | CURRENT | Keyword::CYCLE => true,
        // A `*` directly after a name, or after a blank.
        _ => pair[1].token == Token::Mul && !matches!(pair[0].token, Token::LParen | Token::Comma),
    };
    if !tokens.windows(2).any(is_such) {
        return tokens;
    }
    let mut edits = TokenEdits::new(tokens);
    for place in 0..edits.len() {
        match edits.keyword(place) {
            USING => alias_of_join(&mut edits, place),
            FETCH => fetch(&mut edits, place),
            SUBSTRING if edits.is(place + 1, &Token::LParen) => substring(&mut edits, place + 1),
            GROUP if edits.keyword(place + 1) == Keyword::BY => sets(&mut edits, place + 2),
            FOR => locked_tables(&mut edits, place),
            WHERE
                if edits.has_keywords(place + 1, &[CURRENT, Keyword::OF])
                    && (0..place)
                        .any(|at| matches!(edits.keyword(at), UPDATE | Keyword::DELETE)) =>
            {
                current_of(&mut edits, place + 1);
            }
            FROM | JOIN | UPDATE | ONLY => table_with_children(&mut edits, place + 1),
            SEARCH if edits.is(place.wrapping_sub(1), &Token::RParen) => {
                search(&mut edits, place);
            }
            _ if edits.is_word(place, "CYCLE") => cycle(&mut edits, place),
            _ => {}
        }
    }
    edits.finish()
}

/// Gives a call in FROM whose columns are defined without an alias the name of its function:
/// `f(1) AS (a int)` becomes `f(1) AS f (a int)`.
pub fn with_aliases(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    use Keyword::{DELETE, INSERT, MERGE, SELECT, TABLE, UPDATE, VALUES, WITH};
    if !tokens.iter().any(|token| keyword_of(&token.token) == Keyword::AS) {
        return tokens;
    }
    let mut edits = TokenEdits::new(tokens);
    for place in 1..edits.len() {
        let is_query = matches!(
            edits.keyword(place + 2),
            SELECT | VALUES | TABLE | INSERT | UPDATE | DELETE | MERGE | WITH
        );
        let is_list = edits.keyword(place) == Keyword::AS
            && edits.is(place - 1, &Token::RParen)
            && edits.is(place + 1, &Token::LParen)
            && edits.is_name(place + 2)
            && edits.is_name(place + 3)
            && !is_query;
        if !is_list {
            continue;
        }
        let opening = (0..place)
            .rev()
            .find(|at| edits.is(*at, &Token::LParen) && edits.closing(*at) == Some(place - 1));
        let name = opening.and_then(|at| edits.token(at.checked_sub(1)?).cloned());
        if let Some(name @ Token::Word(_)) = name {
            edits.replace(place, vec![word(Keyword::AS), name]);
        }
    }
    edits.finish()
}

/// `USING (a, b) AS j`.
fn alias_of_join(edits: &mut TokenEdits, using: usize) {
    let mut end = using + 1;
    while edits.is(end, if end == using + 1 { &Token::LParen } else { &Token::Comma })
        && edits.is_name(end + 1)
    {
        end += 2;
    }
    if end == using + 1 || !edits.is(end, &Token::RParen) || edits.keyword(end + 1) != Keyword::AS {
        return;
    }
    let Some(Token::Word(alias)) = edits.token(end + 2) else { return };
    let alias = format!("{JOIN_ALIAS}{}", folded(alias));
    edits.replace(end, vec![Token::Comma, marker(&alias), Token::RParen]);
    edits.remove(end + 1);
    edits.remove(end + 2);
}

/// `WHERE CURRENT OF c`, at CURRENT.
fn current_of(edits: &mut TokenEdits, current: usize) {
    let Some(Token::Word(cursor)) = edits.token(current + 2) else { return };
    let cursor = folded(cursor);
    edits.replace(current, vec![marker(CURRENT_OF)]);
    edits.replace(current + 1, vec![Token::LParen]);
    edits.replace(current + 2, vec![marker(&cursor), Token::RParen]);
}

fn folded(word: &Word) -> String {
    match word.quote_style {
        Some(_) => word.value.clone(),
        None => word.value.to_lowercase(),
    }
}

/// `FETCH FIRST (expression) ROWS ONLY`, and a number with a sign.
fn fetch(edits: &mut TokenEdits, fetch: usize) {
    if !matches!(edits.keyword(fetch + 1), Keyword::FIRST | Keyword::NEXT) {
        return;
    }
    let end = match edits.token(fetch + 2) {
        Some(Token::LParen) => edits.closing(fetch + 2),
        Some(Token::Plus | Token::Minus) => Some(fetch + 3),
        _ => None,
    };
    let Some(end) = end else { return };
    if !matches!(edits.keyword(end + 1), Keyword::ROW | Keyword::ROWS) {
        return;
    }
    if edits.keyword(end + 2) == Keyword::ONLY {
        edits.replace(fetch, vec![word(Keyword::LIMIT)]);
        edits.remove_all([fetch + 1, end + 1, end + 2]);
    } else if edits.has_keywords(end + 2, &[Keyword::WITH, Keyword::TIES]) {
        edits.replace(fetch, vec![word(Keyword::LIMIT)]);
        edits.replace(fetch + 1, vec![marker(TIES), Token::LParen]);
        edits.replace(end + 1, vec![Token::RParen]);
        edits.remove_all([end + 2, end + 3]);
    }
}

/// `SUBSTRING(text SIMILAR pattern ESCAPE character)`.
fn substring(edits: &mut TokenEdits, open: usize) {
    let Some(end) = edits.closing(open) else { return };
    let mut depth = 0_usize;
    let mut is_similar = false;
    for place in open..end {
        match edits.token(place) {
            Some(Token::LParen | Token::LBracket) => depth += 1,
            Some(Token::RParen | Token::RBracket) => depth = depth.saturating_sub(1),
            Some(token) if depth == 1 => match keyword_of(token) {
                Keyword::SIMILAR if edits.keyword(place + 1) != Keyword::TO => {
                    is_similar = true;
                    edits.replace(place, vec![word(Keyword::FROM)]);
                }
                Keyword::ESCAPE if is_similar => edits.replace(place, vec![word(Keyword::FOR)]),
                _ => {}
            },
            _ => {}
        }
    }
}

/// `GROUP BY ALL` and `GROUP BY DISTINCT` before keys.
fn sets(edits: &mut TokenEdits, first: usize) {
    match edits.keyword(first) {
        Keyword::ALL => edits.remove(first),
        Keyword::DISTINCT => edits.replace(first, vec![marker(DISTINCT_SETS), Token::Comma]),
        _ => {}
    }
}

/// `FOR UPDATE OF a, b NOWAIT`.
fn locked_tables(edits: &mut TokenEdits, lock: usize) {
    let strength = edits.keyword(lock + 1);
    let is_lock = matches!(strength, Keyword::UPDATE | Keyword::SHARE);
    if !is_lock || edits.keyword(lock + 2) != Keyword::OF {
        return;
    }
    let mut commas = Vec::new();
    let mut end = lock + 4;
    while let Some(Token::Comma | Token::Period) = edits.token(end) {
        if edits.is(end, &Token::Comma) {
            commas.push(end);
        }
        end += 2;
    }
    let wait: &[Keyword] = match edits.keyword(end) {
        Keyword::NOWAIT => &[Keyword::NOWAIT],
        Keyword::SKIP => &[Keyword::SKIP, Keyword::LOCKED],
        _ => &[],
    };
    for comma in commas {
        let next = [Keyword::FOR, strength, Keyword::OF];
        edits.replace(comma, wait.iter().chain(&next).map(|one| word(*one)).collect());
    }
}

/// `table *`.
fn table_with_children(edits: &mut TokenEdits, name: usize) {
    let mut end = name;
    while edits.is_name(end) && edits.is(end + 1, &Token::Period) {
        end += 2;
    }
    if !edits.is_name(end) || !edits.is(end + 1, &Token::Mul) {
        return;
    }
    use Keyword as K;
    let is_end = match edits.token(end + 2) {
        Some(Token::EOF | Token::SemiColon | Token::RParen | Token::Comma) | None => true,
        Some(token) => matches!(
            keyword_of(token),
            K::AS
                | K::WHERE
                | K::SET
                | K::ORDER
                | K::GROUP
                | K::HAVING
                | K::LIMIT
                | K::JOIN
                | K::LEFT
                | K::RIGHT
                | K::FULL
                | K::INNER
                | K::CROSS
                | K::NATURAL
                | K::ON
                | K::USING
                | K::UNION
                | K::FOR
                | K::OFFSET
                | K::FETCH
        ),
    };
    if is_end {
        edits.remove(end + 1);
    }
}

/// Makes a clause the beginning of a query of WITH with a list of names.
fn list_names(edits: &mut TokenEdits, name: &str, clause: usize) {
    edits.replace(clause, vec![Token::Comma, marker(name), Token::LParen]);
}

/// Returns the place after a list of names.
fn after_names(edits: &TokenEdits, first: usize) -> Option<usize> {
    let mut end = first;
    while edits.is_name(end) {
        if !edits.is(end + 1, &Token::Comma) {
            return Some(end + 1);
        }
        end += 2;
    }
    None
}

/// `SEARCH DEPTH FIRST BY a, b SET c`.
fn search(edits: &mut TokenEdits, clause: usize) {
    let name = match edits.is_word(clause + 1, "DEPTH") {
        true => DEPTH_FIRST,
        false if edits.is_word(clause + 1, "BREADTH") => BREADTH_FIRST,
        false => return,
    };
    if !edits.has_keywords(clause + 2, &[Keyword::FIRST, Keyword::BY]) {
        return;
    }
    let Some(set) =
        after_names(edits, clause + 4).filter(|set| edits.keyword(*set) == Keyword::SET)
    else {
        return;
    };
    let Some(sequence) = edits.token(set + 1).cloned() else { return };
    list_names(edits, name, clause);
    edits.remove_all(clause + 1..clause + 4);
    edits.replace(set, vec![Token::Comma]);
    let one = Token::Number("1".to_owned(), false);
    let body = [Token::RParen, word(Keyword::AS), Token::LParen, word(Keyword::SELECT), one];
    let made = [sequence].into_iter().chain(body).chain([Token::RParen]);
    edits.replace(set + 1, made.collect());
}

/// `CYCLE a, b SET mark TO 'Y' DEFAULT 'N' USING path`.
fn cycle(edits: &mut TokenEdits, clause: usize) {
    let Some(set) =
        after_names(edits, clause + 1).filter(|set| edits.keyword(*set) == Keyword::SET)
    else {
        return;
    };
    let place_of = |keyword: Keyword, from: usize| {
        (from..edits.len())
            .find(|place| edits.keyword(*place) == keyword || edits.is(*place, &Token::SemiColon))
    };
    let Some(using) = place_of(Keyword::USING, set + 2).filter(|place| edits.is_name(place + 1))
    else {
        return;
    };
    let mut values = vec![word(Keyword::TRUE), Token::Comma, word(Keyword::FALSE)];
    if edits.keyword(set + 2) == Keyword::TO {
        let tokens = (set + 3..using).filter_map(|place| edits.token(place));
        let is_default = |token: &Token| keyword_of(token) == Keyword::DEFAULT;
        values = tokens
            .map(|token| if is_default(token) { Token::Comma } else { token.clone() })
            .collect();
    } else if using != set + 2 {
        return;
    }
    let Some(path) = edits.token(using + 1).cloned() else { return };
    list_names(edits, CYCLE, clause);
    edits.replace(set, vec![Token::Comma]);
    edits.remove_all(set + 2..using);
    edits.replace(using, vec![Token::Comma]);
    let body = [path, Token::RParen, word(Keyword::AS), Token::LParen, word(Keyword::SELECT)];
    edits.replace(using + 1, body.into_iter().chain(values).chain([Token::RParen]).collect());
}

/// Writes the clauses in a text as they were before [`adapted`].
pub fn restore_query_markers(text: &mut String) {
    if !text.contains("\"\0") {
        return;
    }
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location();
    let mut edits = TokenEdits::new(tokens.unwrap_or_default());
    for place in 0..edits.len() {
        let Some(Token::Word(found)) = edits.token(place) else { continue };
        let before = place.wrapping_sub(1);
        match &found.value[..] {
            DISTINCT_SETS => {
                edits.replace(place, vec![word(Keyword::DISTINCT)]);
                edits.remove(place + 1);
            }
            DEPTH_FIRST => restore_search(&mut edits, place, "DEPTH"),
            BREADTH_FIRST => restore_search(&mut edits, place, "BREADTH"),
            CYCLE => restore_cycle(&mut edits, place),
            ROWS_FROM => {
                edits.replace(place, vec![word(Keyword::ROWS), blank(), word(Keyword::FROM)]);
            }
            SYMMETRIC => edits.replace(place, vec![word(Keyword::SYMMETRIC), blank()]),
            TIES => {
                let Some(end) = edits.closing(place + 1) else { continue };
                edits.replace(before, vec![word(Keyword::FETCH), blank(), word(Keyword::FIRST)]);
                edits.remove(place);
                let words = [Keyword::ROWS, Keyword::WITH, Keyword::TIES];
                let words = words.into_iter().flat_map(|it| [blank(), word(it)]);
                edits.replace(end, std::iter::once(Token::RParen).chain(words).collect());
            }
            VALUE => {
                edits.remove_all([place, place + 1]);
                edits.remove_all(edits.closing(place + 1));
            }
            name => {
                let Some(alias) = name.strip_prefix(JOIN_ALIAS).map(marker) else { continue };
                edits.replace(before, vec![Token::RParen]);
                edits.replace(place, vec![word(Keyword::AS), blank(), alias]);
                edits.remove(place + 1);
            }
        }
    }
    *text = edits.finish().into_iter().map(|token| token.token.to_string()).collect();
}

fn blank() -> Token {
    Token::Whitespace(sqlparser::tokenizer::Whitespace::Space)
}

/// Returns the places of the last comma of the list of names that follows, and of its end.
fn listed(edits: &TokenEdits, name: usize) -> Option<(usize, usize)> {
    let end = edits.closing(name + 1)?;
    Some((end.checked_sub(2)?, end))
}

fn restore_search(edits: &mut TokenEdits, name: usize, order: &str) {
    let Some((comma, end)) = listed(edits, name) else { return };
    let Some(body) = edits.closing(end + 2) else { return };
    edits.remove(name - 1);
    let words = ["SEARCH", " ", order, " ", "FIRST", " ", "BY"];
    edits.replace(name, words.map(|one| Token::make_word(one, None)).into());
    edits.remove(name + 1);
    edits.replace(comma, vec![blank(), word(Keyword::SET)]);
    edits.cut(end, body);
}

fn restore_cycle(edits: &mut TokenEdits, name: usize) {
    let Some((last, end)) = listed(edits, name) else { return };
    let Some(body) = edits.closing(end + 2) else { return };
    edits.remove(name - 1);
    edits.replace(name, vec![Token::make_word("CYCLE", None)]);
    edits.remove(name + 1);
    edits.replace(last - 2, vec![blank(), word(Keyword::SET)]);
    // The values follow SELECT.
    let values = (end + 4..body).filter_map(|place| edits.token(place)).cloned();
    let mut made = vec![blank(), word(Keyword::TO), blank()];
    for value in values {
        match value {
            Token::Comma => made.extend([blank(), word(Keyword::DEFAULT), blank()]),
            value => made.push(value),
        }
    }
    made.extend([blank(), word(Keyword::USING)]);
    edits.replace(last, made);
    edits.cut(end, body);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clauses_survive_the_parser() {
        for query in [
            "SELECT * FROM a JOIN b USING(x, y) AS \"j\"",
            "SELECT a FROM t GROUP BY DISTINCT ROLLUP (a)",
            "WITH RECURSIVE s AS (SELECT 1) SEARCH DEPTH FIRST BY f, t SET o SELECT * FROM s",
            "WITH RECURSIVE s AS (SELECT 1) SEARCH BREADTH FIRST BY f SET o, u AS (SELECT 2) SELECT * FROM s",
            "WITH RECURSIVE s AS (SELECT 1) CYCLE f, t SET m TO 'Y' DEFAULT 'N' USING p SELECT * FROM s",
        ] {
            let mut text = crate::parse::query(query).unwrap().to_string();
            assert!(text.contains("\"\0"), "{text}");
            restore_query_markers(&mut text);
            assert_eq!(text, query);
        }
    }
}
