//! The error type of the sockets.

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;
use std::io::ErrorKind;
use std::sync::Arc;

use super::endpoint::Endpoint;
use super::socks::handshake::Failure;
use super::socks::options::Route;
use crate::protocol;

/// The result of a socket operation.
pub type Result<T> = std::result::Result<T, Error>;

/// The error of a socket operation, or the reason why a connection ended.
///
/// The predicates distinguish the cases on which a program acts. The text is for people: it names
/// the thing and, if there is one, the remedy. It never contains a secret, and programs must not
/// depend on it. A clone is cheap.
#[derive(Clone)]
pub struct Error {
    kind: Kind,
    message: Cow<'static, str>,
    source: Option<Source>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Endpoint,
    Io,
    Protocol,
    Closed,
    Unroutable,
    State,
    Full,
    Limit,
    Gone,
    Refused,
    RefusedByProxy,
    Runtime,
    Misuse,
}

#[derive(Clone)]
enum Source {
    Io(Arc<std::io::Error>),
    Protocol(protocol::Error),
}

impl Error {
    #[cold]
    fn new(kind: Kind, message: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    pub(super) fn endpoint(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Endpoint, message)
    }

    #[cold]
    pub(crate) fn io(what: impl fmt::Display, error: std::io::Error) -> Self {
        let message = format!("{what}: {error}");
        Self { kind: Kind::Io, message: message.into(), source: Some(Source::Io(Arc::new(error))) }
    }

    /// Returns the error of a bind that the system refused. It has a remedy for the common
    /// refusals.
    pub(super) fn bind(endpoint: &Endpoint, error: std::io::Error) -> Self {
        let message = format!("cannot bind to {endpoint}: {error}{}", bind_remedy(&error));
        Self { kind: Kind::Io, message: message.into(), source: Some(Source::Io(Arc::new(error))) }
    }

    pub(crate) fn closed() -> Self {
        Self::new(Kind::Closed, "the socket is closed")
    }

