//! The privileges of commands that see reads.

use anyhow::ensure;
use linux::privilege::Privilege;

/// Fails unless this process may observe reads.
pub(crate) fn demand(command: &str) -> anyhow::Result<()> {
    demand_to("see reads", command)
}

/// The same for a command that needs the privilege for something else.
pub(crate) fn demand_to(purpose: &str, command: &str) -> anyhow::Result<()> {
    ensure!(
        Privilege::own().may_observe(),
        "bowwave {command} needs root (or CAP_BPF and CAP_PERFMON) to {purpose}; start it with sudo"
    );
    Ok(())
}
