//! Sockets for programs without a runtime: the same types, with methods that wait.
//!
//! ```
//! use std::time::Duration;
//! use onward_zmtp::blocking::{PullSocket, PushSocket};
//!
//! # fn main() -> Result<(), onward_zmtp::socket::Error> {
//! let mut pull = PullSocket::new();
//! let endpoint = pull.bind("tcp://127.0.0.1:*")?;
//!
//! let mut push = PushSocket::new();
//! push.connect(&endpoint)?;
//! push.send("work")?;
//!
//! assert_eq!(pull.recv()?.frames(), ["work"]);
//! assert!(pull.recv_timeout(Duration::from_millis(10))?.is_none());
//! # Ok(())
//! # }
//! ```
//!
//! The connections of all these sockets run in one thread, which the first socket starts.
//! Heartbeats and reconnects therefore continue while the program does something else. Dropping a
//! socket waits until queued messages are sent, for at most [`SocketOptions::linger`]. A program
//! that sends and returns from `main` loses only messages that could not be sent in that time.
//!
//! A process that was forked from one with such sockets has no copy of the thread: the methods that
//! wait return an error there ([`Error::is_state`]).
//!
//! Within a tokio runtime the methods that wait return an error ([`Error::is_state`]), because they
//! would block the runtime. Use the sockets of the crate's root there. They also serve programs
//! that need many sockets, halves, streams or a proxy.

use std::fmt;
use std::future::pending;
use std::sync::LazyLock;
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::time::timeout;

use crate::protocol::{Identity, IntoFrame, Message};
use crate::socket::kind::{self, Kind, Receives, Rep, Req, Router, Sends, Subscribes, Xpub};
use crate::socket::{self, Endpoint, Error, Monitor, RemotePeer, Result, SocketOptions, Statistics, TrySendError};

/// The runtime of the thread that runs all connections.
static CONNECTIONS: LazyLock<Result<Connections>> = LazyLock::new(start);

/// The runtime, and the process in which its thread runs.
struct Connections {
    runtime: Handle,
    process: u32,
}

impl Connections {
    /// Returns the runtime for a call in this process. A fork has no copy of the thread, so a call
    /// there would never return.
    fn runtime_in(&self, process: u32) -> Result<&Handle> {
        if process == self.process {
            return Ok(&self.runtime);
        }
        Err(Error::state(format!(
            "process {process} is a fork of {}, which runs the blocking sockets; fork before the first socket is used",
            self.process
        )))
    }
}

fn start() -> Result<Connections> {
    let failed = |error| Error::io("cannot start the thread of the blocking sockets", error);
    let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let connections = Connections { runtime: runtime.handle().clone(), process: std::process::id() };
    let run = move || runtime.block_on(pending::<()>());
    thread::Builder::new().name("onward-zmtp".to_owned()).spawn(run).map_err(failed)?;
    Ok(connections)
}

/// Waits for the result of a future.
fn wait<R>(future: impl Future<Output = R>) -> Result<R> {
    if Handle::try_current().is_ok() {
        return Err(Error::state(
            "a blocking socket would stop the tokio runtime that it is used in; use the one of the crate's root there",
        ));
    }
    let connections = CONNECTIONS.as_ref().map_err(Clone::clone)?;
    Ok(connections.runtime_in(std::process::id())?.block_on(future))
}

