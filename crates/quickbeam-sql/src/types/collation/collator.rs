//! Collators of locales. The only file that knows the library.

use std::convert::Infallible;

use icu_casemap::options::TitlecaseOptions;
use icu_casemap::{CaseMapper, TitlecaseMapper};
use icu_collator::options::{AlternateHandling, CaseLevel, CollatorOptions, MaxVariable, Strength};
use icu_collator::{CollatorBorrowed, CollatorPreferences};
use icu_locale_core::Locale;
use icu_locale_core::extensions::unicode::{Key, key};

use smol_str::SmolStr;
use unicode_segmentation::UnicodeSegmentation;

use super::LetterForm;
use crate::error::{Result, SqlError, SqlState};

/// The version of the library's order, which `pg_collation.collversion` shows. It changes with each
/// release of the library, because a release may change the order of texts.
pub const LIBRARY_VERSION: &str = "icu4x-2.4.0";

/// Keywords of a locale that change the order, and that the library has.
const KEYWORDS: [Key; 7] =
    [key!("co"), key!("ks"), key!("ka"), key!("kc"), key!("kf"), key!("kn"), key!("kv")];

/// The colons, which are punctuation in words of some languages.
const COLONS: [char; 3] = [':', '\u{FE55}', '\u{FF1A}'];

/// Orders of some languages besides the usual one. The library has no orders for searching.
const TYPES: [&str; 12] = [
    "compat", "dict", "emoji", "eor", "phonebk", "phonetic", "pinyin", "standard", "stroke",
    "trad", "unihan", "zhuyin",
];

#[cold]
fn invalid(locale: &str, why: &str) -> SqlError {
    let message = format!("could not open collator for locale \"{locale}\": {why}");
    SqlError::new(SqlState::InvalidParameterValue, message)
}

#[cold]
fn unknown(locale: &str, part: &str) -> SqlError {
    SqlError::unsupported(format!("the keyword \"{part}\" in the locale \"{locale}\""))
}

/// Checks that the library has a collator of a locale.
pub fn check_locale(locale: &str) -> Result<()> {
    of_locale(locale).map(|_| ())
}

fn parsed(written: &str) -> Result<Locale> {
    let tag = written.replace('_', "-");
    let tag = match tag.as_str() {
        "" | "root" | "C" | "POSIX" => "und",
        tag => tag,
    };
    Locale::try_from_str(tag).map_err(|error| invalid(written, &error.to_string()))
}

/// Returns a text with other letters, by the rules of a locale.
pub(super) fn with_letters(text: &str, locale: &str, form: LetterForm) -> Result<SmolStr> {
    let language = parsed(locale)?.id;
    let mapper = CaseMapper::new();
    Ok(SmolStr::new(match form {
        LetterForm::Lower => mapper.lowercase_to_string(text, &language),
        LetterForm::Upper => mapper.uppercase_to_string(text, &language),
        LetterForm::Title => {
            let (mapper, options) = (TitlecaseMapper::new(), TitlecaseOptions::default());
            let title = |word| mapper.titlecase_segment_to_string(word, &language, options);
            // A colon ends a word of ICU, unlike one of the Unicode Standard.
            let words = text.split_word_bounds().flat_map(|word| word.split_inclusive(COLONS));
            words.map(title).collect::<String>().into()
        }
    }))
}

/// Returns the collator of a locale, as `de-AT` or `und-u-ks-level2`.
pub(super) fn of_locale(written: &str) -> Result<CollatorBorrowed<'static>> {
    if written.contains('@') {
        return Err(SqlError::unsupported("keywords after @ in a locale")
            .with_hint("Write them as in 'de-u-co-phonebk'."));
    }
    let locale = parsed(written)?;
    let keywords = &locale.extensions.unicode.keywords;
    let mut options = CollatorOptions::default();
    for (key, value) in keywords.iter() {
        let value = value.to_string();
        let part = || format!("{key}-{value}");
        if !KEYWORDS.contains(key) {
            return Err(unknown(written, &part()));
        }
        match (key.as_str(), value.as_str()) {
            ("ks", strength) => {
                options.strength = Some(match strength {
                    "level1" => Strength::Primary,
                    "level2" => Strength::Secondary,
                    "level3" => Strength::Tertiary,
                    "level4" => Strength::Quaternary,
                    "identic" => Strength::Identical,
                    _ => return Err(unknown(written, &part())),
                });
            }
            ("ka", handling) => {
                options.alternate_handling = Some(match handling {
                    "noignore" => AlternateHandling::NonIgnorable,
                    "shifted" => AlternateHandling::Shifted,
                    _ => return Err(unknown(written, &part())),
                });
            }
            ("kc", level) => {
                options.case_level = Some(match level {
                    "" | "true" => CaseLevel::On,
                    "false" => CaseLevel::Off,
                    _ => return Err(unknown(written, &part())),
                });
            }
            ("kv", variable) => {
                options.max_variable = Some(match variable {
                    "space" => MaxVariable::Space,
                    "punct" => MaxVariable::Punctuation,
                    "symbol" => MaxVariable::Symbol,
                    "currency" => MaxVariable::Currency,
                    _ => return Err(unknown(written, &part())),
                });
            }
            ("kf", "upper" | "lower" | "false") | ("kn", "" | "true" | "false") => {}
            ("co", order) if TYPES.contains(&order) => {}
            _ => return Err(unknown(written, &part())),
        }
    }
    let preferences = CollatorPreferences::from(&locale);
    CollatorBorrowed::try_new(preferences, options)
        .map_err(|error| invalid(written, &error.to_string()))
}

/// Appends the sort key of a text.
pub(super) fn append_key(collator: &CollatorBorrowed<'_>, text: &str, key: &mut Vec<u8>) {
    let done: std::result::Result<(), Infallible> = collator.write_sort_key_to(text, key);
    let Ok(()) = done;
}
