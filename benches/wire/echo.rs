//! The floor: the least that a server on UDP sockets can do.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::messages::{BATCH_LENGTH, Messages, NAME_LENGTH, OCTETS, Senders};

/// Binds a socket for an echo: large buffers, and a look at the flag every 250 ms.
pub(crate) fn bind(address: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind(address).expect("the address is free");
    let timeout = Some(Duration::from_millis(250));
    socket.set_read_timeout(timeout).expect("not zero");
    widen(&socket);
    socket
}

/// Asks for large buffers.
pub(crate) fn widen(socket: &UdpSocket) {
    let socket = socket2::SockRef::from(socket);
    socket.set_recv_buffer_size(4 << 20).expect("a socket");
    socket.set_send_buffer_size(4 << 20).expect("a socket");
}

/// Receives a batch, sets QR and AA, sends it back from the same buffers, until told to stop.
pub(crate) fn echo(socket: &UdpSocket, stop: &AtomicBool) {
    let (fd, mut messages) = (socket.as_raw_fd(), Messages::new(Senders::Kept));
    while !stop.load(Ordering::Relaxed) {
        // SAFETY: the headers point to buffers and addresses that `messages` owns.
        let count = unsafe {
            libc::recvmmsg(
                fd,
                messages.headers.as_mut_ptr(),
                BATCH_LENGTH,
                libc::MSG_WAITFORONE,
                null_mut(),
            )
        };
        let count = usize::try_from(count).unwrap_or(0);
        for index in 0..count {
            messages.buffers[index][2] |= 0x84;
            messages.vectors[index].iov_len = messages.headers[index].msg_len as usize;
        }
        let mut done = 0;
        while done < count {
            // SAFETY: as above, and `done < count <= BATCH`.
            let sent = unsafe {
                let rest = messages.headers.as_mut_ptr().add(done);
                libc::sendmmsg(fd, rest, (count - done) as libc::c_uint, 0)
            };
            done += usize::try_from(sent).unwrap_or(0).max(1);
        }
        for index in 0..count {
            messages.vectors[index].iov_len = OCTETS;
            messages.headers[index].msg_hdr.msg_namelen = NAME_LENGTH;
        }
    }
}
