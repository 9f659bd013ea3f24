//! The parser of regular expressions.

use super::bracket::literal;
use super::lexer::{PatternLexer, PatternToken};
use super::options::{RegexGrammar, RegexOptions};
use super::pieces::{RegexAlternation, RegexAnchor, RegexAtom, RegexPiece, RegexQuantifier};
use super::{RANGES_LIMIT, invalid, too_complex};
use crate::error::{Result, SqlError};

/// Maximum bytes of an expression.
const LENGTH_LIMIT: usize = 1 << 20;
/// Maximum depth of parentheses.
const DEPTH_LIMIT: usize = 200;

/// A parsed expression.
pub(in crate::expression::regex) struct ParsedRegex {
    pub tree: RegexAlternation,
    /// Groups that capture.
    pub groups: usize,
    pub ignores_case: bool,
}

/// Parses a regular expression.
pub(in crate::expression::regex) fn parse(
    pattern: &str,
    options: RegexOptions,
) -> Result<ParsedRegex> {
    if pattern.len() > LENGTH_LIMIT {
        return Err(too_complex());
    }
    let mut lexer = PatternLexer::new(pattern, options)?;
    let token = lexer.next()?;
    let mut parser =
        PatternParser { lexer, token, closed: vec![true], depth: 0, in_lookaround: false };
    let tree = parser.alternation()?;
    Ok(ParsedRegex {
        tree,
        groups: parser.lexer.groups,
        ignores_case: parser.lexer.options.ignores_case,
    })
}

struct PatternParser {
    lexer: PatternLexer,
    token: PatternToken,
    /// Whether each group, and the whole expression as number 0, has been closed.
    closed: Vec<bool>,
    depth: usize,
    in_lookaround: bool,
}

fn unbalanced() -> SqlError {
    invalid("parentheses () not balanced")
}

impl PatternParser {
    fn advance(&mut self) -> Result<PatternToken> {
        let next = self.lexer.next()?;
        Ok(std::mem::replace(&mut self.token, next))
    }

    fn alternation(&mut self) -> Result<RegexAlternation> {
        let mut branches = vec![self.branch()?];
        while self.token == PatternToken::Bar {
            self.advance()?;
            branches.push(self.branch()?);
        }
        Ok(RegexAlternation { branches })
    }

    fn branch(&mut self) -> Result<Vec<RegexPiece>> {
        let mut pieces = Vec::new();
        loop {
            let ends = match self.token {
                PatternToken::Bar | PatternToken::End => true,
                PatternToken::Close => self.depth > 0,
                _ => false,
            };
            if ends {
                return Ok(pieces);
            }
            pieces.push(self.piece()?);
        }
    }

    fn anchor(&self) -> Option<RegexAnchor> {
        let by_lines = self.lexer.options.anchors_at_lines;
        Some(match self.token {
            PatternToken::Caret if by_lines => RegexAnchor::LineStart,
            PatternToken::Caret | PatternToken::TextStart => RegexAnchor::TextStart,
            PatternToken::Dollar if by_lines => RegexAnchor::LineEnd,
            PatternToken::Dollar | PatternToken::TextEnd => RegexAnchor::TextEnd,
            PatternToken::WordStart => RegexAnchor::WordStart,
            PatternToken::WordEnd => RegexAnchor::WordEnd,
            PatternToken::WordBoundary => RegexAnchor::WordBoundary,
            PatternToken::NoWordBoundary => RegexAnchor::NoWordBoundary,
            _ => return None,
        })
    }

    /// Parses an atom with its quantifier, or a constraint, which has none.
    fn piece(&mut self) -> Result<RegexPiece> {
        if let Some(anchor) = self.anchor() {
            self.advance()?;
            return Ok(RegexPiece::Anchor(anchor));
        }
        let atom = match self.token {
            PatternToken::Look(look) => {
                self.advance()?;
                let outer = std::mem::replace(&mut self.in_lookaround, true);
                let inner = self.nested()?;
                self.in_lookaround = outer;
                self.close()?;
                return Ok(RegexPiece::Look(look, inner));
            }
            PatternToken::Quantifier(_) => return Err(invalid("quantifier operand invalid")),
            PatternToken::Close if self.lexer.options.grammar != RegexGrammar::Extended => {
                return Err(unbalanced());
            }
            PatternToken::Open { captures } => {
                let number = (captures && !self.in_lookaround).then(|| {
                    self.lexer.groups += 1;
                    self.closed.push(false);
                    self.lexer.groups
                });
                self.advance()?;
                let inner = self.nested()?;
                self.close()?;
                if let Some(closed) = number.and_then(|number| self.closed.get_mut(number)) {
                    *closed = true;
                }
                RegexAtom::Group(number, inner)
            }
            PatternToken::BackReference(number) => {
                let is_closed = number > 0 && self.closed.get(number) == Some(&true);
                if self.in_lookaround || !is_closed {
                    return Err(invalid("invalid backreference number"));
                }
                self.advance()?;
                RegexAtom::BackReference(number)
            }
            _ => {
                let ignores_case = self.lexer.options.ignores_case;
                match self.advance()? {
                    PatternToken::Set(set) => {
                        self.lexer.ranges += set.ranges().len();
                        if self.lexer.ranges > RANGES_LIMIT {
                            return Err(too_complex());
                        }
                        RegexAtom::Set(set)
                    }
                    PatternToken::Character(character) => {
                        RegexAtom::Set(literal(character, ignores_case))
                    }
                    _ => RegexAtom::Set(literal(')', ignores_case)),
                }
            }
        };
        let mut quantifier = RegexQuantifier { least: 1, most: Some(1), prefers: None };
        if let PatternToken::Quantifier(given) = self.token {
            quantifier = given;
            self.advance()?;
        }
        Ok(RegexPiece::Atom(atom, quantifier))
    }

    fn nested(&mut self) -> Result<RegexAlternation> {
        self.depth += 1;
        if self.depth > DEPTH_LIMIT {
            return Err(too_complex());
        }
        let inner = self.alternation()?;
        self.depth -= 1;
        Ok(inner)
    }

    fn close(&mut self) -> Result<()> {
        if self.token != PatternToken::Close {
            return Err(unbalanced());
        }
        self.advance()?;
        Ok(())
    }
}
