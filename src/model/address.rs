//! Addresses and prefixes as people write them.

use std::net::IpAddr;

use ipnet::IpNet;

/// Tells why no machine has this address; `None`: one may.
#[must_use]
pub fn not_unicast(address: IpAddr) -> Option<String> {
    let canonical = address.to_canonical();
    if canonical != address {
        return Some(format!(
            "is an IPv4 address in IPv6 dress; write {canonical}"
        ));
    }
    if address.is_unspecified() {
        return Some("is the unspecified address, which no machine has".to_owned());
    }
    if address.is_multicast() {
        return Some("is a multicast address, which no machine has".to_owned());
    }
    let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    is_broadcast.then(|| "is the broadcast address, which no machine has".to_owned())
}

/// Tells why nobody elsewhere can send traffic to an address; `None`: somebody may. Private networks are not judged here.
#[must_use]
pub fn not_reachable(address: IpAddr) -> Option<String> {
    let is_link_local = match address.to_canonical() {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    if address.to_canonical().is_loopback() {
        Some("is a loopback address: each machine is itself there".to_owned())
    } else if is_link_local {
        Some("is a link-local address: nobody reaches it from another network".to_owned())
    } else {
        not_unicast(address)
    }
}

/// Reads a prefix: host bits zero, IPv4 written as IPv4.
///
/// # Errors
/// With what would be right.
pub fn parse_prefix(text: &str) -> Result<IpNet, String> {
    let Ok(prefix) = text.parse::<IpNet>() else {
        return Err(match text.parse::<IpAddr>() {
            Ok(address) => format!(
                "`{text}` has no length; for this one address write {}",
                IpNet::from(address)
            ),
            Err(_) => format!(
                "`{text}` is no prefix; write one such as 192.0.2.0/24 or \"2001:db8::/32\""
            ),
        });
    };
    let whole = prefix.trunc();
    if whole != prefix {
        return Err(format!(
            "`{text}` has bits beyond its length; write {whole}"
        ));
    }
    match prefix {
        IpNet::V6(mapped) if mapped.prefix_len() >= 96 => match mapped.addr().to_ipv4_mapped() {
            Some(v4) => Err(format!(
                "`{text}` is an IPv4 prefix in IPv6 dress; write {v4}/{}",
                mapped.prefix_len() - 96
            )),
            None => Ok(prefix),
        },
        _ => Ok(prefix),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_exact() {
        for (text, right) in [
            ("10.0.0.0/8", Ok("10.0.0.0/8")),
            ("2001:db8::/32", Ok("2001:db8::/32")),
            ("0.0.0.0/0", Ok("0.0.0.0/0")),
            ("::/0", Ok("::/0")),
            ("10.0.0.1/8", Err("write 10.0.0.0/8")),
            ("10.0.0.1", Err("write 10.0.0.1/32")),
            ("::ffff:10.0.0.0/104", Err("write 10.0.0.0/8")),
            ("10.0.0.0/33", Err("no prefix")),
            ("x", Err("no prefix")),
        ] {
            match (parse_prefix(text), right) {
                (Ok(prefix), Ok(right)) => assert_eq!(prefix.to_string(), right),
                (Err(why), Err(part)) => assert!(why.contains(part), "{why}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }
}
