//! Tests against faults seen in other implementations, on real streams.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use onward_zmtp::protocol::{Options, Security};
use onward_zmtp::socket::kind::{Kind, Pull, Push};
use onward_zmtp::socket::{Decision, Endpoint, HighWaterMark, SocketOptions};
use onward_zmtp::{PullSocket, PushSocket, Socket};

use crate::socket::support::events::{disconnected, failed, no_tasks, peers, until, within};
use crate::socket::support::raw::Raw;
use crate::zmtp::link::{command, connection, drain, feed, frame, greeting, mechanisms};

fn announces(length: u64) -> Vec<u8> {
    [&[2][..], &length.to_be_bytes()].concat()
}

#[tokio::test]
async fn a_length_of_2_to_the_62_costs_only_the_sender_its_connection() {
    let mut pull = PullSocket::new();
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut monitor = pull.monitor();
    let mut evil = Raw::introduced(&endpoint, "PUSH").await;
    let mut good = Raw::introduced(&endpoint, "PUSH").await;
    evil.write(&announces(1 << 62)).await;
    assert!(disconnected(&mut monitor).await.is_limit());
    good.write(&frame(0, b"good")).await;
    assert_eq!(within(pull.recv()).await.unwrap().frames(), ["good"]);
}

#[tokio::test]
async fn a_length_of_2_to_the_62_in_the_handshake_costs_the_peer_its_connection() {
    let pull = PullSocket::new();
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut monitor = pull.monitor();
    let mut evil = Raw::connect(&endpoint).await;
    evil.write(&[greeting(1, "NULL", false), announces(1 << 62)].concat()).await;
    assert!(failed(&mut monitor).await.is_limit());
}

#[tokio::test]
async fn a_peer_that_connects_and_says_nothing_is_disconnected_in_time() {
    let pull = PullSocket::with_options(SocketOptions::new().handshake_timeout(Duration::from_millis(20)));
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut monitor = pull.monitor();
    let mut silent = Raw::connect(&endpoint).await;
    let reason = failed(&mut monitor).await;
    assert!(reason.protocol().is_some_and(onward_zmtp::protocol::Error::is_timeout), "{reason:?}");
    silent.read_to_end().await;
}

#[tokio::test]
async fn a_peer_that_drips_a_byte_now_and_then_is_disconnected_in_time() {
    let pull = PullSocket::with_options(SocketOptions::new().handshake_timeout(Duration::from_millis(50)));
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut monitor = pull.monitor();
    let mut dripping = Raw::connect(&endpoint).await;
    let mut ticks = tokio::time::interval(Duration::from_millis(5));
    let reason = tokio::select! {
        reason = failed(&mut monitor) => reason,
        () = async {
            for byte in greeting(1, "NULL", false).repeat(100) {
                ticks.tick().await;
                dripping.write(&[byte]).await;
            }
        } => panic!("it goes on"),
    };
    assert!(reason.protocol().is_some_and(onward_zmtp::protocol::Error::is_timeout), "{reason:?}");
}

#[tokio::test]
async fn a_ping_is_answered_and_messages_around_it_arrive() {
    let mut pull = PullSocket::new();
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut raw = Raw::introduced(&endpoint, "PUSH").await;
    raw.write(&[frame(0, b"one"), command("PING", b"\0\0context"), frame(0, b"two")].concat()).await;
    let pong = command("PONG", b"context");
    assert_eq!(raw.read(pong.len()).await, pong);
    for expected in ["one", "two"] {
        assert_eq!(within(pull.recv()).await.unwrap().frames(), [expected]);
    }
}

/// zmq.rs had this fault: each small message that was kept held the 64 KiB in which it had been
/// read.
#[tokio::test]
async fn small_messages_that_are_kept_hold_no_large_buffers() {
    let mut pull =
        PullSocket::with_options(SocketOptions::new().receive_high_water_mark(HighWaterMark::messages(10_000)));
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut raw = Raw::introduced(&endpoint, "PUSH").await;
    raw.write(&frame(0, &[5; 16]).repeat(1000)).await;
    let mut kept = Vec::new();
    while kept.len() < 1000 {
        kept.push(within(pull.recv()).await.unwrap());
    }
    // A shared buffer has a second owner; a unique one can be made mutable without a copy.
    assert!(kept.into_iter().flatten().all(|frame: Bytes| frame.is_unique()));
}

#[tokio::test]
async fn silent_peers_keep_no_peer_out() {
    let mut pull = PullSocket::with_options(SocketOptions::new().pending_handshakes(8));
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut monitor = pull.monitor();
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(Raw::connect(&endpoint).await);
    }
    for _ in 0..92 {
        assert!(failed(&mut monitor).await.is_limit());
    }
    let mut good = Raw::introduced(&endpoint, "PUSH").await;
    good.write(&frame(0, b"good")).await;
    assert_eq!(within(pull.recv()).await.unwrap().frames(), ["good"]);
    drop((pull, silent, good));
    no_tasks().await;
}

