//! The jobs that run while the working set is in use.

use std::path::Path;

use super::sizes::{BIG, COPY, SCANNED};
use crate::worker::How;
use crate::worker::jobs::Job;

/// Bytes of each read of a file that is only read.
pub(super) const READ_BYTES: u64 = 64 << 10;

/// A job that disturbs the working set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disturbance {
    Nothing,
    /// Reads the large file.
    Read,
    /// Copies it with these system calls.
    Copy(How),
    /// Copies it with the program `cp`.
    Cp,
    /// Reads the working set's own file, then the large one.
    Backup,
}

impl Disturbance {
    /// The three published ones, four more ways of copying, and a backup that also reads the working set.
    pub(super) const ALL: [Disturbance; 8] = [
        Disturbance::Nothing,
        Disturbance::Read,
        Disturbance::Copy(How::ReadWrite),
        Disturbance::Cp,
        Disturbance::Copy(How::Rsync),
        Disturbance::Copy(How::Sendfile),
        Disturbance::Copy(How::CopyFileRange),
        Disturbance::Backup,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Disturbance::Nothing => "none",
            Disturbance::Read => "read",
            Disturbance::Copy(How::ReadWrite) => "copy",
            Disturbance::Cp => "cp",
            Disturbance::Copy(How::Rsync) => "rsync-like",
            Disturbance::Copy(How::Sendfile) => "sendfile",
            Disturbance::Copy(How::CopyFileRange) => "copy_file_range",
            Disturbance::Backup => "backup of both",
        }
    }

    /// The job in `folder`, if there is one.
    pub(super) fn job(self, folder: &Path) -> Option<Job> {
        let (scanned, big, copy) = (folder.join(SCANNED), folder.join(BIG), folder.join(COPY));
        let pass = |paths| Some(Job::Pass { paths, each: READ_BYTES });
        match self {
            Disturbance::Nothing => None,
            Disturbance::Read => pass(vec![big]),
            Disturbance::Backup => pass(vec![scanned, big]),
            Disturbance::Copy(how) => Some(Job::Copy { from: big, to: copy, how }),
            Disturbance::Cp => {
                let words = ["cp".into(), big.display().to_string(), copy.display().to_string()];
                Some(Job::Program { words: words.into() })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_has_a_name_of_its_own_and_all_but_one_something_to_do() {
        let names: HashSet<_> = Disturbance::ALL.iter().map(|one| one.name()).collect();
        assert_eq!(names.len(), Disturbance::ALL.len());
        let folder = Path::new("/mnt");
        let busy = Disturbance::ALL.iter().filter(|one| one.job(folder).is_some()).count();
        assert_eq!(busy, Disturbance::ALL.len() - 1);
    }
}
