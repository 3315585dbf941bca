//! Tests against libzmq at the other end of a real stream.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use onward_zmtp::protocol::{
    Connection, Entropy, Error, KeyPair, Options, Password, PublicKey, SecretKey, Security, SocketType,
};

use super::link::{Seen, feed, message, start};
use super::peer::{Peer, program};

const SERVER_SECRET: &str = "JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6";
const CLIENT_SECRET: &str = "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs";
/// The longest wait before a test fails.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The tested side: a connection on a blocking stream.
struct Ours {
    connection: Connection,
    stream: TcpStream,
    seen: Vec<Seen>,
}

impl Ours {
    fn new(stream: TcpStream, options: Options) -> Self {
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.set_write_timeout(Some(TIMEOUT)).unwrap();
        let connection = Connection::new(Arc::new(options), Entropy::from_system().unwrap(), start());
        Self { connection, stream, seen: Vec::new() }
    }

    fn flush(&mut self) {
        while self.connection.wants_write() {
            let mut slices = [std::io::IoSlice::new(&[]); 16];
            let output = self.connection.output();
            let count = output.slices(&mut slices);
            let written = self.stream.write_vectored(&slices[..count]).unwrap();
            output.advance(written);
        }
    }

    /// Returns the next event. Writes and reads bytes until there is one.
    fn next(&mut self) -> Seen {
        while self.seen.is_empty() {
            self.flush();
            let mut buffer = [0; 16 * 1024];
            let count = self.stream.read(&mut buffer).expect("libzmq says something in time");
            if count == 0 {
                return Seen::Error(self.connection.end_of_stream());
            }
            self.seen = feed(&mut self.connection, &buffer[..count]);
        }
        self.seen.remove(0)
    }

    /// Returns all events up to and including the end of the handshake.
    fn handshake(&mut self) -> Vec<Seen> {
        let mut all = Vec::new();
        loop {
            all.push(self.next());
            if matches!(all.last(), Some(Seen::Ready(..) | Seen::Error(_))) {
                return all;
            }
        }
    }
}

pub(crate) fn client_of(mechanism: &str) -> Security {
    let server = KeyPair::from(SecretKey::from_z85(SERVER_SECRET).unwrap()).public();
    match mechanism {
        "null" => Security::Null,
        "plain" => Security::PlainClient { username: "ali".into(), password: Password::new("open sesame").unwrap() },
        _ => Security::CurveClient { server, keys: KeyPair::generate().unwrap() },
    }
}

pub(crate) fn server_of(mechanism: &str) -> Security {
    match mechanism {
        "null" => Security::Null,
        "plain" => Security::PlainServer,
        _ => Security::CurveServer { keys: SecretKey::from_z85(SERVER_SECRET).unwrap().into() },
    }
}

/// Connects to libzmq, as the client of the mechanism.
fn connect(program: &str, kind: &str, mechanism: &str, options: Options) -> (Peer, Ours) {
    let (peer, endpoint) = Peer::spawn(program, ["bind", kind, mechanism, "tcp://127.0.0.1:*", "0"]);
    let stream = TcpStream::connect(endpoint.trim_start_matches("tcp://")).unwrap();
    (peer, Ours::new(stream, options))
}

/// Accepts a connection from libzmq, which is the client of the mechanism.
fn accept(program: &str, kind: &str, mechanism: &str, heartbeat: &str, options: Options) -> (Peer, Ours) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("tcp://{}", listener.local_addr().unwrap());
    let (peer, _) = Peer::spawn(program, ["connect", kind, mechanism, &endpoint, heartbeat]);
    let (stream, _) = listener.accept().unwrap();
    (peer, Ours::new(stream, options))
}

pub(crate) const MECHANISMS: [&str; 3] = ["null", "plain", "curve"];

/// Sends messages of every shape and checks that each comes back.
fn all_shapes_come_back(ours: &mut Ours, mechanism: &str) {
    let bytes: Vec<u8> = (0..8 * 1024 * 1024).map(|index| (index % 251) as u8).collect();
    let shapes: [&[&[u8]]; 8] = [
        &[b""],
        &[&bytes[..1]],
        &[&bytes[..255]],
        &[&bytes[..256]],
        &[&bytes[..65_536]],
        &[b"", b"two", &bytes[..65_536], b""],
        &[&bytes],
        &[b"last"],
    ];
    for shape in shapes {
        ours.connection.send(message(shape)).unwrap();
        let expected = Seen::Message(message(shape).into_iter().collect());
        let sizes: Vec<usize> = shape.iter().map(|frame| frame.len()).collect();
        assert!(ours.next() == expected, "{mechanism}: {sizes:?} came back as something else");
    }
}

/// Shows: M4
#[test]
fn libzmq_as_server_sends_back_what_we_sent_over_every_mechanism() {
    let Some(program) = program() else { return };
    for mechanism in MECHANISMS {
        let options = Options::new(SocketType::Dealer).security(client_of(mechanism));
        let (_peer, mut ours) = connect(&program, "dealer", mechanism, options);
        assert_eq!(ours.handshake(), [Seen::Ready(SocketType::Dealer, None)], "{mechanism}");
        all_shapes_come_back(&mut ours, mechanism);
    }
}

