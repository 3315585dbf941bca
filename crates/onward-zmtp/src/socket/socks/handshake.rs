//! The client's side of a handshake with a SOCKS 5 proxy (RFC 1928, RFC 1929), without I/O.

use std::fmt;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv6Addr};

use zeroize::Zeroizing;

/// The longest user name, password and host name, in octets. One octet holds their length.
pub(crate) const FIELD_BYTES: usize = 255;

/// The most octets that a handshake reads at a time: the rest of a host name, and a port.
pub(crate) const READ_BYTES: usize = FIELD_BYTES + 2;

const VERSION: u8 = 5;
const LOGIN_VERSION: u8 = 1;
const NO_AUTHENTICATION: u8 = 0;
const LOGIN: u8 = 2;
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;
const PORT_BYTES: usize = 2;

/// Returns the message with a user name and a password (RFC 1929). Returns `None` if one of them
/// is too long, or the user name is empty.
pub(crate) fn encode_login(username: &[u8], password: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let [username_bytes, password_bytes] = [username, password].map(|field| u8::try_from(field.len()).ok());
    // With room for all of it, the password is not copied when the vector grows.
    let mut message = Zeroizing::new(Vec::with_capacity(3 + username.len() + password.len()));
    message.extend([LOGIN_VERSION, username_bytes.filter(|bytes| *bytes > 0)?]);
    message.extend_from_slice(username);
    message.push(password_bytes?);
    message.extend_from_slice(password);
    Some(message)
}

/// Returns the request to connect to a host. The proxy resolves a name. Returns `None` if the name
/// is empty or too long.
pub(crate) fn encode_request(host: &str, port: u16) -> Option<Vec<u8>> {
    let mut request = vec![VERSION, CONNECT, 0];
    match host.parse() {
        Ok(IpAddr::V4(address)) => {
            request.push(IPV4);
            request.extend(address.octets());
        }
        Ok(IpAddr::V6(address)) => {
            request.push(IPV6);
            request.extend(address.octets());
        }
        Err(_) => {
            let bytes = u8::try_from(host.len()).ok().filter(|bytes| *bytes > 0)?;
            request.extend([NAME, bytes]);
            request.extend_from_slice(host.as_bytes());
        }
    }
    request.extend(port.to_be_bytes());
    Some(request)
}

/// The state of a handshake. The caller writes [`greeting`](Self::greeting). Then it reads the
/// [wanted](Self::wanted) octets, passes them to [`receive`](Self::receive) and writes the result,
/// until no octets are wanted.
#[derive(Debug)]
pub(crate) struct Handshake<'a> {
    login: Option<&'a [u8]>,
    request: &'a [u8],
    expected: Expected,
}

/// The part of the proxy's replies that is read next.
#[derive(Debug, Clone, Copy)]
enum Expected {
    Method,
    LoginStatus,
    Reply,
    /// The type and the first octet of the address from which the proxy connected.
    Address,
    /// The rest of that address and its port.
    AddressRest(usize),
    Nothing,
}

impl<'a> Handshake<'a> {
    /// Begins a handshake with the messages of [`encode_login`] and [`encode_request`].
    pub(crate) fn new(login: Option<&'a [u8]>, request: &'a [u8]) -> Self {
        Self { login, request, expected: Expected::Method }
    }

