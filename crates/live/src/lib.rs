//! Bowwave on the running kernel: turns what it sees into inputs, and carries out the controller's commands.
//!
//! ```text
//!   programs --read--> page cache --miss, mark, fault--> ebpf::observe
//!                          ^                                |  Access, Passed
//!                          |                                v
//!      execute <-------- Read, SetWindow, Release ...   engine: controller  <--- memory   budgets, readers' groups
//!        a lane for each device                             |               <--- mounted  file systems
//!        |                                                  |               <--- exits    ended processes
//!        +------------ Completed -------------------------->+ <-----> starts   of remembered commands
//!                                                           '-------> status   a crate: answers `bowwave status`
//! ```
//!
//! One thread, the [engine](engine::Engine)'s, runs the controller. It opens no file of a managed file system and waits
//! for no device. Threads of each device do what may have to wait.

#[cfg(any(test, fuzzing))]
pub mod any_bytes;
pub mod config;
mod counted;
mod devices;
pub mod engine;
mod execute;
mod exits;
pub mod helper;
mod histories;
mod memory;
mod mounted;
mod names;
mod pieces;
pub mod places;
mod pool;
pub mod starts;

pub use devices::prober;
pub use execute::fetching;
