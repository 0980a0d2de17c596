//! The capabilities of this process, and what does not work without each.

use std::fs;

/// Capability numbers from `linux/capability.h`.
const CAP_DAC_OVERRIDE: u32 = 1;
const CAP_DAC_READ_SEARCH: u32 = 2;
const CAP_FOWNER: u32 = 3;
const CAP_SETGID: u32 = 6;
const CAP_SETUID: u32 = 7;
const CAP_SYS_PTRACE: u32 = 19;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_SYS_NICE: u32 = 23;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// What `run` and `daemon` can do without.
const LOSSES: [(u32, &str); 6] = [
    (
        CAP_DAC_READ_SEARCH,
        "without CAP_DAC_READ_SEARCH, files are opened only through their readers' descriptors, so \
         mapped files get no help after their descriptors are closed",
    ),
    (CAP_FOWNER, "without CAP_FOWNER, files of other users get no help"),
    (CAP_SETGID, "without CAP_SETGID, trees of files are not read ahead for other users"),
    (CAP_SETUID, "without CAP_SETUID, trees of files are not read ahead for other users"),
    (CAP_SYS_PTRACE, "without CAP_SYS_PTRACE, descriptors of other users' programs cannot be used"),
    (
        CAP_SYS_NICE,
        "without CAP_SYS_NICE, nothing is dropped behind scans of mapped files while they run, and \
         real-time I/O priorities of readers do not count",
    ),
];

/// The effective capabilities of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Privilege(u64);

impl Privilege {
    /// This process's capabilities; none if `/proc` does not tell.
    pub fn own() -> Self {
        Self::in_status(&fs::read_to_string("/proc/self/status").unwrap_or_default())
    }

    /// Parses the text of `/proc/PID/status`.
    pub fn in_status(status: &str) -> Self {
        let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        Privilege(line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0))
    }

    fn has(self, capability: u32) -> bool {
        self.0 & (1 << capability) != 0
    }

    /// Whether the kernel lets it load tracing programs. Nothing works without them.
    pub fn may_observe(self) -> bool {
        self.has(CAP_SYS_ADMIN) || (self.has(CAP_BPF) && self.has(CAP_PERFMON))
    }

    /// Whether it may read files and list directories whatever their permissions.
    pub(crate) fn overrides_permissions(self) -> bool {
        self.has(CAP_DAC_OVERRIDE) || self.has(CAP_DAC_READ_SEARCH)
    }

    /// The features that missing capabilities disable.
    pub fn losses(self) -> Vec<&'static str> {
        LOSSES
            .iter()
            .filter(|(capability, _)| !self.has(*capability))
            .map(|(_, loss)| *loss)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_may_do_everything_and_a_plain_user_nothing() {
        let root = Privilege::in_status("Name: x\nCapEff:\t000001ffffffffff\n");
        assert!(root.may_observe() && root.losses().is_empty());
        assert!(!Privilege::in_status("CapEff:\t0000000000000000\n").may_observe());
        assert!(!Privilege::in_status("").may_observe(), "an odd /proc is not a licence");
    }

    /// The names of those that bowwave can do without.
    fn names() -> impl Iterator<Item = &'static str> {
        LOSSES.iter().map(|(_, loss)| loss.split([' ', ',']).nth(1).expect("without NAME, ..."))
    }

    #[test]
    fn the_service_is_left_every_capability_that_makes_a_difference() {
        let unit = include_str!("../../../etc/bowwave.service");
        let left = unit.lines().find_map(|line| line.strip_prefix("CapabilityBoundingSet="));
        let left: Vec<_> = left.expect("a bounded set").split(' ').collect();
        for name in names() {
            assert!(left.contains(&name), "{name}");
        }
    }

    #[test]
    fn the_table_for_administrators_has_every_capability_that_makes_a_difference() {
        let rows = include_str!("../../../docs/install.md").lines();
        let first = rows.filter_map(|row| row.strip_prefix("| ")?.split(" | ").next());
        let listed: Vec<_> = first.flat_map(|cell| cell.split([' ', ','])).collect();
        for name in names() {
            assert!(listed.contains(&name), "{name}");
        }
    }

    #[test]
    fn two_capabilities_are_enough_to_observe_and_the_others_are_named() {
        let least = Privilege(1 << CAP_BPF | 1 << CAP_PERFMON);
        assert!(least.may_observe());
        assert_eq!(least.losses().len(), LOSSES.len());
        let without_handles = Privilege(!(1 << CAP_DAC_READ_SEARCH));
        assert!(without_handles.may_observe());
        let [loss] = without_handles.losses()[..] else { panic!("one is missing") };
        assert!(loss.contains("CAP_DAC_READ_SEARCH"));
    }
}
