//! Why the kernel's read-ahead did not spare a program a wait.

use crate::cached::Before;
use crate::order::Step;
use crate::pattern::Pattern;

/// Why a read had to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// The stream reads forward. The kernel reads ahead, but not far enough or not fast enough.
    Forward,
    /// The stream goes on forward after it has read elsewhere, or after the file was opened again.
    Interrupted,
    /// The stream reads backward.
    Backward,
    /// The stream reads in equal steps.
    Strided,
    /// The stream jumps, or reads at random.
    Random,
    /// The file is mapped.
    Mapped,
    /// The file is mapped, and faults are here and there.
    MappedRandom,
    /// It is a stream's first read, at the beginning of the file.
    Start,
    /// The file is no larger than a window.
    SmallFile,
    /// All of it had been read or written before.
    Again,
    /// All of it had been asked for before, but was still on its way.
    UnderWay,
    /// The program has announced random reading.
    Advised,
}

/// What is known of a read besides its step.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Setting {
    pub(crate) is_mapped: bool,
    pub(crate) is_small_file: bool,
    pub(crate) is_advised_random: bool,
    /// It reads the first page of the file.
    pub(crate) is_at_start: bool,
    /// Where its data were.
    pub(crate) before: Before,
}

impl Cause {
    /// All of them.
    pub const ALL: [Cause; 12] = [
        Cause::Forward,
        Cause::Interrupted,
        Cause::Backward,
        Cause::Strided,
        Cause::Random,
        Cause::Mapped,
        Cause::MappedRandom,
        Cause::Start,
        Cause::SmallFile,
        Cause::Again,
        Cause::UnderWay,
        Cause::Advised,
    ];

    /// The cause of a wait in a stream of this pattern: among random reads, neighbours are chance.
    pub(crate) fn within(self, pattern: Pattern) -> Self {
        match self {
            Cause::Forward | Cause::Interrupted | Cause::Backward | Cause::Strided
                if pattern == Pattern::Random =>
            {
                Cause::Random
            }
            Cause::Mapped if matches!(pattern, Pattern::Random | Pattern::FewPlaces) => {
                Cause::MappedRandom
            }
            own => own,
        }
    }

    /// Of a read that waited. What rules read-ahead out comes first, then what the kernel treats in a way of its own.
    pub(crate) fn of(step: Step, setting: Setting) -> Self {
        match (setting, step) {
            (Setting { before: Before::Known, .. }, _) => Cause::Again,
            (Setting { before: Before::UnderWay, .. }, _) => Cause::UnderWay,
            (Setting { is_advised_random: true, .. }, _) => Cause::Advised,
            (Setting { is_small_file: true, .. }, _) => Cause::SmallFile,
            (Setting { is_mapped: true, .. }, _) => Cause::Mapped,
            (Setting { is_at_start: true, .. }, Step::First) => Cause::Start,
            (_, Step::Forward) => Cause::Forward,
            (_, Step::Resumed) => Cause::Interrupted,
            (_, Step::Backward) => Cause::Backward,
            (_, Step::Strided) => Cause::Strided,
            (_, Step::First | Step::Jump) => Cause::Random,
            (_, Step::Again) => Cause::Again,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rules_read_ahead_out_comes_first() {
        let none = Setting::default();
        assert_eq!(Cause::of(Step::Backward, none), Cause::Backward);
        assert_eq!(Cause::of(Step::First, none), Cause::Random, "it begins in the middle");
        let start = Setting { is_at_start: true, ..none };
        assert_eq!(Cause::of(Step::First, start), Cause::Start);
        let mapped = Setting { is_mapped: true, ..none };
        assert_eq!(Cause::of(Step::Backward, mapped), Cause::Mapped);
        let advised = Setting { is_advised_random: true, ..mapped };
        assert_eq!(Cause::of(Step::Forward, advised), Cause::Advised);
        let again = Setting { before: Before::Known, ..advised };
        assert_eq!(Cause::of(Step::First, again), Cause::Again);
        let under_way = Setting { before: Before::UnderWay, ..advised };
        assert_eq!(Cause::of(Step::Again, under_way), Cause::UnderWay);
    }
}
