//! The syntax of jsonpath.
//!
//! - PATH-1: `@` stands only inside a filter and `last` only inside a subscript; anything else is a
//!   syntax error, as in PostgreSQL.
//! - PATH-2: a path has at most [`MAX_PARTS`] operators, accessors and parentheses. So none of them
//!   exhausts the stack, neither here nor when it is evaluated.

use quickbeam::{CHECKS_INVARIANTS, invariant};

use crate::error::{Result, SqlError, SqlState};
use crate::types::Decimal;

/// Maximum number of operators, accessors and parentheses of a path.
const MAX_PARTS: usize = 150;

/// A parsed path.
pub(crate) struct JsonPath {
    pub is_strict: bool,
    pub root: Node,
}

/// A comparison operator.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum PathComparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// An item method.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum ItemMethod {
    Type,
    Size,
    Double,
    Abs,
    Floor,
    Ceiling,
    KeyValue,
}

impl ItemMethod {
    pub fn name(self) -> &'static str {
        match self {
            ItemMethod::Type => "type",
            ItemMethod::Size => "size",
            ItemMethod::Double => "double",
            ItemMethod::Abs => "abs",
            ItemMethod::Floor => "floor",
            ItemMethod::Ceiling => "ceiling",
            ItemMethod::KeyValue => "keyvalue",
        }
    }
}

/// A regular expression of `like_regex`.
#[derive(Debug, PartialEq)]
pub(crate) struct PathRegex {
    pub pattern: String,
    pub flags: String,
}

/// A part of a path.
pub(crate) enum Node {
    /// `$`
    Root,
    /// `@`
    Current,
    Last,
    Variable(String),
    Null,
    Boolean(bool),
    Number(Decimal),
    String(String),
    /// `+ - * / %`
    Binary(char, Box<[Node; 2]>),
    /// `+ -`
    Sign(char, Box<Node>),
    Compare(PathComparison, Box<[Node; 2]>),
    And(Box<[Node; 2]>),
    Or(Box<[Node; 2]>),
    Not(Box<Node>),
    IsUnknown(Box<Node>),
    Exists(Box<Node>),
    StartsWith(Box<[Node; 2]>),
    LikeRegex(Box<Node>, PathRegex),
    Access(Box<Node>, Accessor),
}

impl Node {
    /// Returns whether the node is a predicate, whose result is true, false or unknown.
    pub fn is_predicate(&self) -> bool {
        matches!(
            self,
            Node::Compare(..)
                | Node::And(_)
                | Node::Or(_)
                | Node::Not(_)
                | Node::IsUnknown(_)
                | Node::Exists(_)
                | Node::StartsWith(_)
                | Node::LikeRegex(..)
        )
    }
}

/// What a part of a path stands within.
#[derive(Clone, Copy, Default)]
struct Enclosed {
    in_filter: bool,
    in_subscript: bool,
}

impl Node {
    /// Returns the depth of the tree, or `None` if `@` is outside of filters or `last` outside of
    /// subscripts.
    fn depth(&self, place: Enclosed) -> Option<usize> {
        let mut below = Vec::new();
        match self {
            Node::Current => return place.in_filter.then_some(1),
            Node::Last => return place.in_subscript.then_some(1),
            Node::Root
            | Node::Variable(_)
            | Node::Null
            | Node::Boolean(_)
            | Node::Number(_)
            | Node::String(_) => {}
            Node::Binary(_, sides)
            | Node::Compare(_, sides)
            | Node::And(sides)
            | Node::Or(sides)
            | Node::StartsWith(sides) => below.extend(sides.iter().map(|side| (side, place))),
            Node::Sign(_, inner)
            | Node::Not(inner)
            | Node::IsUnknown(inner)
            | Node::Exists(inner)
            | Node::LikeRegex(inner, _) => below.push((inner, place)),
            Node::Access(inner, accessor) => {
                below.push((inner, place));
                match accessor {
                    Accessor::Filter(condition) => {
                        below.push((condition, Enclosed { in_filter: true, ..place }));
                    }
                    Accessor::Subscripts(list) => {
                        let inside = Enclosed { in_subscript: true, ..place };
                        let nodes = list.iter().flat_map(|(from, to)| [Some(from), to.as_ref()]);
                        below.extend(nodes.flatten().map(|node| (node, inside)));
                    }
                    _ => {}
                }
            }
        }
        let mut deepest = 0;
        for (node, place) in below {
            deepest = deepest.max(node.depth(place)?);
        }
        Some(deepest + 1)
    }
}

