//! The pipes of a program that is talked to: they are handed over with its command, through the
//! socket that is the input of its guard. Guard and supervisor never have them, so that the end of a
//! pipe is the end of those who write to it.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd, OwnedFd},
};

use rustix::{
    cmsg_space,
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
    },
};

/// What the pipes come with: there has to be something.
const MARK: [u8; 1] = *b"P";

/// The program's ends of its pipes.
pub(crate) struct Pipes {
    pub(crate) input: OwnedFd,
    pub(crate) output: OwnedFd,
    pub(crate) errors: OwnedFd,
}

/// Hands the pipes over.
pub(crate) fn send_pipes(socket: impl AsFd, pipes: &Pipes) -> io::Result<()> {
    let pipes = [&pipes.input, &pipes.output, &pipes.errors].map(AsFd::as_fd);
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(3))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    beside.push(SendAncillaryMessage::ScmRights(&pipes));
    let sent = sendmsg(
        socket,
        &[IoSlice::new(&MARK)],
        &mut beside,
        SendFlags::empty(),
    )?;
    if sent == MARK.len() {
        Ok(())
    } else {
        Err(io::ErrorKind::WriteZero.into())
    }
}

/// Waits for the pipes. `None`: there will be none.
pub(super) fn receive_pipes(socket: impl AsFd) -> io::Result<Option<Pipes>> {
    let mut mark = [0];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(3))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let mut into = [IoSliceMut::new(&mut mark)];
    let received = recvmsg(socket, &mut into, &mut beside, RecvFlags::empty())?;
    if received.bytes == 0 {
        return Ok(None);
    }
    let mut pipes = Vec::new();
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            pipes.extend(received);
        }
    }
    let pipes: [OwnedFd; 3] = pipes.try_into().map_err(|_| io::ErrorKind::InvalidData)?;
    for pipe in &pipes {
        // What is started gets them as its input and output, and not once more.
        rustix::io::fcntl_setfd(pipe, rustix::io::FdFlags::CLOEXEC)?;
    }
    let [input, output, errors] = pipes;
    Ok(Some(Pipes {
        input,
        output,
        errors,
    }))
}
