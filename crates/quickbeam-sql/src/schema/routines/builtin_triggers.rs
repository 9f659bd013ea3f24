//! The trigger functions of PostgreSQL that keep a vector of words.

use std::sync::{Arc, LazyLock};

use smol_str::SmolStr;

use super::{Language, ObjectId, Routine, RoutineResult, Volatility};

/// A trigger function that computes a column of type `tsvector` from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorTrigger {
    /// `tsvector_update_trigger`: an argument names the configuration.
    NamedConfiguration,
    /// `tsvector_update_trigger_column`: a column has the configuration.
    ConfigurationColumn,
}

use VectorTrigger::{ConfigurationColumn, NamedConfiguration};

/// The functions as objects. No object that a statement makes has their numbers.
static ROUTINES: LazyLock<[Arc<Routine>; 2]> = LazyLock::new(|| {
    [NamedConfiguration, ConfigurationColumn].map(|it| {
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

impl VectorTrigger {
    /// Returns the name of the function.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            NamedConfiguration => "tsvector_update_trigger",
            ConfigurationColumn => "tsvector_update_trigger_column",
        }
    }

    /// Returns the function of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<VectorTrigger> {
        [NamedConfiguration, ConfigurationColumn].into_iter().find(|it| it.name() == name)
    }

    /// Returns the number by which triggers refer to the function.
    const fn id(self) -> ObjectId {
        match self {
            NamedConfiguration => ObjectId(u32::MAX),
            ConfigurationColumn => ObjectId(u32::MAX - 1),
        }
    }

    /// Returns the function of that number.
    #[must_use]
    pub fn of(id: ObjectId) -> Option<VectorTrigger> {
        [NamedConfiguration, ConfigurationColumn].into_iter().find(|it| it.id() == id)
    }

    /// Returns the OID of the function.
    #[must_use]
    pub const fn oid(self) -> i64 {
        match self {
            NamedConfiguration => 3752,
            ConfigurationColumn => 3753,
        }
    }

    /// Returns the function as an object of the catalog.
    #[must_use]
    pub fn routine(self) -> &'static Arc<Routine> {
        let [named, of_column] = &*ROUTINES;
        match self {
            NamedConfiguration => named,
            ConfigurationColumn => of_column,
        }
    }
}
