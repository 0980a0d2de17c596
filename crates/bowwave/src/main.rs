//! `bowwave`, the command line. Each subcommand is a file in `commands`, beside what several of them need. The libraries
//! do the work.

mod commands;
mod invocation;
mod print;
mod service;
mod settings;
mod signals;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use commands::{
    advise, child, daemon, demo, doctor, generate, helper, lab, record, remembered, replay, report,
    reproduce, run, status, top, tune,
};
use print::PrintError;

/// Adaptive read-ahead for stock Linux kernels, from user space.
#[derive(Parser)]
#[command(version = env!("BOWWAVE_VERSION"), about, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(run::Args),
    Remembered(remembered::Args),
    Daemon(daemon::Args),
    Status(status::Args),
    Top(top::Args),
    Record(record::Args),
    Doctor(doctor::Args),
    Demo(demo::Args),
    Tune(tune::Args),
    Lab(lab::Args),
    #[command(hide = true)]
    Probe(helper::Probe),
    #[command(hide = true)]
    Fetch(helper::Fetch),
    #[command(hide = true)]
    Generate(generate::Args),
    Advise(advise::Args),
    /// Replay a trace of reads in a simulator: how would a policy perform on a device?
    Replay(replay::Args),
    /// Write a page: what programs read by a trace, and where they waited
    Report(report::Args),
    /// Run published tables again in a simulator
    Reproduce(reproduce::Args),
}

/// Exit status that shells use for SIGPIPE.
const CLOSED_PIPE: u8 = 128 + 13;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(answer) => return print_answer(&answer),
    };
    let outcome = match cli.command {
        Command::Run(args) => return run::main(args),
        Command::Remembered(args) => remembered::main(args),
        Command::Daemon(args) => daemon::main(args),
        Command::Status(args) => status::main(args),
        Command::Top(args) => top::main(args),
        Command::Record(args) => record::main(args),
        Command::Doctor(args) => doctor::main(args),
        Command::Demo(args) => demo::main(args),
        Command::Tune(args) => tune::main(args),
        Command::Lab(args) => lab::main(args),
        Command::Probe(args) => helper::probe(args),
        Command::Fetch(args) => helper::fetch(args),
        Command::Generate(args) => generate::main(args, Cli::command()),
        Command::Advise(args) => advise::main(args),
        Command::Replay(args) => replay::main(args),
        Command::Report(args) => report::main(args),
        Command::Reproduce(args) => reproduce::main(args),
    };
    outcome.unwrap_or_else(|error| fail(&error))
}

/// Prints help, or what is wrong with the command line.
fn print_answer(answer: &clap::Error) -> ExitCode {
    if let Err(error) = answer.print() {
        return fail(&PrintError(error).into());
    }
    // The other statuses of these two are those of the commands that they start.
    let starts_a_command =
        std::env::args_os().nth(1).is_some_and(|word| word == "run" || word == "record");
    match answer.exit_code() {
        0 => ExitCode::SUCCESS,
        _ if starts_a_command => ExitCode::from(child::OWN_FAILURE),
        code => ExitCode::from(code as u8),
    }
}

fn fail(error: &anyhow::Error) -> ExitCode {
    if error.downcast_ref().is_some_and(PrintError::is_closed_pipe) {
        return ExitCode::from(CLOSED_PIPE);
    }
    print::note(format_args!("{error:#}"));
    ExitCode::FAILURE
}
