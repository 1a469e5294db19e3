//! `recvmmsg` and `sendmmsg` behind a safe door: the only unsafe code of this room.
//!
//! [`Received`] and [`Replies`] are the two halves of a batch. Each owns one block of memory that it never moves: message
//! headers, addresses, control messages, buffers, laid out side by side and wired to each other once. Between two calls
//! only what the kernel overwrote is set again. Knows nothing of DNS.
#![expect(unsafe_code, reason = "system calls that the standard library lacks")]

use std::io;
use std::mem::{offset_of, size_of};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};

/// Datagrams a batch: beyond 32 there is nothing more to save (PERFORMANCE.md section 3).
pub(crate) const BATCH: usize = 64;
/// The same, as the kernel counts.
const BATCH_LENGTH: libc::c_uint = 64;
/// Longest query taken, octets; what is longer arrives cut, and [`Datagram::is_whole`] says so.
pub(crate) const QUERY_OCTETS: usize = 4096;
/// Room for one reply, octets.
pub(crate) const REPLY_OCTETS: usize = 4096;
/// From one buffer to the next: an odd number of cache lines, so that the first lines of all buffers, the only ones that
/// most queries touch, do not compete for the same few cache sets.
const STRIDE: usize = 4096 + 3 * 64;
/// Octets of the longest socket address we meet: `sockaddr_in6`.
const NAME_OCTETS: usize = 28;
/// The same, as the kernel counts.
const NAME_LENGTH: libc::socklen_t = 28;
/// Octets in front of a control message's data.
const CONTROL_HEADER: usize = size_of::<libc::cmsghdr>();
/// Octets of the longest control message we meet: `in6_pktinfo`, its header, and padding.
const CONTROL_OCTETS: usize = CONTROL_HEADER + 24;

const _: () = assert!(size_of::<libc::sockaddr_in6>() == NAME_OCTETS);
const _: () = assert!(size_of::<libc::in6_pktinfo>() <= 24 && CONTROL_HEADER.is_multiple_of(8));
const _: () = assert!(QUERY_OCTETS <= STRIDE && REPLY_OCTETS <= STRIDE);

/// A socket address as the kernel lays it out.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug)]
struct Name([u8; NAME_OCTETS]);

impl Name {
    /// Reads the address, canonical (IPv4-mapped is IPv4); `None` when it is neither IPv4 nor IPv6.
    #[inline(always)]
    fn address(&self) -> Option<IpAddr> {
        let family = i32::from(u16::from_ne_bytes(octets_at(&self.0, 0)?));
        match family {
            libc::AF_INET => {
                let at = offset_of!(libc::sockaddr_in, sin_addr);
                Some(IpAddr::from(octets_at::<4>(&self.0, at)?))
            }
            libc::AF_INET6 => {
                let at = offset_of!(libc::sockaddr_in6, sin6_addr);
                Some(IpAddr::from(octets_at::<16>(&self.0, at)?).to_canonical())
            }
            _ => None,
        }
    }

    /// Reads the port, which stands at the same place for both families.
    fn port(&self) -> Option<u16> {
        let at = offset_of!(libc::sockaddr_in, sin_port);
        Some(u16::from_be_bytes(octets_at(&self.0, at)?))
    }
}

/// A control message as the kernel lays it out: at most one, the packet information.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug)]
struct Control([u8; CONTROL_OCTETS]);

