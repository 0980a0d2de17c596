//! Measure a device, choose its read-ahead, remember it.

pub mod curve;
pub mod fit;
pub mod formula;
