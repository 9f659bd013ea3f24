//! Command tags: how PostgreSQL names a statement that was executed.

/// The kind of a statement, by its first keywords.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag {
    words: String,
    has_count: bool,
    is_rollback_to: bool,
    has_chain: bool,
    is_definition: bool,
    /// The tag of a definition under IF NOT EXISTS that stores no rows: most likely the name was
    /// taken.
    if_skipped: Option<&'static str>,
}

impl Tag {
    /// Reads the kind off a statement's text. The number of its columns decides what WITH begins.
    pub fn of(text: &str, columns: usize) -> Tag {
        let returns_rows = columns > 0;
        let is_rollback_to = keywords(text).next().as_deref() == Some("ROLLBACK")
            && keywords(text).any(|word| word == "TO");
        let mut words = keywords(text);
        let first = words.next().unwrap_or_default();
        let has_chain = matches!(first.as_str(), "COMMIT" | "END" | "ROLLBACK" | "ABORT")
            && keywords(text).any(|word| word == "CHAIN")
            && keywords(text).all(|word| word != "NO");
        let is_definition = first == "CREATE";
        let if_skipped = is_definition.then(|| skipped_definition(text)).flatten();
        let (words, has_count) = match first.as_str() {
            "SELECT" | "VALUES" | "TABLE" => ("SELECT".to_owned(), true),
            "WITH" => (of_with(text, returns_rows), true),
            "INSERT" => ("INSERT 0".to_owned(), true),
            "UPDATE" | "DELETE" | "COPY" | "MERGE" | "FETCH" | "MOVE" => (first, true),
            "START" => ("START TRANSACTION".to_owned(), false),
            "END" => ("COMMIT".to_owned(), false),
            "ABORT" => ("ROLLBACK".to_owned(), false),
            "CLOSE" | "DEALLOCATE" | "DISCARD" => (of_session(&first, words), false),
            "DECLARE" => ("DECLARE CURSOR".to_owned(), false),
            "LOCK" => ("LOCK TABLE".to_owned(), false),
            "REFRESH" => ("REFRESH MATERIALIZED VIEW".to_owned(), false),
            "SET" if words.next().as_deref() == Some("CONSTRAINTS") => {
                ("SET CONSTRAINTS".to_owned(), false)
            }
            "ALTER" if keywords(text).nth(1).as_deref() == Some("DEFAULT") => {
                ("ALTER DEFAULT PRIVILEGES".to_owned(), false)
            }
            "CREATE" if let Some(tag) = of_created_rows(text) => tag,
            "CREATE" | "DROP" | "ALTER" => (with_object(&first, words), false),
            "GRANT" | "REVOKE" if !names_object(text) => (format!("{first} ROLE"), false),
            "REASSIGN" => ("REASSIGN OWNED".to_owned(), false),
            "TRUNCATE" => ("TRUNCATE TABLE".to_owned(), false),
            _ => (first, false),
        };
        Tag { words, has_count, is_rollback_to, has_chain, is_definition, if_skipped }
    }

    /// Returns the tag of a statement that processed `count` rows.
    pub fn with(&self, count: u64) -> String {
        if let (Some(skipped), 0) = (self.if_skipped, count) {
            return skipped.to_owned();
        }
        if self.has_count { format!("{} {count}", self.words) } else { self.words.clone() }
    }

    /// Whether EXPLAIN shows a plan of it.
    pub fn has_plan(&self) -> bool {
        let is_query =
            matches!(self.words.as_str(), "SELECT" | "INSERT 0" | "UPDATE" | "DELETE" | "MERGE");
        is_query && !self.is_definition
    }

    /// Whether the statement ends a transaction.
    pub fn ends_transaction(&self) -> bool {
        matches!(self.words.as_str(), "COMMIT" | "ROLLBACK") && !self.is_rollback_to
    }

    /// Whether another transaction follows the one that the statement ends.
    pub fn has_chain(&self) -> bool {
        self.has_chain && self.ends_transaction()
    }

    /// Whether it leaves the rows that other portals have still to deliver as they are.
    pub fn leaves_rows(&self) -> bool {
        matches!(
            self.words.as_str(),
            "SAVEPOINT" | "RELEASE" | "SHOW" | "SET" | "FETCH" | "DEALLOCATE"
        )
    }

