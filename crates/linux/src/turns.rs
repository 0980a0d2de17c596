//! Who may have root look through very many descriptors, and when.
//!
//! A user may have a million descriptors in each of many processes, and cause a search with each read. So a program is
//! searched beyond its first descriptors only at its owner's turn: one search at a time, for a tenth of the time.

use std::collections::HashMap;
use std::io;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::owner::Owner;

/// An owner waits for this many times as long as the last search took.
const WAITS_PER_SEARCH: u32 = 9;

/// Does a long search for a file of that process's.
///
/// # Errors
/// `WouldBlock` if it is not the turn of the process's owner, `NotFound` if the process has ended.
pub(crate) fn at_its_owners<T>(tgid: u32, search: impl FnOnce() -> T) -> io::Result<T> {
    static TURNS: LazyLock<Mutex<Turns>> = LazyLock::new(Mutex::default);
    let turns = || TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    let owner = Owner::of(tgid).ok_or(io::ErrorKind::NotFound)?;
    let begun = Instant::now();
    if !turns().begin(&owner, begun) {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    let found = search();
    let now = Instant::now();
    turns().end(owner, now, now - begun);
    Ok(found)
}

/// Owners who may not begin a search now.
#[derive(Debug, Default)]
struct Turns {
    /// Until when an owner waits; `None` while a search is under way.
    waiting: HashMap<Owner, Option<Instant>>,
}

impl Turns {
    /// Begins a search, which has to be [ended](Self::end), if it is the owner's turn.
    fn begin(&mut self, owner: &Owner, now: Instant) -> bool {
        self.waiting.retain(|_, until| until.is_none_or(|until| until > now));
        let is_turn = !self.waiting.contains_key(owner);
        if is_turn {
            self.waiting.insert(owner.clone(), None);
        }
        is_turn
    }

    /// Ends a search that took so long.
    fn end(&mut self, owner: Owner, now: Instant, took: Duration) {
        self.waiting.insert(owner, Some(now + took * WAITS_PER_SEARCH));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_has_one_search_at_a_time_and_a_tenth_of_the_time() {
        let (mut turns, begin, took) =
            (Turns::default(), Instant::now(), Duration::from_millis(20));
        let (one, other) = (Owner::User(1), Owner::User(2));
        assert!(turns.begin(&one, begin));
        assert!(!turns.begin(&one, begin + took), "one is under way");
        assert!(turns.begin(&other, begin), "of somebody else's");
        let end = begin + took;
        turns.end(one.clone(), end, took);
        let next = begin + 10 * took;
        assert!(!turns.begin(&one, next - Duration::from_nanos(1)));
        assert!(turns.begin(&one, next));
    }
}
