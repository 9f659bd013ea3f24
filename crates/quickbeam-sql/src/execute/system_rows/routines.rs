//! Catalogs of functions and procedures.

use super::information_schema::{qualified, routine_type};
use super::{NAME, SystemRow, SystemSource};
use crate::catalog::system::{
    argument_oid, domain_oid, object_oid, procedure_named, procedures, row_type_oid, type_named,
    type_oid, type_row,
};
use crate::catalog::{
    AclKind, Argument, ArgumentMode, FunctionName, Language, Routine, RoutineResult, lookup_name,
};
use crate::types::{DataType, Value};

/// The OIDs of pseudo-types in PostgreSQL.
const VOID: i64 = 2278;
const RECORD: i64 = 2249;
const TRIGGER: i64 = 2279;

/// The OID of the language of functions in C.
const INTERNAL: i64 = 12;

/// The OIDs of the languages.
fn language_oid(language: Language) -> i64 {
    match language {
        Language::Sql => 14,
        Language::PlPgSql => 13_563,
    }
}

/// Returns the OID of the type of a result.
fn result_oid(routine: &Routine) -> i64 {
    match &routine.result {
        RoutineResult::Void => VOID,
        RoutineResult::Trigger => TRIGGER,
        RoutineResult::Procedure if routine.outputs().next().is_none() => VOID,
        RoutineResult::Columns | RoutineResult::Procedure | RoutineResult::Record => RECORD,
        RoutineResult::Pseudo(pseudo) => pseudo.oid(),
        RoutineResult::Value(data_type) => match &routine.result_domain {
            Some(domain) => domain_oid(domain.used),
            None => type_oid(*data_type),
        },
        RoutineResult::Row(table) => row_type_oid(*table),
    }
}

