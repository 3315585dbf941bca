//! Integers that travel as decimal strings, because not every language reads 64 bits exactly.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The id of a task: a decimal string in a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub i64);

/// The fence of an attempt: the number of the claim, a decimal string in a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(pub u32);

/// Reads the digits of an integer that has exactly one way to be written.
fn digits<T: std::str::FromStr>(text: &str) -> Option<T> {
    let is_canonical = text == "0" || !text.starts_with('0');
    let is_decimal = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_canonical && is_decimal).then(|| text.parse().ok()).flatten()
}

macro_rules! decimal {
    ($name:ident, $what:literal) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Cow::<'de, str>::deserialize(deserializer)?;
                let wrong = || serde::de::Error::custom(concat!($what, " is not a decimal string"));
                digits(&text).map(Self).ok_or_else(wrong)
            }
        }
    };
}

decimal!(Id, "a task id");
decimal!(Fence, "a fence");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_decimal_string_and_nothing_else() {
        assert_eq!(serde_json::to_string(&Id(17)).unwrap(), "\"17\"");
        assert_eq!(serde_json::from_str::<Id>("\"9223372036854775807\"").unwrap(), Id(i64::MAX));
        for wrong in ["17", "\"\"", "\"-1\"", "\"+1\"", "\" 1\"", "\"01\"", "\"9223372036854775808\"", "null"] {
            assert!(serde_json::from_str::<Id>(wrong).is_err(), "{wrong}");
        }
    }
}
