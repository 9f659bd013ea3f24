//! The place of each word: the clause that it stands in, and the words beside it.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::grammar::{TextKind, category_of, near};
use super::labels;
use super::words::{NameWord, ends_operand, introduces, is_value_word};
use crate::error::Result;
use crate::keywords::KeywordCategory;
use crate::parse::token_edits::keyword_of;

/// What becomes of a word that the parser would read otherwise than PostgreSQL.
pub(super) enum Verdict {
    /// It is a name, which the parser might read as a key word.
    Name,
    /// It is no name.
    NoName,
}

/// The part of a statement that a word stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clause {
    /// The beginning, or one that none of the others is.
    Other,
    /// A select list, or the list of RETURNING.
    List,
    /// FROM, or the target of UPDATE, DELETE and MERGE.
    From,
    /// The target of INSERT or COPY.
    Target,
    /// The columns that UPDATE sets.
    Set,
    /// The names of common table expressions.
    With,
    /// A list of names.
    Names,
    /// A list of options.
    Options,
    /// The definition of a window.
    Window,
}

/// A level of parentheses.
#[derive(Clone, Copy)]
struct NameScope {
    clause: Clause,
    /// CASE without their END.
    cases: usize,
}

/// A position that moves over the tokens of a text.
pub(super) struct NamePlaces<'t> {
    text: &'t str,
    kind: TextKind,
    scopes: Vec<NameScope>,
    scope: NameScope,
    /// The first word of the statement.
    first: Keyword,
    /// The places of the last two tokens that are not blank.
    before: Option<usize>,
    before_that: Option<usize>,
}

const OUTER: NameScope = NameScope { clause: Clause::Other, cases: 0 };

