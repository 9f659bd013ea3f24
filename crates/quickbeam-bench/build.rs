//! Records the source revision and the versions of peers that are crates: every report states them.

use std::fs;
use std::path::Path;
use std::process::Command;

fn main() {
    let revision = Command::new("git")
        .args(["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"])
        .output()
        .ok()
        .filter(|output| output.status.success())
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .map_or_else(|| "unknown".to_owned(), |text| text.trim().to_owned());
    println!("cargo::rustc-env=QUICKBEAM_GIT_REVISION={revision}");
    let lock = fs::read_to_string("../../Cargo.lock").unwrap_or_default();
    for name in ["redb", "fjall"] {
        let version = locked_version(&lock, name).unwrap_or("unknown");
        println!("cargo::rustc-env=QUICKBEAM_BENCH_{}_VERSION={version}", name.to_uppercase());
    }
    // A commit changes the first; an edit of a measured source can make the revision dirty. Only
    // what exists is named: Cargo takes a missing file for a changed one, every time.
    for path in ["../../.git/logs/HEAD", "../../Cargo.lock", "../quickbeam/src", "src"] {
        if Path::new(path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}

/// The version that the lock file gives to a package.
fn locked_version<'l>(lock: &'l str, name: &str) -> Option<&'l str> {
    let (_, after) = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?;
    after.split('"').next()
}
