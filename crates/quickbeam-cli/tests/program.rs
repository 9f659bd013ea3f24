//! The `quickbeam` program from outside: its output, error messages and exit codes.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]

mod common;

use std::path::{Path, PathBuf};
use std::process::Output;

use common::{command, done, finish, folder, path, text};
use quickbeam::{DataStore, Environment, Options};
use tempfile::TempDir;

/// Two databases in the format of Berkeley DB's `db_dump -p`.
const DUMP: &str = "\
VERSION=3
format=print
database=people
type=btree
db_pagesize=4096
HEADER=END
 alpha
 one
 b\\\\c
 two\\00x
 \\e4
 
DATA=END
VERSION=3
format=print
database=words
type=btree
db_pagesize=4096
HEADER=END
DATA=END
";

fn run_with_input(arguments: &[&str], input: &str) -> Output {
    finish(command(arguments), input)
}

fn run(arguments: &[&str]) -> Output {
    run_with_input(arguments, "")
}

/// Returns standard error of a run that must fail with exit code 1.
#[track_caller]
fn failed(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    text(&output.stderr)
}

/// Creates an environment and returns its directory.
fn environment(folder: &TempDir) -> String {
    let directory = path(&folder.path().join("environment"));
    done(&run(&["create", &directory]));
    directory
}

#[test]
fn a_dump_is_loaded_and_dumped_again() {
    let folder = folder();
    let directory = environment(&folder);
    let loaded = run_with_input(&["load", &directory], DUMP);
    assert_eq!(loaded.status.code(), Some(0));
    assert_eq!(text(&loaded.stderr), "people: 3 records\nwords: 0 records\n");
    assert_eq!(done(&run(&["list", &directory])), "people\nwords\n");
    let printed = DUMP.replace("db_pagesize=4096\n", "");
    assert_eq!(done(&run(&["dump", "--print", &directory])), printed);

    let hexadecimal = done(&run(&["dump", &directory, "people"]));
    assert!(
        hexadecimal.contains("HEADER=END\n 616c706861\n 6f6e65\n 625c63\n 74776f0078\n e4\n \n")
    );
    let file = folder.path().join("people.dump");
    std::fs::write(&file, &hexadecimal).expect("the folder can be written");
    let copied = run(&["load", &directory, "copy", "--file", &path(&file)]);
    assert_eq!(text(&copied.stderr), "copy: 3 records\n");
    let copy = done(&run(&["dump", &directory, "copy"]));
    assert_eq!(copy, hexadecimal.replace("database=people", "database=copy"));
}

#[test]
fn many_records_are_loaded_in_batches_and_come_back() {
    let folder = folder();
    let directory = environment(&folder);
    let keys = (0..120_000_u32).map(|i| i.wrapping_mul(2_654_435_761));
    let body: String = keys.map(|key| format!(" {key:08x}\n 00\n")).collect();
    for method in ["btree", "hash"] {
        let head = format!("VERSION=3\nformat=bytevalue\ntype={method}\nHEADER=END\n");
        let input = format!("{head}{body}DATA=END\n");
        let loaded = run_with_input(&["load", &directory, method], &input);
        assert_eq!(text(&loaded.stderr), format!("{method}: 120000 records\n"));
        let dump = done(&run(&["dump", &directory, method]));
        assert!(dump.contains(&format!("\ntype={method}\n")));
        let is_key = |line: &&str| line.len() == 9 && line.starts_with(' ');
        let mut keys: Vec<&str> = dump.lines().filter(is_key).collect();
        assert_eq!(keys.is_sorted(), method == "btree");
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 120_000);
        assert_eq!(dump.lines().count(), 5 + 2 * 120_000 + 1);
    }
    assert_eq!(done(&run(&["list", &directory])), "btree\nhash\n");
    assert_eq!(done(&run(&["list", "--long", &directory])), "btree\tbtree\nhash\thash\n");
}

#[test]
fn a_sound_environment_verifies_and_tells_its_statistics() {
    let folder = folder();
    let directory = environment(&folder);
    run_with_input(&["load", &directory], DUMP);
    for command in ["stat", "verify"] {
        assert!(!done(&run(&[command, &directory])).is_empty());
        let json = done(&run(&[command, "--json", &directory]));
        let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert!(value.as_object().is_some_and(|fields| !fields.is_empty()));
    }
}

#[test]
fn a_directory_without_an_environment_is_named_and_left_alone() {
    let folder = folder();
    let directory = path(&folder.path().join("nothing"));
    for command in ["list", "stat", "verify", "dump", "load"] {
        let said = failed(&run(&[command, &directory]));
        assert!(said.starts_with("quickbeam: cannot open"), "{said}");
        assert!(said.contains(&directory), "{said}");
    }
    assert!(!Path::new(&directory).exists(), "a mistyped name makes no environment");
}

