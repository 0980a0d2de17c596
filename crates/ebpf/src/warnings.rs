//! Captures libbpf's warnings for error messages: the error itself says only "Permission denied".

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

use libbpf_rs::PrintLevel;

use crate::error::ObserveError;

static WARNINGS: Mutex<String> = Mutex::new(String::new());

/// A verifier log may have many megabytes, but only its end matters.
const MOST_BYTES: usize = 64 << 10;

/// Collects warnings from now on, instead of printing them, and forgets earlier ones.
pub(crate) fn begin() {
    capture();
    WARNINGS.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

/// Collects warnings from now on, instead of printing them.
pub(crate) fn capture() {
    libbpf_rs::set_print(Some((PrintLevel::Warn, |_, warning| {
        let mut warnings = WARNINGS.lock().unwrap_or_else(PoisonError::into_inner);
        if warnings.len() < MOST_BYTES {
            warnings.push_str(&shortened(&warning));
        }
    })));
}

/// The first line, which names the program, and as many of the last lines as fit.
fn shortened(warning: &str) -> Cow<'_, str> {
    let Some(over) = warning.len().checked_sub(MOST_BYTES) else { return warning.into() };
    let rest = &warning.as_bytes()[over..];
    let lines = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |end| end + 1);
    let first = warning.split_inclusive('\n').next().unwrap_or_default();
    let first = if first.len() > MOST_BYTES { "" } else { first };
    format!("{first}{}", &warning[over + lines..]).into()
}

/// Says which program the kernel refused, and why.
pub(crate) fn refused(error: libbpf_rs::Error) -> ObserveError {
    ObserveError::Refused(match refused_program() {
        Some(program) => format!("{error:#} ({program})"),
        None => format!("{error:#}"),
    })
}

/// The program that the kernel refused, and the verifier's reason.
fn refused_program() -> Option<String> {
    refused_in(&WARNINGS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Begins the line after the verifier's reason.
const AFTER_REASON: &str = "processed ";

fn refused_in(warnings: &str) -> Option<String> {
    let lines = || warnings.lines();
    let program = lines().find_map(|line| line.strip_prefix("libbpf: prog '"));
    let (program, failure) = program?.split_once("': ")?;
    let log = lines().skip_while(|line| !line.contains("BEGIN PROG LOAD LOG")).skip(1);
    let log = log.take_while(|line| !line.starts_with(AFTER_REASON));
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
        let reason = refused_in(warnings);
        assert_eq!(reason.as_deref(), Some("on_exit: invalid bpf_context access off=8 size=8"));
    }

    #[test]
    fn the_end_of_a_long_log_is_kept() {
        let begin = "libbpf: prog 'on_read': -- BEGIN PROG LOAD LOG --\n";
        let steps = "0: (bf) r6 = r1 ; \u{fc}\n".repeat(MOST_BYTES);
        let end = "invalid mem access\nprocessed 5 insns\n-- END PROG LOAD LOG --\n";
        let log = [begin, &steps, end].concat();
        let kept = shortened(&log);
        assert!(kept.len() <= begin.len() + MOST_BYTES);
        assert_eq!(refused_in(&kept).as_deref(), Some("on_read: invalid mem access"));
        assert_eq!(shortened(begin), begin);
        assert_eq!(shortened(&"x".repeat(MOST_BYTES + 1)), "");
    }

    #[test]
    fn without_a_log_the_failure_is_named_and_without_a_warning_nothing() {
        let warnings = "libbpf: prog 'on_read': failed to attach: Operation not supported\n";
        let reason = refused_in(warnings);
        assert_eq!(reason.as_deref(), Some("on_read: failed to attach: Operation not supported"));
        assert_eq!(refused_in(""), None);
        assert_eq!(refused_in("libbpf: prog 'x"), None);
    }
}
