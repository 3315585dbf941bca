//! Sockets for programs without a runtime: the same types, whose methods wait.
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
//! The connections of all of them live in one thread that the first one starts, so heartbeats and
//! reconnects go on while the program does something else. Dropping a socket waits until what is
//! queued was sent, for at most [`SocketOptions::linger`]: a program that sends and returns from
//! `main` loses nothing that could be sent in that time.
//!
//! Within a tokio runtime the methods that wait return an error ([`Error::is_state`]), for they
//! would stop it: use the sockets of the crate there. A program that needs many sockets, halves,
//! streams or a proxy uses those, too.

use std::fmt;
use std::future::pending;
use std::sync::LazyLock;
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::time::timeout;

use crate::protocol::{IntoFrame, Message};
use crate::socket::kind::{self, Kind, Receives, Rep, Req, Sends, Subscribes};
use crate::socket::{self, Endpoint, Error, Monitor, RemotePeer, Result, SocketOptions, Statistics, TrySendError};

/// The runtime of the thread that all connections live in.
static CONNECTIONS: LazyLock<Result<Handle>> = LazyLock::new(start);

fn start() -> Result<Handle> {
    let failed = |error| Error::io("cannot start the thread of the blocking sockets", error);
    let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let handle = runtime.handle().clone();
    let run = move || runtime.block_on(pending::<()>());
    thread::Builder::new().name("onward-zmtp".to_owned()).spawn(run).map_err(failed)?;
    Ok(handle)
}

/// Waits for what a future returns.
fn wait<R>(future: impl Future<Output = R>) -> Result<R> {
    if Handle::try_current().is_ok() {
        return Err(Error::state(
            "a blocking socket would stop the tokio runtime that it is used in; use the one of the crate's root there",
        ));
    }
    Ok(CONNECTIONS.as_ref().map_err(Clone::clone)?.block_on(future))
}

/// A socket whose methods wait. Use it by its names, [`PushSocket`] and so on.
pub struct Socket<T: Kind> {
    /// There until it is closed.
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
    /// A socket with the default options. It does nothing until it is bound or connected.
    #[must_use]
    pub fn new() -> Self {
        Self::with_options(SocketOptions::default())
    }

    /// A socket with these options.
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

    /// Listens on an endpoint, as [`socket::Socket::bind`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn bind<E>(&self, endpoint: E) -> Result<Endpoint>
    where
        E: TryInto<Endpoint>,
        Error: From<E::Error>,
    {
        wait(self.socket()?.bind(endpoint))?
    }

    /// Connects to an endpoint, as [`socket::Socket::connect`]. Does not wait for the connection.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn connect<E>(&self, endpoint: E) -> Result<bool>
    where
        E: TryInto<Endpoint>,
        Error: From<E::Error>,
    {
        let socket = self.socket()?;
        wait(async { socket.connect(endpoint) })?
    }

    /// Stops listening, as [`socket::Socket::unbind`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn unbind<E>(&self, endpoint: E) -> Result<()>
    where
        E: TryInto<Endpoint>,
        Error: From<E::Error>,
    {
        self.socket()?.unbind(endpoint)
    }

    /// Ends the connection to an endpoint, as [`socket::Socket::disconnect`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn disconnect<E>(&self, endpoint: E) -> Result<()>
    where
        E: TryInto<Endpoint>,
        Error: From<E::Error>,
    {
        self.socket()?.disconnect(endpoint)
    }

    /// Returns the number of peers, of what is queued and of what was dropped.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.socket.as_ref().map(socket::Socket::statistics).unwrap_or_default()
    }

    /// Returns what happens to the socket's connections from now on; read it with
    /// [`Monitor::try_next`].
    ///
    /// # Errors
    ///
    /// None while the socket is open.
    pub fn monitor(&self) -> Result<Monitor> {
        Ok(self.socket()?.monitor())
    }

    /// Sends what is queued, for at most [`SocketOptions::linger`], and closes the socket. Returns
    /// how many messages were not sent. Dropping it does the same.
    ///
    /// # Errors
    ///
    /// Within a tokio runtime: [`Error::is_state`]. The socket closes there in the background.
    pub fn close(mut self) -> Result<u64> {
        self.close_and_wait()
    }

    fn close_and_wait(&mut self) -> Result<u64> {
        self.socket.take().map_or(Ok(0), |socket| wait(socket.close()))
    }
}

