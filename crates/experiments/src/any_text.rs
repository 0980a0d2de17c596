//! Parses any text as the files of every table, for fuzzing and tests.

use readahead::PAGE_BYTES;
use sim::{Listed, MachineSpec, Op};

use super::parsers::Parsers;
use super::{
    blkid, copies, demo, desktop, drop_behind, field, flash, parallel_streams, ramp, random_reads,
    rules, run_lengths, servers, slow_streams, trees,
};

/// The parsers of every table.
pub(super) const PARSERS: [(&str, Parsers); 15] = [
    ("blkid-2011", blkid::PARSERS),
    ("copies-2005", copies::PARSERS),
    ("demo", demo::PARSERS),
    ("desktop-2006", desktop::PARSERS),
    ("drop-behind-2007", drop_behind::PARSERS),
    ("field", field::PARSERS),
    ("parallel-streams-2003", parallel_streams::PARSERS),
    ("ramp-2005", ramp::PARSERS),
    ("flash-2011", flash::PARSERS),
    ("random-reads-2006", random_reads::PARSERS),
    ("rules", rules::PARSERS),
    ("run-lengths", run_lengths::PARSERS),
    ("servers-2006", servers::PARSERS),
    ("slow-streams-2005", slow_streams::PARSERS),
    ("trees", trees::PARSERS),
];

/// Parses any text as the files of every table. If it is an experiment, checks that its machine can read.
pub(super) fn read_any(text: &str) {
    for (_, parsers) in PARSERS {
        let _ = (parsers.figures)(text);
        if let Ok(experiment) = (parsers.experiment)(text) {
            let columns = experiment.policies.values().map(String::as_str);
            let policies = ["linux-6", "adaptive"].into_iter().chain(columns);
            policies.for_each(|policy| try_out(&experiment.machine, policy));
        }
    }
}

/// Builds the machine, unless it is too large, and reads a little on it.
fn try_out(spec: &MachineSpec, policy: &str) {
    /// Most memory of a machine that is built thousands of times. It also uses no device files of the host.
    const MOST_MEMORY_MB: f64 = 16.0;
    if spec.memory_mb > MOST_MEMORY_MB {
        return try_out(&MachineSpec { memory_mb: MOST_MEMORY_MB, ..spec.clone() }, policy);
    }
    if spec.device.contains(['/', '.']) {
        return;
    }
    let Ok(mut machine) = spec.build(policy) else { return };
    let file = machine.add_file(64 * PAGE_BYTES);
    let open = machine.open(file);
    let reads =
        [0, 1, 2, 40, 39].map(|n| Op::Read { open, at: n * PAGE_BYTES, bytes: 2 * PAGE_BYTES });
    let reader = machine.spawn(0, Listed(reads.into_iter()));
    machine.run();
    assert_eq!(machine.outcome(reader).pages, 2 * reads.len() as u64);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::TABLES;
    use crate::descriptions::DESCRIPTIONS;

    #[test]
    fn every_table_has_its_parsers_and_its_workload_is_read_by_them() {
        assert_eq!(TABLES.map(|(name, _)| name), PARSERS.map(|(name, _)| name));
        for ((name, text), (_, parsers)) in DESCRIPTIONS.into_iter().zip(PARSERS) {
            (parsers.experiment)(text).expect(name);
            let unknown = format!("{text}\nsurely-unknown = 1\n");
            let error = (parsers.experiment)(&unknown).expect_err(name).to_string();
            assert!(error.contains("surely-unknown"), "{name}: {error}");
            let others = PARSERS.into_iter().filter(|(other, _)| *other != name);
            for (other, parsers) in others {
                assert!((parsers.experiment)(text).is_err(), "{other} takes that of {name}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_text_is_an_experiment_or_an_error(
            text in any::<String>(), table in 0..DESCRIPTIONS.len(), at in any::<prop::sample::Index>(),
        ) {
            read_any(&text);
            let (_, whole) = DESCRIPTIONS[table];
            let at = at.index(whole.len());
            read_any(&whole.chars().take(at).chain(text.chars()).chain(whole.chars().skip(at)).collect::<String>());
        }

        #[test]
        fn any_number_in_an_experiment_is_refused_or_can_be_simulated(
            table in 0..DESCRIPTIONS.len(), which in any::<prop::sample::Index>(), exponent in 0..20u32,
        ) {
            let (_, whole) = DESCRIPTIONS[table];
            let is_number = |line: &&str| line.split_once(" = ").is_some_and(|(_, value)| value.starts_with(|c: char| c.is_ascii_digit()));
            let lines: Vec<&str> = whole.lines().filter(is_number).collect();
            let line = lines[which.index(lines.len())];
            let (name, _) = line.split_once(" = ").expect("it has a value");
            for value in [format!("{}", 10u64.pow(exponent.min(18))), format!("1e-{exponent}"), format!("1e{exponent}"), "0".into()] {
                read_any(&whole.replace(line, &format!("{name} = {value}")));
            }
        }
    }
}
