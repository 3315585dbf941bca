//! The credential: a key, or the key file of a local server.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;

use hyper::header::HeaderValue;

use crate::bounds;
use crate::error::{Error, Result};

/// The text before the key in a key file.
const HEADER: &str = "Authorization:";

/// The source of the header `Authorization`.
#[derive(Clone)]
pub(crate) enum Credential {
    /// None: only paths that need no key can be used.
    None,
    /// The value of the header.
    Fixed(HeaderValue),
    /// The file that a server keeps beside its store. A server that starts writes another one.
    File(PathBuf),
}

impl Credential {
    pub(crate) fn of_key(key: &str) -> Result<Self> {
        let value = HeaderValue::from_str(&format!("Bearer {key}"));
        let mut value =
            value.map_err(|_| Error::invalid("the key has characters that no key has; copy it as it was shown"))?;
        value.set_sensitive(true);
        Ok(Self::Fixed(value))
    }

    /// Returns the value of the header. A key file is read again each time. Without one the server
    /// reports that a credential is missing.
    pub(crate) fn header(&self) -> Option<HeaderValue> {
        match self {
            Self::None => None,
            Self::Fixed(value) => Some(value.clone()),
            Self::File(path) => {
                let mut text = String::new();
                File::open(path).ok()?.take(bounds::KEY_FILE_BYTES).read_to_string(&mut text).ok()?;
                let value = text.trim().strip_prefix(HEADER)?.trim();
                let mut value = HeaderValue::from_str(value).ok()?;
                value.set_sensitive(true);
                Some(value)
            }
        }
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Fixed(_) => f.write_str("Fixed"),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}
