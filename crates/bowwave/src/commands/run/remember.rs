//! What `--remember` keeps of a command's start.

use std::path::Path;

use remembered::{List, ListError, Lists, Name, Noted};

use crate::print;

/// The start of a command, remembered under a name.
pub(super) struct Start {
    lists: Lists,
    name: Name,
    list: List,
}

impl Start {
    /// What was kept at the last start. If that cannot be read, says so and begins anew.
    ///
    /// # Errors
    /// If others may change the folder.
    pub(super) fn of(name: Name, folder: &Path) -> Result<Start, ListError> {
        let lists = Lists::in_folder(folder);
        let list = match lists.read(&name) {
            Err(error @ ListError::ForeignFolder { .. }) => return Err(error),
            Err(error) => {
                print::note(format_args!(
                    "{error}; it will be replaced, and this start counts as the first"
                ));
                None
            }
            Ok(list) => list,
        };
        Ok(Start { lists, name, list: list.unwrap_or_default() })
    }

    pub(super) fn list(&self) -> &List {
        &self.list
    }

    /// Keeps what was noted of this start for the next one. If that is impossible, says so, and the old list stays.
    pub(super) fn keep(self, noted: Noted) {
        let Start { lists, name, list } = self;
        let error = match noted.after(list) {
            Err(late) => late.to_string(),
            Ok(next) => match lists.write(&name, &next) {
                Err(error) => error.to_string(),
                Ok(()) => return,
            },
        };
        print::note(format_args!("{error}; the next start will know nothing of this one"));
    }
}
