//! Files read and written with care, and programs known by theirs.
//!
//! [`small`] reads what a person wrote: a regular file, not for ever. [`whole`] writes a file so that a full
//! disk or a crash leaves the old one or the new one, and no part of either. [`program`] tells bowwave
//! from what only calls itself so, [`table`] reads what the kernel tells of others.

pub mod program;
pub mod small;
pub mod table;
pub mod whole;
