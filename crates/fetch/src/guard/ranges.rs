//! Which addresses are public: one table after the IANA special-purpose registries, and the rules
//! by which an IPv4 address hides inside an IPv6 address.
//!
//! <https://www.iana.org/assignments/iana-ipv4-special-registry>,
//! <https://www.iana.org/assignments/iana-ipv6-special-registry>

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

/// What an address is if it is not public, as a noun phrase: `a private address`.
pub(super) fn not_public(address: IpAddr) -> Option<&'static str> {
    match address.to_canonical() {
        IpAddr::V4(address) => not_public_v4(address),
        IpAddr::V6(address) => not_public_v6(address),
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix_len: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix_len)
}

/// A range whose first 64 bits are written out; no range in the tables needs more.
const fn v6(a: u16, b: u16, c: u16, d: u16, prefix_len: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0), prefix_len)
}

/// The parts of IPv4 that are not public.
pub(super) const NOT_PUBLIC_V4: &[(Ipv4Net, &str)] = &[
    (v4(0, 0, 0, 0, 8), "an address of this very network"),
    (v4(10, 0, 0, 0, 8), "a private address"),
    (v4(100, 64, 0, 0, 10), "an address shared behind a provider"),
    (v4(127, 0, 0, 0, 8), "a loopback address"),
    // Public by its number, but every Azure machine reaches its own host's control service there.
    (v4(168, 63, 129, 16, 32), "a cloud metadata address"),
    (v4(169, 254, 0, 0, 16), "a link-local address"),
    (v4(172, 16, 0, 0, 12), "a private address"),
    (v4(192, 0, 0, 0, 24), "an address reserved for protocols"),
    (v4(192, 0, 2, 0, 24), "an address reserved for documentation"),
    (v4(192, 88, 99, 0, 24), "a 6to4 relay address"),
    (v4(192, 168, 0, 0, 16), "a private address"),
    (v4(198, 18, 0, 0, 15), "an address reserved for benchmarks"),
    (v4(198, 51, 100, 0, 24), "an address reserved for documentation"),
    (v4(203, 0, 113, 0, 24), "an address reserved for documentation"),
    (v4(224, 0, 0, 0, 4), "a multicast address"),
    (v4(240, 0, 0, 0, 4), "a reserved address"),
];

/// The parts of IPv6 that are not public and have a name.
const NOT_PUBLIC_V6: &[(Ipv6Net, &str)] = &[
    (Ipv6Net::new_assert(Ipv6Addr::UNSPECIFIED, 128), "the unspecified address"),
    (Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128), "a loopback address"),
    (v6(0x64, 0xff9b, 1, 0, 48), "a local translation address"),
    (v6(0x100, 0, 0, 0, 64), "an address that discards"),
    (v6(0x2001, 2, 0, 0, 48), "an address reserved for benchmarks"),
    (v6(0x2001, 0x10, 0, 0, 28), "an address that is a hash"),
    (v6(0x2001, 0x20, 0, 0, 28), "an address that is a hash"),
    (v6(0x2001, 0xdb8, 0, 0, 32), "an address reserved for documentation"),
    (v6(0x3fff, 0, 0, 0, 20), "an address reserved for documentation"),
    (v6(0x5f00, 0, 0, 0, 16), "a segment routing address"),
    (v6(0xfc00, 0, 0, 0, 7), "a private address"),
    (v6(0xfe80, 0, 0, 0, 10), "a link-local address"),
    (v6(0xfec0, 0, 0, 0, 10), "a private address"),
    (v6(0xff00, 0, 0, 0, 8), "a multicast address"),
];

/// All that the internet routes today. Outside of it, only translated addresses are public.
const GLOBAL_UNICAST: Ipv6Net = v6(0x2000, 0, 0, 0, 3);
/// RFC 6052. Where a network has only IPv6, every IPv4 site looks like this.
const TRANSLATED: Ipv6Net = v6(0x64, 0xff9b, 0, 0, 96);
/// RFC 3056.
const SIX_TO_FOUR: Ipv6Net = v6(0x2002, 0, 0, 0, 16);
/// RFC 4380.
const TEREDO: Ipv6Net = v6(0x2001, 0, 0, 0, 32);

fn not_public_v4(address: Ipv4Addr) -> Option<&'static str> {
    NOT_PUBLIC_V4.iter().find(|(range, _)| range.contains(&address)).map(|&(_, what)| what)
}

