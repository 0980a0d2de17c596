//! What `--remember` keeps of a command's start.

use std::path::Path;

use live::remembered::{List, Lists, Name, Noted};

use crate::print;

/// The list of one name.
#[derive(Clone)]
pub(super) struct Memory {
    lists: Lists,
    name: Name,
    list: List,
}

impl Memory {
    /// What was kept at the last start. If that cannot be read, says so and begins anew.
    pub(super) fn of(name: Name, folder: &Path) -> Memory {
        let lists = Lists::in_folder(folder);
        let list = lists.read(&name).unwrap_or_else(|error| {
            print::note(format_args!("{error}; this start is the first one for bowwave"));
            None
        });
        Memory { lists, name, list: list.unwrap_or_default() }
    }

    pub(super) fn list(&self) -> &List {
        &self.list
    }

    /// Keeps what was noted of this start for the next one. If that is impossible, says so.
    pub(super) fn keep(self, noted: Noted) {
        let list = noted.after(&self.list);
        if let Err(error) = self.lists.write(&self.name, &list) {
            print::note(format_args!("{error}; the next start will know nothing of this one"));
        }
    }
}
