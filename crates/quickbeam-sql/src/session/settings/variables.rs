//! The settings of a session: SET, SHOW and RESET.
//!
//! - SETTING-1: a change outside a transaction, or committed, lasts as long as the session. A
//!   rollback undoes the changes of its transaction. SET LOCAL ends with the transaction.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quickbeam::{Durability, Isolation, TransactionOptions};
use smol_str::SmolStr;

use super::known_settings::{setting, settings};
use super::setting_table::{BLOCK, Kind, LEAST_BLOCKS, Setting, Unit};
use crate::bind::SearchPath;
use crate::catalog::{BOOTSTRAP, path_schemas};
use crate::compile::Parallelism;
use crate::compile::session_command::{Control, Settings};
use crate::error::{Result, SqlError, SqlState};
use crate::plan::{ExecutionMode, TurnedOff};
use crate::session::{MEMORY, Session};
use crate::types::TextSettings;

/// How long the value of a setting lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SettingScope {
    /// Until the transaction ends.
    Local,
    /// Until it is changed again.
    Session,
}

impl From<bool> for SettingScope {
    fn from(is_local: bool) -> SettingScope {
        if is_local { SettingScope::Local } else { SettingScope::Session }
    }
}

/// Settings that differ from their defaults, by name in lower case.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Variables(Option<Arc<BTreeMap<SmolStr, Arc<str>>>>);

impl Variables {
    pub fn get(&self, name: &str) -> Option<Arc<str>> {
        self.0.as_ref()?.get(name).cloned()
    }

    fn set(&mut self, name: &str, value: Option<String>) {
        let map = Arc::make_mut(self.0.get_or_insert_default());
        match value {
            Some(value) => map.insert(name.into(), value.into()),
            None => map.remove(name),
        };
    }
}

/// All settings of a session, to come back to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Saved {
    pub settings: Settings,
    pub memory: usize,
    pub variables: Variables,
}

impl Default for Saved {
    fn default() -> Saved {
        Saved { settings: Settings::default(), memory: MEMORY, variables: Variables::default() }
    }
}

#[cold]
pub(super) fn unrecognized(name: &str) -> SqlError {
    let message = format!("unrecognized configuration parameter \"{name}\"");
    SqlError::new(SqlState::UndefinedObject, message)
}

fn isolation_name(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::ReadCommitted => "read committed",
        Isolation::Snapshot => "repeatable read",
        Isolation::Serializable => "serializable",
    }
}

