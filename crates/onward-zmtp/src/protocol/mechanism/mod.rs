//! Security mechanisms: authentication of the peer and encryption of the traffic.

mod cipher;
mod curve;
mod curve_client;
#[cfg(test)]
#[cfg(not(miri))]
mod curve_costs;
mod curve_server;
mod entropy;
mod keys;
mod name;
mod negotiation;
mod null;
mod plain;
mod security;
mod z85;

pub use entropy::Entropy;
pub use keys::{KeyPair, PublicKey, SecretKey};
pub use security::{Credentials, Password, Security};

pub(crate) use cipher::{Cipher, INNER_COMMAND, Opened};
pub(crate) use name::MechanismName;
pub(crate) use negotiation::{Finished, Negotiation, Step};
