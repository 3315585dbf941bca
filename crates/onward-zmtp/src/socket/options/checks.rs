//! Checks for options that a socket would ignore or could not work with. The socket rejects them,
//! because the program relies on every option that it sets.

use super::policies::{DuplicateIdentity, Overflow};
use super::send_limits::SendLimits;
use super::socket_options::SocketOptions;
use crate::protocol::bounds::PLAIN_FIELD_BYTES;
use crate::protocol::{Security, SocketType};
use crate::socket::endpoint::Endpoint;
use crate::socket::error::{Error, Result};
use crate::socket::socks::handshake::{FIELD_BYTES, encode_request};

impl SocketOptions {
    /// Rejects options that a socket of this type would ignore, and those that no socket could work
    /// with.
    pub(in crate::socket) fn check_type(&self, socket_type: SocketType) -> Result<()> {
        use SocketType::{Dealer, Pair, Pub, Pull, Push, Req, Router, Sub, Xpub, Xsub};
        let takes_over = self.duplicate_identity != DuplicateIdentity::default();
        let uses: [(&str, bool, &[SocketType]); 9] = [
            ("identity", self.protocol.identity.is_some(), &[Req, Dealer, Router]),
            ("duplicate_identity", takes_over, &[Router]),
            ("overflow", self.overflow != Overflow::default(), &[Pub, Xpub, Xsub]),
            ("verbose", self.is_verbose, &[Xpub]),
            ("manual", self.is_manual, &[Xpub]),
            ("correlate", self.correlates, &[Req]),
            ("hello", self.hello.is_some(), &[Push, Dealer, Router, Pair, Pub, Xpub, Xsub]),
            ("conflate", self.conflates, &[Push, Pull, Pub, Sub, Dealer]),
            ("wait_for_peer", self.waits_for_peer, &[Push, Dealer, Pair]),
        ];
        match uses.iter().find(|(_, is_set, types)| *is_set && !types.contains(&socket_type)) {
            Some((option, _, types)) => Err(useless(option, socket_type, types)),
            None => self.check_authenticator(),
        }?;
        self.check_heartbeat()?;
        self.check_keepalive()?;
        self.check_hello()?;
        self.check_admission()?;
        self.check_permissions()?;
        self.check_username()
    }

    /// Rejects a heartbeat without time: every connection would end at its first heartbeat.
    fn check_heartbeat(&self) -> Result<()> {
        match &self.protocol.heartbeat {
            Some(heartbeat) if heartbeat.interval.is_zero() || heartbeat.timeout.is_zero() => Err(Error::misuse(
                "a `heartbeat` needs an interval and a timeout of more than zero; leave it out for none",
            )),
            _ => Ok(()),
        }
    }

    /// Rejects bounds of zero with which every peer would be refused, or its first message.
    fn check_admission(&self) -> Result<()> {
        let limits = &self.protocol.limits;
        let bounds = [
            ("peers", self.peers),
            ("message_parts", limits.message_parts),
            ("metadata_bytes", limits.metadata_bytes),
            ("metadata_properties", limits.metadata_properties),
        ];
        match bounds.iter().find(|(_, bound)| *bound == 0) {
            Some((name, _)) => {
                Err(Error::misuse(format!("with `{name}` of 0 the socket could have no peer; raise it")))
            }
            None => Ok(()),
        }
    }

    /// Rejects bits that are no permissions: a number may be decimal by mistake.
    fn check_permissions(&self) -> Result<()> {
        match self.ipc_permissions {
            Some(mode) if mode > 0o777 => Err(Error::misuse(format!(
                "`ipc_permissions` of 0o{mode:o} are none; write an octal number up to 0o777, such as 0o660"
            ))),
            _ => Ok(()),
        }
    }

    /// Rejects a hello message that is empty or too large: every peer would end its connection at
    /// once.
    fn check_hello(&self) -> Result<()> {
        match &self.hello {
            Some(message) if message.is_empty() => {
                Err(Error::misuse("the message of `hello` needs a frame, even if it is an empty one"))
            }
            Some(message) => SendLimits::new(self.effective_send_limits()).check(message.frames()),
            None => Ok(()),
        }
    }

    /// Rejects times that the operating system would refuse at every connection.
    fn check_keepalive(&self) -> Result<()> {
        match &self.keepalive {
            Some(keepalive) if !keepalive.is_usable() => Err(Error::misuse(
                "`tcp_keepalive` needs times of at least a second and at least one probe; leave it out for none",
            )),
            _ => Ok(()),
        }
    }

    /// Rejects a user name that is too long: every handshake would fail.
    fn check_username(&self) -> Result<()> {
        match &self.protocol.security {
            Security::PlainClient { username, .. } if username.len() > PLAIN_FIELD_BYTES => {
                Err(Error::misuse(format!(
                    "a user name of PLAIN has at most {PLAIN_FIELD_BYTES} bytes, not {}; use a shorter one",
                    username.len()
                )))
            }
            _ => Ok(()),
        }
    }

    /// Rejects a function that is never called, because it would look like a guard.
    fn check_authenticator(&self) -> Result<()> {
        if self.authenticator.is_some() && !self.protocol.security.is_server() {
            return Err(Error::misuse(
                "`authenticate_with` is called by servers of PLAIN and CURVE only; set `security` to one of them, or leave it out",
            ));
        }
        Ok(())
    }

    /// Rejects an endpoint at which the security mechanism would check no peer.
    pub(in crate::socket) fn check_endpoint(&self, endpoint: &Endpoint) -> Result<()> {
        if matches!(endpoint, Endpoint::Inproc(_)) && !matches!(self.protocol.security, Security::Null) {
            return Err(Error::misuse(format!(
                "within a process there are no mechanisms, and `{endpoint}` would authenticate no peer; use a socket without `security` for it"
            )));
        }
        Ok(())
    }

    /// Rejects an endpoint to connect to that the proxy could not reach.
    pub(in crate::socket) fn check_destination(&self, endpoint: &Endpoint) -> Result<()> {
        match endpoint {
            Endpoint::Tcp { host, port } | Endpoint::TcpFrom { host, port, .. } if self.socks_proxy.is_some() => {
                request_to(endpoint, host, *port).map(drop)
            }
            _ => Ok(()),
        }
    }
}

/// Returns the request to a SOCKS proxy for an endpoint.
pub(in crate::socket) fn request_to(endpoint: &Endpoint, host: &str, port: u16) -> Result<Vec<u8>> {
    if host.contains('%') {
        return Err(Error::misuse(format!(
            "the zone in `{endpoint}` means nothing to a SOCKS proxy; use an address without a zone"
        )));
    }
    encode_request(host, port).ok_or_else(|| {
        Error::misuse(format!(
            "the host in `{endpoint}` has {} bytes, and a SOCKS proxy takes 1 to {FIELD_BYTES}; use a shorter name",
            host.len()
        ))
    })
}

#[cold]
fn useless(option: &str, socket_type: SocketType, types: &[SocketType]) -> Error {
    let names: Vec<_> = types.iter().map(|socket_type| socket_type.name()).collect();
    Error::misuse(format!("`{option}` is for {}; leave it out of a {socket_type}'s options", names.join(", ")))
}
