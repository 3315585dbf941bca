//! The address of a server, and connections to it.

use std::io;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Uri;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::HeaderValue;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::error::{Error, Result};

/// A connection that sends requests, one after the other.
pub(super) type Connection = SendRequest<Full<Bytes>>;

/// The address of a server.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    /// The address as people write it, without a slash at the end.
    pub(crate) url: String,
    host: String,
    port: u16,
    pub(super) authority: HeaderValue,
    /// The path below which the API is; empty, or with a slash before it.
    pub(super) base_path: String,
    #[cfg(feature = "tls")]
    tls: Option<super::tls::Tls>,
}

impl Server {
    /// Reads an address such as `https://onward.example.org/onward`.
    pub(crate) fn parse(url: &str) -> Result<Self> {
        let wrong = || {
            let shown = url.rsplit_once('@').map_or(url, |(_, rest)| rest);
            Error::invalid(format!(
                "`{shown}` is not the address of a server; write it as http://HOST:PORT or https://HOST, without a \
                 user or a query, and the key as ONWARD_KEY"
            ))
        };
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        let is_secure = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(wrong()),
        };
        let authority = uri.authority().filter(|it| !it.as_str().contains('@') && uri.query().is_none());
        let authority = authority.ok_or_else(wrong)?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = authority.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
        if !cfg!(feature = "tls") && is_secure {
            return Err(Error::invalid(format!("this build has no TLS for {url}; enable the feature `tls`")));
        }
        Ok(Self {
            url: url.trim_end_matches('/').to_owned(),
            authority: HeaderValue::from_str(authority.as_str()).map_err(|_| wrong())?,
            base_path: uri.path().trim_end_matches('/').to_owned(),
            #[cfg(feature = "tls")]
            tls: is_secure.then(|| super::tls::Tls::new(&host)).transpose()?,
            host,
            port,
        })
    }

    /// Returns whether the server is on this machine.
    pub(crate) fn is_local(&self) -> bool {
        self.host == "localhost" || self.host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
    }

    /// Opens a connection.
    pub(super) async fn connect(&self) -> io::Result<Connection> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        stream.set_nodelay(true)?;
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            return shake_hands(tls.connect(stream).await?).await;
        }
        shake_hands(stream).await
    }
}

async fn shake_hands<T>(stream: T) -> io::Result<Connection>
where
    T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    // It ends with the last sender, or with the connection, whose error the sender returns.
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(sender)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_may_have_a_path() {
        let server = Server::parse("http://[::1]:7070/onward/").unwrap();
        assert_eq!((server.host.as_str(), server.port, server.base_path.as_str()), ("::1", 7070, "/onward"));
        assert!(server.is_local());
        assert!(!Server::parse("http://onward.example.org").unwrap().is_local());
    }

    #[test]
    fn other_addresses_are_refused_without_their_secrets() {
        for url in ["", "onward.db", "ftp://host", "http://", "http://host?key=1", "/v1"] {
            assert!(Server::parse(url).unwrap_err().is_invalid(), "{url}");
        }
        let error = Server::parse("http://me:hunter2@host").unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}