fn millis(duration: Duration) -> String {
    Unit::Millisecond.format(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
}

impl Session {
    /// Returns the settings of now.
    pub fn saved(&self) -> Saved {
        Saved {
            settings: self.settings.get(),
            memory: self.limits.memory.get(),
            variables: self.variables.borrow().clone(),
        }
    }

    /// Makes the settings of now those that RESET goes back to.
    pub fn keep_settings(&self) {
        self.defaults.replace(self.saved());
    }

    /// Goes back to earlier settings.
    pub fn restore(&self, saved: Saved) {
        self.note_change();
        self.settings.set(saved.settings);
        self.limits.memory.set(saved.memory);
        self.variables.replace(saved.variables);
        self.note_settings();
    }

    /// Returns the value of a setting that is not the default.
    pub(super) fn variable(&self, name: &str) -> Option<Arc<str>> {
        self.variables.borrow().get(name)
    }

    /// Sets a setting that was checked, without its effects.
    pub(super) fn set_variable(&self, name: &str, value: Option<&str>) {
        self.note_change();
        self.variables.borrow_mut().set(name, value.map(str::to_owned));
    }

    /// Counts a change of settings.
    pub fn note_change(&self) {
        self.settings_version.set(self.settings_version.get() + 1);
    }

    /// Takes over `statement_timeout`, `search_path` and the planner's settings for the statements
    /// to come.
    pub(super) fn note_settings(&self) {
        self.note_text_settings();
        self.statement_timeout.set(self.timeout("statement_timeout"));
        self.note_search_path();
        self.note_roles();
        let is_off = |name: &str| self.variables.borrow().get(name).as_deref() == Some("off");
        self.turned_off.set(TurnedOff {
            hash_join: is_off("enable_hashjoin"),
            nested_loop: is_off("enable_nestloop"),
            index_scan: is_off("enable_indexscan"),
            bitmap_scan: is_off("enable_bitmapscan"),
            seq_scan: is_off("enable_seqscan"),
        });
        self.note_parallelism();
        self.note_commit_durability();
        let role = self.variables.borrow().get("session_replication_role");
        self.is_replica.set(role.as_deref() == Some("replica"));
        self.note_plan_key();
    }

    /// Takes over the workers that are allowed.
    fn note_parallelism(&self) {
        let number = |name: &str, unit: Unit| {
            let given = self.variables.borrow().get(name)?;
            u64::try_from(unit.parse(&given)?).ok()
        };
        let workers = number("max_parallel_workers_per_gather", Unit::One).unwrap_or(0);
        let blocks = number("min_parallel_table_scan_size", Unit::Block);
        // Without workers the size does not matter: all such plans are the same.
        let parallelism = match usize::try_from(workers) {
            Ok(workers) if workers > 0 => {
                Parallelism { workers, least_bytes: blocks.unwrap_or(LEAST_BLOCKS) * BLOCK }
            }
            _ => Parallelism::default(),
        };
        if self.parallelism.replace(parallelism) != parallelism {
            self.note_path_number();
        }
    }

    /// Takes over `synchronous_commit`. Once it was set, RESET asks for the durability of the
    /// environment: the transaction under way may have begun with another one.
    fn note_commit_durability(&self) {
        let environment = self.database.environment.durability();
        let given = self.variables.borrow().get("synchronous_commit");
        let durability = match given.as_deref() {
            // Without a log no commit waits for it.
            _ if environment == Durability::InMemory => None,
            Some("off") => Some(Durability::NoSync),
            Some(_) => Some(Durability::Sync),
            None => self.commit_durability.get().map(|_| environment),
        };
        self.commit_durability.set(durability);
    }

    /// Takes over the settings that plans depend on.
    pub fn note_plan_key(&self) {
        let TurnedOff { hash_join, nested_loop, index_scan, bitmap_scan, seq_scan } =
            self.turned_off.get();
        let mut key = self.path_number.get();
        for is_off in [hash_join, nested_loop, index_scan, bitmap_scan, seq_scan] {
            key = key << 1 | u64::from(is_off);
        }
        self.plan_key.set(key << 2 | self.way() as u64);
    }

    /// Takes over the settings of the texts of values. Literals are read when a statement is
    /// compiled, so other settings need other plans.
    fn note_text_settings(&self) {
        let variables = self.variables.borrow();
        let of_name = |settings: TextSettings, name: &str| match variables.get(name) {
            Some(value) => settings.with(name, &value),
            None => settings,
        };
        let settings = TextSettings::NAMES.into_iter().fold(TextSettings::DEFAULT, of_name);
        if self.clock.set_settings(settings) {
            self.note_path_number();
        }
    }

    /// Takes over `search_path`, with the schema of temporary objects.
    pub(in crate::session) fn note_search_path(&self) {
        let text = self.variables.borrow().get("search_path");
        let path: SearchPath = text.map(|text| path_schemas(&text).into());
        let path = self.temporary.path(path);
        if *self.search_path.borrow() != path {
            self.search_path.replace(path);
            self.note_path_number();
        }
    }

    /// Gives the search path, the roles and the settings of texts a number that no others of the
    /// process have had: a statement may be prepared by one session and executed by another.
    pub fn note_path_number(&self) {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let is_default = self.search_path.borrow().is_none()
            && [self.role.get(), self.session_user.get()] == [BOOTSTRAP; 2]
            && self.clock.settings() == TextSettings::DEFAULT
            && self.parallelism.get() == Parallelism::default();
        self.path_number.set(match is_default {
            true => 0,
            false => NEXT.fetch_add(1, Ordering::Relaxed),
        });
    }

    /// Returns a setting that is a time; `None` if it is off.
    pub fn timeout(&self, name: &str) -> Option<Duration> {
        let text = self.variables.borrow().get(name);
        let millis = text.and_then(|text| Unit::Millisecond.parse(&text)).unwrap_or(0);
        u64::try_from(millis).ok().filter(|millis| *millis > 0).map(Duration::from_millis)
    }

    /// Changes a setting; `None` is its default. Returns the value as SHOW does. Outside a
    /// transaction a local value ends with the statement.
    pub fn assign(
        &self,
        name: &str,
        value: Option<&str>,
        scope: SettingScope,
    ) -> Result<Option<String>> {
        let is_local = scope == SettingScope::Local;
        let ends_now = is_local && !self.in_transaction();
        let known = setting(name);
        let lower = name.to_lowercase();
        let is_engine = known.is_some_and(|known| matches!(known.kind, Kind::Engine));
        if is_engine && value.is_none() {
            return self.reset_engine(&lower).map(|()| None);
        }
        let mut settings = Settings::default();
        if let Some(value) = value
            && settings.set(&lower, &value.to_lowercase())?
        {
            let control = if lower.starts_with("transaction_") {
                Control::Transaction(settings)
            } else {
                Control::Set(settings, is_local)
            };
            if !ends_now {
                self.control(&control)?;
            }
            return self.show(name);
        }
        let checked = match (known, value) {
            (Some(known), Some(value)) => {
                let current = self.variables.borrow().get(&lower);
                Some(known.checked(value, current.as_deref().unwrap_or(known.default))?)
            }
            (Some(Setting { kind: Kind::Fact, .. }), None) => return Ok(None),
            (Some(_), None) => {
                self.defaults.borrow().variables.get(&lower).map(|value| value.to_string())
            }
            // A name with a dot belongs to a program.
            (None, value) if lower.contains('.') => value.map(str::to_owned),
            (None, _) => return Err(unrecognized(name)),
        };
        let is_session = lower == "session_authorization";
        if self.definer.get().is_some() && (is_session || lower == "role") {
            let message =
                format!("cannot set parameter \"{lower}\" within security-definer function");
            return Err(SqlError::new(SqlState::InsufficientPrivilege, message));
        }
        if let Some(name) = &checked
            && (is_session || lower == "role" && name != "none")
        {
            self.check_role_setting(&lower, name)?;
        }
        if known.is_some_and(|known| known.is_of_superusers) && !self.is_superuser()? {
            let message = format!("permission denied to set parameter \"{lower}\"");
            return Err(SqlError::new(SqlState::InsufficientPrivilege, message));
        }
        if ends_now {
            return Ok(checked);
        }
        self.change_settings(|committed| {
            let set = |variables: &mut Variables| {
                variables.set(&lower, checked.clone());
                if is_session {
                    variables.set("role", None);
                }
            };
            set(&mut self.variables.borrow_mut());
            if !is_local && let Some(committed) = committed {
                set(&mut committed.variables);
            }
        });
        self.note_settings();
        Ok(checked)
    }

    /// Resets a setting of the engine to that of the session's begin.
    fn reset_engine(&self, name: &str) -> Result<()> {
        let reset = |saved: &mut Saved| {
            let first = self.defaults.borrow();
            saved.settings.reset(name, first.settings);
            if name == "work_mem" {
                saved.memory = first.memory;
            }
        };
        self.change_settings(|committed| {
            let mut saved = self.saved();
            reset(&mut saved);
            self.restore(saved);
            if let Some(committed) = committed {
                reset(committed);
            }
        });
        Ok(())
    }

    /// Resets all settings.
    pub fn reset_all(&self) {
        let fresh = || self.defaults.borrow().clone();
        self.change_settings(|committed| {
            self.restore(fresh());
            self.statement_timeout.set(None);
            if let Some(committed) = committed {
                *committed = fresh();
            }
        });
    }

    /// Returns the value of a setting as SHOW does; `None` if there is no such setting.
    pub fn show(&self, name: &str) -> Result<Option<String>> {
        let lower = name.to_lowercase();
        let given = self.variables.borrow().get(&lower);
        match &lower[..] {
            "is_superuser" => {
                return Ok(Some(if self.is_superuser()? { "on" } else { "off" }.to_owned()));
            }
            "session_authorization" => return Ok(Some(self.role_name(true)?.to_string())),
            "synchronous_commit" if given.is_none() => {
                let environment = self.database.environment.durability();
                let waits = matches!(environment, Durability::Sync | Durability::InMemory);
                return Ok(Some(if waits { "on" } else { "off" }.to_owned()));
            }
            _ => {}
        }
        Ok(match setting(name) {
            Some(Setting { kind: Kind::Engine, .. }) => Some(self.show_engine(&lower)?),
            Some(known) => {
                Some(given.map_or_else(|| known.default.to_owned(), |it| it.to_string()))
            }
            None => given.map(|value| value.to_string()),
        })
    }

    /// Returns each setting: its name, its value as SHOW has it, and its description.
    pub fn show_all(&self) -> Result<Vec<[String; 3]>> {
        let row = |setting: &Setting| {
            let value = self.show(setting.name)?.unwrap_or_default();
            Ok([setting.name.to_owned(), value, setting.description.to_owned()])
        };
        settings().into_iter().map(row).collect()
    }

    fn show_engine(&self, name: &str) -> Result<String> {
        let session = self.settings.get();
        let own = match &*self.open.borrow() {
            Some(open) => {
                let late = Settings { read_only: open.read_only.get(), ..Settings::default() };
                late.or(open.settings).or(session)
            }
            None => session,
        };
        let environment = &self.database.environment;
        let isolation = |settings: Settings| match settings.isolation {
            Some(isolation) => Ok(isolation_name(isolation).to_owned()),
            None => {
                let transaction = environment.begin_with(TransactionOptions::new())?;
                Ok::<_, SqlError>(isolation_name(transaction.isolation()).to_owned())
            }
        };
        let on = |on: Option<bool>| (if on == Some(true) { "on" } else { "off" }).to_owned();
        Ok(match name {
            "transaction_isolation" => isolation(own)?,
            "default_transaction_isolation" => isolation(session)?,
            "transaction_read_only" => on(own.read_only),
            "default_transaction_read_only" => on(session.read_only),
            "durability" => own.durability.unwrap_or_else(|| environment.durability()).to_string(),
            "lock_timeout" => match own.lock_timeout {
                Some(timeout) => millis(timeout),
                // A transaction begins with the environment's timeout, and returns it when asked
                // for another.
                None => {
                    let transaction = environment.begin_with(TransactionOptions::new())?;
                    millis(transaction.set_lock_timeout(Duration::ZERO))
                }
            },
            "execution_mode" => match self.way() {
                ExecutionMode::Auto => "auto",
                ExecutionMode::Row => "row",
                ExecutionMode::Vectorized => "vectorized",
            }
            .to_owned(),
            _ => {
                let kilobytes = self.limits.memory.get() >> 10;
                Unit::Kilobyte.format(i64::try_from(kilobytes).unwrap_or(i64::MAX))
            }
        })
    }
}
