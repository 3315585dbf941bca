//! The properties that the two sides exchange in the handshake.

use bytes::Bytes;

use super::error::{Error, Result, printable};
use super::identity::Identity;
use super::limits::Limits;
use super::socket_type::SocketType;
use super::wire::command::{push_short, take_short};

const SOCKET_TYPE: &str = "Socket-Type";
const IDENTITY: &str = "Identity";

/// The properties that a peer sent about itself: names with values, in the order of arrival.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metadata {
    properties: Vec<(String, Bytes)>,
}

impl Metadata {
    /// Returns the value of a property. Names are compared without regard to case, as the protocol
    /// requires.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Bytes> {
        self.properties.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// Returns all properties.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Bytes)> {
        self.properties.iter().map(|(name, value)| (name.as_str(), value))
    }

    pub(crate) fn parse(mut bytes: &[u8], limits: &Limits) -> Result<Self> {
        if bytes.len() > limits.metadata_bytes {
            return Err(Error::limit("metadata", bytes.len() as u64, "bytes", limits.metadata_bytes as u64));
        }
        let mut metadata = Self::default();
        while !bytes.is_empty() {
            let (name, value, rest) = take_property(bytes)?;
            metadata.insert(name, value, limits)?;
            bytes = rest;
        }
        Ok(metadata)
    }

    fn insert(&mut self, name: &[u8], value: &[u8], limits: &Limits) -> Result<()> {
        let count = self.properties.len() + 1;
        if count > limits.metadata_properties {
            return Err(Error::limit("metadata", count as u64, "properties", limits.metadata_properties as u64));
        }
        let name = property_name(name)?;
        if self.get(name).is_some() {
            return Err(Error::malformed(format!("the peer's metadata has `{name}` twice")));
        }
        self.properties.push((name.to_owned(), Bytes::copy_from_slice(value)));
        Ok(())
    }

    pub(crate) fn socket_type(&self) -> Result<SocketType> {
        let Some(name) = self.get(SOCKET_TYPE) else {
            return Err(Error::malformed("the peer's metadata does not say its Socket-Type"));
        };
        SocketType::from_name(name)
            .ok_or_else(|| Error::incompatible(format!("the peer's socket type `{}` is unknown", printable(name))))
    }

    pub(crate) fn identity(&self) -> Result<Option<Identity>> {
        match self.get(IDENTITY) {
            Some(identity) if !identity.is_empty() => Identity::of_peer(identity.clone()).map(Some),
            _ => Ok(None),
        }
    }

    /// Returns the local metadata.
    pub(crate) fn of(socket_type: SocketType, identity: Option<&Identity>, more: &[(String, Bytes)]) -> Self {
        let mut properties = vec![(SOCKET_TYPE.to_owned(), Bytes::from_static(socket_type.name().as_bytes()))];
        if socket_type.sends_identity() {
            let identity = identity.map(|identity| identity.as_bytes().clone());
            properties.push((IDENTITY.to_owned(), identity.unwrap_or_default()));
        }
        properties.extend_from_slice(more);
        Self { properties }
    }

    /// Returns the metadata, encoded as on the wire.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut encoded = Vec::new();
        for (name, value) in &self.properties {
            push_property(&mut encoded, name, value);
        }
        encoded
    }
}

/// Returns a property's name, its value, and the bytes after them.
fn take_property(bytes: &[u8]) -> Result<(&[u8], &[u8], &[u8])> {
    let property = || {
        let (name, rest) = take_short(bytes)?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let (value, rest) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
        Some((name, value, rest))
    };
    property().ok_or_else(|| Error::malformed("the peer's metadata ends in the middle of a property"))
}

/// Returns a property's name, if it has only the characters that the protocol allows: letters,
/// digits and `-_.+`.
pub(crate) fn property_name(name: &[u8]) -> Result<&str> {
    let allowed = |octet: &u8| octet.is_ascii_alphanumeric() || b"-_.+".contains(octet);
    match str::from_utf8(name) {
        Ok(text) if !name.is_empty() && name.len() <= usize::from(u8::MAX) && name.iter().all(allowed) => Ok(text),
        _ => Err(Error::malformed("a property's name may have 1 to 255 letters, digits and `-_.+`")),
    }
}

fn push_property(buffer: &mut Vec<u8>, name: &str, value: &[u8]) {
    push_short(buffer, name.as_bytes());
    // The options checked that no value is longer than 32 bits can express.
    buffer.extend_from_slice(&(value.len() as u32).to_be_bytes());
    buffer.extend_from_slice(value);
}
