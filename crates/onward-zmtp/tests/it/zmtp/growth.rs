//! Memory checks of the fuzz targets, on many repetitions of one input. A fuzzer has no reason to
//! find such inputs.

use onward_zmtp::protocol::{Options, SocketType};

use super::allocations::counted;
use super::corpora::fuzz::targets;
use super::link::{command, exchange, frame, mechanisms, message, metadata, pair};

/// The socket types of a peer of ZMTP 3.1 in the target: for a PULL socket and for an XPUB socket.
const PUSH: u8 = 3;
const SUB: u8 = 2;

/// The number of repetitions. Miri runs fewer, because it looks for other faults.
const TIMES: usize = if cfg!(miri) { 5 } else { 60 };

/// Sends the bytes of a peer after a good handshake, in pieces of `piece` bytes.
fn traffic(peer: u8, piece: usize, bytes: &[u8]) {
    targets::zmtp_traffic(&[&[peer, 1, piece as u8 - 1], bytes].concat());
}

/// Shows: M2
#[test]
fn a_frame_takes_memory_as_it_comes_and_not_as_it_is_announced() {
    let announced = [&[2][..], &100_000_u64.to_be_bytes(), &[5; 20]].concat();
    traffic(PUSH, 7, &announced);
}

/// Shows: M2
#[test]
fn nothing_stays_of_messages_that_were_taken() {
    traffic(PUSH, 50, &[frame(1, &[5; 40]), frame(0, &[5; 40])].concat().repeat(TIMES));
}

/// Shows: M2
#[test]
fn nothing_stays_of_heartbeats_that_were_answered() {
    traffic(PUSH, 25, &command("PING", &[5; 18]).repeat(TIMES));
}

/// Shows: M2
#[test]
fn nothing_stays_of_commands_that_are_not_known() {
    traffic(PUSH, 25, &command("NOTHING", &[5; 15]).repeat(TIMES));
}

/// Shows: M2
#[test]
fn nothing_stays_of_topics_that_were_cancelled() {
    let topics = (0..TIMES).map(|topic| {
        let topic = format!("{topic:040}");
        [command("SUBSCRIBE", topic.as_bytes()), command("CANCEL", topic.as_bytes())].concat()
    });
    traffic(SUB, 60, &topics.collect::<Vec<_>>().concat());
}

/// Shows: M2
#[test]
fn topics_beyond_the_limit_take_no_memory() {
    let topics = (0..TIMES).map(|topic| command("SUBSCRIBE", format!("{topic:040}").as_bytes()));
    traffic(SUB, 60, &topics.collect::<Vec<_>>().concat());
}

/// Shows: M2
#[test]
fn metadata_beyond_the_limit_takes_no_memory() {
    let body = [&b"\x05READY"[..], &metadata(&[("Socket-Type", b"DEALER"), ("X", &[5; 4000])])].concat();
    let ready = [&[6][..], &(body.len() as u64).to_be_bytes(), &body].concat();
    targets::zmtp_null(&[&[1, 200], &ready[..]].concat());
}

/// The conversation of the fuzz target has too few messages to show this.
///
/// Shows: M2
#[test]
#[cfg_attr(miri, ignore = "keys, which take it minutes")]
fn nothing_stays_of_encrypted_messages_that_were_taken() {
    let (_, client, server) = mechanisms()[2].clone();
    let options = |socket_type, security| Options::new(socket_type).security(security);
    let (mut push, mut pull) = pair(options(SocketType::Push, client), options(SocketType::Pull, server));
    let mut say = || {
        push.send(message(&[&[5; 40], &[5; 40]])).unwrap();
        exchange(&mut push, &mut pull).1.len()
    };
    say();
    let counted = counted(|| (0..100).map(|_| say()).sum::<usize>());
    assert_eq!((counted.result, counted.live), (100, 0));
}
