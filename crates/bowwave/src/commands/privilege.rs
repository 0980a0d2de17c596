//! What `run` and `daemon` cannot do without.

use anyhow::ensure;
use linux::privilege::Privilege;

/// An error unless this process may look at reads.
pub(crate) fn demand(command: &str) -> anyhow::Result<()> {
    ensure!(
        Privilege::own().may_observe(),
        "bowwave {command} needs root (or CAP_BPF and CAP_PERFMON) to see reads; start it with sudo"
    );
    Ok(())
}
