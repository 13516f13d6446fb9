//! Changes inputs in the ways that break parsers, the same ones in each run.

/// What parsers of JSON, tokens and keys trip over.
const TOKENS: [&[u8]; 32] = [
    b"null",
    b"true",
    b"-1",
    b"0",
    b"1e400",
    b"-0.0",
    b"9223372036854775808",
    b"1e-400",
    b"\"\"",
    b"{}",
    b"[]",
    b"[[[[[[[[",
    b"{\"a\":{\"a\":{\"a\":",
    b"\\u0000",
    b"\\ud800",
    b"\xff\xfe",
    b"\xc3\x28",
    b"\0",
    b"\n\n",
    b"__proto__",
    b".",
    b"..",
    b"$ref",
    b"2026-02-30T25:61:61Z",
    b"-----BEGIN PUBLIC KEY-----",
    b"eyJhbGciOiJub25lIn0.",
    b"AAAA",
    b"=",
    b"\x7f\xff\xff\xff",
    b"\x80",
    b"(a+)+$",
    b"\xf0\x9f\x91\xa9",
];
/// Inputs grow no further.
const MOST_BYTES: usize = 1 << 20;

/// So many mutations of a corpus.
pub(crate) fn mutations(corpus: &[Vec<u8>], count: u32) -> impl Iterator<Item = Vec<u8>> {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let corpus = corpus.to_vec();
    (0..count).map(move |_| {
        let mut input = corpus[random.below(corpus.len())].clone();
        for _ in 0..=random.below(4) {
            mutate(&mut input, &corpus, &mut random);
        }
        input.truncate(MOST_BYTES);
        input
    })
}

fn mutate(input: &mut Vec<u8>, corpus: &[Vec<u8>], random: &mut Random) {
    let (start, end) = random.range(input.len());
    match random.below(8) {
        0 if !input.is_empty() => {
            let at = random.below(input.len());
            input[at] ^= 1 << random.below(8);
        }
        1 if !input.is_empty() => {
            let at = random.below(input.len());
            input[at] = random.next().to_le_bytes()[7];
        }
        2 => drop(input.drain(start..end)),
        3 => {
            let copy = input[start..end].to_vec();
            input.splice(start..start, copy);
        }
        4 => {
            // Deep nesting and long lists are made of repetition.
            let copy = input[start..end.min(start + 64)].repeat(1 + random.below(300));
            input.splice(start..start, copy);
        }
        5 => {
            let other = &corpus[random.below(corpus.len())];
            let (from, to) = random.range(other.len());
            input.splice(start..end, other[from..to].iter().copied());
        }
        6 => input.truncate(end),
        _ => {
            let token = TOKENS[random.below(TOKENS.len())];
            let end = if random.below(2) == 0 { start } else { end };
            input.splice(start..end, token.iter().copied());
        }
    }
}

/// xorshift64* (Marsaglia 2003, Vigna 2016).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below another; 0 below 0.
    fn below(&mut self, bound: usize) -> usize {
        let bound = bound.max(1) as u64;
        usize::try_from((self.next() >> 11) % bound).unwrap()
    }

    /// A range within a length, short more often than long.
    fn range(&mut self, length: usize) -> (usize, usize) {
        let start = self.below(length + 1);
        let longest = if self.below(2) == 0 { 16 } else { length };
        let end = start + self.below(longest.min(length - start) + 1);
        (start, end)
    }
}
