//! Octets of a message: names, records, RRsets. What does not fit leaves no trace.

use std::net::IpAddr;

use super::compress::{self, Written};
use super::wire::{self, HEADER, POINTER, QUESTION_NAME};
use crate::model::{NameRef, RecordType, Ttl};
use crate::zone::{RdataRef, Rrset};

/// The class Internet, as records carry it.
const IN: [u8; 2] = [0, 1];

/// Something did not fit; the message is as it was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full;

/// An owner name.
#[derive(Clone, Copy, Debug)]
pub(super) enum Owner<'a> {
    /// Written already: at this offset, at most 0x3fff.
    At(u16),
    /// To be written.
    Name(NameRef<'a>),
}

impl Owner<'_> {
    /// The question's name.
    pub(super) const QUESTION: Self = Self::At(QUESTION_NAME);
}

/// Where a name was left in the message, if a pointer can reach it.
pub(super) type Place = Option<u16>;

/// Writes a message from front to back into a buffer it does not own.
#[derive(Debug)]
pub(super) struct Writer<'b> {
    buffer: &'b mut [u8],
    /// Octets written.
    at: usize,
    /// Octets that may be written; never above the buffer's length.
    limit: usize,
    written: Written,
}

impl<'b> Writer<'b> {
    /// Begins with the header and the question of a query. `Full` when they do not fit.
    pub(super) fn begin(buffer: &'b mut [u8], head: &[u8], limit: usize) -> Result<Self, Full> {
        let limit = put_head(buffer, head, limit)?;
        Ok(Self::behind(buffer, head.len(), limit))
    }

    /// Goes on behind octets that [`put_head`] put.
    #[inline(always)]
    pub(super) fn behind(buffer: &'b mut [u8], at: usize, limit: usize) -> Self {
        Self {
            buffer,
            at,
            limit,
            // Without a question nothing is compressed: such a reply has no records but OPT.
            written: Written::QUESTION,
        }
    }

    /// Counts the octets written.
    pub(super) fn len(&self) -> usize {
        self.at
    }

    /// Counts the octets that still fit.
    #[inline(always)]
    pub(super) fn room(&self) -> usize {
        self.limit - self.at
    }

    /// Keeps octets back from now on, for what must go in at the end.
    #[inline(always)]
    pub(super) fn reserve(&mut self, octets: usize) {
        self.limit = self.limit.saturating_sub(octets).max(self.at);
    }

    /// Allows octets kept back.
    #[inline(always)]
    pub(super) fn release(&mut self, octets: usize) {
        self.limit = (self.limit + octets).min(self.buffer.len());
    }

    /// Gives the header, to be filled in.
    pub(super) fn header(&mut self) -> Option<&mut [u8; HEADER]> {
        self.buffer.first_chunk_mut()
    }

    /// Tells whether the name at an offset is this one.
    pub(super) fn is_name_at(&self, offset: u16, name: NameRef<'_>) -> bool {
        compress::is_name_at(self.message(), usize::from(offset), name)
    }

    /// Tells whether a record of this owner and type is written. Walks over all of them: for long chains, which are rare.
    pub(super) fn has_record(&self, owner: NameRef<'_>, rtype: RecordType) -> bool {
        let message = self.message();
        let question_end = wire::plain_name_end(message, HEADER).map(|end| end + 4);
        let mut at = question_end.unwrap_or(message.len());
        while let Some(record) = wire::Record::read(message, at) {
            if record.rtype == rtype && compress::is_name_at(message, at, owner) {
                return true;
            }
            at = record.end;
        }
        false
    }

    /// Gives what is written so far.
    fn message(&self) -> &[u8] {
        self.buffer.get(..self.at).unwrap_or(&[])
    }

    /// Writes octets whose count is known to the compiler.
    #[inline]
    pub(super) fn put<const N: usize>(&mut self, octets: [u8; N]) -> Result<(), Full> {
        let room = self.buffer.get_mut(self.at..self.limit).ok_or(Full)?;
        *room.first_chunk_mut().ok_or(Full)? = octets;
        self.at += N;
        Ok(())
    }

