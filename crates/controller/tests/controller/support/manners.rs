//! How a body answers commands.

use controller::Nanos;

use super::{MS, SECOND};

/// How answers come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manners {
    /// Once, in order, after a tenth of a millisecond.
    Orderly,
    /// Late, far too late, lost, twice, in any order, or with errors.
    Hostile(u64),
}

/// What happens to one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fate {
    pub(crate) is_done: bool,
    pub(crate) fails: bool,
    /// The delay of each answer.
    pub(crate) answers: [Option<Nanos>; 2],
}

impl Manners {
    pub(crate) fn fate(&mut self) -> Fate {
        let prompt = Fate { is_done: true, fails: false, answers: [Some(MS / 10), None] };
        let Manners::Hostile(state) = self else { return prompt };
        *state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let (luck, delay) = (*state >> 60, *state >> 16 & 0xffff_ffff);
        let late = Some(delay % (2 * SECOND));
        match luck {
            0 => Fate { is_done: false, answers: [None, None], ..prompt },
            1 => Fate { answers: [None, None], ..prompt },
            2 | 3 => Fate { answers: [late, Some(delay % (3 * SECOND))], ..prompt },
            4 | 5 => Fate { is_done: false, fails: true, answers: [late, None] },
            6 => Fate { answers: [Some(delay % (40 * SECOND)), None], ..prompt },
            7 | 8 => Fate { answers: [late, None], ..prompt },
            _ => Fate { answers: [Some(delay % MS), None], ..prompt },
        }
    }
}
