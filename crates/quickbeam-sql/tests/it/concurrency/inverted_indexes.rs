//! Inverted indexes while several transactions change rows.

use super::{memory, number, transact};
use crate::common::LEVELS;
use quickbeam::Isolation;
use quickbeam_sql::params;

const PAGES: &str = "
    CREATE TABLE page (id INTEGER PRIMARY KEY, tags TEXT[]);
    CREATE INDEX page_tags ON page USING gin (tags);
    INSERT INTO page SELECT g, ARRAY['t' || g] FROM generate_series(1, 900) AS g";

#[test]
fn a_serializable_reader_of_keys_notices_new_rows_with_them() {
    for (condition, tags, fails) in [
        ("tags @> '{new}'", "{new,x}", true),
        ("tags @> '{t7,new}'", "{new,t7}", true),
        ("tags && '{new,other}'", "{other}", true),
        ("tags @> '{new}'", "{x}", false),
        ("tags && '{new,other}'", "{t5}", false),
    ] {
        let database = memory(Isolation::Serializable, PAGES);
        let (reader, writer) = (database.connect(), database.connect());
        reader.begin().unwrap();
        let counting = format!("SELECT count(*) FROM page WHERE {condition}");
        let plan = reader.query(&format!("EXPLAIN {counting}"), &[]).unwrap().collect().unwrap();
        assert!(format!("{plan:?}").contains("Bitmap Index Scan"), "{plan:?}");
        assert_eq!(number(&reader, &counting), 0);
        reader.execute("INSERT INTO page VALUES (2000, '{seen}')", &[]).unwrap();
        writer.execute("INSERT INTO page VALUES (3000, $1::text[])", params![tags]).unwrap();
        let done = reader.commit();
        let code = done.as_ref().err().map(|error| error.code());
        assert_eq!(code, fails.then_some("40001"), "{condition}, {tags}");
    }
}

#[test]
fn a_reader_below_it_sees_its_snapshot_and_its_own_rows() {
    let database = memory(Isolation::Snapshot, PAGES);
    let (reader, writer) = (database.connect(), database.connect());
    let counting = "SELECT count(*) FROM page WHERE tags && '{new}'";
    reader.begin().unwrap();
    assert_eq!(number(&reader, counting), 0);
    writer.execute("INSERT INTO page VALUES (3000, '{new}')", &[]).unwrap();
    writer.execute("DELETE FROM page WHERE tags @> '{t7}'", &[]).unwrap();
    assert_eq!(number(&reader, counting), 0);
    assert_eq!(number(&reader, "SELECT count(*) FROM page WHERE tags @> '{t7}'"), 1);
    reader.execute("INSERT INTO page VALUES (3001, '{new}')", &[]).unwrap();
    assert_eq!(number(&reader, counting), 1);
    reader.commit().unwrap();
    assert_eq!(number(&reader, counting), 2);
}

/// Each transaction moves a mark from the row that has it to another row, found by the index.
#[test]
fn one_row_has_the_mark_whatever_threads_do() {
    for isolation in LEVELS {
        let database = memory(isolation, PAGES);
        database.connect().execute_script("UPDATE page SET tags = '{mark}' WHERE id = 1").unwrap();
        std::thread::scope(|scope| {
            for thread in 0..2_i64 {
                let database = &database;
                scope.spawn(move || {
                    let connection = database.connect();
                    for round in 0..40_i64 {
                        let id = (round * 7 + thread * 3) % 900 + 1;
                        transact(&connection, |connection| {
                            let take = "UPDATE page SET tags = array_remove(tags, 'mark')
                                WHERE tags @> '{mark}'";
                            if connection.execute(take, &[])? == 1 {
                                let give = "UPDATE page SET tags = tags || '{mark}' WHERE id = $1";
                                connection.execute(give, params![id])?;
                            }
                            Ok(())
                        })
                        .unwrap();
                    }
                });
            }
        });
        let connection = database.connect();
        let marked = "SELECT count(*) FROM page WHERE tags @> '{mark}'";
        assert_eq!(number(&connection, marked), 1, "{isolation:?}");
        let complaints = database.verify().unwrap().complaints;
        assert!(complaints.is_empty(), "{isolation:?}: {complaints:?}");
    }
}
