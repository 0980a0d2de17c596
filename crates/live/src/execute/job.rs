//! The jobs of a [lane](super::lane), except changes of windows, and how each is answered if nobody does it.

use std::io::PipeReader;

use controller::ids::{BackingId, FileRef, StreamKey, Ticket};
use controller::{Attributes, Completed, Failure};
use readahead::DeviceCost;
use readahead::behind::Span;

use super::readers::Batch;
use super::release::Release;
use super::remembered::ReadRemembered;
use super::walk::{List, ReadFiles};

pub(super) enum Job {
    Read(Batch),
    List(List),
    ReadFiles(ReadFiles),
    ReadRemembered(ReadRemembered),
    Release(Release),
    /// Start writing dirty pages.
    WriteOut {
        ticket: Ticket,
        of: FileRef,
        span: Span,
    },
    /// Look up what drop-behind's rules need to know: path, cgroups and command.
    Describe {
        stream: StreamKey,
        of: FileRef,
    },
    /// Measure what the device costs, until the other end of the pipe is closed.
    Probe(BackingId, Option<PipeReader>),
    /// Write down what the controller has learned of the device's cost.
    Remember(DeviceCost),
}

impl Job {
    /// The answer if nobody does the job; `None` if nobody waits for an answer.
    pub(super) fn refused(&self) -> Option<Completed> {
        Some(match *self {
            Job::Read(Batch { ticket, .. }) => {
                Completed::Read { ticket, failed: Some(Failure::Refused) }
            }
            Job::List(List { ticket, .. }) => Completed::Listed { ticket, listing: None },
            Job::ReadFiles(ReadFiles { ticket, ref files, .. }) => {
                Completed::FilesRead { ticket, files: files.len() as u32, bytes: 0 }
            }
            Job::ReadRemembered(ref job) => job.refused(),
            Job::Release(ref release) => release.refused(),
            Job::WriteOut { ticket, .. } => Completed::WroteOut { ticket },
            Job::Describe { stream, .. } => {
                Completed::Described { stream, attributes: Attributes::default() }
            }
            Job::Probe(backing, _) => Completed::Probed { backing, cost: None },
            Job::Remember(_) => return None,
        })
    }

    /// Whether it brings pages into the cache.
    pub(super) fn reads_ahead(&self) -> bool {
        matches!(self, Job::Read(_) | Job::ReadFiles(_) | Job::ReadRemembered(_))
    }
}
