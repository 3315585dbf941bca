//! Encodes a value as JSON.

use std::cell::Cell;
use std::fmt;
use std::io;

use bytes::Bytes;
use serde::Serialize;
use serde_json::ser::Formatter;

use super::finite::{self, NotFinite};

/// The initial size of the buffer, which is enough for most values.
const USUAL_BYTES: usize = 256;

/// The reason why a value cannot be written as JSON.
#[derive(Debug)]
pub(crate) enum JsonError {
    /// It has a number that JSON does not have.
    NotFinite(NotFinite),
    /// Its own code rejected it, or it has a key that is not text.
    Other(serde_json::Error),
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFinite(not_finite) => not_finite.fmt(f),
            Self::Other(error) => error.fmt(f),
        }
    }
}

/// Encodes a value as JSON.
///
/// # Errors
/// An error if the value could not be read again: JSON has no NaN and no infinity, and `serde_json`
/// writes `null` for them.
pub(crate) fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Bytes, JsonError> {
    let has_null = Cell::new(false);
    let mut bytes = Vec::with_capacity(USUAL_BYTES);
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, NullDetector(&has_null));
    value.serialize(&mut serializer).map_err(JsonError::Other)?;
    if has_null.get() {
        // A `null` is a missing value or an invalid number, and only a second pass can tell which.
        finite::check(value).map_err(JsonError::NotFinite)?;
    }
    Ok(Bytes::from(bytes))
}

/// A formatter that writes what `serde_json` writes by default, and records each `null`.
struct NullDetector<'a>(&'a Cell<bool>);

impl Formatter for NullDetector<'_> {
    fn write_null<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.set(true);
        writer.write_all(b"null")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(Serialize, Default)]
    struct Basket {
        owner: Option<String>,
        items: Vec<Item>,
        rates: BTreeMap<String, f32>,
    }

    #[derive(Serialize)]
    enum Item {
        Counted { cents: f64 },
        Weighed(f64, f32),
        Gift,
    }

    fn refused<T: Serialize>(value: &T) -> String {
        encode(value).unwrap_err().to_string()
    }

    /// Shows: T1
    #[test]
    fn a_value_is_written_as_serde_json_writes_it() {
        let rates = [("EUR".to_owned(), 1.5)].into();
        let basket = Basket { owner: None, items: vec![Item::Gift, Item::Weighed(0.25, 1.0)], rates };
        assert_eq!(encode(&basket).unwrap(), serde_json::to_vec(&basket).unwrap());
    }

    /// Shows: T1
    #[test]
    fn a_number_that_json_does_not_have_is_refused_with_its_path() {
        let items = vec![Item::Gift, Item::Counted { cents: f64::NAN }];
        let reported = refused(&Basket { items, ..Basket::default() });
        assert!(reported.contains("`items[1].Counted.cents` is NaN"), "{reported}");
        let items = vec![Item::Weighed(1.0, f32::INFINITY)];
        let reported = refused(&Basket { items, ..Basket::default() });
        assert!(reported.contains("`items[0].Weighed[1]` is inf"), "{reported}");
        let rates = [("EUR".to_owned(), f32::NEG_INFINITY)].into();
        let reported = refused(&Basket { rates, ..Basket::default() });
        assert!(reported.contains("`rates.EUR` is -inf"), "{reported}");
    }

    /// Shows: T1
    #[test]
    fn a_number_that_is_the_whole_value_is_refused() {
        assert!(refused(&f64::NAN).contains("it is NaN"));
        assert!(refused(&Some(f32::INFINITY)).contains("it is inf"));
    }

    /// Shows: T1
    #[test]
    fn what_has_no_value_is_written() {
        assert_eq!(encode(&(None::<f64>, (), Some(0.5))).unwrap(), "[null,null,0.5]");
    }
}
