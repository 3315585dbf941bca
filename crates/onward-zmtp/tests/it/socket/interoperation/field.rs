//! The combinations of the interoperation matrix.

use std::sync::atomic::{AtomicUsize, Ordering};

use onward_zmtp::Socket;
use onward_zmtp::protocol::{Identity, SocketType};
use onward_zmtp::socket::kind::Kind;
use onward_zmtp::socket::{Decision, Overflow, SocketOptions};

use crate::zmtp::libzmq::{MECHANISMS, client_of, server_of};
use crate::zmtp::peer::{Others, Peer, Role};

/// A combination of transport, mechanism and direction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    transport: &'static str,
    mechanism: &'static str,
    pub(super) we_bind: bool,
}

impl Field {
    pub(super) fn all(others: &Others) -> Vec<Self> {
        Self::of(others.transports(), &MECHANISMS)
    }

    /// Returns the combinations that matter for a restart: a port or a file, with each mechanism.
    pub(super) fn few() -> Vec<Self> {
        Self::of(&["tcp", "ipc"], &MECHANISMS)
    }

    pub(super) fn few_that_we_bind() -> Vec<Self> {
        Self::few().into_iter().filter(|field| field.we_bind).collect()
    }

    fn of(transports: &[&'static str], mechanisms: &[&'static str]) -> Vec<Self> {
        let mut all = Vec::new();
        for transport in transports {
            for mechanism in mechanisms {
                for we_bind in [false, true] {
                    all.push(Self { transport, mechanism, we_bind });
                }
            }
        }
        all
    }

    /// Returns an unused endpoint.
    fn endpoint(self) -> String {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let unique = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        match self.transport {
            "tcp" => "tcp://127.0.0.1:*".into(),
            "ipc" => format!("ipc://{}/onward-zmtp-{unique}", std::env::temp_dir().display()),
            _ => format!("ipc://@onward-zmtp-{unique}"),
        }
    }

    /// Returns the options of this combination that a socket of the type accepts.
    pub(super) fn options<T: Kind>(self) -> SocketOptions {
        let options = match T::TYPE {
            SocketType::Router => SocketOptions::new().identity(Identity::new("ours").unwrap()),
            // A publisher must drop nothing, however many messages it publishes until one arrives.
            SocketType::Pub | SocketType::Xpub => SocketOptions::new().overflow(Overflow::Wait),
            _ => SocketOptions::new(),
        };
        match (self.we_bind, self.mechanism) {
            (false, mechanism) => options.security(client_of(mechanism)),
            (true, "null") => options,
            (true, mechanism) => {
                options.security(server_of(mechanism)).authenticate_with(|_| async { Decision::Accept })
            }
        }
    }

    /// Returns the role of the other end in this combination.
    pub(super) fn role<'a>(self, kind: &'a str, endpoint: &'a str) -> Role<'a> {
        [if self.we_bind { "connect" } else { "bind" }, kind, self.mechanism, endpoint, "0"]
    }

    /// Returns our socket and the other end's. One is bound and the other connected.
    pub(super) async fn meet<'a, T: Kind>(self, others: &'a mut Others, kind: &str) -> (Socket<T>, &'a mut Peer) {
        let socket = Socket::with_options(self.options::<T>());
        let (peer, _) = self.join(&socket, kind, |role| others.next(role)).await;
        (socket, peer)
    }

    /// Connects our socket with the peer that `begin` starts. Returns that peer and the endpoint.
    pub(super) async fn join<T: Kind, P>(
        self,
        socket: &Socket<T>,
        kind: &str,
        begin: impl FnOnce(Role<'_>) -> (P, String),
    ) -> (P, String) {
        if self.we_bind {
            let endpoint = socket.bind(&self.endpoint()).await.unwrap().to_string();
            let (other, _) = begin(self.role(kind, &endpoint));
            return (other, endpoint);
        }
        let (other, endpoint) = begin(self.role(kind, &self.endpoint()));
        socket.connect(endpoint.as_str()).unwrap();
        (other, endpoint)
    }
}