#[test]
fn an_environment_is_not_created_twice() {
    let folder = folder();
    let directory = environment(&folder);
    let said = failed(&run(&["create", &directory]));
    assert!(said.contains("is an environment already"), "{said}");
    let other = path(&folder.path().join("other"));
    let said = failed(&run(&["create", "--page-size", "5000", &other]));
    assert!(said.contains("power of two"), "{said}");
}

#[test]
fn errors_say_what_and_where() {
    let folder = folder();
    let directory = environment(&folder);
    let said = failed(&run(&["dump", &directory, "nobody"]));
    assert!(said.contains("\"nobody\""), "{said}");

    let cut = &DUMP[..DUMP.find(" b\\\\c").expect("it is there")];
    let said = failed(&run_with_input(&["load", &directory], cut));
    assert!(said.contains("standard input") && said.contains("line 8"), "{said}");
    let said = failed(&run_with_input(&["load", &directory, "one"], DUMP));
    assert!(said.contains("a second database begins"), "{said}");
    let nameless = DUMP.replacen("database=people\n", "", 1);
    let said = failed(&run_with_input(&["load", &directory], &nameless));
    assert!(said.contains("give DATABASE"), "{said}");
    let said = failed(&run(&["load", &directory]));
    assert!(said.contains("the input is empty"), "{said}");
    let said = failed(&run(&["load", &directory, "--file", "/nowhere/at/all"]));
    assert!(said.contains("cannot open /nowhere/at/all"), "{said}");
}

#[test]
fn a_data_store_can_be_looked_at_too() {
    let folder = folder();
    let mut store = DataStore::open(folder.path(), Options::default()).expect("it is made");
    let fruit = store.create_database("fruit").expect("it is made");
    store.put(fruit, b"apple", b"red").expect("there is room");
    store.close().expect("it closes");
    let directory = path(folder.path());
    assert_eq!(done(&run(&["list", &directory])), "fruit\n");
    assert!(done(&run(&["dump", "-p", &directory])).contains("HEADER=END\n apple\n red\nDATA"));
    done(&run(&["stat", &directory]));
    done(&run(&["verify", &directory]));
}

#[test]
fn a_failed_create_leaves_no_directory() {
    let folder = folder();
    let Some(_medium) = mounted(folder.path(), "size=64k") else {
        println!("skipped: mounting is not permitted");
        return;
    };
    let directory = path(&folder.path().join("environment"));
    let said = failed(&run(&["create", &directory]));
    assert!(said.contains("cannot create"), "{said}");
    assert!(!Path::new(&directory).exists());
}

#[test]
fn openings_are_set_by_options_and_variables() {
    let folder = folder();
    let directory = environment(&folder);
    let cache = |arguments: &[&str], variable: &str| {
        let mut program = command(&[&["stat", "--json", &directory], arguments].concat());
        program.env("QUICKBEAM_CACHE_SIZE", variable);
        let output = finish(program, "");
        let value: Option<serde_json::Value> = serde_json::from_slice(&output.stdout).ok();
        let size = value.and_then(|value| value["cache_size"].as_u64());
        (size, output.status.code(), text(&output.stderr))
    };
    assert_eq!(cache(&[], "").0, Some(64 << 20));
    assert_eq!(cache(&[], "16M").0, Some(16 << 20));
    assert_eq!(cache(&["--cache-size", "32768K"], "16M").0, Some(32 << 20));
    let (_, code, said) = cache(&[], "much");
    assert_eq!(code, Some(1));
    assert!(said.contains("QUICKBEAM_CACHE_SIZE=much"), "{said}");
    let config = folder.path().join("settings.toml");
    let file = path(&config);
    std::fs::write(&config, "cache_size = \"8M\"\nmax_connections = 7\n").expect("a file");
    assert_eq!(cache(&["--config", &file], "").0, Some(8 << 20));
    assert_eq!(cache(&["--config", &file], "16M").0, Some(16 << 20));
    std::fs::write(&config, "cachesize = 1\n").expect("a file");
    let (_, code, said) = cache(&["--config", &file], "");
    assert_eq!(code, Some(1));
    assert!(said.contains("settings.toml") && said.contains("cachesize"), "{said}");
    assert_eq!(run(&["stat", &directory, "--durability", "hope"]).status.code(), Some(2));
    done(&run(&["stat", &directory, "--durability", "nosync"]));
}

#[test]
fn a_missing_environment_is_described_without_library_options() {
    let folder = folder();
    let directory = path(&folder.path().join("nothing"));
    for command in ["stat", "load", "sql"] {
        let said = failed(&run(&[command, &directory]));
        assert!(said.contains("`quickbeam sql --create`"), "{said}");
        assert!(!said.contains("option is off"), "{said}");
    }
}

