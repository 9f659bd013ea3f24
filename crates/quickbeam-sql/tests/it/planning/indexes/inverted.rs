//! Which conditions use an inverted index, and what happens where the keys say nothing.

use quickbeam::{Durability, Options};
use quickbeam_sql::types::{TextSettings, parse_value};
use quickbeam_sql::{Connection, DataType, EncodedKind, EncodedType, SqlDatabase, Value};

use super::super::{filled_by, lines, plan};

const TABLE: &str = "
    CREATE TABLE page (id INTEGER PRIMARY KEY, body TEXT, v tsvector, tags TEXT[], doc JSONB);
    INSERT INTO page SELECT g, 'word' || g % 1000 || ' common',
        to_tsvector('simple', 'word' || g % 1000 || ' common'),
        ARRAY['t' || g % 500, 'all'], jsonb_build_object('k' || g % 700, g % 300, 'x', true)
        FROM generate_series(1, 3000) AS g;
    CREATE INDEX by_v ON page USING gin (v);
    CREATE INDEX by_tags ON page USING gin (tags);
    CREATE INDEX by_doc ON page USING gin (doc);
    CREATE INDEX by_path ON page USING gin (doc jsonb_path_ops) WHERE id > 0;
    CREATE INDEX by_body ON page USING gin (to_tsvector('simple', body))";

#[test]
fn conditions_on_keys_use_the_index_that_has_them() {
    let c = filled_by(TABLE);
    for (condition, index) in [
        ("v @@ 'word7'", "by_v"),
        ("'word7'::tsquery @@ v", "by_v"),
        ("v @@ 'common & word7'", "by_v"),
        ("v @@ 'word7 | word8'", "by_v"),
        ("v @@ 'word99:*' AND id > 7", "by_v"),
        ("v @@ 'word7 & !word8'", "by_v"),
        ("v @@ to_tsquery('word7')", "by_v"),
        ("to_tsvector('simple', body) @@ 'word7'", "by_body"),
        ("tags @> '{t7,all}'", "by_tags"),
        ("ARRAY['t7'] <@ tags", "by_tags"),
        ("tags && '{t7,t8}'", "by_tags"),
        ("tags = '{t7,all}'", "by_tags"),
        ("'{t7,all}' = tags", "by_tags"),
        ("doc ? 'k7'", "by_doc"),
        ("doc ?| '{k7,k8}'", "by_doc"),
        ("doc ?& '{k7,x}'", "by_doc"),
        ("doc @> '{\"k7\": 7}'", "by_doc"),
        ("doc @> '{\"k7\": 7}' AND id > 0", "by_path"),
    ] {
        let query = format!("SELECT count(*) FROM page WHERE {condition}");
        let plan = plan(&c, &query);
        assert!(plan.contains(&format!("Bitmap Index Scan on {index}")), "{condition}: {plan}");
        let found = lines(&c, &query);
        c.execute_script("SET enable_bitmapscan = off").unwrap();
        assert_eq!(lines(&c, &query), found, "{condition}");
        c.execute_script("RESET enable_bitmapscan").unwrap();
    }
}

#[test]
fn index_of_several_columns_answers_conditions_on_each() {
    let indexes = "DROP INDEX by_v, by_tags, by_doc, by_path, by_body;
        CREATE INDEX several ON page USING gin (v, tags, doc jsonb_path_ops,
            to_tsvector('simple', body))";
    let c = filled_by(&format!("{TABLE};{indexes}"));
    for condition in [
        "v @@ 'word7'",
        "tags @> '{t7}'",
        "doc @> '{\"k7\": 7}'",
        "to_tsvector('simple', body) @@ 'word7'",
        "tags @> '{t7}' AND v @@ 'word7' AND doc @> '{\"k7\": 7}'",
        "tags @> '{all}' AND v @@ 'word71:*'",
        "tags @> '{t7}' OR v @@ 'word8'",
    ] {
        let query = format!("SELECT id FROM page WHERE {condition} ORDER BY id");
        let plan = plan(&c, &query);
        assert!(plan.contains("Bitmap Index Scan on several"), "{condition}: {plan}");
        let found = lines(&c, &query);
        assert!(!found.is_empty(), "{condition}");
        c.execute_script("SET enable_bitmapscan = off").unwrap();
        assert_eq!(lines(&c, &query), found, "{condition}");
        c.execute_script("RESET enable_bitmapscan").unwrap();
    }
    let shown = lines(&c, "SELECT pg_get_indexdef('several'::regclass)");
    let wanted = "gin (v, tags, doc jsonb_path_ops, to_tsvector('simple', body))";
    assert!(shown[0].contains(wanted), "{shown:?}");
}

#[test]
fn conditions_joined_by_or_bring_indexes_together() {
    let c = filled_by(TABLE);
    for (condition, indexes) in [
        ("v @@ 'word7' OR tags @> '{t7}'", &["BitmapOr", "by_v", "by_tags"][..]),
        (
            "(v @@ 'word7' AND id > 8) OR doc ? 'k7' OR tags = '{t9,all}'",
            &["BitmapOr", "by_v", "by_doc", "by_tags"],
        ),
        ("v @@ 'word7' OR v @@ 'word8'", &["by_v"]),
        ("tags = '{t7,all}' OR tags && '{t8}'", &["by_tags"]),
    ] {
        let query = format!("SELECT id FROM page WHERE {condition} ORDER BY id");
        let plan = plan(&c, &query);
        assert!(indexes.iter().all(|index| plan.contains(index)), "{condition}: {plan}");
        assert_eq!(plan.contains("BitmapOr"), indexes.len() > 1, "{condition}: {plan}");
        let found = lines(&c, &query);
        assert!(!found.is_empty(), "{condition}");
        c.execute_script("SET enable_bitmapscan = off").unwrap();
        assert_eq!(lines(&c, &query), found, "{condition}");
        c.execute_script("RESET enable_bitmapscan").unwrap();
    }
    for condition in ["v @@ 'word7' OR id = 3", "v @@ 'word7' OR tags @> '{}'"] {
        let plan = plan(&c, &format!("SELECT id FROM page WHERE {condition}"));
        assert!(!plan.contains("Bitmap"), "{condition}: {plan}");
    }
}

