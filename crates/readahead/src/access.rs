//! What a policy is told.

/// Index of a page within its file.
pub type Page = u64;

/// Nanoseconds since any fixed moment; the body's clock, real or virtual.
pub type Nanos = u64;

/// Bytes in a page.
pub const PAGE_BYTES: u64 = 4096;

/// Names a file (an inode) for as long as the body lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u64);

/// Names what files lie on, for instance a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VolumeId(pub u32);

/// Names one open file description, the owner of the kernel's own read-ahead state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OpenFileId(pub u64);

/// Why the policy is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The page was not in the page cache; the program waits for it.
    Absent,
    /// The access touched a mark that the policy, or the kernel's own read-ahead, had put there.
    Mark,
    /// A read begins, or reached the page given to [`Plan::call_again_at`](crate::Plan): told to
    /// policies that [want calls](crate::Policy::wants_calls), whether or not the page is cached.
    Call,
}

/// How the program reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// `read(2)` and its kin: `request` is what is left of this call.
    Read,
    /// A page fault in a mapping; the kernel reads around it by itself.
    Mmap,
}

/// What the program has said about its reading (`posix_fadvise`), where the body sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Hint {
    /// Nothing said.
    #[default]
    Normal,
    /// It will read forward.
    Sequential,
    /// Leave it alone.
    Random,
}

/// One access that matters: its page was absent, or carried a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The file read.
    pub file: FileId,
    /// The volume it lies on.
    pub volume: VolumeId,
    /// The open file it is read through.
    pub open_file: OpenFileId,
    /// The page touched.
    pub page: Page,
    /// Pages left in this request, from `page` on; at least 1.
    pub request: u32,
    /// The page touched before this one through the same open file, if known.
    pub previous: Option<Page>,
    /// Why the policy is asked.
    pub trigger: Trigger,
    /// Read or mapped.
    pub via: Via,
    /// The program's own advice.
    pub hint: Hint,
    /// Size of the file in pages, rounded up.
    pub file_pages: u64,
    /// Pages the kernel reads ahead at most for this open file (`ra_pages`).
    pub kernel_window: u32,
    /// When it happened.
    pub now: Nanos,
}

impl Access {
    /// First page after the request, clipped to the file.
    pub fn end(&self) -> Page {
        (self.page + u64::from(self.request.max(1))).min(self.file_pages.max(self.page + 1))
    }
}

#[cfg(test)]
impl Access {
    /// A page read alone that is absent, of a large file, by a program that has given no advice.
    pub(crate) fn miss(page: Page, previous: Option<Page>) -> Self {
        Access {
            file: FileId(1),
            volume: VolumeId(1),
            open_file: OpenFileId(1),
            page,
            request: 1,
            previous,
            trigger: Trigger::Absent,
            via: Via::Read,
            hint: Hint::Normal,
            file_pages: 1_000_000,
            kernel_window: 32,
            now: 0,
        }
    }
}