/// An accessor.
pub(crate) enum Accessor {
    Key(String),
    /// `.*`
    AnyKey,
    /// `.**`, with the first and last level
    AnyLevel(u32, u32),
    /// `[*]`
    AnyElement,
    Subscripts(Vec<(Node, Option<Node>)>),
    Filter(Box<Node>),
    ItemMethod(ItemMethod),
    /// `.datetime()`, with a template.
    Datetime(Option<String>),
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    Quoted(String),
    Number(String),
    Variable(String),
    Symbol(&'static str),
    End,
}

const SYMBOLS: [&str; 26] = [
    "**", "==", "!=", "<>", "<=", ">=", "&&", "||", "$", "@", ".", "[", "]", "(", ")", "{", "}",
    "*", "?", "!", "<", ">", "+", "-", "/", "%",
];

struct PathParser {
    tokens: Vec<Token>,
    at: usize,
    parts: usize,
    in_filter: usize,
    in_subscript: usize,
}

#[cold]
fn syntax(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::SyntaxError, message.into())
}

fn is_word(character: char) -> bool {
    !character.is_whitespace() && !"?%$.[]{}()|&!=<>@#,*:-+/\\\"".contains(character)
}

/// Reads a quoted string after its first quote; returns it and the bytes that it takes.
fn quoted(text: &str) -> Result<(String, usize)> {
    let (mut read, mut rest) = (String::new(), text);
    loop {
        let mut characters = rest.chars();
        match characters.next() {
            None => return Err(syntax("unterminated quoted string at end of jsonpath input")),
            Some('"') => return Ok((read, text.len() - characters.as_str().len())),
            Some('\\') => rest = escape(characters.as_str(), &mut read)?,
            Some(other) => {
                read.push(other);
                rest = characters.as_str();
            }
        }
    }
}

#[cold]
fn bad_escape(detail: &str) -> SqlError {
    let message = "invalid input syntax for type jsonpath";
    SqlError::new(SqlState::InvalidTextRepresentation, message).with_detail(detail)
}

/// Reads an escape after its backslash, appends the character, and returns the rest.
fn escape<'t>(text: &'t str, out: &mut String) -> Result<&'t str> {
    let mut characters = text.chars();
    let first = characters.next().ok_or_else(|| syntax("unexpected end after backslash"))?;
    let rest = characters.as_str();
    let plain = match first {
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        'x' | 'u' => return coded(text, out),
        other => other,
    };
    out.push(plain);
    Ok(rest)
}

/// Reads the digits of an escape that begins with `x` or `u`.
fn coded<'t>(text: &'t str, out: &mut String) -> Result<&'t str> {
    let (code, rest) = code_of(text)?;
    let (code, rest) = match code {
        0xd800..=0xdbff => {
            let fault = || bad_escape("Unicode low surrogate must follow a high surrogate.");
            let next = rest.strip_prefix('\\').filter(|it| it.starts_with('u'));
            let (low, rest) = code_of(next.ok_or_else(fault)?)?;
            if (0xd800..=0xdbff).contains(&low) {
                let detail = "Unicode high surrogate must not follow a high surrogate.";
                return Err(bad_escape(detail));
            }
            if !(0xdc00..=0xdfff).contains(&low) {
                return Err(fault());
            }
            (0x1_0000 + ((code - 0xd800) << 10) + (low - 0xdc00), rest)
        }
        0xdc00..=0xdfff => {
            return Err(bad_escape("Unicode low surrogate must follow a high surrogate."));
        }
        0 => {
            let message = "unsupported Unicode escape sequence";
            return Err(SqlError::new(SqlState::UntranslatableCharacter, message)
                .with_detail("\\u0000 cannot be converted to text."));
        }
        code => (code, rest),
    };
    let fault = || syntax("invalid Unicode escape sequence at or near jsonpath input");
    out.push(char::from_u32(code).ok_or_else(fault)?);
    Ok(rest)
}