#[test]
fn conditions_that_say_nothing_about_keys_read_every_row() {
    let c = filled_by(TABLE);
    for condition in [
        // Most rows have the key.
        "v @@ 'common'",
        "tags @> '{all}'",
        "doc ? 'x'",
        // Rows without a key satisfy them.
        "v @@ '!word7'",
        "v @@ '!word7 | word8'",
        "tags @> '{}'",
        "doc @> '{}'",
        "doc ?& '{}'",
        // Other operators, and other expressions.
        "tags <@ '{t7}'",
        "tags = '{}'",
        "to_tsvector('english', body) @@ 'word7'",
        "doc @@ '$.k7 == 7'",
        "NOT v @@ 'word7'",
    ] {
        let plan = plan(&c, &format!("SELECT count(*) FROM page WHERE {condition}"));
        assert!(!plan.contains("Bitmap"), "{condition}: {plan}");
    }
}

#[test]
fn a_plan_shows_what_is_checked_again() {
    let c = filled_by(TABLE);
    let shown = plan(&c, "SELECT id FROM page WHERE id > 7 AND tags @> '{t7}'");
    let expected = "Bitmap Heap Scan on page (rows=6)
      Recheck Cond: @>(page.tags, {t7})
      Filter: (page.id > 7)
   -> Bitmap Index Scan on by_tags
        Index Cond: @>(page.tags, {t7})";
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(squeezed(&shown).starts_with(&squeezed(expected)), "{shown}");
}

fn query_value(text: &str) -> Value {
    let of = DataType::Encoded(EncodedType::new(EncodedKind::TsQuery, 0));
    parse_value(text, of, &TextSettings::DEFAULT).unwrap()
}

fn count(c: &Connection, text: &str, value: Value) -> Value {
    c.query(text, &[value]).unwrap().collect().unwrap()[0][0].clone()
}

#[test]
fn a_parameter_may_turn_out_to_say_nothing() {
    let c = filled_by(TABLE);
    let text = "SELECT count(*) FROM page WHERE v @@ $1::tsquery";
    let explained = c.query(&format!("EXPLAIN {text}"), &[Value::Null]).unwrap().collect().unwrap();
    assert!(format!("{explained:?}").contains("by_v"), "{explained:?}");
    for (query, expected) in
        [("word7", 3), ("!word7", 2997), ("word7 | !word7", 3000), ("nothing", 0), ("word7", 3)]
    {
        assert_eq!(count(&c, text, query_value(query)), Value::BigInt(expected), "{query}");
    }
    assert_eq!(count(&c, text, Value::Null), Value::BigInt(0));
}

#[test]
fn rows_are_looked_up_by_queries_of_another_table() {
    let c = filled_by(TABLE);
    c.execute_script(
        "CREATE TABLE asked (q tsquery, tag TEXT[]);
         INSERT INTO asked VALUES ('word7', '{t7}'), ('!common', '{t9}'), (NULL, NULL),
             ('word9 & common', '{}')",
    )
    .unwrap();
    let joined = "SELECT q::text, count(*) FROM asked JOIN page ON v @@ q GROUP BY 1 ORDER BY 1";
    assert_eq!(lines(&c, joined), ["'word7' 3", "'word9' & 'common' 3"]);
    let joined = "SELECT tag::text, count(*) FROM asked JOIN page ON tags @> tag
        GROUP BY 1 ORDER BY 1";
    assert_eq!(lines(&c, joined), ["{t7} 6", "{t9} 6", "{} 3000"]);
}

#[test]
fn changes_find_their_rows_by_the_index() {
    let options = Options::new().durability(Durability::InMemory);
    let database = SqlDatabase::open_in_memory(options).unwrap();
    let c = database.connect();
    c.execute_script(TABLE).unwrap();
    let update = "UPDATE page SET tags = tags || '{t8}', v = v || 'new' WHERE tags @> '{t7}'";
    assert!(plan(&c, update).contains("by_tags"));
    assert_eq!(c.execute(update, &[]).unwrap(), 6);
    assert_eq!(lines(&c, "SELECT count(*) FROM page WHERE v @@ 'new'"), ["6"]);
    assert_eq!(c.execute("DELETE FROM page WHERE tags @> '{t8,all}'", &[]).unwrap(), 12);
    assert_eq!(lines(&c, "SELECT count(*) FROM page WHERE tags && '{t7,t8}'"), ["0"]);
    c.execute_script(
        "ALTER TABLE page ALTER tags TYPE VARCHAR[]; ALTER TABLE page ADD n INTEGER DEFAULT 7;
         ALTER TABLE page DROP COLUMN doc",
    )
    .unwrap();
    assert_eq!(lines(&c, "SELECT count(*) FROM page WHERE tags && '{t9}'"), ["6"]);
    let verified = database.verify().unwrap();
    assert_eq!(verified.complaints, Vec::<String>::new());
}
