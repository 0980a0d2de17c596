//! Accesses that cannot be decided before something is known of the page cache.
//!
//! A page that was read ahead and is absent was evicted, dropped by its program, or never came. Only the page
//! cache can tell, and asking it opens the file, which may block. So the access waits for the answer:
//!
//! ```text
//!   Access --> is there a question? -- no --> decide
//!                     | yes
//!                     +--> Look ... Looked --> decide, knowing
//! ```
//!
//! Its reader waits for the device meanwhile, as it would anyway.

use std::collections::BTreeMap;

use readahead::behind::Span;

use crate::Nanos;
use crate::ids::{DeviceNumber, Ticket};
use crate::input::Access;

/// Accesses that wait at most; further ones are decided without an answer.
const MOST_WAITING: usize = 64;

/// An answer that has not come by then does not come.
const LONGEST_NS: Nanos = 1_000_000_000;

/// What is asked of one access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    /// Were these evicted?
    pub(crate) evicted: Span,
    /// Is this one cached?
    pub(crate) cached: Option<u64>,
}

/// What is known when an access is decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Knowledge {
    /// Pages that the kernel had read ahead were evicted before they were used.
    pub(crate) evicted_unused: bool,
    /// This page is absent.
    pub(crate) absent: Option<u64>,
}

/// The accesses that wait.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    waiting: BTreeMap<Ticket, (Nanos, Access, Question)>,
}

impl Questions {
    /// Keeps an access until its answer comes; tells whether there is room.
    pub(crate) fn keep(
        &mut self,
        now: Nanos,
        ticket: Ticket,
        access: &Access,
        question: Question,
    ) -> bool {
        self.waiting.retain(|_, (at, ..)| now.saturating_sub(*at) <= LONGEST_NS);
        if self.waiting.len() >= MOST_WAITING {
            return false;
        }
        self.waiting.insert(ticket, (now, *access, question));
        true
    }

    /// The access that an answer belongs to, when it was, and what is known of it; `None` of an answer that nobody waits for.
    pub(crate) fn answer(
        &mut self,
        ticket: Ticket,
        evicted_pages: u64,
        is_cached: bool,
    ) -> Option<(Nanos, Access, Knowledge)> {
        let (at, access, question) = self.waiting.remove(&ticket)?;
        let evicted_unused = question.evicted.pages() > 0 && evicted_pages > 0;
        let absent = question.cached.filter(|_| !is_cached);
        Some((at, access, Knowledge { evicted_unused, absent }))
    }

    /// A file system was unmounted.
    pub(crate) fn forget_volume(&mut self, dev: DeviceNumber) {
        self.waiting.retain(|_, (_, access, _)| access.of.file.dev != dev);
    }
}
