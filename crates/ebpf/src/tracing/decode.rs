//! Decodes the events of programs/trace.h: words in the machine's byte order, and texts that end with a zero.

use readahead::{DeviceNumber, Hint};
use trace::{Reason, RequestOp};

use super::{Event, Op, Opened, Request, Run, TracedFile, Window};
use crate::fields::{half_word, text};

// As in programs/trace.h and programs/path.h, which say what they mean.
const THREAD: u32 = 1;
const FILE: u32 = 2;
const RUN: u32 = 3;
const WINDOW: u32 = 4;
const REQUEST: u32 = 5;

const FLAG_ADVICE: u32 = 1;
const FLAG_RANDOM: u32 = 2;
const FLAG_SEQUENTIAL: u32 = 4;
const FLAG_OPENED: u32 = 8;

const COMPONENT_BYTES: usize = 64;

/// An event; `None` if the bytes are none.
pub(crate) fn event(bytes: &[u8]) -> Option<Event> {
    match half_word(bytes, 0)? {
        THREAD => Some(Event::Thread {
            thread: half_word(bytes, 4)?,
            process: half_word(bytes, 8)?,
            name: text(bytes.get(16..32)?),
        }),
        FILE => file(bytes).map(Event::File),
        RUN => run(bytes).map(Event::Run),
        WINDOW => window(bytes).map(Event::Window),
        REQUEST => request(bytes).map(Event::Request),
        _ => None,
    }
}

/// `struct trace_file`.
fn file(bytes: &[u8]) -> Option<TracedFile> {
    let count: [u8; 2] = bytes.get(28..30)?.try_into().expect("2 bytes");
    let components = bytes.get(32..)?.chunks_exact(COMPONENT_BYTES);
    let components = components.take(u16::from_ne_bytes(count).into()).map(text);
    let mut components: Vec<String> = components.collect();
    components.reverse();
    Some(TracedFile {
        file: half_word(bytes, 4)?,
        bytes: word(bytes, 8)?,
        ino: word(bytes, 16)?,
        dev: DeviceNumber::from_kernel(half_word(bytes, 24)?),
        components,
        is_whole: bytes[30..32] != [0; 2],
    })
}

/// `struct trace_run`.
fn run(bytes: &[u8]) -> Option<Run> {
    let flags = half_word(bytes, 68)?;
    let has = |flag| flags & flag != 0;
    let advice = match () {
        () if has(FLAG_RANDOM) => Hint::Random,
        () if has(FLAG_SEQUENTIAL) => Hint::Sequential,
        () => Hint::Normal,
    };
    Some(Run {
        thread: half_word(bytes, 4)?,
        file: half_word(bytes, 8)?,
        calls: half_word(bytes, 12)?,
        at: word(bytes, 16)?,
        took: word(bytes, 24)?,
        lasted: word(bytes, 32)?,
        first: word(bytes, 40)?,
        end: word(bytes, 48)?,
        step: word(bytes, 56)? as i64,
        op: match half_word(bytes, 64)? {
            0 => Op::Read,
            1 => Op::Fault,
            2 => Op::Write,
            _ => return None,
        },
        opened: has(FLAG_ADVICE).then_some(Opened { advice, is_new: has(FLAG_OPENED) }),
    })
}

/// `struct trace_window`.
fn window(bytes: &[u8]) -> Option<Window> {
    Some(Window {
        thread: half_word(bytes, 4)?,
        file: half_word(bytes, 8)?,
        reason: match half_word(bytes, 12)? {
            0 => Reason::Read,
            1 => Reason::Fault,
            2 => Reason::Request,
            _ => return None,
        },
        at: word(bytes, 16)?,
        pages: word(bytes, 24)?..word(bytes, 32)?,
        asked: word(bytes, 40)?..word(bytes, 48)?,
    })
}

