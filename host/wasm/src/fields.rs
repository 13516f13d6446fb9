//! The fields of a JSON object, each as it is written.

use std::borrow::Cow;

/// Goes through the fields of an object: each key, and the text of its value.
///
/// Meant for text that was checked when it arrived: it finds where values end, and checks nothing else. Text that is no
/// JSON ends early or gives nonsense, and no more. (A general parser takes three times as long, and this is most of what
/// validation costs.)
pub(crate) struct Fields<'j> {
    json: &'j str,
    /// Where the next key or the end of the object is.
    at: usize,
}

impl<'j> Fields<'j> {
    /// Those of this text; none if it is no object.
    pub(crate) fn of(json: &'j str) -> Self {
        let start = blanks(json.as_bytes(), 0);
        let at = match json.as_bytes().get(start) {
            Some(b'{') => start + 1,
            _ => json.len(),
        };
        Self { json, at }
    }

    fn next_field(&mut self) -> Option<(Cow<'j, str>, &'j str)> {
        let bytes = self.json.as_bytes();
        let start = blanks(bytes, self.at);
        let (end, escaped) = string_end(bytes, start)?;
        let key = if escaped {
            Cow::Owned(serde_json::from_str(self.json.get(start..end)?).ok()?)
        } else {
            Cow::Borrowed(self.json.get(start + 1..end - 1)?)
        };
        Some((key, self.value_after(end)?))
    }

    /// The next field's value if its key is this one, which is written without escapes. Otherwise the next field stays the next.
    pub(crate) fn value_of(&mut self, key: &str) -> Option<&'j str> {
        let bytes = self.json.as_bytes();
        let start = blanks(bytes, self.at);
        let end = start + key.len() + 2;
        match bytes.get(start..end)? {
            [b'"', written @ .., b'"'] if written == key.as_bytes() => self.value_after(end),
            _ => None,
        }
    }

    /// The value of the field whose key ends at a place; what follows is the next field.
    fn value_after(&mut self, end: usize) -> Option<&'j str> {
        let bytes = self.json.as_bytes();
        let colon = blanks(bytes, end);
        if bytes.get(colon) != Some(&b':') {
            return None;
        }
        let start = blanks(bytes, colon + 1);
        let end = value_end(bytes, start)?;
        let value = self.json.get(start..end)?;
        let next = blanks(bytes, end);
        self.at = match bytes.get(next) {
            Some(b',') => next + 1,
            _ => bytes.len(),
        };
        Some(value)
    }
}

impl<'j> Iterator for Fields<'j> {
    type Item = (Cow<'j, str>, &'j str);

    fn next(&mut self) -> Option<Self::Item> {
        let field = self.next_field();
        if field.is_none() {
            self.at = self.json.len();
        }
        field
    }
}

/// Where something else than a blank is, from a place on.
fn blanks(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(at) {
        at += 1;
    }
    at
}

/// Where a string that begins at a place is over, and whether it has escapes.
fn string_end(bytes: &[u8], start: usize) -> Option<(usize, bool)> {
    if bytes.get(start) != Some(&b'"') {
        return None;
    }
    let mut escaped = false;
    let mut at = start + 1;
    loop {
        at = quote_or_backslash(bytes, at)?;
        if bytes.get(at) == Some(&b'"') {
            return Some((at + 1, escaped));
        }
        escaped = true;
        at += 2;
    }
}

