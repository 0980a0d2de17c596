//! Replays under policies that know the trace: the best of the [oracles](crate::Oracle), and the
//! [worst](crate::Worst) on top of today's kernel.

use readahead::{PAGE_BYTES, Page};

use super::{Replay, ReplayError, Setup, play};
use crate::Machine;
use crate::machine_spec::MachineSpec;
use crate::oracle::{Variant, variants};
use trace::Trace;

/// Most page accesses in memory, twice, at eight bytes each: a gibibyte.
const MAX_ACCESSES: u64 = 1 << 26;

/// Whether this module has the policy.
pub(super) fn knows_the_trace(policy: &str) -> bool {
    matches!(policy, "oracle" | "worst")
}

/// The fastest replay under all oracles.
pub(super) fn oracle(
    trace: &Trace,
    setup: &Setup,
    spec: &MachineSpec,
) -> Result<Replay, ReplayError> {
    let accesses = accesses(trace, MAX_ACCESSES)?;
    let readers = accesses.iter().filter(|pages| !pages.is_empty()).count() as u64;
    let run = |variant: Variant| -> Result<Replay, ReplayError> {
        let oracle = Box::new(variant.oracle(accesses.clone()));
        let machine = Machine::new(spec.parts_with(oracle, None)?);
        Ok(play(trace, "oracle", setup, spec, machine))
    };
    let [first, others @ ..] = variants(readers, spec.memory_pages());
    others.into_iter().try_fold(run(first)?, |best, variant| {
        let next = run(variant)?;
        Ok(if next.seconds < best.seconds { next } else { best })
    })
}

/// The replay under the worst policy.
pub(super) fn worst(
    trace: &Trace,
    setup: &Setup,
    spec: &MachineSpec,
) -> Result<Replay, ReplayError> {
    let accesses = accesses(trace, MAX_ACCESSES)?;
    let machine = spec.build_worst(&accesses)?;
    Ok(play(trace, "worst", setup, spec, machine))
}

/// Which pages of each file are read, in the order of the trace.
fn accesses(trace: &Trace, most: u64) -> Result<Vec<Vec<Page>>, ReplayError> {
    let mut pages = vec![Vec::new(); trace.files().len()];
    let mut found = 0;
    for record in trace.records() {
        let is_read = record.op.is_read() && record.bytes > 0;
        let end = record.end().min(trace.files()[record.file as usize].bytes).div_ceil(PAGE_BYTES);
        let range = record.offset / PAGE_BYTES..end;
        if !is_read || range.is_empty() {
            continue;
        }
        found += range.end - range.start;
        if found > most {
            return Err(ReplayError::TooLongToKnow { most });
        }
        pages[record.file as usize].extend(range);
    }
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use super::super::{Pace, check, replay};
    use super::*;

    const HEAD: &str = "time_us,process,file,op,offset,bytes\n";

    /// A part of one file read backward, another one read at random, and a write, which is no read.
    fn trace() -> Trace {
        let back = |i: u64| format!("{i},back,a,read,{},16384\n", (199 - i) << 14);
        let about = |i: u64| format!("{i},about,b,mmap,{},4096\n", (i * 7919 % 2000) << 12);
        let records: String = (0..200).map(|i| back(i) + &about(i)).collect();
        let write = "999,about,c,write,0,4096\n";
        Trace::parse(format!("file_bytes,file\n67108864,a\n{HEAD}{records}{write}").as_bytes())
            .expect("valid")
    }

    fn replays(policies: [&str; 3]) -> [Replay; 3] {
        let setup = Setup {
            device: Some("net".into()),
            memory_bytes: Some(64 << 20),
            pace: Pace::None,
            keeps_log: true,
            ..Setup::default()
        };
        policies.map(|policy| replay(&trace(), policy, &setup).expect("it is known"))
    }

    #[test]
    fn nothing_beats_the_oracle_and_its_figures_are_those_of_one_run() {
        let [oracle, linux, adaptive] = replays(["oracle", "linux-6", "adaptive"]);
        assert!(oracle.seconds * 2.0 < linux.seconds, "{} {}", oracle.seconds, linux.seconds);
        assert!(oracle.seconds < adaptive.seconds, "{} {}", oracle.seconds, adaptive.seconds);
        assert_eq!(oracle.policy, "oracle");
        assert_eq!(oracle.log.len() as u64, oracle.matrix.total().requests);
        assert_eq!(oracle.matrix.total().hits, oracle.pages_needed - oracle.matrix.alone);
    }

    #[test]
    fn the_worst_reads_what_is_not_used_on_top_of_the_kernel() {
        let [worst, linux, adaptive] = replays(["worst", "linux-6", "adaptive"]);
        assert!(worst.pages_read > linux.pages_read.max(adaptive.pages_read));
        assert!(worst.seconds > linux.seconds && worst.pages_needed == linux.pages_needed);
    }

    #[test]
    fn both_are_checked_and_listed_as_the_others_are() {
        let floppy = Setup { device: Some("floppy".into()), ..Setup::default() };
        for policy in ["oracle", "worst"] {
            check(policy, &Setup::default()).expect("there is one");
            assert!(check(policy, &floppy).unwrap_err().to_string().contains("hdd"));
        }
        let error = check("linux-7", &Setup::default()).unwrap_err().to_string();
        assert!(error.contains("oracle and worst"), "{error}");
    }

    #[test]
    fn what_is_known_is_each_files_reads_in_their_order_within_the_file() {
        let text = format!(
            "file_bytes,file\n8192,a\n{HEAD}1,p,b,mmap,4096,1\n0,p,a,read,4096,9000\n2,q,b,read,0,4096\n"
        );
        let trace = Trace::parse(text.as_bytes()).expect("valid");
        assert_eq!(accesses(&trace, 3).expect("three"), [vec![1], vec![1, 0]]);
        let error = accesses(&trace, 2).unwrap_err().to_string();
        assert!(error.contains("more than 2 pages") && error.contains("cut it"), "{error}");
    }
}