    /// Writes a few octets: those of an ECS address.
    #[inline]
    pub(super) fn put_few(&mut self, octets: &[u8]) -> Result<(), Full> {
        // Written out, for a copy of a few octets costs a call.
        match *octets {
            [a, b, c] => self.put([a, b, c]),
            [a, b, c, d] => self.put([a, b, c, d]),
            _ => self.put_slice(octets),
        }
    }

    /// Writes octets.
    #[inline]
    pub(super) fn put_slice(&mut self, octets: &[u8]) -> Result<(), Full> {
        let room = self.buffer.get_mut(self.at..self.limit).ok_or(Full)?;
        let room = room.get_mut(..octets.len()).ok_or(Full)?;
        room.copy_from_slice(octets);
        self.at += octets.len();
        Ok(())
    }

    /// Does something whole or not at all.
    #[inline]
    pub(super) fn whole<T>(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<T, Full>,
    ) -> Result<T, Full> {
        let (at, mark) = (self.at, self.written.mark());
        let result = write(self);
        if result.is_err() {
            self.at = at;
            self.written.forget(mark);
        }
        result
    }

    /// Writes a name, compressed against all that is remembered, and remembers it.
    pub(super) fn name(&mut self, name: NameRef<'_>) -> Result<Place, Full> {
        let start = self.at;
        match self.written.find(self.message(), name) {
            Some((&[], offset)) => {
                self.put(pointer(offset))?;
                return Ok(Some(offset));
            }
            Some((labels, offset)) => {
                self.put_slice(labels)?;
                self.put(pointer(offset))?;
            }
            None => self.put_slice(name.as_wire())?,
        }
        if !name.is_root() {
            self.written.add(start);
        }
        Ok(u16::try_from(start).ok().filter(|&at| at <= 0x3fff))
    }

