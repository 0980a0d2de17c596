//! A file that is opened anew for each request, as servers do: its state is passed on.

mod support;

use historical::{NAMES, by_name};
use support::Machine;

/// These policies decide by the page cache, or by state that does not depend on the open file.
const STATELESS: [&str; 2] = ["none", "adaptive-2005"];

/// Pages of a request.
const REQUEST: u64 = 8;

/// What is requested while a file is read up to page 2000, with some pages skipped at 1000. `next`
/// turns each request's open file into that of the next one.
fn trace(name: &str, next: fn(&mut Machine, u64) -> u64) -> Vec<String> {
    let policy = by_name(name, 1024).expect("it is one of the names");
    let mut machine = Machine::boxed(policy, 10_000, 128);
    let mut open = 1;
    for start in (0..1_000).chain(1_100..2_000).step_by(REQUEST as usize) {
        machine.read(open, start, REQUEST);
        open = next(&mut machine, open);
    }
    machine.trace().into_iter().map(String::from).collect()
}

#[test]
fn a_sequence_goes_on_where_state_is_handed_on() {
    for name in NAMES {
        let handed_on = |machine: &mut Machine, open| {
            machine.copy_state(open, open + 1);
            open + 1
        };
        assert_eq!(trace(name, handed_on), trace(name, |_, open| open), "{name}");
    }
}

#[test]
fn it_begins_anew_where_only_the_place_is_handed_on() {
    for name in NAMES {
        let anew = |machine: &mut Machine, open| {
            machine.copy_place(open, open + 1);
            open + 1
        };
        let is_as_before = trace(name, anew) == trace(name, |_, open| open);
        assert_eq!(is_as_before, STATELESS.contains(&name), "{name}");
    }
}
