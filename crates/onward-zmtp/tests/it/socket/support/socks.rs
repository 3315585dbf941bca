//! SOCKS 5 proxies: one that connects, and scripts of proxies that do not.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use onward_zmtp::protocol::Password;
use onward_zmtp::socket::{Reconnect, SocketOptions, SocksProxy};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::events::within;
use super::raw::Raw;

/// A name that only the proxy can resolve, to 127.0.0.1.
pub(crate) const NAME: &str = "only.the.proxy.knows";

/// The reply of a proxy that needs no authentication.
pub(crate) const NO_AUTHENTICATION: &[u8] = &[5, 0];

/// The reply of a proxy that wants a user name and a password.
pub(crate) const LOGIN: &[u8] = &[5, 2];

/// The reply of a proxy that has connected.
pub(crate) const CONNECTED: &[u8] = &[5, 0, 0, 1, 0, 0, 0, 0, 0, 0];

/// The number of octets of the greeting of a client without a user name.
pub(crate) const GREETING_BYTES: usize = 3;

/// The number of octets of a request to an IPv4 address.
pub(crate) const REQUEST_BYTES: usize = 10;

/// Returns the options of a socket that reconnects quickly, through this proxy.
pub(crate) fn through(proxy: SocksProxy) -> SocketOptions {
    let moment = Duration::from_millis(1);
    SocketOptions::new().reconnect(Reconnect { first: moment, longest: moment }).socks_proxy(proxy)
}

pub(crate) fn with_login(address: &str, username: &str, password: &str) -> SocksProxy {
    SocksProxy::new(address).unwrap().credentials(username, Password::new(password).unwrap()).unwrap()
}

/// A request as the proxy received it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) host: String,
    /// The type of the address: 1 for IPv4, 3 for a name, 4 for IPv6.
    pub(crate) address_type: u8,
    pub(crate) port: u16,
    pub(crate) client: SocketAddr,
}

/// A proxy that connects to every destination. Its connections end when it is dropped.
pub(crate) struct Socks {
    pub(crate) address: String,
    requests: mpsc::UnboundedReceiver<Request>,
    _tasks: JoinSet<()>,
}

impl Socks {
    /// Starts a proxy that requires this user name and password, if any.
    pub(crate) async fn start(login: Option<(&'static str, &'static str)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (sender, requests) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, client)) = listener.accept().await {
                connections.spawn(serve(stream, client, login, sender.clone()));
            }
        });
        Self { address, requests, _tasks: tasks }
    }

    pub(crate) fn proxy(&self) -> SocksProxy {
        SocksProxy::new(&self.address).unwrap()
    }

    /// Returns the next request of a client.
    pub(crate) async fn request(&mut self) -> Request {
        within(self.requests.recv()).await.expect("the proxy runs")
    }

    /// Returns a request that came already, if there is one.
    pub(crate) fn try_request(&mut self) -> Option<Request> {
        self.requests.try_recv().ok()
    }
}

/// Serves one client. A client that breaks off ends it early.
async fn serve(
    mut client: TcpStream,
    address: SocketAddr,
    login: Option<(&'static str, &'static str)>,
    requests: mpsc::UnboundedSender<Request>,
) {
    let served = async {
        if !authenticate(&mut client, login).await? {
            return Ok(());
        }
        let request = read_request(&mut client, address).await?;
        let host = if request.host == NAME { "127.0.0.1" } else { &request.host };
        let connected = TcpStream::connect((host, request.port)).await;
        let _ = requests.send(request);
        let Ok(mut server) = connected else { return client.write_all(&[5, 5, 0, 1, 0, 0, 0, 0, 0, 0]).await };
        client.write_all(CONNECTED).await?;
        copy_bidirectional(&mut client, &mut server).await.map(drop)
    };
    let _: std::io::Result<()> = served.await;
}

async fn authenticate(client: &mut TcpStream, login: Option<(&str, &str)>) -> std::io::Result<bool> {
    assert_eq!(client.read_u8().await?, 5);
    let methods = read_field(client).await?;
    let method = if login.is_some() { 2 } else { 0 };
    if !methods.contains(&method) {
        client.write_all(&[5, 0xff]).await?;
        return Ok(false);
    }
    client.write_all(&[5, method]).await?;
    let Some((username, password)) = login else { return Ok(true) };
    assert_eq!(client.read_u8().await?, 1);
    let is_right = read_field(client).await? == username.as_bytes();
    let is_right = read_field(client).await? == password.as_bytes() && is_right;
    client.write_all(&[1, u8::from(!is_right)]).await?;
    Ok(is_right)
}

async fn read_field(client: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut field = vec![0; client.read_u8().await?.into()];
    client.read_exact(&mut field).await?;
    Ok(field)
}

async fn read_request(client: &mut TcpStream, address: SocketAddr) -> std::io::Result<Request> {
    let mut head = [0; 4];
    client.read_exact(&mut head).await?;
    assert_eq!(head[..3], [5, 1, 0]);
    let host = match head[3] {
        1 => Ipv4Addr::from(client.read_u32().await?).to_string(),
        4 => Ipv6Addr::from(client.read_u128().await?).to_string(),
        3 => String::from_utf8(read_field(client).await?).unwrap(),
        other => panic!("no address type: {other}"),
    };
    Ok(Request { host, address_type: head[3], port: client.read_u16().await?, client: address })
}

/// Accepts a client. For each step reads a number of octets, then writes the reply.
pub(crate) async fn script(listener: &TcpListener, steps: &[(usize, &[u8])]) -> Raw {
    let (stream, _) = within(listener.accept()).await.unwrap();
    let mut raw = Raw(stream);
    for (bytes, reply) in steps {
        raw.read(*bytes).await;
        raw.write(reply).await;
    }
    raw
}

/// Returns a listener for scripts, and the proxy that it is.
pub(crate) async fn listen() -> (TcpListener, SocksProxy) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = SocksProxy::new(&listener.local_addr().unwrap().to_string()).unwrap();
    (listener, proxy)
}