/// Shows: M4
#[test]
fn libzmq_as_client_sends_back_what_we_sent_over_every_mechanism() {
    let Some(program) = program() else { return };
    for mechanism in MECHANISMS {
        let options = Options::new(SocketType::Dealer).security(server_of(mechanism));
        let (_peer, mut ours) = accept(&program, "dealer", mechanism, "0", options);
        let ready = Seen::Ready(SocketType::Dealer, None);
        let client = KeyPair::from(SecretKey::from_z85(CLIENT_SECRET).unwrap()).public();
        let expected = match mechanism {
            "null" => vec![ready],
            "plain" => vec![Seen::Plain(Bytes::from("ali")), ready],
            _ => vec![Seen::Curve(client.to_string()), ready],
        };
        assert_eq!(ours.handshake(), expected, "{mechanism}");
        all_shapes_come_back(&mut ours, mechanism);
    }
}

/// Shows: M4
#[test]
fn libzmq_publishes_what_we_subscribe_to_over_every_mechanism() {
    let Some(program) = program() else { return };
    for mechanism in MECHANISMS {
        let options = Options::new(SocketType::Sub).security(client_of(mechanism));
        let (_peer, mut ours) = connect(&program, "xpub", mechanism, options);
        assert_eq!(ours.handshake(), [Seen::Ready(SocketType::Xpub, None)], "{mechanism}");
        ours.connection.subscribe(b"topic").unwrap();
        assert_eq!(ours.next(), Seen::Message(vec![Bytes::from("topic!")]), "{mechanism}");
    }
}

/// Shows: M4
#[test]
fn libzmq_subscribes_and_receives_what_we_publish_over_every_mechanism() {
    let Some(program) = program() else { return };
    for mechanism in MECHANISMS {
        let options = Options::new(SocketType::Pub).security(server_of(mechanism));
        let (peer, mut ours) = accept(&program, "sub", mechanism, "0", options);
        assert!(matches!(ours.handshake().last(), Some(Seen::Ready(SocketType::Sub, None))), "{mechanism}");
        assert_eq!(ours.next(), Seen::Subscribe(Bytes::from("a")), "{mechanism}");
        ours.connection.send(message(&[b"abc", b"def"])).unwrap();
        ours.flush();
        assert_eq!(peer.line(), "abc def", "{mechanism}");
    }
}

/// Shows: M4
#[test]
fn heartbeats_of_libzmq_are_answered_to_its_satisfaction_over_every_mechanism() {
    let Some(program) = program() else { return };
    for mechanism in MECHANISMS {
        let options = Options::new(SocketType::Dealer).security(server_of(mechanism));
        let (_peer, mut ours) = accept(&program, "dealer", mechanism, "100", options);
        assert!(matches!(ours.handshake().last(), Some(Seen::Ready(..))), "{mechanism}");
        let mut pings = 0;
        // libzmq disconnects 15 heartbeats after the first one without a reply.
        while pings < 20 {
            ours.flush();
            let mut buffer = [0; 1024];
            let count = ours.stream.read(&mut buffer).unwrap();
            assert!(count > 0, "{mechanism}: libzmq closed the connection after {pings} heartbeats");
            assert_eq!(feed(&mut ours.connection, &buffer[..count]), []);
            pings += 1;
        }
    }
}

/// Shows: M4
#[test]
fn our_heartbeats_are_answered_by_libzmq_over_every_mechanism() {
    let Some(program) = program() else { return };
    for mechanism in MECHANISMS {
        let heartbeat = onward_zmtp::protocol::Heartbeat::every(TIMEOUT).context("ours").unwrap();
        let options = Options::new(SocketType::Dealer).security(client_of(mechanism)).heartbeat(heartbeat);
        let (_peer, mut ours) = connect(&program, "dealer", mechanism, options);
        ours.handshake();
        ours.connection.handle_timeout(start() + TIMEOUT).unwrap();
        assert_eq!(ours.next(), Seen::Pong(Bytes::from("ours")), "{mechanism}");
    }
}

/// Shows: M4
#[test]
fn libzmq_refuses_a_wrong_password_and_we_say_so() {
    let Some(program) = program() else { return };
    let security = Security::PlainClient { username: "ali".into(), password: Password::new("wrong").unwrap() };
    let (_peer, mut ours) = connect(&program, "dealer", "plain", Options::new(SocketType::Dealer).security(security));
    let seen = ours.handshake();
    assert!(matches!(&seen[..], [Seen::Error(error)] if error.is_peer_error()), "{seen:?}");
}

/// Shows: M4
#[test]
fn libzmq_does_not_reply_to_a_client_that_takes_it_for_another_server() {
    let Some(program) = program() else { return };
    let server = PublicKey::from_bytes(*KeyPair::generate().unwrap().public().as_bytes());
    let security = Security::CurveClient { server, keys: KeyPair::generate().unwrap() };
    let (_peer, mut ours) = connect(&program, "dealer", "curve", Options::new(SocketType::Dealer).security(security));
    let seen = ours.handshake();
    assert!(matches!(&seen[..], [Seen::Error(error)] if is_over(error)), "{seen:?}");
}

fn is_over(error: &Error) -> bool {
    error.is_disconnected() || error.is_peer_error()
}

/// Shows: M4
#[test]
fn libzmq_and_we_refuse_each_others_socket_type_where_they_do_not_go_together() {
    let Some(program) = program() else { return };
    let (_peer, mut ours) = connect(&program, "sub", "null", Options::new(SocketType::Dealer));
    let seen = ours.handshake();
    assert!(matches!(&seen[..], [Seen::Error(error)] if error.is_incompatible()), "{seen:?}");
}
