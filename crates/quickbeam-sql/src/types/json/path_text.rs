//! The text of a jsonpath, as PostgreSQL writes values of the type.

use std::fmt::{self, Display, Formatter};

use super::path_syntax::{Accessor, JsonPath, Node, PathComparison};
use super::write_string;

/// Whether an operator is written within parentheses.
#[derive(Clone, Copy, PartialEq)]
enum Enclosure {
    With,
    Without,
}

impl PathComparison {
    fn symbol(self) -> &'static str {
        match self {
            PathComparison::Equal => "==",
            PathComparison::NotEqual => "!=",
            PathComparison::Less => "<",
            PathComparison::LessOrEqual => "<=",
            PathComparison::Greater => ">",
            PathComparison::GreaterOrEqual => ">=",
        }
    }
}

impl Node {
    /// Returns how strongly the operator binds, by the first part of a chain of accessors.
    fn priority(&self) -> u8 {
        match self {
            Node::Or(_) => 0,
            Node::And(_) => 1,
            Node::Compare(..) | Node::StartsWith(_) => 2,
            Node::Binary('+' | '-', _) => 3,
            Node::Binary(..) => 4,
            Node::Sign(..) => 5,
            Node::Access(inner, _) => inner.priority(),
            _ => 6,
        }
    }

    /// Writes an operand of an operator.
    fn write_operand(&self, f: &mut Formatter<'_>, operator: &Node) -> fmt::Result {
        let is_weaker = self.priority() <= operator.priority();
        self.write(f, if is_weaker { Enclosure::With } else { Enclosure::Without })
    }

    fn write(&self, f: &mut Formatter<'_>, parentheses: Enclosure) -> fmt::Result {
        let is_enclosed = parentheses == Enclosure::With;
        let (open, close) = if is_enclosed { ("(", ")") } else { ("", "") };
        let infix = |f: &mut Formatter<'_>, sides: &[Node; 2], operator: &str| {
            f.write_str(open)?;
            sides[0].write_operand(f, self)?;
            write!(f, " {operator} ")?;
            sides[1].write_operand(f, self)?;
            f.write_str(close)
        };
        match self {
            Node::Root => f.write_str("$"),
            Node::Current => f.write_str("@"),
            Node::Last => f.write_str("last"),
            Node::Variable(name) => {
                f.write_str("$")?;
                write_quoted(f, name)
            }
            Node::Null => f.write_str("null"),
            Node::Boolean(truth) => write!(f, "{truth}"),
            Node::Number(number) => number.fmt(f),
            Node::String(text) => write_quoted(f, text),
            Node::Binary(operator, sides) => infix(f, sides, operator.encode_utf8(&mut [0; 4])),
            Node::Compare(comparison, sides) => infix(f, sides, comparison.symbol()),
            Node::And(sides) => infix(f, sides, "&&"),
            Node::Or(sides) => infix(f, sides, "||"),
            Node::StartsWith(sides) => infix(f, sides, "starts with"),
            Node::Sign(sign, inner) => {
                write!(f, "{open}{sign}")?;
                inner.write_operand(f, self)?;
                f.write_str(close)
            }
            Node::Not(inner) => {
                f.write_str("!(")?;
                inner.write(f, Enclosure::Without)?;
                f.write_str(")")
            }
            Node::IsUnknown(inner) => {
                f.write_str("(")?;
                inner.write(f, Enclosure::Without)?;
                f.write_str(") is unknown")
            }
            Node::Exists(inner) => {
                f.write_str("exists (")?;
                inner.write(f, Enclosure::Without)?;
                f.write_str(")")
            }
            Node::LikeRegex(inner, regex) => {
                f.write_str(open)?;
                inner.write_operand(f, self)?;
                f.write_str(" like_regex ")?;
                write_quoted(f, &regex.pattern)?;
                let flags: String =
                    "ismxq".chars().filter(|flag| regex.flags.contains(*flag)).collect();
                if !flags.is_empty() {
                    write!(f, " flag \"{flags}\"")?;
                }
                f.write_str(close)
            }
            Node::Access(inner, accessor) => {
                // The first part of a chain decides whether it has parentheses.
                match &**inner {
                    Node::Number(number) => write!(f, "({number})")?,
                    inner => inner.write(f, parentheses)?,
                }
                accessor.write(f)
            }
        }
    }
}

impl Accessor {
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        const LAST: u32 = u32::MAX;
        match self {
            Accessor::Key(name) => {
                f.write_str(".")?;
                write_quoted(f, name)
            }
            Accessor::AnyKey => f.write_str(".*"),
            Accessor::AnyElement => f.write_str("[*]"),
            Accessor::AnyLevel(0, LAST) => f.write_str(".**"),
            Accessor::AnyLevel(LAST, LAST) => f.write_str(".**{last}"),
            Accessor::AnyLevel(first, last) if first == last => write!(f, ".**{{{first}}}"),
            Accessor::AnyLevel(LAST, last) => write!(f, ".**{{last to {last}}}"),
            Accessor::AnyLevel(first, LAST) => write!(f, ".**{{{first} to last}}"),
            Accessor::AnyLevel(first, last) => write!(f, ".**{{{first} to {last}}}"),
            Accessor::Subscripts(list) => {
                for (at, (first, last)) in list.iter().enumerate() {
                    f.write_str(if at == 0 { "[" } else { "," })?;
                    first.write(f, Enclosure::Without)?;
                    if let Some(last) = last {
                        f.write_str(" to ")?;
                        last.write(f, Enclosure::Without)?;
                    }
                }
                f.write_str("]")
            }
            Accessor::Filter(condition) => {
                f.write_str("?(")?;
                condition.write(f, Enclosure::Without)?;
                f.write_str(")")
            }
            Accessor::ItemMethod(method) => write!(f, ".{}()", method.name()),
            Accessor::Datetime(template) => {
                let mut text = String::new();
                if let Some(template) = template {
                    write_string(&mut text, template);
                }
                write!(f, ".datetime({text})")
            }
        }
    }
}

impl Display for JsonPath {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_strict { "strict " } else { "" })?;
        self.root.write(f, Enclosure::With)
    }
}

fn write_quoted(f: &mut Formatter<'_>, text: &str) -> fmt::Result {
    let mut out = String::with_capacity(text.len() + 2);
    write_string(&mut out, text);
    f.write_str(&out)
}