/// A socket whose methods wait. Use it by its names: [`PushSocket`] and so on.
pub struct Socket<T: Kind> {
    /// The socket; `None` after it is closed.
    socket: Option<socket::Socket<T>>,
}

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident: $kind:ident;)*) => {
        $($(#[$doc])* pub type $name = Socket<kind::$kind>;)*
    };
}

names! {
    /// `REQ`, whose methods wait.
    ReqSocket: Req;
    /// `REP`, whose methods wait.
    RepSocket: Rep;
    /// `DEALER`, whose methods wait.
    DealerSocket: Dealer;
    /// `ROUTER`, whose methods wait.
    RouterSocket: Router;
    /// `PUB`, whose methods wait.
    PubSocket: Pub;
    /// `XPUB`, whose methods wait.
    XpubSocket: Xpub;
    /// `SUB`, whose methods wait.
    SubSocket: Sub;
    /// `XSUB`, whose methods wait.
    XsubSocket: Xsub;
    /// `PUSH`, whose methods wait.
    PushSocket: Push;
    /// `PULL`, whose methods wait.
    PullSocket: Pull;
    /// `PAIR`, whose methods wait.
    PairSocket: Pair;
}

impl<T: Kind> Socket<T> {
    /// Creates a socket with the default options. It does nothing until it is bound or connected.
    #[must_use]
    pub fn new() -> Self {
        Self::with_options(SocketOptions::default())
    }

    /// Creates a socket with these options.
    #[must_use]
    pub fn with_options(options: SocketOptions) -> Self {
        Self { socket: Some(socket::Socket::with_options(options)) }
    }

    fn socket(&self) -> Result<&socket::Socket<T>> {
        self.socket.as_ref().ok_or_else(Error::closed)
    }

    fn socket_mut(&mut self) -> Result<&mut socket::Socket<T>> {
        self.socket.as_mut().ok_or_else(Error::closed)
    }

    /// Listens on an endpoint, like [`socket::Socket::bind`].
    ///
    /// # Errors
    ///
    /// Returns the errors of [`socket::Socket::bind`].
    pub fn bind<E>(&self, endpoint: E) -> Result<Endpoint>
    where
        E: TryInto<Endpoint>,
        Error: From<E::Error>,
    {
        wait(self.socket()?.bind(endpoint))?
    }

    /// Connects to an endpoint, like [`socket::Socket::connect`]. Does not wait for the connection.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`socket::Socket::connect`].
    pub fn connect<E>(&self, endpoint: E) -> Result<bool>
    where
        E: TryInto<Endpoint>,
        Error: From<E::Error>,
    {
        let socket = self.socket()?;
        wait(async { socket.connect(endpoint) })?
    }

    /// Stops listening, like [`socket::Socket::unbind`].
    ///
    /// # Errors
    ///
    /// Returns the errors of [`socket::Socket::unbind`].
    pub fn unbind<E>(&self, endpoint: E) -> Result<()>
    where
        E: TryInto<Endpoint>,
        Error: From<E::Error>,
    {
        self.socket()?.unbind(endpoint)
    }

    /// Ends the connection to an endpoint, like [`socket::Socket::disconnect`].
    ///
    /// # Errors
    ///
    /// Returns the errors of [`socket::Socket::disconnect`].
    pub fn disconnect<E>(&self, endpoint: E) -> Result<()>
    where
        E: TryInto<Endpoint>,
        Error: From<E::Error>,
    {
        self.socket()?.disconnect(endpoint)
    }

    /// Returns the numbers of peers, of queued messages and of dropped messages.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.socket.as_ref().map(socket::Socket::statistics).unwrap_or_default()
    }

    /// Returns a monitor, which reads the events of the socket's connections from now on. Read it
    /// with [`Monitor::try_next`].
    ///
    /// # Errors
    ///
    /// Returns an error ([`Error::is_closed`]) if the socket is closed.
    pub fn monitor(&self) -> Result<Monitor> {
        Ok(self.socket()?.monitor())
    }

    /// Sends queued messages, for at most [`SocketOptions::linger`], and closes the socket. Returns
    /// the number of messages that were not sent. Dropping the socket does the same.
    ///
    /// # Errors
    ///
    /// [`Error::is_state`] within a tokio runtime. The socket then closes in the background.
    pub fn close(mut self) -> Result<u64> {
        self.close_and_wait()
    }

    fn close_and_wait(&mut self) -> Result<u64> {
        self.socket.take().map_or(Ok(0), |socket| wait(socket.close()))
    }
}

impl<T: Sends> Socket<T> {
    /// Sends a message, like [`socket::Socket::send`]. Waits for room.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`socket::Socket::send`].
    pub fn send(&mut self, message: impl Into<Message>) -> Result<()> {
        wait(self.socket_mut()?.send(message))?
    }

    /// Sends a message and waits for room for at most `limit`. Returns `false` if it was not sent.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`send`](Self::send).
    pub fn send_timeout(&mut self, message: impl Into<Message>, limit: Duration) -> Result<bool> {
        let socket = self.socket_mut()?;
        wait(async { timeout(limit, socket.send(message)).await })?.map_or(Ok(false), |sent| sent.map(|()| true))
    }

    /// Sends a message if that can be done at once, like [`socket::Socket::try_send`].
    ///
    /// # Errors
    ///
    /// Returns the errors of [`socket::Socket::try_send`].
    pub fn try_send(&mut self, message: impl Into<Message>) -> std::result::Result<(), TrySendError> {
        match &mut self.socket {
            Some(socket) => socket.try_send(message),
            None => Err(TrySendError::closed(message.into())),
        }
    }
}

impl<T: Receives> Socket<T> {
    /// Waits for the next message and returns it, like [`socket::Socket::recv`].
    ///
    /// # Errors
    ///
    /// Returns the errors of [`socket::Socket::recv`].
    pub fn recv(&mut self) -> Result<Message> {
        wait(self.socket_mut()?.recv())?
    }

    /// Returns the next message, or `None` if none arrives within `limit`.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`recv`](Self::recv).
    pub fn recv_timeout(&mut self, limit: Duration) -> Result<Option<Message>> {
        let socket = self.socket_mut()?;
        wait(async { timeout(limit, socket.recv()).await })?.map_or(Ok(None), |received| received.map(Some))
    }

    /// Waits for the next message and returns it with the peer that sent it, like
    /// [`socket::Socket::recv_with_peer`].
    ///
    /// # Errors
    ///
    /// Returns the errors of [`socket::Socket::recv_with_peer`].
    pub fn recv_with_peer(&mut self) -> Result<(Message, RemotePeer)> {
        wait(self.socket_mut()?.recv_with_peer())?
    }

