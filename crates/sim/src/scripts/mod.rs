//! What the usual programs do, as scripts, and the files they do it to.

mod paced;
pub mod programs;
pub mod random;
mod sendfile;
mod sequential;
pub mod sizes;
mod walk;

pub use paced::Paced;
pub use sendfile::{Client, Server};
pub use sequential::Sequential;
pub use walk::{Tree, TreeSpec, Walk};
