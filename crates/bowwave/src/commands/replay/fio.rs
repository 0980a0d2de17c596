//! `bowwave replay --fio`: writes a trace as a job of fio.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use trace::Trace;
use trace::fio::Job;

use crate::print;

/// What the job file is called.
const JOB_FILE: &str = "job.fio";

pub(super) fn export(trace: &Trace, folder: &Path, keeps_times: bool) -> anyhow::Result<ExitCode> {
    let job = Job::of(trace, keeps_times)?;
    make_empty(folder)?;
    write(&job, folder)
        .with_context(|| format!("cannot write the job into {}", folder.display()))?;
    tell(&job, folder);
    Ok(ExitCode::SUCCESS)
}

fn make_empty(folder: &Path) -> anyhow::Result<()> {
    let name = folder.display();
    match fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let mut entries =
                fs::read_dir(folder).with_context(|| format!("cannot use {name} as a folder"))?;
            ensure!(entries.next().is_none(), "{name} is not empty; name a new folder");
            Ok(())
        }
        made => made.with_context(|| format!("cannot make the folder {name}")),
    }
}

/// The job file comes last: without it nothing can be started, so no part is taken for the whole.
fn write(job: &Job, folder: &Path) -> io::Result<()> {
    for (name, log) in job.logs() {
        let mut file = BufWriter::new(File::create_new(folder.join(name))?);
        write!(file, "{log}")?;
        file.into_inner()?.sync_all()?;
    }
    fs::write(folder.join(JOB_FILE), job.file())
}

fn tell(job: &Job, folder: &Path) {
    print::note(format_args!(
        "{} reads what {} processes have read; start it there: fio --readonly {JOB_FILE}",
        folder.join(JOB_FILE).display(),
        job.processes()
    ));
    let left_out = job.left_out();
    if left_out.writes > 0 {
        print::note(format_args!(
            "{} writes are left out, as they would overwrite files",
            left_out.writes
        ));
    }
    if left_out.unnameable > 0 {
        print::note(format_args!(
            "{} reads are left out, of files whose names have blanks or more than 255 bytes, which fio cannot read",
            left_out.unnameable
        ));
    }
}
