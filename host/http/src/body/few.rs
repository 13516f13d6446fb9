//! Lists of which only so many items are made.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};

/// The first `MOST` items of a list, and how many it has. A short text can have many items, each of which takes more
/// memory than its text: the rest is gone over without being made, and is counted.
#[derive(Debug)]
pub struct Few<T, const MOST: usize> {
    /// The items; all of them if there are no more than `MOST`.
    pub items: Vec<T>,
    /// How many there are.
    pub count: usize,
}

impl<T, const MOST: usize> Default for Few<T, MOST> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            count: 0,
        }
    }
}

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for Few<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Items(PhantomData))
    }
}

struct Items<T, const MOST: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for Items<T, MOST> {
    type Value = Few<T, MOST>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut few = Few::default();
        while few.count < MOST
            && let Some(item) = items.next_element()?
        {
            few.items.push(item);
            few.count += 1;
        }
        if few.count == MOST {
            while items.next_element::<IgnoredAny>()?.is_some() {
                few.count += 1;
            }
        }
        Ok(few)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_is_counted_and_not_made() {
        let read =
            |text: &str| serde_json::from_str::<Few<u8, 3>>(text).map(|few| (few.items, few.count));
        assert_eq!(read("[]").unwrap(), (vec![], 0));
        assert_eq!(read("[1, 2, 3]").unwrap(), (vec![1, 2, 3], 3));
        assert_eq!(read(r#"[1, 2, 3, "x", {}]"#).unwrap(), (vec![1, 2, 3], 5));
        for wrong in ["[1, \"x\"]", "[1, 2, 3, ]", "{}", "[1, 2, 3, 4"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