impl Control {
    /// Makes of what the kernel said about a datagram what it must be told to reply from the address that was asked, and
    /// the octets of that. `None` when it said nothing.
    ///
    /// Both have the same layout. The interface is left to the routing table, but for link-local addresses, which mean
    /// nothing without it.
    fn for_reply(&self, octets: usize) -> Option<(Self, usize)> {
        let level = offset_of!(libc::cmsghdr, cmsg_level);
        let level = i32::from_ne_bytes(octets_at(&self.0, level)?);
        let kind = offset_of!(libc::cmsghdr, cmsg_type);
        let kind = i32::from_ne_bytes(octets_at(&self.0, kind)?);
        let (interface, length) = match (level, kind) {
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => (
                offset_of!(libc::in_pktinfo, ipi_ifindex),
                size_of::<libc::in_pktinfo>(),
            ),
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => (
                offset_of!(libc::in6_pktinfo, ipi6_ifindex),
                size_of::<libc::in6_pktinfo>(),
            ),
            _ => return None,
        };
        if octets < CONTROL_HEADER + length {
            return None;
        }
        let mut reply = *self;
        let link_local = level == libc::IPPROTO_IPV6
            && matches!(octets_at(&self.0, CONTROL_HEADER)?, [0xfe, 0x80..=0xbf]);
        if !link_local {
            let at = CONTROL_HEADER + interface;
            reply.0.get_mut(at..at + 4)?.fill(0);
        }
        Some((reply, CONTROL_HEADER + length.next_multiple_of(8)))
    }
}

/// Reads `N` octets at an offset.
#[inline]
fn octets_at<const N: usize>(octets: &[u8], at: usize) -> Option<[u8; N]> {
    octets.get(at..)?.first_chunk().copied()
}

/// One buffer.
#[repr(C, align(64))]
struct Buffer([u8; STRIDE]);

/// One half's memory. All zeros is a valid value of every field.
#[repr(C)]
struct Memory {
    headers: [libc::mmsghdr; BATCH],
    vectors: [libc::iovec; BATCH],
    names: [Name; BATCH],
    controls: [Control; BATCH],
    buffers: [Buffer; BATCH],
}

/// Owns one half's memory, which stays where it is. Not `Send`: a worker makes its own.
struct Messages(NonNull<Memory>);

impl Messages {
    /// Allocates, and points each header to its vector and address, and each vector to its buffer of `room` octets.
    fn new(room: usize) -> Self {
        // SAFETY: all zeros is a valid `Memory`: integers, octets and null pointers.
        let memory = unsafe { Box::<Memory>::new_zeroed().assume_init() };
        let memory = NonNull::from(Box::leak(memory));
        let start = memory.as_ptr();
        for index in 0..BATCH {
            // SAFETY: `index` is below the length of each array, `start` points to a live allocation that nothing else
            // refers to, and only addresses are taken and fields written, all in bounds.
            unsafe {
                let header = (&raw mut (*start).headers)
                    .cast::<libc::mmsghdr>()
                    .add(index);
                let vector = (&raw mut (*start).vectors).cast::<libc::iovec>().add(index);
                let name = (&raw mut (*start).names).cast::<Name>().add(index);
                let buffer = (&raw mut (*start).buffers).cast::<Buffer>().add(index);
                (*vector).iov_base = buffer.cast();
                (*vector).iov_len = room;
                (*header).msg_hdr.msg_iov = vector;
                (*header).msg_hdr.msg_iovlen = 1;
                (*header).msg_hdr.msg_name = name.cast();
            }
        }
        Self(memory)
    }

    /// Borrows the memory.
    #[inline]
    fn memory(&self) -> &Memory {
        // SAFETY: the allocation lives as long as `self`; the pointers inside it are followed by the kernel only, during
        // system calls, which all take `&mut self`.
        unsafe { self.0.as_ref() }
    }

    /// Borrows the memory to write.
    #[inline]
    fn memory_mut(&mut self) -> &mut Memory {
        // SAFETY: as above, and `&mut self` says that nobody else borrows it.
        unsafe { self.0.as_mut() }
    }

    /// Gives the address of the first header, for the kernel.
    fn headers(&mut self) -> *mut libc::mmsghdr {
        // SAFETY: the allocation is alive; only an address is taken.
        unsafe { (&raw mut (*self.0.as_ptr()).headers).cast() }
    }

