//! The syntax summaries of `\h`.

/// Each statement with its summary. `docs/sql.md` has the details.
pub const STATEMENTS: [(&str, &str); 47] = [
    ("ALTER INDEX", "ALTER INDEX name RENAME TO new_name"),
    ("ALTER SCHEMA", "ALTER SCHEMA name RENAME TO new_name"),
    (
        "ALTER SEQUENCE",
        "ALTER SEQUENCE name [INCREMENT BY n] [MINVALUE n] [MAXVALUE n] [RESTART [WITH n]] [CYCLE]",
    ),
    (
        "ALTER TABLE",
        "ALTER TABLE name\n  ADD COLUMN column type [constraint ...] | DROP COLUMN column [CASCADE]\n  \
         | RENAME COLUMN column TO new_name | RENAME TO new_name\n  \
         | ALTER COLUMN column SET DEFAULT expression | DROP DEFAULT | SET NOT NULL | DROP NOT NULL\n  \
         | ADD [CONSTRAINT name] constraint | DROP CONSTRAINT name [CASCADE]",
    ),
    ("ANALYZE", "ANALYZE [table [, ...]]"),
    (
        "BEGIN",
        "BEGIN [ISOLATION LEVEL {SERIALIZABLE | REPEATABLE READ | READ COMMITTED}] [READ ONLY]",
    ),
    ("CHECKPOINT", "CHECKPOINT"),
    ("CLOSE", "CLOSE {cursor | ALL}"),
    ("COMMENT", "COMMENT ON {TABLE table | COLUMN table.column | ...} IS {'text' | NULL}"),
    ("COMMIT", "COMMIT"),
    (
        "COPY",
        "COPY {table [(column, ...)] | (query)} {FROM | TO} {'file' | STDIN | STDOUT}\n  \
         [WITH (FORMAT {text | csv | binary}, HEADER, DELIMITER 'c', NULL 'text', ...)]",
    ),
    (
        "CREATE INDEX",
        "CREATE [UNIQUE] INDEX [IF NOT EXISTS] [name] ON table [USING {btree | hash}]\n  \
         (column [ASC | DESC] [NULLS FIRST | NULLS LAST], ...)",
    ),
    (
        "CREATE MATERIALIZED VIEW",
        "CREATE MATERIALIZED VIEW [IF NOT EXISTS] name [(column, ...)] AS query [WITH [NO] DATA]",
    ),
    ("CREATE SCHEMA", "CREATE SCHEMA [IF NOT EXISTS] name"),
    (
        "CREATE SEQUENCE",
        "CREATE SEQUENCE [IF NOT EXISTS] name [INCREMENT BY n] [MINVALUE n] [MAXVALUE n] [START WITH n] [CYCLE]",
    ),
    (
        "CREATE TABLE",
        "CREATE TABLE [IF NOT EXISTS] name (\n  column type [NOT NULL] [DEFAULT expression] [PRIMARY KEY] \
         [UNIQUE]\n    [CHECK (condition)] [REFERENCES table [(column)] [ON DELETE action] [ON UPDATE action]]\n    \
         [GENERATED {ALWAYS | BY DEFAULT} AS IDENTITY], ...\n  \
         [[CONSTRAINT name] PRIMARY KEY (column, ...) | UNIQUE (column, ...) | CHECK (condition)\n   \
         | FOREIGN KEY (column, ...) REFERENCES table [(column, ...)]\n   \
         [DEFERRABLE [INITIALLY {DEFERRED | IMMEDIATE}]], ...])",
    ),
    ("CREATE TABLE AS", "CREATE TABLE [IF NOT EXISTS] name AS query"),
    ("CREATE VIEW", "CREATE [OR REPLACE] VIEW name [(column, ...)] AS query"),
    ("DEALLOCATE", "DEALLOCATE {name | ALL}"),
    ("DECLARE", "DECLARE cursor CURSOR [WITH HOLD] FOR query"),
    (
        "DELETE",
        "DELETE FROM table [alias] [USING from_item, ...] [WHERE condition] [RETURNING ...]",
    ),
    ("DISCARD", "DISCARD {ALL | PLANS | SEQUENCES | TEMPORARY}"),
    ("DROP INDEX", "DROP INDEX [IF EXISTS] name [, ...]"),
    ("DROP MATERIALIZED VIEW", "DROP MATERIALIZED VIEW [IF EXISTS] name [, ...] [CASCADE]"),
    ("DROP SCHEMA", "DROP SCHEMA [IF EXISTS] name [CASCADE]"),
    ("DROP SEQUENCE", "DROP SEQUENCE [IF EXISTS] name [, ...] [CASCADE]"),
    ("DROP TABLE", "DROP TABLE [IF EXISTS] name [, ...] [CASCADE]"),
    ("DROP VIEW", "DROP VIEW [IF EXISTS] name [, ...] [CASCADE]"),
    ("EXECUTE", "EXECUTE name [(value, ...)]"),
    ("EXPLAIN", "EXPLAIN [ANALYZE] statement"),
    ("FETCH", "FETCH [NEXT | PRIOR | FIRST | LAST | n | ALL | ...] [FROM] cursor"),
    (
        "INSERT",
        "INSERT INTO table [(column, ...)] {VALUES (value, ...), ... | query | DEFAULT VALUES}\n  \
         [ON CONFLICT [(column, ...)] {DO NOTHING | DO UPDATE SET column = value, ... [WHERE condition]}]\n  \
         [RETURNING ...]",
    ),
    ("LISTEN", "LISTEN channel"),
    ("LOCK", "LOCK [TABLE] table [IN mode MODE]"),
    ("NOTIFY", "NOTIFY channel [, 'payload']"),
    ("PREPARE", "PREPARE name [(type, ...)] AS statement"),
    ("REFRESH MATERIALIZED VIEW", "REFRESH MATERIALIZED VIEW [CONCURRENTLY] name [WITH [NO] DATA]"),
    ("REINDEX", "REINDEX {INDEX | TABLE} name"),
    ("RELEASE SAVEPOINT", "RELEASE SAVEPOINT name"),
    ("ROLLBACK", "ROLLBACK [TO SAVEPOINT name]"),
    ("SAVEPOINT", "SAVEPOINT name"),
    (
        "SELECT",
        "[WITH [RECURSIVE] name AS (query), ...]\nSELECT [DISTINCT [ON (expression, ...)]] expression [AS name], ...\n  \
         [FROM from_item [{INNER | LEFT | RIGHT | FULL} JOIN from_item ON condition] ...]\n  \
         [WHERE condition] [GROUP BY expression, ...] [HAVING condition]\n  \
         [WINDOW name AS (...)] [{UNION | INTERSECT | EXCEPT} [ALL] query]\n  \
         [ORDER BY expression [ASC | DESC] [NULLS FIRST | NULLS LAST], ...]\n  \
         [LIMIT count] [OFFSET count] [FOR UPDATE]",
    ),
    ("SET", "SET [SESSION | LOCAL] name {TO | =} value"),
    ("SHOW", "SHOW {name | ALL}"),
    ("TRUNCATE", "TRUNCATE [TABLE] name [, ...] [RESTART IDENTITY] [CASCADE]"),
    (
        "UPDATE",
        "UPDATE table [alias] SET column = expression, ... [FROM from_item, ...] [WHERE condition] [RETURNING ...]",
    ),
    ("VACUUM", "VACUUM [table]"),
];

/// Returns the summaries of the statements whose names begin with `name`, or the list of names if
/// `name` is empty. Returns `None` if there is no such statement.
pub fn help(name: &str) -> Option<String> {
    let name = name.trim_end_matches(';').trim().to_uppercase();
    if name.is_empty() {
        let names: String = STATEMENTS.iter().map(|(name, _)| format!("  {name}\n")).collect();
        return Some(format!("\\h NAME shows the syntax of a statement:\n{names}"));
    }
    let exact = STATEMENTS.iter().filter(|(known, _)| *known == name);
    let begun = STATEMENTS.iter().filter(|(known, _)| known.starts_with(&format!("{name} ")));
    let found: Vec<&str> = exact.chain(begun).map(|(_, syntax)| *syntax).collect();
    (!found.is_empty()).then(|| found.join("\n\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_shows_statements_by_the_start_of_their_names() {
        assert!(STATEMENTS.is_sorted());
        assert!(help("select").is_some_and(|text| text.contains("[WHERE condition]")));
        assert!(help("CREATE;").is_some_and(|text| text.matches("CREATE ").count() >= 6));
        assert!(help("").is_some_and(|text| text.contains("TRUNCATE")));
        assert_eq!(help("SEL"), None);
    }
}