fn array(items: impl Iterator<Item = String>) -> String {
    format!("{{{}}}", items.collect::<Vec<_>>().join(","))
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn small(number: usize) -> Value {
    Value::SmallInt(i16::try_from(number).unwrap_or(i16::MAX))
}

fn pg_proc(row: &mut SystemRow<'_>, routine: &Routine) {
    let inputs: Vec<&Argument> = match routine.is_procedure() {
        true => routine.identity().collect(),
        false => routine.inputs().collect(),
    };
    let oid = |it: &Argument| argument_oid(it).to_string();
    row.set("oid", object_oid(routine.id)).text("proname", &routine.name);
    match &routine.aggregate {
        Some(_) => row.set("prolang", INTERNAL).text("prosrc", "aggregate_dummy"),
        None => row.set("prolang", language_oid(routine.language)).text("prosrc", &routine.body),
    };
    row.set("procost", Value::Real(100.0)).text("proparallel", "u");
    let kind = match routine.word() {
        "procedure" => "p",
        "aggregate" => "a",
        _ => "f",
    };
    row.text("prokind", kind);
    row.set("prorows", Value::Real(if routine.returns_set { 1000.0 } else { 0.0 }));
    row.set("prosecdef", routine.security_definer).set("proisstrict", routine.strict);
    row.set("proretset", routine.returns_set).text("provolatile", routine.volatility.letter());
    row.set("pronargs", small(inputs.len())).set("prorettype", result_oid(routine));
    let defaults = routine.inputs().filter(|it| it.default.is_some());
    let defaults: Vec<&str> = defaults.filter_map(|it| it.default.as_deref()).collect();
    row.set("pronargdefaults", small(defaults.len()));
    if !routine.settings.is_empty() {
        let items = routine.settings.iter().map(|(name, value)| format!("{name}={value}"));
        row.text("proconfig", array(items.map(|it| quoted(&it))));
    }
    if !defaults.is_empty() {
        row.text("proargdefaults", defaults.join(", "));
    }
    let types: Vec<String> = inputs.iter().map(|it| oid(it)).collect();
    row.text("proargtypes", types.join(" "));
    let all = &routine.arguments;
    if let Some(last) = routine.inputs().last().filter(|it| it.variadic) {
        let element = match (last.pseudo, last.data_type) {
            (Some(pseudo), _) => pseudo.element().oid(),
            (None, DataType::Array(element)) => type_oid(element.data_type()),
            (None, other) => type_oid(other),
        };
        row.set("provariadic", element);
    }
    if all.iter().any(|it| it.mode != ArgumentMode::In || it.variadic) {
        row.text("proallargtypes", array(all.iter().map(oid)));
        row.text(
            "proargmodes",
            array(all.iter().map(|it| if it.variadic { "v" } else { it.mode.letter() }.to_owned())),
        );
    }
    if all.iter().any(|it| it.name.is_some()) {
        let name = |it: &Argument| quoted(it.name.as_deref().unwrap_or_default());
        row.text("proargnames", array(all.iter().map(name)));
    }
}

impl SystemSource<'_> {
    pub(super) fn pg_proc_rows(&mut self) {
        let snapshot = self.snapshot;
        for known in procedures() {
            self.add(|row| super::relations::pg_proc(row, known));
        }
        for routine in snapshot.routines() {
            let schema = snapshot.schema_oid(&routine.schema);
            let (owner, acl) = (self.owner_oid(routine.id), self.acl(routine.id));
            self.add(|row| {
                pg_proc(row, routine);
                row.set("pronamespace", schema).set("proowner", owner);
                if let Some(acl) = acl {
                    row.text("proacl", acl);
                }
            });
        }
    }

    /// Returns the OID of a function of an aggregate.
    fn function_oid(&self, (schema, name): &FunctionName) -> i64 {
        let lookup = lookup_name(schema, name);
        match self.snapshot.routines_named(&lookup).next() {
            Some(routine) => object_oid(routine.id),
            None => procedure_named(name).map_or(0, |found| i64::from(found.oid)),
        }
    }

    /// The rows of `pg_aggregate` for aggregates that statements have made.
    pub(super) fn made_aggregates(&mut self) {
        let snapshot = self.snapshot;
        for routine in snapshot.routines() {
            let Some(aggregate) = &routine.aggregate else { continue };
            let step = self.function_oid(&aggregate.step);
            let finish = aggregate.finish.as_ref().map_or(0, |it| self.function_oid(it));
            let state = match aggregate.pseudo {
                Some(pseudo) => pseudo.oid(),
                None => type_oid(aggregate.state),
            };
            self.add(|row| {
                row.set("aggfnoid", object_oid(routine.id)).text("aggkind", "n");
                row.set("aggnumdirectargs", small(0));
                row.set("aggtransfn", step).set("aggfinalfn", finish);
                for name in ["combine", "serial", "deserial", "mtrans", "minvtrans", "mfinal"] {
                    row.set(&format!("agg{name}fn"), 0_i64);
                }
                row.set("aggfinalextra", aggregate.extra).set("aggmfinalextra", false);
                row.text("aggfinalmodify", "r").text("aggmfinalmodify", "r");
                row.set("aggsortop", 0_i64).set("aggtranstype", state).set("aggmtranstype", 0_i64);
                row.set("aggtransspace", 0_i32).set("aggmtransspace", 0_i32);
                if let Some(initial) = &aggregate.initial {
                    row.text("agginitval", initial);
                }
            });
        }
    }

    /// Whether `information_schema` shows a routine: to those who own it or may call it.
    fn shows_routine(&self, routine: &Routine) -> bool {
        let role = self.session.role();
        self.snapshot.owns(role, routine.id)
            || !self.snapshot.rights(role, routine.id, AclKind::Function).is_empty()
    }

    /// `information_schema.routines` and `parameters`.
    pub(super) fn routine_rows(&mut self) {
        let (snapshot, role) = (self.snapshot, self.session.role());
        for routine in snapshot.routines() {
            if !self.shows_routine(routine) {
                continue;
            }
            let specific = format!("{}_{}", routine.name, object_oid(routine.id));
            if self.table.name == "parameters" {
                self.parameter_rows(routine, &specific);
                continue;
            }
            self.add(|row| {
                for prefix in ["specific", "routine"] {
                    row.text(&format!("{prefix}_catalog"), NAME);
                    row.text(&format!("{prefix}_schema"), &routine.schema);
                }
                row.text("specific_name", &specific).text("routine_name", &routine.name);
                if routine.aggregate.is_none() {
                    row.text("routine_type", routine.word().to_uppercase());
                }
                let oid = result_oid(routine);
                if !routine.is_procedure() {
                    let place = ("type_udt", "type_udt_name");
                    match &routine.result {
                        RoutineResult::Value(data_type) => {
                            let domain = routine.result_domain.as_ref().map(|it| it.used);
                            routine_type(row, place, snapshot, (*data_type, domain));
                        }
                        RoutineResult::Row(of) => {
                            let row_type = snapshot.row_data_type(*of).unwrap_or(DataType::RECORD);
                            routine_type(row, place, snapshot, (row_type, None));
                        }
                        _ => {
                            let named = type_named(oid, None);
                            row.text("data_type", named.unwrap_or_else(|| "record".into()));
                            let name = type_row(oid).map_or("record", |it| it.name);
                            qualified(row, place.0, "pg_catalog", place.1, name);
                        }
                    }
                    row.text("dtd_identifier", "0");
                }
                row.text(
                    "routine_body",
                    if routine.language == Language::Sql { "SQL" } else { "EXTERNAL" },
                );
                if snapshot.owns(role, routine.id) {
                    row.text("routine_definition", &routine.body);
                }
                row.text("external_language", routine.language.name().to_uppercase());
                row.text("parameter_style", "GENERAL").text("sql_data_access", "MODIFIES");
                row.text(
                    "is_deterministic",
                    match routine.volatility {
                        crate::catalog::Volatility::Immutable => "YES",
                        _ => "NO",
                    },
                );
                if !routine.is_procedure() {
                    row.text("is_null_call", if routine.strict { "YES" } else { "NO" });
                }
                row.text("schema_level_routine", "YES").text("as_locator", "NO");
                row.text("is_udt_dependent", "NO");
                row.text(
                    "security_type",
                    match routine.security_definer {
                        true => "DEFINER",
                        false => "INVOKER",
                    },
                );
                row.set("max_dynamic_result_sets", 0_i32);
            });
        }
    }

    fn parameter_rows(&mut self, routine: &Routine, specific: &str) {
        for (at, argument) in routine.arguments.iter().enumerate() {
            self.add(|row| {
                row.text("specific_catalog", NAME).text("specific_schema", &routine.schema);
                row.text("specific_name", specific);
                row.set("ordinal_position", i32::try_from(at + 1).unwrap_or(i32::MAX));
                row.text(
                    "parameter_mode",
                    match argument.mode {
                        ArgumentMode::In => "IN",
                        ArgumentMode::InOut => "INOUT",
                        ArgumentMode::Out | ArgumentMode::Table => "OUT",
                    },
                );
                row.text("is_result", "NO").text("as_locator", "NO");
                if let Some(name) = &argument.name {
                    row.text("parameter_name", name);
                }
                let place = ("udt", "udt_name");
                match argument.pseudo {
                    Some(_) => {
                        let oid = argument_oid(argument);
                        row.text("data_type", type_named(oid, None).unwrap_or_default());
                        let name = type_row(oid).map_or("", |it| it.name);
                        qualified(row, place.0, "pg_catalog", place.1, name);
                    }
                    None => {
                        let domain = argument.domain.as_ref().map(|it| it.used);
                        let declared = (argument.data_type.unconstrained(), domain);
                        routine_type(row, place, self.snapshot, declared);
                    }
                }
                row.text("dtd_identifier", (at + 1).to_string());
                if let Some(default) = &argument.default {
                    row.text("parameter_default", default);
                }
            });
        }
    }
}
