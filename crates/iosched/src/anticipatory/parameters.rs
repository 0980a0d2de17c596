//! Parameters of the anticipatory elevator, for two kernel versions.

use crate::request::Nanos;

const MS: Nanos = 1_000_000;

/// The parameters.
#[derive(Clone, Copy, Debug)]
pub struct AnticipatoryParameters {
    /// Age at which a read is served first. Ages are checked this often, so it is also the time
    /// slice of a stream.
    pub read_expire: Nanos,
    /// Age at which an asynchronous write is served first.
    pub write_expire: Nanos,
    /// Time for a batch of reads while writes wait.
    pub read_batch_expire: Nanos,
    /// Time for a batch of writes while reads wait.
    pub write_batch_expire: Nanos,
    /// Longest wait for a process's next read; 0 for no waiting.
    pub antic_expire: Nanos,
}

impl AnticipatoryParameters {
    /// As in 2.6.12 with a thousand ticks per second.
    pub fn linux_2_6_12() -> Self {
        AnticipatoryParameters {
            read_expire: 125 * MS,
            write_expire: 250 * MS,
            read_batch_expire: 500 * MS,
            write_batch_expire: 125 * MS,
            antic_expire: 6 * MS,
        }
    }

    /// As measured in February 2003. A posting of January 2003 gives the wait of 40 ms. The 50 ms
    /// of `read_expire` are inferred: they explain how often the published runs switched streams.
    /// The others are those of 2.6.12.
    pub fn february_2003() -> Self {
        AnticipatoryParameters {
            read_expire: 50 * MS,
            antic_expire: 40 * MS,
            ..Self::linux_2_6_12()
        }
    }
}