impl<T: Sends> Socket<T> {
    /// Sends a message, as [`socket::Socket::send`]; waits for room.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn send(&mut self, message: impl Into<Message>) -> Result<()> {
        wait(self.socket_mut()?.send(message))?
    }

    /// Sends a message, and waits for room no longer than this: `false` if it was not sent.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    pub fn send_timeout(&mut self, message: impl Into<Message>, limit: Duration) -> Result<bool> {
        let socket = self.socket_mut()?;
        wait(async { timeout(limit, socket.send(message)).await })?.map_or(Ok(false), |sent| sent.map(|()| true))
    }

    /// Sends a message if that can be done at once, as [`socket::Socket::try_send`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn try_send(&mut self, message: impl Into<Message>) -> std::result::Result<(), TrySendError> {
        match &mut self.socket {
            Some(socket) => socket.try_send(message),
            None => Err(TrySendError::closed(message.into())),
        }
    }
}

impl<T: Receives> Socket<T> {
    /// Returns the next message, as [`socket::Socket::recv`]; waits for one.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn recv(&mut self) -> Result<Message> {
        wait(self.socket_mut()?.recv())?
    }

    /// Returns the next message, or `None` if there is none for so long.
    ///
    /// # Errors
    ///
    /// As [`recv`](Self::recv).
    pub fn recv_timeout(&mut self, limit: Duration) -> Result<Option<Message>> {
        let socket = self.socket_mut()?;
        wait(async { timeout(limit, socket.recv()).await })?.map_or(Ok(None), |received| received.map(Some))
    }

    /// Returns the next message with the peer that sent it, as [`socket::Socket::recv_with_peer`];
    /// waits for one.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn recv_with_peer(&mut self) -> Result<(Message, RemotePeer)> {
        wait(self.socket_mut()?.recv_with_peer())?
    }

    /// Returns the next message if one is there now.
    pub fn try_recv(&mut self) -> Option<Message> {
        self.socket.as_mut()?.try_recv()
    }
}

impl<T: Subscribes> Socket<T> {
    /// Subscribes to all messages whose first frame begins with `topic`, as
    /// [`socket::Socket::subscribe`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn subscribe(&self, topic: impl IntoFrame) -> Result<()> {
        self.socket()?.subscribe(topic)
    }

    /// Takes one subscription back, as [`socket::Socket::cancel`].
    pub fn cancel(&self, topic: impl IntoFrame) {
        if let Some(socket) = &self.socket {
            socket.cancel(topic);
        }
    }
}

// REQ and REP take turns, and have methods of their own.
macro_rules! dialogue {
    ($($kind:ident)*) => {$(
        impl Socket<$kind> {
            /// Sends the next message of the dialogue, as the socket of the crate's root does;
            /// waits for room.
            ///
            /// # Errors
            ///
            /// As there.
            pub fn send(&mut self, message: impl Into<Message>) -> Result<()> {
                wait(self.socket_mut()?.send(message))?
            }

            /// Returns the next message of the dialogue, as the socket of the crate's root does;
            /// waits for it.
            ///
            /// # Errors
            ///
            /// As there.
            pub fn recv(&mut self) -> Result<Message> {
                wait(self.socket_mut()?.recv())?
            }

            /// Returns the next message of the dialogue, or `None` if there is none for so long.
            ///
            /// # Errors
            ///
            /// As [`recv`](Self::recv).
            pub fn recv_timeout(&mut self, limit: Duration) -> Result<Option<Message>> {
                let socket = self.socket_mut()?;
                wait(async { timeout(limit, socket.recv()).await })?.map_or(Ok(None), |received| received.map(Some))
            }
        }
    )*};
}

dialogue!(Req Rep);

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

/// Waits until what is queued was sent, or the time to linger is over.
impl<T: Kind> Drop for Socket<T> {
    fn drop(&mut self) {
        // Within a runtime it closes in the background.
        let _ = self.close_and_wait();
    }
}
