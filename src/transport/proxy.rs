//! PROXY protocol, version 2: who really asks, when a trusted load balancer stands in front.
//!
//! Knows the header's layout (haproxy's `proxy-protocol.txt`, section 2.2) and nothing of DNS. A header comes once at the
//! start of a connection, and at the start of each datagram. TLVs are skipped: nothing in them changes an answer.
//! Whether a sender may say such a thing at all is decided by [`is_trusted`]. Called by the UDP worker and the TCP listener.

use std::io;
use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use tokio::io::{AsyncRead, AsyncReadExt};

/// What every header starts with.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// Octets of the fixed part: signature, version and command, family, length.
const FIXED_OCTETS: usize = 16;
/// Longest header taken, octets. Addresses need 52, the usual TLVs some hundred; a stream must not make us hold 64 KiB.
const MAX_OCTETS: usize = 4096;

/// Octets that are no header of version 2, or one that says what no DNS client can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// A header read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Who asks, canonical; `None`: the proxy itself (LOCAL, or a family left unspecified), so the real sender stands.
    pub(super) source: Option<SocketAddr>,
    /// Octets of the whole header, TLVs included: the message begins after them.
    pub(super) octets: usize,
}

/// Tells whether this sender (canonical address) must begin with a header. Costs nothing when nobody must.
#[inline]
pub(super) fn is_trusted(prefixes: &[IpNet], sender: IpAddr) -> bool {
    prefixes.iter().any(|prefix| prefix.contains(&sender))
}

/// Reads the header that `octets` begin with; what follows it is not looked at. Never panics.
///
/// # Errors
/// When the signature, version, command or family is not one of version 2, or octets are missing.
pub(super) fn parse(octets: &[u8]) -> Result<Header, Malformed> {
    let (fixed, rest) = octets
        .split_first_chunk::<FIXED_OCTETS>()
        .ok_or(Malformed)?;
    let total = total_octets(fixed)?;
    let body = rest.get(..total - FIXED_OCTETS).ok_or(Malformed)?;
    let [.., command, family, _, _] = *fixed;
    let source = match (command & 0x0f, family >> 4) {
        // LOCAL: a health check of the proxy's own; the rest of the header means nothing.
        (0, _) => None,
        // PROXY for a family that the proxy could not name: its own address is the best there is.
        (1, 0) => None,
        (1, 1) => Some(source_v4(body)?),
        (1, 2) => Some(source_v6(body)?),
        // Local sockets (family 3) hold no client address; anything else is reserved.
        _ => return Err(Malformed),
    };
    Ok(Header {
        source,
        octets: total,
    })
}

/// Reads one header off a stream, and not an octet more. The caller sets the deadline.
///
/// # Errors
/// The stream's own, end of stream, and `InvalidData` for what is no header.
pub(super) async fn read<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<Option<SocketAddr>> {
    let invalid = |Malformed| io::Error::from(io::ErrorKind::InvalidData);
    let mut octets = vec![0; FIXED_OCTETS];
    stream.read_exact(&mut octets).await?;
    let fixed = octets.first_chunk().ok_or(Malformed).map_err(invalid)?;
    let total = total_octets(fixed).map_err(invalid)?;
    octets.resize(total, 0);
    if let Some(body) = octets.get_mut(FIXED_OCTETS..) {
        stream.read_exact(body).await?;
    }
    parse(&octets).map(|header| header.source).map_err(invalid)
}

/// Checks the fixed part and gives the octets of the whole header, at least [`FIXED_OCTETS`] and at most [`MAX_OCTETS`].
fn total_octets(fixed: &[u8; FIXED_OCTETS]) -> Result<usize, Malformed> {
    let [.., command, family, high, low] = *fixed;
    let total = FIXED_OCTETS + usize::from(u16::from_be_bytes([high, low]));
    // The low half of the family octet is the transport: unspecified, stream or datagram. A proxy that takes in one and
    // passes on by the other is fine.
    let known = command >> 4 == 2 && family & 0x0f <= 2;
    if fixed.starts_with(&SIGNATURE) && known && total <= MAX_OCTETS {
        Ok(total)
    } else {
        Err(Malformed)
    }
}

/// Reads the source out of an IPv4 address block: source, destination, source port, destination port.
fn source_v4(body: &[u8]) -> Result<SocketAddr, Malformed> {
    let block = body.first_chunk::<12>().ok_or(Malformed)?;
    let [a, b, c, d, _, _, _, _, high, low, _, _] = *block;
    Ok(SocketAddr::from((
        [a, b, c, d],
        u16::from_be_bytes([high, low]),
    )))
}

