//! Any bytes, and any division of them.

use bytes::{Bytes, BytesMut};
use onward_protocol::frame::{Decoder, Limits, encode};
use onward_protocol::{GatewayMessage, WorkerMessage};
use proptest::collection::vec;
use proptest::prelude::*;

const LIMITS: Limits = Limits { payload: 1000 };

/// Feeds a stream in pieces, and returns the complete messages before the first error.
fn feed<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Vec<Bytes>>, bool) {
    let (mut decoder, mut messages) = (Decoder::new(LIMITS), Vec::new());
    for piece in pieces {
        decoder.buffer().extend_from_slice(piece);
        loop {
            match decoder.next_message() {
                Ok(Some(frames)) => messages.push(frames),
                Ok(None) => break,
                Err(_) => return (messages, true),
            }
        }
    }
    (messages, false)
}

fn message() -> impl Strategy<Value = Vec<Bytes>> {
    vec(vec(any::<u8>(), 0..400).prop_map(Bytes::from), 1..5)
}

proptest! {
    #[test]
    fn no_bytes_panic_however_they_are_divided(stream in vec(any::<u8>(), 0..300), size in 1usize..20) {
        let whole = feed(std::iter::once(&stream[..]));
        prop_assert_eq!(feed(stream.chunks(size)), whole);
    }

    #[test]
    fn no_header_panics(header in vec(any::<u8>(), 0..200), payloads in 0usize..3) {
        let mut frames = vec![Bytes::from(header)];
        frames.resize(1 + payloads, Bytes::new());
        let _ = (WorkerMessage::read(&frames), GatewayMessage::read(&frames));
    }

    #[test]
    fn no_json_of_a_known_type_panics(
        kind in prop::sample::select(vec!["hello", "grant", "end", "beat", "submit", "ask", "error", "welcome", "tasks", "ack"]),
        field in prop::sample::select(vec!["ends", "tasks", "kinds", "credit", "n", "request", "payloads", "protocol", "code"]),
        value in prop::sample::select(vec!["null", "-1", "1e99", "[]", "[{}]", "{\"k\":{}}", "\"x\"", "true", "[[[]]]"]),
    ) {
        let frames = [Bytes::from(format!("{{\"t\":\"{kind}\",\"{field}\":{value}}}"))];
        let _ = (WorkerMessage::read(&frames), GatewayMessage::read(&frames));
    }

    #[test]
    fn a_stream_of_messages_is_read_as_it_was_written_in_any_pieces(messages in vec(message(), 0..4), size in 1usize..50) {
        let mut stream = BytesMut::new();
        messages.iter().for_each(|frames| encode(frames, &mut stream));
        prop_assert_eq!(feed(stream.chunks(size)), (messages, false));
    }

    #[test]
    fn a_frame_above_its_bound_is_an_error_before_its_body_comes(length in 1001u64..=u64::MAX) {
        let mut stream = BytesMut::new();
        encode(&[Bytes::from_static(b"{}"), Bytes::new()], &mut stream);
        stream.truncate(stream.len() - 2);
        stream.extend_from_slice(&[2]);
        stream.extend_from_slice(&length.to_be_bytes());
        prop_assert_eq!(feed(std::iter::once(&stream[..])), (Vec::new(), true));
    }
}