    /// Gives the address of one control message, for the kernel.
    fn control(&mut self, index: usize) -> *mut libc::c_void {
        debug_assert!(index < BATCH);
        // SAFETY: the allocation is alive and the index in bounds; only an address is taken.
        unsafe {
            (&raw mut (*self.0.as_ptr()).controls)
                .cast::<Control>()
                .add(index)
                .cast()
        }
    }
}

impl Drop for Messages {
    fn drop(&mut self) {
        // SAFETY: the pointer came from `Box::leak` in `new` and is given back once.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// Whether the kernel tells which address was asked, and is told which to reply from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketInfo {
    /// The socket is bound to one address.
    Off,
    /// The socket is bound to the wildcard.
    On,
}

/// How long to wait for a first datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Until one comes, or the socket's receive timeout passes.
    ForOne,
    /// Not at all.
    No,
}

/// The receiving half of a batch.
pub(crate) struct Received {
    messages: Messages,
    control_octets: usize,
    count: usize,
    /// Headers that the kernel may have written to since they were set.
    used: usize,
}

impl Received {
    /// Allocates the buffers, 270 KiB of address space of which only what datagrams fill is ever touched.
    pub(crate) fn new(info: PacketInfo) -> Self {
        let mut messages = Messages::new(QUERY_OCTETS);
        let control_octets = match info {
            PacketInfo::Off => 0,
            PacketInfo::On => CONTROL_OCTETS,
        };
        if info == PacketInfo::On {
            for index in 0..BATCH {
                let control = messages.control(index);
                if let Some(header) = messages.memory_mut().headers.get_mut(index) {
                    header.msg_hdr.msg_control = control;
                }
            }
        }
        Self {
            messages,
            control_octets,
            count: 0,
            used: BATCH,
        }
    }

    /// Receives up to [`BATCH`] datagrams in one system call and gives their number. Those before are forgotten.
    ///
    /// # Errors
    /// `WouldBlock` when none came in time, and whatever else the kernel says; the batch is empty then.
    #[inline]
    pub(crate) fn receive(&mut self, socket: &UdpSocket, wait: Wait) -> io::Result<usize> {
        let (used, control_octets) = (self.used, self.control_octets);
        for header in self.messages.memory_mut().headers.iter_mut().take(used) {
            header.msg_hdr.msg_namelen = NAME_LENGTH;
            header.msg_hdr.msg_controllen = control_octets;
        }
        self.count = 0;
        self.used = BATCH;
        let flags = match wait {
            Wait::ForOne => libc::MSG_WAITFORONE,
            Wait::No => libc::MSG_DONTWAIT,
        };
        let headers = self.messages.headers();
        // SAFETY: `headers` points to `BATCH` headers whose vectors, names and control messages lie in memory that
        // `self` owns and nobody borrows now, with their true lengths.
        let taken = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                headers,
                BATCH_LENGTH,
                flags,
                ptr::null_mut(),
            )
        };
        let count = usize::try_from(taken).map_err(|_| io::Error::last_os_error())?;
        self.count = count;
        self.used = count;
        Ok(count)
    }

    /// Counts what was received.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Iterates over what was received, in order.
    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = Datagram<'_>> {
        let memory = self.messages.memory();
        let names = memory.names.iter().zip(&memory.controls);
        let octets = memory.headers.iter().zip(&memory.buffers);
        octets
            .zip(names)
            .take(self.count)
            .map(|((header, buffer), (name, control))| Datagram {
                octets: buffer.0.get(..header.msg_len as usize).unwrap_or_default(),
                header: &header.msg_hdr,
                name,
                control,
            })
    }
}

/// One datagram received.
#[derive(Clone, Copy)]
pub(crate) struct Datagram<'a> {
    octets: &'a [u8],
    header: &'a libc::msghdr,
    name: &'a Name,
    control: &'a Control,
}

