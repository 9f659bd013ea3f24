//! The names of relations in schemas, and of the schemas of a search path.
//!
//! - SCHEMA-NAME-1: a relation has a lookup name, unique in the catalog. In the schema `public` it
//!   is the relation's own name, in another one the schema's name, the character 0 and its own
//!   name. No name contains that character.
//! - SCHEMA-NAME-2: texts of views, defaults and checks name a relation of `public` without a
//!   schema, and others with one. They are bound without regard to `search_path`.

use quickbeam::invariant;

use smol_str::{SmolStr, format_smolstr};

/// The system columns, whose names no other column has.
pub const SYSTEM_COLUMNS: [&str; 6] = ["tableoid", "ctid", "xmax", "xmin", "cmin", "cmax"];

/// The schema that every environment has.
pub const PUBLIC: SmolStr = SmolStr::new_static("public");

/// The schemas of the system catalogs.
const SYSTEM: [&str; 2] = ["pg_catalog", "information_schema"];

/// Returns the schema of records that do not name one.
pub(crate) fn public() -> SmolStr {
    PUBLIC
}

pub(crate) fn is_public(schema: &SmolStr) -> bool {
    *schema == PUBLIC
}

/// Returns a relation's lookup name (SCHEMA-NAME-1).
#[must_use]
pub fn lookup_name(schema: &str, name: &str) -> SmolStr {
    invariant!(SCHEMA_NAME_1, !schema.contains('\0'), "schema {schema:?}");
    if schema == PUBLIC { SmolStr::new(name) } else { format_smolstr!("{schema}\0{name}") }
}

/// Returns the schema and the own name of a lookup name.
#[must_use]
pub fn split_lookup_name(name: &str) -> (SmolStr, &str) {
    match name.split_once('\0') {
        Some((schema, name)) => (schema.into(), name),
        None => (PUBLIC, name),
    }
}

/// Returns a lookup name as messages show it.
#[must_use]
pub fn shown_name(name: &str) -> String {
    name.trim_start_matches('\0').replace('\0', ".")
}

/// Returns the names of a `search_path`. Unquoted names are in lower case.
#[must_use]
pub fn path_names(path: &str) -> Vec<SmolStr> {
    let mut names = Vec::new();
    let (mut name, mut is_quoted, mut was_quoted) = (String::new(), false, false);
    for c in path.chars().chain([',']) {
        match c {
            '"' => {
                // A doubled quote within quotes is one quote.
                if !is_quoted && was_quoted {
                    name.push('"');
                }
                is_quoted = !is_quoted;
                was_quoted = true;
            }
            ',' if !is_quoted => {
                let done = std::mem::take(&mut name);
                let done = if was_quoted { &done[..] } else { done.trim() };
                // The empty name is that of no schema.
                if !done.is_empty() {
                    names.push(SmolStr::new(done));
                }
                was_quoted = false;
            }
            c if is_quoted => name.push(c),
            c if c.is_whitespace() => {}
            c => name.extend(c.to_lowercase()),
        }
    }
    names
}

/// Returns the schemas that a `search_path` names. `$user` stands for no schema.
#[must_use]
pub fn path_schemas(path: &str) -> Vec<SmolStr> {
    let mut names = path_names(path);
    names.retain(|name| name != "$user");
    names
}

/// The name that stands for the schema of the session's temporary objects.
pub const TEMPORARY_SCHEMA: &str = "pg_temp";

/// Returns whether a schema holds the temporary objects of a session.
#[must_use]
pub fn is_temporary_schema(name: &str) -> bool {
    name.strip_prefix(TEMPORARY_SCHEMA).is_some_and(|rest| rest.starts_with('_'))
}

/// Returns whether a schema holds the system catalogs.
#[must_use]
pub fn is_system_schema(name: &str) -> bool {
    SYSTEM.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_read_as_its_names() {
        for (path, names) in [
            ("\"$user\", public", &["$user", "public"][..]),
            ("App , \"My, \"\"S\"\"\",x", &["app", "My, \"S\"", "x"]),
            ("", &[]),
            ("\"\"", &[]),
        ] {
            assert_eq!(path_names(path), names, "{path}");
        }
    }

    #[test]
    fn a_lookup_name_has_its_schema() {
        for (schema, name, shown) in [("public", "t", "t"), ("app", "t", "app.t"), ("", "t", "t")] {
            let lookup = lookup_name(schema, name);
            assert_eq!(split_lookup_name(&lookup), (schema.into(), name));
            assert_eq!(shown_name(&lookup), shown);
        }
    }
}