    /// Returns the next message if one is ready.
    pub fn try_recv(&mut self) -> Option<Message> {
        self.socket.as_mut()?.try_recv()
    }
}

impl Socket<Router> {
    /// Connects to an endpoint and assigns an identity to the peer there, like
    /// [`socket::Socket::connect_as`].
    ///
    /// # Errors
    ///
    /// Returns the errors of [`socket::Socket::connect_as`].
    pub fn connect_as<E>(&self, endpoint: E, identity: Identity) -> Result<bool>
    where
        E: TryInto<Endpoint>,
        Error: From<E::Error>,
    {
        let socket = self.socket()?;
        wait(async { socket.connect_as(endpoint, identity) })?
    }
}

impl Socket<Xpub> {
    /// Subscribes a peer to a topic, for a socket with manual subscriptions, like
    /// [`socket::Socket::subscribe_peer`].
    ///
    /// # Errors
    ///
    /// Returns the errors of [`socket::Socket::subscribe_peer`].
    pub fn subscribe_peer(&self, peer: &RemotePeer, topic: impl IntoFrame) -> Result<bool> {
        self.socket()?.subscribe_peer(peer, topic)
    }

    /// Cancels one subscription of a peer, for a socket with manual subscriptions, like
    /// [`socket::Socket::cancel_peer`].
    ///
    /// # Errors
    ///
    /// Returns the errors of [`socket::Socket::cancel_peer`].
    pub fn cancel_peer(&self, peer: &RemotePeer, topic: impl IntoFrame) -> Result<bool> {
        self.socket()?.cancel_peer(peer, topic)
    }
}

impl<T: Subscribes> Socket<T> {
    /// Subscribes to all messages whose first frame begins with `topic`, like
    /// [`socket::Socket::subscribe`].
    ///
    /// # Errors
    ///
    /// Returns the errors of [`socket::Socket::subscribe`].
    pub fn subscribe(&self, topic: impl IntoFrame) -> Result<()> {
        self.socket()?.subscribe(topic)
    }

    /// Cancels one subscription, like [`socket::Socket::cancel`].
    pub fn cancel(&self, topic: impl IntoFrame) {
        if let Some(socket) = &self.socket {
            socket.cancel(topic);
        }
    }
}

// REQ and REP take turns, so they have their own methods.
macro_rules! request_reply {
    ($($kind:ident)*) => {$(
        impl Socket<$kind> {
            /// Sends the next request or reply, like the socket of the crate's root. Waits for
            /// room.
            ///
            /// # Errors
            ///
            /// Returns the errors of that socket's method.
            pub fn send(&mut self, message: impl Into<Message>) -> Result<()> {
                wait(self.socket_mut()?.send(message))?
            }

            /// Sends the next request or reply, and waits for room for at most `limit`. Returns
            /// `false` if it was not sent.
            ///
            /// # Errors
            ///
            /// Returns the errors of [`send`](Self::send).
            pub fn send_timeout(&mut self, message: impl Into<Message>, limit: Duration) -> Result<bool> {
                let socket = self.socket_mut()?;
                wait(async { timeout(limit, socket.send(message)).await })?.map_or(Ok(false), |sent| sent.map(|()| true))
            }

            /// Waits for the next request or reply and returns it, like the socket of the crate's
            /// root.
            ///
            /// # Errors
            ///
            /// Returns the errors of that socket's method.
            pub fn recv(&mut self) -> Result<Message> {
                wait(self.socket_mut()?.recv())?
            }

            /// Returns the next request or reply, or `None` if none arrives within `limit`.
            ///
            /// # Errors
            ///
            /// Returns the errors of [`recv`](Self::recv).
            pub fn recv_timeout(&mut self, limit: Duration) -> Result<Option<Message>> {
                let socket = self.socket_mut()?;
                wait(async { timeout(limit, socket.recv()).await })?.map_or(Ok(None), |received| received.map(Some))
            }
        }
    )*};
}

request_reply!(Req Rep);

impl Socket<Rep> {
    /// Waits for the next request and returns it with the peer that sent it, like the socket of the
    /// crate's root.
    ///
    /// # Errors
    ///
    /// Returns the errors of that socket's method.
    pub fn recv_with_peer(&mut self) -> Result<(Message, RemotePeer)> {
        wait(self.socket_mut()?.recv_with_peer())?
    }
}

impl<T: Kind> Default for Socket<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Kind> fmt::Debug for Socket<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Socket").field("type", &T::TYPE).finish_non_exhaustive()
    }
}

/// Waits until queued messages are sent, or the linger time is over.
impl<T: Kind> Drop for Socket<T> {
    fn drop(&mut self) {
        // Within a runtime the socket closes in the background.
        let _ = self.close_and_wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fork_gets_an_error_instead_of_waiting_for_a_thread_that_it_does_not_have() {
        let connections = start().unwrap();
        assert!(connections.runtime_in(std::process::id()).is_ok());
        let error = connections.runtime_in(std::process::id() + 1).unwrap_err();
        assert!(error.is_state(), "{error}");
    }
}
