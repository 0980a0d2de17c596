//! What the usual programs do, as scripts, and the files they do it to.

pub(crate) mod programs;
pub(crate) mod tree;
