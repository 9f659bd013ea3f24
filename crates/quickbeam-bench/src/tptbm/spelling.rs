//! The TimesTen report's spelling of options: names of several letters after one dash, which clap
//! takes for several options.

use std::ffi::OsString;

/// The report's names, each with ours.
const NAMES: [(&str, &str); 25] = [
    ("url", "url"),
    ("threads", "threads"),
    ("reads", "reads"),
    ("inserts", "inserts"),
    ("insert", "inserts"),
    ("deletes", "deletes"),
    ("delete", "deletes"),
    ("key", "key"),
    ("xacts", "xacts"),
    ("seed", "seed"),
    ("min", "min"),
    ("max", "max"),
    ("multiop", "multiop"),
    ("dbms", "dbms"),
    ("CSCommit", "CSCommit"),
    ("commitReads", "commitReads"),
    ("range", "range"),
    ("plsql", "plsql"),
    ("trace", "trace"),
    ("build", "build"),
    ("nobuild", "nobuild"),
    ("nb", "nobuild"),
    ("help", "help"),
    // Not the report's, but who writes the others so will write these so, too.
    ("preset", "preset"),
    ("modes", "modes"),
];

/// The words of a command line, the program's name first. After `bench tptbm` the report's options
/// become ours; all else stays.
pub fn with_long_options(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.into_iter().collect();
    let is_tptbm = words.get(1..3).is_some_and(|command| command == ["bench", "tptbm"]);
    let options = words.iter_mut().skip(3).take_while(|word| *word != "--");
    for word in options.filter(|_| is_tptbm) {
        if let Some(long) = word.to_str().and_then(long) {
            *word = long.into();
        }
    }
    words
}

/// Our spelling of an option, if it is one of the report's: `-key` or `-key=100`.
fn long(word: &str) -> Option<String> {
    let word = word.strip_prefix('-')?;
    let (name, value) = word.split_at(word.find('=').unwrap_or(word.len()));
    let (_, ours) = NAMES.iter().find(|(theirs, _)| *theirs == name)?;
    Some(format!("--{ours}{value}"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::command::BenchCommand;
    use crate::tptbm::TptbmArgs;

    #[derive(Parser)]
    struct Program {
        #[command(subcommand)]
        command: Command,
    }

    #[derive(clap::Subcommand)]
    enum Command {
        Bench {
            #[command(subcommand)]
            command: BenchCommand,
        },
    }

    fn parsed(line: &str) -> TptbmArgs {
        let words = with_long_options(line.split_whitespace().map(OsString::from));
        match Program::try_parse_from(words) {
            Ok(Program { command: Command::Bench { command: BenchCommand::Tptbm(args) } }) => *args,
            Ok(_) => panic!("{line}: another command"),
            Err(error) => panic!("{line}: {error}"),
        }
    }

    #[test]
    fn every_option_of_the_report_is_taken_as_it_writes_it() {
        let args = parsed(
            "quickbeam bench tptbm -url jdbc:x -threads 10 -reads 70 -inserts 5 -deletes 6 -key 200 -xacts 1000 \
             -seed 7 -min 2 -max 3 -dbms quickbeam -CSCommit -commitReads -range -trace -nobuild",
        );
        assert_eq!((args.url.as_deref(), args.threads, args.key), (Some("jdbc:x"), 10, Some(200)));
        assert_eq!((args.reads, args.inserts, args.deletes), (70, 5, 6));
        assert_eq!((args.xacts, args.options.seed, args.min, args.max), (1000, 7, 2, 3));
        assert_eq!(args.options.engines, ["quickbeam"]);
        assert!(args.cs_commit && args.commit_reads && args.range && args.trace && args.nobuild);
        let args = parsed("quickbeam bench tptbm -multiop -plsql -build -url=here --key 5 -o x");
        assert!(args.multiop && args.plsql && args.build);
        assert_eq!((args.url.as_deref(), args.key), (Some("here"), Some(5)));
        let args = parsed("quickbeam bench tptbm -insert 1 -delete=2 -nb -url u -modes ns");
        assert_eq!((args.inserts, args.deletes, args.nobuild), (1, 2, true));
    }

    #[test]
    fn nothing_else_is_changed() {
        for line in [
            "quickbeam bench kv -key 100",
            "quickbeam sql -key",
            "quickbeam bench tptbm --key 100 -o file -x -keys -- -key",
            "quickbeam bench tptbm key -",
            "quickbeam",
        ] {
            let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            assert_eq!(with_long_options(words.clone()), words, "{line}");
        }
    }
}
