//! The accesses that the kernel's own read-ahead is told about.

/// Why a kernel's policy is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The page was not in the page cache; the program waits for it.
    Absent,
    /// The access touched a mark that the policy had put there.
    Mark,
    /// A read begins, or it has reached the page given to
    /// [`Plan::call_again_at`](crate::Plan::call_again_at). The page may be cached or not. Only
    /// policies that [want calls](crate::KernelPolicy::wants_calls) get this.
    Call,
}

impl From<readahead::Trigger> for Trigger {
    fn from(trigger: readahead::Trigger) -> Self {
        match trigger {
            readahead::Trigger::Absent => Trigger::Absent,
            readahead::Trigger::Mark => Trigger::Mark,
        }
    }
}

/// An access as a kernel's policy is told about it.
pub type Access = readahead::Access<Trigger>;

/// A one-page miss in a large file, by a program that gave no advice.
#[cfg(test)]
pub(crate) fn miss(page: readahead::Page, previous: Option<readahead::Page>) -> Access {
    Access {
        file: readahead::FileId(1),
        volume: readahead::VolumeId(1),
        open_file: readahead::OpenFileId(1),
        page,
        request: 1,
        previous,
        trigger: Trigger::Absent,
        via: readahead::Via::Read,
        hint: readahead::Hint::Normal,
        file_pages: 1_000_000,
        kernel_window: 32,
        now: 0,
    }
}
