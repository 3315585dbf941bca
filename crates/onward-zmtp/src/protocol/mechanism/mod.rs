//! Security mechanisms: authentication of the peer and encryption of the traffic.

mod curve;
mod entropy;
pub(crate) mod local_side;
mod name;
mod negotiation;
mod null;
mod plain;
mod security;

pub use curve::keys::{KeyPair, PublicKey, SecretKey};
pub use entropy::Entropy;
pub use security::{Credentials, Password, Security};

pub(crate) use curve::cipher::{Cipher, INNER_COMMAND, Opened};
pub(crate) use name::MechanismName;
pub(crate) use negotiation::{Finished, Negotiation, Step};
