//! Finds the end of a statement: the first `;` or backslash outside quotes and comments.
//!
//! Above: scripts and the line editor. The splitter scans each line once, so its cost is linear in
//! the length of the statement. It works on bytes: invalid UTF-8 neither ends a statement nor opens
//! a quote. A statement with such bytes is refused whole, and the next statement is still found.

/// Scans the text of statements in pieces. A piece ends at the end of a line or of the input.
#[derive(Default)]
pub struct Splitter {
    state: State,
    has_words: bool,
}

/// The end of a scanned statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The length of the statement's part, including its `;`.
    Semicolon(usize),
    /// The length of the text before the backslash of a shell command.
    Command(usize),
}

/// The lexical state between two bytes.
#[derive(Default)]
enum State {
    #[default]
    Plain,
    /// '…'; a backslash escapes if the literal began with E.
    Text { escapes: bool },
    /// "…"
    Name,
    /// $tag$…$tag$; the tag includes its dollar signs.
    Dollar(Vec<u8>),
    /// Nested block comments.
    Comment { depth: usize },
}

impl Splitter {
    /// Scans the next piece. Returns `None` if the statement continues after the piece. After a
    /// command, the statement may continue after the command's line.
    pub fn scan(&mut self, bytes: &[u8]) -> Option<End> {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            let rest = &bytes[at..];
            at += 1;
            match &mut self.state {
                State::Plain => match byte {
                    b';' => {
                        *self = Splitter::default();
                        return Some(End::Semicolon(at));
                    }
                    b'\\' => return Some(End::Command(at - 1)),
                    b'-' if rest.starts_with(b"--") => {
                        at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len()) - 1;
                    }
                    b'/' if rest.starts_with(b"/*") => {
                        self.state = State::Comment { depth: 1 };
                        at += 1;
                    }
                    byte if byte.is_ascii_whitespace() => {}
                    byte => {
                        self.has_words = true;
                        at += self.open(byte, &bytes[..at - 1], rest);
                    }
                },
                State::Text { escapes: true } if byte == b'\\' => at += 1,
                // A doubled quote closes and reopens the literal, which has the same effect.
                State::Text { .. } if byte == b'\'' => self.state = State::Plain,
                State::Name if byte == b'"' => self.state = State::Plain,
                State::Dollar(tag) if byte == b'$' && rest.starts_with(tag) => {
                    at += tag.len() - 1;
                    self.state = State::Plain;
                }
                State::Comment { depth } if rest.starts_with(b"/*") => {
                    *depth += 1;
                    at += 1;
                }
                State::Comment { depth } if rest.starts_with(b"*/") => {
                    *depth -= 1;
                    at += 1;
                    if *depth == 0 {
                        self.state = State::Plain;
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// Enters a quoted state if `byte` opens one. Returns the number of further bytes consumed.
    fn open(&mut self, byte: u8, before: &[u8], rest: &[u8]) -> usize {
        let in_word = |bytes: &[u8]| bytes.last().is_some_and(|byte| is_word(*byte));
        match byte {
            b'\'' => {
                let escapes = match before {
                    [earlier @ .., b'e' | b'E'] => !in_word(earlier),
                    _ => false,
                };
                self.state = State::Text { escapes };
                0
            }
            b'"' => {
                self.state = State::Name;
                0
            }
            b'$' if !in_word(before) => match dollar_tag(rest) {
                None => 0,
                Some(tag) => {
                    self.state = State::Dollar(tag.to_vec());
                    tag.len() - 1
                }
            },
            _ => 0,
        }
    }

    /// Returns the prompt's mark for the state, as in psql: `=` before a statement, `-` within one,
    /// and the delimiter within a quote or comment.
    pub fn mark(&self) -> char {
        match self.state {
            State::Plain if self.has_words => '-',
            State::Plain => '=',
            State::Text { .. } => '\'',
            State::Name => '"',
            State::Dollar(_) => '$',
            State::Comment { .. } => '*',
        }
    }

    /// Returns true if only white space and comments followed the last statement.
    pub fn is_blank(&self) -> bool {
        !self.has_words && matches!(self.state, State::Plain)
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Returns the `$$` or `$word$` at the start of the text.
fn dollar_tag(text: &[u8]) -> Option<&[u8]> {
    let end = 1 + text.get(1..)?.iter().position(|byte| *byte == b'$')?;
    let word = &text[1..end];
    let is_tag =
        word.iter().all(|byte| is_word(*byte)) && !word.first().is_some_and(u8::is_ascii_digit);
    is_tag.then(|| &text[..=end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> (Vec<&str>, bool) {
        let mut splitter = Splitter::default();
        let (mut found, mut start, mut from) = (Vec::new(), 0, 0);
        for line in text.split_inclusive('\n') {
            let line_end = from + line.len();
            while let Some(end) = splitter.scan(&text.as_bytes()[from..line_end]) {
                let End::Semicolon(length) = end else { panic!("{text}: {end:?}") };
                from += length;
                found.push(text[start..from].trim());
                start = from;
            }
            from = line_end;
        }
        (found, splitter.is_blank())
    }

    #[test]
    fn statements_end_at_semicolons_outside_quotes_and_comments() {
        let cases: [(&str, &[&str]); 9] = [
            ("a; b ;", &["a;", "b ;"]),
            ("'a;''b;' ; c;", &["'a;''b;' ;", "c;"]),
            ("\"a;\"\"b;\"; c;", &["\"a;\"\"b;\";", "c;"]),
            (r"E'\';' ; 'e\'; x;", &[r"E'\';' ;", r"'e\';", "x;"]),
            ("a -- b;\n; c;", &["a -- b;\n;", "c;"]),
            ("a /* ; /* ; */ ; \n */ ; c;", &["a /* ; /* ; */ ; \n */ ;", "c;"]),
            ("$$;$$; $t$ ; $$ ; $t $t$; d;", &["$$;$$;", "$t$ ; $$ ; $t $t$;", "d;"]),
            ("a = $1; b$c$; d;", &["a = $1;", "b$c$;", "d;"]),
            ("größe 'ß;'; é;", &["größe 'ß;';", "é;"]),
        ];
        for (text, statements) in cases {
            assert_eq!(split(text), (statements.to_vec(), true), "{text}");
        }
    }

    #[test]
    fn what_goes_on_is_noticed() {
        for text in ["a", "'a;", "\"a;", "$$;", "/* ;", "a -- ;", "a; b", "E'\\';", "'a'';"] {
            assert!(!split(text).1, "{text}");
        }
        for text in ["", " \n", "-- a;", "/* a; */", "a; -- b"] {
            assert!(split(text).1, "{text}");
        }
    }

    #[test]
    fn a_backslash_outside_quotes_begins_a_command() {
        let scan = |text: &str| Splitter::default().scan(text.as_bytes());
        assert_eq!(scan("SELECT 1 \\gx\n"), Some(End::Command(9)));
        assert_eq!(scan("\\x"), Some(End::Command(0)));
        for text in ["'\\g'", "\"\\g\"", "$$\\g", "-- \\g", "/* \\g */"] {
            assert_eq!(scan(text), None, "{text}");
        }
        for (text, mark) in
            [("", '='), ("a", '-'), ("'", '\''), ("\"", '"'), ("$$", '$'), ("/*", '*')]
        {
            let mut splitter = Splitter::default();
            splitter.scan(text.as_bytes());
            assert_eq!(splitter.mark(), mark);
        }
    }
}
