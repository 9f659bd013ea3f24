//! Documents as the words that a full-text search finds: tokens of a text, the configurations that
//! say what becomes of them, and the dictionaries that make words of them.

mod configurations;
mod documents;
mod headline;
mod tokens;

pub use configurations::{Configuration, Dictionary, configuration_named, dictionary_named};
pub use documents::{DocumentWords, MorphJoin, query_sink};
pub use headline::{HeadlineOptions, headline_of};
pub use tokens::{TokenKind, Tokens};
