//! What the integration tests share: the disk of 2003.

pub(crate) mod disk;
