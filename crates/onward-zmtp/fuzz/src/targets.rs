//! The fuzz targets, as functions of their input.

use std::sync::{Arc, OnceLock};

use onward_zmtp::protocol::{Connection, Event, Limits, Message, Options, SocketType};

use super::handshake::{Handshake, READ_BYTES};
#[cfg(feature = "tokio")]
use super::runs::{self, Asked};
use super::{
    Manner, accepted, compare, compare_either_side, compare_manner, connection, cuts, damage, drain, greeting, limits,
    moment, octet, options, security,
};

const READY_OF_SUB: &[u8] = b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03SUB";
const READY_OF_PUSH: &[u8] = b"\x04\x1a\x05READY\x0bSocket-Type\0\0\0\x04PUSH";

/// Tests octets of any kind from the first one on, for each side of each mechanism.
pub fn zmtp_greeting(data: &[u8]) {
    let (side, data) = octet(data);
    let (cuts, bytes) = cuts(data);
    let options = Arc::new(options(SocketType::Router, security(side)));
    compare_either_side(&options, bytes, cuts);
}

/// Tests a valid greeting with anything after it.
pub fn zmtp_null(data: &[u8]) {
    let (cuts, bytes) = cuts(data);
    let options = Arc::new(options(SocketType::Router, security(0)));
    compare_either_side(&options, &[&greeting(1, "NULL", false), bytes].concat(), cuts);
}

/// Tests a valid greeting with anything after it, for client and server.
pub fn zmtp_plain(data: &[u8]) {
    let (side, data) = octet(data);
    let (cuts, bytes) = cuts(data);
    let options = Arc::new(options(SocketType::Router, security(1 + side % 2)));
    compare_either_side(&options, &[&greeting(1, "PLAIN", side % 2 == 0), bytes].concat(), cuts);
}

/// Tests a valid handshake with frames and commands of any kind after it, from peers of ZMTP 3.0
/// and 3.1.
pub fn zmtp_traffic(data: &[u8]) {
    let (kind, data) = octet(data);
    let (cuts, bytes) = cuts(data);
    let (socket_type, ready) =
        if kind & 1 == 0 { (SocketType::Xpub, READY_OF_SUB) } else { (SocketType::Pull, READY_OF_PUSH) };
    let options = Arc::new(options(socket_type, security(0)));
    let bytes = [&greeting(kind >> 1 & 1, "NULL", false), ready, bytes].concat();
    compare(|| connection(&options, 1), &bytes, cuts);
}

/// Tests a valid handshake with short messages among anything after it. The second octet is the
/// number of messages that are taken at once.
///
/// The third octet is a limit. The first octet has a bit for each limit that it may set.
pub fn zmtp_runs(data: &[u8]) {
    let (kind, data) = octet(data);
    let (wanted, data) = octet(data);
    let (limit, data) = octet(data);
    let (cuts, bytes) = cuts(data);
    let limits = limits_of_runs(kind, limit.into());
    #[cfg(feature = "tokio")]
    runs::compare(bytes, cuts, &asked(kind, wanted.into(), limit, &limits));
    let (socket_type, ready) =
        if kind & 3 == 0 { (SocketType::Xpub, READY_OF_SUB) } else { (SocketType::Pull, READY_OF_PUSH) };
    let options = Arc::new(options(socket_type, security(0)).limits(limits));
    let new = if kind & 3 < 3 { connection } else { accepted };
    let bytes = [&greeting(kind >> 2 & 1, "NULL", false), ready, bytes].concat();
    compare_manner(|| new(&options, 1), &bytes, Manner { cuts, wanted: wanted.into() });
}

fn limits_of_runs(kind: u8, limit: usize) -> Limits {
    let mut limits = limits();
    if kind & 8 > 0 {
        limits.frame_bytes = limit;
    }
    if kind & 16 > 0 {
        limits.message_bytes = limit;
    }
    limits
}

