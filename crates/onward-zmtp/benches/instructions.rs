//! Counts the instructions that a message costs. callgrind counts the same number each time:
//!
//! ```sh
//! cargo bench -p onward-zmtp --bench instructions --no-run
//! valgrind --tool=callgrind --callgrind-out-file=/dev/null \
//!     target/release/deps/instructions-… decode 64 10000
//! ```
//!
//! Run it with two numbers of messages. The difference of the counts, divided by the difference of
//! the numbers, is the cost of one message. The connection is NULL and messages have one frame.
//! They arrive in reads of 64 KiB and are written in batches as large as the output takes.

#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Buf, BufMut, Bytes};
use onward_zmtp::protocol::{Connection, Entropy, Event, Message, Options, SocketType};

/// A run: decoding or encoding, the payload's size in bytes, the number of messages.
struct Job {
    decodes: bool,
    size: usize,
    count: usize,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let jobs = match &arguments[..] {
        [work, size, count] => {
            vec![Job { decodes: work == "decode", size: size.parse().unwrap(), count: count.parse().unwrap() }]
        }
        _ => [64, 4096, 65_536]
            .into_iter()
            .flat_map(|size| [true, false].map(|decodes| Job { decodes, size, count: 1000 }))
            .collect(),
    };
    #[expect(clippy::disallowed_methods, reason = "an Instant cannot be made otherwise; nothing is timed")]
    let now = Instant::now();
    for job in jobs {
        if job.decodes { decode(&job, now) } else { encode(&job, now) }
    }
}

fn pair(now: Instant) -> (Connection, Connection) {
    let new = |socket_type| {
        let entropy = Entropy::from_octets([1; 96]);
        Connection::new(Arc::new(Options::new(socket_type)), entropy, now)
    };
    let (mut push, mut pull) = (new(SocketType::Push), new(SocketType::Pull));
    while push.wants_write() || pull.wants_write() {
        carry(&mut push, &mut pull, now);
        carry(&mut pull, &mut push, now);
    }
    (push, pull)
}

fn carry(from: &mut Connection, to: &mut Connection, now: Instant) {
    let count = from.output().remaining();
    let bytes = from.output().copy_to_bytes(count);
    assert_eq!(to.receive(&bytes), bytes.len());
    while to.poll_event(now).unwrap().is_some() {}
}

fn encode(job: &Job, now: Instant) {
    let (mut push, _pull) = pair(now);
    let payload = Bytes::from(vec![1; job.size]);
    for _ in 0..job.count {
        push.send(Message::from(payload.clone())).unwrap();
        if push.output().is_full() {
            let count = black_box(push.output()).remaining();
            push.output().advance(count);
        }
    }
}

fn decode(job: &Job, now: Instant) {
    let (mut push, mut pull) = pair(now);
    push.send(Message::from(vec![1; job.size])).unwrap();
    let count = push.output().remaining();
    let frame = push.output().copy_to_bytes(count);
    let stream = frame.repeat((256 * 1024 / frame.len()).max(1));
    let (mut messages, mut rest) = (0, &stream[..]);
    while messages < job.count {
        if rest.is_empty() {
            rest = &stream;
        }
        let mut buffer = pull.read_buf();
        let count = buffer.remaining_mut().min(rest.len());
        buffer.put_slice(&rest[..count]);
        drop(buffer);
        rest = &rest[count..];
        while let Some(event) = pull.poll_event(now).unwrap() {
            messages += usize::from(matches!(black_box(event), Event::Message(_)));
        }
    }
}
