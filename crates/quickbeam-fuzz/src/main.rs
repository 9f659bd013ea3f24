//! Generates the kept inputs again: `cargo run -p quickbeam-fuzz`.

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
