//! Who may connect: the question that a server of PLAIN or CURVE asks the program.

use std::net::SocketAddr;
use std::pin::Pin;

use super::endpoint::Endpoint;
use crate::protocol::Credentials;

/// The function that decides. What it returns may wait: for a file, a database, another service.
pub(super) type Authenticator = dyn Fn(Candidate) -> Pin<Box<dyn Future<Output = Decision> + Send>> + Send + Sync;

/// By convention, and as ZAP says it: authentication failed.
const AUTHENTICATION_FAILED: &str = "400";

/// A peer that wants to connect.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub(super) endpoint: Endpoint,
    pub(super) address: Option<SocketAddr>,
    pub(super) credentials: Credentials,
}

impl Candidate {
    /// The endpoint of ours that it came by.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The address and the port that it came from, if it came over TCP.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// What it shows of itself.
    #[must_use]
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }
}

/// What becomes of a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It may connect.
    Accept,
    /// It may not, and is told this: up to 255 bytes, of which what is longer is cut to whole characters; by convention a status code like `400`. Say no more
    /// than it may know.
    Refuse(String),
}

impl Decision {
    /// It may not connect, and is told `400`: authentication failed.
    #[must_use]
    pub fn refuse() -> Self {
        Self::Refuse(AUTHENTICATION_FAILED.to_owned())
    }
}
