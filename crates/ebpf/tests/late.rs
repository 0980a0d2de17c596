//! An entry of an LRU table in the kernel may go to another key while a program still sets bits in it.
//!
//! `late.bpf.c` has an entry replaced between the look-up and the update, by the same functions that drop-behind uses.
//! Needs root; elsewhere the test says why it is skipped, unless BOWWAVE_REQUIRE_LIVE=1 makes that a failure.
#![cfg(feature = "bpf")]

use libbpf_rs::{Object, ObjectBuilder, ProgramInput};
use proptest::prelude::*;
use readahead::behind::Block;

/// The program `update_late`; `None`, with a message, where it cannot be loaded.
fn program() -> Option<Object> {
    let path = concat!(env!("OUT_DIR"), "/late.bpf.o");
    let loaded = ObjectBuilder::default().open_file(path).and_then(|mut open| {
        for mut program in open.progs_mut() {
            let is_it = program.name() == "update_late";
            program.set_autoload(is_it);
        }
        open.load()
    });
    match loaded {
        Ok(object) => Some(object),
        Err(error) => {
            assert!(std::env::var_os("BOWWAVE_REQUIRE_LIVE").is_none(), "{error:#}");
            eprintln!("skipped: {error:#}");
            None
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Late {
    bits: u64,
    owner_before: u32,
    owner: u32,
    brings: bool,
}

/// Applies an update to a block: in time to a fresh one, or, if there is a `new` one, late, after that has got the
/// fresh one's entry. Returns the block that has the entry then.
fn update(object: &Object, new: Option<Block>, late: Late) -> Block {
    let program = object.progs_mut().find(|it| it.name() == "update_late").expect("it is loaded");
    let (is_late, new) = (new.is_some(), new.unwrap_or_default());
    let words = [new.brought, new.used, u64::from(new.owner), late.bits];
    let numbers = [late.owner_before, late.owner, u32::from(late.brings), u32::from(is_late)];
    let mut context: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    context.extend(numbers.iter().flat_map(|number| number.to_ne_bytes()));
    let input = ProgramInput { context_in: Some(&mut context), ..ProgramInput::default() };
    let ran = program.test_run(input).expect("it runs");
    assert_eq!(ran.return_value, 1, "the entry went to another block, or stayed");
    let long = |at: usize| u64::from_ne_bytes(context[at..at + 8].try_into().expect("8 bytes"));
    let word = |at: usize| u32::from_ne_bytes(context[at..at + 4].try_into().expect("4 bytes"));
    Block { brought: long(0), used: long(8), owner: word(16) }
}

#[test]
fn an_update_in_time_counts() {
    let Some(object) = program() else { return };
    let brings = Late { bits: 0b1010, owner_before: 0, owner: 7, brings: true };
    let then = update(&object, None, brings);
    assert_eq!((then.brought, then.used, then.owner), (0b1010, 0, 7));
}

#[test]
fn a_late_update_lets_no_page_of_another_block_go() {
    let Some(object) = program() else { return };
    let process = 0u32..4;
    let block = (any::<u64>(), any::<u64>(), process.clone())
        .prop_map(|(brought, used, owner)| Block { brought, used, owner });
    let late = (any::<u64>(), process.clone(), process, any::<bool>())
        .prop_map(|(bits, owner_before, owner, brings)| Late { bits, owner_before, owner, brings });
    proptest!(|(new in block, late in late)| {
        let then = update(&object, Some(new), late);
        prop_assert_eq!(then.brought & !new.brought, 0, "not brought by its owner: {:?}", then);
        prop_assert_eq!(then.brought & (then.used ^ new.used), 0, "used: {:?}", then);
    });
}