    pub(super) fn unroutable(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Unroutable, message)
    }

    pub(crate) fn state(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::State, message)
    }

    pub(super) fn full() -> Self {
        Self::new(
            Kind::Full,
            "the queues to all peers are at their high-water marks, or there is no peer; try again later",
        )
    }

    pub(super) fn limit(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Limit, message)
    }

    pub(super) fn gone(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Gone, message)
    }

    pub(super) fn refused(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Refused, message)
    }

    /// Returns the error for a connection that a SOCKS proxy does not make.
    #[cold]
    pub(super) fn proxy(route: &Route<'_>, failure: Failure) -> Self {
        let error = std::io::Error::new(failure.kind(), failure.to_string());
        let error = Self::io(format_args!("cannot connect to {route}"), error);
        Self { kind: if failure.is_final() { Kind::RefusedByProxy } else { Kind::Io }, ..error }
    }

    /// Returns the error for a socket that the peer of an endpoint, or the proxy on the way to it,
    /// refused for good.
    #[cold]
    pub(super) fn refused_by(endpoint: &Endpoint, reason: &Self) -> Self {
        // The reason names the peer, but not the proxy.
        let by_proxy =
            if reason.kind == Kind::RefusedByProxy { "because the SOCKS proxy refused the connection: " } else { "" };
        let message = format!(
            "`{endpoint}` is not tried again: {by_proxy}{reason}; correct the options and connect again, or set \
             `SocketOptions::on_refusal(RefusalPolicy::Retry)`"
        );
        Self { kind: Kind::Refused, message: message.into(), source: reason.source.clone() }
    }

    pub(super) fn runtime() -> Self {
        Self::new(Kind::Runtime, "there is no tokio runtime here; call this inside one")
    }

    /// Returns the error for an endpoint whose tasks ended with their runtime.
    #[cold]
    pub(super) fn runtime_ended(what: &str, endpoint: &Endpoint) -> Self {
        let again = if what == "bound to" { "bind" } else { "connect" };
        Self::gone(format!(
            "the tokio runtime in which the socket was {what} `{endpoint}` has ended; {again} again inside one that lives"
        ))
    }

    pub(super) fn misuse(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Misuse, message)
    }

    /// Returns true if the text is not an endpoint, or no socket can be bound or connected to it.
    #[must_use]
    pub fn is_endpoint(&self) -> bool {
        self.kind == Kind::Endpoint
    }

    /// Returns true if the operating system failed; [`std::error::Error::source`] is its error.
    #[must_use]
    pub fn is_io(&self) -> bool {
        self.kind == Kind::Io
    }

    /// Returns true if the socket was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.kind == Kind::Closed
    }

    /// Returns true if no peer of this identity is connected.
    #[must_use]
    pub fn is_unroutable(&self) -> bool {
        self.kind == Kind::Unroutable
    }

    /// Returns true if the call is out of turn: a REQ must receive the reply before it sends again,
    /// and a REP must receive a request before it sends.
    #[must_use]
    pub fn is_state(&self) -> bool {
        self.kind == Kind::State
    }

    /// Returns true if the call would have to wait: there is no room, or no peer.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.kind == Kind::Full
    }

    /// Returns true if one of the [`limits`](super::bounds), or one of the options, is reached.
    #[must_use]
    pub fn is_limit(&self) -> bool {
        self.kind == Kind::Limit || self.protocol().is_some_and(protocol::Error::is_limit)
    }

    /// Returns true if the peer of a request has disconnected, so that no reply will come. Also
    /// returned by a socket that [connects once](super::SocketOptions::connect_once) and has lost
    /// its last connection, and by one whose runtime has ended.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.kind == Kind::Gone
    }

    /// Returns true if one message can never be sent, and others may: its peer is gone, it is too
    /// large, or it lacks a frame.
    pub(super) fn concerns_message(&self) -> bool {
        self.is_unroutable() || self.is_limit() || self.is_state()
    }

    /// Returns true if one side refused the other.
    ///
    /// - The peer refused this socket: it sent an `ERROR` (wrong password or key, a message beyond
    ///   its limits), it uses another mechanism, or its socket type is incompatible. `send` and
    ///   `recv` return this once no peer is left that could be reached.
    /// - The [SOCKS proxy](super::SocketOptions::socks_proxy) on the way refused this socket: it
    ///   rejected the user name or the password, or does not allow the connection.
    /// - This socket refused the peer: because of its credentials, its identity, or because there
    ///   is room for one peer only. Only events contain this.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.kind == Kind::Refused
            || self.protocol().is_some_and(protocol::Error::is_refused)
            || self.is_refusal_of_peer()
    }

    /// Returns true if the peer or a proxy refused this socket, or the two are incompatible for
    /// good.
    pub(super) fn is_refusal_of_peer(&self) -> bool {
        self.kind == Kind::RefusedByProxy
            || self
                .protocol()
                .is_some_and(|error| error.is_peer_error() || error.is_mechanism() || error.is_incompatible())
    }

    /// Returns true if an option has no use for the socket's type or its endpoint, or could never
    /// work. Also true if a [`Proxy`](super::Proxy) joins two types between which nothing passes.
    #[must_use]
    pub fn is_misuse(&self) -> bool {
        self.kind == Kind::Misuse || self.protocol().is_some_and(protocol::Error::is_misuse)
    }

    /// Returns the error of the protocol, if there is one. It has its own predicates.
    #[must_use]
    pub fn protocol(&self) -> Option<&protocol::Error> {
        match &self.source {
            Some(Source::Protocol(error)) => Some(error),
            _ => None,
        }
    }
}

impl From<protocol::Error> for Error {
    #[cold]
    fn from(error: protocol::Error) -> Self {
        Self { kind: Kind::Protocol, message: error.to_string().into(), source: Some(Source::Protocol(error)) }
    }
}

impl From<Infallible> for Error {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Error").field(&self.kind).field(&self.message).finish()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.source {
            Some(Source::Io(error)) => Some(error.as_ref()),
            Some(Source::Protocol(error)) => Some(error),
            None => None,
        }
    }
}

/// Returns the remedy of an error of the system at a bind. Errors that are not the system's name
/// their remedy themselves.
fn bind_remedy(error: &std::io::Error) -> &'static str {
    if error.raw_os_error().is_none() {
        return "";
    }
    match error.kind() {
        ErrorKind::AddrInUse => "; a listener has this address: stop it, or bind to port `*` for a free one",
        ErrorKind::AddrNotAvailable => "; no interface here has this address: bind to one that does, or to `*` for all",
        ErrorKind::NotFound => "; the folder of the path is missing: create it first",
        ErrorKind::PermissionDenied => "; this user may not: choose a port from 1024 on, or a folder that it may write",
        _ => "",
    }
}