    /// Writes an owner name, and tells how to write it again.
    fn owner<'o>(&mut self, owner: Owner<'o>) -> Result<Owner<'o>, Full> {
        match owner {
            Owner::At(offset) => self.put(pointer(offset)).map(|()| owner),
            Owner::Name(name) => Ok(self.name(name)?.map_or(owner, Owner::At)),
        }
    }

    /// Writes the address records of one owner. Gives their count. The iterator is borrowed: its state may be large to move.
    #[inline]
    pub(super) fn addresses(
        &mut self,
        owner: Owner<'_>,
        ttl: Ttl,
        addresses: &mut impl Iterator<Item = IpAddr>,
    ) -> Result<u16, Full> {
        let mut owner = owner;
        let mut count = 0;
        addresses.try_for_each(|address| {
            count += 1;
            // One write a record where the owner is a pointer, as it nearly always is.
            if let Owner::At(offset) = owner {
                return self.address_at(offset, ttl, &address);
            }
            owner = self.owner(owner)?;
            self.address_after_name(ttl, address)
        })?;
        Ok(count)
    }

    /// Writes an address record whose owner is a pointer to an offset of at most 0x3fff.
    #[inline]
    pub(super) fn address_at(
        &mut self,
        offset: u16,
        ttl: Ttl,
        address: &IpAddr,
    ) -> Result<(), Full> {
        let [p0, p1] = pointer(offset);
        let [t0, t1, t2, t3] = ttl.seconds().to_be_bytes();
        match address {
            IpAddr::V4(address) => {
                let [a, b, c, d] = address.octets();
                self.put([p0, p1, 0, 1, 0, 1, t0, t1, t2, t3, 0, 4, a, b, c, d])
            }
            IpAddr::V6(address) => {
                let mut record = [0; 28];
                let (head, tail) = record.split_at_mut(12);
                head.copy_from_slice(&[p0, p1, 0, 28, 0, 1, t0, t1, t2, t3, 0, 16]);
                tail.copy_from_slice(&address.octets());
                self.put(record)
            }
        }
    }

    /// Writes what follows the owner in an address record.
    #[cold]
    fn address_after_name(&mut self, ttl: Ttl, address: IpAddr) -> Result<(), Full> {
        match address {
            IpAddr::V4(address) => {
                self.record_head(RecordType::A, ttl)?;
                self.sized(|writer| writer.put(address.octets()))
            }
            IpAddr::V6(address) => {
                self.record_head(RecordType::AAAA, ttl)?;
                self.sized(|writer| writer.put(address.octets()))
            }
        }
    }

    /// Writes an RRset, or a part of it that fits is taken back by the caller's [`Self::whole`]. Gives the count of records.
    pub(super) fn rrset(&mut self, owner: Owner<'_>, rrset: &Rrset, ttl: Ttl) -> Result<u16, Full> {
        let mut owner = owner;
        let mut count = 0;
        for rdata in rrset.iter() {
            owner = self.owner(owner)?;
            self.record_head(rrset.rtype(), ttl)?;
            self.sized(|writer| writer.rdata(rdata))?;
            count += 1;
        }
        Ok(count)
    }

    /// Writes a CNAME record. Gives the place of its target.
    pub(super) fn cname(
        &mut self,
        owner: Owner<'_>,
        target: NameRef<'_>,
        ttl: Ttl,
    ) -> Result<Place, Full> {
        self.owner(owner)?;
        self.record_head(RecordType::CNAME, ttl)?;
        self.sized(|writer| writer.name(target))
    }

    /// Writes a record of octets as they are.
    pub(super) fn plain_record(
        &mut self,
        owner: Owner<'_>,
        rtype: RecordType,
        ttl: Ttl,
        rdata: &[u8],
    ) -> Result<(), Full> {
        self.owner(owner)?;
        self.record_head(rtype, ttl)?;
        self.sized(|writer| writer.put_slice(rdata))
    }

    /// Writes TYPE, CLASS and TTL.
    fn record_head(&mut self, rtype: RecordType, ttl: Ttl) -> Result<(), Full> {
        self.put(rtype.0.to_be_bytes())?;
        self.put(IN)?;
        self.put(ttl.seconds().to_be_bytes())
    }

    /// Writes something behind its own length in two octets.
    pub(super) fn sized<T>(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<T, Full>,
    ) -> Result<T, Full> {
        let place = self.at;
        self.put([0, 0])?;
        let start = self.at;
        let result = write(self)?;
        let length = u16::try_from(self.at - start).map_err(|_| Full)?;
        let slot = self
            .buffer
            .get_mut(place..)
            .and_then(|rest| rest.first_chunk_mut());
        *slot.ok_or(Full)? = length.to_be_bytes();
        Ok(result)
    }

    /// Writes RDATA, its names compressed where the type allows (RFC 3597 section 4).
    fn rdata(&mut self, rdata: RdataRef<'_>) -> Result<(), Full> {
        let wire = rdata.wire();
        let mut done = 0;
        for range in rdata.compressible() {
            self.put_slice(wire.get(done..range.start).unwrap_or(&[]))?;
            done = range.end;
            let octets = wire.get(range).unwrap_or(&[]);
            match NameRef::from_wire(octets) {
                Ok(name) => self.name(name).map(|_| ())?,
                Err(_) => self.put_slice(octets)?,
            }
        }
        self.put_slice(wire.get(done..).unwrap_or(&[]))
    }
}

/// Puts the header and the question of a query where a message begins. Gives the limit that holds: never above the buffer's
/// length. `Full` when they do not fit.
#[inline]
pub(super) fn put_head(buffer: &mut [u8], head: &[u8], limit: usize) -> Result<usize, Full> {
    let limit = limit.min(buffer.len());
    let room = buffer.get_mut(..limit);
    let room = room.and_then(|room| room.get_mut(..head.len()));
    room.ok_or(Full)?.copy_from_slice(head);
    Ok(limit)
}

/// Makes a compression pointer to an offset of at most 0x3fff.
#[inline]
fn pointer(offset: u16) -> [u8; 2] {
    (u16::from_be_bytes([POINTER, 0]) | offset).to_be_bytes()
}
