//! The knobs of the anticipatory elevator, as of two versions.

use crate::request::Nanos;

const MS: Nanos = 1_000_000;

/// What can be set.
#[derive(Clone, Copy, Debug)]
pub struct AnticipatoryParameters {
    /// Age at which a read goes first; looked at this often, it is the time slice of a stream.
    pub read_expire: Nanos,
    /// The same for asynchronous writes.
    pub write_expire: Nanos,
    /// Time that reads have while writes wait.
    pub read_batch_expire: Nanos,
    /// Time that writes have while reads wait.
    pub write_batch_expire: Nanos,
    /// Longest wait for a process to read again; none if zero.
    pub antic_expire: Nanos,
}

impl AnticipatoryParameters {
    /// As in 2.6.12 with a thousand ticks a second.
    pub fn linux_2_6_12() -> Self {
        AnticipatoryParameters {
            read_expire: 125 * MS,
            write_expire: 250 * MS,
            read_batch_expire: 500 * MS,
            write_batch_expire: 125 * MS,
            antic_expire: 6 * MS,
        }
    }

    /// As measured in February 2003. Waiting 40 ms was read in a posting of that January; 50 ms for
    /// `read_expire` is inferred, as it explains how often the published runs switched streams. The
    /// rest is taken from 2.6.12.
    pub fn february_2003() -> Self {
        AnticipatoryParameters {
            read_expire: 50 * MS,
            antic_expire: 40 * MS,
            ..Self::linux_2_6_12()
        }
    }
}
