//! What a policy answers.

use serde::{Deserialize, Serialize};

use crate::access::Page;

/// Why pages were read ahead; the key of the accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Cause {
    /// The start of a file or of a sequence.
    Initial,
    /// A known sequence continues.
    Sequential,
    /// A sequence recognised from what is cached before it.
    Context,
    /// A sequence that runs towards the start of the file.
    Backward,
    /// A strided sequence: equal pieces at equal distances.
    Stride,
    /// A gap in a sparse sequence, read because skipping it costs more.
    Sparse,
    /// The rest of a region whose random reads have nearly cost as much.
    Dense,
    /// Pages read ahead and evicted before they were used.
    Thrashed,
    /// A random read, as requested by the program.
    Random,
}

impl Cause {
    /// Every cause, in the order of the accounts' rows.
    pub const ALL: [Cause; 9] = [
        Cause::Initial,
        Cause::Sequential,
        Cause::Context,
        Cause::Backward,
        Cause::Stride,
        Cause::Sparse,
        Cause::Dense,
        Cause::Thrashed,
        Cause::Random,
    ];

    /// The cause as it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Initial => "initial",
            Cause::Sequential => "sequential",
            Cause::Context => "context",
            Cause::Backward => "backward",
            Cause::Stride => "stride",
            Cause::Sparse => "sparse",
            Cause::Dense => "dense",
            Cause::Thrashed => "thrashed",
            Cause::Random => "random",
        }
    }
}

/// Pages of a chunk, 128 KiB. The eBPF programs look marks up by chunk, and keep one mark in each.
pub const CHUNK_PAGES: u64 = 32;

/// Most pages of a mark: it touches at most four chunks, wherever it begins.
pub const MARK_PAGES: u64 = 3 * CHUNK_PAGES;

/// A look-ahead mark: the first access to any page of `[first, last]` is reported, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// First marked page.
    pub first: Page,
    /// Last marked page, inclusive.
    pub last: Page,
}

/// One thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Read `[start, start + pages)` ahead, except cached pages.
    Read { start: Page, pages: u64, cause: Cause },
    /// Report the first access to these pages.
    Mark(Mark),
    /// Limit the kernel's own windows of this open file to this many pages.
    KernelWindow { pages: u32 },
}

/// A short list of actions with a fixed capacity, so that deciding never allocates.
#[derive(Debug)]
pub struct Plan {
    actions: Vec<Action>,
    is_recognised: bool,
    whole_request: Option<u32>,
    wider_window: Option<u32>,
}

impl Plan {
    /// More than the widest device's useful concurrency, which bounds a strided plan.
    pub const CAPACITY: usize = 256;

    /// An empty plan; the only allocations a plan ever makes.
    pub fn new() -> Self {
        Plan {
            actions: Vec::with_capacity(Self::CAPACITY),
            is_recognised: false,
            whole_request: None,
            wider_window: None,
        }
    }

    /// Empties the plan.
    pub fn clear(&mut self) {
        self.actions.clear();
        self.is_recognised = false;
        self.whole_request = None;
        self.wider_window = None;
    }

    /// Notes that the reader belongs to a stream, whether or not there is anything to do for it now. Its own reads then
    /// do not count as foreground reads that read-ahead delays.
    pub fn recognise(&mut self) {
        self.is_recognised = true;
    }

    /// Whether the access belongs to a stream.
    pub fn is_recognised(&self) -> bool {
        self.is_recognised
    }

    /// Lets the kernel read requests of `pages` pages at once, and nothing beyond them: its window for this open file
    /// must not be smaller than that.
    pub fn read_whole(&mut self, pages: u32) {
        self.whole_request = Some(pages);
    }

    /// Pages of the requests that the kernel should read at once, if any.
    pub fn whole_request(&self) -> Option<u32> {
        self.whole_request
    }

    /// Lets the kernel read ahead for this open file in a window of `pages` pages, if nobody else reads from the device.
    pub fn widen(&mut self, pages: u32) {
        self.wider_window = Some(pages);
    }

    /// Pages of the window in which the kernel should read ahead, if its own is too small.
    pub fn wider_window(&self) -> Option<u32> {
        self.wider_window
    }

    /// How many actions still fit.
    pub fn spare(&self) -> usize {
        Self::CAPACITY - self.actions.len()
    }

    /// Appends an action. If it does not fit, drops it, which is always safe.
    pub fn push(&mut self, action: Action) {
        if self.spare() > 0 {
            self.actions.push(action);
        }
    }

    /// Appends a read of `[start, start + pages)` unless it is empty.
    pub fn read(&mut self, start: Page, pages: u64, cause: Cause) {
        if pages > 0 {
            self.push(Action::Read { start, pages, cause });
        }
    }

    /// Appends a read of each `(start, pages)`, none of which is empty, as far as they fit.
    pub fn read_each(&mut self, pieces: impl Iterator<Item = (Page, u64)>, cause: Cause) {
        let reads = pieces.map(|(start, pages)| {
            debug_assert!(pages > 0, "the piece at page {start} is empty");
            Action::Read { start, pages, cause }
        });
        self.actions.extend(reads.take(self.spare()));
    }

    /// Appends a mark on `[first, last]`, which are [`MARK_PAGES`] at most.
    pub fn mark(&mut self, first: Page, last: Page) {
        self.push(Action::Mark(Mark { first, last }));
    }

    /// The actions in order.
    pub fn actions(&self) -> &[Action] {
        &self.actions
    }

    /// Number of pages to read.
    pub fn pages(&self) -> u64 {
        self.actions
            .iter()
            .map(|action| if let Action::Read { pages, .. } = action { *pages } else { 0 })
            .sum()
    }
}

impl Default for Plan {
    fn default() -> Self {
        Self::new()
    }
}
