//! A program that reads a file from front to back, again and again.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, Write, stdout};
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::fs::{Advice, fadvise};

use crate::Result;

/// What it tells of each.
pub(super) const STEP_BYTES: usize = 1 << 20;

/// The program. Prints a line for each MiB.
pub(crate) fn stream(path: &str) -> Result<()> {
    let (mut file, mut buffer) = (File::open(path)?, vec![0; STEP_BYTES]);
    loop {
        while file.read(&mut buffer)? == STEP_BYTES {
            writeln!(stdout(), "read")?;
        }
        file.rewind()?;
        fadvise(&file, 0, None, Advice::DontNeed)?;
    }
}

/// The program while it runs. It is killed when this is dropped.
pub(super) struct Stream {
    child: Child,
    told: BufReader<ChildStdout>,
}

impl Stream {
    pub(super) fn start(path: &str) -> Result<Stream> {
        let mut command = Command::new("/proc/self/exe");
        let mut child = command.args(["stream", path]).stdout(Stdio::piped()).spawn()?;
        let told = BufReader::new(child.stdout.take().ok_or("no output")?);
        Ok(Stream { child, told })
    }

    /// Returns when it has read another MiB.
    pub(super) fn step(&mut self) -> Result<()> {
        let mut line = String::new();
        match self.told.read_line(&mut line)? {
            0 => Err("the stream has ended".into()),
            _ => Ok(()),
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
