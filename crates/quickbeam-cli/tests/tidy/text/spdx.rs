//! Licence expressions as they stand in a `Cargo.toml`: names joined by OR, AND and WITH.

/// Whether one of the ways in which `expression` offers the work is within `allowed`. The error
/// says why the expression cannot be read.
pub fn is_permitted(expression: &str, allowed: &[String]) -> Result<bool, String> {
    // Before there were expressions, a slash meant OR.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut reader = Reader { words: &words, allowed };
    let permitted = reader.any_of();
    match (permitted, reader.words) {
        (Some(permitted), []) => Ok(permitted),
        _ => Err(format!("`{expression}` is not a licence expression")),
    }
}

/// Reads an expression from left to right; every method leaves `words` at what follows.
struct Reader<'a> {
    words: &'a [&'a str],
    allowed: &'a [String],
}

impl Reader<'_> {
    fn any_of(&mut self) -> Option<bool> {
        let mut permitted = self.all_of()?;
        while self.take("OR") {
            permitted |= self.all_of()?;
        }
        Some(permitted)
    }

    fn all_of(&mut self) -> Option<bool> {
        let mut permitted = self.one()?;
        while self.take("AND") {
            permitted &= self.one()?;
        }
        Some(permitted)
    }

    fn one(&mut self) -> Option<bool> {
        if self.take("(") {
            let permitted = self.any_of()?;
            return self.take(")").then_some(permitted);
        }
        let mut name = self.name()?.to_owned();
        if self.take("WITH") {
            name = format!("{name} WITH {}", self.name()?);
        }
        Some(self.allowed.contains(&name))
    }

    fn name(&mut self) -> Option<&str> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        let is_name = !["OR", "AND", "WITH", "(", ")"].contains(first);
        is_name.then_some(first)
    }

    fn take(&mut self, word: &str) -> bool {
        let is_next = self.words.first() == Some(&word);
        if is_next {
            self.words = &self.words[1..];
        }
        is_next
    }
}

#[test]
fn expressions_are_judged() {
    let allowed = ["MIT", "Apache-2.0", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"];
    let allowed = allowed.map(str::to_owned);
    let cases = [
        ("MIT", true),
        ("MIT/Apache-2.0", true),
        ("GPL-3.0-only", false),
        ("GPL-3.0-only OR MIT", true),
        ("MIT AND GPL-3.0-only", false),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
        ("GPL-2.0 AND MIT OR Apache-2.0", true),
        ("GPL-2.0 AND (MIT OR Apache-2.0)", false),
        ("Apache-2.0 WITH LLVM-exception", true),
        ("MIT WITH LLVM-exception", false),
    ];
    for (expression, permitted) in cases {
        assert_eq!(is_permitted(expression, &allowed), Ok(permitted), "{expression}");
    }
    for broken in ["", "MIT OR", "(MIT", "MIT Apache-2.0", "OR MIT", "MIT)"] {
        assert!(is_permitted(broken, &allowed).is_err(), "{broken}");
    }
}
