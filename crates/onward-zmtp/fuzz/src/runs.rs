//! Runs of short messages, as the sockets take them, beside the same bytes taken frame by frame.

use std::sync::OnceLock;

use bytes::BufMut;
use onward_zmtp::protocol::Message;
use onward_zmtp::protocol::limits::{COMMAND_BYTES, RUN_BYTES, SHARE_BYTES};

use super::inside::{Error, Frame, FrameLimits, Input, Run, SHORT_BODY};
use super::pieces;

/// What is asked for with each run.
pub(crate) struct Asked {
    /// The longest frame, in bytes.
    pub(crate) longest: usize,
    /// How many messages at most.
    pub(crate) messages: usize,
    /// Their payloads before the last one are fewer bytes than this.
    pub(crate) bytes: usize,
    /// By how much less than 256 bytes there is room for in a run that has something already;
    /// `None` if it has nothing.
    pub(crate) room: Option<u8>,
}

/// What can be compared of a frame, and of the end.
#[derive(Debug, PartialEq)]
enum Seen {
    Frame {
        more: bool,
        command: bool,
        body: Vec<u8>,
    },
    Error(Error),
    /// How many bytes were left, apart from those of a large frame.
    End {
        bytes: usize,
        is_empty: bool,
    },
}

impl Seen {
    fn message(body: &[u8]) -> Self {
        Self::Frame { more: false, command: false, body: body.to_vec() }
    }
}

impl From<Frame<'_>> for Seen {
    fn from(frame: Frame<'_>) -> Self {
        Self::Frame { more: frame.more, command: frame.command, body: frame.body.as_slice().to_vec() }
    }
}

/// The bytes whole, frame by frame, and in pieces with runs must come to the same.
pub(crate) fn compare(bytes: &[u8], cuts: &[u8], asked: &Asked) {
    assert_eq!(frames(bytes, &[], asked, false), frames(bytes, cuts, asked, true));
}

fn frames(bytes: &[u8], cuts: &[u8], asked: &Asked, takes_runs: bool) -> Vec<Seen> {
    let (mut input, mut seen) = (Input::new(), Vec::new());
    // As after a handshake.
    input.grow();
    if pieces(bytes, cuts).all(|piece| feed(&mut input, piece, asked, takes_runs, &mut seen)) {
        seen.push(Seen::End { bytes: input.peek().len(), is_empty: input.is_empty() });
    }
    seen
}

/// Hands all of it in, takes what comes of it, and answers whether there was no error.
fn feed(input: &mut Input, mut bytes: &[u8], asked: &Asked, takes_runs: bool, seen: &mut Vec<Seen>) -> bool {
    while !bytes.is_empty() {
        let mut buffer = input.read_buf();
        let count = bytes.len().min(buffer.remaining_mut());
        assert!(count > 0, "no room for more");
        buffer.put_slice(&bytes[..count]);
        bytes = &bytes[count..];
        if !decode(input, asked, takes_runs, seen) {
            return false;
        }
    }
    true
}

/// As the sockets do: a run where there may be one, and a frame where there is none.
fn decode(input: &mut Input, asked: &Asked, takes_runs: bool, seen: &mut Vec<Seen>) -> bool {
    let limits = FrameLimits { message: asked.longest, command: COMMAND_BYTES, share_from: SHARE_BYTES };
    loop {
        if takes_runs && input.may_have_short_run() && take_run(input, asked, seen) {
            continue;
        }
        match input.next_frame(limits) {
            Ok(None) => return true,
            Ok(Some(frame)) => seen.push(frame.into()),
            Err(error) => {
                seen.push(Seen::Error(error));
                return false;
            }
        }
    }
}

/// Answers whether there was anything.
fn take_run(input: &mut Input, asked: &Asked, seen: &mut Vec<Seen>) -> bool {
    let mut run = asked.room.map_or_else(Run::default, nearly_full);
    let before = run.messages();
    input.take_short_run(asked.longest, &mut run, asked.messages, asked.bytes);
    let payloads: Vec<&[u8]> = run.payloads().skip(before).collect();
    assert_eq!(payloads.len(), run.messages() - before);
    assert!(payloads.len() <= asked.messages, "more messages than were asked for");
    if let Some((last, others)) = payloads.split_last() {
        let bytes: usize = others.iter().map(|payload| payload.len()).sum();
        assert!(bytes < asked.bytes, "{bytes} bytes before the last message");
        let wire = run.wire().len() - 2 - last.len();
        assert!(wire < RUN_BYTES, "{wire} bytes of a run before the last message");
    }
    seen.extend(payloads.iter().map(|payload| Seen::message(payload)));
    let is_any = !payloads.is_empty();
    if before == 0 {
        check_popped(run);
    }
    is_any
}

/// What is taken out of a run, at once or one by one, are its payloads.
fn check_popped(mut run: Run) {
    let expected: Vec<Vec<u8>> = run.payloads().map(<[u8]>::to_vec).collect();
    let bytes: usize = expected.iter().map(Vec::len).sum();
    assert_eq!(run.bytes(), bytes);
    let mut popped = Vec::new();
    run.pop_into(&mut popped, expected.len() / 2);
    popped.extend(run.by_ref());
    assert!((run.messages(), run.bytes()) == (0, 0), "something is left");
    assert_eq!(popped, expected.into_iter().map(Message::from).collect::<Vec<_>>());
}

/// A run with room for 256 bytes less so many, or for one less still.
fn nearly_full(less: u8) -> Run {
    static FULL: OnceLock<Run> = OnceLock::new();
    let full = |mut run: Run, room: usize| {
        while run.room() > room + 2 + SHORT_BODY {
            run.push(&[0; SHORT_BODY]);
        }
        run
    };
    let room = 256 - usize::from(less);
    let mut run = full(FULL.get_or_init(|| full(Run::default(), 256)).clone(), room);
    run.push(&[0; SHORT_BODY][..run.room().saturating_sub(room + 2)]);
    run
}
