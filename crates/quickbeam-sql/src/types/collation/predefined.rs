//! The predefined collations: those of PostgreSQL, with its OIDs.

use std::collections::HashMap;
use std::sync::LazyLock;

use smol_str::{SmolStr, format_smolstr};

use super::{Collation, CollationDefinition};

/// The locales of the collations of ICU, in the order of their OIDs.
static LOCALES: &str = include_str!("locales.txt");

/// The OID of the first of them.
const FIRST_LOCALE: u32 = 12_342;

/// The collations by bytes, with their OIDs and with `collcollate`.
const BY_BYTES: [(&str, u32, Option<&str>); 5] = [
    ("default", 100, None),
    ("C", 950, Some("C")),
    ("POSIX", 951, Some("POSIX")),
    ("ucs_basic", 12_340, Some("C")),
    ("C.utf8", 12_341, Some("C.utf8")),
];

/// A predefined collation.
#[derive(Clone, Copy, Debug)]
pub struct Predefined {
    /// Its OID.
    pub oid: u32,
    /// The collation.
    pub collation: Collation,
    /// `collcollate`; `None` for the default and for those of ICU.
    pub libc: Option<&'static str>,
}

static PREDEFINED: LazyLock<Vec<Predefined>> = LazyLock::new(|| {
    let make = |name: SmolStr, locale: Option<&str>, oid: u32, libc: Option<&'static str>| {
        let definition = CollationDefinition {
            object: None,
            schema: SmolStr::new_static("pg_catalog"),
            name,
            locale: locale.map(SmolStr::new),
            is_deterministic: true,
        };
        Some(Predefined { oid, collation: definition.intern()?, libc })
    };
    let by_bytes = BY_BYTES.iter().map(|(name, oid, libc)| make((*name).into(), None, *oid, *libc));
    let locales = LOCALES
        .lines()
        .zip(FIRST_LOCALE..)
        .map(|(locale, oid)| make(format_smolstr!("{locale}-x-icu"), Some(locale), oid, None));
    by_bytes.chain(locales).flatten().collect()
});

static BY_NAME: LazyLock<HashMap<&str, &Predefined>> =
    LazyLock::new(|| PREDEFINED.iter().map(|it| (it.collation.name(), it)).collect());

/// Returns the predefined collations, in the order of their OIDs.
pub fn predefined() -> impl Iterator<Item = &'static Predefined> {
    PREDEFINED.iter()
}

impl Predefined {
    /// Returns the predefined collation of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Predefined> {
        BY_NAME.get(name).copied()
    }
}

impl Collation {
    /// Returns the OID of a predefined collation.
    #[must_use]
    pub fn predefined_oid(self) -> Option<u32> {
        Predefined::named(self.name()).filter(|it| it.collation == self).map(|it| it.oid)
    }

    /// Returns whether it is the collation `default`.
    #[must_use]
    pub fn is_default(self) -> bool {
        self.definition().object.is_none() && self.name() == "default"
    }
}
