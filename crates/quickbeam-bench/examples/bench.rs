//! Development only.
use clap::Parser;
#[derive(Parser)]
struct Program {
    #[command(subcommand)]
    command: quickbeam_bench::BenchCommand,
}
fn main() -> anyhow::Result<()> {
    let mut args: Vec<String> = std::env::args().collect();
    if args.get(1).is_some_and(|a| a == "bench") {
        args.remove(1);
    }
    quickbeam_bench::run(Program::parse_from(args).command)
}
