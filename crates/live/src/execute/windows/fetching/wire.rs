//! The messages between a [`Fetcher`](super::Fetcher) and its helper process: JSON, one per packet, with at most one
//! descriptor.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use readahead::FileRef;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Larger than any message.
const MOST_BYTES: usize = 4096;

/// A question.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Wanted {
    /// The descriptor through which a process reads a file.
    Sole(FileRef),
    /// The same descriptor again, if the process is still the one that started then, in ticks since boot.
    Again { of: FileRef, number: i32, started: u64 },
    /// Does this descriptor of a process lead to the open file that is sent along?
    IsOpen { tgid: u32, number: i32 },
}

/// An answer.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Found {
    /// The helper has started. Sent before any question.
    Ready,
    /// A duplicate of descriptor `number` is sent along. Its process started then, in ticks since boot.
    Descriptor { number: i32, started: u64 },
    /// Whether it leads there.
    IsOpen(bool),
    /// The process or its descriptor is gone.
    Gone,
    /// The descriptor leads to another file by now. Closing the duplicate may take for ever.
    Another,
    /// An error message.
    Failed(String),
}

/// # Errors
/// If the other end is closed.
pub(super) fn send(
    socket: impl AsFd,
    message: &impl Serialize,
    along: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = along.map(|one| [one]);
    if let Some(descriptors) = &descriptors {
        control.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    sendmsg(socket, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives a message; `None` if the other end is closed.
///
/// # Errors
/// If it cannot be parsed.
pub(super) fn receive<M: DeserializeOwned>(
    socket: impl AsFd,
) -> io::Result<Option<(M, Option<OwnedFd>)>> {
    let mut bytes = [0; MOST_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let length = recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)?.bytes;
    let mut along = None;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(mut descriptors) = message {
            along = descriptors.next();
        }
    }
    if length == 0 {
        return Ok(None);
    }
    Ok(Some((serde_json::from_slice(&bytes[..length])?, along)))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;
    use crate::execute::windows::fetching::pair;

    #[test]
    fn a_descriptor_sent_along_is_the_same_open_file() {
        let (here, there) = pair().expect("a pair of sockets");
        let file = tempfile::tempfile().expect("a file");
        let found = Found::Descriptor { number: 7, started: 9 };
        send(&here, &found, Some(file.as_fd())).expect("sent");
        send(&here, &Found::Gone, None).expect("sent");
        let (told, along) = receive::<Found>(&there).expect("received").expect("one");
        let along = along.expect("a descriptor");
        assert_eq!(told, found);
        assert!(linux::sys::has_open_file(std::process::id(), along.as_raw_fd(), &file));
        let (told, along) = receive::<Found>(&there).expect("received").expect("one");
        assert_eq!((told, along.is_none()), (Found::Gone, true));
        drop(here);
        assert!(receive::<Found>(&there).expect("no error").is_none());
    }
}