#[cfg(feature = "tokio")]
fn asked(kind: u8, messages: usize, limit: u8, limits: &Limits) -> Asked {
    Asked {
        longest: limits.frame_bytes.min(limits.message_bytes),
        messages,
        bytes: if kind & 32 > 0 { limit.into() } else { usize::MAX },
        room: (kind & 64 > 0).then_some(limit),
    }
}

/// Tests a conversation with changes, or a greeting with anything after it, for client and server.
pub fn zmtp_curve(data: &[u8]) {
    let (side, data) = octet(data);
    let (cuts, data) = cuts(data);
    let said = conversation();
    let new = if side / 4 % 2 == 0 { connection } else { accepted };
    let (options, seed, bytes) = match side % 4 {
        0 => (&said.server, 2, damage(said.by_client.clone(), data)),
        1 => (&said.client, 1, damage(said.by_server.clone(), data)),
        2 => (&said.server, 2, [&greeting(1, "CURVE", false), data].concat()),
        _ => (&said.client, 1, [&greeting(1, "CURVE", true), data].concat()),
    };
    compare(|| new(options, seed), &bytes, cuts);
}

/// Tests the replies of a SOCKS proxy. The first octet says whether the client has a user name.
pub fn socks(data: &[u8]) {
    let (kind, mut data) = octet(data);
    let login = (kind & 1 == 1).then_some(&b"login"[..]);
    let mut handshake = Handshake::new(login, b"request");
    let (mut written, mut read) = (vec![handshake.greeting()], Vec::new());
    // There are five steps: a method, the status of a login, and the three parts of a reply.
    for _ in 0..5 {
        let wanted = handshake.wanted();
        assert!(wanted <= READ_BYTES);
        let Some((octets, rest)) = data.split_at_checked(wanted) else { return };
        if wanted == 0 {
            break;
        }
        read.push(octets);
        data = rest;
        match handshake.receive(octets) {
            Ok(output) => written.push(output),
            Err(failure) => return assert!(!failure.to_string().is_empty()),
        }
    }
    assert_eq!(handshake.wanted(), 0, "the handshake is done");
    let has_login = written.contains(&&b"login"[..]);
    assert_eq!(has_login, read[0] == [5, 2], "the login is sent if the proxy asks for it, and only then");
    assert!(!has_login || login.is_some() && read[1][1] == 0);
    assert_eq!(read[read.len() - 3], [5, 0], "the proxy has connected");
    assert_eq!(written.iter().filter(|output| **output == b"request").count(), 1);
}

struct Conversation {
    client: Arc<Options>,
    server: Arc<Options>,
    by_client: Vec<u8>,
    by_server: Vec<u8>,
}

fn receive(connection: &mut Connection, bytes: &[u8]) {
    assert_eq!(connection.receive(bytes), bytes.len());
    while let Some(event) = connection.poll_event(moment()).unwrap() {
        if matches!(event, Event::Authenticate(_)) {
            connection.accept().unwrap();
        }
    }
}

/// Returns what client and server send to each other in a valid conversation. It is always the
/// same.
fn conversation() -> &'static Conversation {
    static CONVERSATION: OnceLock<Conversation> = OnceLock::new();
    CONVERSATION.get_or_init(|| {
        let client = Arc::new(options(SocketType::Xsub, security(3)));
        let server = Arc::new(options(SocketType::Xpub, security(4)));
        let (mut one, mut other) = (connection(&client, 1), connection(&server, 2));
        let (mut by_client, mut by_server) = (Vec::new(), Vec::new());
        let mut is_talking = false;
        for _ in 0..10 {
            let (to_server, to_client) = (drain(&mut one), drain(&mut other));
            receive(&mut other, &to_server);
            receive(&mut one, &to_client);
            by_client.extend(to_server);
            by_server.extend(to_client);
            if !is_talking && one.peer().is_some() && other.peer().is_some() {
                is_talking = true;
                one.subscribe(b"topic").unwrap();
                one.send(Message::from("up")).unwrap();
                other.send(Message::from_iter(["two", "frames"])).unwrap();
            }
        }
        assert!(is_talking, "the handshake is not done");
        Conversation { client, server, by_client, by_server }
    })
}
