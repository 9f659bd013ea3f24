//! What a reserved word, or one that names functions and types only, is at its place.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use super::grammar::category_of;
use super::labels::{begins_clause, ends_label};
use super::places::Clause;
use crate::keywords::KeywordCategory;
use crate::parse::token_edits::keyword_of;

/// A word and what is before it.
pub(super) struct NameWord {
    pub keyword: Keyword,
    pub category: Option<KeywordCategory>,
    /// The key word before it.
    pub before: Keyword,
    pub clause: Clause,
    /// The first word of the statement.
    pub first: Keyword,
}

impl NameWord {
    /// Returns whether the parser never takes the word as a name here. This spares common
    /// statements a look at their tree.
    pub fn is_key_word(
        &self,
        before: Option<&Token>,
        next: Option<&Token>,
        follows_operand: bool,
    ) -> bool {
        use Keyword as K;
        if self.clause == Clause::Names {
            return false;
        }
        match self.keyword {
            K::SELECT => {
                before.is_none_or(|before| *before == Token::LParen)
                    || matches!(self.before, K::UNION | K::ALL | K::EXCEPT | K::INTERSECT)
                    || self.before == K::AS && self.first == K::CREATE
                    || follows_operand && self.first == K::INSERT
            }
            K::INTO => matches!(self.before, K::INSERT | K::MERGE),
            K::TABLE => matches!(self.before, K::CREATE | K::DROP | K::ALTER | K::TEMP),
            K::NOT => matches!(self.before, K::AND | K::OR | K::IS | K::WHEN),
            K::CASE if next.is_none_or(ends_label) => false,
            K::CASE => {
                matches!(self.before, K::SELECT | K::THEN | K::ELSE) || {
                    matches!(before, Some(Token::LParen | Token::Comma))
                        && self.clause != Clause::From
                }
            }
            K::WHEN if self.before == K::CASE => true,
            K::JOIN => {
                matches!(self.before, K::INNER | K::LEFT | K::RIGHT | K::FULL | K::OUTER | K::CROSS)
            }
            K::FROM if self.before == K::DELETE => true,
            clause if begins_clause(clause) => follows_operand,
            K::ON
            | K::INNER
            | K::CROSS
            | K::FULL
            | K::LEFT
            | K::RIGHT
            | K::USING
            | K::RETURNING
            | K::AS
            | K::FOR => follows_operand,
            K::AND
            | K::OR
            | K::IN
            | K::IS
            | K::LIKE
            | K::ASC
            | K::DESC
            | K::THEN
            | K::ELSE
            | K::WHEN
            | K::END => follows_operand && self.clause != Clause::From,
            K::PRIMARY | K::REFERENCES | K::UNIQUE | K::CHECK => {
                follows_operand && matches!(self.first, K::CREATE | K::ALTER)
            }
            // The marker of an array that is spread.
            K::VARIADIC => next == Some(&Token::RArrow),
            K::ARRAY | K::ALL | K::ANY | K::SOME if next == Some(&Token::LParen) => {
                !follows_operand && !introduces(self.before)
            }
            K::ALL | K::USER => self.before == K::TRIGGER && self.first == K::ALTER,
            _ => false,
        }
    }

    /// Returns whether the word is a value here.
    pub fn is_value(
        &self,
        before: Option<&Token>,
        next: Option<&Token>,
        follows_operand: bool,
    ) -> bool {
        use Keyword as K;
        let is_follower = matches!(self.keyword, K::NULL | K::DEFAULT) && !self.is_alias();
        if !is_value_word(self.keyword)
            || self.clause == Clause::Names
            || introduces(self.before)
            || follows_operand && !is_follower
            || next == Some(&Token::Period)
        {
            return false;
        }
        if next == Some(&Token::LParen)
            && matches!(
                self.keyword,
                K::CURRENT_DATE | K::CURRENT_ROLE | K::CURRENT_USER | K::SESSION_USER | K::USER
            )
        {
            return false;
        }
        match self.first {
            K::SET => {
                matches!(self.keyword, K::TRUE | K::FALSE | K::DEFAULT) && self.before != K::ROLE
            }
            K::ROLLBACK => false,
            _ => {
                // A function in FROM, not a constant.
                let is_constant = matches!(self.keyword, K::NULL | K::TRUE | K::FALSE | K::DEFAULT);
                let is_target = matches!(self.first, K::UPDATE | K::DELETE)
                    && matches!(self.before, K::FROM | K::UPDATE);
                let is_set = self.clause == Clause::Set
                    && (self.before == K::SET || before == Some(&Token::Comma));
                let is_item = self.clause == Clause::From
                    && (matches!(self.before, K::FROM | K::JOIN | K::USING)
                        || before == Some(&Token::Comma));
                !(is_target
                    || is_set
                    || is_item && is_constant
                    || before == Some(&Token::DoubleColon))
            }
        }
    }

