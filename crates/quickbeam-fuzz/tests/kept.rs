//! Runs the fuzz targets with the kept inputs and random mutations of them, in every test run.
//! `QUICKBEAM_FUZZ` sets the number of random inputs per target, `QUICKBEAM_SEED` the seed.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]

use std::path::Path;
use std::sync::Mutex;

use quickbeam_fuzz::random::{make, read};
use quickbeam_fuzz::{TARGETS, Target, corpus};
use quickbeam_testing::{Random, number_in};

fn kept(target: &Target) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
    let files = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path());
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let mut inputs: Vec<_> = files.map(|f| (name(&f), std::fs::read(&f).unwrap())).collect();
    inputs.sort();
    inputs
}

/// Panic messages of all threads, including the engine's, which would otherwise be lost.
static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn told() -> Option<String> {
    TOLD.lock().unwrap().pop()
}

/// One test, because the panic hook is set for the whole process.
#[test]
fn targets_accept_kept_and_random_inputs() {
    std::panic::set_hook(Box::new(|panic| TOLD.lock().unwrap().push(panic.to_string())));
    let mut problems = Vec::new();
    // A panic of a target is detected in its own thread and in another one.
    let here = |_: &[u8]| panic!("it was seven");
    problems.extend(read(here, &[7], told).is_ok().then(|| "a panic was not seen".to_owned()));
    let there = |_: &[u8]| drop(std::thread::spawn(|| panic!("elsewhere")).join());
    TOLD.lock().unwrap().clear();
    problems.extend(read(there, &[7], told).is_ok().then(|| "a thread's was not seen".to_owned()));
    TOLD.lock().unwrap().clear();

    let seed = number_in("QUICKBEAM_SEED").unwrap_or(20_261_122);
    for target in &TARGETS {
        let kept = kept(target);
        for (name, bytes) in &kept {
            let read = read(target.run, bytes, told);
            problems.extend(read.err().map(|what| format!("{} {name}: {what}", target.name)));
        }
        let inputs: Vec<Vec<u8>> = kept.into_iter().map(|(_, bytes)| bytes).collect();
        let count = number_in("QUICKBEAM_FUZZ").unwrap_or(target.quick);
        for at in 0..count {
            let bytes = make(&inputs, &mut Random::new(seed.wrapping_add(at)));
            if let Err(what) = read(target.run, &bytes, told) {
                problems
                    .push(format!("{}, QUICKBEAM_SEED={seed}, number {at}: {what}", target.name));
                break;
            }
        }
        println!("{}: {} kept inputs, {count} random ones", target.name, inputs.len());
    }
    let _ = std::panic::take_hook();
    assert_eq!(problems, Vec::<String>::new());
}

#[test]
fn every_target_has_kept_inputs() {
    for (name, inputs) in corpus::make() {
        let target = TARGETS.iter().find(|target| target.name == name).unwrap();
        let kept = kept(target);
        let missing: Vec<_> = inputs
            .iter()
            .filter(|(name, _)| !kept.iter().any(|(other, _)| name == other))
            .collect();
        assert!(inputs.len() > 2 && missing.is_empty(), "{name}: `cargo run -p quickbeam-fuzz`");
        assert!(kept.iter().all(|(_, bytes)| bytes.len() <= 64 << 10), "{name}: a large input");
    }
    assert_eq!(corpus::make().len(), TARGETS.len());
}
