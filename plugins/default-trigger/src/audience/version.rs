//! Versions of apps: numbers between dots, compared one by one.

use std::cmp::Ordering;

/// How a version is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

/// The operators by their names.
pub(crate) const OPERATORS: [(&str, Operator); 6] = [
    ("eq", Operator::Equal),
    ("neq", Operator::NotEqual),
    ("gt", Operator::Greater),
    ("gte", Operator::GreaterOrEqual),
    ("lt", Operator::Less),
    ("lte", Operator::LessOrEqual),
];

/// What a version is asked.
#[derive(Clone, Debug)]
pub(crate) struct VersionTest {
    pub(crate) operator: Operator,
    pub(crate) version: Version,
}

/// A version: numbers, and whether something like `-beta.2` follows, which comes before the version itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    numbers: Vec<u64>,
    pre: Option<Vec<Identifier>>,
}

/// What stands between dots behind the hyphen. Numbers come before texts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Text(String),
}

impl Identifier {
    fn read(text: &str) -> Self {
        let number = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = number.then(|| text.parse().ok()).flatten();
        number.map_or_else(|| Self::Text(text.to_owned()), Self::Number)
    }
}

impl Version {
    /// Reads `1.2`, `v1.2.3`, `1.2.3-beta.1`, `1.2.3+45`. What follows a plus means nothing.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim().trim_start_matches(['v', 'V']);
        let text = text.split('+').next()?;
        let (numbers, pre) = match text.split_once('-') {
            Some((numbers, pre)) => {
                let pre = pre.split('.').map(Identifier::read).collect();
                (numbers, Some(pre))
            }
            None => (text, None),
        };
        let number = |part: &str| {
            let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| part.parse().ok()).flatten()
        };
        let mut numbers: Vec<u64> = numbers.split('.').map(number).collect::<Option<_>>()?;
        // 1.2 is 1.2.0.
        while numbers.last() == Some(&0) {
            numbers.pop();
        }
        Some(Self { numbers, pre })
    }

    fn compare(&self, other: &Self) -> Ordering {
        let pre = match (&self.pre, &other.pre) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
            (Some(one), Some(two)) => one.cmp(two),
        };
        self.numbers.cmp(&other.numbers).then(pre)
    }
}

impl VersionTest {
    /// Whether it holds for a version. What is no version passes nothing.
    pub(crate) fn holds(&self, known: &str) -> bool {
        let Some(known) = Version::parse(known) else {
            return false;
        };
        let order = known.compare(&self.version);
        match self.operator {
            Operator::Equal => order.is_eq(),
            Operator::NotEqual => order.is_ne(),
            Operator::Greater => order.is_gt(),
            Operator::GreaterOrEqual => order.is_ge(),
            Operator::Less => order.is_lt(),
            Operator::LessOrEqual => order.is_le(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(known: &str, operator: Operator, version: &str) -> bool {
        let version = Version::parse(version).unwrap();
        VersionTest { operator, version }.holds(known)
    }

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert!(holds("2.10.0", Operator::Greater, "2.9"));
        assert!(holds("2.9", Operator::Equal, "2.9.0"));
        assert!(holds("v3", Operator::GreaterOrEqual, "3.0.0"));
        assert!(holds("3.0.0-beta.1", Operator::Less, "3.0.0"));
        assert!(holds("3.0.1-beta.1", Operator::Greater, "3.0.0"));
        assert!(holds("3.0.0-beta.10", Operator::Greater, "3.0.0-beta.9"));
        assert!(holds("3.0.0-beta.2", Operator::Less, "3.0-beta.10"));
        assert!(holds("3.0.0-beta", Operator::Less, "3.0.0-beta.1"));
        assert!(holds("3.0.0-1", Operator::Less, "3.0.0-alpha"));
        assert!(holds("3.0.0-alpha.9", Operator::Less, "3.0.0-beta.1"));
        assert!(holds("3.0.0+17", Operator::Equal, "3"));
        assert!(holds("1.0", Operator::NotEqual, "1.0.1"));
        assert!(holds("1.0", Operator::LessOrEqual, "1"));
    }

    #[test]
    fn what_is_no_version_passes_nothing() {
        for known in ["", "beta", "1..2", "1.x", "99999999999999999999"] {
            for (_, operator) in OPERATORS {
                assert!(!holds(known, operator, "1.0"), "{known}");
            }
        }
    }
}
