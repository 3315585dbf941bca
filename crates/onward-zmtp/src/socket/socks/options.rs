//! The option for a SOCKS proxy.

use std::fmt;
use std::sync::Arc;

use zeroize::Zeroizing;

use super::handshake::{FIELD_BYTES, encode_login};
use crate::protocol::Password;
use crate::socket::bounds::ENDPOINT_BYTES;
use crate::socket::endpoint::{Endpoint, Host, host_and_port};
use crate::socket::error::{Error, Result};

/// A SOCKS 5 proxy (RFC 1928), through which a socket connects to `tcp` endpoints.
///
/// The proxy resolves the names of hosts. It is not used for `ipc` and `inproc`, nor for endpoints
/// that the socket is bound to.
///
/// ```
/// use onward_zmtp::protocol::Password;
/// use onward_zmtp::socket::{SocketOptions, SocksProxy};
///
/// let proxy = SocksProxy::new("127.0.0.1:1080")?.credentials("user", Password::new("secret")?)?;
/// let options = SocketOptions::new().socks_proxy(proxy);
/// # Ok::<(), onward_zmtp::socket::Error>(())
/// ```
#[derive(Clone)]
pub struct SocksProxy {
    pub(in crate::socket) host: String,
    pub(in crate::socket) port: u16,
    /// The encoded user name and password. They are wiped when the last clone is dropped.
    login: Option<Arc<Zeroizing<Vec<u8>>>>,
}

impl SocksProxy {
    /// Returns the proxy at `HOST:PORT`. An IPv6 address needs brackets.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not a host and a port: [`Error::is_endpoint`].
    pub fn new(address: &str) -> Result<Self> {
        if address.len() <= ENDPOINT_BYTES
            && let Ok((host, port)) = host_and_port(address)
            && host != "*"
            && port != 0
        {
            return Ok(Self { host, port, login: None });
        }
        let shown: String = address.chars().take(ENDPOINT_BYTES).collect();
        Err(Error::endpoint(format!("`{shown}` is no address of a SOCKS proxy; write `HOST:PORT`")))
    }

    /// Sets the user name and the password for a proxy that requires them (RFC 1929). They are sent
    /// in clear text, and only if the proxy asks for them. Default: none.
    ///
    /// # Errors
    ///
    /// Returns an error if the user name is empty or longer than 255 bytes: [`Error::is_misuse`].
    pub fn credentials(mut self, username: &str, password: Password) -> Result<Self> {
        let Some(login) = encode_login(username.as_bytes(), password.as_bytes()) else {
            return Err(Error::misuse(format!(
                "a user name for a SOCKS proxy has 1 to {FIELD_BYTES} bytes, not {}; use another one",
                username.len()
            )));
        };
        self.login = Some(Arc::new(login));
        Ok(self)
    }

    pub(super) fn login(&self) -> Option<&[u8]> {
        self.login.as_ref().map(|login| login.as_slice())
    }
}

/// The address of the proxy.
impl fmt::Display for SocksProxy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", Host(&self.host), self.port)
    }
}

impl fmt::Debug for SocksProxy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = formatter.debug_struct("SocksProxy");
        fields.field("host", &self.host).field("port", &self.port);
        fields.field("has_credentials", &self.login.is_some()).finish()
    }
}

/// An endpoint and the proxy on the way to it, for error messages.
pub(in crate::socket) struct Route<'a> {
    pub(in crate::socket) endpoint: &'a Endpoint,
    pub(in crate::socket) proxy: Option<&'a SocksProxy>,
}

impl fmt::Display for Route<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.proxy {
            Some(proxy) => write!(formatter, "{} through the SOCKS proxy {proxy}", self.endpoint),
            None => write!(formatter, "{}", self.endpoint),
        }
    }
}