    /// Returns whether an alias can stand here.
    fn is_alias(&self) -> bool {
        matches!(self.clause, Clause::From | Clause::List)
    }

    /// Returns whether the word is permitted as one of an option, or as the name of a function,
    /// type or role.
    pub fn is_option(&self, next: Option<&Token>, follows_operand: bool) -> bool {
        use Keyword as K;
        let is_function = self.category == Some(KeywordCategory::FunctionName);
        match self.first {
            _ if self.clause == Clause::Options => true,
            // The value of a setting.
            K::SET if !matches!(self.before, K::SET | K::LOCAL) => {
                is_function || self.keyword == K::ON
            }
            _ if !is_function || self.clause == Clause::Names => false,
            _ if next == Some(&Token::RArrow) || self.before == K::TYPE => true,
            _ if follows_operand && self.clause == Clause::Other => {
                matches!(self.first, K::CREATE | K::ALTER)
            }
            _ if next == Some(&Token::LParen) => {
                let is_defined = matches!(self.clause, Clause::With | Clause::Target)
                    || follows_operand && self.clause == Clause::From;
                !is_defined && !introduces(self.before)
            }
            _ => {
                matches!(self.before, K::TO | K::AUTHORIZATION) && self.first != K::ROLLBACK
                    || self.before == K::AS && self.clause == Clause::Other
            }
        }
    }

    /// Returns whether the parser reads a word that is a name as the beginning of a clause.
    pub fn is_read_as_clause(&self, before: Option<&Token>, next: Option<&Token>) -> bool {
        use Keyword as K;
        let next_word = next.map_or(K::NoKeyword, keyword_of);
        let is_called = next == Some(&Token::LParen);
        match self.keyword {
            K::RECURSIVE => self.before == K::WITH && (is_called || next_word == K::AS),
            K::EXISTS => {
                !is_called
                    && !matches!(self.before, K::IF | K::NOT)
                    && self.clause != Clause::Options
            }
            K::TRIM => !is_called,
            K::TOP => true,
            K::PARTITION if self.clause != Clause::Window => {
                self.first == K::ALTER && matches!(self.before, K::ADD | K::DROP | K::COLUMN)
            }
            K::ROWS if before == Some(&Token::Period) => true,
            K::PARTITION | K::ROWS | K::RANGE | K::GROUPS => false,
            // The window that the definition begins with.
            _ => self.clause == Clause::Window && before == Some(&Token::LParen),
        }
    }
}

/// Returns whether a word introduces the name of an object.
pub(super) fn introduces(keyword: Keyword) -> bool {
    use Keyword as K;
    matches!(
        keyword,
        K::TABLE
            | K::INTO
            | K::UPDATE
            | K::VIEW
            | K::SCHEMA
            | K::SEQUENCE
            | K::INDEX
            | K::DOMAIN
            | K::TYPE
            | K::CONSTRAINT
            | K::COLUMN
            | K::SAVEPOINT
            | K::RELEASE
            | K::WITH
            | K::RECURSIVE
            | K::REFERENCES
            | K::TRUNCATE
            | K::COPY
            | K::EXISTS
            | K::AS
            | K::ADD
            | K::DROP
            | K::ALTER
            | K::ONLY
            | K::OVER
            | K::OF
            | K::WINDOW
    )
}

/// Returns whether a reserved word is a value.
pub(super) fn is_value_word(keyword: Keyword) -> bool {
    use Keyword as K;
    matches!(
        keyword,
        K::CURRENT_CATALOG
            | K::CURRENT_DATE
            | K::CURRENT_ROLE
            | K::CURRENT_SCHEMA
            | K::CURRENT_TIME
            | K::CURRENT_TIMESTAMP
            | K::CURRENT_USER
            | K::LOCALTIME
            | K::LOCALTIMESTAMP
            | K::SESSION_USER
            | K::USER
            | K::NULL
            | K::TRUE
            | K::FALSE
            | K::DEFAULT
    )
}

/// Returns whether a token can be the last one of an operand or a name.
pub(super) fn ends_operand(token: &Token) -> bool {
    use Keyword as K;
    match token {
        Token::Word(word) if word.quote_style.is_none() => match category_of(word) {
            Some(KeywordCategory::Reserved | KeywordCategory::FunctionName) => {
                word.keyword == K::END || is_value_word(word.keyword) && word.keyword != K::DEFAULT
            }
            _ => !matches!(
                word.keyword,
                K::BY | K::SET | K::UPDATE | K::BETWEEN | K::ESCAPE | K::ZONE | K::VALUES
            ),
        },
        Token::Word(_)
        | Token::Number(..)
        | Token::SingleQuotedString(_)
        | Token::EscapedStringLiteral(_)
        | Token::DollarQuotedString(_)
        | Token::Placeholder(_)
        | Token::RParen
        | Token::RBracket
        | Token::Mul => true,
        _ => false,
    }
}