/// Returns a socket that decides about every peer but the first, and a peer that has sent
/// everything it can before the decision. With NULL there is no decision, and the peer has sent its
/// greeting.
async fn beside_half_open<T: Kind>(name: &str, client: Security, server: Security) -> (Socket<T>, Endpoint, Raw) {
    let options = SocketOptions::new().security(server);
    let asked = Arc::new(AtomicBool::new(false));
    let options = match name {
        "NULL" => options,
        _ => options.authenticate_with(move |_| {
            let is_first = !asked.swap(true, Ordering::SeqCst);
            async move { if is_first { pending().await } else { Decision::Accept } }
        }),
    };
    let socket = Socket::<T>::with_options(options);
    let endpoint = socket.bind("tcp://127.0.0.1:*").await.unwrap();
    let raw = half_open::<T>(name, client, &endpoint).await;
    (socket, endpoint, raw)
}

async fn half_open<T: Kind>(name: &str, client: Security, endpoint: &Endpoint) -> Raw {
    // The sizes of the replies before the decision: the greeting, and WELCOME of CURVE.
    let replies: &[usize] = match name {
        "NULL" => &[],
        "PLAIN" => &[64],
        _ => &[64, 170],
    };
    let mut raw = Raw::connect(endpoint).await;
    let mut connection = connection(Options::new(T::TYPE.peers()[0]).security(client), 5);
    raw.write(&drain(&mut connection)).await;
    for reply in replies {
        feed(&mut connection, &raw.read(*reply).await);
        raw.write(&drain(&mut connection)).await;
    }
    raw
}

/// libzmq had this fault, CVE-2020-15166: half-open connections were among the peers that messages
/// are sent to.
#[tokio::test]
async fn a_peer_whose_handshake_is_not_done_is_sent_nothing() {
    for (name, client, server) in mechanisms() {
        let (mut push, endpoint, _half_open) = beside_half_open::<Push>(name, client.clone(), server).await;
        let mut pull = PullSocket::with_options(SocketOptions::new().security(client));
        pull.connect(&endpoint).unwrap();
        for _ in 0..10 {
            within(push.send("work")).await.unwrap();
        }
        for _ in 0..10 {
            within(pull.recv()).await.unwrap();
        }
        assert_eq!(push.statistics().peers, 1, "{name}");
    }
}

/// The test of the fault above, for receivers.
#[tokio::test]
async fn a_peer_in_its_handshake_is_not_received_from_and_delays_no_other() {
    for (name, client, server) in mechanisms() {
        let (mut pull, endpoint, mut half_open) = beside_half_open::<Pull>(name, client.clone(), server).await;
        half_open.write(&frame(0, b"too early")).await;
        let mut push = PushSocket::with_options(SocketOptions::new().security(client));
        push.connect(&endpoint).unwrap();
        for number in 0..10_u8 {
            within(push.send(vec![number])).await.unwrap();
        }
        for number in 0..10_u8 {
            assert_eq!(within(pull.recv()).await.unwrap().frames()[0], vec![number], "{name}");
        }
        assert_eq!((pull.statistics().peers, pull.try_recv()), (1, None), "{name}");
    }
}

/// Others had this fault: high-water marks that count messages alone let 100 000 messages of 64 KiB
/// wait.
///
/// Beats: marks-without-bytes
#[tokio::test]
async fn what_waits_is_bounded_in_bytes_by_default() {
    let mut push = PushSocket::new();
    push.connect("tcp://127.0.0.1:1").unwrap();
    while push.try_send(vec![0; 1024 * 1024]).is_ok() {}
    assert_eq!(push.statistics().outgoing.bytes, onward_zmtp::socket::bounds::HIGH_WATER_MARK_BYTES);
}

/// libzmq has this fault: it accepts ZMTP 1.0 and 2.0 by default, so the bytes of any program
/// become messages.
#[tokio::test]
async fn bytes_of_another_protocol_are_no_message() {
    let mut pull = PullSocket::new();
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut monitor = pull.monitor();
    for bytes in [&b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"[..], b"\x01\x00\x05\x00hello", &[0; 100]] {
        let mut scanner = Raw::connect(&endpoint).await;
        scanner.write(bytes).await;
        failed(&mut monitor).await;
    }
    assert!(pull.try_recv().is_none());
}

#[tokio::test]
async fn a_peer_that_leaves_in_the_middle_of_a_message_leaves_nothing_behind() {
    let mut pull = PullSocket::new();
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut monitor = pull.monitor();
    let mut raw = Raw::introduced(&endpoint, "PUSH").await;
    raw.write(&[frame(1, b"first part"), announces(1000), vec![0; 500]].concat()).await;
    drop(raw);
    disconnected(&mut monitor).await;
    peers(0, || pull.statistics()).await;
    assert!(pull.try_recv().is_none());
    until(|| pull.statistics().incoming.bytes == 0).await;
}