/// The first quote or backslash at or after a place. Strings are most of a text: eight bytes are looked at together.
fn quote_or_backslash(bytes: &[u8], mut at: usize) -> Option<usize> {
    while let Some(eight) = bytes.get(at..)?.first_chunk::<8>() {
        let word = u64::from_le_bytes(*eight);
        let found = zero_bytes(word ^ repeated(b'"')) | zero_bytes(word ^ repeated(b'\\'));
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    let rest = bytes.get(at..)?;
    let is_either = |byte: &u8| matches!(byte, b'"' | b'\\');
    rest.iter().position(is_either).map(|found| at + found)
}

/// Eight times the same byte.
const fn repeated(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// Marks the lowest byte that is zero, by its highest bit. Bytes above it may be marked too; a word without such a byte is marked
/// nowhere.
fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(repeated(1)) & !word & repeated(0x80)
}

/// Where a value that begins at a place is over.
fn value_end(bytes: &[u8], start: usize) -> Option<usize> {
    match bytes.get(start)? {
        b'"' => string_end(bytes, start).map(|(end, _)| end),
        b'{' | b'[' => nested_end(bytes, start),
        _ => {
            let is_over =
                |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t');
            let length = bytes.get(start..)?.iter().position(is_over)?;
            (length > 0).then_some(start + length)
        }
    }
}

/// Where an array or object that begins at a place is over.
fn nested_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = start;
    loop {
        match bytes.get(at)? {
            b'"' => {
                (at, _) = string_end(bytes, at)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use serde_json::value::RawValue;

    use super::*;

    fn fields(json: &str) -> Vec<(String, String)> {
        Fields::of(json)
            .map(|(key, value)| (key.into_owned(), value.to_owned()))
            .collect()
    }

    /// What a general parser finds.
    fn parsed(json: &str) -> Vec<(String, String)> {
        let fields: std::collections::BTreeMap<String, Box<RawValue>> =
            serde_json::from_str(json).unwrap();
        let text = |(key, value): (String, Box<RawValue>)| (key, value.get().to_owned());
        fields.into_iter().map(text).collect()
    }

    #[test]
    fn fields_are_those_that_a_parser_finds() {
        for json in [
            "{}",
            " { } ",
            r#"{"a":1}"#,
            "{ \"a\" :\t1 ,\n\"b\" : [ 1 , { \"c\" : \"]}\" } ] }",
            r#"{"a":"x\"y","b":"\\","c":"é}","d":"\u0022,"}"#,
            r#"{"a":-1.5e3,"b":null,"c":true,"d":false,"e":{},"f":[],"g":""}"#,
            r#"{"a":{"b":{"c":[[["{\"x\":1}"]]]}},"é":2,"z.z":3}"#,
            r#"{"a\"b":1,"\u00e9\\":2,"":3}"#,
        ] {
            let mut found = fields(json);
            found.sort();
            assert_eq!(found, parsed(json), "{json}");
        }
    }

    #[test]
    fn strings_of_any_length_end_where_they_do() {
        for length in 0..40 {
            let plain = "é".repeat(length) + &"x".repeat(length % 5);
            for text in [
                plain.clone(),
                format!("{plain}\\\\"),
                format!("\\\"{plain}"),
                format!("{plain}\\\"{plain}"),
            ] {
                let json = format!("{{\"a\":\"{text}\",\"b\":1}}");
                let expected = [("a", format!("\"{text}\"")), ("b", "1".to_owned())];
                let expected = expected.map(|(key, value)| (key.to_owned(), value));
                assert_eq!(fields(&json), expected, "{json}");
            }
        }
    }

    #[test]
    fn a_key_that_is_there_twice_comes_twice() {
        let pair = |value: &str| ("a".to_owned(), value.to_owned());
        assert_eq!(fields(r#"{"a":1,"a":2}"#), [pair("1"), pair("2")]);
    }

    #[test]
    fn every_beginning_of_a_text_ends() {
        let json = r#" {"a" : "x\"é", "b":[1,{"c":"]"}], "d":{"e":null},"f":-1.5 } "#;
        serde_json::from_str::<Value>(json).unwrap();
        for (end, _) in json.char_indices() {
            let beginning = &json[..end];
            let found = fields(beginning);
            let all = fields(json);
            assert_eq!(found, all[..found.len()], "{beginning}");
        }
    }

    #[test]
    fn what_is_no_object_has_no_fields() {
        for json in [
            "",
            " ",
            "[1]",
            "1",
            "\"a\"",
            "{",
            "{a:1}",
            "{\"a\"}",
            "{,}",
            "}{",
            "{\"a\":}",
            "{\"a\":]}",
        ] {
            assert_eq!(fields(json), [], "{json}");
        }
    }
}
