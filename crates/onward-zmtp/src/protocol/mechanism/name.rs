//! The names of the mechanisms in the greeting.

/// The length of a name in the greeting, in bytes. It is padded with zeros.
const NAME_BYTES: usize = 20;

/// A mechanism, without its credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MechanismName {
    Null,
    Plain,
    Curve,
}

impl MechanismName {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Null => "NULL",
            Self::Plain => "PLAIN",
            Self::Curve => "CURVE",
        }
    }

    pub(crate) fn padded(self) -> [u8; NAME_BYTES] {
        let mut padded = [0; NAME_BYTES];
        padded[..self.as_str().len()].copy_from_slice(self.as_str().as_bytes());
        padded
    }
}
