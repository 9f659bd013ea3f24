//! Functions, procedures and triggers as the statements that make them: `pg_get_functiondef()`,
//! `pg_get_triggerdef()`, and what a dump has of them.

use super::CatalogSnapshot;
use super::describe::quoted_if_needed;
use crate::schema::names::PUBLIC;
use crate::schema::{
    AggregateDefinition, Argument, ArgumentMode, ConstraintTiming, FunctionName, ObjectId, Routine,
    RoutineResult, Trigger, TriggerEvent, TriggerState, Volatility,
};

/// How much of a name a definition has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Qualification {
    /// Relations have their schemas.
    Full,
    /// Relations of `public` have no schema.
    Short,
}

/// Which functions come together in a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoutineKind {
    /// Those that return rows of a table, and aggregates, which may call those.
    RowsOfTables,
    /// Those of whose arguments or results some are of domains.
    OfDomains,
    /// All others.
    Other,
}

fn qualified(schema: &str, name: &str) -> String {
    format!("{}.{}", quoted_if_needed(schema), quoted_if_needed(name))
}

fn literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if text.contains('\\') {
        return format!("E'{}'", quoted.replace('\\', "\\\\"));
    }
    format!("'{quoted}'")
}

/// Whether arguments are shown with their defaults.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ArgumentDefaults {
    Shown,
    Hidden,
}

/// Returns the arguments as a definition shows them.
fn argument_list(routine: &Routine, defaults: ArgumentDefaults) -> String {
    let shown = routine.arguments.iter().filter(|it| it.mode != ArgumentMode::Table);
    let written = |argument: &Argument| {
        let mode = match argument.mode {
            ArgumentMode::In if argument.variadic => "VARIADIC ",
            ArgumentMode::In if routine.is_procedure() => "IN ",
            ArgumentMode::In | ArgumentMode::Table => "",
            ArgumentMode::Out => "OUT ",
            ArgumentMode::InOut => "INOUT ",
        };
        let name = argument.name.as_deref().map(|name| format!("{} ", quoted_if_needed(name)));
        let default = argument.default.as_deref().filter(|_| defaults == ArgumentDefaults::Shown);
        let default = default.map(|it| format!(" DEFAULT {it}")).unwrap_or_default();
        let shown = argument.type_name();
        format!("{mode}{}{shown}{default}", name.unwrap_or_default())
    };
    shown.map(written).collect::<Vec<_>>().join(", ")
}

/// Returns CREATE AGGREGATE.
fn aggregate_definition(routine: &Routine, aggregate: &AggregateDefinition) -> String {
    let name = qualified(&routine.schema, &routine.name);
    let mut arguments = argument_list(routine, ArgumentDefaults::Hidden);
    if arguments.is_empty() {
        arguments.push('*');
    }
    let function = |(schema, name): &FunctionName| qualified(schema, name);
    let (step, state) = (function(&aggregate.step), aggregate.state_name());
    let mut text =
        format!("CREATE AGGREGATE {name}({arguments}) (\n SFUNC = {step},\n STYPE = {state}");
    if let Some(finish) = &aggregate.finish {
        text.push_str(&format!(",\n FINALFUNC = {}", function(finish)));
    }
    if aggregate.extra {
        text.push_str(",\n FINALFUNC_EXTRA");
    }
    if let Some(initial) = &aggregate.initial {
        text.push_str(&format!(",\n INITCOND = {}", literal(initial)));
    }
    text.push_str("\n)");
    text
}

