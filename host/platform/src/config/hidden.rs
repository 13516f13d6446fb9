//! Values that nobody is shown.

use std::fmt;
use std::ops::{Deref, DerefMut};

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use toml::Value;

/// A value that may be a credential: it is neither printed, nor repeated where it is not what it should be.
#[derive(Clone, Default)]
pub struct Hidden<T = String>(pub T);

impl<T> fmt::Debug for Hidden<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}

impl<T> Deref for Hidden<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Hidden<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Hidden<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // What serde says of a value that does not fit begins with the value.
        let value = Value::deserialize(deserializer).and_then(|value| {
            let text = "it does not have the right type; as it is secret, it is not shown";
            value.try_into().map_err(|_| D::Error::custom(text))
        });
        value.map(Self)
    }
}