impl<'a> Datagram<'a> {
    /// Gives its octets, at most [`QUERY_OCTETS`].
    #[inline]
    pub(crate) fn octets(&self) -> &'a [u8] {
        self.octets
    }

    /// Tells whether nothing was cut off.
    #[inline]
    pub(crate) fn is_whole(&self) -> bool {
        self.header.msg_flags & libc::MSG_TRUNC == 0
    }

    /// Gives the sender's address, canonical; `None` when it has none that DNS is spoken with.
    #[inline(always)]
    pub(crate) fn sender_address(&self) -> Option<IpAddr> {
        self.name.address()
    }

    /// Gives the sender with its port.
    pub(crate) fn sender(&self) -> Option<SocketAddr> {
        Some(SocketAddr::new(self.name.address()?, self.name.port()?))
    }

    /// Gives the way back, to reply later.
    pub(crate) fn path(&self) -> Path {
        Path {
            name: *self.name,
            name_octets: self.header.msg_namelen,
            control: self.control.for_reply(self.header.msg_controllen),
        }
    }
}

/// The way back to a sender: its address, and the local address that it asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    name: Name,
    name_octets: libc::socklen_t,
    control: Option<(Control, usize)>,
}

impl Path {
    /// Sends one reply without waiting.
    ///
    /// # Errors
    /// What the kernel says; `WouldBlock` when the socket's buffer is full.
    pub(crate) fn send(mut self, socket: &UdpSocket, reply: &[u8]) -> io::Result<()> {
        let mut vector = libc::iovec {
            iov_base: reply.as_ptr().cast_mut().cast(),
            iov_len: reply.len(),
        };
        // SAFETY: all zeros is a valid `msghdr`: integers and null pointers.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_name = (&raw mut self.name).cast();
        header.msg_namelen = self.name_octets;
        header.msg_iov = &raw mut vector;
        header.msg_iovlen = 1;
        if let Some((control, octets)) = &mut self.control {
            header.msg_control = ptr::from_mut(control).cast();
            header.msg_controllen = *octets;
        }
        // SAFETY: the header points to `reply`, which `sendmsg` only reads, and to locals of this function, with their
        // true lengths.
        let sent =
            unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const header, libc::MSG_DONTWAIT) };
        if sent < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }
}

/// The sending half of a batch.
pub(crate) struct Replies {
    messages: Messages,
    count: usize,
}

impl Replies {
    /// Allocates the buffers, as large as those of [`Received`].
    pub(crate) fn new() -> Self {
        Self {
            messages: Messages::new(REPLY_OCTETS),
            count: 0,
        }
    }

    /// Gives the next free buffer, [`REPLY_OCTETS`] long; empty when [`BATCH`] replies wait already. It may hold old octets.
    #[inline]
    pub(crate) fn buffer(&mut self) -> &mut [u8] {
        let count = self.count;
        match self.messages.memory_mut().buffers.get_mut(count) {
            Some(buffer) => buffer.0.get_mut(..REPLY_OCTETS).unwrap_or_default(),
            None => &mut [],
        }
    }

    /// Takes the first `octets` of [`Self::buffer`] as the reply to `datagram`, from the address that it was sent to.
    #[inline]
    pub(crate) fn push(&mut self, octets: usize, datagram: &Datagram<'_>) {
        let index = self.count;
        if index >= BATCH {
            return;
        }
        // Without packet information the kernel said nothing: the common case copies an address only.
        let control = match datagram.header.msg_controllen {
            0 => None,
            octets => datagram.control.for_reply(octets),
        };
        let control_place = self.messages.control(index);
        let memory = self.messages.memory_mut();
        let (Some(header), Some(vector), Some(name), Some(place)) = (
            memory.headers.get_mut(index),
            memory.vectors.get_mut(index),
            memory.names.get_mut(index),
            memory.controls.get_mut(index),
        ) else {
            return;
        };
        vector.iov_len = octets.min(REPLY_OCTETS);
        *name = *datagram.name;
        header.msg_hdr.msg_namelen = datagram.header.msg_namelen;
        (header.msg_hdr.msg_control, header.msg_hdr.msg_controllen) = match control {
            None => (ptr::null_mut(), 0),
            Some((control, octets)) => {
                *place = control;
                (control_place, octets)
            }
        };
        self.count += 1;
    }

