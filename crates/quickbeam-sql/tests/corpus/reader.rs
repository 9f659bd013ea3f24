//! Reads the corpus and the recorded answers.

/// Returns the statements of a file of the corpus, with all alternatives.
pub fn expand(text: &str) -> Vec<String> {
    let mut names: Vec<(String, Vec<String>)> = Vec::new();
    let mut statements = Vec::new();
    for line in text.lines() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(set) = line.strip_prefix(":= ") {
            let (name, list) = set.split_once(' ').unwrap();
            let list = list.split('¦').map(|one| one.trim().to_owned()).collect();
            names.push((name.to_owned(), list));
            continue;
        }
        let mut lines = vec![line.to_owned()];
        while lines.iter().any(|line| line.contains('⟨')) {
            lines = lines.iter().flat_map(|line| alternatives(line, &names)).collect();
        }
        statements.extend(lines);
    }
    statements
}

/// Returns a line with each alternative in the place of the first brackets, which may be nested.
fn alternatives(line: &str, names: &[(String, Vec<String>)]) -> Vec<String> {
    let Some((before, rest)) = line.split_once('⟨') else { return vec![line.to_owned()] };
    let (mut depth, mut parts) = (0, vec![String::new()]);
    let mut end = rest.len();
    for (position, character) in rest.char_indices() {
        match character {
            '⟨' => depth += 1,
            '⟩' if depth == 0 => {
                end = position;
                break;
            }
            '⟩' => depth -= 1,
            '¦' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        parts.last_mut().unwrap().push(character);
    }
    let after = rest[end..].strip_prefix('⟩').unwrap_or_else(|| panic!("brackets end: {line}"));
    if let [name] = &parts[..]
        && let Some(name) = name.strip_prefix('$')
    {
        let known = names.iter().find(|(known, _)| known == name);
        parts = known.unwrap_or_else(|| panic!("no set {name}")).1.clone();
    }
    parts.iter().map(|one| format!("{before}{one}{after}")).collect()
}

/// Returns whether later statements of a file may need this one.
pub fn is_preparation(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default().to_uppercase();
    !matches!(&first[..], "SELECT" | "VALUES" | "TABLE" | "SHOW") || text.contains("set_config(")
}

/// Returns a statement and its answer as a record: each line with a mark for what it is.
pub fn record(text: &str, answer: &str) -> String {
    let mut lines = answer.split('\n');
    let mut out = format!("\n> {text}\n{}\n", lines.next().unwrap());
    lines.for_each(|row| out.push_str(&format!("={row}\n")));
    out
}

/// Returns the statements and answers of a recorded file.
pub fn records(text: &str) -> Vec<(String, String)> {
    let mut records: Vec<(String, String)> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match (line.strip_prefix("> "), records.last_mut()) {
            (Some(statement), _) => records.push((statement.to_owned(), String::new())),
            (None, Some((_, answer))) if answer.is_empty() => answer.push_str(line),
            (None, Some((_, answer))) => {
                answer.push('\n');
                answer.push_str(line.strip_prefix('=').unwrap());
            }
            (None, None) => panic!("no statement before {line}"),
        }
    }
    records
}
