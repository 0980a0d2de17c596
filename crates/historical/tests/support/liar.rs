//! A page cache that contradicts itself, as seen from within the kernel.

use historical::{Ageing, KernelView, PageState};
use readahead::Page;

#[path = "../../../readahead/tests/support/liar.rs"]
mod outside;

pub(crate) use outside::Liar;

impl KernelView for Liar {
    fn state(&self, page: Page) -> PageState {
        match self.draw(page, u64::MAX) % 5 {
            0 => PageState::Absent,
            1 => PageState::Fresh,
            2 => PageState::Referenced,
            3 => PageState::Active,
            _ => PageState::ActiveReferenced,
        }
    }

    fn ageing(&self) -> Ageing {
        let scale = |draw: u64| draw >> (draw % 64);
        Ageing {
            scanned_pages: scale(self.draw(1, 1)),
            inactive_and_free_pages: scale(self.draw(2, 2)),
        }
    }
}