impl CatalogSnapshot {
    /// Returns the statements that make the functions and procedures of a kind.
    pub fn create_routines(&self, kind: RoutineKind) -> impl Iterator<Item = String> + '_ {
        let is_of_table = |it: &Routine| {
            matches!(it.result, RoutineResult::Row(_))
                || it.aggregate.is_some()
                || it.has_type(&|data_type| data_type.row_object().is_some())
        };
        let kind_of = move |it: &Routine| match (is_of_table(it), it.has_domains()) {
            (true, _) => RoutineKind::RowsOfTables,
            (false, true) => RoutineKind::OfDomains,
            (false, false) => RoutineKind::Other,
        };
        let wanted = self.routines().filter(move |it| kind_of(it) == kind);
        wanted.map(|it| self.routine_definition(it).trim_end().to_owned())
    }

    /// Returns the arguments of a routine as a definition has them.
    #[must_use]
    pub fn routine_arguments(&self, routine: &Routine) -> String {
        argument_list(routine, ArgumentDefaults::Shown)
    }

    /// As [`routine_arguments`](Self::routine_arguments), without defaults.
    #[must_use]
    pub fn routine_identity(&self, routine: &Routine) -> String {
        argument_list(routine, ArgumentDefaults::Hidden)
    }

    /// Returns the result of a function as a definition has it; `None` for a procedure.
    #[must_use]
    pub fn routine_result(&self, routine: &Routine) -> Option<String> {
        let set = if routine.returns_set { "SETOF " } else { "" };
        let columns: Vec<&Argument> =
            routine.arguments.iter().filter(|it| it.mode == ArgumentMode::Table).collect();
        if !columns.is_empty() {
            let column = |it: &&Argument| {
                let name = quoted_if_needed(it.name.as_deref().unwrap_or_default());
                format!("{name} {}", it.type_name())
            };
            let columns: Vec<String> = columns.iter().map(column).collect();
            return Some(format!("TABLE({})", columns.join(", ")));
        }
        Some(match &routine.result {
            RoutineResult::Procedure => return None,
            RoutineResult::Void => "void".to_owned(),
            RoutineResult::Trigger => "trigger".to_owned(),
            RoutineResult::Value(data_type) => match &routine.result_domain {
                Some(domain) => format!("{set}{}", domain.shown),
                None => format!("{set}{data_type}"),
            },
            RoutineResult::Pseudo(pseudo) => format!("{set}{}", pseudo.name()),
            RoutineResult::Columns | RoutineResult::Record => format!("{set}record"),
            RoutineResult::Row(table) => {
                let row_type = self.row_data_type(*table).ok()?;
                format!("{set}{row_type}")
            }
        })
    }

    /// Returns CREATE OR REPLACE of a function or procedure.
    #[must_use]
    pub fn routine_definition(&self, routine: &Routine) -> String {
        if let Some(aggregate) = &routine.aggregate {
            return aggregate_definition(routine, aggregate);
        }
        let word = routine.word();
        let name = qualified(&routine.schema, &routine.name);
        let arguments = argument_list(routine, ArgumentDefaults::Shown);
        let mut text = format!("CREATE OR REPLACE {} {name}({arguments})\n", word.to_uppercase());
        if let Some(result) = self.routine_result(routine) {
            text.push_str(&format!(" RETURNS {result}\n"));
        }
        text.push_str(&format!(" LANGUAGE {}\n", routine.language.name()));
        let mut options = String::new();
        options.push_str(match routine.volatility {
            Volatility::Immutable => " IMMUTABLE",
            Volatility::Stable => " STABLE",
            Volatility::Volatile => "",
        });
        if routine.strict {
            options.push_str(" STRICT");
        }
        if routine.security_definer {
            options.push_str(" SECURITY DEFINER");
        }
        if !options.is_empty() {
            text.push_str(&format!("{options}\n"));
        }
        for (name, value) in &routine.settings {
            let name_shown = quoted_if_needed(name);
            text.push_str(&format!(" SET {name_shown} TO {}\n", shown_value(name, value)));
        }
        let mut tag = word.to_owned();
        while routine.body.contains(&format!("${tag}")) {
            tag.push('x');
        }
        text.push_str(&format!("AS ${tag}${}${tag}$\n", routine.body));
        text
    }

    /// Returns the call of a trigger's function.
    #[must_use]
    pub fn trigger_action(&self, trigger: &Trigger) -> String {
        let name = match self.routine(trigger.routine) {
            Some(routine) if matches!(&*routine.schema, "public" | "pg_catalog") => {
                quoted_if_needed(&routine.name)
            }
            Some(routine) => qualified(&routine.schema, &routine.name),
            None => String::new(),
        };
        let arguments: Vec<String> = trigger.arguments.iter().map(|it| literal(it)).collect();
        format!("EXECUTE FUNCTION {name}({})", arguments.join(", "))
    }

    /// Returns the schema and the name of a table or view.
    #[must_use]
    pub fn relation_named(&self, id: ObjectId) -> Option<(&str, &str)> {
        let table = self.table(id).map(|it| (it.schema.as_str(), it.name.as_str()));
        let view = || self.views.get(&id).map(|it| (it.schema.as_str(), it.name.as_str()));
        table.or_else(view)
    }

    /// Returns CREATE TRIGGER.
    #[must_use]
    pub fn trigger_definition(
        &self,
        trigger: &Trigger,
        qualification: Qualification,
    ) -> Option<String> {
        let (schema, relation) = self.relation_named(trigger.relation)?;
        let relation = match qualification {
            Qualification::Short if schema == PUBLIC => quoted_if_needed(relation),
            _ => qualified(schema, relation),
        };
        let event = |event: &TriggerEvent| {
            let table = self.table(trigger.relation);
            let columns: Vec<String> = match (event, table) {
                (TriggerEvent::Update, Some(table)) => {
                    let positions = trigger.columns.iter().filter_map(|id| table.position_of(*id));
                    positions.map(|at| quoted_if_needed(&table.columns[at].name)).collect()
                }
                _ => Vec::new(),
            };
            match columns.is_empty() {
                true => event.word().to_owned(),
                false => format!("{} OF {}", event.word(), columns.join(", ")),
            }
        };
        let events: Vec<String> = trigger.events.iter().map(event).collect();
        let condition = trigger.condition.as_deref();
        let condition = condition.map(|it| format!("WHEN (({it})) ")).unwrap_or_default();
        let (word, timing) = match trigger.constraint {
            None => ("TRIGGER", ""),
            Some(ConstraintTiming::NotDeferrable) => {
                ("CONSTRAINT TRIGGER", "NOT DEFERRABLE INITIALLY IMMEDIATE ")
            }
            Some(ConstraintTiming::Immediate) => {
                ("CONSTRAINT TRIGGER", "DEFERRABLE INITIALLY IMMEDIATE ")
            }
            Some(ConstraintTiming::Deferred) => {
                ("CONSTRAINT TRIGGER", "DEFERRABLE INITIALLY DEFERRED ")
            }
        };
        let mut transitions = String::new();
        for (side, name) in [("OLD", &trigger.old_table), ("NEW", &trigger.new_table)] {
            if let Some(name) = name {
                transitions.push_str(&format!("{side} TABLE AS {} ", quoted_if_needed(name)));
            }
        }
        if !transitions.is_empty() {
            transitions.insert_str(0, "REFERENCING ");
        }
        Some(format!(
            "CREATE {word} {} {} {} ON {relation} {timing}{transitions}FOR EACH {} {condition}{}",
            quoted_if_needed(&trigger.name),
            trigger.timing.words(),
            events.join(" OR "),
            trigger.level.word(),
            self.trigger_action(trigger)
        ))
    }

    /// Returns the statements that make a trigger.
    pub fn create_trigger(&self, trigger: &Trigger) -> impl Iterator<Item = String> + use<> {
        let relation = self.relation_named(trigger.relation);
        let alter = relation.map(|(schema, name)| {
            let (relation, name) = (qualified(schema, name), quoted_if_needed(&trigger.name));
            let word = match trigger.state {
                TriggerState::Enabled => return None,
                TriggerState::Disabled => "DISABLE",
                TriggerState::Replica => "ENABLE REPLICA",
                TriggerState::Always => "ENABLE ALWAYS",
            };
            Some(format!("ALTER TABLE {relation} {word} TRIGGER {name}"))
        });
        let create = self.trigger_definition(trigger, Qualification::Full);
        create.into_iter().chain(alter.flatten())
    }
}

/// Returns the value of a setting as SET has it. The names in a list stand in quotes each.
fn shown_value(name: &str, value: &str) -> String {
    if name != "search_path" {
        return literal(value);
    }
    let names = crate::schema::names::path_names(value);
    names.iter().map(|name| literal(name)).collect::<Vec<_>>().join(", ")
}
