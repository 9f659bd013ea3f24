//! The views of statistics that PostgreSQL has: tables and their estimated rows, indexes, the
//! database.
//!
//! Of PostgreSQL's counters there are those that the engine keeps: commits, pages, deadlocks. The
//! live rows of a table are estimated from its tree when the view is read. The others are NULL:
//! nothing here counts them.

use super::{NAME, SystemSource};
use crate::catalog::describe::Described;
use crate::catalog::system::object_oid;
use crate::error::Result;
use crate::types::Value;

impl SystemSource<'_> {
    /// Adds the rows of `pg_stat_all_tables` and its kin; views of the system catalogs are empty.
    pub(super) fn statistics(&mut self) -> Result<()> {
        match self.table.name.trim_start_matches("pg_stat").trim_start_matches("io") {
            "_all_tables" | "_user_tables" | "_xact_all_tables" | "_xact_user_tables" => {
                for table in self.snapshot.tables() {
                    let rows = self.engine.estimated_rows(table)?;
                    self.add(|row| {
                        row.set("relid", object_oid(table.id)).text("schemaname", &table.schema);
                        row.text("relname", &table.name).set("n_live_tup", rows as i64);
                    });
                }
            }
            "_all_indexes" | "_user_indexes" => {
                for relation in self.snapshot.described() {
                    let (table, name) = match relation {
                        Described::Index(table, index) => (table, index.name.as_str()),
                        Described::PrimaryKey(table) => (table, relation.name()),
                        _ => continue,
                    };
                    self.add(|row| {
                        row.set("relid", object_oid(table.id)).set("indexrelid", relation.oid());
                        row.text("schemaname", &table.schema).text("relname", &table.name);
                        row.text("indexrelname", name);
                    });
                }
            }
            "_all_sequences" | "_user_sequences" => {
                for relation in self.snapshot.described() {
                    let Described::Sequence(sequence) = relation else { continue };
                    self.add(|row| {
                        row.set("relid", relation.oid()).text("schemaname", &sequence.schema);
                        row.text("relname", &sequence.name);
                    });
                }
            }
            "_database" => self.database_statistics(),
            _ => {}
        }
        Ok(())
    }

    /// Returns when the counters began at zero.
    fn opened(&self) -> Value {
        Value::TimestampTz(self.session.opened())
    }

    /// The database, with the engine's counters since it was opened.
    fn database_statistics(&mut self) {
        let (engine, opened) = (self.engine.environment().statistics(), self.opened());
        let sessions = self.session.activities().len();
        self.add(|row| {
            row.set("datid", 5_i64).text("datname", NAME);
            row.set("numbackends", Value::Integer(sessions as i32));
            row.set("xact_commit", engine.commits as i64);
            row.set("xact_rollback", engine.aborts as i64);
            row.set("blks_read", engine.cache_misses as i64);
            row.set("blks_hit", engine.cache_hits as i64);
            row.set("deadlocks", engine.deadlocks as i64);
            // Queries are cancelled for nothing that a standby receives: there is none.
            row.set("conflicts", 0_i64).set("stats_reset", opened);
        });
    }
}
