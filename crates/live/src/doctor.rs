//! What works on this machine, what does not, why, and what to do.
//!
//! A list of checks, each with a finding and, unless all is well, a remedy. Nothing is changed and
//! nothing needs privilege; what only root can find out is reported as unknown.

use std::fs;
use std::path::Path;

use linux::handles;
use linux::knob::{self, Knob};
use linux::mounts::{self, Disk, Mount};
use linux::privilege::Privilege;
use linux::provenance;
use linux::psi;
use serde::Serialize;

use crate::kernel::{BTF, Features};

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    /// Works.
    Ok,
    /// Works less well.
    Degraded,
    /// Does not work.
    Missing,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked at.
    pub name: String,
    /// How it came out.
    pub health: Health,
    /// What was found.
    pub finding: String,
    /// What to do about it; empty if nothing.
    pub remedy: String,
    /// `run` and `daemon` do not work without it.
    pub is_essential: bool,
}

/// All findings on this machine, with what runs that were killed have left.
pub fn examine() -> Vec<Check> {
    let features = Features::detect();
    let mut checks = vec![
        kernel(&features),
        built_with_bpf(),
        privilege(Privilege::own()),
        processes(linux::process::sees_all()),
        lockdown(&read("/sys/kernel/security/lockdown")),
        marks(&features),
        block_layer(&features),
        cache_view(&features),
        memory_pressure(Path::new(psi::MACHINE).exists()),
        drop_behind(&features),
        windows(&knob::left()),
        lab(),
    ];
    match mounts::list() {
        Ok(mounts) => checks.extend(mounts.iter().map(file_system)),
        Err(error) => checks.push(Check {
            name: "file systems".into(),
            health: Health::Missing,
            finding: format!("/proc/self/mountinfo cannot be read: {error}"),
            remedy: "mount /proc".into(),
            is_essential: true,
        }),
    }
    checks
}

