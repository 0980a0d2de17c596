//! `bowwave replay --fio`: writes a trace as a job of fio.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use trace::fio::Job;
use trace::{Trace, TracedFile};

use crate::print;

/// What the job file is called.
const JOB_FILE: &str = "job.fio";

/// Writes it into `folder`, in files of these permissions.
pub(super) fn export(
    trace: &Trace,
    folder: &Path,
    keeps_times: bool,
    mode: u32,
) -> anyhow::Result<ExitCode> {
    let job = Job::of(trace, keeps_times)?;
    make_empty(folder)?;
    write(&job, folder, mode)
        .with_context(|| format!("cannot write the job into {}", folder.display()))?;
    tell(&job, folder);
    Ok(ExitCode::SUCCESS)
}

fn make_empty(folder: &Path) -> anyhow::Result<()> {
    let name = folder.display();
    match fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let about =
                fs::metadata(folder).with_context(|| format!("cannot use {name} as a folder"))?;
            let is_ours = about.uid() == rustix::process::geteuid().as_raw();
            let is_safe = is_ours && about.mode() & 0o022 == 0;
            ensure!(is_safe, "others may change what is in {name}; name a new folder");
            let mut entries =
                fs::read_dir(folder).with_context(|| format!("cannot use {name} as a folder"))?;
            ensure!(entries.next().is_none(), "{name} is not empty; name a new folder");
            Ok(())
        }
        made => made.with_context(|| format!("cannot make the folder {name}")),
    }
}

/// The job file comes last: without it nothing can be started, so no part is taken for the whole.
fn write(job: &Job, folder: &Path, mode: u32) -> io::Result<()> {
    let create = |name: &str| {
        File::options().write(true).create_new(true).mode(mode).open(folder.join(name))
    };
    for (name, log) in job.logs() {
        let mut file = BufWriter::new(create(&name)?);
        write!(file, "{log}")?;
        file.into_inner()?.sync_all()?;
    }
    create(JOB_FILE)?.write_all(job.file().as_bytes())
}

fn tell(job: &Job, folder: &Path) {
    print::note(format_args!(
        "{} reads what {} read; start it there: fio --readonly {JOB_FILE}",
        folder.join(JOB_FILE).display(),
        print::counted(job.processes() as u64, "process has", "processes have")
    ));
    let left_out = job.left_out();
    if left_out.writes > 0 {
        print::note(format_args!(
            "{} left out, as files would be overwritten",
            print::counted(left_out.writes, "write is", "writes are")
        ));
    }
    if left_out.unnameable > 0 {
        print::note(format_args!(
            "{} left out, of files whose names have blanks or more than 255 bytes, which fio cannot read",
            print::counted(left_out.unnameable, "read is", "reads are")
        ));
    }
    let missing = job.files().filter(|file| !is_here(file, folder)).count();
    if missing > 0 {
        print::note(format_args!(
            "{} not here, or shorter than in the trace; fio ends a process at the first read that it cannot do",
            print::counted(missing as u64, "file is", "files are")
        ));
    }
}

/// Whether fio, started in the folder, can read all that a trace may have read of the file.
fn is_here(file: &TracedFile, folder: &Path) -> bool {
    let about = fs::metadata(folder.join(&file.name));
    about.is_ok_and(|about| about.is_file() && about.len() >= file.bytes)
}
