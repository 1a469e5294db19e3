//! Message headers wired to one buffer each, as a C program would have them.

use std::mem::zeroed;

/// Datagrams a batch.
pub(crate) const BATCH: usize = 64;
/// The same, as the kernel counts.
pub(crate) const BATCH_LENGTH: libc::c_uint = 64;
/// Octets of a buffer.
pub(crate) const OCTETS: usize = 1536;
/// Octets of the address of an IPv4 sender.
pub(crate) const NAME_LENGTH: libc::socklen_t = 16;

/// Whether senders' addresses are taken: a connected socket needs none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Senders {
    Kept,
    Known,
}

/// One batch to receive into. The headers point into the other lists, which never grow.
pub(crate) struct Messages {
    pub(crate) headers: Vec<libc::mmsghdr>,
    pub(crate) vectors: Vec<libc::iovec>,
    pub(crate) buffers: Vec<[u8; OCTETS]>,
    names: Vec<libc::sockaddr_in>,
}

impl Messages {
    /// Makes one.
    pub(crate) fn new(senders: Senders) -> Self {
        // SAFETY: all zeros is a valid value of each of these.
        let (header, vector, name) = unsafe {
            (
                zeroed::<libc::mmsghdr>(),
                zeroed::<libc::iovec>(),
                zeroed::<libc::sockaddr_in>(),
            )
        };
        let mut messages = Self {
            headers: vec![header; BATCH],
            vectors: vec![vector; BATCH],
            buffers: vec![[0; OCTETS]; BATCH],
            names: vec![name; BATCH],
        };
        for index in 0..BATCH {
            let vector = &mut messages.vectors[index];
            vector.iov_base = messages.buffers[index].as_mut_ptr().cast();
            vector.iov_len = OCTETS;
            let header = &mut messages.headers[index].msg_hdr;
            header.msg_iov = vector;
            header.msg_iovlen = 1;
            if senders == Senders::Kept {
                header.msg_name = (&raw mut messages.names[index]).cast();
                header.msg_namelen = NAME_LENGTH;
            }
        }
        messages
    }
}