/// Reads `xHH`, `uHHHH` or `u{H…}`; returns the number and the rest.
fn code_of(text: &str) -> Result<(u32, &str)> {
    let fault = || {
        let what = if text.starts_with('x') { "hexadecimal character" } else { "Unicode escape" };
        syntax(format!("invalid {what} sequence of jsonpath input"))
    };
    let (digits, rest) = match (text.as_bytes().first(), text.get(1..)) {
        (Some(b'x'), Some(after)) => after.split_at_checked(2).ok_or_else(fault)?,
        (_, Some(after)) => match after.strip_prefix('{') {
            Some(inside) => {
                let (digits, rest) = inside.split_once('}').ok_or_else(fault)?;
                (Some(digits).filter(|digits| digits.len() <= 6).ok_or_else(fault)?, rest)
            }
            None => after.split_at_checked(4).ok_or_else(fault)?,
        },
        _ => return Err(fault()),
    };
    let is_hexadecimal = !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_hexdigit());
    let code = u32::from_str_radix(digits, 16).ok().filter(|_| is_hexadecimal);
    Ok((code.ok_or_else(fault)?, rest))
}

/// Reads a name without quotes, which may have escapes; returns it and the bytes that it takes.
fn name(text: &str) -> Result<(String, usize)> {
    let (mut read, mut rest) = (String::new(), text);
    loop {
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        read.push_str(&rest[..end]);
        rest = &rest[end..];
        match rest.strip_prefix('\\') {
            Some(after) => rest = escape(after, &mut read)?,
            None => return Ok((read, text.len() - rest.len())),
        }
    }
}

fn tokens(text: &str) -> Result<Vec<Token>> {
    let (mut tokens, mut rest) = (Vec::new(), text);
    loop {
        rest = rest.trim_start();
        let Some(first) = rest.chars().next() else { break };
        let next = rest[first.len_utf8()..].chars().next();
        let is_number =
            first.is_ascii_digit() || first == '.' && next.is_some_and(|c| c.is_ascii_digit());
        if is_number {
            let digits = |from: usize| {
                let count = rest[from..].bytes().take_while(u8::is_ascii_digit).count();
                from + count
            };
            let mut end = digits(0);
            if rest[end..].starts_with('.') {
                end = digits(end + 1);
            }
            if let Some(exponent) = rest[end..].strip_prefix(['e', 'E']) {
                let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
                let count = digits.bytes().take_while(u8::is_ascii_digit).count();
                if count > 0 {
                    end += 1 + (exponent.len() - digits.len()) + count;
                }
            }
            let number = &rest[..end];
            rest = &rest[end..];
            if let Some(junk) = rest.chars().next().filter(|next| is_word(*next)) {
                return Err(syntax(format!(
                    "trailing junk after numeric literal at or near \"{number}{junk}\" of jsonpath input"
                )));
            }
            tokens.push(Token::Number(number.to_owned()));
        } else if first == '"' {
            let (string, length) = quoted(&rest[1..])?;
            tokens.push(Token::Quoted(string));
            rest = &rest[1 + length..];
        } else if first == '$' && next == Some('"') {
            let (string, length) = quoted(&rest[2..])?;
            tokens.push(Token::Variable(string));
            rest = &rest[2 + length..];
        } else if first == '$' && next.is_some_and(is_word) {
            let end = rest[1..].find(|c| !is_word(c)).map_or(rest.len(), |end| end + 1);
            tokens.push(Token::Variable(rest[1..end].to_owned()));
            rest = &rest[end..];
        } else if first == ',' {
            tokens.push(Token::Symbol(","));
            rest = &rest[1..];
        } else if let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            tokens.push(Token::Symbol(symbol));
            rest = &rest[symbol.len()..];
        } else if is_word(first) || first == '\\' {
            let (word, length) = name(rest)?;
            tokens.push(Token::Word(word));
            rest = &rest[length..];
        } else {
            return Err(syntax(format!("syntax error at or near \"{first}\" of jsonpath input")));
        }
    }
    tokens.push(Token::End);
    Ok(tokens)
}

