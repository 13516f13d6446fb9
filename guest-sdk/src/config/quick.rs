//! JSON as configurations have it, read in one pass: each batch reads its configurations anew.
//!
//! Whatever is unusual (escapes, exponents, long numbers, repeated keys, deep nesting, mistakes) is left to
//! `serde_json`, which says what is wrong and where.

use std::borrow::Cow;

use super::Node;

const MAX_DEPTH: u32 = 32;

/// With up to this many digits, a number and the power of ten that divides it are exact as doubles, so that
/// their quotient is the nearest double to what is written.
const MAX_DIGITS: usize = 15;

const POWERS_OF_TEN: [f64; MAX_DIGITS + 1] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
];

/// Reads a document. None: somebody else must.
pub(super) fn parse(text: &str) -> Option<Node<'_>> {
    let mut reader = Reader { text, position: 0 };
    let node = reader.node(0)?;
    (reader.next_token().is_none()).then_some(node)
}

struct Reader<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> Reader<'a> {
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }

    /// The next byte that is no blank; it is not taken.
    fn next_token(&mut self) -> Option<u8> {
        while matches!(self.byte(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.position += 1;
        }
        self.byte()
    }

    /// Takes a byte, after blanks.
    fn take(&mut self, token: u8) -> Option<()> {
        (self.next_token()? == token).then(|| self.position += 1)
    }

    fn node(&mut self, depth: u32) -> Option<Node<'a>> {
        if depth == MAX_DEPTH {
            return None;
        }
        match self.next_token()? {
            b'"' => self.string().map(|text| Node::Text(Cow::Borrowed(text))),
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b't' => self.literal("true", Node::Boolean(true)),
            b'f' => self.literal("false", Node::Boolean(false)),
            b'n' => self.literal("null", Node::Null),
            _ => self.number().map(Node::Number),
        }
    }

    fn object(&mut self, depth: u32) -> Option<Node<'a>> {
        self.take(b'{')?;
        let mut members: Vec<(Cow<'a, str>, Node<'a>)> = Vec::new();
        if self.next_token()? == b'}' {
            self.position += 1;
            return Some(Node::Object(members));
        }
        members.reserve_exact(4);
        loop {
            self.next_token()?;
            let key = self.string()?;
            if members.iter().any(|(known, _)| known == key) {
                return None;
            }
            self.take(b':')?;
            members.push((Cow::Borrowed(key), self.node(depth + 1)?));
            if !self.continues(b'}')? {
                return Some(Node::Object(members));
            }
        }
    }

    fn array(&mut self, depth: u32) -> Option<Node<'a>> {
        self.take(b'[')?;
        let mut elements = Vec::new();
        if self.next_token()? == b']' {
            self.position += 1;
            return Some(Node::Array(elements));
        }
        loop {
            elements.push(self.node(depth + 1)?);
            if !self.continues(b']')? {
                return Some(Node::Array(elements));
            }
        }
    }

    /// Takes a comma or the end of a list, and says whether it was the comma.
    fn continues(&mut self, end: u8) -> Option<bool> {
        let token = self.next_token()?;
        self.position += 1;
        match token {
            b',' => Some(true),
            token if token == end => Some(false),
            _ => None,
        }
    }

    fn string(&mut self) -> Option<&'a str> {
        let rest = self.text.get(self.position..)?.strip_prefix('"')?;
        let length = rest
            .bytes()
            .position(|byte| byte == b'"' || byte == b'\\' || byte < b' ')?;
        if rest.as_bytes().get(length) != Some(&b'"') {
            return None;
        }
        self.position += length + 2;
        rest.get(..length)
    }

    fn literal(&mut self, name: &str, node: Node<'a>) -> Option<Node<'a>> {
        self.text
            .get(self.position..)?
            .starts_with(name)
            .then(|| self.position += name.len())?;
        Some(node)
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "there are no more digits than a double holds"
    )]
    fn number(&mut self) -> Option<f64> {
        let negative = self.byte() == Some(b'-');
        self.position += usize::from(negative);
        let start = self.position;
        let mut digits = 0;
        self.digits(&mut digits);
        let whole = self.position - start;
        let leading_zero = whole > 1 && self.text.as_bytes().get(start) == Some(&b'0');
        if whole == 0 || leading_zero {
            return None;
        }
        let mut decimals = 0;
        if self.byte() == Some(b'.') {
            self.position += 1;
            let start = self.position;
            self.digits(&mut digits);
            decimals = self.position - start;
            if decimals == 0 {
                return None;
            }
        }
        if whole + decimals > MAX_DIGITS || matches!(self.byte(), Some(b'e' | b'E')) {
            return None;
        }
        let number = digits as f64 / POWERS_OF_TEN.get(decimals)?;
        Some(if negative { -number } else { number })
    }

    /// Takes digits and appends them to a number; what does not fit has too many anyway.
    fn digits(&mut self, number: &mut u64) {
        while let Some(digit @ b'0'..=b'9') = self.byte() {
            *number = number
                .wrapping_mul(10)
                .wrapping_add(u64::from(digit - b'0'));
            self.position += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_what_serde_reads() {
        for text in [
            r#"{"a": [1, 2.50, -3, {"b": null}], "c": true, "d": false, "é": "ü", "e": {}, "f": []}"#,
            " [ ] ",
            "\t{\r\n}",
            "0",
            "-0",
            "0.1",
            "-12.000001",
            "999999999999999",
            "0.00000000000001",
            "123456789.123456",
            "\"\"",
        ] {
            let expected: Node<'_> = serde_json::from_str(text).unwrap();
            assert_eq!(parse(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn negative_zero_stays_negative() {
        assert!(matches!(parse("-0"), Some(Node::Number(zero)) if zero.is_sign_negative()));
    }

    #[test]
    fn what_is_wrong_or_unusual_is_left_to_serde() {
        for text in [
            "",
            "{",
            "[1,]",
            "{\"a\":1,}",
            "[1 2]",
            "01",
            "1.",
            ".5",
            "-",
            "+1",
            "1e3",
            "1234567890123456",
            "1.2.3",
            "tru",
            "truer",
            "null null",
            "\"a",
            "\"a\nb\"",
            r#""a\"b""#,
            r#"{"a":1,"a":2}"#,
            "{a:1}",
            r#"{"a" 1}"#,
            "nan",
            "é",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        let nested = |depth| ["[", "]"].map(|bracket| bracket.repeat(depth)).concat();
        assert!(parse(&nested(32)).is_some());
        assert!(parse(&nested(33)).is_none());
    }
}
