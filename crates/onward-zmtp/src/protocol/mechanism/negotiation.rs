//! The part that all mechanisms share: they exchange commands until the peer is known.

use super::curve::cipher::Cipher;
use super::curve::client::CurveClient;
use super::curve::keys::PublicKey;
use super::curve::server::CurveServer;
use super::entropy::Entropy;
use super::local_side::LocalSide;
use super::null::Null;
use super::plain::{PlainClient, PlainServer};
use super::security::{Credentials, Security};
use crate::protocol::error::{Error, Result, printable};
use crate::protocol::greeting::both_sides;
use crate::protocol::metadata::Metadata;
use crate::protocol::wire::command::error_from_peer;
use crate::protocol::wire::output::Output;

/// The result of a command of the peer.
#[derive(Debug)]
pub(crate) enum Step {
    /// Wait for the next command.
    Wait,
    /// The caller must decide about the peer and then call `accept`.
    Authenticate(Credentials),
    /// The handshake is done.
    Finished(Box<Finished>),
}

/// The result of a handshake.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) metadata: Metadata,
    /// The long-term key of a CURVE client.
    pub(crate) client_key: Option<PublicKey>,
    pub(crate) cipher: Option<Cipher>,
    /// The data of the local `READY`, if it was not sent. The peer may send messages only after it
    /// has received it.
    pub(crate) ready: Option<Vec<u8>>,
}

/// The handshake of one mechanism, after the greetings.
#[derive(Debug)]
pub(crate) enum Negotiation {
    Null(Null),
    PlainClient(PlainClient),
    PlainServer(PlainServer),
    CurveClient(Box<CurveClient>),
    CurveServer(Box<CurveServer>),
}

impl Negotiation {
    /// Begins the handshake, and writes the first command if this side sends it.
    pub(crate) fn start(local: &LocalSide<'_>, entropy: &Entropy, output: &mut Output) -> Result<Self> {
        Ok(match &local.options.security {
            Security::Null => Self::Null(Null::start(local, output)),
            Security::PlainClient { username, password } => {
                Self::PlainClient(PlainClient::start(username, password, output)?)
            }
            Security::PlainServer => Self::PlainServer(PlainServer::new()),
            Security::CurveClient { server, keys } => {
                Self::CurveClient(Box::new(CurveClient::start(*server, keys, entropy, output)?))
            }
            Security::CurveServer { .. } => Self::CurveServer(Box::new(CurveServer::new(entropy))),
        })
    }

    /// Returns whether this is a client of CURVE that awaits `WELCOME` from the server.
    pub(crate) fn awaits_welcome(&self) -> bool {
        matches!(self, Self::CurveClient(client) if client.awaits_welcome())
    }

    /// Handles a command of the peer.
    pub(crate) fn command(
        &mut self,
        name: &[u8],
        data: &[u8],
        local: &LocalSide<'_>,
        output: &mut Output,
    ) -> Result<Step> {
        let security = &local.options.security;
        match name {
            b"ERROR" if !security.is_server() => return Err(error_from_peer(data)),
            // Only a client sends `HELLO`, so both sides are clients.
            b"HELLO" if security.is_client() => return Err(both_sides("client", security.name())),
            _ => {}
        }
        match self {
            Self::Null(null) => null.command(name, data, local),
            Self::PlainClient(client) => client.command(name, data, local, output),
            Self::PlainServer(server) => server.command(name, data, local),
            Self::CurveClient(client) => client.command(name, data, local, output),
            Self::CurveServer(server) => server.command(name, data, local, output),
        }
    }

    /// Accepts the peer.
    pub(crate) fn accept(&mut self, local: &LocalSide<'_>, output: &mut Output) -> Result<Step> {
        match self {
            Self::PlainServer(server) => server.accept(output),
            Self::CurveServer(server) => server.accept(local),
            Self::Null(_) | Self::PlainClient(_) | Self::CurveClient(_) => Err(nothing_to_decide()),
        }
    }
}

#[cold]
pub(super) fn nothing_to_decide() -> Error {
    Error::misuse("there is no peer to decide about")
}

#[cold]
pub(super) fn unexpected(name: &[u8], expected: &str) -> Error {
    Error::malformed(format!("the peer sent `{}` in the handshake where {expected} belongs", printable(name)))
}