/// Whether `run` and `daemon` work, given the findings.
pub fn is_able(checks: &[Check]) -> bool {
    !checks.iter().any(|check| check.is_essential && check.health == Health::Missing)
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn check(name: &str, good: bool, or_else: Health, found: (&str, &str), remedy: &str) -> Check {
    Check {
        name: name.into(),
        health: if good { Health::Ok } else { or_else },
        finding: if good { found.0 } else { found.1 }.into(),
        remedy: if good { String::new() } else { remedy.into() },
        is_essential: or_else == Health::Missing,
    }
}

fn kernel(features: &Features) -> Check {
    let release = provenance::kernel();
    let found = match (features.btf, features.sync_ra) {
        (false, _) => format!("Linux {release} carries no type information ({BTF})"),
        (true, false) => {
            format!("Linux {release} has no readahead tracepoints (6.18 and later have)")
        }
        (true, true) => format!("Linux {release} reports absent pages"),
    };
    check(
        "kernel",
        features.can_observe(),
        Health::Missing,
        (&found, &found),
        "run Linux 6.18 or later, with CONFIG_DEBUG_INFO_BTF",
    )
}

fn built_with_bpf() -> Check {
    check(
        "build",
        cfg!(feature = "bpf"),
        Health::Missing,
        ("this bowwave has its eBPF part", "this bowwave was built without eBPF"),
        "install clang, libelf and zlib (make setup) and build again",
    )
}

fn privilege(own: Privilege) -> Check {
    let losses = own.losses();
    let (health, finding, remedy) = match (own.may_observe(), losses.is_empty()) {
        (true, true) => {
            (Health::Ok, "this process may load eBPF and open every file".into(), String::new())
        }
        (true, false) => (
            Health::Degraded,
            format!("this process may load eBPF; {}", losses.join("; ")),
            "run bowwave as root (sudo)".into(),
        ),
        (false, _) => (
            Health::Missing,
            "this process may not load eBPF (CAP_BPF and CAP_PERFMON)".into(),
            "run bowwave as root (sudo); without root, `bowwave replay`, `bowwave reproduce` and \
             `bowwave demo --list` work"
                .into(),
        ),
    };
    Check { name: "privilege".into(), health, finding, remedy, is_essential: true }
}

fn processes(are_all_seen: bool) -> Check {
    check(
        "processes",
        are_all_seen,
        Health::Missing,
        (
            "bowwave and the kernel's events number them alike",
            "bowwave is in a container with process numbers of its own",
        ),
        "start bowwave on the host, or the container with the host's numbers (--pid=host)",
    )
}

fn lockdown(setting: &str) -> Check {
    let is_confidential = setting.contains("[confidentiality]");
    check(
        "lockdown",
        !is_confidential,
        Health::Missing,
        (
            "the kernel is not locked down against tracing",
            "the kernel is locked down (confidentiality)",
        ),
        "boot without lockdown=confidentiality",
    )
}

fn marks(features: &Features) -> Check {
    check(
        "mapped files",
        features.fault && features.map_pages,
        Health::Degraded,
        (
            "faults of mapped files are seen",
            "faults of mapped files are not seen: such files get no help",
        ),
        "run Linux 6.12 or later",
    )
}

fn block_layer(features: &Features) -> Check {
    check(
        "block layer",
        features.block_io,
        Health::Degraded,
        (
            "bowwave sees how long other readers wait, and asks a device for less while they do",
            "bowwave does not see how long other readers wait, and asks a device for a fixed amount",
        ),
        "run Linux 6.5 or later",
    )
}

fn cache_view(features: &Features) -> Check {
    check(
        "cachestat",
        features.cachestat,
        Health::Degraded,
        (
            "cachestat(2) tells which pages are cached",
            "no cachestat(2): drop-behind cannot tell what has gone",
        ),
        "run Linux 6.5 or later; in a container, allow the system call",
    )
}

fn memory_pressure(is_told: bool) -> Check {
    check(
        "memory pressure",
        is_told,
        Health::Degraded,
        (
            "bowwave sees how long tasks wait for memory (PSI), and reads less ahead while they do",
            "bowwave does not see how long tasks wait for memory (no PSI): only fixed budgets bound read-ahead",
        ),
        "boot with psi=1, or run a kernel with CONFIG_PSI",
    )
}

fn drop_behind(features: &Features) -> Check {
    check(
        "drop-behind",
        features.can_drop_behind(),
        Health::Degraded,
        (
            "bowwave sees who brought a page into the cache: streams can drop behind",
            "bowwave does not see who brought a page into the cache: nothing is dropped behind streams",
        ),
        "run Linux 6.18 or later",
    )
}

fn windows(left: &[(Knob, u64)]) -> Check {
    let named = |(knob, kb): &(Knob, u64)| format!("{} should be {kb}", knob.path().display());
    let found: Vec<String> = left.iter().map(named).collect();
    let found = format!("a bowwave that was killed has left windows changed: {}", found.join(", "));
    let mut check = check(
        "windows",
        left.is_empty(),
        Health::Degraded,
        ("no window was left changed", &found),
        "any `bowwave run`, `daemon` or `tune` puts them back",
    );
    check.is_essential = false;
    check
}

fn lab() -> Check {
    let has = |path: &str| Path::new(path).exists();
    let mut check = check(
        "lab and demo",
        has("/dev/fuse") && has("/dev/loop-control"),
        Health::Degraded,
        ("FUSE and loop devices are there", "/dev/fuse or /dev/loop-control is missing"),
        "modprobe fuse loop; a container needs both devices",
    );
    check.is_essential = false;
    check
}

fn file_system(mount: &Mount) -> Check {
    let knob = mounts::read_ahead_knob(mount);
    let window =
        fs::read_to_string(&knob).map_or("unknown".into(), |kb| format!("{} KiB", kb.trim()));
    let disk = Disk::under(mount);
    let by_handle = handles::encodes_inode_handles(&mount.fs_type);
    let on = disk.map_or("no disk of its own".into(), |disk| format!("disk {}", disk.name));
    Check {
        name: mount.mount_point.display().to_string(),
        health: if by_handle { Health::Ok } else { Health::Degraded },
        finding: format!("{} on {on}, window {window} ({})", mount.fs_type, knob.display()),
        remedy: if by_handle {
            String::new()
        } else {
            "its files are reached through the reader's descriptors: mapped files get no help once \
             those are closed"
                .into()
        },
        is_essential: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_able_and_a_plain_user_is_told_what_to_do() {
        let found = |mask: &str| privilege(Privilege::in_status(&format!("CapEff:\t{mask}\n")));
        assert_eq!(found("000001ffffffffff").health, Health::Ok);
        let user = found("0000000000000000");
        assert_eq!(user.health, Health::Missing);
        assert!(user.remedy.contains("root"));
    }

    #[test]
    fn a_capability_that_is_missing_is_named_with_what_is_lost_and_is_no_obstacle() {
        let without_handles = privilege(Privilege::in_status("CapEff:\t000001fffffffffb\n"));
        assert_eq!(without_handles.health, Health::Degraded);
        assert!(without_handles.finding.contains("CAP_DAC_READ_SEARCH"));
        assert!(is_able(&[without_handles]));
    }

    #[test]
    fn an_old_kernel_is_named_with_what_it_lacks() {
        let old = Features { btf: true, block_io: true, ..Features::default() };
        assert!(kernel(&old).finding.contains("6.18"));
        assert!(!is_able(&[kernel(&old)]));
        assert_eq!(marks(&old).health, Health::Degraded);
        assert!(is_able(&[marks(&old)]));
    }

    #[test]
    fn a_window_left_changed_is_named_and_is_no_obstacle() {
        assert_eq!(windows(&[]).health, Health::Ok);
        let Some(knob) = Knob::any() else { return };
        let check = windows(&[(knob.clone(), 184)]);
        assert!(check.finding.contains(&format!("{} should be 184", knob.path().display())));
        assert!(is_able(&[check]));
    }

    #[test]
    fn lockdown_matters_only_at_its_strictest() {
        assert_eq!(lockdown("[none] integrity confidentiality\n").health, Health::Ok);
        assert_eq!(lockdown("none integrity [confidentiality]\n").health, Health::Missing);
    }
}
