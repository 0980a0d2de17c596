//! The privileges of commands that see reads.

use anyhow::ensure;
use linux::privilege::Privilege;

/// Fails unless this process may observe reads.
pub(crate) fn demand(command: &str) -> anyhow::Result<()> {
    ensure!(
        Privilege::own().may_observe(),
        "bowwave {command} needs root (or CAP_BPF and CAP_PERFMON) to see reads; start it with sudo"
    );
    Ok(())
}

/// Fails unless this process is root's. Only root may set devices' windows and those of other programs' open files.
pub(crate) fn demand_to_recover() -> anyhow::Result<()> {
    ensure!(
        rustix::process::geteuid().is_root(),
        "bowwave daemon --recover needs root to put windows back; start it with sudo"
    );
    Ok(())
}
