//! Finds out what works on this machine, what does not, why, and what to do.
//!
//! Each check has a finding and, unless all is well, a remedy. The checks change nothing and need no privilege. With
//! privilege, one of them loads and attaches the eBPF programs for a moment.

use std::fs;
use std::path::Path;

use ebpf::ObserveError;
use ebpf::kernel::{BTF, DiskHook, Features, Hook, is_locked_down};
use ebpf::observe;
use linux::handles;
use linux::knob::{self, JOURNALS, Knob};
use linux::mounts::{self, Disk, Mount};
use linux::privilege::Privilege;
use linux::state::{FOLDER, StateError};
use linux::{provenance, psi, sys};
use readahead::PAGE_BYTES;
use serde::Serialize;

use crate::print;

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Health {
    /// Works.
    Ok,
    /// Works less well.
    Degraded,
    /// Does not work.
    Missing,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Check {
    /// What was checked.
    pub(crate) name: String,
    /// The result.
    pub(crate) health: Health,
    /// What was found.
    pub(crate) finding: String,
    /// What to do about it; empty if nothing.
    pub(crate) remedy: String,
    /// Whether `run` and `daemon` need this.
    pub(crate) is_essential: bool,
}

impl Check {
    /// Whether `run` and `daemon` cannot work because of this finding.
    pub(crate) fn stands_in_the_way(&self) -> bool {
        self.is_essential && self.health == Health::Missing
    }
}

/// Makes all checks on this machine.
pub(crate) fn examine() -> Vec<Check> {
    let features = Features::detect();
    let mut checks = vec![
        kernel(&features),
        page_size(sys::page_bytes()),
        built_with_bpf(),
        privilege(Privilege::own()),
        processes(linux::process::sees_all()),
        lockdown(is_locked_down()),
        mapped_files(&features),
        block_layer(&features),
        cachestat(&features),
        memory_pressure(Path::new(psi::MACHINE).exists()),
        drop_behind(&features),
        windows(&knob::left()),
    ];
    // Others may use another folder.
    if rustix::process::geteuid().is_root() {
        checks.push(state(linux::state::examine));
    }
    checks.push(lab());
    // If something essential is missing, loading would fail for that reason.
    if is_able(&checks) {
        checks.insert(1, programs(&observe::try_out()));
    }
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
pub(crate) fn is_able(checks: &[Check]) -> bool {
    !checks.iter().any(Check::stands_in_the_way)
}

/// A check with two results: ok with the first finding, or `bad` with the second one and the remedy.
fn check(name: &str, is_ok: bool, bad: Health, findings: (&str, &str), remedy: &str) -> Check {
    Check {
        name: name.into(),
        health: if is_ok { Health::Ok } else { bad },
        finding: if is_ok { findings.0 } else { findings.1 }.into(),
        remedy: if is_ok { String::new() } else { remedy.into() },
        is_essential: bad == Health::Missing,
    }
}

fn kernel(features: &Features) -> Check {
    let release = provenance::kernel();
    let found = match (features.btf, features.hooks.can_observe()) {
        (false, _) => format!("Linux {release} has no type information ({BTF})"),
        (true, false) => {
            format!("Linux {release} has neither tracepoints nor functions that report reads")
        }
        (true, true) => format!("Linux {release} reports reads ({})", features.hooks),
    };
    check(
        "kernel",
        features.hooks.can_observe(),
        Health::Missing,
        (&found, &found),
        "run Linux 6.1 or later, with CONFIG_DEBUG_INFO_BTF and, before 6.18, CONFIG_FUNCTION_TRACER",
    )
}

/// Whether the kernel accepts the programs: that it has their hooks does not suffice.
fn programs(tried_out: &Result<(), ObserveError>) -> Check {
    let refused = tried_out.as_ref().err().map(ToString::to_string).unwrap_or_default();
    check(
        "eBPF programs",
        tried_out.is_ok(),
        Health::Missing,
        ("the kernel loads and attaches all of them", &refused),
        "before 6.18, the kernel needs CONFIG_FUNCTION_TRACER; if it has that, report this with the kernel's version",
    )
}

fn page_size(bytes: u64) -> Check {
    let found = format!("pages of {bytes} bytes");
    check(
        "page size",
        bytes == PAGE_BYTES,
        Health::Missing,
        (&found, &found),
        "boot a kernel with pages of 4 KiB",
    )
}

fn built_with_bpf() -> Check {
    check(
        "build",
        ebpf::IS_BUILT,
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
            "run bowwave as root (sudo); without root, `bowwave replay`, `report` and `reproduce` work"
                .into(),
        ),
    };
    Check { name: "privilege".into(), health, finding, remedy, is_essential: true }
}

fn processes(sees_all: bool) -> Check {
    check(
        "processes",
        sees_all,
        Health::Missing,
        (
            "bowwave and the kernel's events use the same process numbers",
            "bowwave is in a container with process numbers of its own",
        ),
        "start bowwave on the host, or the container with the host's numbers (--pid=host)",
    )
}

fn lockdown(is_strict: bool) -> Check {
    check(
        "lockdown",
        !is_strict,
        Health::Missing,
        (
            "the kernel is not locked down against tracing",
            "the kernel is locked down (confidentiality)",
        ),
        "boot without lockdown=confidentiality",
    )
}

fn mapped_files(features: &Features) -> Check {
    check(
        "mapped files",
        features.hooks.faults != Hook::Nothing,
        Health::Degraded,
        (
            "bowwave sees faults of mapped files",
            "bowwave does not see faults of mapped files, and so gives these no help",
        ),
        "run Linux 6.1 or later, with CONFIG_FUNCTION_TRACER before 6.12",
    )
}

fn block_layer(features: &Features) -> Check {
    check(
        "block layer",
        features.hooks.disks != DiskHook::Nothing,
        Health::Degraded,
        (
            "bowwave sees how long other readers wait, and reads less ahead while they do",
            "bowwave does not see how long other readers wait: it keeps a fixed amount in flight on each device",
        ),
        "run Linux 6.1 or later",
    )
}

fn cachestat(features: &Features) -> Check {
    check(
        "cachestat",
        features.cachestat,
        Health::Degraded,
        (
            "the kernel has cachestat(2), which shows which pages are cached or dirty",
            "the kernel has no cachestat(2): drop-behind uses mincore(2), and does not see which pages are dirty",
        ),
        "run Linux 6.5 or later; in a container, allow the system call",
    )
}

fn memory_pressure(has_psi: bool) -> Check {
    check(
        "memory pressure",
        has_psi,
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
        features.hooks.can_drop_behind(),
        Health::Degraded,
        (
            "bowwave sees who brought a page into the cache, and can drop pages behind streams",
            "bowwave does not see who brought a page into the cache, and drops nothing behind streams",
        ),
        "run Linux 6.1 or later",
    )
}

fn windows(left: &[(Knob, u64)]) -> Check {
    let named = |(knob, kb): &(Knob, u64)| format!("{} should be {kb}", knob.path().display());
    let found: Vec<String> = left.iter().map(named).collect();
    let found = format!("a killed bowwave has left windows changed: {}", found.join(", "));
    check(
        "windows",
        left.is_empty(),
        Health::Degraded,
        ("no killed bowwave has left a window changed", &found),
        "any `bowwave run`, `daemon` or `tune` restores them",
    )
}

fn lab() -> Check {
    let has = |path: &str| Path::new(path).exists();
    check(
        "lab and demo",
        has("/dev/fuse") && has("/dev/loop-control"),
        Health::Degraded,
        ("FUSE and loop devices are there", "/dev/fuse or /dev/loop-control is missing"),
        "modprobe fuse loop; a container needs both devices",
    )
}

/// Whether bowwave may keep what it must restore after a kill; `examine` looks at a folder.
fn state(examine: impl Fn(&Path) -> Result<(), StateError>) -> Check {
    let folders = [FOLDER, JOURNALS].map(Path::new);
    let bad = folders.iter().find_map(|folder| examine(folder).err());
    let bad = bad.map(|error| error.to_string());
    check(
        "state",
        bad.is_none(),
        Health::Missing,
        ("bowwave can keep state in /run/bowwave", bad.as_deref().unwrap_or_default()),
        "make /run/bowwave a folder that root can write to and others cannot",
    )
}

fn file_system(mount: &Mount) -> Check {
    let knob = mounts::read_ahead_knob(mount);
    let window =
        fs::read_to_string(&knob).map_or("unknown".into(), |kb| format!("{} KiB", kb.trim()));
    let disk = Disk::under(mount);
    let by_handle = handles::encodes_inode_handles(&mount.fs_type);
    let on = disk.map_or("no disk of its own".into(), |disk| on_disk(&disk));
    Check {
        name: mount.mount_point.display().to_string(),
        health: if by_handle { Health::Ok } else { Health::Degraded },
        finding: format!(
            "{} on {on}, window {window} ({})",
            print::visible(&mount.fs_type),
            knob.display()
        ),
        remedy: if by_handle {
            String::new()
        } else {
            "bowwave reaches its files through the reader's descriptors, so mapped files get no help once those are \
             closed"
                .into()
        },
        is_essential: false,
    }
}

/// `disk sda`, or `disk dm-1 (on md0, of sda, sdb)`.
fn on_disk(disk: &Disk) -> String {
    let (carrier, name) = (disk.carrier().name, &disk.name);
    let members: Vec<_> = disk.members().into_iter().map(|member| member.name).collect();
    match &members[..] {
        [only] if only == name => format!("disk {name}"),
        [only] => format!("disk {name} (on {only})"),
        all if carrier == *name => format!("disk {name} (of {})", all.join(", ")),
        all => format!("disk {name} (on {carrier}, of {})", all.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use ebpf::kernel::Hooks;

    use super::*;

    #[test]
    fn programs_that_the_kernel_refuses_are_missing() {
        let refused = programs(&Err(ObserveError::Refused("Invalid argument".into())));
        assert!(refused.finding.contains("Invalid argument") && !is_able(&[refused]));
        assert!(is_able(&[programs(&Ok(()))]));
    }

    #[test]
    fn root_is_able_and_a_plain_user_is_told_what_to_do() {
        let found = |mask: &str| privilege(Privilege::in_status(&format!("CapEff:\t{mask}\n")));
        assert_eq!(found("000001ffffffffff").health, Health::Ok);
        let user = found("0000000000000000");
        assert_eq!(user.health, Health::Missing);
        assert!(user.remedy.contains("root"));
    }

    #[test]
    fn a_missing_capability_is_named_with_what_is_lost_and_is_not_essential() {
        let without_handles = privilege(Privilege::in_status("CapEff:\t000001fffffffffb\n"));
        assert_eq!(without_handles.health, Health::Degraded);
        assert!(without_handles.finding.contains("CAP_DAC_READ_SEARCH"));
        assert!(is_able(&[without_handles]));
    }

    #[test]
    fn an_old_kernel_is_named_with_what_it_lacks() {
        let hooks = Hooks { disks: DiskHook::Request, ..Hooks::default() };
        let old = Features { btf: true, hooks, ..Features::default() };
        assert!(kernel(&old).remedy.contains("6.1 or later"));
        assert!(!is_able(&[kernel(&old)]));
        assert_eq!(mapped_files(&old).health, Health::Degraded);
        assert!(is_able(&[mapped_files(&old)]));
    }

    #[test]
    fn a_window_left_changed_is_named_and_is_not_essential() {
        assert_eq!(windows(&[]).health, Health::Ok);
        let Some(knob) = Knob::any() else { return eprintln!("skipped: no device has a window") };
        let check = windows(&[(knob.clone(), 184)]);
        assert!(check.finding.contains(&format!("{} should be 184", knob.path().display())));
        assert!(is_able(&[check]));
    }

    #[test]
    fn without_room_for_a_journal_the_daemon_would_not_start() {
        let full = |folder: &Path| {
            let error = io::ErrorKind::StorageFull.into();
            Err(StateError::Unusable { folder: folder.into(), error })
        };
        let found = state(full);
        assert!(found.finding.contains("/run/bowwave") && !is_able(&[found]));
        let only_journals = |folder: &Path| {
            full(folder).or_else(
                |error| {
                    if folder == Path::new(FOLDER) { Ok(()) } else { Err(error) }
                },
            )
        };
        assert!(!is_able(&[state(only_journals)]));
        assert!(is_able(&[state(|_| Ok(()))]));
    }

    #[test]
    fn a_locked_down_kernel_cannot_work() {
        assert_eq!(lockdown(false).health, Health::Ok);
        assert_eq!(lockdown(true).health, Health::Missing);
    }
}
