//! Catalogs of the database, its schemas, its only user and the settings.

use super::{NAME, SystemSource};
use crate::catalog::system::OWNER;
use crate::error::Result;
use crate::types::Value;

/// The number of the encoding UTF8.
const UTF8: i32 = 6;

impl SystemSource<'_> {
    pub(super) fn session_rows(&mut self) -> Result<()> {
        match self.table.name {
            "pg_settings" => return self.settings(),
            "pg_database" => self.add(|row| {
                row.set("oid", 5_i64).text("datname", NAME).set("datdba", OWNER);
                row.set("encoding", UTF8).text("datlocprovider", "c").set("datallowconn", true);
                row.set("datconnlimit", -1_i32).set("dattablespace", 1663_i64);
                row.text("datcollate", "C").text("datctype", "C.UTF-8");
            }),
            "pg_namespace" => {
                for (name, oid) in self.snapshot.schema_oids() {
                    self.add(|row| {
                        row.set("oid", oid).text("nspname", name).set("nspowner", OWNER);
                    });
                }
            }
            _ => self.add(|row| {
                row.set("oid", OWNER).text("rolname", NAME).set("rolsuper", true);
                for right in ["rolinherit", "rolcreaterole", "rolcreatedb", "rolcanlogin"] {
                    row.set(right, true);
                }
                row.set("rolreplication", true).set("rolbypassrls", true);
                row.set("rolconnlimit", -1_i32).text("rolpassword", "********");
                row.text("usename", NAME).set("usesysid", OWNER).set("usesuper", true);
                row.set("usecreatedb", true).set("userepl", true).set("usebypassrls", true);
                row.text("passwd", "********");
            }),
        }
        Ok(())
    }

    fn settings(&mut self) -> Result<()> {
        for [name, setting, description] in self.session.settings()? {
            self.add(|row| {
                row.text("name", name).text("setting", &setting).text("short_desc", description);
                row.text("context", "user").text("vartype", "string").text("source", "default");
                row.text("category", "Quickbeam").set("sourceline", Value::Null);
            });
        }
        Ok(())
    }
}