    /// Whether it is ROLLBACK TO SAVEPOINT.
    pub fn is_rollback_to(&self) -> bool {
        self.is_rollback_to
    }

    /// Whether it is COPY.
    pub fn is_copy(&self) -> bool {
        self.words == "COPY"
    }

    /// Whether the text holds no statement.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Whether it begins a transaction.
    pub fn is_begin(&self) -> bool {
        matches!(self.words.as_str(), "BEGIN" | "START TRANSACTION")
    }
}

/// CLOSE, DEALLOCATE and DISCARD with what they end.
fn of_session(verb: &str, mut words: impl Iterator<Item = String>) -> String {
    let object = words.next().unwrap_or_default();
    match (verb, object.as_str()) {
        ("CLOSE", "ALL") => "CLOSE CURSOR ALL".to_owned(),
        ("CLOSE", _) => "CLOSE CURSOR".to_owned(),
        ("DISCARD", _) | (_, "ALL") => format!("{verb} {object}"),
        _ => verb.to_owned(),
    }
}

/// CREATE, DROP and ALTER with the kind of object.
fn with_object(verb: &str, words: impl Iterator<Item = String>) -> String {
    let modifiers = [
        "OR",
        "REPLACE",
        "RECURSIVE",
        "TEMP",
        "TEMPORARY",
        "UNLOGGED",
        "UNIQUE",
        "GLOBAL",
        "LOCAL",
        "CONSTRAINT",
    ];
    let mut words = words.filter(|word| !modifiers.contains(&word.as_str()));
    let object = words.next().unwrap_or_default();
    if object == "MATERIALIZED" {
        return format!("{verb} MATERIALIZED VIEW");
    }
    let object = if matches!(&object[..], "USER" | "GROUP") { "ROLE" } else { &object[..] };
    format!("{verb} {object}")
}

/// CREATE TABLE … AS and CREATE MATERIALIZED VIEW, which count the rows that they store. Returns
/// `None` for other definitions.
fn of_created_rows(text: &str) -> Option<(String, bool)> {
    let words = outer_words(text);
    let is_modifier = |word: &&String| {
        matches!(word.as_str(), "CREATE" | "TEMP" | "TEMPORARY" | "UNLOGGED" | "GLOBAL" | "LOCAL")
    };
    let has_data = !words.ends_with(&["WITH", "NO", "DATA"].map(str::to_owned));
    match (words.iter().find(|word| !is_modifier(word))?.as_str(), has_data) {
        ("TABLE", _) if !words.iter().any(|word| word == "AS") => None,
        ("TABLE", false) if words.windows(2).any(|two| two == ["AS", "EXECUTE"]) => {
            Some(("SELECT".to_owned(), true))
        }
        ("TABLE", false) => Some(("CREATE TABLE AS".to_owned(), false)),
        ("TABLE" | "MATERIALIZED", true) => Some(("SELECT".to_owned(), true)),
        _ => None,
    }
}

/// The tag of CREATE TABLE IF NOT EXISTS … AS, or of a materialized view, that has made nothing.
fn skipped_definition(text: &str) -> Option<&'static str> {
    let (tag, has_count) = of_created_rows(text)?;
    let words = outer_words(text);
    let has_condition = words.windows(3).any(|three| three == ["IF", "NOT", "EXISTS"]);
    let is_view = words.iter().any(|word| word == "MATERIALIZED");
    let skipped = if is_view { "CREATE MATERIALIZED VIEW" } else { "CREATE TABLE AS" };
    (has_condition && has_count && tag == "SELECT").then_some(skipped)
}

/// The tag of a statement that begins with WITH, by the first of its words outside of parentheses
/// that begins a statement.
fn of_with(text: &str, returns_rows: bool) -> String {
    for word in outer_words(text) {
        match word.as_str() {
            "INSERT" => return "INSERT 0".to_owned(),
            "UPDATE" | "DELETE" | "MERGE" => return word,
            "SELECT" | "VALUES" | "TABLE" => return "SELECT".to_owned(),
            _ => {}
        }
    }
    if returns_rows { "SELECT" } else { "WITH" }.to_owned()
}