/// Reads the source out of an IPv6 address block, laid out as for IPv4.
fn source_v6(body: &[u8]) -> Result<SocketAddr, Malformed> {
    let block = body.first_chunk::<36>().ok_or(Malformed)?;
    let address: [u8; 16] = *block.first_chunk().ok_or(Malformed)?;
    let [.., high, low, _, _] = *block;
    let address = IpAddr::from(address).to_canonical();
    Ok(SocketAddr::new(address, u16::from_be_bytes([high, low])))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Builds a header: version and command, family, body.
    fn header(command: u8, family: u8, body: &[u8]) -> Vec<u8> {
        let mut octets = SIGNATURE.to_vec();
        octets.extend([command, family]);
        octets.extend(u16::try_from(body.len()).expect("short").to_be_bytes());
        octets.extend(body);
        octets
    }

    const V4: [u8; 12] = [192, 0, 2, 7, 198, 51, 100, 1, 0x30, 0x39, 0, 53];
    const V6: [u8; 36] = [
        0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 1, 0x30, 0x39, 0, 53,
    ];
    const MAPPED: [u8; 36] = [
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff,
        0xff, 192, 0, 2, 1, 0x30, 0x39, 0, 53,
    ];

    /// Parses, whole and with a message behind it, and off a stream: all must agree.
    async fn check(octets: &[u8], expected: Result<Option<&str>, Malformed>) {
        let expected = expected.map(|text| text.map(|text| text.parse().expect("an address")));
        let parsed = parse(octets);
        assert_eq!(parsed.map(|header| header.source), expected, "{octets:?}");
        let mut longer = octets.to_vec();
        longer.extend(b"message");
        if let Ok(header) = parsed {
            assert_eq!(header.octets, octets.len());
            assert_eq!(parse(&longer), parsed);
            let mut stream = longer.as_slice();
            assert_eq!(read(&mut stream).await.expect("reads"), header.source);
            assert_eq!(stream, b"message", "an octet too many was read");
        } else {
            assert!(read(&mut &octets[..]).await.is_err());
        }
    }

    #[tokio::test]
    async fn headers_are_read_as_the_specification_has_them() {
        let good: &[(u8, u8, &[u8], Option<&str>)] = &[
            (0x21, 0x12, &V4, Some("192.0.2.7:12345")),
            (0x21, 0x11, &V4, Some("192.0.2.7:12345")),
            (0x21, 0x10, &V4, Some("192.0.2.7:12345")),
            (0x21, 0x22, &V6, Some("[2001:db8::9]:12345")),
            (0x21, 0x21, &MAPPED, Some("192.0.2.7:12345")),
            // LOCAL: whatever the family and the rest say.
            (0x20, 0x00, &[], None),
            (0x20, 0x12, &V4, None),
            (0x20, 0x31, &[1, 2, 3], None),
            (0x21, 0x00, &[], None),
            (0x21, 0x00, &[9; 40], None),
        ];
        for &(command, family, body, source) in good {
            check(&header(command, family, body), Ok(source)).await;
        }
        // TLVs are skipped.
        let with_tlv = [&V4[..], &[0x01, 0, 2, b'h', b'2'], &[0xe0, 0, 0]].concat();
        check(&header(0x21, 0x12, &with_tlv), Ok(Some("192.0.2.7:12345"))).await;

        let bad: &[(u8, u8, &[u8])] = &[
            (0x11, 0x12, &V4),
            (0x31, 0x12, &V4),
            (0x22, 0x12, &V4),
            (0x2f, 0x12, &V4),
            (0x21, 0x13, &V4),
            (0x21, 0x42, &V4),
            (0x21, 0x31, &[0; 216]),
            (0x21, 0x12, &V4[..11]),
            (0x21, 0x22, &V6[..35]),
            (0x21, 0x22, &V4),
            (0x21, 0x12, &[7; MAX_OCTETS]),
        ];
        for &(command, family, body) in bad {
            check(&header(command, family, body), Err(Malformed)).await;
        }
        check(
            b"PROXY TCP4 192.0.2.7 198.51.100.1 12345 53\r\n",
            Err(Malformed),
        )
        .await;
        check(b"", Err(Malformed)).await;
    }

    #[tokio::test]
    async fn a_header_cut_short_at_any_octet_is_refused() {
        let whole = header(0x21, 0x22, &V6);
        for octets in 0..whole.len() {
            check(&whole[..octets], Err(Malformed)).await;
        }
        for at in 0..SIGNATURE.len() {
            let mut broken = whole.clone();
            broken[at] ^= 1;
            check(&broken, Err(Malformed)).await;
        }
    }

    #[test]
    fn trust_goes_by_prefix() {
        let prefixes: Vec<IpNet> = vec![
            "192.0.2.0/24".parse().expect("a prefix"),
            "2001:db8::/32".parse().expect("a prefix"),
        ];
        for (sender, trusted) in [
            ("192.0.2.255", true),
            ("192.0.3.0", false),
            ("2001:db8::1", true),
            ("2001:db9::1", false),
        ] {
            let sender = sender.parse().expect("an address");
            assert_eq!(is_trusted(&prefixes, sender), trusted, "{sender}");
            assert!(!is_trusted(&[], sender));
        }
    }

    proptest! {
        #[test]
        fn any_octets_are_read_or_refused(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&octets);
        }

        #[test]
        fn any_source_comes_back(
            source: std::net::SocketAddrV6, v4: std::net::SocketAddrV4, tlvs in proptest::collection::vec(any::<u8>(), 0..64)
        ) {
            let mut body = source.ip().octets().to_vec();
            body.extend([0; 16]);
            body.extend(source.port().to_be_bytes());
            body.extend([0, 53]);
            body.extend(&tlvs);
            let expected = SocketAddr::new(IpAddr::V6(*source.ip()).to_canonical(), source.port());
            let octets = header(0x21, 0x22, &body);
            prop_assert_eq!(parse(&octets), Ok(Header { source: Some(expected), octets: octets.len() }));

            let mut body = v4.ip().octets().to_vec();
            body.extend([0; 4]);
            body.extend(v4.port().to_be_bytes());
            body.extend([0, 53]);
            body.extend(&tlvs);
            let octets = header(0x21, 0x11, &body);
            prop_assert_eq!(parse(&octets), Ok(Header { source: Some(v4.into()), octets: octets.len() }));
        }
    }
}
