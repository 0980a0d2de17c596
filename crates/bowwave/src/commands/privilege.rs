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