#[test]
fn load_reports_header_keywords_it_ignores() {
    let folder = folder();
    let directory = environment(&folder);
    let head = "VERSION=3\nformat=print\ntype=btree\nrecnum=1\nbt_minkey=4\nduplicates=0\nkeys=1\n";
    let input = format!("{head}HEADER=END\n a\n b\nDATA=END\n");
    let loaded = run_with_input(&["load", &directory, "n"], &input);
    assert_eq!(loaded.status.code(), Some(0));
    let expected = "n: recnum=1 is not supported and was ignored\nn: 1 records\n";
    assert_eq!(text(&loaded.stderr), expected);
}

#[test]
fn dump_without_a_name_is_of_an_unnamed_database() {
    let folder = folder();
    let directory = environment(&folder);
    assert_eq!(run_with_input(&["load", &directory], DUMP).status.code(), Some(0));
    let named = done(&run(&["dump", &directory, "people"]));
    let unnamed = done(&run(&["dump", &directory, "people", "--unnamed"]));
    assert_eq!(named.replace("database=people\n", ""), unnamed);
    assert!(!unnamed.contains("database="));
    assert_eq!(run(&["dump", &directory, "--unnamed"]).status.code(), Some(2));
}

#[test]
fn every_subcommand_has_a_version() {
    for command in ["create", "list", "stat", "verify", "recover", "dump", "load", "sql"] {
        let shown = done(&run(&[command, "--version"]));
        assert!(shown.ends_with(concat!(env!("CARGO_PKG_VERSION"), "\n")), "{shown}");
    }
}

#[test]
fn a_closed_pipe_ends_the_program_without_a_message() {
    let folder = folder();
    let directory = environment(&folder);
    let body: String = (0..50_000).map(|key| format!(" {key:08x}\n 00\n")).collect();
    let input = format!("VERSION=3\nformat=bytevalue\ntype=btree\nHEADER=END\n{body}DATA=END\n");
    run_with_input(&["load", &directory, "many"], &input);
    let query = "SELECT * FROM many";
    for arguments in [&["dump", &directory][..], &["sql", &directory, "--format=csv", "-c", query]]
    {
        let mut program = command(arguments).spawn().expect("the program starts");
        drop(program.stdout.take());
        let output = program.wait_with_output().expect("the program ends");
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(141), String::new()));
    }
}

/// Mounts a file system for a test. Returns `None` if mounting is not permitted.
fn mounted(folder: &Path, size: &str) -> Option<Unmounted> {
    let options = ["-t", "tmpfs", "-o", size, "tmpfs"];
    let mounted = std::process::Command::new("mount").args(options).arg(folder).output();
    mounted.is_ok_and(|output| output.status.success()).then(|| Unmounted(folder.to_owned()))
}

struct Unmounted(PathBuf);

impl Unmounted {
    fn remount(&self, options: &str) {
        let status =
            std::process::Command::new("mount").args(["-o", options]).arg(&self.0).status();
        assert!(status.is_ok_and(|status| status.success()));
    }
}

