//! The shell's variables: `\set NAME VALUE`, and `:NAME`, `:'NAME'` and `:"NAME"` in statements.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::input::words::{comment, literal};

/// The variables by name.
#[derive(Default)]
pub struct Variables(BTreeMap<String, String>);

impl Variables {
    /// Sets a variable.
    pub fn set(&mut self, name: &str, value: String) {
        self.0.insert(name.to_owned(), value);
    }

    /// Removes a variable.
    pub fn unset(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Returns all variables, one per line.
    pub fn list(&self) -> String {
        self.0.iter().map(|(name, value)| format!("{name} = '{value}'\n")).collect()
    }

    /// Replaces the variables outside quotes and comments: `:name` by the value, `:'name'` by the
    /// value as a literal, `:"name"` by the value as a name. Unknown names and casts (`::`) stay.
    pub fn replace_in<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.0.is_empty() || !text.contains(':') {
            return Cow::Borrowed(text);
        }
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let (mut out, mut at) = (String::with_capacity(text.len()), 0);
        while let Some(first) = text[at..].chars().next() {
            let rest = &text[at..];
            let length = match first {
                ':' if rest.starts_with("::") => 2,
                ':' => {
                    if let Some((length, value)) = self.value_at(rest) {
                        out.push_str(&value);
                        at += length;
                        continue;
                    }
                    1
                }
                '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
                '/' if rest.starts_with("/*") => comment(rest),
                '\'' | '"' => literal(rest, first),
                '$' => dollar_quoted(rest),
                c if is_word(c) => rest.find(|c: char| !is_word(c)).unwrap_or(rest.len()),
                c => c.len_utf8(),
            };
            out.push_str(&rest[..length]);
            at += length;
        }
        Cow::Owned(out)
    }

    /// Returns the length of the reference at the start of the text, and what replaces it.
    fn value_at(&self, text: &str) -> Option<(usize, String)> {
        let quote = text[1..].chars().next().filter(|c| matches!(c, '\'' | '"'));
        let start = if quote.is_some() { 2 } else { 1 };
        let is_end = |c: char| !c.is_alphanumeric() && c != '_';
        let end = text[start..].find(is_end).map_or(text.len(), |end| start + end);
        let value = self.0.get(&text[start..end])?;
        match quote {
            None => Some((end, value.clone())),
            Some(quote) => {
                let doubled = value.replace(quote, &format!("{quote}{quote}"));
                let closed = text[end..].starts_with(quote);
                closed.then(|| (end + 1, format!("{quote}{doubled}{quote}")))
            }
        }
    }
}

/// Returns the length of the text `$tag$…$tag$`, or 1 if the dollar sign begins none.
fn dollar_quoted(text: &str) -> usize {
    let Some(end) = text[1..].find('$').map(|end| end + 2) else { return 1 };
    let tag = &text[..end];
    if !tag[1..end - 1].chars().all(|c| c.is_alphanumeric() || c == '_') {
        return 1;
    }
    text[end..].find(tag).map_or(text.len(), |at| end + at + tag.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_replaced_outside_quotes() {
        let mut variables = Variables::default();
        assert_eq!(variables.replace_in("SELECT :a"), "SELECT :a");
        variables.set("a", "it's".to_owned());
        variables.set("n_1", "5".to_owned());
        let cases = [
            ("SELECT :n_1, :'a', :\"a\"", "SELECT 5, 'it''s', \"it's\""),
            (
                "SELECT ':n_1', \":n_1\", $$:n_1$$, $x$ :n_1 $x$",
                "SELECT ':n_1', \":n_1\", $$:n_1$$, $x$ :n_1 $x$",
            ),
            (
                "SELECT 1::int4, a[1:n], :b -- :n_1\n/* :a */",
                "SELECT 1::int4, a[1:n], :b -- :n_1\n/* :a */",
            ),
            ("SELECT $1 + :n_1", "SELECT $1 + 5"),
            ("SELECT :'n_1", "SELECT :'n_1"),
        ];
        for (text, expected) in cases {
            assert_eq!(variables.replace_in(text), expected);
        }
        variables.unset("a");
        assert_eq!(variables.list(), "n_1 = '5'\n");
    }
}
