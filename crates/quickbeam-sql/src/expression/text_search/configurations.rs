//! Text search configurations and dictionaries: those of PostgreSQL whose stemmers are in the
//! program, with PostgreSQL's numbers.

use std::collections::HashSet;
use std::sync::LazyLock;

use rust_stemmers::{Algorithm, Stemmer};

use super::TokenKind;

/// A language that words are stemmed in.
#[derive(Debug)]
struct StemLanguage {
    name: &'static str,
    /// The number of the configuration; that of the dictionary is one less.
    oid: u32,
    algorithm: Algorithm,
}

macro_rules! languages {
    ($($name:literal, $oid:literal, $algorithm:ident;)*) => {
        static LANGUAGES: &[StemLanguage] = &[$(StemLanguage {
            name: $name,
            oid: $oid,
            algorithm: Algorithm::$algorithm,
        },)*];
    };
}

languages! {
    "danish", 13_160, Danish;
    "dutch", 13_162, Dutch;
    "english", 13_164, English;
    "finnish", 13_166, Finnish;
    "german", 13_170, German;
    "greek", 13_172, Greek;
    "hungarian", 13_176, Hungarian;
    "italian", 13_182, Italian;
    "norwegian", 13_188, Norwegian;
    "portuguese", 13_190, Portuguese;
    "romanian", 13_192, Romanian;
    "russian", 13_194, Russian;
    "spanish", 13_198, Spanish;
    "swedish", 13_200, Swedish;
    "tamil", 13_202, Tamil;
    "turkish", 13_204, Turkish;
}

/// The number of the configuration `simple`, and that of the dictionary.
const SIMPLE: u32 = 3748;
const SIMPLE_DICTIONARY: u32 = 3765;

/// Bytes of the longest word that is stemmed.
const LONGEST: usize = 1000;

/// The words that a search leaves out, a language a line: those of the Snowball project, as
/// PostgreSQL 15 has them.
static STOP_WORDS: LazyLock<Vec<HashSet<&'static str>>> = LazyLock::new(|| {
    let lines = || include_str!("stop_words.tsv").lines();
    let words = |language: &StemLanguage| {
        let of_language = |line: &'static str| line.strip_prefix(language.name)?.strip_prefix('\t');
        let words = lines().find_map(of_language).unwrap_or_default();
        words.split_whitespace().collect()
    };
    LANGUAGES.iter().map(words).collect()
});

/// A dictionary: what makes words of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dictionary {
    /// The lower-case letters of the token.
    Simple,
    /// The stem of the token, in the language with that number.
    Stem(usize),
}

/// A configuration: which dictionary a token of each kind has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Configuration {
    /// Every word as it is.
    Simple,
    /// The words of the language with that number.
    Of(usize),
}

/// Returns the lower-case letter, one for one.
fn lower(letter: char) -> char {
    let mut letters = letter.to_lowercase();
    match (letters.next(), letters.len()) {
        (Some(one), 0) => one,
        // The only letter that becomes two.
        _ => 'i',
    }
}

/// Returns the name without the schema of the system, unless it names another schema.
fn plain_name(name: &str) -> Option<&str> {
    match name.trim().split_once('.') {
        None => Some(name.trim()),
        Some(("pg_catalog", name)) => Some(name),
        Some(_) => None,
    }
}

fn language_named(name: &str) -> Option<usize> {
    LANGUAGES.iter().position(|known| known.name == name)
}

/// Returns the configuration of a name.
pub fn configuration_named(name: &str) -> Option<Configuration> {
    match plain_name(name)? {
        "simple" => Some(Configuration::Simple),
        name => language_named(name).map(Configuration::Of),
    }
}

/// Returns the dictionary of a name.
pub fn dictionary_named(name: &str) -> Option<Dictionary> {
    match plain_name(name)? {
        "simple" => Some(Dictionary::Simple),
        name => language_named(name.strip_suffix("_stem")?).map(Dictionary::Stem),
    }
}

impl Configuration {
    /// Returns all configurations.
    pub fn all() -> impl Iterator<Item = Configuration> {
        let languages = (0..LANGUAGES.len()).map(Configuration::Of);
        std::iter::once(Configuration::Simple).chain(languages)
    }

    /// Returns the configuration with that number.
    pub fn numbered(oid: u32) -> Option<Configuration> {
        Configuration::all().find(|known| known.oid() == oid)
    }

    /// Returns the number.
    pub fn oid(self) -> u32 {
        match self {
            Configuration::Simple => SIMPLE,
            Configuration::Of(language) => LANGUAGES[language].oid,
        }
    }

    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Configuration::Simple => "simple",
            Configuration::Of(language) => LANGUAGES[language].name,
        }
    }

    /// Returns the dictionary of tokens of a kind; `None` if they are no words.
    pub fn dictionary(self, kind: TokenKind) -> Option<Dictionary> {
        use TokenKind as T;
        let language = match self {
            Configuration::Simple => None,
            Configuration::Of(language) => Some(language),
        };
        Some(match kind {
            T::Blank | T::Tag | T::Protocol | T::Entity => return None,
            T::AsciiWord | T::HyphenatedAsciiPart | T::HyphenatedAscii => {
                // Words without other letters are not Russian.
                let is_foreign = self.name() == "russian";
                let language = if is_foreign { language_named("english") } else { language };
                language.map_or(Dictionary::Simple, Dictionary::Stem)
            }
            T::Word | T::HyphenatedPart | T::Hyphenated => {
                language.map_or(Dictionary::Simple, Dictionary::Stem)
            }
            _ => Dictionary::Simple,
        })
    }
}

impl Dictionary {
    /// Returns all dictionaries.
    pub fn all() -> impl Iterator<Item = Dictionary> {
        let stems = (0..LANGUAGES.len()).map(Dictionary::Stem);
        std::iter::once(Dictionary::Simple).chain(stems)
    }

    /// Returns the dictionary with that number.
    pub fn numbered(oid: u32) -> Option<Dictionary> {
        Dictionary::all().find(|known| known.oid() == oid)
    }

    /// Returns the number.
    pub fn oid(self) -> u32 {
        match self {
            Dictionary::Simple => SIMPLE_DICTIONARY,
            Dictionary::Stem(language) => LANGUAGES[language].oid - 1,
        }
    }

    /// Returns the name.
    pub fn name(self) -> String {
        match self {
            Dictionary::Simple => "simple".to_owned(),
            Dictionary::Stem(language) => format!("{}_stem", LANGUAGES[language].name),
        }
    }

    /// Returns the word of a token; `None` if a search leaves it out.
    pub fn word(self, token: &str) -> Option<String> {
        let word: String = token.chars().map(lower).collect();
        let Dictionary::Stem(language) = self else { return Some(word) };
        if word.len() > LONGEST {
            return Some(word);
        }
        if word.is_empty() || STOP_WORDS[language].contains(&*word) {
            return None;
        }
        let stemmer = Stemmer::create(LANGUAGES[language].algorithm);
        let stem = stemmer.stem(&word);
        // A word of nothing but an ending stays.
        Some(if stem.is_empty() { word } else { stem.into_owned() })
    }
}
