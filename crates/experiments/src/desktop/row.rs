//! The meaning of a row of the published table.

use std::ops::RangeInclusive;

use super::super::experiment::ExperimentError;
use super::{NAME, Row};

/// What a row's program does with its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    Scan,
    Compare,
    Backward { read_kb: u64 },
}

/// Which files a row's program reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Files {
    Lib,
    Image,
    Debian,
    Dsl,
    Sparse,
    Backward,
}

/// The workloads by the names of the published table.
const WORKLOADS: [(&str, Task, Files); 11] = [
    ("grep /lib", Task::Scan, Files::Lib),
    ("grep -r", Task::Scan, Files::Image),
    ("dd debian.iso", Task::Scan, Files::Debian),
    ("dd dsl.iso", Task::Scan, Files::Dsl),
    ("dd sparse", Task::Scan, Files::Sparse),
    ("diff /lib /lib.1", Task::Compare, Files::Lib),
    ("diff -r", Task::Compare, Files::Image),
    ("diff debian.iso", Task::Compare, Files::Debian),
    ("diff dsl.iso dsl.iso.1", Task::Compare, Files::Dsl),
    ("64k reads", Task::Backward { read_kb: 64 }, Files::Backward),
    ("4k reads", Task::Backward { read_kb: 4 }, Files::Backward),
];

/// How the groups of rows over the network begin, in both rounds.
const NFS: &str = "nfs rsize ";
const NFS_AGAIN: &str = "nfs2 rsize ";

/// Where a row's files are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mount {
    Disk,
    /// Over the network, in requests of this many bytes; in the second round, of another /lib.
    Nfs {
        rsize: u64,
        is_again: bool,
    },
    /// In a file on the disk.
    Image,
}

impl Row {
    /// Checks that there is a script for it.
    pub(super) fn check(&self) -> Result<(), ExperimentError> {
        self.task()?;
        self.mount().map(drop)
    }

    /// Its task and files.
    pub(super) fn task(&self) -> Result<(Task, Files), ExperimentError> {
        let known = WORKLOADS.into_iter().find(|(name, ..)| *name == self.workload);
        known.map(|(_, task, files)| (task, files)).ok_or_else(|| {
            let names = WORKLOADS.map(|(name, ..)| name).join(", ");
            self.wrong(format!("the workload is none of {names}"))
        })
    }

    /// Where its files are.
    pub(super) fn mount(&self) -> Result<Mount, ExperimentError> {
        /// Sizes of an NFS client's request in KiB: at least a page.
        const RSIZE_KB: RangeInclusive<u64> = 4..=1024;
        let is_again = self.group.starts_with(NFS_AGAIN);
        let rsize = self.group.strip_prefix(if is_again { NFS_AGAIN } else { NFS });
        let Some(rsize) = rsize else {
            let is_image = self.group == "loop-mounted image";
            return Ok(if is_image { Mount::Image } else { Mount::Disk });
        };
        let kb = rsize.strip_suffix('k').and_then(|kb| kb.parse().ok());
        let kb: Option<u64> = kb.filter(|kb| RSIZE_KB.contains(kb));
        let mount = kb.map(|kb| Mount::Nfs { rsize: kb << 10, is_again });
        mount.ok_or_else(|| self.wrong(format!("the rsize is {rsize:?} and must be 4k to 1024k")))
    }

    fn wrong(&self, problem: String) -> ExperimentError {
        ExperimentError::Row { name: NAME, row: self.name(), problem }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::experiment::figures;
    use super::*;

    const PUBLISHED: &str = include_str!("../../../../experiments/desktop-2006.csv");

    fn check(text: &str) -> Result<(), ExperimentError> {
        figures::<Row>(NAME, text)?.iter().try_for_each(Row::check)
    }

    #[test]
    fn a_row_that_no_script_stands_for_is_one_error_that_names_it() {
        check(PUBLISHED).expect("it is valid");
        for (was, is, row, problem) in [
            (
                "backward,4k",
                "backward,5k",
                "backward: 5k reads",
                "the workload is none of grep /lib",
            ),
            ("rsize 8k,dd", "rsize 8,dd", "nfs rsize 8: dd dsl.iso", "the rsize is \"8\" and must"),
            ("rsize 8k,dd", "rsize 0k,dd", "nfs rsize 0k: dd dsl.iso", "must be 4k to 1024k"),
        ] {
            let error = check(&PUBLISHED.replace(was, is)).expect_err(is).to_string();
            assert!(error.contains(NAME) && error.contains(row), "{error}");
            assert!(error.contains(problem) && error.lines().count() == 1, "{error}");
        }
    }
}
