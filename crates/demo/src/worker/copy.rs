//! Ways of copying a file.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use rustix::fs::{copy_file_range, sendfile};
use serde::{Deserialize, Serialize};

/// The system calls that copy a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// `read` and `write`, 64 KiB at a time.
    ReadWrite,
    /// Like rsync: reads and writes 256 KiB at a time, into a file of another name, which is then renamed.
    Rsync,
    /// `sendfile`, 1 MiB at a time.
    Sendfile,
    /// `copy_file_range`, 1 MiB at a time.
    CopyFileRange,
}

/// Bytes for the kernel to copy at a time.
const PIECE: usize = 1 << 20;

impl How {
    #[cfg(test)]
    pub(crate) const ALL: [How; 4] =
        [How::ReadWrite, How::Rsync, How::Sendfile, How::CopyFileRange];

    #[cfg(test)]
    pub(crate) fn name(self) -> String {
        format!("{self:?}")
    }
}

pub(super) fn copy(from: &Path, to: &Path, how: How) -> io::Result<()> {
    let source = File::open(from)?;
    match how {
        How::ReadWrite => by_pieces(source, File::create(to)?, 64 << 10),
        How::Rsync => {
            let partial = to.with_extension("partial");
            by_pieces(source, File::create(&partial)?, 256 << 10)?;
            fs::rename(partial, to)
        }
        How::Sendfile => {
            let copy = File::create(to)?;
            until_nothing(|| sendfile(&copy, &source, None, PIECE))
        }
        How::CopyFileRange => {
            let copy = File::create(to)?;
            until_nothing(|| copy_file_range(&source, None, &copy, None, PIECE))
        }
    }
}

fn by_pieces(mut from: File, mut to: File, bytes: usize) -> io::Result<()> {
    let mut buffer = vec![0; bytes];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(()),
            count => to.write_all(&buffer[..count])?,
        }
    }
}

fn until_nothing(mut step: impl FnMut() -> rustix::io::Result<usize>) -> io::Result<()> {
    while step()? > 0 {}
    Ok(())
}
