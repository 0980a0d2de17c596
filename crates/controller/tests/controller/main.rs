//! The controller's behaviour, as inputs and commands.

mod behind;
mod copies;
mod depth;
mod histories;
mod memory;
mod mounts;
mod muting;
mod properties;
mod reads;
mod remembered;
mod shares;
mod starts;
mod strangers;
mod support;
mod walks;
mod wide_windows;
mod windows;
