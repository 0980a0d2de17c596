//! Readers of one cgroup cannot harm those of another.

use controller::ids::{CgroupId, OpenFile, Target};
use controller::{Access, Command, Completed, Nanos, Options, WindowOutcome};
use proptest::prelude::*;
use readahead::Past;
use readahead::behind::Span;

use crate::support::{Bench, MS, VOLUME, miss};

const VICTIM: CgroupId = CgroupId(1);
const STRANGER: CgroupId = CgroupId(2);

/// The victim reads one file backward through this open file, and another one forward through the next.
const BACKWARD: OpenFile = OpenFile(1);
const FORWARD: OpenFile = OpenFile(2);

/// What was requested for the victim: spans of pages, and changes of windows.
#[derive(Debug, Default)]
struct Served {
    reads: Vec<Span>,
    windows: usize,
}

impl Served {
    fn pages(&self) -> u64 {
        self.reads.iter().map(|span| span.pages()).sum()
    }
}

/// Answers every command at once, and the commands that follow from the answers.
fn carry_out(bench: &mut Bench, commands: Vec<Command>, served: &mut Served) {
    let mut answered = None;
    for command in commands {
        let next = match command {
            Command::Read { ticket, of, span, .. } => {
                if of.file.ino < 10 {
                    served.reads.push(span);
                }
                if answered.replace(ticket) == Some(ticket) {
                    continue;
                }
                bench.completed(Completed::Read { ticket, failed: None })
            }
            Command::SetWindow { ticket, target, .. } => {
                let is_victims =
                    target == Target::OpenFile(BACKWARD) || target == Target::OpenFile(FORWARD);
                served.windows += usize::from(is_victims);
                let outcome = WindowOutcome::Set { own_pages: 32 };
                bench.completed(Completed::WindowSet {
                    ticket: Some(ticket),
                    target,
                    outcome,
                    during: (0, 0),
                })
            }
            _ => continue,
        };
        carry_out(bench, next, served);
    }
}

/// A victim that reads two files, and a stranger in `cgroup`. The kernel had read pages ahead for the stranger, and
/// they have left the page cache like this.
fn served_beside(cgroup: CgroupId, past: Past, pauses: &[Nanos]) -> Served {
    let mut bench = Bench::new(VOLUME, Options::default());
    let mut served = Served::default();
    for (round, pause) in pauses.iter().enumerate() {
        let round = round as u64;
        bench.now += pause;
        let stranger = Access {
            cgroup,
            open_file: Some(OpenFile(100 + round)),
            past,
            ..miss(10 + round, 50_000)
        };
        let back = Access {
            cgroup: VICTIM,
            open_file: Some(BACKWARD),
            request_pages: 4,
            ..miss(1, 90_000 - 4 * round)
        };
        let on = Access {
            cgroup: VICTIM,
            open_file: Some(FORWARD),
            previous: round.checked_sub(1).map(|before| 512 * before + 511),
            request_pages: 512,
            ..miss(2, 512 * round)
        };
        for access in [stranger, back, on] {
            let commands = bench.access(access);
            carry_out(&mut bench, commands, &mut served);
        }
        let commands = bench.tick(MS);
        carry_out(&mut bench, commands, &mut served);
    }
    served
}

#[test]
fn thrashing_within_a_cgroup_bounds_all_that_is_read_there() {
    let served = served_beside(VICTIM, Past::EvictedUnused, &[MS; 60]);
    let undisturbed = served_beside(VICTIM, Past::Unknown, &[MS; 60]);
    assert!(served.windows > 0, "{served:?}");
    assert!(served.pages() < undisturbed.pages(), "{served:?} {undisturbed:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

    /// Any program can have its own pages evicted, with `madvise(MADV_PAGEOUT)` for example.
    #[test]
    fn thrashing_elsewhere_changes_neither_windows_nor_reads(
        pauses in proptest::collection::vec(prop_oneof![0..3 * MS, 0..20_000 * MS], 1..80),
    ) {
        let beside_thrashing = served_beside(STRANGER, Past::EvictedUnused, &pauses);
        prop_assert_eq!(beside_thrashing.windows, 0);
        // The stranger has a separate share of the budget.
        let (pages, calm) = (beside_thrashing.pages(), served_beside(STRANGER, Past::Unknown, &pauses).pages());
        prop_assert!(pages * 100 >= calm * 99, "{pages} pages instead of {calm}");
    }
}
