//! A 7200 rpm IDE disk of 2003: one command at a time and a look-ahead buffer.
//!
//! ```text
//!   elsewhere:   command + seek + wait for the sector + transfer
//!   contiguous:  data that the head has read ahead comes from the buffer, at bus speed
//! ```

use iosched::{Command, Nanos, Sector};

const SECTOR_BYTES: u64 = 512;

/// Bytes per second from the media, as one streaming reader measured.
const MEDIA: u64 = 41_500_000;

/// Bytes per second from the buffer.
const BUS: u64 = 90_000_000;

/// Overhead of a command from the media and of one from the buffer.
const COMMAND: Nanos = 300_000;
const BUFFERED_COMMAND: Nanos = 100_000;

/// Settle time, and the addition per square root of a cylinder.
const SETTLE: Nanos = 1_900_000;
const PER_ROOT_CYLINDER: f64 = 70_000.0;
const CYLINDER_BYTES: u64 = 1_400_000;

const REVOLUTION: Nanos = 8_333_333;

/// How far the head reads ahead of the host.
const LOOK_AHEAD_BYTES: u64 = 128 << 10;

pub(crate) struct Disk {
    /// Where the last command ended, and when the media got there.
    end: Sector,
    media_at: Nanos,
    random: u64,
}

fn transfer(bytes: u64, rate: u64) -> Nanos {
    bytes * 1_000_000_000 / rate
}

impl Disk {
    pub(crate) fn new() -> Self {
        Disk { end: 0, media_at: 0, random: 0x9E37_79B9_7F4A_7C15 }
    }

    /// When a command started at `now` completes.
    pub(crate) fn serve(&mut self, now: Nanos, command: &Command) -> Nanos {
        let bytes = u64::from(command.sectors) * SECTOR_BYTES;
        let done = if command.start == self.end && now > 0 {
            let ahead_at_most = now.saturating_sub(transfer(LOOK_AHEAD_BYTES, MEDIA));
            self.media_at = self.media_at.max(ahead_at_most) + transfer(bytes, MEDIA);
            self.media_at.max(now + BUFFERED_COMMAND + transfer(bytes, BUS))
        } else {
            let distance = command.start.abs_diff(self.end) * SECTOR_BYTES / CYLINDER_BYTES;
            let seek = SETTLE + ((distance as f64).sqrt() * PER_ROOT_CYLINDER) as Nanos;
            self.media_at = now + COMMAND + seek + self.rotation() + transfer(bytes, MEDIA);
            self.media_at
        };
        self.end = command.end();
        done
    }

    /// A random wait up to one revolution (xorshift).
    fn rotation(&mut self) -> Nanos {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % REVOLUTION
    }
}
