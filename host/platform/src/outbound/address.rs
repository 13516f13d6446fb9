//! Which addresses are everybody's: the ones that a request on a customer's behalf may reach.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Networks of IPv4 that are not public: address and length of the prefix (the IANA IPv4 Special-Purpose
/// Address Registry, RFC 6890, and multicast, RFC 5771).
const IPV4_SPECIAL: &[(Ipv4Addr, u32)] = &[
    // "This network", RFC 791.
    (Ipv4Addr::UNSPECIFIED, 8),
    // Private use, RFC 1918.
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    // Shared by carriers (CGNAT), RFC 6598; a metadata service of a cloud is among them.
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    // Loopback, RFC 1122.
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    // Link-local, RFC 3927; most clouds' metadata services are here.
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    // Protocol assignments, RFC 6890; a metadata service of a cloud is among them.
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    // Documentation, RFC 5737.
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    // Relays of 6to4, RFC 7526.
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    // Benchmarks, RFC 2544.
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    // Multicast, RFC 5771.
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    // Reserved, RFC 1112, and broadcast.
    (Ipv4Addr::new(240, 0, 0, 0), 4),
    // A cloud's metadata and agents at an address that looks public: Azure's "wire server".
    (Ipv4Addr::new(168, 63, 129, 16), 32),
];

/// Where all public addresses of IPv6 are, RFC 4291.
const IPV6_GLOBAL: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// Networks in there that are not public, or that lead to another address (the IANA IPv6 Special-Purpose
/// Address Registry).
const IPV6_SPECIAL: &[(Ipv6Addr, u32)] = &[
    // Protocol assignments, RFC 2928; Teredo, ORCHID and benchmarks are among them.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    // Documentation, RFC 3849 and RFC 9637.
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
    // 6to4, RFC 3056: an IPv4 address in disguise, by relays that are gone (RFC 7526).
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    // The experimental 6bone, given back by RFC 3701.
    (Ipv6Addr::new(0x3ffe, 0, 0, 0, 0, 0, 0, 0), 16),
];

/// IPv4 addresses as IPv6 writes them, RFC 4291 2.5.5.2.
const IPV4_MAPPED: (Ipv6Addr, u32) = (Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96);
/// What a NAT64 makes of IPv4 addresses, RFC 6052. The prefix for local use (`64:ff9b:1::/48`, RFC 8215) is no
/// public one.
const NAT64: (Ipv6Addr, u32) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

/// Whether an address is public: no loopback, private, link-local, CGNAT, multicast, documentation or
/// unique-local address, no metadata service, and no other form of one of those (contract 10).
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => {
            if is_in_v6(address, IPV4_MAPPED) || is_in_v6(address, NAT64) {
                let [.., a, b, c, d] = address.octets();
                return is_public_v4(Ipv4Addr::new(a, b, c, d));
            }
            is_in_v6(address, IPV6_GLOBAL)
                && !IPV6_SPECIAL
                    .iter()
                    .any(|network| is_in_v6(address, *network))
        }
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !IPV4_SPECIAL.iter().any(|(network, length)| {
        let host_bits = 32 - length;
        (address.to_bits() ^ network.to_bits()).unbounded_shr(host_bits) == 0
    })
}

fn is_in_v6(address: Ipv6Addr, (network, length): (Ipv6Addr, u32)) -> bool {
    let host_bits = 128 - length;
    (address.to_bits() ^ network.to_bits()).unbounded_shr(host_bits) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESSES: &[(&str, bool)] = &[
        ("0.0.0.0", false),
        ("0.255.255.255", false),
        ("1.0.0.0", true),
        ("9.255.255.255", true),
        ("10.0.0.0", false),
        ("10.255.255.255", false),
        ("11.0.0.0", true),
        ("100.63.255.255", true),
        ("100.64.0.0", false),
        ("100.100.100.200", false),
        ("100.127.255.255", false),
        ("100.128.0.0", true),
        ("126.255.255.255", true),
        ("127.0.0.1", false),
        ("127.255.255.255", false),
        ("128.0.0.0", true),
        ("168.63.129.15", true),
        ("168.63.129.16", false),
        ("168.63.129.17", true),
        ("169.253.255.255", true),
        ("169.254.0.0", false),
        ("169.254.169.254", false),
        ("169.255.0.0", true),
        ("172.15.255.255", true),
        ("172.16.0.0", false),
        ("172.31.255.255", false),
        ("172.32.0.0", true),
        ("191.255.255.255", true),
        ("192.0.0.192", false),
        ("192.0.1.0", true),
        ("192.0.2.1", false),
        ("192.0.3.0", true),
        ("192.88.98.255", true),
        ("192.88.99.1", false),
        ("192.167.255.255", true),
        ("192.168.0.0", false),
        ("192.168.255.255", false),
        ("192.169.0.0", true),
        ("198.17.255.255", true),
        ("198.18.0.0", false),
        ("198.19.255.255", false),
        ("198.20.0.0", true),
        ("198.51.100.7", false),
        ("203.0.113.7", false),
        ("223.255.255.255", true),
        ("224.0.0.1", false),
        ("239.255.255.255", false),
        ("240.0.0.1", false),
        ("255.255.255.255", false),
        ("8.8.8.8", true),
        ("::", false),
        ("::1", false),
        ("::8.8.8.8", false),
        ("::127.0.0.1", false),
        ("::ffff:8.8.8.8", true),
        ("::ffff:127.0.0.1", false),
        ("::ffff:10.0.0.1", false),
        ("::ffff:0:8.8.8.8", false),
        ("64:ff9b::8.8.8.8", true),
        ("64:ff9b::169.254.169.254", false),
        ("64:ff9b:1::8.8.8.8", false),
        ("64:ff9b:0:0:1::8.8.8.8", false),
        ("100::1", false),
        ("1fff:ffff::1", false),
        ("2000::1", true),
        ("2001::1", false),
        ("2001:0:53aa:64c::1", false),
        ("2001:1ff:ffff::1", false),
        ("2001:200::1", true),
        ("2001:db7:ffff::1", true),
        ("2001:db8::1", false),
        ("2001:db9::1", true),
        ("2001:4860:4860::8888", true),
        ("2002:7f00:1::", false),
        ("2002:808:808::1", false),
        ("2003::1", true),
        ("2606:4700::1111", true),
        ("3ffe::1", false),
        ("3fff:fff::1", false),
        ("3fff:1000::1", true),
        ("4000::1", false),
        ("5f00::1", false),
        ("fc00::1", false),
        ("fd00:ec2::254", false),
        ("fe80::1", false),
        ("fec0::1", false),
        ("ff02::1", false),
    ];

    #[test]
    fn networks_that_are_not_public_end_where_they_end() {
        for (address, public) in ADDRESSES {
            let parsed: IpAddr = address.parse().unwrap();
            assert_eq!(is_public(parsed), *public, "{address}");
        }
    }
}
