//! The trigger functions of PostgreSQL.

use std::sync::{Arc, LazyLock};

use smol_str::SmolStr;

use super::{Language, ObjectId, Routine, RoutineResult, Volatility};

/// A trigger function that no statement makes. The first two compute a column of type `tsvector`
/// from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuiltinTrigger {
    /// `tsvector_update_trigger`: an argument names the configuration.
    NamedConfiguration,
    /// `tsvector_update_trigger_column`: a column has the configuration.
    ConfigurationColumn,
    /// `suppress_redundant_updates_trigger`: keeps UPDATE from rows that stay the same.
    SuppressUpdates,
}

use BuiltinTrigger::{ConfigurationColumn, NamedConfiguration, SuppressUpdates};

const ALL: [BuiltinTrigger; 3] = [NamedConfiguration, ConfigurationColumn, SuppressUpdates];

/// The functions as objects. No object that a statement makes has their numbers.
static ROUTINES: LazyLock<[Arc<Routine>; 3]> = LazyLock::new(|| {
    ALL.map(|it| {
        Arc::new(Routine {
            id: it.id(),
            schema: SmolStr::new_static("pg_catalog"),
            name: SmolStr::new_static(it.name()),
            language: Language::PlPgSql,
            arguments: Vec::new(),
            result: RoutineResult::Trigger,
            result_domain: None,
            returns_set: false,
            volatility: Volatility::Volatile,
            strict: false,
            security_definer: false,
            settings: Vec::new(),
            body: "".into(),
            aggregate: None,
            columns: Vec::new(),
        })
    })
});

impl BuiltinTrigger {
    /// Returns the name of the function.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            NamedConfiguration => "tsvector_update_trigger",
            ConfigurationColumn => "tsvector_update_trigger_column",
            SuppressUpdates => "suppress_redundant_updates_trigger",
        }
    }

    /// Returns the function of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<BuiltinTrigger> {
        ALL.into_iter().find(|it| it.name() == name)
    }

    /// Returns the number by which triggers refer to the function.
    const fn id(self) -> ObjectId {
        match self {
            NamedConfiguration => ObjectId(u32::MAX),
            ConfigurationColumn => ObjectId(u32::MAX - 1),
            SuppressUpdates => ObjectId(u32::MAX - 2),
        }
    }

    /// Returns the function of that number.
    #[must_use]
    pub fn of(id: ObjectId) -> Option<BuiltinTrigger> {
        ALL.into_iter().find(|it| it.id() == id)
    }

    /// Returns the OID of the function.
    #[must_use]
    pub const fn oid(self) -> i64 {
        match self {
            NamedConfiguration => 3752,
            ConfigurationColumn => 3753,
            SuppressUpdates => 1291,
        }
    }

    /// Returns the function as an object of the catalog.
    #[must_use]
    pub fn routine(self) -> &'static Arc<Routine> {
        let [named, of_column, suppresses] = &*ROUTINES;
        match self {
            NamedConfiguration => named,
            ConfigurationColumn => of_column,
            SuppressUpdates => suppresses,
        }
    }
}
