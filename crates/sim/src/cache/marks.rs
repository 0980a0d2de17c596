//! Marks of what runs on top of the kernel: they belong to a file, and lie on pages whether cached or not.

use readahead::{Cause, Mark, Page};

use super::PageCache;

/// A mark of what runs on top of the kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UserMark {
    pub(crate) mark: Mark,
    /// Why the pages ahead of which it lies were asked for; `None` if nothing was asked for with it.
    pub(crate) cause: Option<Cause>,
}

impl PageCache {
    /// Sets a mark of what runs on top of the kernel, ahead of what it asked for with it.
    pub(crate) fn set_mark(&mut self, file: u32, mark: Mark, cause: Option<Cause>) {
        self.files[file as usize].marks.push(UserMark { mark, cause });
    }

    /// Takes the mark that lies on a page, if there is one.
    #[inline]
    pub(crate) fn take_mark(&mut self, file: u32, page: Page) -> Option<UserMark> {
        let marks = &mut self.files[file as usize].marks;
        if marks.is_empty() {
            return None;
        }
        let lies_on = |UserMark { mark, .. }: &UserMark| (mark.first..=mark.last).contains(&page);
        let hit = marks.iter().position(lies_on);
        hit.map(|index| marks.swap_remove(index))
    }
}
