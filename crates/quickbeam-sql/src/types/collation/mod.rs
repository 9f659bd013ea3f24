//! Collations: the orders of texts.
//!
//! Most texts are in the order of their bytes and never come here. A text under a collation of
//! Unicode is compared by its sort key, which the library `icu_collator` makes. Such a key is a
//! value of an internal type ([`EncodedKind::Collated`]), whose bytes are the key and the text.
//!
//! [`DataType`] is copied freely, so that type has a number in the place of the
//! collation, as enumerated types have (`docs/adr/0009-enumerated-types.md`).
//!
//! - COLL-1: a number means the same collation as long as the process runs (by type)
//! - COLL-2: values under a deterministic collation are equal exactly if their bytes are: the text
//!   stands after its sort key.

mod collator;
mod derivation;
mod predefined;
pub(in crate::types) mod sort_key;

use std::hash::{Hash, Hasher};
use std::sync::{LazyLock, OnceLock, PoisonError, RwLock};

use icu_collator::CollatorBorrowed;
use quickbeam::invariant;
use smol_str::SmolStr;

pub use self::collator::{LIBRARY_VERSION, check_locale};
pub use self::derivation::Derivation;
pub use self::predefined::{Predefined, predefined};
use super::encoded::{EncodedKind, EncodedType};
use super::{ArrayBuilder, DataType, ElementType, Value, ValueRef};
use crate::error::{Result, SqlError};

/// The definition of a collation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollationDefinition {
    /// The number of the object in its catalog; `None` for a predefined collation.
    pub object: Option<u32>,
    /// Its schema.
    pub schema: SmolStr,
    /// Its name.
    pub name: SmolStr,
    /// The locale of ICU; `None` for the order of bytes.
    pub locale: Option<SmolStr>,
    /// Whether texts are equal only if their bytes are.
    pub is_deterministic: bool,
}

/// What an expression does with a text and a collation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollateStep {
    /// COLLATE: the text itself, of which the binder knows the collation.
    Named(Collation),
    /// The text with its sort key, to be compared.
    Key(Collation),
    /// The text of a sort key.
    Text,
    /// `lower`, `upper` and `initcap`, by the rules of the language.
    Letters(LetterForm, Collation),
}

/// The letters of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LetterForm {
    /// Small letters.
    Lower,
    /// Capital letters.
    Upper,
    /// A capital letter at the begin of each word.
    Title,
}

/// A collation and what was made of its definition.
struct Entry {
    number: u32,
    definition: CollationDefinition,
    collator: OnceLock<Option<CollatorBorrowed<'static>>>,
}

