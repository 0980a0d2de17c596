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

/// The same for `bowwave daemon --recover`, which a service of these capabilities starts, too.
pub(crate) fn demand_recovery() -> anyhow::Result<()> {
    ensure!(
        Privilege::own().may_observe(),
        "bowwave daemon --recover needs root to put windows back; start it with sudo"
    );
    Ok(())
}
