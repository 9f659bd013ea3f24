//! Catalogs of the database, its schemas, its sessions and the settings.

use super::monitoring::{HIDDEN, Transactions, set_activity, set_wait};
use super::{NAME, SystemSource};
use crate::catalog::system::{domain_oid, role_oid, type_oid};
use crate::catalog::{BOOTSTRAP, DATABASE_ID};
use crate::error::Result;
use crate::expression::AdvisoryKey;
use crate::types::{Interval, SECOND, Value, current_moment, zones_at};

/// The number of the encoding UTF8.
const UTF8: i32 = 6;

impl SystemSource<'_> {
    pub(super) fn session_rows(&mut self) -> Result<()> {
        match self.table.name {
            "pg_settings" => return self.settings(),
            "pg_stat_activity" => self.activities(),
            "pg_locks" => self.locks(),
            "pg_timezone_names" => self.time_zones(),
            "pg_prepared_statements" => self.prepared_statements(),
            "pg_cursors" => self.cursors(),
            "pg_database" => {
                let (owner, acl) = (self.owner_oid(DATABASE_ID), self.acl(DATABASE_ID));
                self.add(|row| {
                    row.set("oid", 5_i64).text("datname", NAME).set("datdba", owner);
                    if let Some(acl) = &acl {
                        row.text("datacl", acl);
                    }
                    row.set("encoding", UTF8).text("datlocprovider", "c").set("datallowconn", true);
                    row.set("datconnlimit", -1_i32).set("dattablespace", 1663_i64);
                    row.text("datcollate", "C").text("datctype", "C.UTF-8");
                });
            }
            "pg_namespace" => {
                for (name, oid) in self.snapshot.schema_oids() {
                    let id = self.snapshot.schema_id(&name);
                    let (owner, acl) = (self.owner_oid(id), self.acl(id));
                    self.add(|row| {
                        row.set("oid", oid).text("nspname", name).set("nspowner", owner);
                        if let Some(acl) = &acl {
                            row.text("nspacl", acl);
                        }
                    });
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn activities(&mut self) {
        let visible = self.visible_users();
        let (transactions, locks) = (self.open_transactions(), self.session.advisory_locks());
        for activity in self.session.activities() {
            let user = self.snapshot.role_named(&activity.user).unwrap_or(BOOTSTRAP);
            let is_hidden = !self.sees(&visible, &activity.user);
            self.add(|row| {
                row.set("datid", 5_i64).text("datname", NAME).set("pid", activity.number);
                row.set("usesysid", role_oid(user)).text("usename", &activity.user);
                if is_hidden {
                    row.text("query", HIDDEN);
                    return;
                }
                set_activity(row, &activity);
                if activity.address.is_none() {
                    // As PostgreSQL has it for UNIX sockets.
                    row.set("client_port", -1_i32);
                }
                for name in ["leader_pid", "backend_xid", "backend_xmin"] {
                    row.set(name, Value::Null);
                }
                row.text("backend_type", "client backend");
                set_wait(row, activity.number, &transactions, &locks);
            });
        }
    }

    /// Advisory locks, and the locks that transactions have on their ends: who waits for a record
    /// waits for the end of the transaction that changed it. The engine's locks on records have no
    /// rows.
    fn locks(&mut self) {
        let transactions = self.open_transactions();
        for open in &transactions.open {
            let session = Transactions::session_of(open).map_or(Value::Null, Value::Integer);
            let waits = open.waits_for.map(|other| (other, false));
            for (id, is_held) in open.writer.map(|id| (id, true)).into_iter().chain(waits) {
                self.add(|row| {
                    for name in ["relation", "page", "tuple", "classid", "objid", "objsubid"] {
                        row.set(name, Value::Null);
                    }
                    row.set("database", Value::Null).set("pid", session.clone());
                    row.text("locktype", "transactionid")
                        .set("transactionid", Value::Oid(id as u32));
                    row.text("mode", if is_held { "ExclusiveLock" } else { "ShareLock" });
                    row.set("granted", is_held);
                    if let (false, Some(waited)) = (is_held, open.waited) {
                        row.set("waitstart", transactions.since(waited));
                    }
                });
            }
        }
        for lock in self.session.advisory_locks() {
            // The numbers of a lock are unsigned there.
            let (class, object, kind) = match lock.key {
                AdvisoryKey::One(key) => ((key >> 32) as u32, key as u32, 1_i16),
                AdvisoryKey::Two(first, second) => (first as u32, second as u32, 2),
            };
            self.add(|row| {
                for name in ["relation", "page", "tuple", "transactionid"] {
                    row.set(name, Value::Null);
                }
                row.text("locktype", "advisory").set("database", 5_i64).set("pid", lock.session);
                row.set("classid", Value::Oid(class)).set("objid", Value::Oid(object));
                row.set("objsubid", kind).set("granted", lock.is_held);
                if let Some(since) = lock.waits_since {
                    row.set("waitstart", Value::TimestampTz(since));
                }
                row.text("mode", if lock.is_shared { "ShareLock" } else { "ExclusiveLock" });
            });
        }
    }

    fn prepared_statements(&mut self) {
        for (name, shown) in self.session.shown_statements() {
            let domain = |at| shown.domains.iter().find(|it| it.0 == at).map(|it| domain_oid(it.1));
            let types = shown.parameters.iter().enumerate();
            let types =
                types.map(|(at, it)| domain(at).unwrap_or_else(|| type_oid(*it)).to_string());
            let types = format!("{{{}}}", types.collect::<Vec<_>>().join(","));
            self.add(|row| {
                row.text("name", name).text("statement", &shown.statement);
                row.set("prepare_time", Value::TimestampTz(shown.prepared));
                row.text("parameter_types", types).set("from_sql", shown.from_sql);
                row.set("generic_plans", 0_i64).set("custom_plans", 0_i64);
            });
        }
    }

    fn cursors(&mut self) {
        for (name, shown) in self.session.shown_cursors() {
            self.add(|row| {
                row.text("name", name).text("statement", &shown.statement);
                row.set("is_holdable", shown.holds).set("is_binary", shown.is_binary);
                row.set("is_scrollable", shown.scrolls);
                row.set("creation_time", Value::TimestampTz(shown.created));
            });
        }
    }

    fn time_zones(&mut self) {
        for zone in zones_at(current_moment()) {
            self.add(|row| {
                row.text("name", zone.name).text("abbrev", zone.abbreviation);
                let micros = i64::from(zone.east) * SECOND;
                let offset = Interval { months: 0, days: 0, micros };
                row.set("utc_offset", Value::Interval(offset)).set("is_dst", zone.is_summer);
            });
        }
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
