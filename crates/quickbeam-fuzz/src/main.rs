//! Generates the kept inputs again: `cargo run -p quickbeam-fuzz`.

#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used))]

use std::path::Path;

fn main() -> std::io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for (target, inputs) in quickbeam_fuzz::corpus::make() {
        let folder = folder.join(target);
        std::fs::create_dir_all(&folder)?;
        for (name, bytes) in &inputs {
            std::fs::write(folder.join(name), bytes)?;
        }
        println!("{}: {} inputs", folder.display(), inputs.len());
    }
    Ok(())
}