    /// Returns the first message: the methods of authentication that the proxy may choose from.
    pub(crate) fn greeting(&self) -> &'static [u8] {
        match self.login {
            Some(_) => &[VERSION, 2, NO_AUTHENTICATION, LOGIN],
            None => &[VERSION, 1, NO_AUTHENTICATION],
        }
    }

    /// Returns the number of octets to read next, at most [`READ_BYTES`]. It is zero at the end.
    /// More must not be read, because they belong to the destination.
    pub(crate) fn wanted(&self) -> usize {
        match self.expected {
            // A proxy may close right after the code of a failure, so the code is read first.
            Expected::Method | Expected::LoginStatus | Expected::Reply => 2,
            Expected::Address => 3,
            Expected::AddressRest(bytes) => bytes,
            Expected::Nothing => 0,
        }
    }

    /// Returns a name for the octets that are read next.
    pub(crate) fn expects(&self) -> &'static str {
        match self.expected {
            Expected::Method => "its choice of an authentication method",
            Expected::LoginStatus => "its reply to the user name and password",
            _ => "the end of its reply to the request",
        }
    }

    /// Takes the wanted octets. Returns the octets to write next.
    pub(crate) fn receive(&mut self, octets: &[u8]) -> Result<&'a [u8], Failure> {
        match (self.expected, octets) {
            (Expected::Method, &[VERSION, method]) => self.authenticate(method),
            // The version of this message differs among proxies, and the status is enough.
            (Expected::LoginStatus, &[_, 0]) => Ok(self.request()),
            (Expected::LoginStatus, &[_, status]) => Err(Failure::Login(status)),
            (Expected::Reply, &[VERSION, 0]) => Ok(self.then(Expected::Address)),
            (Expected::Reply, &[VERSION, code]) => Err(Failure::Reply(code)),
            (Expected::Address, &[_, address_type, first]) => {
                let bytes = address_rest(address_type, first).ok_or(Failure::AddressType(address_type))?;
                Ok(self.then(Expected::AddressRest(bytes)))
            }
            (Expected::AddressRest(_), _) => Ok(self.then(Expected::Nothing)),
            (_, octets) => Err(Failure::Version(octets.first().copied().unwrap_or_default())),
        }
    }

    fn authenticate(&mut self, method: u8) -> Result<&'a [u8], Failure> {
        match (method, self.login) {
            (NO_AUTHENTICATION, _) => Ok(self.request()),
            (LOGIN, Some(login)) => {
                self.expected = Expected::LoginStatus;
                Ok(login)
            }
            (NO_METHOD, login) => Err(Failure::NoMethod { has_login: login.is_some() }),
            (method, _) => Err(Failure::Method(method)),
        }
    }

    fn request(&mut self) -> &'a [u8] {
        self.expected = Expected::Reply;
        self.request
    }

    fn then(&mut self, expected: Expected) -> &'a [u8] {
        self.expected = expected;
        &[]
    }
}

/// Returns the number of octets of an address and a port that follow the first octet.
fn address_rest(address_type: u8, first: u8) -> Option<usize> {
    match address_type {
        IPV4 => Some(size_of::<u32>() - 1 + PORT_BYTES),
        IPV6 => Some(size_of::<Ipv6Addr>() - 1 + PORT_BYTES),
        // The first octet is the length of the name.
        NAME => Some(usize::from(first) + PORT_BYTES),
        _ => None,
    }
}

/// The reason why a proxy does not make the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// A reply begins with this octet instead of the version.
    Version(u8),
    /// The proxy accepts none of the offered methods of authentication.
    NoMethod {
        /// True if a user name and a password were offered.
        has_login: bool,
    },
    /// The proxy chose a method that was not offered.
    Method(u8),
    /// The proxy rejected the user name or the password with this status.
    Login(u8),
    /// The proxy replied to the request with this code.
    Reply(u8),
    /// The proxy's reply has an address of an unknown type.
    AddressType(u8),
}

impl Failure {
    /// Returns true if another attempt with the same options fails, too.
    pub(crate) fn is_final(self) -> bool {
        matches!(self, Self::NoMethod { .. } | Self::Login(_) | Self::Reply(2 | 7 | 8))
    }