/// A collation.
#[derive(Clone, Copy)]
pub struct Collation(&'static Entry);

/// The collations by their numbers, which start at 1.
static KNOWN: LazyLock<RwLock<Vec<&'static Entry>>> = LazyLock::new(RwLock::default);

impl CollationDefinition {
    /// Returns the collation of a definition; `None` if no numbers are left.
    pub fn intern(self) -> Option<Collation> {
        let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = known.iter().find(|it| it.definition == self) {
            return Some(Collation(entry));
        }
        let number = u32::try_from(known.len() + 1).ok()?;
        if number > EncodedType::MAX_LENGTH {
            return None;
        }
        let entry = Entry { number, definition: self, collator: OnceLock::new() };
        let entry: &'static Entry = Box::leak(Box::new(entry));
        known.push(entry);
        Some(Collation(entry))
    }
}

/// The collation of [`Collation::of_blanks`].
static OF_BLANKS: LazyLock<Option<Collation>> = LazyLock::new(|| {
    let definition = CollationDefinition {
        object: None,
        schema: SmolStr::default(),
        name: SmolStr::default(),
        locale: None,
        is_deterministic: false,
    };
    definition.intern()
});

impl Collation {
    /// Returns the collation without a name under which texts are equal that differ in the blanks
    /// at their ends; `None` if no numbers are left. Values of `bpchar` are grouped under it.
    #[must_use]
    pub fn of_blanks() -> Option<Collation> {
        *OF_BLANKS
    }

    /// Returns the definition.
    #[must_use]
    pub fn definition(self) -> &'static CollationDefinition {
        &self.0.definition
    }

    /// Returns the name.
    #[must_use]
    pub fn name(self) -> &'static str {
        &self.0.definition.name
    }

    /// Returns whether texts are in the order of their bytes.
    #[must_use]
    pub fn is_by_bytes(self) -> bool {
        self.0.definition.locale.is_none()
    }

    /// Returns whether texts are equal only if their bytes are.
    #[must_use]
    pub fn is_deterministic(self) -> bool {
        self.0.definition.is_deterministic
    }

    /// Returns whether the letters of the language have other small or capital letters than those
    /// of most languages.
    #[must_use]
    pub fn has_other_letters(self) -> bool {
        let locale = self.0.definition.locale.as_deref().unwrap_or_default();
        let language = locale.split(['-', '_']).next().unwrap_or_default();
        ["tr", "az", "lt", "el", "hy", "nl"].iter().any(|it| language.eq_ignore_ascii_case(it))
    }

    /// Returns the internal type of the sort keys.
    #[must_use]
    pub(crate) fn key_type(self) -> EncodedType {
        EncodedType::new(EncodedKind::Collated, self.0.number)
    }

    /// Returns the collation of the number in a type of sort keys.
    #[must_use]
    pub(crate) fn of_key_type(encoded: EncodedType) -> Option<Collation> {
        if encoded.kind() != EncodedKind::Collated {
            return None;
        }
        let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
        known.get((encoded.length() as usize).checked_sub(1)?).map(|entry| Collation(entry))
    }

    fn collator(self) -> Result<&'static CollatorBorrowed<'static>> {
        let locale = self.0.definition.locale.as_deref().unwrap_or_default();
        let made = self.0.collator.get_or_init(|| collator::of_locale(locale).ok());
        match made {
            Some(collator) => Ok(collator),
            // The error says why there is none.
            None => Err(collator::of_locale(locale)
                .err()
                .unwrap_or_else(|| SqlError::internal("a collator that is not there"))),
        }
    }

    /// Returns whether texts under it have sort keys: it is one of ICU that the library has.
    #[must_use]
    pub fn has_sort_keys(self) -> bool {
        !self.is_by_bytes() && self.collator().is_ok()
    }

    /// Appends the sort key of a text, which ends with the text if the collation is deterministic
    /// (COLL-2).
    pub(crate) fn append_sort_key(self, text: &str, key: &mut Vec<u8>) -> Result<()> {
        if Some(self) == Collation::of_blanks() {
            key.extend_from_slice(text.trim_end_matches(' ').as_bytes());
            return Ok(());
        }
        collator::append_key(self.collator()?, text, key);
        if self.is_deterministic() {
            // No sort key has a byte as low.
            key.push(0);
            key.extend_from_slice(text.as_bytes());
        }
        let has_text = key.ends_with(text.as_bytes());
        invariant!(COLL_2, !self.is_deterministic() || has_text, "a key without {text:?}");
        Ok(())
    }

    /// Returns a value with these bytes as its sort key, which equals every text with that key.
    pub(crate) fn of_sort_key(self, key: Vec<u8>) -> Result<Value> {
        Ok(Value::Encoded(self.key_type(), sort_key::join(key, "")?.into()))
    }

    /// Returns the sort key of a text, with the text.
    pub(crate) fn key(self, text: &str) -> Result<Value> {
        let mut key = Vec::with_capacity(text.len() * 3 + 8);
        self.append_sort_key(text, &mut key)?;
        let bytes = sort_key::join(key, text)?;
        Ok(Value::Encoded(self.key_type(), bytes.into()))
    }
}