impl JsonPath {
    pub fn parse(text: &str) -> Result<JsonPath> {
        if text.trim().is_empty() {
            let message = format!("invalid input syntax for type jsonpath: \"{text}\"");
            return Err(SqlError::new(SqlState::InvalidTextRepresentation, message));
        }
        let tokens = tokens(text)?;
        let mut parser = PathParser { tokens, at: 0, parts: 0, in_filter: 0, in_subscript: 0 };
        let is_strict = parser.accept_word("strict");
        if !is_strict {
            parser.accept_word("lax");
        }
        let root = parser.disjunction()?;
        if parser.peek() != &Token::End {
            return Err(parser.fault());
        }
        if CHECKS_INVARIANTS {
            let depth = root.depth(Enclosed::default());
            invariant!(PATH_1, depth.is_some(), "`@` or `last` stands where it means nothing");
            invariant!(
                PATH_2,
                depth.is_none_or(|depth| depth <= 2 * MAX_PARTS),
                "{depth:?} levels"
            );
        }
        Ok(JsonPath { is_strict, root })
    }
}

impl PathParser {
    fn peek(&self) -> &Token {
        self.tokens.get(self.at).unwrap_or(&Token::End)
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    #[cold]
    fn fault(&self) -> SqlError {
        match self.peek() {
            Token::End => syntax("syntax error at end of jsonpath input"),
            Token::Symbol(symbol) => {
                syntax(format!("syntax error at or near \"{symbol}\" of jsonpath input"))
            }
            Token::Word(word)
            | Token::Quoted(word)
            | Token::Number(word)
            | Token::Variable(word) => {
                syntax(format!("syntax error at or near \"{word}\" of jsonpath input"))
            }
        }
    }

    fn accept(&mut self, symbol: &str) -> bool {
        let found = matches!(self.peek(), Token::Symbol(known) if *known == symbol);
        self.at += usize::from(found);
        found
    }

    fn accept_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Token::Word(known) if known == word);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: &str) -> Result<()> {
        if self.accept(symbol) { Ok(()) } else { Err(self.fault()) }
    }

    /// Counts a part of the path.
    fn count(&mut self) -> Result<()> {
        self.parts += 1;
        if self.parts <= MAX_PARTS {
            return Ok(());
        }
        let message = format!("a jsonpath has more than {MAX_PARTS} operators and accessors");
        Err(SqlError::new(SqlState::StatementTooComplex, message))
    }

    fn disjunction(&mut self) -> Result<Node> {
        self.count()?;
        let mut left = self.conjunction()?;
        while self.accept("||") {
            self.count()?;
            left = Node::Or(Box::new([left, self.conjunction()?]));
        }
        Ok(left)
    }

    fn conjunction(&mut self) -> Result<Node> {
        let mut left = self.predicate()?;
        while self.accept("&&") {
            self.count()?;
            left = Node::And(Box::new([left, self.predicate()?]));
        }
        Ok(left)
    }

    fn predicate(&mut self) -> Result<Node> {
        if self.accept("!") {
            if !self.accept("(") {
                return match self.peek() {
                    Token::Word(word) if word == "exists" => {
                        Ok(Node::Not(Box::new(self.primary()?)))
                    }
                    _ => Err(self.fault()),
                };
            }
            let inner = self.disjunction()?;
            self.expect(")")?;
            return Ok(Node::Not(Box::new(inner)));
        }
        let left = self.sum()?;
        let comparison = match self.peek() {
            Token::Symbol("==") => PathComparison::Equal,
            Token::Symbol("!=" | "<>") => PathComparison::NotEqual,
            Token::Symbol("<") => PathComparison::Less,
            Token::Symbol("<=") => PathComparison::LessOrEqual,
            Token::Symbol(">") => PathComparison::Greater,
            Token::Symbol(">=") => PathComparison::GreaterOrEqual,
            Token::Word(word) => match &word.clone()[..] {
                "starts" => {
                    self.at += 1;
                    if !self.accept_word("with") {
                        return Err(self.fault());
                    }
                    let start = match self.next() {
                        Token::Quoted(text) => Node::String(text),
                        Token::Variable(name) => Node::Variable(name),
                        _ => return Err(self.fault()),
                    };
                    return Ok(Node::StartsWith(Box::new([left, start])));
                }
                "like_regex" => {
                    self.at += 1;
                    let regex = self.regex()?;
                    return Ok(Node::LikeRegex(Box::new(left), regex));
                }
                "is" if left.is_predicate() => {
                    self.at += 1;
                    if !self.accept_word("unknown") {
                        return Err(self.fault());
                    }
                    return Ok(Node::IsUnknown(Box::new(left)));
                }
                _ => return Err(self.fault()),
            },
            _ => return Ok(left),
        };
        self.at += 1;
        Ok(Node::Compare(comparison, Box::new([left, self.sum()?])))
    }

    fn regex(&mut self) -> Result<PathRegex> {
        let Token::Quoted(pattern) = self.next() else { return Err(self.fault()) };
        let mut flags = String::new();
        if self.accept_word("flag") {
            let Token::Quoted(given) = self.next() else { return Err(self.fault()) };
            flags = given;
        }
        if let Some(other) = flags.chars().find(|flag| !"ismxq".contains(*flag)) {
            return Err(syntax(format!(
                "unrecognized flag character \"{other}\" in LIKE_REGEX predicate"
            )));
        }
        if flags.contains('x') && !flags.contains('q') {
            let message = "XQuery \"x\" flag (expanded regular expressions) is not implemented";
            return Err(SqlError::new(SqlState::FeatureNotSupported, message));
        }
        Ok(PathRegex { pattern, flags })
    }

    fn sum(&mut self) -> Result<Node> {
        let mut left = self.product()?;
        loop {
            let operator = match self.peek() {
                Token::Symbol("+") => '+',
                Token::Symbol("-") => '-',
                _ => return Ok(left),
            };
            self.at += 1;
            self.count()?;
            left = Node::Binary(operator, Box::new([left, self.product()?]));
        }
    }

    fn product(&mut self) -> Result<Node> {
        let mut left = self.signed()?;
        loop {
            let operator = match self.peek() {
                Token::Symbol("*") => '*',
                Token::Symbol("/") => '/',
                Token::Symbol("%") => '%',
                _ => return Ok(left),
            };
            self.at += 1;
            self.count()?;
            left = Node::Binary(operator, Box::new([left, self.signed()?]));
        }
    }

    fn signed(&mut self) -> Result<Node> {
        let mut signs = Vec::new();
        loop {
            match self.peek() {
                Token::Symbol("+") => signs.push('+'),
                Token::Symbol("-") => signs.push('-'),
                _ => break,
            }
            self.at += 1;
            self.count()?;
        }
        let mut node = self.accessors()?;
        while let Some(sign) = signs.pop() {
            node = match node {
                Node::Number(number) if sign == '-' => Node::Number(number.negate()),
                number @ Node::Number(_) => number,
                node => Node::Sign(sign, Box::new(node)),
            };
        }
        Ok(node)
    }

    fn accessors(&mut self) -> Result<Node> {
        let mut node = self.primary()?;
        while let Some(step) = self.step()? {
            self.count()?;
            node = Node::Access(Box::new(node), step);
        }
        Ok(node)
    }

    fn primary(&mut self) -> Result<Node> {
        let token = self.next();
        Ok(match token {
            Token::Symbol("$") => Node::Root,
            Token::Symbol("@") if self.in_filter > 0 => Node::Current,
            Token::Symbol("@") => return Err(syntax("@ is not allowed in root expressions")),
            Token::Symbol("(") => {
                let inner = self.disjunction()?;
                self.expect(")")?;
                inner
            }
            Token::Variable(name) => Node::Variable(name),
            Token::Quoted(text) => Node::String(text),
            Token::Number(text) => {
                let fault = || {
                    syntax(format!(
                        "trailing junk after numeric literal at or near \"{text}\" of jsonpath input"
                    ))
                };
                Node::Number(Decimal::parse(&text).and_then(Result::ok).ok_or_else(fault)?)
            }
            Token::Word(word) => match &word[..] {
                "true" => Node::Boolean(true),
                "false" => Node::Boolean(false),
                "null" => Node::Null,
                "last" if self.in_subscript > 0 => Node::Last,
                "last" => return Err(syntax("LAST is allowed only in array subscripts")),
                "exists" => {
                    self.expect("(")?;
                    let inner = self.disjunction()?;
                    self.expect(")")?;
                    Node::Exists(Box::new(inner))
                }
                _ => {
                    self.at -= 1;
                    return Err(self.fault());
                }
            },
            _ => {
                self.at -= 1;
                return Err(self.fault());
            }
        })
    }

    fn step(&mut self) -> Result<Option<Accessor>> {
        if self.accept("?") {
            self.expect("(")?;
            self.in_filter += 1;
            let condition = self.disjunction()?;
            self.in_filter -= 1;
            self.expect(")")?;
            if !condition.is_predicate() {
                return Err(self.fault());
            }
            return Ok(Some(Accessor::Filter(Box::new(condition))));
        }
        if self.accept("[") {
            let step = if self.accept("*") { Accessor::AnyElement } else { self.subscripts()? };
            self.expect("]")?;
            return Ok(Some(step));
        }
        if !self.accept(".") {
            return Ok(None);
        }
        Ok(Some(match self.next() {
            Token::Symbol("*") => Accessor::AnyKey,
            Token::Symbol("**") => self.levels()?,
            Token::Quoted(name) => Accessor::Key(name),
            Token::Variable(name) => Accessor::Key(format!("${name}")),
            Token::Word(name) if self.accept("(") => {
                let method = match &name[..] {
                    "type" => ItemMethod::Type,
                    "size" => ItemMethod::Size,
                    "double" => ItemMethod::Double,
                    "abs" => ItemMethod::Abs,
                    "floor" => ItemMethod::Floor,
                    "ceiling" => ItemMethod::Ceiling,
                    "keyvalue" => ItemMethod::KeyValue,
                    "datetime" => {
                        let template = match self.next() {
                            Token::Quoted(template) => Some(template),
                            _ => {
                                self.at -= 1;
                                None
                            }
                        };
                        self.expect(")")?;
                        return Ok(Some(Accessor::Datetime(template)));
                    }
                    _ => return Err(self.fault()),
                };
                self.expect(")")?;
                Accessor::ItemMethod(method)
            }
            Token::Word(name) => Accessor::Key(name),
            _ => {
                self.at -= 1;
                return Err(self.fault());
            }
        }))
    }

    fn subscripts(&mut self) -> Result<Accessor> {
        self.count()?;
        self.in_subscript += 1;
        let mut list = Vec::new();
        loop {
            let first = self.sum()?;
            let last = if self.accept_word("to") { Some(self.sum()?) } else { None };
            list.push((first, last));
            if !self.accept(",") {
                break;
            }
        }
        self.in_subscript -= 1;
        Ok(Accessor::Subscripts(list))
    }

    fn levels(&mut self) -> Result<Accessor> {
        if !self.accept("{") {
            return Ok(Accessor::AnyLevel(0, u32::MAX));
        }
        let mut level = || match self.next() {
            Token::Number(text) => text.parse().map_err(|_| self.fault()),
            Token::Word(word) if word == "last" => Ok(u32::MAX),
            _ => Err(self.fault()),
        };
        let first = level()?;
        let last = if self.accept_word("to") {
            match self.next() {
                Token::Number(text) => text.parse().map_err(|_| self.fault())?,
                Token::Word(word) if word == "last" => u32::MAX,
                _ => return Err(self.fault()),
            }
        } else {
            first
        };
        self.expect("}")?;
        Ok(Accessor::AnyLevel(first, last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_or_deep_path_is_refused() {
        for path in [
            "!".repeat(100_000),
            format!("${}", "+1".repeat(100_000)),
            format!("${}", ".a".repeat(100_000)),
            format!("{}$", "-".repeat(100_000)),
            format!("{}$", "(".repeat(100_000)),
            format!("${}", "[$".repeat(100_000)),
            format!("$ ? (@ == 1{})", " && @ == 1".repeat(100_000)),
        ] {
            let code = JsonPath::parse(&path).err().map(|error| error.code().to_owned());
            assert!(matches!(code.as_deref(), Some("54001" | "42601")), "{}", &path[..20]);
        }
    }
}
