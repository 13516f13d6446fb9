//! From the position of an error in a text to a JSON pointer.

/// The pointer of the innermost value or key that begins at or before a position.
///
/// `line` and `column` count from 1, the column in bytes, as `serde_json` has them. The text need not be
/// valid JSON past that position.
pub(super) fn at(text: &str, line: usize, column: usize) -> String {
    let line_start: usize = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum();
    let end = (line_start + column).min(text.len());
    let mut walk = Walk { open: Vec::new() };
    walk.read(text.as_bytes().get(..end).unwrap_or_default());
    walk.open.iter().map(Step::pointer).collect()
}

/// An array or object around the position.
enum Step {
    /// The number of the element that is being read.
    Element(usize),
    /// The member whose value is being read; none before its key.
    Member(Option<String>),
}

impl Step {
    fn pointer(&self) -> String {
        match self {
            Self::Element(number) => format!("/{number}"),
            Self::Member(Some(key)) => format!("/{}", escaped(key)),
            Self::Member(None) => String::new(),
        }
    }
}

/// A key as a part of a pointer (RFC 6901).
pub(super) fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

struct Walk {
    open: Vec<Step>,
}

impl Walk {
    fn read(&mut self, mut rest: &[u8]) {
        while let Some((first, after)) = rest.split_first() {
            rest = after;
            match first {
                b'{' => self.open.push(Step::Member(None)),
                b'[' => self.open.push(Step::Element(0)),
                // A position right behind the last value is that of the whole object or array.
                b'}' | b']' => drop(self.open.pop()),
                b',' => match self.open.last_mut() {
                    Some(Step::Element(number)) => *number += 1,
                    Some(Step::Member(key)) => *key = None,
                    None => {}
                },
                b'"' => rest = self.string(after),
                _ => {}
            }
        }
    }

    /// Reads to the end of a string, which is a key where its object has none yet.
    fn string<'t>(&mut self, text: &'t [u8]) -> &'t [u8] {
        let mut end = 0;
        while let Some(byte) = text.get(end) {
            match byte {
                b'\\' => end += 1,
                b'"' => break,
                _ => {}
            }
            end += 1;
        }
        if let Some(Step::Member(key @ None)) = self.open.last_mut() {
            *key = text
                .get(..end)
                .map(|key| String::from_utf8_lossy(key).into_owned());
        }
        text.get(end + 1..).unwrap_or_default()
    }
}
