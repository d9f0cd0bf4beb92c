//! Which IP addresses belong to the public internet.
//!
//! Every range in the IANA special-purpose registries counts as private, also where nothing answers today. An IPv4
//! address embedded in an IPv6 address is checked only for NAT64, because networks route it; the other embeddings
//! count as private.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv4 ranges that are not public, as network address and prefix length.
const SPECIAL_V4: [([u8; 4], u32); 17] = [
    ([0, 0, 0, 0], 8),          // this network
    ([10, 0, 0, 0], 8),         // private
    ([100, 64, 0, 0], 10),      // carrier-grade NAT
    ([127, 0, 0, 0], 8),        // loopback
    ([168, 63, 129, 16], 32),   // in no registry, but the Azure host answers there
    ([169, 254, 0, 0], 16),     // link-local, and the metadata service of most clouds
    ([172, 16, 0, 0], 12),      // private
    ([192, 0, 0, 0], 24),       // protocol assignments
    ([192, 0, 2, 0], 24),       // documentation
    ([192, 88, 99, 0], 24),     // 6to4 relays
    ([192, 168, 0, 0], 16),     // private
    ([198, 18, 0, 0], 15),      // benchmarks
    ([198, 51, 100, 0], 24),    // documentation
    ([203, 0, 113, 0], 24),     // documentation
    ([224, 0, 0, 0], 4),        // multicast
    ([240, 0, 0, 0], 4),        // reserved
    ([255, 255, 255, 255], 32), // broadcast
];

/// IPv6 ranges within global unicast that are not public.
const SPECIAL_V6: [([u16; 3], u32); 4] = [
    ([0x2001, 0, 0], 23),     // protocol assignments: Teredo, benchmarks, ORCHID
    ([0x2001, 0xdb8, 0], 32), // documentation
    ([0x2002, 0, 0], 16),     // 6to4: embeds any IPv4 address
    ([0x3fff, 0, 0], 20),     // documentation
];

/// Whether this address is reachable from the public internet.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let bits = address.to_bits();
    !SPECIAL_V4.iter().any(|(first, length)| (bits ^ u32::from_be_bytes(*first)) >> (32 - length) == 0)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let [0x64, 0xff9b, 0, 0, 0, 0, high, low] = address.segments() {
        return is_public_v4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    }
    let bits = address.to_bits();
    let within = |[a, b, c]: [u16; 3], length: u32| {
        (bits ^ Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0).to_bits()) >> (128 - length) == 0
    };
    // Everything outside 2000::/3 is loopback, unspecified, mapped, link-local, unique-local, multicast or unassigned.
    within([0x2000, 0, 0], 3) && !SPECIAL_V6.iter().any(|(first, length)| within(*first, *length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_purpose_addresses_are_not_public() {
        for text in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.167.255.255",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700:4700::1111",
            "2001:4860:4860::8888",
            "2a00:1450:4001::",
            "64:ff9b::8.8.8.8",
        ] {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
        for text in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.255",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.7",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "::127.0.0.1",
            "64:ff9b::127.0.0.1",
            "64:ff9b::169.254.169.254",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
    }
}
