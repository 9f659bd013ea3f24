//! EXPLAIN as JSON, YAML and XML, with the names of keys of PostgreSQL.
//!
//! Below: the lines of the text format, which have the steps and their details.

use crate::parse::ExplainFormat;

/// A step: its keys and values, and the steps below it.
#[derive(Default)]
struct PlanStep {
    keys: Vec<(&'static str, String, bool)>,
    details: Vec<(String, String)>,
    below: Vec<PlanStep>,
}

/// Returns the lines of EXPLAIN in a format: one line for a format other than text.
pub(crate) fn formatted(lines: Vec<String>, format: ExplainFormat) -> Vec<String> {
    if format == ExplainFormat::Text {
        return lines;
    }
    let (plan, mode) = steps_of(&lines);
    let mut text = String::new();
    match format {
        ExplainFormat::Text => {}
        ExplainFormat::Json => {
            text.push_str("[\n  {\n    \"Plan\": ");
            write_json(&plan, 4, &mut text);
            text.push_str(&format!(",\n    \"Execution\": {}\n  }}\n]", quoted(&mode)));
        }
        ExplainFormat::Yaml => {
            text.push_str("- Plan: ");
            write_yaml(&plan, 4, FirstEntry::OnNextLine, &mut text);
            text.push_str(&format!("\n  Execution: {}", quoted(&mode)));
        }
        ExplainFormat::Xml => {
            text.push_str(
                "<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n  <Query>\n",
            );
            write_xml(&plan, 4, &mut text);
            let mode = escaped(&mode);
            text.push_str(&format!("    <Execution>{mode}</Execution>\n  </Query>\n</explain>"));
        }
    }
    vec![text]
}

/// Reads the lines of the text format: the tree of steps, and the execution mode.
fn steps_of(lines: &[String]) -> (PlanStep, String) {
    let mut mode = String::new();
    // The steps from the first one of the plan to the last line's, each with its depth.
    let mut open: Vec<(usize, PlanStep)> = Vec::new();
    let mut roots: Vec<PlanStep> = Vec::new();
    for line in lines {
        if let Some(text) = line.strip_prefix("Execution: ") {
            text.clone_into(&mut mode);
            continue;
        }
        let text = line.trim_start();
        let indent = line.len() - text.len();
        let step = match text.strip_prefix("-> ") {
            Some(step) => Some((indent / 2, step)),
            None if indent == 0 => Some((0, text)),
            None => None,
        };
        let Some((depth, step)) = step else {
            if let Some((_, last)) = open.last_mut() {
                let (key, value) = text.split_once(": ").unwrap_or(("Detail", text));
                last.details.push((key.to_owned(), value.to_owned()));
            }
            continue;
        };
        close(&mut open, depth, &mut roots);
        open.push((depth, step_of(step)));
    }
    close(&mut open, 0, &mut roots);
    // The common table expressions come before the main plan, and belong to it.
    let mut main = roots.pop().unwrap_or_default();
    main.below.splice(0..0, roots);
    (main, mode)
}

/// Ends the steps at that depth and below.
fn close(open: &mut Vec<(usize, PlanStep)>, depth: usize, roots: &mut Vec<PlanStep>) {
    while open.last().is_some_and(|(at, _)| *at >= depth) {
        let Some((_, step)) = open.pop() else { return };
        match open.last_mut() {
            Some((_, above)) => above.below.push(step),
            None => roots.push(step),
        }
    }
}

/// Reads the line of a step.
fn step_of(line: &str) -> PlanStep {
    let mut step = PlanStep::default();
    let (name, counts) = line.split_once(" (").unwrap_or((line, ""));
    let (name, relation) = match name.split_once(" on ") {
        Some((name, relation)) => (name, Some(relation)),
        None => (name, None),
    };
    let (name, index) = match name.split_once(" using ") {
        Some((name, index)) => (name, Some(index)),
        None => (name, None),
    };
    let (node, parent) = match name.strip_prefix("CTE ") {
        Some(table) => ("CTE", Some(table)),
        None => (name, None),
    };
    step.keys.push(("Node Type", node.to_owned(), false));
    if let Some(table) = parent {
        step.keys.push(("CTE Name", table.to_owned(), false));
    }
    if let Some(index) = index {
        step.keys.push(("Index Name", index.to_owned(), false));
    }
    if let Some(relation) = relation {
        let (table, alias) = relation.split_once(' ').unwrap_or((relation, relation));
        step.keys.push(("Relation Name", table.to_owned(), false));
        step.keys.push(("Alias", alias.to_owned(), false));
    }
    for count in counts.split([' ', ')', '(']) {
        if let Some(rows) = count.strip_prefix("rows=") {
            let key = if counts.contains(&format!("actual {count}")) {
                "Actual Rows"
            } else {
                "Plan Rows"
            };
            step.keys.push((key, rows.to_owned(), true));
        }
    }
    step
}

impl PlanStep {
    /// Returns the keys and values; true marks a number.
    fn entries(&self) -> impl Iterator<Item = (&str, &str, bool)> {
        let keys = self.keys.iter().map(|(key, value, is_number)| (*key, &value[..], *is_number));
        keys.chain(self.details.iter().map(|(key, value)| (&key[..], &value[..], false)))
    }
}

/// Returns a text as a literal of JSON and YAML.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn value_of(value: &str, is_number: bool) -> String {
    if is_number { value.to_owned() } else { quoted(value) }
}