impl CollateStep {
    /// Returns the result for a value; `None`: the value as it is.
    pub(crate) fn apply(self, value: ValueRef<'_>) -> Result<Option<Value>> {
        match (self, value) {
            (CollateStep::Key(collation), ValueRef::Text(text)) => collation.key(text).map(Some),
            (CollateStep::Text, ValueRef::Encoded(_, bytes)) => {
                let text = sort_key::text(bytes);
                let text = text.ok_or_else(|| SqlError::internal("a damaged sort key"))?;
                Ok(Some(Value::text(text)))
            }
            (CollateStep::Key(collation), ValueRef::Array(array)) => {
                let element = ElementType::new(DataType::Encoded(collation.key_type()));
                let element = element.ok_or_else(|| SqlError::internal("keys have no arrays"))?;
                let mut keys = ArrayBuilder::new(element);
                for member in array.iter() {
                    let key = self.apply(member)?;
                    keys.push(key.as_ref().map_or(ValueRef::Null, Value::as_ref))?;
                }
                Ok(Some(Value::Array(keys.finish(&array.dimensions())?)))
            }
            (CollateStep::Letters(form, collation), ValueRef::Text(text)) => {
                let locale = collation.0.definition.locale.as_deref().unwrap_or_default();
                Ok(Some(Value::Text(collator::with_letters(text, locale, form)?)))
            }
            (_, ValueRef::Null) | (CollateStep::Named(_), _) => Ok(None),
            _ => Err(SqlError::internal("a collation of no text")),
        }
    }
}

impl PartialEq for Collation {
    fn eq(&self, other: &Collation) -> bool {
        self.0.number == other.0.number
    }
}

impl Eq for Collation {}

impl Hash for Collation {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.number.hash(state);
    }
}

impl std::fmt::Debug for Collation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use proptest::prelude::*;

    use super::*;

    fn made(locale: &str, is_deterministic: bool) -> Collation {
        let definition = CollationDefinition {
            object: Some(0),
            schema: "public".into(),
            name: SmolStr::new(locale),
            locale: Some(locale.into()),
            is_deterministic,
        };
        definition.intern().unwrap()
    }

    fn order(collation: Collation, a: &str, b: &str) -> Ordering {
        let [a, b] = [a, b].map(|text| collation.key(text).unwrap());
        a.compare(&b).unwrap()
    }

    #[test]
    fn version_is_that_of_the_library() {
        let lock = include_str!("../../../../../Cargo.lock");
        for name in ["icu_collator", "icu_collator_data", "icu_normalizer_data", "icu_casemap"] {
            let (_, rest) = lock.split_once(&format!("name = \"{name}\"\nversion = \"")).unwrap();
            let version = rest.split('"').next().unwrap();
            assert_eq!(format!("icu4x-{version}"), LIBRARY_VERSION, "{name}");
        }
    }

    #[test]
    fn every_predefined_locale_has_a_collator() {
        for known in predefined() {
            let locale = known.collation.definition().locale.as_deref();
            // The library has no order of POSIX.
            if let Some(locale) = locale.filter(|it| !it.ends_with("va-posix")) {
                check_locale(locale).unwrap();
            }
        }
        assert_eq!(predefined().count(), 811);
        for wrong in
            ["und-u-ks-level9", "und-u-kr-latn", "de@collation=phonebook", "und-u-co-search"]
        {
            assert!(check_locale(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn keys_order_texts_as_the_collator_does(
            a in "[a-cA-Cäéß \u{0}\u{1}\u{301}-]{0,6}|.{0,6}",
            b in "[a-cA-Cäéß \u{0}\u{1}\u{301}-]{0,6}|.{0,6}",
        ) {
            for locale in ["und", "sv", "und-u-ks-level2", "en-u-kn-true", "und-u-kf-upper"] {
                let by_library = collator::of_locale(locale).unwrap().compare(&a, &b);
                prop_assert_eq!(order(made(locale, false), &a, &b), by_library);
                let by_bytes = by_library.then_with(|| a.cmp(&b));
                prop_assert_eq!(order(made(locale, true), &a, &b), by_bytes);
            }
        }

        #[test]
        fn keys_give_their_texts_back(text in ".{0,12}") {
            let key = made("de", true).key(&text).unwrap();
            let found = CollateStep::Text.apply(key.as_ref()).unwrap();
            prop_assert_eq!(found, Some(Value::text(&text)));
        }
    }
}