    /// Sends all replies, with one system call if nothing goes wrong, and gives the number of those that the kernel did
    /// not take. One that it refuses is skipped; when the socket's buffer stays full for its send timeout, the rest is given up.
    #[inline]
    pub(crate) fn send(&mut self, socket: &UdpSocket) -> usize {
        let count = std::mem::take(&mut self.count);
        let headers = self.messages.headers();
        let (mut done, mut dropped) = (0, 0);
        while done < count {
            let left = libc::c_uint::try_from(count - done).unwrap_or(1);
            // SAFETY: `done < count <= BATCH`, so the headers from `done` to `count` are in bounds; each points to a vector,
            // name and control message in memory that `self` owns, with their true lengths; the kernel writes `msg_len` only.
            let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), headers.add(done), left, 0) };
            match usize::try_from(sent) {
                Ok(sent) if sent > 0 => done += sent,
                _ => match io::Error::last_os_error().kind() {
                    io::ErrorKind::Interrupted => {}
                    io::ErrorKind::WouldBlock => return dropped + (count - done),
                    _ => {
                        done += 1;
                        dropped += 1;
                    }
                },
            }
        }
        dropped
    }
}

/// Sets what `socket2` has no name for: path MTU messages, which anyone can forge to make us send fragments, are not
/// believed (RFC 9715 section 3.1, R2), IPv6 is not fragmented (R1), and, on a wildcard address, the packet information is
/// on. DF of IPv4 stays clear: with it set and path MTU messages unheard, a narrow path would swallow replies without a word.
///
/// # Errors
/// When the kernel knows an option not.
pub(crate) fn set_options(socket: &UdpSocket, info: PacketInfo) -> io::Result<()> {
    let v4 = socket.local_addr()?.is_ipv4();
    let (level, discover, omit, packet_info) = if v4 {
        let omit = libc::IP_PMTUDISC_OMIT;
        (
            libc::IPPROTO_IP,
            libc::IP_MTU_DISCOVER,
            omit,
            libc::IP_PKTINFO,
        )
    } else {
        let omit = libc::IPV6_PMTUDISC_OMIT;
        (
            libc::IPPROTO_IPV6,
            libc::IPV6_MTU_DISCOVER,
            omit,
            libc::IPV6_RECVPKTINFO,
        )
    };
    set_option(socket, level, discover, omit)?;
    if !v4 {
        // RFC 9715 R1: IPv6 is never fragmented, not even for an interface with a small MTU.
        set_option(socket, level, libc::IPV6_DONTFRAG, 1)?;
    }
    match info {
        PacketInfo::Off => Ok(()),
        PacketInfo::On => set_option(socket, level, packet_info, 1),
    }
}

/// Sets one option that takes an integer.
fn set_option(socket: &UdpSocket, level: i32, option: i32, value: libc::c_int) -> io::Result<()> {
    const LENGTH: libc::socklen_t = 4;
    const _: () = assert!(size_of::<libc::c_int>() == 4);
    // SAFETY: the kernel reads one `c_int` at the address given, which outlives the call.
    let set = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            LENGTH,
        )
    };
    if set == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Reads one option that is an integer, for tests.
#[cfg(test)]
pub(crate) fn option(socket: &UdpSocket, level: i32, option: i32) -> libc::c_int {
    let mut value: libc::c_int = -1;
    let mut length: libc::socklen_t = 4;
    // SAFETY: the kernel writes at most `length` octets, those of one `c_int`, and the length; both outlive the call.
    let got = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw mut value).cast(),
            &raw mut length,
        )
    };
    assert_eq!(got, 0, "the kernel knows the option");
    value
}
