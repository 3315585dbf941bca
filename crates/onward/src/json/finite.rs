//! Finds a number that JSON does not have, with a serializer that writes nothing and checks every
//! number.

use std::fmt;

use serde::ser::{self, Serialize, Serializer};

/// A part of the path to a field, from the outside in.
#[derive(Debug)]
enum Step {
    Field(String),
    Index(usize),
}

/// A number that JSON does not have, and its path in the value.
#[derive(Debug)]
pub(crate) struct NotFinite {
    number: f64,
    /// The innermost step comes first.
    path: Vec<Step>,
}

/// Returns an error if a number is not finite. Other errors of the value are ignored.
pub(super) fn check<T: Serialize + ?Sized>(value: &T) -> Result<(), NotFinite> {
    match value.serialize(Finite) {
        Err(CheckError::NotFinite(found)) => Err(*found),
        Ok(()) | Err(CheckError::Other) => Ok(()),
    }
}

impl fmt::Display for NotFinite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str("it")?;
        } else {
            f.write_str("`")?;
            for (place, step) in self.path.iter().rev().enumerate() {
                match step {
                    Step::Field(name) if place == 0 => f.write_str(name)?,
                    Step::Field(name) => write!(f, ".{name}")?,
                    Step::Index(index) => write!(f, "[{index}]")?,
                }
            }
            f.write_str("`")?;
        }
        write!(f, " is {}, and JSON has no such number; give a finite one, or an `Option` that is `None`", self.number)
    }
}

/// The reason why the check ended early.
#[derive(Debug)]
enum CheckError {
    NotFinite(Box<NotFinite>),
    Other,
}

impl CheckError {
    fn of(number: f64) -> Self {
        Self::NotFinite(Box::new(NotFinite { number, path: Vec::new() }))
    }

    /// Adds the step that contains the number.
    fn within(mut self, step: impl FnOnce() -> Step) -> Self {
        if let Self::NotFinite(found) = &mut self {
            found.path.push(step());
        }
        self
    }
}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the look for numbers ended early")
    }
}

impl std::error::Error for CheckError {}

impl ser::Error for CheckError {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self::Other
    }
}

type CheckResult = Result<(), CheckError>;

/// The serializer of a value that is not inside another.
struct Finite;

/// The parts of a value, one after the other.
struct Parts {
    /// The variant that they belong to.
    variant: Option<&'static str>,
    place: usize,
    /// The key of a map whose value comes next.
    key: String,
}

impl Parts {
    fn of(variant: Option<&'static str>) -> Self {
        Self { variant, place: 0, key: String::new() }
    }

    fn check_value<T: Serialize + ?Sized>(&self, value: &T, step: impl FnOnce() -> Step) -> CheckResult {
        value.serialize(Finite).map_err(|stop| {
            let stop = stop.within(step);
            match self.variant {
                Some(variant) => stop.within(|| Step::Field(variant.to_owned())),
                None => stop,
            }
        })
    }

    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> CheckResult {
        let place = self.place;
        self.place += 1;
        self.check_value(value, || Step::Index(place))
    }

    fn field<T: Serialize + ?Sized>(&self, name: &str, value: &T) -> CheckResult {
        self.check_value(value, || Step::Field(name.to_owned()))
    }
}

/// Defines the methods of scalars that are always valid.
macro_rules! fine {
    ($($method:ident($type:ty))*) => {
        $(fn $method(self, _: $type) -> CheckResult {
            Ok(())
        })*
    };
}

impl Serializer for Finite {
    type Ok = ();
    type Error = CheckError;
    type SerializeSeq = Parts;
    type SerializeTuple = Parts;
    type SerializeTupleStruct = Parts;
    type SerializeTupleVariant = Parts;
    type SerializeMap = Parts;
    type SerializeStruct = Parts;
    type SerializeStructVariant = Parts;

    fine! {
        serialize_bool(bool) serialize_char(char) serialize_str(&str) serialize_bytes(&[u8])
        serialize_i8(i8) serialize_i16(i16) serialize_i32(i32) serialize_i64(i64) serialize_i128(i128)
        serialize_u8(u8) serialize_u16(u16) serialize_u32(u32) serialize_u64(u64) serialize_u128(u128)
        serialize_unit_struct(&'static str)
    }

    fn serialize_f32(self, number: f32) -> CheckResult {
        self.serialize_f64(f64::from(number))
    }

    fn serialize_f64(self, number: f64) -> CheckResult {
        if number.is_finite() { Ok(()) } else { Err(CheckError::of(number)) }
    }

    fn serialize_unit(self) -> CheckResult {
        Ok(())
    }

    fn serialize_none(self) -> CheckResult {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> CheckResult {
        value.serialize(self)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> CheckResult {
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> CheckResult {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> CheckResult {
        Parts::of(None).field(variant, value)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Parts, CheckError> {
        Ok(Parts::of(None))
    }

    fn serialize_tuple(self, _: usize) -> Result<Parts, CheckError> {
        Ok(Parts::of(None))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Parts, CheckError> {
        Ok(Parts::of(None))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Parts, CheckError> {
        Ok(Parts::of(Some(variant)))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Parts, CheckError> {
        Ok(Parts::of(None))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Parts, CheckError> {
        Ok(Parts::of(None))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Parts, CheckError> {
        Ok(Parts::of(Some(variant)))
    }
}

/// Defines the traits of parts that have an index.
macro_rules! items {
    ($($trait:ident::$method:ident)*) => {
        $(impl ser::$trait for Parts {
            type Ok = ();
            type Error = CheckError;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> CheckResult {
                self.item(value)
            }

            fn end(self) -> CheckResult {
                Ok(())
            }
        })*
    };
}

items! {
    SerializeSeq::serialize_element
    SerializeTuple::serialize_element
    SerializeTupleStruct::serialize_field
    SerializeTupleVariant::serialize_field
}

/// Defines the traits of parts that have a name.
macro_rules! fields {
    ($($trait:ident)*) => {
        $(impl ser::$trait for Parts {
            type Ok = ();
            type Error = CheckError;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> CheckResult {
                self.field(name, value)
            }

            fn end(self) -> CheckResult {
                Ok(())
            }
        })*
    };
}

fields! { SerializeStruct SerializeStructVariant }

impl ser::SerializeMap for Parts {
    type Ok = ();
    type Error = CheckError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> CheckResult {
        self.key = serde_json::to_string(key).unwrap_or_default().trim_matches('"').to_owned();
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> CheckResult {
        self.field(&self.key, value)
    }

    fn end(self) -> CheckResult {
        Ok(())
    }
}