fn not_public_v6(address: Ipv6Addr) -> Option<&'static str> {
    if let Some(&(_, what)) = NOT_PUBLIC_V6.iter().find(|(range, _)| range.contains(&address)) {
        return Some(what);
    }
    if !GLOBAL_UNICAST.contains(&address) && !TRANSLATED.contains(&address) {
        return Some("an address that the internet does not route");
    }
    embedded_v4(address).into_iter().flatten().find_map(not_public_v4)
}

/// The IPv4 addresses to which packets for this address may be handed on.
fn embedded_v4(address: Ipv6Addr) -> [Option<Ipv4Addr>; 2] {
    let bits = address.to_bits();
    // The cast keeps the 32 bits that are meant.
    let v4_at = |shift: u32| Some(Ipv4Addr::from_bits((bits >> shift) as u32));
    if TRANSLATED.contains(&address) {
        return [v4_at(0), None];
    }
    if SIX_TO_FOUR.contains(&address) {
        return [v4_at(80), None];
    }
    if TEREDO.contains(&address) {
        let client = Ipv4Addr::from_bits(!(bits as u32));
        return [v4_at(64), Some(client)];
    }
    // ISATAP (RFC 5214): any prefix, then 0000:5efe or, for a global IPv4 address, 0200:5efe.
    let segments = address.segments();
    if matches!(segments[4], 0 | 0x200) && segments[5] == 0x5efe {
        return [v4_at(0), None];
    }
    [None, None]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, public: bool) {
        let found = not_public(text.parse().unwrap());
        assert_eq!(found.is_none(), public, "{text} is {found:?}");
    }

    #[test]
    fn public_addresses() {
        for text in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700:4700::1111",
            "2001:4860:4860::8888",
            "64:ff9b::8.8.8.8",
            "::ffff:8.8.8.8",
            "2002:808:808::1",
        ] {
            check(text, true);
        }
    }

    #[test]
    fn metadata_services() {
        // D1.
        for text in [
            "169.254.169.254",
            "fd00:ec2::254",
            "100.100.100.200",
            "192.0.0.192",
            "168.63.129.16",
            "fd20:ce::254",
        ] {
            check(text, false);
        }
    }

    #[test]
    fn both_ends_of_every_special_range() {
        // D2, D3.
        for (range, _) in NOT_PUBLIC_V4 {
            check(&range.network().to_string(), false);
            check(&range.broadcast().to_string(), false);
        }
        for (range, _) in NOT_PUBLIC_V6 {
            check(&range.network().to_string(), false);
            check(&range.broadcast().to_string(), false);
        }
    }

    #[test]
    fn unrouted_ipv6() {
        // D3.
        for text in ["::", "::1", "::8.8.8.8", "::ffff:0:8.8.8.8", "1::1", "4000::1", "e000::1"] {
            check(text, false);
        }
    }

    #[test]
    fn teredo_needs_a_public_server_and_a_public_client() {
        check("2001:0:0808:0808:0:0:f7f7:f7f7", true);
        check("2001:0:7f00:0001:0:0:f7f7:f7f7", false);
        check("2001:0:0808:0808:0:0:80ff:fffe", false);
    }

    /// All IPv6 addresses from which some gateway would make this IPv4 address.
    fn spellings(address: Ipv4Addr) -> Vec<IpAddr> {
        let bits = u128::from(address.to_bits());
        let with = |prefix: &str, low: u128| {
            IpAddr::V6(Ipv6Addr::from_bits(prefix.parse::<Ipv6Addr>().unwrap().to_bits() | low))
        };
        vec![
            with("::ffff:0:0", bits),
            with("::ffff:0:0:0", bits),
            with("::", bits),
            with("64:ff9b::", bits),
            with("64:ff9b:1::", bits),
            with("2002::", bits << 80 | 1),
            with("2001:0:808:808::", !bits & 0xffff_ffff),
            with("2001::f7f7:f7f7", bits << 64),
            with("fe80::5efe:0:0", bits),
            with("2606:4700::5efe:0:0", bits),
            with("2606:4700::200:5efe:0:0", bits),
        ]
    }

    proptest! {
        #[test]
        fn a_special_v4_is_refused_in_every_spelling(index in 0..NOT_PUBLIC_V4.len(), host: u32) {
            // D4.
            let range = NOT_PUBLIC_V4[index].0;
            let inside = range.network().to_bits() | host & range.hostmask().to_bits();
            let address = Ipv4Addr::from_bits(inside);
            prop_assert!(not_public(IpAddr::V4(address)).is_some());
            for spelling in spellings(address) {
                prop_assert!(not_public(spelling).is_some(), "{address} as {spelling}");
            }
        }
    }
}
