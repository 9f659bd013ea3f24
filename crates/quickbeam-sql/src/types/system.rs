//! The types of the system catalogs: object identifiers, names and vectors.
//!
//! A value of `oid`, `xid` and a `reg…` type is [`Value::Oid`]. The name of the object is looked up
//! where the value leaves the statement or becomes a text. A value of `name`, `"char"` and
//! `jsonpath` is a text. A value of a vector is an array whose subscripts start at 0.
//!
//! [`Value::Oid`]: super::Value::Oid

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::DataType;
use super::json::path_syntax::JsonPath;
use crate::error::Result;

/// Maximum bytes of a `name`.
const NAME_LIMIT: usize = 63;

/// A type of the system catalogs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SystemType {
    /// `oid`: the number of an object.
    Oid,
    /// `name`: a text of at most 63 bytes.
    Name,
    /// `"char"`: a text of at most one byte.
    SingleChar,
    /// `xid`: the number of a transaction.
    Xid,
    /// `regclass`: a relation.
    Regclass,
    /// `regtype`: a type.
    Regtype,
    /// `regnamespace`: a schema.
    Regnamespace,
    /// `regproc`: a function, by its name alone.
    Regproc,
    /// `regprocedure`: a function, by its name and arguments.
    Regprocedure,
    /// `regrole`: a role.
    Regrole,
    /// `int2vector`: numbers of columns.
    Int2Vector,
    /// `oidvector`: object identifiers.
    OidVector,
    /// `regconfig`: a text search configuration.
    Regconfig,
    /// `regdictionary`: a text search dictionary.
    Regdictionary,
    /// `jsonpath`: a path in JSONB, as a text.
    Jsonpath,
}

impl SystemType {
    /// All types of the system catalogs.
    pub const ALL: [SystemType; 15] = [
        SystemType::Oid,
        SystemType::Name,
        SystemType::SingleChar,
        SystemType::Xid,
        SystemType::Regclass,
        SystemType::Regtype,
        SystemType::Regnamespace,
        SystemType::Regproc,
        SystemType::Regprocedure,
        SystemType::Regrole,
        SystemType::Int2Vector,
        SystemType::OidVector,
        SystemType::Regconfig,
        SystemType::Regdictionary,
        SystemType::Jsonpath,
    ];

    /// Returns the name in `pg_type`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            SystemType::Oid => "oid",
            SystemType::Name => "name",
            SystemType::SingleChar => "char",
            SystemType::Xid => "xid",
            SystemType::Regclass => "regclass",
            SystemType::Regtype => "regtype",
            SystemType::Regnamespace => "regnamespace",
            SystemType::Regproc => "regproc",
            SystemType::Regprocedure => "regprocedure",
            SystemType::Regrole => "regrole",
            SystemType::Int2Vector => "int2vector",
            SystemType::OidVector => "oidvector",
            SystemType::Regconfig => "regconfig",
            SystemType::Regdictionary => "regdictionary",
            SystemType::Jsonpath => "jsonpath",
        }
    }

    /// Returns the number in `pg_type`, and that of the arrays of the type.
    #[must_use]
    pub const fn oids(self) -> (u32, u32) {
        match self {
            SystemType::Oid => (26, 1028),
            SystemType::Name => (19, 1003),
            SystemType::SingleChar => (18, 1002),
            SystemType::Xid => (28, 1011),
            SystemType::Regclass => (2205, 2210),
            SystemType::Regtype => (2206, 2211),
            SystemType::Regnamespace => (4089, 4090),
            SystemType::Regproc => (24, 1008),
            SystemType::Regprocedure => (2202, 2207),
            SystemType::Regrole => (4096, 4097),
            SystemType::Int2Vector => (22, 1006),
            SystemType::OidVector => (30, 1013),
            SystemType::Regconfig => (3734, 3735),
            SystemType::Regdictionary => (3769, 3770),
            SystemType::Jsonpath => (4072, 4073),
        }
    }

    /// Returns whether a value names an object.
    #[must_use]
    pub const fn is_reference(self) -> bool {
        matches!(
            self,
            SystemType::Regclass
                | SystemType::Regtype
                | SystemType::Regnamespace
                | SystemType::Regproc
                | SystemType::Regprocedure
                | SystemType::Regrole
                | SystemType::Regconfig
                | SystemType::Regdictionary
        )
    }

    /// Returns whether a value is a number of four bytes.
    #[must_use]
    pub const fn is_number(self) -> bool {
        matches!(self, SystemType::Oid | SystemType::Xid) || self.is_reference()
    }

    /// Returns whether a value is a text.
    #[must_use]
    pub const fn is_text(self) -> bool {
        matches!(self, SystemType::Name | SystemType::SingleChar | SystemType::Jsonpath)
    }

    /// Returns the type of that name in `pg_type`.
    #[must_use]
    pub fn named(name: &str) -> Option<SystemType> {
        SystemType::ALL.into_iter().find(|known| known.name() == name)
    }

    /// Returns the type of a vector's elements.
    #[must_use]
    pub const fn vector_element(self) -> Option<DataType> {
        match self {
            SystemType::Int2Vector => Some(DataType::SmallInt),
            SystemType::OidVector => Some(DataType::System(SystemType::Oid)),
            _ => None,
        }
    }

    /// Returns a text as a value of the type.
    pub(super) fn text(self, text: &str) -> Result<Cow<'_, str>> {
        match self {
            SystemType::Jsonpath => Ok(Cow::Owned(JsonPath::parse(text)?.to_string())),
            _ => Ok(Cow::Borrowed(self.cut(text))),
        }
    }

    /// Returns the text without what is beyond the type's length.
    fn cut(self, text: &str) -> &str {
        let limit = match self {
            SystemType::Name => NAME_LIMIT,
            SystemType::SingleChar => text.chars().next().map_or(0, char::len_utf8),
            _ => text.len(),
        };
        let end = (0..=limit.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
        &text[..end.unwrap_or(0)]
    }
}
