//! What the usual programs do, as scripts, and the files they do it to.

pub(crate) mod order;
mod paced;
pub(crate) mod programs;
pub(crate) mod random;
mod sendfile;
mod sequential;
pub(crate) mod sizes;
mod walk;

pub(crate) use paced::Paced;
pub(crate) use sendfile::{Client, Server};
pub(crate) use sequential::Sequential;
pub(crate) use walk::{Tree, TreeSpec, Walk};
