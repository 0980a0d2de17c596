//! What the kernel's own read-ahead hears of.

/// Why a kernel's policy is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The page was not in the page cache; the program waits for it.
    Absent,
    /// The access touched a mark that the policy had put there.
    Mark,
    /// A read begins, or reached the page given to [`Plan::call_again_at`](crate::Plan::call_again_at),
    /// whether or not the page is cached. Told to policies that
    /// [want calls](crate::KernelPolicy::wants_calls).
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

/// One access, as a kernel's policy is told of it.
pub type Access = readahead::Access<Trigger>;

/// A miss of one page of a large file, by a program that has given no advice.
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
