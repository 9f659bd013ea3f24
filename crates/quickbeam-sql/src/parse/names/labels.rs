//! Names without AS: labels in select lists and aliases in FROM.

use std::sync::LazyLock;

use sqlparser::keywords::{ALL_KEYWORDS_INDEX, Keyword};
use sqlparser::tokenizer::Token;

use crate::keywords::keywords;
use crate::parse::token_edits::keyword_of;

/// Whether a word of the parser crate is a label without AS.
static LABELS: LazyLock<Vec<bool>> = LazyLock::new(|| {
    let length = ALL_KEYWORDS_INDEX.iter().map(|keyword| *keyword as usize + 1).max();
    let mut labels = vec![true; length.unwrap_or_default()];
    for keyword in ALL_KEYWORDS_INDEX {
        let word = format!("{keyword:?}").to_lowercase();
        let known = keywords().binary_search_by(|known| known.word.cmp(&word));
        let known = known.ok().and_then(|at| keywords().get(at));
        if let Some(place) = labels.get_mut(*keyword as usize) {
            *place = known.is_none_or(|known| known.is_label);
        }
    }
    labels
});

/// Returns whether a key word is a label without AS; `None` if the word is no key word.
pub(super) fn is_label(keyword: Keyword) -> Option<bool> {
    if keyword == Keyword::NoKeyword {
        return None;
    }
    LABELS.get(keyword as usize).copied()
}

/// Returns whether a label can be the last one before that token.
pub(super) fn ends_label(next: &Token) -> bool {
    match next {
        Token::EOF | Token::Comma | Token::RParen | Token::SemiColon => true,
        _ => begins_clause(keyword_of(next)),
    }
}

/// Returns whether a word begins a clause of a query after the select list.
pub(super) fn begins_clause(keyword: Keyword) -> bool {
    use Keyword as K;
    matches!(
        keyword,
        K::FROM
            | K::WHERE
            | K::GROUP
            | K::HAVING
            | K::ORDER
            | K::LIMIT
            | K::OFFSET
            | K::FETCH
            | K::UNION
            | K::EXCEPT
            | K::INTERSECT
    )
}

/// Returns whether an alias can be the last word before that token.
pub(super) fn ends_alias(next: &Token) -> bool {
    use Keyword as K;
    ends_label(next)
        || matches!(
            keyword_of(next),
            K::JOIN
                | K::INNER
                | K::LEFT
                | K::RIGHT
                | K::FULL
                | K::CROSS
                | K::NATURAL
                | K::ON
                | K::USING
                | K::SET
                | K::RETURNING
        )
}

/// Returns whether a word goes on with what is before it, as the last one of a type or operator.
pub(super) fn goes_on(keyword: Keyword, before: Option<&Token>, before_that: Keyword) -> bool {
    use Keyword as K;
    let before_it = before.map_or(K::NoKeyword, keyword_of);
    match keyword {
        K::ZONE => before_it == K::TIME,
        K::PRECISION => before_it == K::DOUBLE,
        K::VARYING => {
            matches!(before_it, K::CHARACTER | K::CHAR | K::NCHAR | K::BIT)
        }
        K::CHARACTER | K::CHAR => before_it == K::NATIONAL,
        K::YEAR | K::MONTH | K::DAY | K::HOUR | K::MINUTE | K::SECOND => {
            before_it == K::INTERVAL || before_that == K::INTERVAL || before == Some(&Token::RParen)
        }
        K::NORMALIZED => matches!(before_it, K::NFC | K::NFD | K::NFKC | K::NFKD),
        K::DATA => before_it == K::NO,
        K::LOCKED => before_it == K::SKIP,
        K::NOWAIT => true,
        K::ORDINALITY => before_it == K::WITH,
        _ => false,
    }
}

/// Returns whether a word that is no label goes on after an operand, or begins a clause.
pub(super) fn goes_on_after(keyword: Keyword) -> bool {
    use Keyword as K;
    begins_clause(keyword)
        || matches!(keyword, K::NOTNULL | K::WITHIN | K::AS | K::INTO | K::RETURNING | K::WITH)
}