impl<'t> NamePlaces<'t> {
    pub fn new(text: &'t str, kind: TextKind) -> NamePlaces<'t> {
        let (first, scopes) = (Keyword::NoKeyword, Vec::new());
        NamePlaces { text, kind, scopes, scope: OUTER, first, before: None, before_that: None }
    }

    /// Moves over a token. Returns what becomes of it, if anything does.
    pub fn read(&mut self, tokens: &[TokenWithSpan], at: usize) -> Result<Option<Verdict>> {
        let Some(token) = tokens.get(at) else { return Ok(None) };
        let mut verdict = None;
        match &token.token {
            Token::Whitespace(_) => return Ok(None),
            Token::LParen => {
                let clause = self.clause_in_parentheses(tokens);
                self.scopes.push(self.scope);
                self.scope = NameScope { clause, cases: 0 };
            }
            Token::RParen => self.scope = self.scopes.pop().unwrap_or(OUTER),
            Token::SemiColon => {
                (self.scope, self.first) = (OUTER, Keyword::NoKeyword);
                self.scopes.clear();
                (self.before, self.before_that) = (None, None);
                return Ok(None);
            }
            Token::Word(word) if word.quote_style.is_none() => {
                let word = NameWord {
                    keyword: word.keyword,
                    category: category_of(word),
                    before: self.keyword(tokens, self.before),
                    clause: self.scope.clause,
                    first: self.first,
                };
                verdict = self.verdict(tokens, at, &word)?;
                if self.before.is_none() {
                    self.first = word.keyword;
                }
                if !matches!(verdict, Some(Verdict::Name)) {
                    self.enter(&word, self.keyword(tokens, self.before_that));
                }
            }
            _ => {}
        }
        (self.before_that, self.before) = (self.before, Some(at));
        Ok(verdict)
    }

    fn keyword(&self, tokens: &[TokenWithSpan], at: Option<usize>) -> Keyword {
        let token = at.and_then(|at| tokens.get(at));
        token.map_or(Keyword::NoKeyword, |token| keyword_of(&token.token))
    }

    fn token<'a>(&self, tokens: &'a [TokenWithSpan], at: Option<usize>) -> Option<&'a Token> {
        at.and_then(|at| tokens.get(at)).map(|token| &token.token)
    }

    /// Returns the clause of what follows a parenthesis.
    fn clause_in_parentheses(&self, tokens: &[TokenWithSpan]) -> Clause {
        use Keyword as K;
        let word = self.keyword(tokens, self.before);
        let before_that = self.token(tokens, self.before_that);
        let word_before = self.keyword(tokens, self.before_that);
        let is_name = matches!(self.token(tokens, self.before), Some(Token::Word(_)));
        // The columns of an alias.
        let is_alias = || match before_that {
            Some(Token::RParen) => true,
            Some(that @ Token::Word(_)) => word_before == K::AS || ends_operand(that),
            _ => false,
        };
        match (self.scope.clause, word) {
            (Clause::Options, _) => Clause::Options,
            (_, K::WITH) if matches!(self.first, K::COPY | K::CREATE) => Clause::Options,
            _ if self.first == K::EXPLAIN && self.scopes.is_empty() && word == K::EXPLAIN => {
                Clause::Options
            }
            (Clause::From, K::FROM | K::JOIN) => Clause::From,
            (Clause::From, K::USING) => Clause::Names,
            (Clause::From, _) if is_name && is_alias() => Clause::Names,
            (Clause::Set, K::SET) => Clause::Names,
            (Clause::With, _) if is_name && !matches!(word, K::AS | K::MATERIALIZED) => {
                Clause::Names
            }
            (Clause::Target, _) if is_name && word != K::COPY => Clause::Names,
            (_, K::OVER) => Clause::Window,
            (_, K::KEY | K::UNIQUE) => Clause::Names,
            _ if word_before == K::REFERENCES => Clause::Names,
            _ => Clause::Other,
        }
    }

    /// Follows the clauses of a query.
    fn enter(&mut self, word: &NameWord, before_that: Keyword) {
        use Keyword as K;
        let scope = &mut self.scope;
        match word.keyword {
            _ if word.before == K::AS && scope.clause == Clause::List => {}
            K::COPY if self.before.is_none() => scope.clause = Clause::Target,
            K::TO | K::FROM if scope.clause == Clause::Target => scope.clause = Clause::Options,
            K::SELECT | K::RETURNING => scope.clause = Clause::List,
            K::FROM if word.before != K::DISTINCT => scope.clause = Clause::From,
            // The action of a foreign key.
            K::UPDATE if word.before == K::ON => {}
            K::JOIN | K::UPDATE | K::MERGE => scope.clause = Clause::From,
            K::USING if matches!(word.first, K::DELETE | K::MERGE) => scope.clause = Clause::From,
            K::INTO if word.before == K::INSERT => scope.clause = Clause::Target,
            K::INTO if scope.clause == Clause::List => scope.clause = Clause::Other,
            K::WITH if self.before.is_none() || before_that == K::AS => {
                scope.clause = Clause::With;
            }
            K::SET if scope.clause == Clause::From => scope.clause = Clause::Set,
            K::WHERE
            | K::ON
            | K::GROUP
            | K::HAVING
            | K::ORDER
            | K::LIMIT
            | K::OFFSET
            | K::WINDOW
            | K::FOR
            | K::UNION
            | K::EXCEPT
            | K::INTERSECT
            | K::VALUES
            | K::SET
            | K::DEFAULT
                if scope.clause != Clause::Options =>
            {
                scope.clause = Clause::Other;
            }
            K::CASE => scope.cases += 1,
            K::END => scope.cases = scope.cases.saturating_sub(1),
            _ => {}
        }
    }

    fn verdict(
        &self,
        tokens: &[TokenWithSpan],
        at: usize,
        word: &NameWord,
    ) -> Result<Option<Verdict>> {
        let is_free = word.is_free();
        if is_free && word.keyword == Keyword::NoKeyword {
            return Ok(None);
        }
        let shown = |token: &&TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
        let next = tokens.get(at + 1..).unwrap_or_default().iter().find(shown);
        let next = next.map(|next| &next.token);
        let before = self.token(tokens, self.before);
        let follows_operand = before.is_some_and(ends_operand) && !introduces(word.before);
        // A value is a factor where it follows a product's sign.
        let is_factor = is_value_word(word.keyword)
            && before == Some(&Token::Mul)
            && self.token(tokens, self.before_that).is_some_and(ends_operand);
        if follows_operand && !is_factor && matches!(word.clause, Clause::List | Clause::From) {
            let before_that = self.keyword(tokens, self.before_that);
            if let Some(is_name) = self.label(word, [before, next], before_that) {
                if is_name {
                    return Ok(Some(Verdict::Name));
                }
                let Some(token) = tokens.get(at) else { return Ok(None) };
                return Err(near(self.text, &token.token.to_string(), token.span.start));
            }
        }
        if is_free {
            return Ok(word.is_read_as_clause(before, next).then_some(Verdict::Name));
        }
        if before == Some(&Token::Period) && self.first != Keyword::SET {
            return Ok(Some(Verdict::Name));
        }
        if word.before == Keyword::AS && word.clause == Clause::List {
            let is_lost = matches!(word.keyword, Keyword::TABLE | Keyword::VARIADIC);
            return Ok(is_lost.then_some(Verdict::Name));
        }
        let begins = before.is_none() && self.kind == TextKind::Statement;
        let is_value = !matches!(self.kind, TextKind::Name | TextKind::Types);
        let is_type = self.kind == TextKind::Types || before == Some(&Token::DoubleColon);
        let is_taken = begins
            || is_type && word.category == Some(KeywordCategory::FunctionName)
            || is_value && word.is_value(before, next, follows_operand && !is_factor)
            || word.is_key_word(before, next, follows_operand)
            || word.is_option(next, follows_operand);
        Ok((!is_taken).then_some(Verdict::NoName))
    }

    /// Returns whether a word after an operand, between two tokens, is a name without AS; `None` if
    /// none is there, or the parser knows.
    fn label(
        &self,
        word: &NameWord,
        [before, next]: [Option<&Token>; 2],
        before_that: Keyword,
    ) -> Option<bool> {
        let is_list = word.clause == Clause::List;
        let is_end = word.keyword == Keyword::END && self.scope.cases > 0;
        let ends = if is_list { labels::ends_label } else { labels::ends_alias };
        let may_be = !is_end && !labels::goes_on(word.keyword, before, before_that);
        if !may_be || !next.is_none_or(ends) {
            return None;
        }
        match labels::is_label(word.keyword)? {
            _ if !is_list => word.is_free().then_some(true),
            false if labels::goes_on_after(word.keyword) => None,
            is_label => Some(is_label),
        }
    }
}

impl NameWord {
    /// Returns whether the word is no name of a function or type only, and not reserved.
    fn is_free(&self) -> bool {
        let bound = [KeywordCategory::Reserved, KeywordCategory::FunctionName];
        self.category.is_none_or(|category| !bound.contains(&category))
    }
}
