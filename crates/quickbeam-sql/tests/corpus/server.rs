//! Asks PostgreSQL, through `psql`.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use super::sorted;

/// Begins what `psql` writes about one statement, on both of its outputs.
const MARK: &str = "@@@@@ ";

/// Returns the answers of PostgreSQL, all from one connection to a new database.
pub fn answers(statements: &[String]) -> Vec<String> {
    let database = format!("corpus{}", std::process::id());
    run("postgres", &format!("DROP DATABASE IF EXISTS {database};\nCREATE DATABASE {database};\n"));
    let mut script = String::from(
        "\\set VERBOSITY sqlstate\n\\pset format unaligned\n\\pset tuples_only on\n\
         \\pset null NULL\nSET client_min_messages = error;\n\
         SET TimeZone = 'UTC';\nSET statement_timeout = '10s';\n",
    );
    for (number, text) in statements.iter().enumerate() {
        let mark = format!("\\echo '{MARK}{number}'\n\\warn '{MARK}{number}'\n");
        write!(script, "{mark}\\pset recordsep '\\n'\n{text}\n\\gdesc\n").unwrap();
        write!(script, "{mark}\\pset recordsep '\\036'\n{text}\n\\g\n").unwrap();
    }
    let (out, errors) = run(&database, &script);
    run("postgres", &format!("DROP DATABASE {database};\n"));
    let (out, errors) = (parts(&out), parts(&errors));
    let pairs = out.chunks(2).zip(errors.chunks(2)).zip(statements);
    pairs.map(|((out, errors), text)| answer(out, errors, text)).collect()
}

fn parts(output: &str) -> Vec<&str> {
    let parts = output.split(MARK).skip(1);
    parts.map(|part| part.split_once('\n').map_or("", |(_, rest)| rest)).collect()
}

fn answer(out: &[&str], errors: &[&str], text: &str) -> String {
    let code = errors.iter().find_map(|text| {
        let (_, code) = text.split_once("ERROR:  ")?;
        Some(code.trim_start_matches('\n').chars().take(5).collect::<String>())
    });
    if let Some(code) = code {
        return format!("-> error {code}");
    }
    let types = out[0].lines().filter_map(|line| line.rsplit_once('|'));
    let types: Vec<&str> = types.map(|(_, one)| one).collect();
    if types.is_empty() {
        return "-> ok".to_owned();
    }
    // No row is no text; one row of an empty text is a line end.
    let body = out[1].strip_suffix('\n');
    let rows = body.map(|body| body.split('\u{1e}').map(|row| row.replace('\n', "␤")).collect());
    let mut lines = vec![format!("-> {}", types.join(", "))];
    lines.extend(sorted(text, rows.unwrap_or_default()));
    lines.join("\n")
}

/// Runs a script; returns what `psql` writes.
fn run(database: &str, script: &str) -> (String, String) {
    let mut child = Command::new("psql")
        .args(["-Xq", "-d", database, "-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("psql runs");
    let mut input = child.stdin.take().unwrap();
    let script = script.to_owned();
    let writer = std::thread::spawn(move || input.write_all(script.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}
