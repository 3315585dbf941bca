//! Tests of the output buffer.

use std::io::IoSlice;

use bytes::{Buf, Bytes};
use onward_zmtp::protocol::{Connection, Message, Options, SocketType, bounds};
use proptest::prelude::*;

use super::link::{Seen, drain, feed, introduced, message};

fn push(gather_bytes: usize) -> Connection {
    introduced(Options::new(SocketType::Push).gather_bytes(gather_bytes), "PULL")
}

fn slices(connection: &mut Connection) -> Vec<Vec<u8>> {
    let mut slices = [IoSlice::new(&[]); 64];
    let count = connection.output().slices(&mut slices);
    slices[..count].iter().map(|slice| slice.to_vec()).collect()
}

/// Shows: M5
#[test]
fn a_batch_of_small_messages_is_one_piece() {
    let mut push = push(bounds::GATHER_BYTES);
    for _ in 0..1000 {
        push.send(message(&[b"head", b"body"])).unwrap();
    }
    let slices = slices(&mut push);
    assert_eq!(slices.len(), 1);
    assert_eq!(slices[0].len(), 1000 * 12);
}

/// Shows: M5
#[test]
fn a_large_payload_is_a_piece_between_others() {
    let mut push = push(1000);
    push.send(message(&[b"a", &[1; 1000], b"b"])).unwrap();
    let sizes: Vec<usize> = slices(&mut push).iter().map(Vec::len).collect();
    assert_eq!(sizes, [3 + 9, 1000, 3]);
}

#[test]
fn the_output_is_full_at_its_limit_and_not_before() {
    let mut push = push(usize::MAX);
    push.send(Message::from(vec![0; bounds::WRITE_BATCH_BYTES - 10])).unwrap();
    assert!(!push.output().is_full());
    push.send(message(&[b""])).unwrap();
    assert!(push.output().is_full());
}

#[test]
fn more_than_there_is_counts_as_all_there_is() {
    let mut push = push(4);
    push.send(message(&[b"large", b"x"])).unwrap();
    push.output().advance(1_000_000);
    assert!(!push.wants_write());
    push.send(message(&[b"next"])).unwrap();
    assert_eq!(drain(&mut push), b"\0\x04next");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]

    /// Shows: M5
    #[test]
    fn however_it_is_written_all_of_it_arrives_in_order(
        sizes in proptest::collection::vec(prop_oneof![0_usize..10, 0_usize..5000, 0_usize..90_000], 1..40),
        writes in proptest::collection::vec(1_usize..100_000, 1..20),
        gather_bytes in prop_oneof![Just(0_usize), 1_usize..6000],
    ) {
        let mut push = push(gather_bytes);
        let mut pull = introduced(Options::new(SocketType::Pull), "PUSH");
        let (mut sent, mut seen) = (Vec::new(), Vec::new());
        let mut writes = writes.iter().cycle();
        for (number, size) in sizes.iter().enumerate() {
            let payload = Bytes::from(vec![number as u8; *size]);
            sent.push(Seen::Message(vec![payload.clone()]));
            push.send(Message::from(payload)).unwrap();
            let total: Vec<u8> = slices(&mut push).concat();
            let count = total.len().min(*writes.next().unwrap());
            seen.extend(feed(&mut pull, &total[..count]));
            push.output().advance(count);
        }
        seen.extend(feed(&mut pull, &drain(&mut push)));
        prop_assert_eq!(seen, sent);
    }
}