impl Drop for Unmounted {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// The read-only commands work on read-only media and report the read-only opening.
#[test]
fn read_only_media_can_be_looked_into() {
    let folder = folder();
    let Some(medium) = mounted(folder.path(), "size=30m") else {
        println!("skipped: mounting is not permitted");
        return;
    };
    let directory = path(&folder.path().join("environment"));
    done(&run(&["create", &directory]));
    run_with_input(&["load", &directory], DUMP);
    done(&run(&[
        "sql",
        "-q",
        &directory,
        "-c",
        "CREATE TABLE t (n INTEGER); INSERT INTO t VALUES (7)",
    ]));
    medium.remount("remount,ro");
    for command in [
        &["list", &directory][..],
        &["stat", &directory],
        &["verify", &directory],
        &["dump", &directory, "people"],
    ] {
        let output = run(command);
        assert_eq!(output.status.code(), Some(0), "{command:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains("only read"), "{command:?}");
    }
    let select = run(&["sql", "--read-only", &directory, "-q", "-c", "SELECT n FROM t"]);
    assert!(done(&select).contains('7'));
    let insert = run(&["sql", "--read-only", &directory, "-c", "INSERT INTO t VALUES (8)"]);
    assert!(failed(&insert).contains("read"), "{}", text(&insert.stderr));
    assert!(failed(&run(&["load", &directory, "data"])).contains("ead-only"));
}

#[test]
fn an_environment_in_use_is_left_alone() {
    let folder = folder();
    let environment =
        Environment::open(folder.path(), Options::default()).expect("it can be opened");
    let directory = path(folder.path());
    for command in ["list", "stat", "verify", "dump", "load", "create"] {
        let said = failed(&run(&[command, &directory]));
        assert!(said.contains(&directory), "{command}: {said}");
    }
    environment.close().expect("it closes");
    done(&run(&["verify", &directory]));
}

#[test]
fn damage_is_found_and_named() {
    let folder = folder();
    let directory = environment(&folder);
    run_with_input(&["load", &directory], DUMP);
    let file = Path::new(&directory).join(quickbeam::DATA_FILE);
    let sound = std::fs::read(&file).expect("the data file can be read");
    let record =
        sound.windows(5).position(|bytes| bytes == b"two\0x").expect("it is stored plainly");
    let mut damaged = sound.clone();
    damaged[record] ^= 1;
    std::fs::write(&file, damaged).expect("the data file can be written");
    let output = run(&["verify", &directory]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(said.contains("page"), "{said}");
    failed(&run(&["dump", &directory, "people"]));
}

#[test]
fn a_wrong_command_line_ends_with_two() {
    for arguments in [&["--nonsense"][..], &["stat"], &["frobnicate"], &[]] {
        assert_eq!(run(arguments).status.code(), Some(2), "{arguments:?}");
    }
    let help = done(&run(&["--help"]));
    assert!(help.contains("Exit codes:") && help.contains("verify"), "{help}");
    assert!(done(&run(&["--version"])).starts_with("quickbeam "));
    assert!(done(&run(&["bench", "--help"])).contains("kv"));
    // The report's own spelling, accepted after its command only.
    assert!(done(&run(&["bench", "tptbm", "-help"])).contains("--nobuild"));
    let output = run(&["bench", "tptbm", "-key", "10", "-build"]);
    assert!(text(&output.stderr).contains("--url"), "{}", text(&output.stderr));
    let output = run(&["bench", "tpcb", "-key", "10"]);
    assert!(text(&output.stderr).contains("'-k'"), "{}", text(&output.stderr));
}

/// `bench kv --ycsb` runs an engine in a process of its own. Past the limit of a step the engine is
/// reported as failed; within it, every step has a result.
#[test]
fn a_benchmark_step_past_its_limit_fails_its_engine_only() {
    let folder = folder();
    let place = |name: &str| path(&folder.path().join(name));
    let bench = |limit: &str| {
        let mut arguments = vec!["bench", "kv", "--ycsb", "--engines", "quickbeam", "--reps", "1"];
        arguments.extend(["--records", "1000", "--step-seconds", "0", "--cache", "8M"]);
        arguments.extend(["--step-limit", limit]);
        let places: Vec<String> =
            ["dir", "json", "csv", "html"].map(|name| format!("--{name}={}", place(name))).into();
        arguments.extend(places.iter().map(String::as_str));
        run(&arguments)
    };
    let whole = bench("600");
    assert_eq!(whole.status.code(), Some(0), "{whole:?}");
    let shown = text(&whole.stdout);
    assert!(shown.contains("YCSB E") && shown.contains("scan backward"), "{shown}");
    let late = bench("0");
    assert_ne!(late.status.code(), Some(0));
    assert!(text(&late.stdout).contains("a step took longer than 0 seconds"), "{late:?}");
}

#[test]
fn a_damaged_environment_is_salvaged_into_a_new_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = environment(&folder);
    assert_eq!(run_with_input(&["load", &directory], DUMP).status.code(), Some(0));
    let whole = done(&run(&["dump", &directory]));
    let data = Path::new(&directory).join("data.quickbeam");
    let mut bytes = std::fs::read(&data).expect("the data file");
    // Both copies of both meta pages.
    for copy in [0, 4096, 8192, 12_288] {
        bytes[copy + 50] ^= 1;
    }
    std::fs::write(&data, &bytes).expect("the data file");
    failed(&run(&["verify", &directory]));
    let asked = failed(&run(&["recover", &directory]));
    assert!(asked.contains("--salvage --into"), "{asked}");
    let new = folder.path().join("new").display().to_string();
    let output = run(&["recover", &directory, "--salvage", "--into", &new]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let report = text(&output.stdout);
    assert!(report.contains("every block was looked at") && report.contains("people"), "{report}");
    assert_eq!(std::fs::read(&data).expect("the data file"), bytes, "nothing was written there");
    assert_eq!(done(&run(&["dump", &new])), whole);
    let again = folder.path().join("again").display().to_string();
    let output = run(&["recover", &new, "--salvage", "--into", &again, "--json"]);
    let report: serde_json::Value = serde_json::from_str(&done(&output)).expect("JSON");
    assert_eq!(report["lost_pages"], serde_json::json!([]));
    assert_eq!(report["databases"][0]["records"], 3);
}
