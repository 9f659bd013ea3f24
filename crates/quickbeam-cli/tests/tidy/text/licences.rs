//! Every dependency's licence is one that deny.toml allows.
//!
//! Asked of cargo, which knows the whole lock file, for every platform and feature; no database of
//! advisories and no further tool is needed.

use std::fs;
use std::process::Command;

use super::spdx;
use crate::{expect_none, tree};

/// The names in the `allow` list of a deny.toml.
fn allowed(deny: &str) -> Vec<String> {
    let lines = deny.lines().map(|line| line.split('#').next().unwrap_or(""));
    let code = lines.collect::<Vec<_>>().join("\n");
    let list = code.split_once("allow = [").and_then(|(_, rest)| rest.split_once(']'));
    let Some((list, _)) = list else {
        return Vec::new();
    };
    list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The packages in cargo's metadata which may not be used.
fn refused(metadata: &serde_json::Value, allowed: &[String]) -> Vec<String> {
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let mut problems = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or("a package without a name");
        let version = package["version"].as_str().unwrap_or("?");
        let verdict = match package["license"].as_str() {
            Some(expression) => spdx::is_permitted(expression, allowed)
                .map(|permitted| (!permitted).then(|| format!("{expression} is not allowed"))),
            None => Ok(Some("it names no licence".to_owned())),
        };
        if let Ok(Some(problem)) | Err(problem) = verdict {
            problems.push(format!("{name} {version}: {problem} (deny.toml lists what is)"));
        }
    }
    if packages.is_empty() {
        problems.push("cargo metadata names no package".to_owned());
    }
    problems
}

/// What cargo knows of the workspace. Without network first: after a build everything is there.
fn metadata() -> serde_json::Value {
    let run = |extra: &[&str]| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["metadata", "--format-version", "1", "--locked"]).args(extra);
        cargo.current_dir(tree::root()).output().expect("cargo can be started")
    };
    let mut output = run(&["--offline"]);
    if !output.status.success() {
        output = run(&[]);
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo metadata failed:\n{errors}");
    serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON")
}

#[test]
fn licences_of_dependencies_are_permitted() {
    let deny = fs::read_to_string(tree::root().join("deny.toml")).expect("there is a deny.toml");
    let allowed = allowed(&deny);
    assert!(allowed.contains(&"MIT".to_owned()), "deny.toml has no `allow` list that can be read");
    expect_none(&refused(&metadata(), &allowed));
}

#[test]
fn a_licence_that_is_not_allowed_is_caught() {
    let metadata = serde_json::json!({"packages": [
        {"name": "good", "version": "1.0.0", "license": "GPL-3.0-only OR MIT"},
        {"name": "bad", "version": "2.0.0", "license": "GPL-3.0-only"},
        {"name": "silent", "version": "3.0.0", "license": null},
        {"name": "odd", "version": "4.0.0", "license": "MIT OR"},
    ]});
    let allowed = allowed("allow = [\n    \"MIT\", # \"GPL-3.0-only\"\n    \"Zlib\",\n]");
    assert_eq!(allowed, ["MIT", "Zlib"]);
    let problems = refused(&metadata, &allowed);
    let names: Vec<&str> = problems.iter().filter_map(|p| p.split(' ').next()).collect();
    assert_eq!(names, ["bad", "silent", "odd"], "{problems:?}");
    assert!(!refused(&serde_json::json!({}), &allowed).is_empty());
}
