//! Listening for workers.

use std::fmt;

use onward_protocol::bounds as protocol_bounds;
use onward_zmtp::protocol::Limits;
use onward_zmtp::socket::Endpoint;
use onward_zmtp::{RouterSocket, SocketOptions};

use super::router::Router;
use crate::gateway::bounds::SESSIONS;
use crate::gateway::options::Gateway;

/// The permissions of the file of an `ipc` address: its owner alone.
const OWNER_ONLY: u32 = 0o600;

/// A gateway that listens for workers.
pub struct Listener {
    gateway: Gateway,
    socket: RouterSocket,
}

/// The reason why a gateway cannot listen, with the remedy.
#[derive(Debug)]
pub struct ListenError {
    text: String,
    /// True if the address is wrong, rather than not available.
    is_wrong: bool,
}

impl ListenError {
    /// Returns true if the address itself is wrong.
    #[must_use]
    pub fn is_wrong_address(&self) -> bool {
        self.is_wrong
    }
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for ListenError {}

impl Gateway {
    /// Listens at addresses: `ipc:///run/onward.sock`, whose file only its owner can use, or
    /// `tcp://127.0.0.1:7071`. Call [`Listener::serve`] to serve the workers that connect.
    ///
    /// # Errors
    /// Returns an address of another form, or beyond loopback, or one that is not available.
    pub async fn listen<A: AsRef<str>>(&self, addresses: &[A]) -> Result<Listener, ListenError> {
        let largest = self.store.info().payload_limit.max(protocol_bounds::HEADER_BYTES);
        // Twice the bounds of the protocol, so that a message above them gets an error and does not
        // end the connection.
        let mut limits = Limits::default();
        limits.frame_bytes = largest.saturating_mul(2);
        limits.message_bytes = largest.max(protocol_bounds::MESSAGE_PAYLOAD_BYTES).saturating_mul(2);
        limits.message_parts = 2 * protocol_bounds::PAYLOADS;
        let options = SocketOptions::new().ipc_permissions(OWNER_ONLY).limits(limits).peers(SESSIONS);
        let socket = RouterSocket::with_options(options);
        for address in addresses {
            let address = address.as_ref();
            let endpoint = parse(address)?;
            socket.bind(endpoint).await.map_err(|error| ListenError {
                text: format!("cannot listen at {address}: {error}; give an address that is free"),
                is_wrong: false,
            })?;
        }
        Ok(Listener { gateway: self.clone(), socket })
    }
}

impl Listener {
    /// Serves workers until the gateway is drained or aborted, and their sessions are over.
    pub async fn serve(self) {
        Router::new(self.gateway, self.socket).run().await;
    }
}

/// Reads an address and checks that no other machine can reach it.
fn parse(address: &str) -> Result<Endpoint, ListenError> {
    let wrong = |text: String| ListenError { text, is_wrong: true };
    let endpoint = address.parse::<Endpoint>().map_err(|error| {
        wrong(format!("`{address}` is not an address: {error}; write ipc:///run/onward.sock or tcp://127.0.0.1:7071"))
    })?;
    match &endpoint {
        Endpoint::Ipc(_) => Ok(endpoint),
        Endpoint::Tcp { host, .. } if is_loopback(host) => Ok(endpoint),
        Endpoint::Tcp { host, .. } => Err(wrong(format!(
            "`{address}` could be reached from other machines, because `{host}` is not a loopback address, and workers over the \
             network need CURVE, which this version does not have; listen at tcp://127.0.0.1:PORT and forward it through SSH or a VPN"
        ))),
        _ => Err(wrong(format!(
            "`{address}` is neither ipc nor tcp; write ipc:///run/onward.sock or tcp://127.0.0.1:7071"
        ))),
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_that_no_other_machine_reaches_are_accepted() {
        for accepted in ["ipc:///run/onward.sock", "tcp://127.0.0.1:7071", "tcp://[::1]:7071", "tcp://localhost:0"] {
            assert!(parse(accepted).is_ok(), "{accepted}");
        }
        for refused in
            ["tcp://0.0.0.0:7071", "tcp://*:7071", "tcp://192.168.0.1:7071", "tcp://[::]:1", "inproc://x", "x"]
        {
            assert!(parse(refused).is_err_and(|error| error.is_wrong_address()), "{refused}");
        }
    }

    #[test]
    fn an_address_beyond_loopback_is_refused_with_the_remedy() {
        let text = parse("tcp://0.0.0.0:7071").unwrap_err().to_string();
        assert!(text.contains("CURVE") && text.contains("SSH"), "{text}");
    }
}
