//! The check of peers that connect: a server of PLAIN or CURVE asks the program.

use std::net::SocketAddr;
use std::pin::Pin;

use crate::protocol::Credentials;
use crate::socket::endpoint::Endpoint;

/// The function that decides. Its future may wait, for example for a file, a database or another
/// service.
pub(in crate::socket) type Authenticator =
    dyn Fn(Candidate) -> Pin<Box<dyn Future<Output = Decision> + Send>> + Send + Sync;

/// The status code for failed authentication, as in ZAP.
const AUTHENTICATION_FAILED: &str = "400";

/// A peer that wants to connect.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub(in crate::socket) endpoint: Endpoint,
    pub(in crate::socket) address: Option<SocketAddr>,
    pub(in crate::socket) credentials: Credentials,
}

impl Candidate {
    /// Returns the local endpoint that the peer connected to.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Returns the address and the port of the peer, if it connected over TCP.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Returns the credentials that the peer sent.
    #[must_use]
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }
}

/// The decision on a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The peer may connect.
    Accept,
    /// The peer may not connect and is sent this text. At most 255 bytes are sent; a longer text is
    /// cut at a whole character. By convention it is a status code like `400`. It should contain no
    /// more than the peer may know.
    Refuse(String),
}

impl Decision {
    /// Refuses the peer with `400`: authentication failed.
    #[must_use]
    pub fn refuse() -> Self {
        Self::Refuse(AUTHENTICATION_FAILED.to_owned())
    }
}
