//! What is a struct here is an object there, and what is a whole number here may be written as `1.0` there.
//!
//! A derived `Deserialize` also takes an array of a struct's fields, in their order. Nobody means that: a request whose
//! `context` is an array breaks the contract, as does a body that is one. [`Objects`] goes around a deserializer, and
//! around whatever comes out of it, and takes structs from objects only, and whole numbers however they are written
//! ([`Whole`]).

use std::fmt;

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor,
};

use super::whole::Whole;

/// A deserializer, or what belongs to one, that takes structs from objects only.
pub struct Objects<T>(pub T);

macro_rules! forward_whole {
    ($($method:ident;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method(Whole(visitor))
        }
    )*};
}

macro_rules! forward {
    ($($method:ident($($name:ident: $kind:ty),*);)*) => {$(
        fn $method<V: Visitor<'de>>(self, $($name: $kind,)* visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method($($name,)* Objects(visitor))
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Objects<D> {
    type Error = D::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(Objects(visitor))
    }

    forward_whole! {
        deserialize_i8;
        deserialize_i16;
        deserialize_i32;
        deserialize_i64;
        deserialize_u8;
        deserialize_u16;
        deserialize_u32;
        deserialize_u64;
    }

    forward! {
        deserialize_any();
        deserialize_bool();
        deserialize_f32();
        deserialize_f64();
        deserialize_char();
        deserialize_str();
        deserialize_string();
        deserialize_bytes();
        deserialize_byte_buf();
        deserialize_option();
        deserialize_unit();
        deserialize_unit_struct(name: &'static str);
        deserialize_newtype_struct(name: &'static str);
        deserialize_seq();
        deserialize_tuple(len: usize);
        deserialize_tuple_struct(name: &'static str, len: usize);
        deserialize_map();
        deserialize_enum(name: &'static str, variants: &'static [&'static str]);
        deserialize_identifier();
        deserialize_ignored_any();
    }
}

macro_rules! visit {
    ($($method:ident($kind:ty);)*) => {$(
        fn $method<E: Error>(self, value: $kind) -> Result<V::Value, E> {
            self.0.$method(value)
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Objects<V> {
    type Value = V::Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(formatter)
    }

    visit! {
        visit_bool(bool);
        visit_i64(i64);
        visit_u64(u64);
        visit_f64(f64);
        visit_str(&str);
        visit_borrowed_str(&'de str);
        visit_string(String);
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(Objects(inner))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.0.visit_newtype_struct(Objects(inner))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<V::Value, A::Error> {
        self.0.visit_seq(Objects(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(Objects(members))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, variant: A) -> Result<V::Value, A::Error> {
        self.0.visit_enum(Objects(variant))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Objects<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Objects(inner))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Objects<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(Objects(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Objects<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.0.next_key_seed(Objects(seed))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(Objects(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for Objects<A> {
    type Error = A::Error;
    type Variant = Objects<A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self::Variant), A::Error> {
        let (value, variant) = self.0.variant_seed(Objects(seed))?;
        Ok((value, Objects(variant)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Objects<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.0.newtype_variant_seed(Objects(seed))
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.0.tuple_variant(len, Objects(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.0.struct_variant(fields, Objects(visitor))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde::Deserialize;
    use serde_json::value::RawValue;
    use serde_json::{Value, json};

    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Inner {
        number: Option<i64>,
        texts: Vec<String>,
    }

    #[derive(Debug, Deserialize)]
    struct Outer<'a> {
        text: Option<&'a str>,
        inner: Option<Inner>,
        #[serde(default)]
        list: Vec<Inner>,
        #[serde(default)]
        map: BTreeMap<String, Inner>,
        #[serde(borrow)]
        raw: Option<&'a RawValue>,
    }

    fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        T::deserialize(Objects(&mut deserializer))
    }

    #[test]
    fn structs_are_objects_wherever_they_stand() {
        for array in [
            "[null, null, [], {}, null]",
            r#"{"inner": []}"#,
            r#"{"inner": [1, []]}"#,
            r#"{"list": [[]]}"#,
            r#"{"map": {"a": [1, ["x"]]}}"#,
        ] {
            assert!(serde_json::from_str::<Outer<'_>>(array).is_ok(), "{array}");
            let error = read::<Outer<'_>>(array).unwrap_err();
            assert!(error.is_data(), "{array}: {error}");
            assert!(error.to_string().contains("sequence"), "{array}: {error}");
        }
    }

    #[test]
    fn everything_else_is_as_before() {
        let text = r#"{"text": "plain", "inner": {"number": -5, "texts": ["ä", "\u00e4"]},
            "list": [{}, {"number": 7}], "map": {"a": {}}, "raw": [1, {"x": 2}], "more": [[]]}"#;
        let outer: Outer<'_> = read(text).unwrap();

        assert_eq!(outer.text, Some("plain"));
        let inner = Inner {
            number: Some(-5),
            texts: vec!["ä".to_owned(), "ä".to_owned()],
        };
        assert_eq!(outer.inner, Some(inner));
        assert_eq!(outer.list.len() + outer.map.len(), 3);
        assert_eq!(outer.raw.unwrap().get(), r#"[1, {"x": 2}]"#);
    }

    #[test]
    fn whole_numbers_may_be_written_with_a_fraction_of_nothing() {
        let text = r#"{"inner": {"number": -5.0}, "list": [{"number": 7e2}], "map": {"a": {"number": 0.0}}}"#;
        let outer: Outer<'_> = read(text).unwrap();
        assert_eq!(outer.inner.unwrap().number, Some(-5));
        assert_eq!(outer.list[0].number, Some(700));
        assert_eq!(outer.map["a"].number, Some(0));

        for (number, expected) in [
            ("1.5", "floating point `1.5`"),
            ("1e300", "floating point"),
            ("\"1\"", "string"),
        ] {
            let text = format!(r#"{{"inner": {{"number": {number}}}}}"#);
            let error = read::<Outer<'_>>(&text).unwrap_err().to_string();
            assert!(error.contains(expected), "{number}: {error}");
        }
        for (number, refused) in [("255.0", false), ("256.0", true), ("-1.0", true)] {
            assert_eq!(read::<u8>(number).is_err(), refused, "{number}");
        }
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            (-1e9..1e9).prop_map(|number: f64| json!(number)),
            ".{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(".{0,4}", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn values_come_through_as_they_are(value in any_value()) {
            let text = value.to_string();
            let plain: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(&read::<Value>(&text).unwrap(), &plain);
            prop_assert_eq!(Value::deserialize(Objects(plain.clone())).unwrap(), plain);
        }
    }
}
