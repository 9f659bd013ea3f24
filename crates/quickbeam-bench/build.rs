//! Records the source revision, which every report states.

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
    // A commit changes the first; an edit of a measured source can make the revision dirty. Only
    // what exists is named: Cargo takes a missing file for a changed one, every time.
    for path in ["../../.git/logs/HEAD", "../quickbeam/src", "src"] {
        if Path::new(path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}
