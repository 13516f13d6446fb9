//! A short number of what a campaign listens for, which stands in states: they say of which events they are.

use nudge_guest::config::Node;

/// What of a trigger says which events match.
const KEYS: [&str; 9] = [
    "kind",
    "eventName",
    "screenName",
    "key",
    "from",
    "to",
    "segmentId",
    "on",
    "filters",
];

/// A trigger's number. Triggers that listen for other events hardly ever share it; the order of keys changes nothing.
pub(crate) fn number(trigger: &Node<'_>) -> u16 {
    let hash = KEYS.iter().fold(BASIS, |hash, key| {
        let value = trigger.member(key);
        value.map_or(hash, |value| node(text(hash, key), value))
    });
    let bytes = hash.to_le_bytes();
    let (parts, _) = bytes.as_chunks::<2>();
    let parts = parts.iter().copied().map(u16::from_le_bytes);
    parts.fold(0, |folded, part| folded ^ part)
}

/// What FNV-1a begins with.
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a, which stays the same in every version: states outlive them.
fn bytes(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn text(hash: u64, text: &str) -> u64 {
    // No text has this byte, so that it says where one ends.
    bytes(bytes(hash, text.as_bytes()), &[0xff])
}

fn node(hash: u64, value: &Node<'_>) -> u64 {
    match value {
        Node::Null => bytes(hash, b"0"),
        Node::Boolean(boolean) => bytes(hash, &[b'1', u8::from(*boolean)]),
        Node::Number(number) => bytes(bytes(hash, b"2"), &number.to_le_bytes()),
        Node::Text(value) => text(bytes(hash, b"3"), value),
        Node::Array(elements) => bytes(elements.iter().fold(bytes(hash, b"4"), node), b"5"),
        Node::Object(members) => {
            let members = members.iter();
            let members = members.map(|(key, value)| node(text(BASIS, key), value));
            let sum = members.fold(0, u64::wrapping_add);
            bytes(bytes(hash, b"6"), &sum.to_le_bytes())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(trigger: &str) -> u16 {
        number(&Node::parse(trigger).unwrap())
    }

    #[test]
    fn what_listens_for_the_same_has_one_number() {
        let trigger = of(
            r#"{"kind": "event", "eventName": "bought", "filters": {"all": [{"property": "a", "operator": "is_set"}]}}"#,
        );
        for same in [
            r#"{"filters": {"all": [{"operator": "is_set", "property": "a"}]}, "eventName": "bought", "kind": "event"}"#,
            r#"{"kind": "event", "eventName": "bought", "filters": {"all": [{"property": "a", "operator": "is_set"}]},
                "occurrence": {"mode": "once"}, "delaySeconds": 5, "cancelOn": [{"eventName": "left"}]}"#,
        ] {
            assert_eq!(of(same), trigger, "{same}");
        }
        for other in [
            r#"{"kind": "event", "eventName": "bought"}"#,
            r#"{"kind": "event", "eventName": "looked", "filters": {"all": [{"property": "a", "operator": "is_set"}]}}"#,
            r#"{"kind": "event", "eventName": "bought", "filters": {"all": [{"property": "b", "operator": "is_set"}]}}"#,
        ] {
            assert_ne!(of(other), trigger, "{other}");
        }
    }
}
