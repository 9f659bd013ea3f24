//! The functions in `pg_proc`: those of PostgreSQL 15 that exist here, with its OIDs, and the ones
//! that its types and access methods name.

use std::sync::LazyLock;

use super::type_named;

/// A row of `pg_proc`.
#[derive(Debug)]
pub struct Procedure {
    /// Its OID.
    pub oid: u32,
    /// Its name.
    pub name: &'static str,
    /// `f` for a function, `a` for an aggregate, `w` for a window function.
    pub kind: &'static str,
    /// `i` for immutable, `s` for stable, `v` for volatile.
    pub volatility: &'static str,
    /// Whether a NULL argument makes the result NULL.
    pub is_strict: bool,
    /// Whether it returns rows.
    pub returns_set: bool,
    /// The OID of the type of the last argument's elements, if that is VARIADIC, or 0.
    pub variadic: u32,
    /// The OID of the type of the result.
    pub result: u32,
    /// The OIDs of the types of the arguments.
    pub arguments: Vec<u32>,
    /// The arguments as they are declared, if they have names, defaults or outputs.
    pub declared: &'static str,
    /// The result as it is declared, if that is not its type.
    pub declared_result: &'static str,
}

static PROCEDURES: LazyLock<Vec<Procedure>> = LazyLock::new(|| {
    let row = |line: &'static str| {
        let mut fields = line.split('\t');
        Some(Procedure {
            oid: fields.next()?.parse().ok()?,
            name: fields.next()?,
            kind: fields.next()?,
            volatility: fields.next()?,
            is_strict: fields.next()? == "t",
            returns_set: fields.next()? == "t",
            variadic: fields.next()?.parse().ok()?,
            result: fields.next()?.parse().ok()?,
            arguments: fields.next()?.split_whitespace().filter_map(|it| it.parse().ok()).collect(),
            declared: fields.next().unwrap_or_default(),
            declared_result: fields.next().unwrap_or_default(),
        })
    };
    include_str!("rows/pg_proc.tsv").lines().filter_map(row).collect()
});

/// Returns all functions.
pub fn procedures() -> impl Iterator<Item = &'static Procedure> {
    PROCEDURES.iter()
}

/// Returns the first function of that name.
#[must_use]
pub fn procedure_named(name: &str) -> Option<&'static Procedure> {
    procedures().find(|known| known.name == name)
}

/// Returns the function with that OID.
#[must_use]
pub fn procedure(oid: u32) -> Option<&'static Procedure> {
    procedures().find(|known| known.oid == oid)
}

impl Procedure {
    /// Returns the types of the arguments as `pg_get_function_arguments()` does.
    #[must_use]
    pub fn argument_list(&self) -> String {
        if !self.declared.is_empty() {
            return self.declared.to_owned();
        }
        let last = self.arguments.len().saturating_sub(1);
        let one = |(at, oid): (usize, &u32)| {
            let is_variadic = self.variadic != 0 && at == last;
            let name = type_named((*oid).into(), None).unwrap_or_else(|| "???".into());
            if is_variadic { format!("VARIADIC {name}") } else { name }
        };
        let all: Vec<String> = self.arguments.iter().enumerate().map(one).collect();
        all.join(", ")
    }

    /// Returns the name with the types of the arguments, as `regprocedure` shows it.
    #[must_use]
    pub fn signature(&self) -> String {
        let name = |oid: &u32| type_named((*oid).into(), None).unwrap_or_else(|| "???".into());
        let all: Vec<String> = self.arguments.iter().map(name).collect();
        format!("{}({})", self.name, all.join(","))
    }

    /// Returns the type of the result as `pg_get_function_result()` does.
    #[must_use]
    pub fn result_name(&self) -> String {
        if !self.declared_result.is_empty() {
            return self.declared_result.to_owned();
        }
        let name = type_named(self.result.into(), None).unwrap_or_else(|| "???".into());
        if self.returns_set { format!("SETOF {name}") } else { name }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_pg_proc_is_a_function() {
        assert_eq!(procedures().count(), include_str!("rows/pg_proc.tsv").lines().count());
        let absolute = procedures().find(|known| known.name == "abs").unwrap();
        assert!(absolute.is_strict && !absolute.returns_set);
        assert_eq!(procedure_named("boolin").unwrap().oid, 1242);
        assert_eq!(procedure(1242).unwrap().signature(), "boolin(cstring)");
    }
}
