//! Recorded bytes from one side to the other.

use std::time::Duration;

use bytes::Bytes;
use onward_zmtp::protocol::{Connection, Heartbeat, Identity, Message, Options, Security, SocketType};

use super::link::{after, connection, drain, exchange, feed};

/// A conversation whose bytes are the same each time, so that one side can be replayed to the
/// other.
pub(crate) struct Transcript {
    pub(crate) name: &'static str,
    client: Options,
    server: Options,
    pub(crate) by_client: Vec<u8>,
    pub(crate) by_server: Vec<u8>,
}

impl Transcript {
    pub(crate) fn record(name: &'static str, client: Security, server: Security) -> Self {
        let heartbeat = Heartbeat::every(Duration::from_secs(1)).context("context").unwrap();
        let identity = Identity::new("subscriber").unwrap();
        let client = Options::new(SocketType::Xsub).security(client).identity(identity).heartbeat(heartbeat.clone());
        let server = Options::new(SocketType::Xpub).security(server).heartbeat(heartbeat);
        let mut transcript = Self { name, client, server, by_client: Vec::new(), by_server: Vec::new() };
        let (mut one, mut other) = (transcript.new_client(), transcript.new_server());
        transcript.carry(&mut one, &mut other);
        one.subscribe(b"topic").unwrap();
        for connection in [&mut one, &mut other] {
            connection.handle_timeout(after(1000)).unwrap();
            for message in messages() {
                connection.send(message).unwrap();
            }
        }
        transcript.carry(&mut one, &mut other);
        one.cancel(b"topic").unwrap();
        transcript.carry(&mut one, &mut other);
        transcript
    }

    pub(crate) fn new_client(&self) -> Connection {
        connection(self.client.clone(), 1)
    }

    pub(crate) fn new_server(&self) -> Connection {
        connection(self.server.clone(), 2)
    }

    fn carry(&mut self, client: &mut Connection, server: &mut Connection) {
        loop {
            let (by_client, by_server) = (drain(client), drain(server));
            if by_client.is_empty() && by_server.is_empty() {
                return;
            }
            feed(server, &by_client);
            feed(client, &by_server);
            self.by_client.extend(by_client);
            self.by_server.extend(by_server);
        }
    }
}

fn messages() -> Vec<Message> {
    let sizes: [&[usize]; 6] = [&[0], &[1, 0, 3], &[255], &[256, 2], &[9000], &[70_000, 10]];
    let frame = |size: &usize| Bytes::from(vec![2; *size]);
    // Miri gets none of the long ones, which come in thousands of pieces.
    let sizes = &sizes[..if cfg!(miri) { 4 } else { sizes.len() }];
    sizes.iter().map(|sizes| sizes.iter().map(frame).collect()).collect()
}

#[test]
fn a_conversation_comes_out_the_same_each_time() {
    for (name, client, server) in super::link::mechanisms() {
        let (one, other) =
            (Transcript::record(name, client.clone(), server.clone()), Transcript::record(name, client, server));
        assert!(one.by_client == other.by_client && one.by_server == other.by_server, "{name}");
        let (mut client, mut server) = (one.new_client(), one.new_server());
        exchange(&mut client, &mut server);
        assert!(client.peer().is_some());
    }
}