    pub(crate) fn kind(self) -> ErrorKind {
        match self {
            Self::NoMethod { .. } | Self::Login(_) | Self::Reply(2) => ErrorKind::PermissionDenied,
            Self::Version(_) | Self::Method(_) | Self::AddressType(_) => ErrorKind::InvalidData,
            Self::Reply(3) => ErrorKind::NetworkUnreachable,
            Self::Reply(4) => ErrorKind::HostUnreachable,
            Self::Reply(5) => ErrorKind::ConnectionRefused,
            Self::Reply(6) => ErrorKind::TimedOut,
            Self::Reply(7 | 8) => ErrorKind::Unsupported,
            Self::Reply(_) => ErrorKind::Other,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(octet) => {
                write!(formatter, "its reply begins with {octet:#04x}, so it is no SOCKS 5 proxy; check its address")
            }
            Self::NoMethod { has_login: false } => formatter
                .write_str("it requires authentication; set a user name and a password (`SocksProxy::credentials`)"),
            Self::NoMethod { has_login: true } => {
                formatter.write_str("it requires another method of authentication than a user name and a password")
            }
            Self::Method(method) => {
                write!(formatter, "it chose the authentication method {method:#04x}, which was not offered")
            }
            Self::Login(status) => write!(
                formatter,
                "it rejected the user name or the password (status {status}); correct `SocksProxy::credentials`"
            ),
            Self::Reply(code) => write!(formatter, "it replied with code {code}: {}", meaning(*code)),
            Self::AddressType(octet) => {
                write!(formatter, "its reply has an address of the unknown type {octet:#04x}")
            }
        }
    }
}

/// Returns the meaning of a code in a reply to a request.
fn meaning(code: u8) -> &'static str {
    match code {
        1 => "the proxy failed",
        2 => "its rules do not allow the connection",
        3 => "it cannot reach the network of the destination",
        4 => "it cannot reach the destination, or does not know its name",
        5 => "the destination refused the connection",
        6 => "the time to live of a packet expired",
        7 => "it does not support connections over TCP",
        8 => "it does not support this type of address; use a name or an IPv4 address",
        _ => "an unknown failure",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_has_a_name_of_1_to_255_octets_and_a_password_of_up_to_255() {
        assert_eq!(encode_login(b"me", b"secret").unwrap().as_slice(), b"\x01\x02me\x06secret");
        assert_eq!(encode_login(b"me", b"").unwrap().as_slice(), b"\x01\x02me\x00");
        assert_eq!(encode_login(&[b'a'; 255], &[b'b'; 255]).unwrap().len(), 513);
        assert!(encode_login(b"", b"secret").is_none());
        assert!(encode_login(&[b'a'; 256], b"secret").is_none());
        assert!(encode_login(b"me", &[b'b'; 256]).is_none());
    }

    #[test]
    fn a_request_has_an_address_or_a_name_of_1_to_255_octets() {
        assert_eq!(encode_request("1.2.3.4", 258).unwrap(), b"\x05\x01\x00\x01\x01\x02\x03\x04\x01\x02");
        assert_eq!(encode_request("::1", 1).unwrap(), b"\x05\x01\x00\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x00\x01");
        assert_eq!(encode_request("a.b", 1).unwrap(), b"\x05\x01\x00\x03\x03a.b\x00\x01");
        assert_eq!(encode_request(&"a".repeat(255), 1).unwrap().len(), 7 + 255);
        assert!(encode_request("", 1).is_none());
        assert!(encode_request(&"a".repeat(256), 1).is_none());
    }

    #[test]
    fn an_address_of_each_type_is_read_to_its_end() {
        for (head, rest) in [(&[0, IPV4, 9], 5), (&[0, IPV6, 9], 17), (&[7, NAME, 0], 2), (&[0, NAME, 255], READ_BYTES)]
        {
            let mut handshake = Handshake::new(None, b"request");
            assert_eq!(handshake.receive(&[VERSION, 0]), Ok(&b"request"[..]));
            assert_eq!(handshake.receive(&[VERSION, 0]), Ok(&[][..]));
            assert_eq!(handshake.receive(head), Ok(&[][..]));
            assert_eq!(handshake.wanted(), rest);
            assert_eq!(handshake.receive(&vec![1; rest]), Ok(&[][..]));
            assert_eq!(handshake.wanted(), 0);
        }
    }

    #[test]
    fn a_login_is_only_sent_to_a_proxy_that_asks_for_it() {
        let mut handshake = Handshake::new(Some(b"login"), b"request");
        assert_eq!(handshake.receive(&[VERSION, NO_AUTHENTICATION]), Ok(&b"request"[..]));
        let mut handshake = Handshake::new(None, b"request");
        assert_eq!(handshake.receive(&[VERSION, LOGIN]), Err(Failure::Method(LOGIN)));
    }
}
