//! The messages of a stream of server-sent events.

use std::collections::VecDeque;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::time::timeout;

use super::connection::Connection;
use super::transport::Failure;
use crate::bounds;
use crate::error::Error;

/// A message of a stream of server-sent events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct EventMessage {
    /// The name of the message; empty if it has none.
    pub event: String,
    /// The position behind the message, if the server names one.
    pub id: Option<String>,
    /// The data; lines are separated by line feeds.
    pub data: Option<String>,
}

/// A stream of server-sent events, over a connection of its own.
#[derive(Debug)]
pub struct MessageStream {
    /// Kept, because the connection ends with its sender.
    _connection: Connection,
    body: Incoming,
    parser: Parser,
}

impl MessageStream {
    pub(super) fn new(connection: Connection, body: Incoming) -> Self {
        Self { _connection: connection, body, parser: Parser::default() }
    }

    /// Waits for the next message; `None` at the end of the stream. It may be dropped and called
    /// again without losing a message.
    pub(crate) async fn next(&mut self) -> Result<Option<EventMessage>, Failure> {
        loop {
            if let Some(message) = self.parser.messages.pop_front() {
                return Ok(Some(message));
            }
            let frame = timeout(bounds::QUIET, self.body.frame()).await;
            let frame = frame.map_err(|_| Failure::lost(format_args!("no byte within {:?}", bounds::QUIET), true))?;
            let Some(frame) = frame else { return Ok(None) };
            let frame = frame.map_err(|error| Failure::lost(error, true))?;
            let Ok(data) = frame.into_data() else { continue };
            if !self.parser.feed(&data) {
                let text = format!("a message of the stream has more than {} bytes", bounds::MESSAGE_BYTES);
                return Err(Failure::Final(Error::unreadable(text)));
            }
        }
    }
}

/// Makes messages of bytes.
#[derive(Debug, Default)]
struct Parser {
    /// The beginning of a line.
    line: Vec<u8>,
    message: EventMessage,
    is_begun: bool,
    messages: VecDeque<EventMessage>,
}

impl Parser {
    /// Adds bytes. Returns false if a message is too long.
    fn feed(&mut self, bytes: &[u8]) -> bool {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if self.line.len() + self.message.data.as_ref().map_or(0, String::len) > bounds::MESSAGE_BYTES {
                return false;
            }
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                self.line(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']));
            }
        }
        true
    }

    fn line(&mut self, line: &str) {
        if line.is_empty() {
            if std::mem::take(&mut self.is_begun) {
                self.messages.push_back(std::mem::take(&mut self.message));
            }
            return;
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "event" => value.clone_into(&mut self.message.event),
            "id" => self.message.id = Some(value.to_owned()),
            "data" => match &mut self.message.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                none => *none = Some(value.to_owned()),
            },
            // A comment, or a field that this version does not know.
            _ => return,
        }
        self.is_begun = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(chunks: &[&str]) -> Vec<EventMessage> {
        let mut parser = Parser::default();
        assert!(chunks.iter().all(|chunk| parser.feed(chunk.as_bytes())));
        parser.messages.into()
    }

    #[test]
    fn messages_come_out_the_same_however_the_bytes_are_cut() {
        let text = ": hello\n\nevent: completed\r\nid: 2.0.0\r\ndata: {\"a\":\ndata: 1}\n\nid: 3\n";
        let whole = parsed(&[text]);
        assert_eq!(whole.len(), 1);
        assert_eq!((whole[0].event.as_str(), whole[0].id.as_deref()), ("completed", Some("2.0.0")));
        assert_eq!(whole[0].data.as_deref(), Some("{\"a\":\n1}"));
        for at in 1..text.len() {
            assert_eq!(parsed(&[&text[..at], &text[at..]]), whole, "cut at {at}");
        }
    }

    #[test]
    fn a_message_without_an_end_is_bounded() {
        let mut parser = Parser::default();
        let line = format!("data: {}\n", "x".repeat(1000));
        let fed = (0..2000).take_while(|_| parser.feed(line.as_bytes())).count();
        assert!(fed <= bounds::MESSAGE_BYTES / 1000, "{fed}");
    }
}