fn write_json(step: &PlanStep, indent: usize, text: &mut String) {
    let pad = " ".repeat(indent + 2);
    let entries = step.entries().map(|(key, value, is_number)| {
        format!("{pad}{}: {}", quoted(key), value_of(value, is_number))
    });
    let mut parts: Vec<String> = entries.collect();
    if !step.below.is_empty() {
        let plans = step.below.iter().map(|below| {
            let mut plan = " ".repeat(indent + 4);
            write_json(below, indent + 4, &mut plan);
            plan
        });
        let plans: Vec<String> = plans.collect();
        parts.push(format!("{pad}\"Plans\": [\n{}\n{pad}]", plans.join(",\n")));
    }
    text.push_str(&format!("{{\n{}\n{}}}", parts.join(",\n"), " ".repeat(indent)));
}

/// Where the first entry of a step is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FirstEntry {
    OnThisLine,
    OnNextLine,
}

/// Writes the entries of a step.
fn write_yaml(step: &PlanStep, indent: usize, first: FirstEntry, text: &mut String) {
    let pad = " ".repeat(indent);
    for (number, (key, value, is_number)) in step.entries().enumerate() {
        if number > 0 || first == FirstEntry::OnNextLine {
            text.push_str(&format!("\n{pad}"));
        }
        text.push_str(&format!("{key}: {}", value_of(value, is_number)));
    }
    if step.below.is_empty() {
        return;
    }
    text.push_str(&format!("\n{pad}Plans: "));
    for below in &step.below {
        text.push_str(&format!("\n{pad}  - "));
        write_yaml(below, indent + 4, FirstEntry::OnThisLine, text);
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn write_xml(step: &PlanStep, indent: usize, text: &mut String) {
    let pad = " ".repeat(indent);
    text.push_str(&format!("{pad}<Plan>\n"));
    for (key, value, _) in step.entries() {
        let key = key.replace(' ', "-");
        text.push_str(&format!("{pad}  <{key}>{}</{key}>\n", escaped(value)));
    }
    if !step.below.is_empty() {
        text.push_str(&format!("{pad}  <Plans>\n"));
        step.below.iter().for_each(|below| write_xml(below, indent + 4, text));
        text.push_str(&format!("{pad}  </Plans>\n"));
    }
    text.push_str(&format!("{pad}</Plan>\n"));
}
