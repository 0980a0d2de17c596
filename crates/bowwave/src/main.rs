//! `bowwave`: the command line. One file a subcommand; the work is done in the libraries.

mod commands;
mod signals;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use commands::{daemon, demo, doctor, lab, reproduce, run};

/// Adaptive read-ahead for stock Linux kernels, from user space.
#[derive(Parser)]
#[command(version, about, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(run::Args),
    Daemon(daemon::Args),
    Doctor(doctor::Args),
    Demo(demo::Args),
    Lab(lab::Args),
    /// Run the published tables again, in a simulator
    Reproduce(reproduce::Args),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Run(args) => run::main(args),
        Command::Daemon(args) => daemon::main(args),
        Command::Doctor(args) => doctor::main(args),
        Command::Demo(args) => demo::main(args),
        Command::Lab(args) => lab::main(args),
        Command::Reproduce(args) => reproduce::main(args),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("bowwave: {error:#}");
        ExitCode::FAILURE
    })
}
