//! Compares runs of short messages, as the sockets take them, with the same bytes taken frame by
//! frame.

use std::sync::OnceLock;

use bytes::BufMut;
use onward_zmtp::protocol::Message;
use onward_zmtp::protocol::bounds::{COMMAND_BYTES, RUN_BYTES, SHARE_BYTES};

use super::inside::{Error, Frame, FrameLimits, Input, MessageRun, SHORT_BODY};
use super::pieces;

/// The bounds of each run that is taken.
pub(crate) struct Asked {
    /// The longest frame, in bytes.
    pub(crate) longest: usize,
    /// The largest number of messages.
    pub(crate) messages: usize,
    /// The bound on the bytes of the payloads before the last one.
    pub(crate) bytes: usize,
    /// The room of a run that already has messages, as the number of bytes below 256. `None` for an
    /// empty run.
    pub(crate) room: Option<u8>,
}

/// The comparable parts of a frame, or of the end.
#[derive(Debug, PartialEq)]
enum Seen {
    Frame {
        more: bool,
        command: bool,
        body: Vec<u8>,
    },
    Error(Error),
    /// The number of bytes that are not decoded, apart from those of a large frame.
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

/// Checks that the bytes give the same frames in pieces with runs as whole and frame by frame.
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

/// Passes all bytes to the input and takes the frames. Returns whether there was no error.
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

/// Decodes as the sockets do: takes a run where there may be one, and otherwise a frame.
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

/// Takes a run and returns whether it has any message.
fn take_run(input: &mut Input, asked: &Asked, seen: &mut Vec<Seen>) -> bool {
    let mut run = asked.room.map_or_else(MessageRun::default, nearly_full);
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

/// Checks that the messages taken out of a run, together or one by one, are its payloads.
fn check_popped(mut run: MessageRun) {
    let expected: Vec<Vec<u8>> = run.payloads().map(<[u8]>::to_vec).collect();
    let bytes: usize = expected.iter().map(Vec::len).sum();
    assert_eq!(run.bytes(), bytes);
    let mut popped = Vec::new();
    run.pop_into(&mut popped, expected.len() / 2);
    popped.extend(run.by_ref());
    assert!((run.messages(), run.bytes()) == (0, 0), "something is left");
    assert_eq!(popped, expected.into_iter().map(Message::from).collect::<Vec<_>>());
}

/// Returns a run with room for `256 - less` bytes, or for one byte less.
fn nearly_full(less: u8) -> MessageRun {
    static FULL: OnceLock<MessageRun> = OnceLock::new();
    let full = |mut run: MessageRun, room: usize| {
        while run.room() > room + 2 + SHORT_BODY {
            run.push(&[0; SHORT_BODY]);
        }
        run
    };
    let room = 256 - usize::from(less);
    let mut run = full(FULL.get_or_init(|| full(MessageRun::default(), 256)).clone(), room);
    run.push(&[0; SHORT_BODY][..run.room().saturating_sub(room + 2)]);
    run
}
