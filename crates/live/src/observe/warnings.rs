//! What libbpf warns of, kept for the error message: the error itself says only "Permission denied".

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

use libbpf_rs::PrintLevel;

static WARNINGS: Mutex<String> = Mutex::new(String::new());

/// A program's log may have many megabytes; what counts stands at its end.
const MOST_BYTES: usize = 64 << 10;

/// Keeps warnings from now on, instead of printing them.
pub(super) fn keep() {
    libbpf_rs::set_print(Some((PrintLevel::Warn, |_, warning| {
        let mut warnings = WARNINGS.lock().unwrap_or_else(PoisonError::into_inner);
        if warnings.len() < MOST_BYTES {
            warnings.push_str(&shortened(&warning));
        }
    })));
    WARNINGS.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

/// The first line, which tells what it is about, and as many of the last lines as may be kept.
fn shortened(warning: &str) -> Cow<'_, str> {
    let Some(over) = warning.len().checked_sub(MOST_BYTES) else { return warning.into() };
    let rest = &warning.as_bytes()[over..];
    let lines = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |end| end + 1);
    let first = warning.split_inclusive('\n').next().unwrap_or_default();
    let first = if first.len() > MOST_BYTES { "" } else { first };
    format!("{first}{}", &warning[over + lines..]).into()
}

/// Which program the kernel refused, and its verifier's last sentence.
pub(super) fn complaint() -> Option<String> {
    complaint_in(&WARNINGS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Ends a program's log.
const AFTER_LAST: &str = "processed ";

fn complaint_in(warnings: &str) -> Option<String> {
    let lines = || warnings.lines();
    let program = lines().find_map(|line| line.strip_prefix("libbpf: prog '"));
    let (program, failure) = program?.split_once("': ")?;
    let log = lines().skip_while(|line| !line.contains("BEGIN PROG LOAD LOG")).skip(1);
    let log = log.take_while(|line| !line.starts_with(AFTER_LAST));
    let last = log.filter(|line| !line.is_empty()).last();
    Some(format!("{program}: {}", last.unwrap_or(failure)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verifiers_last_sentence_is_the_reason() {
        let warnings = "libbpf: prog 'on_exit': BPF program load failed: Permission denied\n\
                        libbpf: prog 'on_exit': -- BEGIN PROG LOAD LOG --\n\
                        0: R1=ctx(off=0,imm=0)\n\
                        invalid bpf_context access off=8 size=8\n\
                        processed 5 insns (limit 1000000)\n\
                        -- END PROG LOAD LOG --\n\
                        libbpf: failed to load object 'observe_bpf'\n";
        let complaint = complaint_in(warnings);
        assert_eq!(complaint.as_deref(), Some("on_exit: invalid bpf_context access off=8 size=8"));
    }

    #[test]
    fn of_a_long_log_the_end_is_kept() {
        let begin = "libbpf: prog 'on_read': -- BEGIN PROG LOAD LOG --\n";
        let steps = "0: (bf) r6 = r1 ; \u{fc}\n".repeat(MOST_BYTES);
        let end = "invalid mem access\nprocessed 5 insns\n-- END PROG LOAD LOG --\n";
        let log = [begin, &steps, end].concat();
        let kept = shortened(&log);
        assert!(kept.len() <= begin.len() + MOST_BYTES);
        assert_eq!(complaint_in(&kept).as_deref(), Some("on_read: invalid mem access"));
        assert_eq!(shortened(begin), begin);
        assert_eq!(shortened(&"x".repeat(MOST_BYTES + 1)), "");
    }

    #[test]
    fn without_a_log_the_failure_is_named_and_without_a_warning_nothing() {
        let warnings = "libbpf: prog 'on_read': failed to attach: Operation not supported\n";
        let complaint = complaint_in(warnings);
        assert_eq!(
            complaint.as_deref(),
            Some("on_read: failed to attach: Operation not supported")
        );
        assert_eq!(complaint_in(""), None);
        assert_eq!(complaint_in("libbpf: prog 'x"), None);
    }
}
