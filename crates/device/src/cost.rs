//! What a device charges.

/// What a device charges, in the terms of the policies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Seconds of one more device access, positioning included.
    pub latency_s: f64,
    /// Bytes per second while streaming.
    pub bandwidth: f64,
    /// Device accesses that proceed at once.
    pub concurrency: f64,
}