/// `struct trace_request`.
fn request(bytes: &[u8]) -> Option<Request> {
    Some(Request {
        dev: DeviceNumber::from_kernel(half_word(bytes, 4)?),
        op: match half_word(bytes, 8)? {
            0 => RequestOp::Read,
            1 => RequestOp::Write,
            2 => RequestOp::Other,
            _ => return None,
        },
        bytes: half_word(bytes, 12)?,
        at: word(bytes, 16)?,
        took: word(bytes, 24)?,
    })
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().expect("8 bytes")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(half_words: &[u32]) -> Vec<u8> {
        half_words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn a_thread_has_a_name() {
        let bytes = [&words(&[THREAD, 71, 70, 0])[..], b"tar\0\0\0\0\0\0\0\0\0\0\0\0\0"].concat();
        let name = "tar".into();
        assert_eq!(event(&bytes), Some(Event::Thread { thread: 71, process: 70, name }));
    }

    #[test]
    fn a_file_has_its_path_last_component_last() {
        let mut bytes = words(&[FILE, 5, 4096, 0, 17, 0, 8 << 20 | 1]);
        bytes.extend([2u16, 1].iter().flat_map(|half| half.to_ne_bytes()));
        for component in ["f", "srv"] {
            let mut text = component.as_bytes().to_vec();
            text.resize(COMPONENT_BYTES, 0);
            bytes.extend(text);
        }
        let file = TracedFile {
            file: 5,
            bytes: 4096,
            ino: 17,
            dev: DeviceNumber { major: 8, minor: 1 },
            components: vec!["srv".into(), "f".into()],
            is_whole: true,
        };
        assert_eq!(event(&bytes), Some(Event::File(file)));
    }

    #[test]
    fn a_run_tells_of_the_open_file_if_that_is_known() {
        let bytes = |flags| words(&[RUN, 7, 5, 23, 1, 0, 2, 0, 3, 0, 4, 0, 27, 0, 6, 0, 1, flags]);
        let run = Run {
            thread: 7,
            file: 5,
            calls: 23,
            at: 1,
            took: 2,
            lasted: 3,
            first: 4,
            end: 27,
            step: 6,
            op: Op::Fault,
            opened: None,
        };
        assert_eq!(event(&bytes(0)), Some(Event::Run(run)));
        let opened = |flags| match event(&bytes(flags)) {
            Some(Event::Run(run)) => run.opened,
            _ => None,
        };
        let known = |advice, is_new| Some(Opened { advice, is_new });
        assert_eq!(opened(FLAG_ADVICE), known(Hint::Normal, false));
        assert_eq!(opened(FLAG_ADVICE | FLAG_RANDOM), known(Hint::Random, false));
        let both = FLAG_ADVICE | FLAG_SEQUENTIAL | FLAG_OPENED;
        assert_eq!(opened(both), known(Hint::Sequential, true));
    }

    #[test]
    fn a_window_has_a_reason_and_the_pages_that_were_asked_for() {
        let bytes = |reason| words(&[WINDOW, 7, 5, reason, 1, 0, 4, 0, 27, 0, 4, 0, 6, 0]);
        let window = |reason| {
            Event::Window(Window { thread: 7, file: 5, reason, at: 1, pages: 4..27, asked: 4..6 })
        };
        let reasons = [Reason::Read, Reason::Fault, Reason::Request];
        assert_eq!([0, 1, 2].map(|n| event(&bytes(n))), reasons.map(|reason| Some(window(reason))));
        assert_eq!(event(&bytes(3)), None);
    }

    #[test]
    fn a_request_tells_what_it_asks_of_which_device() {
        let bytes = |op| words(&[REQUEST, 7 << 20 | 3, op, 131_072, 5, 0, 900, 0]);
        let request = |op| {
            let dev = DeviceNumber { major: 7, minor: 3 };
            Event::Request(Request { dev, op, bytes: 131_072, at: 5, took: 900 })
        };
        let ops = [RequestOp::Read, RequestOp::Write, RequestOp::Other];
        assert_eq!([0, 1, 2].map(|n| event(&bytes(n))), ops.map(|op| Some(request(op))));
        assert_eq!(event(&bytes(3)), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_event_or_none(
            kind in 0..6u32, bytes in prop::collection::vec(any::<u8>(), 0..1200),
        ) {
            event(&bytes);
            event(&[&kind.to_ne_bytes()[..], &bytes].concat());
        }
    }
}