/// The words of a statement outside of parentheses and quotes, in upper case.
fn outer_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut depth, mut quote, mut word) = (0_usize, None, String::new());
    for character in text.chars().chain([' ']) {
        match quote {
            Some(end) if character == end => quote = None,
            Some(_) => {}
            None if character.is_ascii_alphanumeric() || character == '_' => {
                word.push(character.to_ascii_uppercase());
            }
            None => {
                if depth == 0 && !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                word.clear();
                match character {
                    '(' => depth += 1,
                    ')' => depth = depth.saturating_sub(1),
                    '\'' | '"' => quote = Some(character),
                    _ => {}
                }
            }
        }
    }
    words
}

/// Whether ON stands in a GRANT or REVOKE: privileges are granted on something, roles are not.
fn names_object(text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.any(|word| word.eq_ignore_ascii_case("ON"))
}

/// The leading words of a statement in upper case, without comments and opening parentheses.
pub fn keywords(text: &str) -> impl Iterator<Item = String> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '(');
            if let Some(comment) = rest.strip_prefix("--") {
                rest = comment.split_once('\n').map_or("", |(_, after)| after);
            } else if let Some(comment) = rest.strip_prefix("/*") {
                rest = comment.split_once("*/").map_or("", |(_, after)| after);
            } else {
                break;
            }
        }
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        (!word.is_empty()).then(|| word.to_ascii_uppercase())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_those_of_postgresql() {
        let cases = [
            ("select 1", "SELECT 3"),
            (" -- note\n/* more */ (VALUES (1))", "SELECT 3"),
            ("insert into t values (1)", "INSERT 0 3"),
            ("DELETE FROM t", "DELETE 3"),
            ("WITH d AS (DELETE FROM t RETURNING a) INSERT INTO u SELECT a FROM d", "INSERT 0 3"),
            ("with u as (select ')' as x) update t set a = 1", "UPDATE 3"),
            ("WITH i AS (INSERT INTO t VALUES (1)) SELECT 1", "SELECT 3"),
            ("MERGE INTO t USING u ON true WHEN MATCHED THEN DELETE", "MERGE 3"),
            ("create unique index i on t (a)", "CREATE INDEX"),
            ("CREATE CONSTRAINT TRIGGER t AFTER INSERT ON a", "CREATE TRIGGER"),
            ("CREATE OR REPLACE VIEW v AS SELECT 1", "CREATE VIEW"),
            ("CREATE RECURSIVE VIEW v (a) AS SELECT 1", "CREATE VIEW"),
            ("CREATE TEMP TABLE a (b) AS SELECT 1", "SELECT 3"),
            ("create table a as table b with no data;", "CREATE TABLE AS"),
            ("create table a as execute p(1)", "SELECT 3"),
            ("create table a as execute p with no data", "SELECT 3"),
            ("CREATE TABLE a (b int GENERATED ALWAYS AS (c) STORED)", "CREATE TABLE"),
            ("CREATE TABLE \"as\" (\"AS\" int)", "CREATE TABLE"),
            ("CREATE MATERIALIZED VIEW m AS SELECT 1", "SELECT 3"),
            ("CREATE MATERIALIZED VIEW m AS SELECT 1 WITH NO DATA", "CREATE MATERIALIZED VIEW"),
            ("start transaction", "START TRANSACTION"),
            ("begin", "BEGIN"),
            ("end", "COMMIT"),
            ("close c", "CLOSE CURSOR"),
            ("close all", "CLOSE CURSOR ALL"),
            ("deallocate \"a\"", "DEALLOCATE"),
            ("deallocate all", "DEALLOCATE ALL"),
            ("discard all", "DISCARD ALL"),
            ("declare c cursor for select 1", "DECLARE CURSOR"),
            ("lock t", "LOCK TABLE"),
            ("create user a", "CREATE ROLE"),
            ("grant a, c to b", "GRANT ROLE"),
            ("grant select, update on t to b", "GRANT"),
            ("revoke select (a) on t from b", "REVOKE"),
            ("set work_mem = '1MB'", "SET"),
        ];
        for (text, expected) in cases {
            assert_eq!(Tag::of(text, 0).with(3), expected, "{text}");
        }
        let skipped = "CREATE TABLE IF NOT EXISTS a AS SELECT 1";
        assert_eq!(Tag::of(skipped, 0).with(0), "CREATE TABLE AS");
        assert_eq!(Tag::of(skipped, 0).with(1), "SELECT 1");
        assert_eq!(Tag::of("WITH a AS (SELECT 1) SELECT * FROM a", 1).with(1), "SELECT 1");
    }
}
