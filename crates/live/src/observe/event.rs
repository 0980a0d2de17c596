//! What an observer reports.

use readahead::FileKey;

/// Why an event was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A read found its page absent.
    Miss,
    /// A read touched the kernel's own look-ahead mark.
    KernelMark,
    /// An access touched a mark of ours.
    Mark,
    /// A page fault that mapping cached neighbours could not serve.
    Fault,
    /// A stream went on by a step; `mark` has the pages passed, the second one excluded.
    Passed {
        /// It writes them.
        written: bool,
        /// Its process is none that is led.
        foreign: bool,
    },
}

/// One access that matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// CLOCK_MONOTONIC, nanoseconds.
    pub now: u64,
    /// The file.
    pub file: FileKey,
    /// Its inode's generation, for opening it by handle.
    pub generation: u32,
    /// The process that reads.
    pub tgid: u32,
    /// The page touched.
    pub page: u64,
    /// Pages of the request from there on.
    pub request_pages: u32,
    /// The page touched before through the same open file, if known.
    pub previous: Option<u64>,
    /// Size of the file in bytes.
    pub file_bytes: u64,
    /// Identity of the open file; 0 if unknown.
    pub open_file: u64,
    /// The kernel's own window for this open file, in pages.
    pub kernel_window: u32,
    /// Why.
    pub kind: Kind,
    /// The access came through a mapping.
    pub mapped: bool,
    /// The program advised random access.
    pub advised_random: bool,
    /// The program advised sequential access.
    pub advised_sequential: bool,
    /// The program advised that it uses everything once.
    pub advised_noreuse: bool,
    /// Of a miss: pages from here to the end of what the kernel had read ahead through this open file,
    /// if its reader comes here for the first time; the page was cached, then, and is gone. 0 elsewhere.
    pub window_left: u32,
    /// First and last page of the mark that was touched, where one was.
    pub mark: (u64, u64),
}

#[cfg(test)]
impl Event {
    /// The first page of a file read alone, by a program that has given no advice.
    pub(crate) fn miss(file: FileKey, tgid: u32) -> Self {
        Event {
            now: 0,
            file,
            generation: 0,
            tgid,
            page: 0,
            request_pages: 1,
            previous: None,
            file_bytes: 1,
            open_file: 0,
            kernel_window: 32,
            kind: Kind::Miss,
            mapped: false,
            advised_random: false,
            advised_sequential: false,
            advised_noreuse: false,
            window_left: 0,
            mark: (0, 0),
        }
    }
}
