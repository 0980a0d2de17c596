//! Scripts of usual programs, and the files that they read.

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
