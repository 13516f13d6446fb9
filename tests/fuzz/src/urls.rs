//! URLs that customers name, and the addresses behind them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use nudge_platform::outbound::{Rule, address};

/// A URL, or the bytes of an address. What is let through is public also by what the standard library knows, and
/// passes once more as it is requested.
pub fn urls(input: &[u8]) {
    if let Ok(bytes) = <[u8; 4]>::try_from(input) {
        public(Ipv4Addr::from(bytes).into());
    }
    if let Ok(bytes) = <[u8; 16]>::try_from(input) {
        public(Ipv6Addr::from(bytes).into());
    }
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let rule = Rule {
        allow_http: false,
        allow_private_networks: false,
        ports: vec![443, 8443],
    };
    let Ok(url) = rule.check(text) else {
        return;
    };
    assert_eq!(url.scheme(), "https");
    assert!(url.username().is_empty() && url.password().is_none());
    assert!([443, 8443].contains(&url.port_or_known_default().expect("https has one")));
    let host = url.host_str().expect("checked");
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse() {
        assert!(address::is_public(address), "{address}");
        public(address);
    }
    assert_eq!(rule.check(url.as_str()), Ok(url));
}

fn public(address: IpAddr) {
    if !address::is_public(address) {
        return;
    }
    let special = match address {
        IpAddr::V4(address) => is_special(address),
        IpAddr::V6(address) => {
            address.is_loopback()
                || address.is_unspecified()
                || address.is_multicast()
                || address.is_unique_local()
                || address.is_unicast_link_local()
                || address.to_ipv4().is_some_and(is_special)
        }
    };
    assert!(!special, "{address} is not public");
}

fn is_special(address: Ipv4Addr) -> bool {
    address.is_loopback()
        || address.is_unspecified()
        || address.is_private()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_broadcast()
        || address.is_documentation()
}
