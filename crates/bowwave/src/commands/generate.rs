//! `bowwave generate`, hidden: writes man pages and shell completions for `make install` and packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Command;
use clap_complete::Shell;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The folder for files of any architecture, such as /usr/share.
    share: PathBuf,
}

/// Each shell with the folder for its completions.
const SHELLS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions"),
    (Shell::Fish, "fish/vendor_completions.d"),
    (Shell::Zsh, "zsh/site-functions"),
];

/// Writes the files for `program`, the whole command line of bowwave.
pub(crate) fn main(args: Args, program: Command) -> anyhow::Result<ExitCode> {
    let mut program = without_hidden_commands(program);
    let folder = make_folder(&args.share, "man/man1")?;
    clap_mangen::generate_to(without_help_commands(program.clone()), &folder)
        .with_context(|| format!("cannot write into {}", folder.display()))?;
    for (shell, folder) in SHELLS {
        let folder = make_folder(&args.share, folder)?;
        let path = clap_complete::generate_to(shell, &mut program, "bowwave", &folder)
            .with_context(|| format!("cannot write into {}", folder.display()))?;
        // Bash looks for a file with the command's name.
        if shell == Shell::Bash {
            fs::rename(path, folder.join("bowwave"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// `bowwave help lab up` needs no page of its own.
fn without_help_commands(program: Command) -> Command {
    program.disable_help_subcommand(true).mut_subcommands(without_help_commands)
}

fn without_hidden_commands(program: Command) -> Command {
    let commands: Vec<Command> =
        program.get_subcommands().filter(|command| !command.is_hide_set()).cloned().collect();
    let mut bare =
        Command::new("bowwave").version(env!("BOWWAVE_VERSION")).arg_required_else_help(true);
    if let Some(about) = program.get_about() {
        bare = bare.about(about.clone());
    }
    bare.subcommands(commands)
}

fn make_folder(share: &Path, folder: &str) -> anyhow::Result<PathBuf> {
    let folder = share.join(folder);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}
