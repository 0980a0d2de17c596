//! Bowwave on the running kernel: what is seen becomes inputs, what the controller asks for is carried out.
//!
//! ```text
//!   programs --read--> page cache --miss, mark, fault--> observe (eBPF)
//!                          ^                                |  Access, Passed
//!                          |                                v
//!      execute <-------- Read, SetWindow, Release ...   engine: controller  <--- facts    memory
//!        a lane for each device                             |               <--- mounted  file systems
//!        |                                                  |               <--- exits    processes
//!        +------------ Completed -------------------------->+ ------> status   what `bowwave status` shows
//! ```
//!
//! One thread, the [engine](engine::Engine)'s, turns inputs into commands. It opens no file of a managed file system
//! and waits for no device: whatever may wait is done by a thread of the [device](execute) concerned.

#[cfg(any(test, fuzzing))]
pub mod any_bytes;
pub mod config;
mod devices;
pub mod doctor;
pub mod engine;
mod execute;
mod exits;
mod facts;
pub mod helper;
pub mod kernel;
mod mounted;
pub mod observe;
pub mod places;
pub mod status;

pub use devices::prober;
pub use execute::fetching;
